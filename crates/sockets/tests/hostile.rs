//! A peer that holds its end of the handshake and then writes garbage wherever it can. Our end may lose that connection;
//! it must not panic, hang, or read bytes from anywhere but the stream.

use std::{
    io::{IoSlice, IoSliceMut, Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::IntoRawFd,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use sidestep_fabric::{
    Aperture, ArenaBlock, Endpoint, Error, Node,
    queue::{Kind, QueueSpec},
};
use sidestep_sockets::{
    Errno,
    address::Key,
    calls,
    config::config,
    engine::{HANDSHAKE, proof::Notice, read_answer, read_hello},
    reason::Reason,
    registry::{Identity, Registry},
};
use sidestep_testkit::process::PATIENCE;

/// Our end, and a hostile peer that has been given a carrier.
struct Attack {
    ours: i32,
    theirs: TcpStream,
    aperture: Aperture,
    spec: QueueSpec,
    _endpoint: Endpoint,
    _block: ArenaBlock,
}

impl Attack {
    fn begin() -> Attack {
        use std::os::fd::AsRawFd;
        // Who has the larger port asks: the hostile peer.
        let (listener, mut theirs) = loop {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            if theirs.local_addr().unwrap().port() > listener.local_addr().unwrap().port() {
                break (listener, theirs);
            }
        };
        let ours = listener.accept().unwrap().0.into_raw_fd();
        calls::accepted(ours, false);
        // Two exchanges make the offer; the server waits to be asked.
        for _ in 0..3 {
            theirs.write_all(b"ping").unwrap();
            assert_eq!(receive(ours, 4), Ok(b"ping".to_vec()));
            assert_eq!(send(ours, b"pong"), Ok(4));
            theirs.read_exact(&mut [0; 4]).unwrap();
        }
        let key = Key::of(theirs.as_raw_fd()).unwrap();
        let registry = Registry::look(&config().directory).unwrap();
        let identity = registry.find(&key.reversed()).expect("an offer stands");
        let node = Node::new().unwrap();
        let limit = Instant::now() + PATIENCE;
        let (endpoint, block) = loop {
            assert!(Instant::now() < limit, "no answer");
            let (endpoint, block) = ask(&node, &key, identity, theirs.as_raw_fd());
            let connected = loop {
                assert!(Instant::now() < limit, "no answer");
                match endpoint.is_connected() {
                    Ok(false) => node.progress_kernel(),
                    Ok(true) => break true,
                    // Another thread answered in the middle of a call of this one, and could not know what was read.
                    Err(Error::Refused { .. }) => break false,
                    Err(error) => panic!("{error}"),
                };
                // Our end looks at its own calls only.
                theirs.write_all(b"ping").unwrap();
                assert_eq!(receive(ours, 4), Ok(b"ping".to_vec()));
                assert_eq!(send(ours, b"pong"), Ok(4));
                theirs.read_exact(&mut [0; 4]).unwrap();
            };
            if connected {
                break (endpoint, block);
            }
        };
        let spec = read_answer(&endpoint.private()).unwrap();
        let aperture = Aperture::open(&endpoint, &spec.cookie, Some(u64::MAX)).unwrap();
        Attack { ours, theirs, aperture, spec, _endpoint: endpoint, _block: block }
    }

    /// Writes a word of our block: 0x00 tail, 0x10 switch, 0x18 and 0x90 notes, 0x80 head.
    fn scribble(&self, at: usize, value: u64) {
        let _ = self.aperture.store64(self.spec.offset as usize + at, value);
    }

    /// Our end reads and writes without waiting, some times; whatever comes back, it comes back.
    fn exercise(&self) {
        calls::mode_was_set(self.ours, true);
        for _ in 0..4 {
            let _ = receive(self.ours, 1000);
            let _ = send(self.ours, &[7; 100]);
            let _ = calls::readable_bytes(self.ours);
            let mut fds = [libc::pollfd { fd: self.ours, events: libc::POLLIN | libc::POLLOUT, revents: 0 }];
            calls::poll(&mut fds, Some(Duration::ZERO), None).unwrap();
        }
    }
}

/// Asks the process with this identity for a carrier of the stream, as the peer that holds its other end would.
fn ask(node: &Node, key: &Key, identity: Identity, fd: i32) -> (Endpoint, ArenaBlock) {
    ask_with(node, key, identity, |own| assert!(Notice::Asker(own).put(fd)))
}

/// The same, with something else on the socket: `notice` is told the number of the line.
fn ask_with(node: &Node, key: &Key, identity: Identity, notice: impl FnOnce(u64)) -> (Endpoint, ArenaBlock) {
    let mut block = None;
    let endpoint = node.begin_connect_with(&format!("shm:{}", identity.name()), |peer| {
        notice(node.peer(peer).caller().unwrap());
        let lent = node.lend_block(peer, 64 << 10, Kind::Stream)?;
        let mut hello = Vec::new();
        for word in [HANDSHAKE, 0].iter().chain(&key.to_words()) {
            hello.extend_from_slice(&word.to_le_bytes());
        }
        hello.extend_from_slice(&lent.block().spec().to_bytes());
        block = Some(lent);
        Ok(hello)
    });
    (endpoint.unwrap(), block.unwrap())
}

fn send(fd: i32, bytes: &[u8]) -> Result<usize, Errno> {
    calls::send(fd, &[IoSlice::new(bytes)], libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
}

fn receive(fd: i32, len: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0xee; len];
    let count = calls::receive(fd, &mut [IoSliceMut::new(&mut bytes)], 0)?;
    bytes.truncate(count);
    Ok(bytes)
}

#[test]
fn garbage_in_every_word_that_a_peer_can_write() {
    let words = [0x00, 0x10, 0x18, 0x80, 0x90];
    let values = [1, 64 << 10, (64 << 10) + 1, 1 << 40, u64::MAX, 1 << 63, 3, 0x0103, 29 << 8 | 3, 28 << 8 | 3];
    for at in words {
        for value in values {
            let attack = Attack::begin();
            attack.scribble(at, value);
            attack.exercise();
            for (at, value) in words.into_iter().zip(values) {
                attack.scribble(at, value.rotate_left(7));
            }
            attack.exercise();
            calls::close(attack.ours).unwrap();
        }
    }
}

#[test]
fn a_switch_to_a_position_in_the_past_is_a_reset() {
    let attack = Attack::begin();
    // Switch 1, to the ring, at position 0: long gone.
    attack.scribble(0x18, 1);
    assert_eq!(receive(attack.ours, 10), Err(Errno(libc::ECONNRESET)));
    calls::close(attack.ours).unwrap();
}

#[test]
fn a_peer_that_only_talks_tcp_after_the_handshake_is_served_over_tcp() {
    let mut attack = Attack::begin();
    for round in 0..100u32 {
        attack.theirs.write_all(&round.to_ne_bytes()).unwrap();
        assert_eq!(receive(attack.ours, 4), Ok(round.to_ne_bytes().to_vec()));
        assert_eq!(send(attack.ours, &round.to_ne_bytes()), Ok(4));
        let mut back = [0; 4];
        attack.theirs.read_exact(&mut back).unwrap();
        assert_eq!(back, round.to_ne_bytes());
    }
    calls::close(attack.ours).unwrap();
}

/// Our end of a connection whose other end is plain, which makes an offer; the identity under which it is asked.
fn offering() -> (i32, TcpStream, Identity) {
    let (ours, mut theirs) = connection(true);
    calls::accepted(ours, false);
    for _ in 0..3 {
        exchange(ours, &mut theirs);
    }
    let registry = Registry::look(&config().directory).unwrap();
    let identity = registry.find(&Key::of(ours).unwrap()).expect("an offer stands");
    (ours, theirs, identity)
}

/// A connection whose other end has the larger port, or the smaller one.
fn connection(larger: bool) -> (i32, TcpStream) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nodelay(true).unwrap();
        let far = listener.accept().unwrap().0;
        far.set_nodelay(true).unwrap();
        let is_larger = near.local_addr().unwrap().port() > listener.local_addr().unwrap().port();
        match (is_larger, larger) {
            (true, true) => return (far.into_raw_fd(), near),
            (true, false) => return (near.into_raw_fd(), far),
            (false, _) => {}
        }
    }
}

