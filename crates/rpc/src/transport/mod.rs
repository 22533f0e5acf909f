//! What carries the messages of a client: one module per kind.
//!
//! A *frame* is [`crate::record::ROOM`] bytes and a message; streams write the record mark into that room.

pub(crate) mod channel;
mod datagram;
mod rdma;
mod stream;
mod via;

pub(crate) use channel::Space;
pub(crate) use datagram::MAX_DATAGRAM;
pub(crate) use rdma::Wishes;
pub(crate) use stream::{READ, Socket};

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sidestep_sys::clock;

use crate::{Address, Error};

/// What takes messages.
pub(crate) type Take<'a> = dyn FnMut(&[u8]) + 'a;

/// One connection, or what takes its place. Contract:
///
/// - `send` and `receive` may be called from two threads at a time, each by one.
/// - A frame is sent whole, and in the order of calls, or the transport is broken and says so from then on.
/// - `receive` gives every message that has come to `take`, once, and returns early when there was one.
/// - `close` ends a `receive` that waits in another thread.
/// - Times are those of [`clock::now`].
pub(crate) trait Transport: Send + Sync {
    /// Whether messages can get lost although the transport is not broken.
    fn lossy(&self) -> bool;

    /// Sends as much of a marked frame as can be sent without waiting: how much that is.
    fn send(&self, frame: &[u8]) -> io::Result<usize>;

    /// Sends a marked frame if all of it can be sent now and nobody else sends: whether it has. Unlike `send`, anybody may call
    /// it at any time.
    fn send_whole(&self, _: &[u8]) -> io::Result<bool> {
        Ok(false)
    }

    /// Like `send_whole`, for a frame that nobody needs any more: its bytes may be sent from where they lie, later. Then it is
    /// left empty.
    fn give_whole(&self, frame: &mut Vec<u8>) -> io::Result<bool> {
        self.send_whole(frame)
    }

    /// Waits for messages until a time: whether there was one.
    fn receive(&self, until: u64, take: &mut dyn FnMut(&[u8])) -> io::Result<bool>;

    /// Waits until more of a frame can be sent, or a time. Messages that come meanwhile are given to `take`; without it
    /// somebody else receives, and the wait may end early.
    fn wait_sendable(&self, until: u64, take: Option<&mut Take<'_>>) -> io::Result<()>;

    /// Where a frame can be put together, if it can be where it is sent from. Only one who may send puts anything there.
    fn space(&self) -> Option<Space<'_>> {
        None
    }

    /// Ends the connection.
    fn close(&self);
}

/// Connects. Over the fabric and VIs, the identity tells a server which client it is that comes again.
pub(crate) fn connect(address: &Address, identity: u64, wishes: Wishes) -> Result<Box<dyn Transport>, Error> {
    let Wishes { max_message, timeout, .. } = wishes;
    let failed = |source| Error::Setup { what: "connect to", address: address.to_string(), source };
    match address {
        Address::Tcp(host) => stream::tcp(host, max_message, timeout).map_err(failed),
        Address::Unix(path) => stream::unix(path, max_message).map_err(failed),
        Address::Udp(host) => datagram::connect(host).map_err(failed),
        Address::Rdma(host) => rdma::connect(host, wishes).map_err(failed),
        Address::Fabric(name) => channel::connect(name, identity, max_message, timeout).map_err(failed),
        Address::Vi(_) | Address::ViIwarp(_) => via::connect(address, identity, max_message, timeout).map_err(failed),
    }
}

/// The time after so long.
#[inline]
pub(crate) fn after(duration: Duration) -> u64 {
    clock::now().saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// How long it is to a time.
pub(crate) fn left(until: u64) -> Duration {
    Duration::from_nanos(until.saturating_sub(clock::now()))
}

/// Waits for events of a descriptor: those that came, none if the time came first.
fn wait(fd: BorrowedFd<'_>, events: PollFlags, until: u64) -> io::Result<PollFlags> {
    loop {
        // Rounded up, so that nobody spins through the last millisecond.
        let millis = until.saturating_sub(clock::now()).div_ceil(1_000_000).min(i32::MAX as u64) as i32;
        let mut fds = [PollFd::new(fd.as_fd(), events)];
        match poll(&mut fds, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)) {
            Ok(0) if clock::now() >= until => return Ok(PollFlags::empty()),
            Ok(0) | Err(nix::errno::Errno::EINTR) => {}
            Ok(_) => return Ok(fds[0].revents().unwrap_or(PollFlags::all())),
            Err(error) => return Err(error.into()),
        }
    }
}
