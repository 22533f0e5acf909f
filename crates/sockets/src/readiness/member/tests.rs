//! Edges, step by step.

use std::{
    io::{IoSlice, IoSliceMut},
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd,
};

use rustix::event::epoll::{CreateFlags, create};

use super::*;
use crate::{calls, descriptors::table, readiness::set::state::State};

/// Two promoted ends of one connection within this process.
fn promoted() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    calls::made(client.as_raw_fd(), false);
    calls::connected(client.as_raw_fd());
    calls::accepted(server.as_raw_fd(), false);
    for _ in 0..1000 {
        for (from, to) in [(&client, &server), (&server, &client)] {
            send(from, b"x");
            calls::receive(to.as_raw_fd(), &mut [IoSliceMut::new(&mut [0])], 0).unwrap();
        }
        let on_rings = |end: &TcpStream| calls::paths(end.as_raw_fd()) == Some((true, true));
        if on_rings(&client) && on_rings(&server) {
            return (client, server);
        }
    }
    panic!("it stays on TCP");
}

fn send(from: &TcpStream, bytes: &[u8]) {
    assert_eq!(calls::send(from.as_raw_fd(), &[IoSlice::new(bytes)], 0), Ok(bytes.len()));
}

/// An edge-triggered member of a set of its own.
fn edge_member(end: &TcpStream, set: i32) -> (State, u32) {
    let (fd, events) = (end.as_raw_fd(), IN | OUT | EDGE);
    let event = libc::epoll_event { events, u64: 0 };
    kernel::epoll_control(set, libc::EPOLL_CTL_ADD, fd, Some(event)).unwrap();
    let stream = table::stream(fd).unwrap();
    let mut state = State::default();
    let member = Member::new(stream, fd, events, 0);
    let id = state.members.insert(fd, member);
    state.carry(set, id);
    assert!(state.members.get(id).is_some_and(|member| member.ring.is_some()));
    (state, id)
}

#[test]
fn an_edge_that_comes_while_another_is_reported_is_told() {
    let (client, server) = promoted();
    let set = create(CreateFlags::CLOEXEC).unwrap();
    let (mut state, id) = edge_member(&server, set.as_raw_fd());
    let member = state.members.get_mut(id).unwrap();

    let gathered = member.ready();
    assert_eq!(gathered & (IN | OUT), OUT);
    // Between the look and the report.
    send(&client, b"request");
    let told = member.report(gathered);
    assert_ne!((told | member.ready()) & IN, 0, "the request is never told of");

    // And once only.
    member.report(member.ready());
    assert_eq!(member.ready(), 0);
    state.remove(id);
}
