//! The lifeline between two processes: a UNIX socket that carries small messages and descriptors, and
//! whose end says that the other process is gone, also after SIGKILL.
//!
//! `SOCK_SEQPACKET`, because one send is one message: there is no framing to get wrong, and descriptors
//! stay with the message they came with. Meeting by name uses the *abstract* namespace: a dead process
//! leaves nothing behind. Abstract names have no permissions, so the effective user id is a part of the
//! name and [`Lifeline::connect`] refuses a listener of another user. Whom to serve is for the caller of
//! [`Rendezvous::accept`] to decide, by [`Lifeline::peer`].
//!
//! # Invariants
//!
//! - R1. The `ucred` passed to the kernel is a plain C struct of integers: every bit pattern is a value.

#![allow(unsafe_code)]

use std::io::{IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::{Error, Result, descriptor::keep};

/// One end of a lifeline. Never blocks.
#[derive(Debug)]
pub struct Lifeline {
    socket: OwnedFd,
}

/// What [`Lifeline::receive`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A message of this many bytes.
    Message(usize),
    /// A message of this many bytes, whose descriptors this process had no room for (its limit of open descriptors).
    Stripped(usize),
    /// Nothing now.
    Empty,
    /// The other end is gone, and all it sent has been received.
    Closed,
}

/// Who made the other end, as the kernel saw it at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    /// Process id, or 0 when the process has none in this process's namespace.
    pub pid: u32,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

impl Lifeline {
    /// Two connected ends.
    pub fn pair() -> Result<(Lifeline, Lifeline)> {
        let (a, b) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)
            .map_err(|errno| Error::from_errno("make a lifeline", errno))?;
        Ok((Lifeline { socket: a }, Lifeline { socket: b }))
    }

    /// Connects to the process of this user that listens under `name`.
    ///
    /// A listener whose queue is full gives [`Error::System`] with `EAGAIN`: try again later.
    pub fn connect(name: &str) -> Result<Lifeline> {
        let address = address(name)?;
        let lifeline = Lifeline { socket: socket()? };
        loop {
            match rustix::net::connect(&lifeline.socket, &address) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(Errno::CONNREFUSED) => return Err(Error::NobodyListens(name.to_owned())),
                // The name is bound by a socket of another type, so not by this stack.
                Err(Errno::PROTOTYPE) => return Err(Error::Peer(NOT_A_RENDEZVOUS)),
                Err(errno) => return Err(Error::from_errno("connect a lifeline", errno)),
            }
        }
        if lifeline.peer()?.uid != own_uid() {
            return Err(Error::Peer("the process that listens under this name belongs to another user"));
        }
        Ok(lifeline)
    }

    /// Takes over a descriptor that is one end of a lifeline, for example one received over another.
    pub fn from_fd(socket: OwnedFd) -> Lifeline {
        Lifeline { socket }
    }

    /// Gives the descriptor away.
    pub fn into_fd(self) -> OwnedFd {
        self.socket
    }

    /// Sends one message with at most [`MAX_DESCRIPTORS`] descriptors. `false`: there is no room now.
    ///
    /// An empty message is refused, because the receiver could not tell it from the end. A peer that is
    /// gone is [`Error::System`] with `EPIPE` or `ECONNRESET`.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<bool> {
        self.send_parts(&[IoSlice::new(bytes)], descriptors)
    }

    /// [`send`](Self::send) of one message that lies in several pieces.
    pub fn send_parts(&self, parts: &[IoSlice<'_>], descriptors: &[BorrowedFd<'_>]) -> Result<bool> {
        if parts.iter().all(|part| part.is_empty()) {
            return Err(Error::Size { what: "the length of a message", must: "at least 1", value: 0 });
        }
        if descriptors.len() > MAX_DESCRIPTORS {
            return Err(Error::Size {
                what: "the number of descriptors of a message",
                must: "at most 8",
                value: descriptors.len(),
            });
        }
        let mut space = [MaybeUninit::uninit(); CONTROL_SPACE];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            // Cannot happen: the space is made for the number checked above.
            return Err(Error::from_errno("send over a lifeline", Errno::INVAL));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            return match rustix::net::sendmsg(&self.socket, parts, &mut control, flags) {
                Ok(_) => Ok(true),
                Err(Errno::AGAIN) => Ok(false),
                Err(Errno::INTR) => continue,
                Err(errno) => Err(Error::from_errno("send over a lifeline", errno)),
            };
        }
    }

    /// Receives one message into `buffer` and appends its descriptors (close-on-exec) to `descriptors`.
    ///
    /// A message that does not fit, or with more than [`MAX_DESCRIPTORS`] descriptors, is
    /// [`Error::Peer`]; the descriptors of a message that is not returned are closed.
    pub fn receive(&self, buffer: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> Result<Received> {
        if buffer.is_empty() {
            return Err(Error::Size { what: "the length of a receive buffer", must: "at least 1", value: 0 });
        }
        let mut space = [MaybeUninit::uninit(); CONTROL_SPACE];
        // Dropping it closes the descriptors that were not taken out.
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let mut reset = false;
        let message = loop {
            match rustix::net::recvmsg(&self.socket, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
                Ok(message) => break message,
                Err(Errno::AGAIN) => return Ok(Received::Empty),
                Err(Errno::INTR) => {}
                // A peer that closes with unread messages resets the connection, and the kernel reports
                // that once, ahead of what the peer had sent before: ask again for those.
                Err(Errno::CONNRESET) if !reset => reset = true,
                Err(Errno::CONNRESET) => return Ok(Received::Closed),
                Err(errno) => return Err(Error::from_errno("receive over a lifeline", errno)),
            }
        };
        if message.bytes == 0 {
            return Ok(Received::Closed);
        }
        let before = descriptors.len();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = part {
                descriptors.extend(received.map(keep));
            }
        }
        let count = descriptors.len() - before;
        let fault = if message.flags.contains(ReturnFlags::TRUNC) {
            Error::Peer("a message on the lifeline is longer than any message may be")
        } else if count > MAX_DESCRIPTORS {
            Error::Peer(TOO_MANY_DESCRIPTORS)
        } else if message.flags.contains(ReturnFlags::CTRUNC) {
            // There was room for MAX_DESCRIPTORS. If fewer came, the kernel could not install the next one.
            if count < MAX_DESCRIPTORS {
                descriptors.truncate(before);
                return Ok(Received::Stripped(message.bytes));
            }
            Error::Peer(TOO_MANY_DESCRIPTORS)
        } else {
            return Ok(Received::Message(message.bytes));
        };
        descriptors.truncate(before);
        Err(fault)
    }

    /// Who made the other end: the process that called [`pair`](Self::pair), [`connect`](Self::connect)
    /// or [`Rendezvous::listen`].
    pub fn peer(&self) -> Result<Credentials> {
        // Not rustix: its `Pid` cannot hold the 0 that stands for a process of another pid namespace.
        // Not `libc::getsockopt`: the preload library exports a function of that name.
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut len = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: R1; `len` is the size of `peer`, and both live until the call returns.
        let outcome = unsafe {
            libc::syscall(
                libc::SYS_getsockopt,
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                &raw mut peer,
                &raw mut len,
            )
        };
        if outcome < 0 {
            let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
            return Err(Error::from_errno("ask who is on the lifeline", Errno::from_raw_os_error(errno)));
        }
        Ok(Credentials { pid: u32::try_from(peer.pid).unwrap_or(0), uid: peer.uid, gid: peer.gid })
    }
}

