//! Streams between two ends in one process: promoted, moved back and forth, ended. Every call goes through the functions
//! that the preload library calls.

use std::{
    io::{IoSlice, IoSliceMut},
    net::{TcpListener, TcpStream},
    os::fd::{AsRawFd, IntoRawFd},
};

use sidestep_sockets::{Errno, calls, registry::Registry};

/// A connection whose two ends are streams of ours.
struct Pair {
    client: i32,
    server: i32,
}

impl Pair {
    fn new() -> Pair {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nodelay(true).unwrap();
        let (server, _) = listener.accept().unwrap();
        let pair = Pair { client: client.into_raw_fd(), server: server.into_raw_fd() };
        calls::made(pair.client, false);
        calls::connected(pair.client);
        calls::accepted(pair.server, false);
        pair
    }

    /// Exchanges messages until both directions are on the ring.
    fn promoted() -> Pair {
        let pair = Pair::new();
        for round in 0..1000 {
            pair.exchange(round);
            if pair.is_promoted() {
                return pair;
            }
        }
        panic!("not promoted after 1,000 exchanges");
    }

    fn exchange(&self, round: u32) {
        let message = round.to_ne_bytes();
        assert_eq!(send(self.client, &message), Ok(4));
        assert_eq!(receive_exact(self.server, 4), message);
        assert_eq!(send(self.server, &message), Ok(4));
        assert_eq!(receive_exact(self.client, 4), message);
    }

    fn is_promoted(&self) -> bool {
        calls::paths(self.client) == Some((true, true)) && calls::paths(self.server) == Some((true, true))
    }
}

fn send(fd: i32, bytes: &[u8]) -> Result<usize, Errno> {
    calls::send(fd, &[IoSlice::new(bytes)], 0)
}

fn receive(fd: i32, len: usize, flags: i32) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; len];
    let count = calls::receive(fd, &mut [IoSliceMut::new(&mut bytes)], flags)?;
    bytes.truncate(count);
    Ok(bytes)
}

fn receive_exact(fd: i32, len: usize) -> Vec<u8> {
    receive(fd, len, libc::MSG_WAITALL).unwrap()
}

#[test]
fn an_exchange_or_two_and_the_kernel_is_out_of_it() {
    let pair = Pair::promoted();
    for round in 0..10_000 {
        pair.exchange(round);
    }
    calls::close(pair.client).unwrap();
    assert_eq!(receive(pair.server, 10, 0), Ok(vec![]));
    calls::close(pair.server).unwrap();
}

#[test]
fn bytes_sent_before_a_close_arrive_before_the_end() {
    let pair = Pair::promoted();
    let bytes: Vec<u8> = (0..100_000u32).map(|at| at as u8).collect();
    assert_eq!(send(pair.client, &bytes), Ok(bytes.len()));
    calls::close(pair.client).unwrap();
    assert_eq!(receive_exact(pair.server, bytes.len() + 1), bytes);
    assert_eq!(receive(pair.server, 1, 0), Ok(vec![]));
    calls::close(pair.server).unwrap();
}

#[test]
fn a_half_closed_stream_goes_on_the_other_way() {
    let pair = Pair::promoted();
    assert_eq!(send(pair.client, b"last"), Ok(4));
    calls::shutdown(pair.client, libc::SHUT_WR).unwrap();
    assert_eq!(send(pair.client, b"x"), Err(Errno(libc::EPIPE)));
    assert_eq!(receive_exact(pair.server, 10), b"last");
    assert_eq!(send(pair.server, b"answer"), Ok(6));
    assert_eq!(receive_exact(pair.client, 6), b"answer");
    calls::close(pair.server).unwrap();
    assert_eq!(receive(pair.client, 1, 0), Ok(vec![]));
    calls::close(pair.client).unwrap();
}

#[test]
fn a_close_with_unread_bytes_is_a_reset() {
    let pair = Pair::promoted();
    assert_eq!(send(pair.client, b"unread"), Ok(6));
    calls::close(pair.server).unwrap();
    assert_eq!(receive(pair.client, 1, 0), Err(Errno(libc::ECONNRESET)));
    assert_eq!(send(pair.client, b"x"), Err(Errno(libc::EPIPE)));
    calls::close(pair.client).unwrap();
}

#[test]
fn peeking_takes_nothing_and_waiting_for_all_takes_all() {
    let pair = Pair::promoted();
    assert_eq!(send(pair.client, b"abcdef"), Ok(6));
    assert_eq!(receive(pair.server, 3, libc::MSG_PEEK), Ok(b"abc".to_vec()));
    assert_eq!(calls::readable_bytes(pair.server), Ok(6));
    assert_eq!(receive_exact(pair.server, 6), b"abcdef");
    assert_eq!(receive(pair.server, 1, libc::MSG_DONTWAIT), Err(Errno(libc::EAGAIN)));
    calls::close(pair.client).unwrap();
    calls::close(pair.server).unwrap();
}

#[test]
fn more_than_the_ring_holds_goes_on_over_tcp_and_comes_back() {
    let pair = Pair::promoted();
    // Nobody reads: blocking writes of this size must still return, as they do on TCP.
    let bytes: Vec<u8> = (0..1_000_000u32).map(|at| (at / 7) as u8).collect();
    assert_eq!(send(pair.client, &bytes), Ok(bytes.len()));
    assert_eq!(calls::paths(pair.client), Some((true, false)));
    assert_eq!(send(pair.server, &bytes), Ok(bytes.len()));
    assert_eq!(receive_exact(pair.server, bytes.len()), bytes);
    assert_eq!(receive_exact(pair.client, bytes.len()), bytes);
    for round in 0..100 {
        pair.exchange(round);
    }
    assert!(pair.is_promoted());
    calls::close(pair.client).unwrap();
    calls::close(pair.server).unwrap();
}

