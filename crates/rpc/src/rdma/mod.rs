//! RPC over RDMA (RFC 8166) on iWARP: what the two sides have in common.
//!
//! ```text
//! client                                                         server
//!   | -- send: header, call inline (or a chunk with all of it) ---> |
//!   | <-- RDMA reads of the read chunks --------------------------- |
//!   | <-- RDMA writes to the write chunks or the reply chunk ------ |
//!   | <-- send: header with credits, reply inline (or nothing) ---- |
//! ```

mod binding;
mod input;
mod line;

pub use binding::Binding;
pub(crate) use binding::{assemble, bulk_at, insert};
pub(crate) use line::{Line, Message, Received};

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;
use sidestep_iwarp::{Config, Event};
use sidestep_wire::rpcrdma::private;

/// How many calls a client may have outstanding on one connection, and as many receive buffers each side has.
pub(crate) const CREDITS: usize = 32;

/// The longest message that is taken inline unless an option says otherwise, as long as Linux's: calls and replies without
/// bulk data fit.
pub(crate) const INLINE: usize = 4096;

/// What can be said of such a length: KiB, at most 256 of them.
pub(crate) fn inline_size(wanted: usize) -> usize {
    wanted.clamp(1 << 10, 256 << 10) & !0x3ff
}

/// What is kept of memory that was used for a message: 64 KiB and headers.
pub(crate) const KEPT: usize = 72 << 10;

/// The length of a header with one read segment, one write chunk of one segment and a reply chunk of one segment.
pub(crate) const HEADER: usize = 28 + 20 + 24 + 20;

/// What this end says about itself.
pub(crate) fn private_data(inline: usize) -> [u8; private::LEN] {
    private::Repr { remote_invalidation: false, send: inline, receive: inline }.emit()
}

/// The longest message that a peer takes inline, by its private data, if this end has said so much.
pub(crate) fn inline_limit(private_data: &[u8], own: usize) -> usize {
    private::Repr::parse(private_data).map_or(sidestep_wire::rpcrdma::INLINE, |peer| peer.receive.min(own))
}

/// The longest frame between two addresses. It is longer than a segment of TCP, for fewer headers and checksums: a receiver
/// finds frames wherever the stream is cut into segments.
const FRAME: usize = 16 << 10;

/// The longest frame from an address to itself: what a segment of the loopback interface carries, in whole words.
const FRAME_OF_LOOPBACK: usize = 65480;

pub(crate) fn config(setup_timeout: Duration, socket: &TcpStream) -> Config {
    Config {
        segment_size: if has_one_address(socket) { FRAME_OF_LOOPBACK } else { FRAME },
        setup_timeout,
        nudge: Some(Duration::from_millis(50)),
        ..Config::default()
    }
}

/// Whether both ends of a stream have the same address: then it does not leave the host. It may stay there, too, if they have two
/// addresses of the host; that costs speed and nothing else, as it would if two hosts had one address.
fn has_one_address(socket: &TcpStream) -> bool {
    matches!((socket.local_addr(), socket.peer_addr()), (Ok(here), Ok(there)) if here.ip() == there.ip())
}

/// Why a connection ended, in words.
pub(crate) fn ended(event: &Event) -> io::Error {
    let words = match event {
        Event::Rejected { .. } => "the peer refused the connection".to_owned(),
        Event::FallBack { revision } => format!("the peer speaks revision {} of MPA only", revision.number()),
        Event::SetupFailed(failure) => failure.to_string(),
        Event::PeerTerminated(terminate) => format!("the peer ended the connection: {terminate}"),
        Event::Failed(fault) => format!("the peer broke the protocol: {fault}"),
        _ => return io::ErrorKind::ConnectionReset.into(),
    };
    io::Error::new(io::ErrorKind::ConnectionReset, words)
}

/// Waits for the socket of a line, the bell, the line's own timer, or a time. The bell is silent afterwards.
pub(crate) fn wait(
    socket: &impl AsFd,
    (events, timer): (PollFlags, Option<Instant>),
    bell: &EventFd,
    until: Option<Instant>,
) -> io::Result<()> {
    let until = [timer, until].into_iter().flatten().min();
    let millis = until.map(|until| {
        let left = until.saturating_duration_since(Instant::now());
        left.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32
    });
    let timeout = millis.map_or(PollTimeout::NONE, |millis| PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX));
    let mut fds = [PollFd::new(socket.as_fd(), events), PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, timeout) {
        Ok(_) => {
            if fds[1].any() == Some(true) {
                let _ = bell.read();
            }
            Ok(())
        }
        Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn protocol(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests;
