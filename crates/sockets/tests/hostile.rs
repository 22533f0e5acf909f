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
    let mut block = None;
    let endpoint = node.begin_connect_with(&format!("shm:{}", identity.name()), |peer| {
        assert!(Notice::Asker(node.caller(peer).unwrap()).put(fd));
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

proptest! {
    #[test]
    fn any_bytes_are_a_greeting_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_hello(&bytes);
        let _ = read_answer(&bytes);
    }
}
