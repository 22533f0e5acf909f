//! How the measuring process and its worker talk about the measurement: one JSON message per
//! packet of a UNIX socket pair, with descriptors attached where needed.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::exercise::{Run, Seen};
use super::path::Wait;

/// What the worker is told.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Attach to a path; the descriptors come with the packet. Ends are numbered in this order.
    Open {
        /// The path's name.
        path: String,
        /// How its ends wait.
        wait: Wait,
        /// What the path has to say to itself.
        note: String,
    },
    /// Take part in a measurement.
    Run {
        /// The number of the end.
        end: usize,
        /// The measurement.
        run: Run,
    },
}

/// What the worker says. After `Failed` it ends.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The path is open.
    Opened,
    /// The measurement is done.
    Done(Seen),
    /// Something went wrong.
    Failed(String),
}

/// One end of the conversation.
pub struct Control {
    socket: Rc<OwnedFd>,
}

impl Control {
    /// A conversation, and the descriptor that is the other end of it.
    pub fn pair() -> Result<(Control, OwnedFd)> {
        let (here, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .context("cannot make a control socket")?;
        Ok((Control::new(here), there))
    }

    /// The conversation over this socket.
    pub fn new(socket: OwnedFd) -> Control {
        Control { socket: Rc::new(socket) }
    }

    /// The other process, as a waiting end knows it.
    pub fn peer(&self) -> Peer {
        Peer { socket: Rc::clone(&self.socket) }
    }

    /// Says something, with descriptors.
    pub fn send(&mut self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !attached.push(SendAncillaryMessage::ScmRights(descriptors)) {
            bail!("at most {DESCRIPTORS} descriptors can be offered to a worker");
        }
        let parts = [IoSlice::new(&bytes)];
        sendmsg(&*self.socket, &parts, &mut attached, SendFlags::NOSIGNAL)
            .context("the other process of the measurement cannot be reached")?;
        Ok(())
    }

    /// Waits for what the other says. `None` when it has ended.
    pub fn receive<M: DeserializeOwned>(&mut self) -> Result<Option<(M, Vec<OwnedFd>)>> {
        let mut bytes = vec![0; PACKET_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut attached = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = match recvmsg(&*self.socket, &mut parts, &mut attached, flags) {
            Ok(received) => received.bytes,
            Err(rustix::io::Errno::CONNRESET) => 0,
            Err(error) => return Err(error).context("the control socket failed"),
        };
        if received == 0 {
            return Ok(None);
        }
        let mut descriptors = Vec::new();
        for message in attached.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        let message = serde_json::from_slice(&bytes[..received])
            .context("the other process of the measurement says something unknown")?;
        Ok(Some((message, descriptors)))
    }
}

/// The other process, as a waiting end knows it: alive or not.
#[derive(Clone)]
pub struct Peer {
    socket: Rc<OwnedFd>,
}

impl Peer {
    /// Begins to wait for the peer without sleeping.
    #[inline]
    pub fn spin(&self) -> Spin<'_> {
        Spin { peer: self, turns: 0 }
    }

    /// An error if the peer has ended.
    #[cold]
    pub fn check(&self) -> Result<()> {
        if self.ends_within(Duration::ZERO)? {
            bail!("the other process of the measurement has ended");
        }
        Ok(())
    }

    /// Whether the peer has ended, or does so within this time.
    pub fn ends_within(&self, time: Duration) -> Result<bool> {
        let mut sets = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::empty())];
        let time = Timespec::try_from(time).context("no such time")?;
        poll(&mut sets, Some(&time)).context("poll failed")?;
        Ok(sets[0].revents().contains(PollFlags::HUP))
    }
}

impl AsFd for Peer {
    /// A descriptor that hangs up when the peer ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A wait that does not sleep. Sees the death of the peer within some milliseconds.
pub struct Spin<'a> {
    peer: &'a Peer,
    turns: u32,
}

impl Spin<'_> {
    /// To be called after each look that found nothing.
    #[inline]
    pub fn turn(&mut self) -> Result<()> {
        std::hint::spin_loop();
        self.count(TURNS_PER_CHECK)
    }

    /// The same, and gives the core away.
    #[inline]
    pub fn turn_yielding(&mut self) -> Result<()> {
        std::thread::yield_now();
        self.count(YIELDS_PER_CHECK)
    }

    #[inline]
    fn count(&mut self, per_check: u32) -> Result<()> {
        self.turns = self.turns.wrapping_add(1);
        if self.turns % per_check == 0 { self.peer.check() } else { Ok(()) }
    }
}

const DESCRIPTORS: usize = 16;
const PACKET_BYTES: usize = 128 << 10;
const TURNS_PER_CHECK: u32 = 1 << 16;
const YIELDS_PER_CHECK: u32 = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_arrive_with_their_descriptors_and_the_end_is_seen() {
        let (mut here, there) = Control::pair().unwrap();
        let mut there = Control::new(there);
        let (read, _write) = rustix::pipe::pipe().unwrap();
        let order = Order::Open { path: "tcp".into(), wait: Wait::Spin, note: "7".into() };
        here.send(&order, &[read.as_fd()]).unwrap();
        let (order, descriptors) = there.receive::<Order>().unwrap().unwrap();
        assert!(matches!(order, Order::Open { path, note, .. } if path == "tcp" && note == "7"));
        assert_eq!(descriptors.len(), 1);

        assert!(here.peer().check().is_ok());
        drop(there);
        assert!(here.peer().check().is_err());
        assert!(here.receive::<Answer>().unwrap().is_none());
        let peer = here.peer();
        let mut spin = peer.spin();
        while spin.turn().is_ok() {}
    }
}
