//! Two processes with an extended socket between them: the order against the stream, death, strangers, and a hostile peer.

mod pair;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd},
};

use pair::{now_and, outcome_of, take};
use sidestep_extended::{CompletionQueue, Error, Kind, Region, Rights, Socket, Stack};
use sidestep_fabric::{
    self as fabric, Aperture, ChannelOptions, CloseReason, Cookie, Endpoint, Node, Refusal,
    channel::{Half, Joining},
    queue::{QueueSpec, Receiver, Sender},
};
use sidestep_sockets::kernel::{self, address::Key};
use sidestep_sys::clock;
use sidestep_testkit::process::{self, Child, Role};

#[test]
fn role() {
    process::enter(&[
        ("owner", owner),
        ("writer", writer),
        ("squatter", squatter),
        ("hostile", hostile),
        ("stopped", stopped),
    ]);
}

/// One end in this process.
struct End {
    stream: TcpStream,
    stack: Stack,
    queue: CompletionQueue,
    socket: Socket,
}

impl End {
    fn enable(stream: TcpStream) -> End {
        let stack = Stack::new().unwrap();
        let queue = stack.completion_queue().unwrap();
        let socket = stack.enable(stream.as_fd(), &queue, now_and(10_000)).unwrap();
        End { stream, stack, queue, socket }
    }
}

/// Starts a child in a role, with a connection to it.
fn start(role: &str, arguments: &[&str]) -> (Child, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let child = Child::start(role, &[&[address.as_str()], arguments].concat());
    (child, listener.accept().unwrap().0)
}

fn connect(role: &Role) -> TcpStream {
    TcpStream::connect(&role.arguments[0]).unwrap()
}

/// Owns a region, and answers each byte with one after it has changed the region's first word.
fn owner(role: Role) {
    let mut end = End::enable(connect(&role));
    let rights = if role.arguments[1] == "read" { Rights::READ } else { Rights::ALL };
    let region = end.stack.register(4096, rights).unwrap();
    end.socket.export(&region, rights, 1).unwrap();
    let (word, mut byte) = (region.word64(0).unwrap(), [0]);
    let mut round = 0;
    while end.stream.read(&mut byte).unwrap() == 1 {
        round += 1;
        word.store(round, std::sync::atomic::Ordering::Release);
        end.stream.write_all(&byte).unwrap();
    }
}

const ROUNDS: u64 = 3000;

/// What the other end did before it wrote bytes is seen by operations that begin after they were read.
#[test]
fn a_get_after_bytes_sees_what_was_done_before_them() {
    for rights in ["read", "all"] {
        let (mut child, stream) = start("owner", &[rights]);
        let mut end = End::enable(stream);
        let remote = end.socket.import(Some(now_and(10_000))).unwrap();
        assert!(remote.reads_directly());
        for round in 1..=ROUNDS {
            end.stream.write_all(b"x").unwrap();
            end.stream.read_exact(&mut [0]).unwrap();
            let mut word = [0; 8];
            end.socket.get(&remote, 0, &mut word).unwrap();
            assert_eq!(u64::from_le_bytes(word), round);
        }
        end.stream.shutdown(std::net::Shutdown::Write).unwrap();
        child.wait_success();
    }
}

/// Writes rounds into the parent's region, and a byte behind each.
fn writer(role: Role) {
    let mut end = End::enable(connect(&role));
    let remote = end.socket.import(Some(now_and(10_000))).unwrap();
    let local = end.stack.register(4096, Rights::NONE).unwrap();
    for round in 1..=ROUNDS {
        let bytes = round.to_le_bytes();
        if round % 2 == 0 {
            end.socket.put(&remote, 8, &bytes).unwrap();
        } else {
            local.write(0, &bytes).unwrap();
            end.socket.post_put(&remote, 8, vec![local.piece(0, 8).unwrap()], round).unwrap();
            end.socket.fence().unwrap();
        }
        end.stream.write_all(b"x").unwrap();
        end.stream.read_exact(&mut [0]).unwrap();
    }
}

