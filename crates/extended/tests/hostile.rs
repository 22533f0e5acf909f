//! Strangers that pose as the other end, and an other end that keeps to no rule.

mod pair;

use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use pair::{
    Pair, Provider,
    far::{End, connect, start},
    now_and,
    provider::{PORT, on_every_provider},
    soon, take,
};
use sidestep_extended::{Error, Kind, Options, Region, Rights, Stack};
use sidestep_fabric::{
    self as fabric, Aperture, ChannelOptions, CloseReason, Cookie, Endpoint, Node, Refusal,
    channel::{Half, Joining},
    link::LinkOptions,
    queue::{QueueSpec, Receiver, Sender},
};
use sidestep_sockets::kernel::{self, address::Key};
use sidestep_sys::clock;
use sidestep_testkit::process::{self, Child, Role};

#[test]
fn role() {
    process::enter(&[("squatter", squatter), ("hostile", hostile)]);
}

on_every_provider!(garbage_in_the_ring_ends_the_extension_and_nothing_else, forged_rights_and_lengths_are_refused);

/// Listens where the parent's peer would, without having the connection.
fn squatter(role: Role) {
    let cookie: u64 = role.arguments[0].parse().unwrap();
    let node = Node::new().unwrap();
    let _listener = node.listen(&format!("shm:extended-{cookie:016x}")).unwrap();
    role.control.say("listening");
    loop {
        node.progress_kernel();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_stranger_that_takes_the_name_is_not_believed() {
    let (near, far) = Provider::OneHost.connected();
    // The one that asks is the one that could be deceived.
    let (asks, asked) = if Key::of(near.as_raw_fd()).unwrap().asks() { (near, far) } else { (far, near) };
    let cookie = kernel::cookie(asked.as_raw_fd()).unwrap().to_string();
    let child = Child::start("squatter", &[&cookie]);
    child.control.expect("listening");
    let stack = Stack::new().unwrap();
    let queue = stack.completion_queue().unwrap();
    assert_eq!(stack.enable(asks.as_fd(), &queue, soon()).unwrap_err(), Error::Unproven);
    assert_eq!(stack.enable(asked.as_fd(), &queue, soon()).unwrap_err(), Error::Taken);
}

/// A peer that holds its end of the connection, and from then on keeps to no rule.
struct Hostile {
    endpoint: Endpoint,
    sender: Sender,
    receiver: Receiver,
}

impl Hostile {
    /// Meets the other end as the library would.
    fn meet(stream: &TcpStream, options: Options) -> Hostile {
        let (node, name, key) = place(stream, options);
        let listener = node.listen(&name).unwrap();
        if options.in_place {
            node.adopt("iwarp", stream.try_clone().unwrap().into(), false).unwrap();
        }
        let request = listener.wait(Some(soon())).unwrap();
        let head = words(&key);
        let theirs = QueueSpec::from_bytes(&request.private()[56..]).unwrap();
        let mut own = None;
        let endpoint = request
            .accept_with(|endpoint| {
                let half = Half::new(&node, endpoint.peer(), ChannelOptions { capacity: 65536, ..Default::default() })?;
                let answer = [&head[..], &half.spec().to_bytes()].concat();
                half.keep_with(endpoint);
                own = Some(half);
                Ok(answer)
            })
            .unwrap();
        let joining = Joining::begin(&endpoint, &theirs).unwrap();
        joining.wait(Some(soon())).unwrap();
        let (sender, receiver) = own.unwrap().finish(&endpoint, &joining).unwrap();
        Hostile { endpoint, sender, receiver }
    }

    /// The cookie of the region that the other end exports.
    fn cookie(&mut self) -> Cookie {
        let mut frame = [0; 64];
        self.receiver.receive_exact(&mut frame, Some(soon())).unwrap();
        Cookie::from_bytes(&frame[16..]).unwrap()
    }
}

/// Where an end waits to be asked, as the manual says, and how it names the connection.
fn place(stream: &TcpStream, options: Options) -> (Node, String, Key) {
    let key = Key::of(stream.as_raw_fd()).unwrap();
    match options {
        Options { in_place: true, .. } => {
            let key = Key { namespace: 0, ..key };
            (Node::open(&["iwarp"], &LinkOptions::default()).unwrap(), in_place_name(&key), key)
        }
        Options { port: None, .. } => {
            let cookie = kernel::cookie(stream.as_raw_fd()).unwrap();
            (Node::new().unwrap(), format!("shm:extended-{cookie:016x}"), key)
        }
        Options { port: Some(port), .. } => {
            let key = Key { namespace: 0, ..key };
            (Node::open(&["iwarp"], &LinkOptions::default()).unwrap(), distant_name(&key, port), key)
        }
    }
}

fn distant_name(waits: &Key, port: u16) -> String {
    format!("iwarp:{}/{:016x}", SocketAddr::new(waits.local.ip(), port), number(waits))
}

fn in_place_name(waits: &Key) -> String {
    format!("iwarp:in-place/{:016x}", number(waits))
}

fn number(waits: &Key) -> u64 {
    let spread = |sum: u64, word: &u64| (sum ^ word).wrapping_mul(0x100_0000_01b3);
    waits.to_words().iter().fold(0xcbf2_9ce4_8422_2325, spread)
}

/// The beginning of what an end says.
fn words(key: &Key) -> Vec<u8> {
    let protocol = u64::from_le_bytes(*b"ssext\0\0\x01");
    [protocol].iter().chain(&key.to_words()).flat_map(|word| word.to_le_bytes()).collect()
}

fn hostile(role: Role) {
    let (stream, options) = connect(&role);
    if Key::of(stream.as_raw_fd()).unwrap().asks() {
        // The parent tries again.
        role.control.hear();
        return;
    }
    let mut hostile = Hostile::meet(&stream, options);
    match role.arguments[2].as_str() {
        "frames" => {
            hostile.sender.send(&[0xff; 64], Some(soon())).unwrap();
            hostile.endpoint.wait_closed(Some(soon())).unwrap();
        }
        "cookies" => {
            let cookie = hostile.cookie();
            // All rights, made out of the right to read.
            let mut forged = cookie.to_bytes();
            forged[32] = 7;
            let forged = Cookie::from_bytes(&forged).unwrap();
            let deadline = Some(soon());
            let refused = Aperture::open(&hostile.endpoint, &forged, deadline).unwrap_err();
            assert_eq!(refused, fabric::Error::Cookie(Refusal::Forged));
            // A longer region than there is.
            let mut longer = cookie.to_bytes();
            longer[24..32].copy_from_slice(&(1u64 << 30).to_le_bytes());
            let longer = Cookie::from_bytes(&longer).unwrap();
            let refused = Aperture::open(&hostile.endpoint, &longer, deadline).unwrap_err();
            assert_eq!(refused, fabric::Error::Cookie(Refusal::Forged));
            assert!(Aperture::open(&hostile.endpoint, &cookie, deadline).unwrap().write(0, b"x").is_err());
        }
        what => panic!("{what}?"),
    }
    role.control.say("done");
    role.control.hear();
}

/// A connection whose other end, a child, waits to be asked.
fn start_hostile(provider: &Provider, what: &str) -> (Child, TcpStream) {
    loop {
        let (child, stream) = start(provider, "hostile", &[what]);
        if Key::of(stream.as_raw_fd()).unwrap().asks() {
            return (child, stream);
        }
    }
}

fn garbage_in_the_ring_ends_the_extension_and_nothing_else(provider: &Provider) {
    let (child, stream) = start_hostile(provider, "frames");
    let mut end = End::enable(stream, provider.stack());
    let completions = take(&end.queue, 1);
    assert_eq!(completions[0].kind, Kind::Closed);
    let why = completions[0].outcome.clone().unwrap_err();
    assert!(matches!(why, Error::Fabric(fabric::Error::Closed(CloseReason::Violation(_)))), "{why}");
    assert!(end.socket.notify(1).is_err());
    child.control.expect("done");
    let stands = end.stream.write_all(b"the connection stands");
    assert_eq!(stands.is_ok(), !provider.options().in_place, "{stands:?}");
}

fn forged_rights_and_lengths_are_refused(provider: &Provider) {
    let (child, stream) = start_hostile(provider, "cookies");
    let end = End::enable(stream, provider.stack());
    let region: Region = end.stack.register(4096, Rights::READ).unwrap();
    region.write(0, b"mine").unwrap();
    end.socket.export(&region, Rights::READ, 1).unwrap();
    let deadline = soon();
    while !child.control.has_news() {
        end.stack.progress();
        assert!(clock::now() < deadline, "the hostile peer does not come to an end");
    }
    child.control.expect("done");
    let mut bytes = [0; 4];
    region.read(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"mine");
}

/// A connection between two hosts whose near end waits to be asked.
fn waiting_near(provider: &Provider) -> (TcpStream, TcpStream) {
    loop {
        let (near, far) = provider.connected();
        if !Key::of(near.as_raw_fd()).unwrap().asks() {
            return (near, far);
        }
    }
}

/// What a node at the far end is told that asks from an address, and says these words.
fn asks_near(provider: &Provider, from: IpAddr, key: &Key, words: &[u8]) -> fabric::Error {
    provider.at_far(|| {
        let node = Node::open(&["iwarp"], &LinkOptions::default()).unwrap();
        let name = distant_name(&key.reversed(), PORT);
        let deadline = soon();
        loop {
            let asked = node.begin_connect_from(&name, (from, deadline), |peer| {
                let half = Half::new(&node, peer, ChannelOptions { capacity: 65536, ..Default::default() })?;
                let said = [words, &half.spec().to_bytes()].concat();
                Ok(said)
            });
            match asked.and_then(|endpoint| endpoint.wait_connected(Some(deadline))).unwrap_err() {
                // The other end does not listen yet, or has just ended a turn.
                fabric::Error::NobodyListens(_) | fabric::Error::Closed(_) => assert!(clock::now() < deadline),
                fabric::Error::Refused { private } if private.is_empty() => assert!(clock::now() < deadline),
                error => return error,
            }
        }
    })
}

/// Another host, and a process that names another connection, are refused. The other end is not.
#[test]
fn strangers_of_the_network_are_refused() {
    let Some(provider) = Provider::two_hosts() else { return };
    let Provider::TwoHosts { hosts, .. } = &provider else { return };
    let other_address = "10.77.0.3".parse().unwrap();
    hosts.host(1).run(&["ip", "address", "add", "10.77.0.3/24", "dev", "wire"]).unwrap();
    let (near, far) = waiting_near(&provider);
    let key = Key { namespace: 0, ..Key::of(far.as_raw_fd()).unwrap() };
    let (near_stack, far_stack) = (provider.stack(), provider.stack());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let queue = near_stack.completion_queue().unwrap();
            near_stack.enable(near.as_fd(), &queue, soon())
        });
        let other_key = Key { local: SocketAddr::new(key.local.ip(), 1), ..key };
        let unproven = fabric::Error::Refused { private: b"unproven".to_vec() };
        assert_eq!(asks_near(&provider, other_address, &key, &words(&key)), unproven);
        assert_eq!(asks_near(&provider, key.local.ip(), &key, &words(&other_key)), unproven);
        let version = fabric::Error::Refused { private: b"version".to_vec() };
        assert_eq!(asks_near(&provider, key.local.ip(), &key, &[0xff; 56]), version);
        let queue = far_stack.completion_queue().unwrap();
        let enabled = provider.at_far(|| far_stack.enable(far.as_fd(), &queue, soon()));
        assert!(enabled.is_ok() && waiting.join().unwrap().is_ok());
    });
}

