//! Two ends that make the connection itself the line between them: an MPA request and its reply (RFC 5044, RFC 6581) go over it, and from
//! then on it carries frames of RDMAP alone. So whatever lies between the ends, and whoever listens there, sees iWARP on the
//! very connection that the program has made.
//!
//! ```text
//!   one end waits                                                the other asks
//!   looks at the first bytes, without taking them
//!                                            ◀── MPA request ──
//!   takes the connection     ── MPA reply ──▶
//!                                            ◀── which connection? ──
//!                            ── accepts ──▶
//! ```
//!
//! The end that waits writes nothing before it has seen a request: if there is none in time, its socket is as it was. The end that
//! asks has written one, so that for it there is no way back. Who speaks on the connection is who holds its other end: no more proof is
//! needed.

use std::{
    cell::Cell,
    os::fd::{AsRawFd, BorrowedFd},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{RecvFlags, recv},
};
use sidestep_fabric::{CloseReason, Endpoint, Listener, Node, PeerId};
use sidestep_shm as shm;
use sidestep_sockets::kernel::{self, TCP_ESTABLISHED, address::Key};
use sidestep_sys::{clock, descriptor};

use super::{Hello, Place};
use crate::error::{Error, Result};

/// The connection, as seen from one of its ends.
pub(super) struct InPlace<'a> {
    node: &'a Node,
    socket: BorrowedFd<'a>,
    key: Key,
    deadline: u64,
    /// The line, once the connection is one.
    peer: Cell<Option<PeerId>>,
}

/// How an MPA request begins.
const REQUEST: &[u8; 16] = b"MPA ID Req Frame";
/// Between two looks while only a part of that is there.
const PAUSE: Duration = Duration::from_millis(1);
/// How often an end that waits makes progress for others.
const SLICE_NS: u64 = 20_000_000;

impl<'a> InPlace<'a> {
    pub(super) fn new(node: &'a Node, socket: BorrowedFd<'a>, key: Key, deadline: u64) -> InPlace<'a> {
        // The name of a namespace means nothing in another.
        InPlace { node, socket, key: Key { namespace: 0, ..key }, deadline, peer: Cell::new(None) }
    }

    /// Whether the connection is no stream of bytes any more.
    pub(super) fn is_taken(&self) -> bool {
        self.peer.get().is_some()
    }

    /// Ends the line.
    pub(super) fn give_up(&self) {
        if let Some(peer) = self.peer.get() {
            self.node.peer(peer).close(CloseReason::Here);
        }
    }

    /// Makes the connection a line.
    fn take(&self, begins: bool) -> Result<PeerId> {
        let copy = descriptor::keep_copy(self.socket).map_err(|errno| self.not_connected(errno.raw_os_error()))?;
        let peer = self.node.adopt("iwarp", copy, begins)?;
        self.peer.set(Some(peer));
        Ok(peer)
    }

    /// Waits until a request has come, and leaves it where it is.
    fn wait_for_request(&self) -> Result<()> {
        loop {
            let mut bytes = [0; REQUEST.len()];
            match recv(self.socket, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(self.not_connected(libc::ENOTCONN)),
                Ok((len, _)) if !REQUEST.starts_with(&bytes[..len]) => return Err(Error::Unread),
                Ok((len, _)) if len == REQUEST.len() => return Ok(()),
                Ok(_) => thread::sleep(PAUSE),
                Err(Errno::AGAIN | Errno::INTR) => self.wait_readable(),
                Err(errno) => return Err(self.not_connected(errno.raw_os_error())),
            }
            if clock::now() >= self.deadline {
                return Err(Error::Unanswered);
            }
            self.node.progress_kernel();
        }
    }

    fn wait_readable(&self) {
        let left = self.deadline.saturating_sub(clock::now()).min(SLICE_NS);
        let limit = Timespec { tv_sec: 0, tv_nsec: left as i64 };
        // Whatever happens, the next look finds out.
        let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&limit));
    }

    /// The name under which the end that waits listens for the line.
    fn name(&self, waits: &Key) -> String {
        format!("iwarp:in-place/{:016x}", super::number(waits))
    }

    fn not_connected(&self, errno: i32) -> Error {
        Error::NotConnected { fd: self.socket.as_raw_fd(), errno }
    }
}

impl Place for InPlace<'_> {
    fn key(&self) -> Key {
        self.key
    }

    fn ask(&self, node: &Node, _deadline: u64, hello: Hello<'_>) -> Result<Option<Endpoint>> {
        if self.is_taken() {
            return Err(Error::Spent);
        }
        match kernel::ask(self.socket.as_raw_fd(), libc::FIONREAD) {
            Ok(0) => {}
            Ok(_) => return Err(Error::Unread),
            Err(kernel::Errno(errno)) => return Err(self.not_connected(errno)),
        }
        let peer = self.take(true)?;
        Ok(Some(node.begin_connect_to(peer, &self.name(&self.key.reversed()), hello)?))
    }

    fn listen(&self, node: &Node) -> Result<Option<Listener>> {
        if self.is_taken() {
            return Err(Error::Spent);
        }
        self.wait_for_request()?;
        // Before the other end can ask.
        let listener = node.listen(&self.name(&self.key)).map_err(|error| match error {
            sidestep_fabric::Error::Memory(shm::Error::NameTaken(_)) => Error::Taken,
            error => error.into(),
        })?;
        self.take(false)?;
        Ok(Some(listener))
    }

    fn check_peer(&self, _node: &Node, peer: PeerId) -> Result<()> {
        if self.peer.get() == Some(peer) { Ok(()) } else { Err(Error::Unproven) }
    }

    fn check_standing(&self) -> Result<()> {
        match self.peer.get() {
            Some(peer) if self.node.peer(peer).is_here() => Ok(()),
            Some(_) => Err(Error::Spent),
            None => match kernel::state(self.socket.as_raw_fd()) {
                Ok(TCP_ESTABLISHED) => Ok(()),
                Ok(_) => Err(self.not_connected(libc::ENOTCONN)),
                Err(kernel::Errno(errno)) => Err(self.not_connected(errno)),
            },
        }
    }
}
