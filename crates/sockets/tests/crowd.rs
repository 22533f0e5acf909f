//! Thousands of links in one epoll set, of which one is busy: a wait costs by those that are. The cost is the processor time
//! of the thread, which does not grow with what else the machine does.

use std::{
    ffi::OsStr,
    io::{IoSlice, IoSliceMut},
    net::{TcpListener, TcpStream},
    os::fd::IntoRawFd,
    time::Duration,
};

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};
use sidestep_sockets::calls;
use sidestep_testkit::process::{Child, Folder, PATIENCE, enter};

/// Links in the set, and in one to compare with.
const MANY: usize = 2_000;
const FEW: usize = 20;
const ROUNDS: usize = 400;

#[test]
fn role() {
    enter(&[("crowd", |_| crowd())]);
}

/// Links that need little memory, and a registry that holds that many.
#[test]
fn links_without_news_cost_nothing() {
    let folder = Folder::new("crowd");
    let settings = [
        ("SIDESTEP_CARRIER", OsStr::new("via")),
        ("SIDESTEP_PROMOTE", OsStr::new("eager")),
        ("SIDESTEP_SOVIA", OsStr::new("window=4,chunk=1024")),
        ("SIDESTEP_DIR", folder.path().as_os_str()),
    ];
    Child::start_with("crowd", &[], &settings).wait_success();
}

fn crowd() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("as many as may be");
    let room = maximum.is_none_or(|most| most as usize > 8 * MANY);
    let pairs: Vec<[i32; 2]> = (0..if room { MANY } else { 5 * FEW }).map(|_| linked()).collect();
    // Whichever was not looked at for long is not the last one.
    let (few, many) = (median(&pairs[..FEW]), median(&pairs));
    assert!(many < 10 * few + Duration::from_micros(100), "{many:?} with {} links, {few:?} with {FEW}", pairs.len());
}

/// What one message and its answer cost over the first pair, whose server waits on the servers' ends of all.
fn median(pairs: &[[i32; 2]]) -> Duration {
    let set = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).expect("a set").into_raw_fd();
    calls::set_created(set);
    for [_, server] in pairs {
        let event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: *server as u64 };
        calls::set_control(set, libc::EPOLL_CTL_ADD, *server, Some(event)).expect("a member");
    }
    let mut times: Vec<Duration> = (0..ROUNDS).map(|round| exchange(set, pairs[busy(round, pairs.len())])).collect();
    times.sort_unstable();
    calls::close(set).expect("it is open");
    times[ROUNDS / 2]
}

/// The first one, mostly: now and then one that has been quiet says something.
fn busy(round: usize, count: usize) -> usize {
    if round % 10 == 9 { round * 7 % count } else { 0 }
}

fn exchange(set: i32, [client, server]: [i32; 2]) -> Duration {
    let began = thread_time();
    assert_eq!(calls::send(client, &[IoSlice::new(b"question")], 0), Ok(8));
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
    let count = calls::set_wait(set, &mut events, Some(PATIENCE), None).expect("news");
    let found = (count, events[0].u64);
    assert_eq!(found, (1, server as u64));
    assert_eq!(receive(server), b"question");
    assert_eq!(calls::send(server, &[IoSlice::new(b"answered")], 0), Ok(8));
    assert_eq!(receive(client), b"answered");
    thread_time() - began
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn receive(fd: i32) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    assert_eq!(calls::receive(fd, &mut [IoSliceMut::new(&mut bytes)], libc::MSG_WAITALL), Ok(8));
    bytes
}

/// A connection whose two ends are linked.
fn linked() -> [i32; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    client.set_nodelay(true).expect("an option");
    let (server, _) = listener.accept().expect("a connection");
    let ends = [client.into_raw_fd(), server.into_raw_fd()];
    calls::made(ends[0], false);
    calls::connected(ends[0]);
    calls::accepted(ends[1], false);
    for _ in 0..1_000 {
        for (from, to) in [(0, 1), (1, 0)] {
            assert_eq!(calls::send(ends[from], &[IoSlice::new(b"warm-up.")], 0), Ok(8));
            assert_eq!(receive(ends[to]), b"warm-up.");
        }
        if ends.iter().all(|end| calls::paths(*end) == Some((true, true))) {
            return ends;
        }
    }
    panic!("not promoted after 1,000 exchanges");
}
