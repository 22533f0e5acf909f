//! What a hostile process does to those whose names it knows.

use std::{
    any::Any,
    collections::HashSet,
    io::{IoSlice, Write},
    mem::MaybeUninit,
    net::{TcpListener, TcpStream},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::{Command, Stdio},
};

use rustix::{
    event::epoll,
    fs::MemfdFlags,
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
        sockopt,
    },
    process::{PidfdFlags, getpid, pidfd_open},
};
use sidestep_fabric::{
    Node,
    link::shm::frame::{Frame, MAX_FRAME, VERSION},
    queue::Kind,
};
use sidestep_shm::{
    Memory,
    pair_bell::PairBell,
    passing::{Lifeline, Received},
};
use sidestep_sockets::{
    engine::HANDSHAKE,
    registry::{Identity, Registry},
};

/// Kinds of odd descriptors.
const ODD: usize = 11;

/// Attacks. What is returned is what must stay for the attack to last.
pub fn begin(how: &str, [port, plain_port]: [u16; 2], directory: &str, names: &[String]) -> Vec<Box<dyn Any>> {
    match how {
        "descriptors" => names.iter().flat_map(|name| pass_descriptors(name)).collect(),
        "greet" => names.iter().flat_map(|name| greet_with_descriptors(name)).collect(),
        "silence" => names.iter().flat_map(|name| say_nothing(name)).collect(),
        "garbage" => names.iter().flat_map(|name| send_garbage(name)).collect(),
        "forge" => forge(port, directory),
        "impersonate" => impersonate(plain_port, directory),
        "stop" => names.iter().flat_map(|name| stop_in_the_middle(name)).collect(),
        other => panic!("no attack {other}"),
    }
}

/// A connection to a name, without the library's manners. `None`: its backlog is full, or it is gone.
fn connect(name: &str) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let line = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket");
    let address = SocketAddrUnix::new_abstract_name(format!("sidestep-fabric/{name}").as_bytes()).expect("a name");
    rustix::net::connect(&line, &address).ok().map(|()| line)
}