/// What was put before bytes were written is there when they are read.
#[test]
fn a_put_before_bytes_is_seen_after_them() {
    let (mut child, stream) = start("writer", &[]);
    let mut end = End::enable(stream);
    let region = end.stack.register(4096, Rights::ALL).unwrap();
    end.socket.export(&region, Rights::ALL, 1).unwrap();
    for round in 1..=ROUNDS {
        end.stream.read_exact(&mut [0]).unwrap();
        let mut word = [0; 8];
        region.read(8, &mut word).unwrap();
        assert_eq!(u64::from_le_bytes(word), round);
        end.stream.write_all(b"x").unwrap();
    }
    child.wait_success();
}

/// Enables its socket, exports a region and a half-served one, and then does nothing more.
fn stopped(role: Role) {
    let end = End::enable(connect(&role));
    let region = end.stack.register(4096, Rights::READ).unwrap();
    end.socket.export(&region, Rights::READ, 1).unwrap();
    let served = end.stack.register(4096, Rights::WRITE).unwrap();
    end.socket.export(&served, Rights::WRITE, 2).unwrap();
    let deadline = now_and(30_000);
    while !role.control.has_news() && clock::now() < deadline {
        end.stack.progress();
    }
    loop {
        std::thread::park();
    }
}

/// Whatever an operation waits for ends when the other process is killed: memory that is mapped, memory that is served, and
/// messages. By the median, since a busy machine may let one of them wait.
#[test]
fn a_killed_peer_ends_every_operation() {
    let mut times: Vec<u64> = (0..KILLS).map(|_| time_to_hear_of_a_kill()).collect();
    times.sort_unstable();
    println!("the end of a killed peer is told after {times:?} ns");
    assert!(times[KILLS / 2] < PROMPT_NS, "{times:?}");
}

const KILLS: usize = 5;
/// What a program may count on.
const PROMPT_NS: u64 = 100_000_000;

fn time_to_hear_of_a_kill() -> u64 {
    let (mut child, stream) = start("stopped", &[]);
    let end = End::enable(stream);
    let mapped = end.socket.import(Some(now_and(10_000))).unwrap();
    let served = end.socket.import(Some(now_and(10_000))).unwrap();
    child.control.say("park");
    let local = end.stack.register(4096, Rights::NONE).unwrap();
    end.socket.post_recv(vec![local.piece(0, 64).unwrap()], 1).unwrap();
    // Nobody serves it any more: this one waits for the process.
    end.socket.post_put(&served, 0, vec![local.piece(0, 64).unwrap()], 2).unwrap();
    child.kill();
    child.wait();
    let began = clock::now();
    let completions = take(&end.queue, 3);
    let took = clock::now() - began;
    let kinds: Vec<_> = completions.iter().map(outcome_of).collect();
    let reset = Err(libc::ECONNRESET);
    assert!(kinds.contains(&(Kind::Receive, 1, reset)) && kinds.contains(&(Kind::Put, 2, reset)), "{kinds:?}");
    assert_eq!(completions[2].outcome, Err(Error::Fabric(fabric::Error::Closed(CloseReason::Died))));
    let refused = end.socket.get(&mapped, 0, &mut [0; 8]).unwrap_err();
    assert_eq!(refused.errno(), libc::ECONNRESET);
    took
}

/// A program that only reads mapped memory, and looks at nothing else, hears of the end too.
#[test]
fn a_killed_peer_ends_reads_that_never_fail_by_themselves() {
    let mut times: Vec<u64> = (0..KILLS).map(|_| time_to_fail_after_a_kill()).collect();
    times.sort_unstable();
    assert!(times[KILLS / 2] < PROMPT_NS, "{times:?}");
}

fn time_to_fail_after_a_kill() -> u64 {
    let (mut child, stream) = start("stopped", &[]);
    let end = End::enable(stream);
    let mapped = end.socket.import(Some(now_and(10_000))).unwrap();
    child.kill();
    child.wait();
    let began = clock::now();
    while end.socket.get(&mapped, 0, &mut [0; 8]).is_ok() {
        assert!(clock::now() - began < process::PATIENCE_NS, "reads of a dead peer's memory go on");
    }
    clock::now() - began
}

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
    let (near, far) = pair::connected();
    // The one that asks is the one that could be deceived.
    let (asks, asked) = if Key::of(near.as_raw_fd()).unwrap().asks() { (near, far) } else { (far, near) };
    let cookie = kernel::cookie(asked.as_raw_fd()).unwrap().to_string();
    let child = Child::start("squatter", &[&cookie]);
    child.control.expect("listening");
    let stack = Stack::new().unwrap();
    let queue = stack.completion_queue().unwrap();
    assert_eq!(stack.enable(asks.as_fd(), &queue, now_and(10_000)).unwrap_err(), Error::Unproven);
    assert_eq!(stack.enable(asked.as_fd(), &queue, now_and(10_000)).unwrap_err(), Error::Taken);
}

