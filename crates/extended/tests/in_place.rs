//! Extended in place: the connection itself becomes a stream of iWARP, and nothing else.

mod pair;

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::fd::{AsFd, AsRawFd},
};

use pair::{Pair, Provider, now_and, soon};
use sidestep_extended::{Error, Options, Rights, Stack};
use sidestep_sockets::kernel::address::Key;

fn enable(stack: &Stack, end: &TcpStream, milliseconds: u64) -> Error {
    let queue = stack.completion_queue().unwrap();
    stack.enable(end.as_fd(), &queue, now_and(milliseconds)).unwrap_err()
}

/// A connection: the end that asks, and the one that waits to be asked.
fn connected() -> (TcpStream, TcpStream) {
    let (near, far) = Provider::InPlace.connected();
    if Key::of(near.as_raw_fd()).unwrap().asks() { (near, far) } else { (far, near) }
}

#[test]
fn plain_calls_are_refused() {
    let mut pair = Pair::new(&Provider::InPlace);
    for stream in [&mut pair.near_stream, &mut pair.far_stream] {
        assert_eq!(stream.write(b"x").unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
        assert_eq!(stream.read(&mut [0]).unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
    }
    // And have harmed nothing.
    let (_region, remote) = pair.shared(64, Rights::ALL);
    assert_eq!(pair.near.fetch_add(&remote, 0, 1).unwrap(), 0);
}

#[test]
fn the_end_that_waits_has_written_nothing() {
    let (mut asks, mut waits) = connected();
    let stack = Provider::InPlace.stack();
    assert_eq!(enable(&stack, &waits, 20), Error::Unanswered);
    waits.write_all(b"plain").unwrap();
    let mut bytes = [0; 5];
    asks.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"plain");
    // Bytes that nobody has read stay where they are, at either end.
    for (from, to) in [(&asks, &waits), (&waits, &asks)] {
        (&mut &*from).write_all(b"bytes").unwrap();
        to.peek(&mut [0; 5]).unwrap();
        assert_eq!(enable(&stack, to, 10_000), Error::Unread);
        (&mut &*to).read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"bytes");
    }
    // And it can be tried again.
    let pair = Pair::over(&Provider::InPlace, asks, waits);
    pair.near.notify(1).unwrap();
}

#[test]
fn the_end_that_asks_cannot_go_back() {
    let (mut asks, mut waits) = connected();
    assert_eq!(enable(&Provider::InPlace.stack(), &asks, 20), Error::Spent);
    assert_eq!(asks.write(b"x").unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
    let mut request = Vec::new();
    waits.read_to_end(&mut request).unwrap_or_default();
    assert!(request.starts_with(b"MPA ID Req Frame"), "{request:?}");
}

/// Whoever answers and is no end of this kind ends the attempt at once.
#[test]
fn an_answer_that_is_none_is_refused() {
    let (asks, mut waits) = connected();
    let (stack, said) = (Provider::InPlace.stack(), b"220 mail.example.org ESMTP ready, go on\r\n");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            waits.read_exact(&mut [0; 20]).unwrap();
            waits.write_all(said).unwrap();
            // The end comes by itself.
            let _ = waits.read_to_end(&mut Vec::new());
        });
        assert_eq!(enable(&stack, &asks, 60_000), Error::Spent);
    });
}

/// An end that is extended beside the stream, and one that is in place, do not meet.
#[test]
fn both_ends_must_want_it() {
    let (asks, waits) = connected();
    let beside = Stack::with(Options::default()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(enable(&beside, &waits, 100), Error::Unanswered));
        assert_eq!(enable(&Provider::InPlace.stack(), &asks, 200), Error::Spent);
    });
}

/// A region of each kind, over the connection that the program had.
#[test]
fn memory_of_the_program_is_reached_too() {
    let pair = Pair::new(&Provider::InPlace);
    let (region, remote) = pair.shared(300_000, Rights::ALL);
    let sent: Vec<u8> = (0..300_000).map(|at| (at % 249) as u8).collect();
    pair.near.put(&remote, 0, &sent).unwrap();
    let mut there = vec![0; sent.len()];
    region.read(0, &mut there).unwrap();
    assert!(there == sent);
    pair.near.get(&remote, 0, &mut there).unwrap();
    assert!(there == sent);
    drop(pair.far);
    assert_eq!(pair.near.import(Some(soon())).unwrap_err().errno(), libc::ECONNRESET);
}