#[test]
fn a_stream_that_leaves_stays_on_tcp() {
    let pair = Pair::promoted();
    let other = std::thread::spawn({
        let server = pair.server;
        move || {
            for _ in 0..1000 {
                let message = receive_exact(server, 4);
                assert_eq!(send(server, &message), Ok(4));
            }
        }
    });
    for round in 0..1000u32 {
        if round == 500 {
            calls::leave(pair.client, sidestep_sockets::reason::Reason::Demoted);
        }
        assert_eq!(send(pair.client, &round.to_ne_bytes()), Ok(4));
        assert_eq!(receive_exact(pair.client, 4), round.to_ne_bytes());
    }
    other.join().unwrap();
    assert_eq!(calls::paths(pair.client), Some((false, false)));
    calls::close(pair.client).unwrap();
    calls::close(pair.server).unwrap();
}

#[test]
fn threads_that_sleep_are_woken() {
    let pair = Pair::promoted();
    let server = pair.server;
    let echo = std::thread::spawn(move || {
        loop {
            let message = receive(server, 64, 0).unwrap();
            if message.is_empty() {
                return;
            }
            assert_eq!(send(server, &message), Ok(message.len()));
        }
    });
    for round in 0..50u32 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(send(pair.client, &round.to_ne_bytes()), Ok(4));
        assert_eq!(receive_exact(pair.client, 4), round.to_ne_bytes());
    }
    calls::close(pair.client).unwrap();
    echo.join().unwrap();
    calls::close(pair.server).unwrap();
}

#[test]
fn poll_sees_rings_and_ends() {
    let pair = Pair::promoted();
    let poll = |events: i16, millis: u64| {
        let mut fds = [libc::pollfd { fd: pair.server, events, revents: 0 }];
        let count = calls::poll(&mut fds, Some(std::time::Duration::from_millis(millis)), None).unwrap();
        (count, fds[0].revents)
    };
    assert_eq!(poll(libc::POLLIN, 0), (0, 0));
    assert_eq!(poll(libc::POLLIN, 5), (0, 0));
    assert_eq!(poll(libc::POLLIN | libc::POLLOUT, 0), (1, libc::POLLOUT));
    assert_eq!(send(pair.client, b"x"), Ok(1));
    assert_eq!(poll(libc::POLLIN, 1000), (1, libc::POLLIN));
    assert_eq!(receive_exact(pair.server, 1), b"x");
    assert_eq!(poll(libc::POLLIN, 0), (0, 0));
    calls::close(pair.client).unwrap();
    assert_eq!(poll(libc::POLLIN | libc::POLLRDHUP, 1000), (1, libc::POLLIN | libc::POLLRDHUP));
    calls::close(pair.server).unwrap();
}

#[test]
fn epoll_sees_rings_and_ends() {
    for edge in [0, libc::EPOLLET as u32] {
        let set = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
        let set = set.as_raw_fd();
        calls::set_created(set);
        let pair = Pair::new();
        let event = libc::epoll_event { events: libc::EPOLLIN as u32 | libc::EPOLLRDHUP as u32 | edge, u64: 77 };
        calls::set_control(set, libc::EPOLL_CTL_ADD, pair.server, Some(event)).unwrap();
        let wait = |millis: u64| {
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
            let timeout = std::time::Duration::from_millis(millis);
            let count = calls::set_wait(set, &mut events, Some(timeout), None).unwrap();
            events[..count].iter().map(|event| (event.events, event.u64)).collect::<Vec<_>>()
        };
        for round in 0..200u32 {
            assert_eq!(wait(0), []);
            assert_eq!(send(pair.client, &round.to_ne_bytes()), Ok(4));
            assert_eq!(wait(1000), [(libc::EPOLLIN as u32, 77)], "round {round} edge {edge}");
            // A level stays, an edge has passed.
            assert_eq!(wait(0).len(), usize::from(edge == 0));
            assert_eq!(receive_exact(pair.server, 4), round.to_ne_bytes());
            assert_eq!(send(pair.server, b"ok"), Ok(2));
            assert_eq!(receive_exact(pair.client, 2), b"ok");
        }
        assert!(pair.is_promoted());
        assert_eq!(wait(3), []);
        let sender = std::thread::spawn({
            let client = pair.client;
            move || {
                std::thread::sleep(std::time::Duration::from_millis(20));
                assert_eq!(send(client, b"late"), Ok(4));
            }
        });
        assert_eq!(wait(2000), [(libc::EPOLLIN as u32, 77)]);
        sender.join().unwrap();
        assert_eq!(receive_exact(pair.server, 4), b"late");
        calls::close(pair.client).unwrap();
        assert_eq!(wait(1000), [((libc::EPOLLIN | libc::EPOLLRDHUP) as u32, 77)]);
        calls::close(pair.server).unwrap();
        assert_eq!(wait(0), []);
    }
}

#[test]
fn what_stat_reads_adds_up() {
    let pair = Pair::promoted();
    for round in 0..100 {
        pair.exchange(round);
    }
    let registry = Registry::look(&sidestep_sockets::config::config().directory).unwrap();
    let mine: Vec<_> = registry
        .sockets()
        .into_iter()
        .filter(|socket| socket.pid == std::process::id() && socket.fd == pair.client as u32)
        .collect();
    assert_eq!(mine.len(), 1);
    assert_eq!(mine[0].on_carrier, (true, true));
    assert!(mine[0].written.carried >= 400 && mine[0].written.messages >= 100, "{:?}", mine[0]);
    assert!(mine[0].promotions >= 2 && mine[0].capacity >= 16 << 10, "{:?}", mine[0]);
    calls::close(pair.client).unwrap();
    calls::close(pair.server).unwrap();
}