fn exchange(ours: i32, theirs: &mut TcpStream) {
    theirs.write_all(b"ping").unwrap();
    assert_eq!(receive(ours, 4), Ok(b"ping".to_vec()));
    assert_eq!(send(ours, b"pong"), Ok(4));
    theirs.read_exact(&mut [0; 4]).unwrap();
}

/// Asks for a stream with a key, as `begin` would, but for what stands on the socket. Whether it was given.
fn is_given(node: &Node, ours: i32, theirs: &mut TcpStream, identity: Identity, notice: impl FnOnce(u64)) -> bool {
    let key = Key::of(ours).unwrap().reversed();
    let (endpoint, _block) = ask_with(node, &key, identity, notice);
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        assert!(Instant::now() < limit, "no answer");
        match endpoint.is_connected() {
            Ok(false) => node.progress_kernel(),
            answer => return answer.is_ok(),
        };
        exchange(ours, theirs);
    }
}

#[test]
fn a_stream_is_not_given_to_who_holds_neither_end() {
    use std::os::fd::AsRawFd;
    let (ours, mut theirs, identity) = offering();
    let (node, other) = (Node::new().unwrap(), Node::new().unwrap());
    let fd = theirs.as_raw_fd();
    // Nothing stands on the socket; the number of another line does, as for who passes on the question of the holder; and
    // the right number, in the words of who is asked.
    assert!(!is_given(&node, ours, &mut theirs, identity, |_| {}));
    assert!(!is_given(&node, ours, &mut theirs, identity, |own| assert!(Notice::Asker(own ^ 1).put(fd))));
    assert!(!is_given(&node, ours, &mut theirs, identity, |own| assert!(Notice::Asked(own).put(fd))));
    // What the holder has said for its own line is of no use on another one.
    let mut of_holder = 0;
    assert!(!is_given(&other, ours, &mut theirs, identity, |own| of_holder = own));
    assert!(!is_given(&node, ours, &mut theirs, identity, |_| assert!(Notice::Asker(of_holder).put(fd))));
    assert_eq!(calls::paths(ours), Some((false, false)));
    calls::close(ours).unwrap();
}