/// Whoever listens on the port and is no Sidestep is not taken for the other end, and the sockets stay as they were.
#[test]
fn a_port_that_somebody_else_has() {
    let Some(provider) = Provider::two_hosts() else { return };
    let (near, far) = waiting_near(&provider);
    let taken = TcpListener::bind((near.local_addr().unwrap().ip(), PORT)).unwrap();
    let over = AtomicBool::new(false);
    let greet = |mut stranger: TcpStream| {
        let _ = stranger.read(&mut [0; 64]);
        let _ = stranger.write_all(b"220 mail.example.org ESMTP\r\n");
    };
    taken.set_nonblocking(true).unwrap();
    let outcomes = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                taken
                    .accept()
                    .map_or_else(|_| thread::sleep(Duration::from_millis(1)), |(stranger, _)| greet(stranger));
            }
        });
        let stack = provider.stack();
        let queue = stack.completion_queue().unwrap();
        let refused = |end: &TcpStream| stack.enable(end.as_fd(), &queue, now_and(300)).unwrap_err();
        let outcomes = (refused(&near), provider.at_far(|| refused(&far)));
        over.store(true, Ordering::Release);
        outcomes
    });
    assert_eq!(outcomes, (Error::Taken, Error::Unanswered));
    drop(taken);
    Pair::over(&provider, near, far);
}