/// Sends a message with descriptors; one that cannot be sent is the kernel's or the victim's no.
fn send(line: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(descriptors.is_empty() || control.push(SendAncillaryMessage::ScmRights(descriptors)));
    let _ = rustix::net::sendmsg(line, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// Descriptors of every kind that may be awkward to whoever gets, asks or closes them. The other ends are kept.
fn odd_descriptors(kept: &mut Vec<Box<dyn Any>>) -> [OwnedFd; ODD] {
    let file = |path: &str| OwnedFd::from(std::fs::File::open(path).expect("a file"));
    let unsealed = rustix::fs::memfd_create("unsealed", MemfdFlags::CLOEXEC).expect("memory");
    rustix::fs::ftruncate(&unsealed, 1 << 50).expect("a size");
    let set = |member: BorrowedFd<'_>| {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a set");
        let data = epoll::EventData::new_u64(0);
        epoll::add(&set, member, data, epoll::EventFlags::IN).expect("a member");
        set
    };
    let inner = set(rustix::event::eventfd(1, rustix::event::EventfdFlags::CLOEXEC).expect("a counter").as_fd());
    let nested = set(inner.as_fd());
    // A socket whose queue has a connection in it, so that it is closed with the socket.
    let (here, there) = Lifeline::pair().expect("a pair");
    let queued = lingering(kept);
    send(&here, b"", &[queued.as_fd()]);
    drop(queued);
    kept.push(Box::new(here));
    [
        lingering(kept),
        unsealed,
        nested,
        inner,
        there.into_fd(),
        file("/dev/null"),
        file("/"),
        file("/proc/self/exe"),
        pidfd_open(getpid(), PidfdFlags::empty()).expect("a process"),
        rustix::pipe::pipe().expect("a pipe").0,
        lingering(kept),
    ]
}

/// A connection with bytes that nobody reads, whose last close waits for them for a thousand seconds.
fn lingering(kept: &mut Vec<Box<dyn Any>>) -> OwnedFd {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut near = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    kept.push(Box::new(listener.accept().expect("a connection")));
    near.set_nonblocking(true).expect("a mode");
    while near.write(&[7; 65536]).is_ok() {}
    sockopt::set_socket_linger(&near, Some(std::time::Duration::from_secs(1000))).expect("an option");
    near.into()
}

/// Closes own copies, elsewhere: those that could not be sent wait for a thousand seconds here.
fn let_go(descriptors: Vec<OwnedFd>) {
    std::thread::spawn(move || drop(descriptors));
}

/// Passes them one by one and all at once, in frames of no kind, in empty messages, and as many as a message takes.
fn pass_descriptors(name: &str) -> Vec<Box<dyn Any>> {
    let mut kept: Vec<Box<dyn Any>> = Vec::new();
    for bytes in [&b"\xff"[..], b"", &[2, 1, 1]] {
        for odd in odd_descriptors(&mut kept) {
            let Some(line) = connect(name) else { continue };
            send(&line, bytes, &[odd.as_fd()]);
            // The victim's is the last one from here on.
            let_go(vec![odd]);
            kept.push(Box::new(line));
        }
        let (Some(line), odd) = (connect(name), odd_descriptors(&mut kept)) else { continue };
        let many: Vec<BorrowedFd<'_>> = odd.iter().map(AsFd::as_fd).cycle().take(253).collect();
        send(&line, bytes, &many);
        send(&line, bytes, &many[..9]);
        let_go(odd.into());
        kept.push(Box::new(line));
    }
    kept
}

/// The same beside a greeting, when the victim has looked who is there, and behind it.
fn greet_with_descriptors(name: &str) -> Vec<Box<dyn Any>> {
    let mut kept: Vec<Box<dyn Any>> = Vec::new();
    for at in 0..ODD {
        let Some((line, pair_len)) = greeted(name) else { continue };
        let pair = Memory::create("hostile-pair", pair_len as usize).expect("memory");
        let pages = pair.descriptor().expect("a descriptor");
        let bell = PairBell::new().expect("a bell");
        let mut hello = Vec::new();
        Frame::Hello { version: VERSION, pair_len }.emit(&mut hello);
        let mut odd = Vec::from(odd_descriptors(&mut kept));
        let one = odd.swap_remove(at);
        match at % 3 {
            0 => send(&line, &hello, &[one.as_fd(), bell.for_peer()]),
            1 => send(&line, &hello, &[pages.as_fd(), one.as_fd()]),
            _ => {
                send(&line, &hello, &[pages.as_fd(), bell.for_peer()]);
                let all: Vec<BorrowedFd<'_>> = odd.iter().map(AsFd::as_fd).take(8).collect();
                send(&line, &[2, 4, 0, 0], &all);
            }
        }
        // Behind what ends the session, in a queue that the victim closes unread.
        send(&line, &hello, &[one.as_fd()]);
        odd.push(one);
        let_go(odd);
        kept.push(Box::new((line, pair, bell)));
    }
    kept
}

/// A line whose other end has greeted, and the length of the memory that it wants.
fn greeted(name: &str) -> Option<(OwnedFd, u64)> {
    let line = Lifeline::from_fd(connect(name)?);
    let mut buffer = vec![0; MAX_FRAME];
    for _ in 0..20_000 {
        match line.receive(&mut buffer, &mut Vec::new()) {
            Ok(Received::Empty) => std::thread::sleep(std::time::Duration::from_millis(1)),
            Ok(Received::Message(len)) => match Frame::parse(&buffer[..len]) {
                Ok(Frame::Hello { pair_len, .. }) => return Some((line.into_fd(), pair_len)),
                _ => return None,
            },
            _ => return None,
        }
    }
    None
}

/// More lines than a victim has sessions for, on which nothing is ever said.
fn say_nothing(name: &str) -> Vec<Box<dyn Any>> {
    let lines = (0..400).filter_map(|_| connect(name));
    lines.map(|line| Box::new(line) as Box<dyn Any>).collect()
}

/// Frames that are cut, too long, of no kind, or of a kind that is not due.
fn send_garbage(name: &str) -> Vec<Box<dyn Any>> {
    let mut lines: Vec<Box<dyn Any>> = Vec::new();
    let mut hello = Vec::new();
    Frame::Hello { version: VERSION, pair_len: 1 << 40 }.emit(&mut hello);
    for bytes in [&hello[..], &hello[..5], &[0xff; 40], &[2; 4000], &vec![1; MAX_FRAME + 4096], &[7, 0, 0], &[9]] {
        let Some(line) = connect(name) else { continue };
        (0..50).for_each(|_| send(&line, bytes, &[]));
        lines.push(Box::new(line));
    }
    lines
}

/// Stops in the middle of a greeting: a process that is there, and will never say another word.
fn stop_in_the_middle(name: &str) -> Vec<Box<dyn Any>> {
    let Some(line) = connect(name) else { return Vec::new() };
    send(&line, &[1], &[]);
    let line = Stdio::from(line);
    let stopped = Command::new("sh").args(["-c", "kill -STOP $$"]).stdin(line).spawn().expect("a shell");
    vec![Box::new(Stopped(stopped))]
}

struct Stopped(std::process::Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks a server for connections of which it holds neither end, under names that the server waits to hear.
fn forge(port: u16, directory: &str) -> Vec<Box<dyn Any>> {
    let node = Node::new().expect("a node");
    let (mut kept, mut tries): (Vec<Box<dyn Any>>, usize) = (Vec::new(), 0);
    while tries < 2 {
        // What it says now.
        let Some(registry) = Registry::look(directory) else { continue };
        let sockets = registry.sockets();
        for key in sockets.iter().map(|socket| socket.key).filter(|key| key.local.port() == port) {
            let Some(identity) = registry.find(&key) else { continue };
            let mut lent = None;
            let asked = node.begin_connect_with(&format!("shm:{}", identity.name()), |peer| {
                let block = node.lend_block(peer, 64 << 10, Kind::Stream)?;
                let words = [HANDSHAKE, 0].into_iter().chain(key.reversed().to_words());
                let mut hello: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
                hello.extend(block.block().spec().to_bytes());
                lent = Some(block);
                Ok(hello)
            });
            let Ok(endpoint) = asked else { continue };
            let answer = endpoint.wait_connected(Some(sidestep_sys::clock::now() + 20_000_000_000));
            assert!(answer.is_err(), "a stream was given to a process that holds neither end");
            kept.push(Box::new((endpoint, lent)));
            tries += 1;
        }
    }
    kept
}

/// Enters itself into the registry as the server of a program's connections, and answers in the server's place.
fn impersonate(port: u16, directory: &str) -> Vec<Box<dyn Any>> {
    let registry = Registry::open(directory).expect("the registry");
    let node = Node::new().expect("a node");
    let identity = Identity([1, u64::from(std::process::id()) << 20 | 5]);
    let listener = node.listen(&format!("shm:{}", identity.name())).expect("a name");
    let process = registry.enter(identity, std::process::id()).expect("a place");
    let (mut kept, mut entered): (Vec<Box<dyn Any>>, _) = (Vec::new(), HashSet::new());
    let mut answered = 0;
    while answered < 1 {
        let sockets = Registry::look(directory).map(|view| view.sockets()).unwrap_or_default();
        for key in sockets.iter().map(|socket| socket.key.reversed()).filter(|key| key.local.port() == port) {
            if entered.insert(key)
                && let Some(entry) = registry.add(process, &key, 1, -1)
            {
                registry.set_willing(entry, true);
            }
        }
        node.progress_kernel();
        while let Some(request) = listener.poll() {
            let mut lent = None;
            let accepted = request.accept_with(|endpoint| {
                let block = node.lend_block(endpoint.peer(), 64 << 10, Kind::Stream)?;
                let answer = [&HANDSHAKE.to_le_bytes()[..], &block.block().spec().to_bytes()].concat();
                lent = Some(block);
                Ok(answer)
            });
            answered += usize::from(accepted.is_ok());
            kept.push(Box::new((accepted, lent)));
        }
    }
    registry.withdraw(process);
    kept.push(Box::new((node, listener)));
    kept
}
