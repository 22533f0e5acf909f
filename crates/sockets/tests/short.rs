//! A connection that ends after one exchange is never promoted, and leaves nothing behind: the engine allocates no memory for
//! it, once it has served as many at a time.

use std::{
    io::{IoSlice, IoSliceMut},
    net::{TcpListener, TcpStream},
    os::fd::{AsRawFd, IntoRawFd},
    time::Duration,
};

use rustix::event::epoll;
use sidestep_sockets::calls;
use sidestep_testkit::allocator::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const CONNECTIONS: usize = 100;

#[test]
fn a_short_connection_allocates_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a set");
    calls::set_created(set.as_raw_fd());
    exchange(&listener, set.as_raw_fd());
    let allocations: u64 = (0..CONNECTIONS).map(|_| exchange(&listener, set.as_raw_fd())).sum();
    assert_eq!(allocations, 0, "allocations of {CONNECTIONS} connections");
}

/// One connection, both of whose ends do not wait and lie in a set. Returns how often the engine has allocated memory.
fn exchange(listener: &TcpListener, set: i32) -> u64 {
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (server, _) = listener.accept().expect("a connection");
    for end in [&client, &server] {
        end.set_nonblocking(true).expect("its mode");
    }
    let [client, server] = [client, server].map(IntoRawFd::into_raw_fd);
    let before = ALLOCATOR.calls();
    calls::made(client, true);
    add(set, client);
    calls::connected(client);
    send(client, b"question");
    calls::accepted(server, true);
    add(set, server);
    await_readable(set, server);
    receive(server, b"question");
    send(server, b"the answer");
    calls::close(server).expect("its end");
    await_readable(set, client);
    receive(client, b"the answer");
    calls::close(client).expect("its end");
    ALLOCATOR.calls() - before
}

fn add(set: i32, fd: i32) {
    let events = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
    let event = libc::epoll_event { events, u64: fd as u64 };
    calls::set_control(set, libc::EPOLL_CTL_ADD, fd, Some(event)).expect("a member");
}

fn await_readable(set: i32, fd: i32) {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
    loop {
        let count = calls::set_wait(set, &mut events, Some(Duration::from_secs(20)), None).expect("an event");
        assert_ne!(count, 0, "nothing has come");
        if events[..count].iter().any(|event| event.u64 == fd as u64) {
            return;
        }
    }
}

fn send(fd: i32, bytes: &[u8]) {
    assert_eq!(calls::send(fd, &[IoSlice::new(bytes)], libc::MSG_NOSIGNAL), Ok(bytes.len()));
}

fn receive(fd: i32, expected: &[u8]) {
    let mut bytes = [0; 32];
    assert_eq!(calls::receive(fd, &mut [IoSliceMut::new(&mut bytes)], 0), Ok(expected.len()));
    assert_eq!(&bytes[..expected.len()], expected);
}