/// Two processes of one host that wait at the same time each get their turn on the port.
#[test]
fn the_port_goes_round() {
    let Some(provider) = Provider::two_hosts() else { return };
    let (first, second) = (waiting_near(&provider), waiting_near(&provider));
    thread::scope(|scope| {
        // Each stack is a node of its own, as those of two processes are.
        let wait = |stream: TcpStream| {
            let stack = provider.stack();
            let queue = stack.completion_queue().unwrap();
            stack.enable(stream.as_fd(), &queue, soon())
        };
        let waiting = [first.0, second.0].map(|stream| scope.spawn(move || wait(stream)));
        let ask = |stream: &TcpStream| {
            let stack = provider.stack();
            let queue = stack.completion_queue().unwrap();
            provider.at_far(|| stack.enable(stream.as_fd(), &queue, soon()))
        };
        // Whichever waited first, the second one is asked while the first is not: the port must go round for that.
        let _asked = (ask(&second.1).unwrap(), ask(&first.1).unwrap());
        waiting.into_iter().for_each(|thread| drop(thread.join().unwrap().unwrap()));
    });
}

#[test]
fn without_a_port_another_host_is_elsewhere() {
    let Some(provider) = Provider::two_hosts() else { return };
    let (near, far) = provider.connected();
    let stack = Stack::new().unwrap();
    let queue = stack.completion_queue().unwrap();
    assert_eq!(stack.enable(near.as_fd(), &queue, soon()).unwrap_err(), Error::Elsewhere);
    drop(far);
    let stack = provider.stack();
    let queue = stack.completion_queue().unwrap();
    let ended = loop {
        // The end of the connection may be on its way.
        match stack.enable(near.as_fd(), &queue, now_and(20)).unwrap_err() {
            Error::Unanswered => {}
            error => break error,
        }
    };
    assert_eq!(ended.errno(), libc::ENOTCONN);
}