/// A peer that holds its end of the connection, and from then on keeps to no rule.
struct Hostile {
    endpoint: Endpoint,
    sender: Sender,
    receiver: Receiver,
}

impl Hostile {
    /// Meets the other end as the library would.
    fn meet(stream: &TcpStream) -> Hostile {
        let node = Node::new().unwrap();
        let cookie = kernel::cookie(stream.as_raw_fd()).unwrap();
        let listener = node.listen(&format!("shm:extended-{cookie:016x}")).unwrap();
        let request = listener.wait(Some(now_and(10_000))).unwrap();
        let head = request.private()[..56].to_vec();
        let theirs = QueueSpec::from_bytes(&request.private()[56..]).unwrap();
        let mut own = None;
        let endpoint = request
            .accept_with(|endpoint| {
                let half = Half::new(&node, endpoint.peer(), ChannelOptions { capacity: 65536, ..Default::default() })?;
                let answer = [&head[..], &half.spec().to_bytes()].concat();
                own = Some(half);
                Ok(answer)
            })
            .unwrap();
        let joining = Joining::begin(&endpoint, &theirs).unwrap();
        joining.wait(Some(now_and(10_000))).unwrap();
        let (sender, receiver) = own.as_ref().unwrap().finish(&endpoint, &joining).unwrap();
        endpoint.own(own);
        Hostile { endpoint, sender, receiver }
    }

    /// The cookie of the region that the other end exports.
    fn cookie(&mut self) -> Cookie {
        let mut frame = [0; 64];
        self.receiver.receive_exact(&mut frame, Some(now_and(10_000))).unwrap();
        Cookie::from_bytes(&frame[16..]).unwrap()
    }
}

fn hostile(role: Role) {
    let stream = connect(&role);
    if Key::of(stream.as_raw_fd()).unwrap().asks() {
        // The parent tries again.
        role.control.hear();
        return;
    }
    let mut hostile = Hostile::meet(&stream);
    match role.arguments[1].as_str() {
        "frames" => {
            hostile.sender.send(&[0xff; 64], Some(now_and(10_000))).unwrap();
            hostile.endpoint.wait_closed(Some(now_and(10_000))).unwrap();
        }
        "cookies" => {
            let cookie = hostile.cookie();
            // All rights, made out of the right to read.
            let mut forged = cookie.to_bytes();
            forged[32] = 7;
            let forged = Cookie::from_bytes(&forged).unwrap();
            let deadline = Some(now_and(10_000));
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
fn start_hostile(what: &str) -> (Child, TcpStream) {
    loop {
        let (child, stream) = start("hostile", &[what]);
        if Key::of(stream.as_raw_fd()).unwrap().asks() {
            return (child, stream);
        }
    }
}

#[test]
fn garbage_in_the_ring_ends_the_extension_and_nothing_else() {
    let (child, stream) = start_hostile("frames");
    let mut end = End::enable(stream);
    let completions = take(&end.queue, 1);
    assert_eq!(completions[0].kind, Kind::Closed);
    let why = completions[0].outcome.clone().unwrap_err();
    assert!(matches!(why, Error::Fabric(fabric::Error::Closed(CloseReason::Violation(_)))), "{why}");
    assert!(end.socket.notify(1).is_err());
    child.control.expect("done");
    end.stream.write_all(b"the connection stands").unwrap();
}

#[test]
fn forged_rights_and_lengths_are_refused() {
    let (child, stream) = start_hostile("cookies");
    let end = End::enable(stream);
    let region: Region = end.stack.register(4096, Rights::READ).unwrap();
    region.write(0, b"mine").unwrap();
    end.socket.export(&region, Rights::READ, 1).unwrap();
    let deadline = now_and(30_000);
    while !child.control.has_news() {
        end.stack.progress();
        assert!(clock::now() < deadline, "the hostile peer does not come to an end");
    }
    child.control.expect("done");
    let mut bytes = [0; 4];
    region.read(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"mine");
}
