use std::{
    io::{IoSlice, Read, Write},
    mem::MaybeUninit,
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::*;

/// A connection with unsent bytes whose last close waits for a thousand seconds, and its other end.
fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = listener.accept().unwrap().0;
    near.set_nonblocking(true).unwrap();
    while near.write(&[7; 65536]).is_ok() {}
    let linger = libc::linger { l_onoff: 1, l_linger: 1000 };
    // SAFETY: the struct outlives the call.
    let set = unsafe {
        let len = size_of::<libc::linger>() as u32;
        libc::setsockopt(near.as_fd().as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), len)
    };
    assert_eq!(set, 0);
    (near.into(), far)
}

/// Puts a copy of the descriptor into the queue of the socket's other end.
fn pass(socket: &UnixStream, descriptor: &OwnedFd) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let passed = [descriptor.as_fd()];
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&passed)));
    sendmsg(socket, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::empty()).unwrap();
}

fn busy() -> usize {
    THREADS.iter().filter(|slot| slot.thread.load(Ordering::Acquire) != 0).count()
}

fn drain(mut far: TcpStream) -> std::io::Result<usize> {
    let mut bytes = vec![0; 1 << 20];
    loop {
        match far.read(&mut bytes) {
            Ok(0) => return Ok(0),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
}

#[test]
fn a_connection_that_lingers_is_reset_elsewhere() {
    let (near, far) = lingering();
    discard([near]);
    // The reset that says that it was closed, with its bytes thrown away.
    assert_eq!(drain(far).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

/// A connection in the queue of a socket is closed with that, and out of reach of any option: the thread waits, and nobody
/// else does.
#[test]
fn what_waits_all_the_same_holds_nobody() {
    let mut others = Vec::new();
    for _ in 0..3 {
        let (near, far) = lingering();
        let (here, there) = UnixStream::pair().unwrap();
        pass(&here, &near);
        drop(near);
        discard([there.into()]);
        others.push((far, here));
    }
    // Each close waits for bytes that nobody has read yet, and this line is reached all the same.
    assert!(busy() >= 3);
    others.into_iter().for_each(|(far, _)| assert_eq!(drain(far).unwrap(), 0));
    while busy() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn more_than_one_list_is_closed_too() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let copies = (0..700).map(|_| rustix::io::fcntl_dupfd_cloexec(&writer, 3).unwrap());
    discard(copies.collect::<Vec<_>>());
    drop(writer);
    // The end comes when all are closed.
    while !is_closed(&reader) {
        discard([]);
        std::thread::yield_now();
    }
}

fn is_closed(reader: &OwnedFd) -> bool {
    rustix::io::read(reader, &mut [0; 1]).unwrap() == 0
}
