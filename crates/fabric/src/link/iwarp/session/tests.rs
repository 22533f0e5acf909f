use std::{
    io::{ErrorKind, Write},
    net::{TcpListener, TcpStream},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::sockopt,
};

use super::*;
use crate::{
    link::LinkOptions,
    node::{Arrivals, LinkIndex, Node},
};

/// A stream that the kernel has given up, since its peer took nothing for too long; nobody was told yet.
fn given_up() -> OwnedFd {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let _peer = listener.accept().unwrap();
    sockopt::set_tcp_user_timeout(&stream, 200).unwrap();
    stream.set_nonblocking(true).unwrap();
    let full = loop {
        if let Err(error) = stream.write(&[0; 1 << 16]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    let patience = Timespec { tv_sec: 30, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&stream, PollFlags::empty())], Some(&patience)), Ok(1));
    stream.into()
}

/// The kernel tells why a stream failed to the first call only. If that is a write, the read that follows finds a plain end,
/// which is not the peer's death.
#[test]
fn a_write_that_is_told_of_the_failure_does_not_hide_it() {
    let node = Node::new().unwrap();
    let ready = Sleeper::new().unwrap();
    let around = Around { ready: &ready, began: clock::now() };
    let state = State::initiate(PeerNumber(1), &LinkOptions::default(), around.now()).unwrap();
    let session = Session::new(PeerNumber(1), Origin::Accepted, given_up().into(), state, around).unwrap();
    assert_eq!(session.lock().stream.cannot_send, Some(rustix::io::Errno::TIMEDOUT));
    let found = session.poll(around, &Arrivals::new(node.core(), LinkIndex::default()));
    assert!(found.over && found.gone);
    assert_eq!(session.lock().ended, Some(CloseReason::Link("the peer no longer answers")));
}