impl AsFd for Lifeline {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A name under which other processes can get a lifeline to this one. Never blocks.
#[derive(Debug)]
pub struct Rendezvous {
    socket: OwnedFd,
}

impl Rendezvous {
    /// Listens under `name`. The name is free again when this value and its copies in forked processes
    /// are gone.
    pub fn listen(name: &str) -> Result<Rendezvous> {
        let address = address(name)?;
        let socket = socket()?;
        match rustix::net::bind(&socket, &address) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => return Err(Error::NameTaken(name.to_owned())),
            Err(errno) => return Err(Error::from_errno("bind a rendezvous to its name", errno)),
        }
        rustix::net::listen(&socket, BACKLOG).map_err(|errno| Error::from_errno("listen at a rendezvous", errno))?;
        Ok(Rendezvous { socket })
    }

    /// The next process that connected, if there is one.
    pub fn accept(&self) -> Result<Option<Lifeline>> {
        loop {
            return match rustix::net::accept_with(&self.socket, FLAGS) {
                Ok(socket) => Ok(Some(Lifeline { socket: keep(socket) })),
                Err(Errno::AGAIN) => Ok(None),
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(errno) => Err(Error::from_errno("accept a lifeline", errno)),
            };
        }
    }
}

impl AsFd for Rendezvous {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn socket() -> Result<OwnedFd> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)
        .map(keep)
        .map_err(|errno| Error::from_errno("make a lifeline", errno))
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn address(name: &str) -> Result<SocketAddrUnix> {
    if name.is_empty() {
        return Err(Error::Size { what: "the length of a name", must: "at least 1", value: 0 });
    }
    let full = format!("sidestep-fabric/{}/{name}", own_uid());
    SocketAddrUnix::new_abstract_name(full.as_bytes()).map_err(|_| Error::Size {
        what: "the length of a name",
        must: "at most 107 bytes with the prefix sidestep-fabric/<uid>/",
        value: full.len(),
    })
}

/// The most descriptors one message carries.
pub const MAX_DESCRIPTORS: usize = 8;

const CONTROL_SPACE: usize = rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS));
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
const BACKLOG: i32 = 1024;
const TOO_MANY_DESCRIPTORS: &str = "a message on the lifeline carries too many descriptors";
const NOT_A_RENDEZVOUS: &str = "what listens under this name is no rendezvous";

#[cfg(all(test, not(miri), not(loom)))]
mod tests;