fn reason_of(fd: i32) -> Option<Reason> {
    let (key, view) = (Key::of(fd).unwrap(), Registry::look(&config().directory)?);
    view.sockets().iter().find(|socket| socket.key == key).map(|socket| socket.reason)
}

#[test]
fn an_answer_is_not_believed_from_who_holds_neither_end() {
    let (ours, mut theirs) = connection(false);
    calls::made(ours, false);
    calls::connected(ours);
    exchange(ours, &mut theirs);
    // An impostor: in the registry in place of the plain process at the other end.
    let registry = Registry::open(&config().directory).unwrap();
    let node = Node::new().unwrap();
    let identity = Identity([1, u64::from(std::process::id()) << 20 | 3]);
    let listener = node.listen(&format!("shm:{}", identity.name())).unwrap();
    let process = registry.enter(identity, std::process::id()).unwrap();
    let entry = registry.add(process, &Key::of(ours).unwrap().reversed(), 1, -1).unwrap();
    registry.set_willing(entry, true);
    let (mut answered, mut after) = (Vec::new(), 0);
    let limit = Instant::now() + Duration::from_secs(30);
    // It goes on for a while after it was answered.
    while after < 1000 {
        assert!(Instant::now() < limit, "it never asks: {:?}", reason_of(ours));
        exchange(ours, &mut theirs);
        node.progress_kernel();
        while let Some(request) = listener.poll() {
            let mut lent = None;
            let accepted = request.accept_with(|endpoint| {
                let block = node.lend_block(endpoint.peer(), 64 << 10, Kind::Stream)?;
                let answer = [&HANDSHAKE.to_le_bytes()[..], &block.block().spec().to_bytes()].concat();
                lent = Some(block);
                Ok(answer)
            });
            answered.push((accepted.unwrap(), lent));
        }
        after += usize::from(!answered.is_empty());
        assert_eq!(calls::paths(ours), Some((false, false)));
    }
    assert_eq!(reason_of(ours), Some(Reason::Unproven));
    registry.withdraw(process);
    calls::close(ours).unwrap();
}

proptest! {
    #[test]
    fn any_bytes_are_a_greeting_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_hello(&bytes);
        let _ = read_answer(&bytes);
    }
}
