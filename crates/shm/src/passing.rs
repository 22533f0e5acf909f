//! The lifeline between two processes: a UNIX socket that carries small messages and descriptors, and
//! whose end says that the other process is gone, also after SIGKILL.
//!
//! `SOCK_SEQPACKET`, because one send is one message: there is no framing to get wrong, and descriptors
//! stay with the message they came with. Meeting by name uses the *abstract* namespace: a dead process
//! leaves nothing behind. Abstract names have no permissions, so the effective user id is a part of the
//! name, unless that begins with [`COMMON`]. Whom to speak with is decided in [`Lifeline::connect`] by who
//! listens, and in [`Rendezvous::accept`] by who has connected.
//!
//! # What strangers can send
//!
//! Whoever knows a name can connect to it, and send before anybody has looked who it is. What must not happen is that this
//! process ever closes a descriptor of a stranger's, since that can wait ([`sidestep_sys::discard`]); and the kernel closes those
//! that lie in the queue of a socket in whichever thread closes the socket, or receives the message without room for
//! them. So a listening socket takes no descriptors (`SO_PASSRIGHTS`, Linux 6.16), and an accepted one takes them once it
//! is known who is there; the accepting side speaks first. On older kernels a stranger's socket is discarded unread.
//!
//! # Who speaks on a lifeline
//!
//! Who connects has bound its end to a name with a random number, the *caller* number. The kernel gives one name to one
//! socket, and tells it to both sides: so the number names this lifeline and no other, for as long as it lives.
//!
//! # Invariants
//!
//! - R1. The `ucred` passed to the kernel is a plain C struct of integers: every bit pattern is a value.

#![allow(unsafe_code)]

use std::io::{IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::{Error, Result};
use sidestep_sys::{descriptor::keep, discard::discard};

/// One end of a lifeline. Never blocks.
#[derive(Debug)]
pub struct Lifeline {
    /// Taken when the lifeline is dropped.
    socket: Option<OwnedFd>,
    caller: Option<u64>,
    /// Whether descriptors that this side has not received may lie in the queue, of somebody it does not trust.
    wary: AtomicBool,
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

/// What [`Rendezvous::accept`] found.
#[derive(Debug)]
pub enum Accepted {
    /// A process that is welcome.
    Peer(Lifeline),
    /// A process that is not: it was turned away.
    Refused,
    /// Nobody.
    Nobody,
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
        Ok((Lifeline::from_fd(a), Lifeline::from_fd(b)))
    }

    /// Connects to the process that listens under `name`, if that is welcome.
    ///
    /// A listener whose queue is full gives [`Error::System`] with `EAGAIN`: try again later.
    pub fn connect(name: &str, is_welcome: impl FnOnce(&Credentials) -> bool) -> Result<Lifeline> {
        let address = address(name)?;
        let mut lifeline = Lifeline::from_fd(socket()?);
        lifeline.caller = Some(bind_caller(lifeline.as_fd())?);
        loop {
            match rustix::net::connect(&lifeline, &address) {
                // Before, nobody can have put anything into it: it is closed at once.
                Ok(()) => break *lifeline.wary.get_mut() = true,
                Err(Errno::INTR) => {}
                Err(Errno::CONNREFUSED) => return Err(Error::NobodyListens(name.to_owned())),
                // The name is bound by a socket of another type, so not by this stack.
                Err(Errno::PROTOTYPE) => return Err(Error::Peer(NOT_A_RENDEZVOUS)),
                Err(errno) => return Err(Error::from_errno("connect a lifeline", errno)),
            }
        }
        if !is_welcome(&lifeline.peer()?) {
            return Err(Error::Peer(
                "the process that listens under this name belongs to a user with whom nothing is shared",
            ));
        }
        Ok(lifeline)
    }

    /// Takes over a descriptor that is one end of a lifeline, for example one received over another.
    pub fn from_fd(socket: OwnedFd) -> Lifeline {
        Lifeline { socket: Some(socket), caller: None, wary: AtomicBool::new(false) }
    }

    /// The number of who connected, if it has given itself one: this lifeline is the only one that has it.
    pub fn caller(&self) -> Option<u64> {
        self.caller
    }

    /// Gives the descriptor away.
    pub fn into_fd(mut self) -> OwnedFd {
        self.socket.take().expect(TAKEN_LATER)
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
            return match rustix::net::sendmsg(self, parts, &mut control, flags) {
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
    /// [`Error::Peer`]; the descriptors of a message that is not returned are discarded.
    pub fn receive(&self, buffer: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> Result<Received> {
        if buffer.is_empty() {
            return Err(Error::Size { what: "the length of a receive buffer", must: "at least 1", value: 0 });
        }
        // Room for all that a message can carry: what does not fit is closed by the kernel, in this thread.
        let mut space = [MaybeUninit::uninit(); RECEIVE_SPACE];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let mut reset = false;
        let message = loop {
            match rustix::net::recvmsg(self, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
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
        let before = descriptors.len();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = part {
                descriptors.extend(received.map(keep));
            }
        }
        let count = descriptors.len() - before;
        let outcome = if message.bytes == 0 && count == 0 && message.address.is_none() {
            // Whoever has a name sends it with every message: this is the end, and nothing lies behind it.
            if self.caller.is_some() {
                self.wary.store(false, Ordering::Relaxed);
            }
            return Ok(Received::Closed);
        } else if message.bytes == 0 {
            Err(Error::Peer("a message on the lifeline is empty"))
        } else if message.flags.contains(ReturnFlags::TRUNC) {
            Err(Error::Peer("a message on the lifeline is longer than any message may be"))
        } else if count > MAX_DESCRIPTORS {
            Err(Error::Peer("a message on the lifeline carries too many descriptors"))
        } else if message.flags.contains(ReturnFlags::CTRUNC) {
            // There was room for all. If fewer came, the kernel could not install the next one.
            Ok(Received::Stripped(message.bytes))
        } else {
            return Ok(Received::Message(message.bytes));
        };
        discard(descriptors.drain(before..));
        outcome
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
                self.as_fd().as_raw_fd(),
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
        self.socket.as_ref().expect(TAKEN_LATER).as_fd()
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        if *self.wary.get_mut() {
            discard(self.socket.take());
        }
    }
}

/// A name under which other processes can get a lifeline to this one. Never blocks.
#[derive(Debug)]
pub struct Rendezvous {
    socket: OwnedFd,
    /// Whether the kernel keeps descriptors out until they are let in.
    guarded: bool,
}

impl Rendezvous {
    /// Listens under `name`. The name is free again when this value and its copies in forked processes
    /// are gone.
    pub fn listen(name: &str) -> Result<Rendezvous> {
        let address = address(name)?;
        let socket = socket()?;
        let guarded = pass_rights(socket.as_fd(), false);
        match rustix::net::bind(&socket, &address) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => return Err(Error::NameTaken(name.to_owned())),
            Err(errno) => return Err(Error::from_errno("bind a rendezvous to its name", errno)),
        }
        rustix::net::listen(&socket, BACKLOG).map_err(|errno| Error::from_errno("listen at a rendezvous", errno))?;
        Ok(Rendezvous { socket, guarded })
    }

    /// The next process that connected, if there is one and it is welcome. From one that is not, nothing is received.
    pub fn accept(&self, is_welcome: impl FnOnce(&Credentials) -> bool) -> Result<Accepted> {
        let socket = loop {
            match rustix::net::accept_with(&self.socket, FLAGS) {
                Ok(socket) => break keep(socket),
                Err(Errno::AGAIN) => return Ok(Accepted::Nobody),
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(errno) => return Err(Error::from_errno("accept a lifeline", errno)),
            }
        };
        let mut lifeline = Lifeline::from_fd(socket);
        // Descriptors may lie in its queue, unless the kernel has kept them out.
        lifeline.wary = AtomicBool::new(!self.guarded);
        if !lifeline.peer().is_ok_and(|peer| is_welcome(&peer)) || self.guarded && !pass_rights(lifeline.as_fd(), true)
        {
            return Ok(Accepted::Refused);
        }
        lifeline.wary = AtomicBool::new(true);
        lifeline.caller = caller_at_other_end(lifeline.as_fd());
        Ok(Accepted::Peer(lifeline))
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

/// Whether descriptors are let through to a socket. `false`: this kernel does not know how to keep them out.
fn pass_rights(socket: BorrowedFd<'_>, pass: bool) -> bool {
    let value = i32::from(pass);
    // Not rustix, which does not know the option; not `libc::setsockopt`: the preload library exports that.
    // SAFETY: `value` outlives the call, and its length is given.
    let outcome = unsafe {
        let (fd, len) = (socket.as_raw_fd(), size_of::<i32>());
        libc::syscall(libc::SYS_setsockopt, fd, libc::SOL_SOCKET, SO_PASSRIGHTS, &raw const value, len)
    };
    outcome == 0
}

/// Binds a socket that is about to connect to a name of its own.
fn bind_caller(socket: BorrowedFd<'_>) -> Result<u64> {
    loop {
        let mut bytes = [0; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| Error::from_errno("make a lifeline", errno))?;
        let number = u64::from_ne_bytes(bytes) & MAX_NUMBER;
        let name = SocketAddrUnix::new_abstract_name(caller_name(number).as_bytes());
        match name.and_then(|name| rustix::net::bind(socket, &name)) {
            Ok(()) => return Ok(number),
            Err(Errno::ADDRINUSE) => {}
            Err(errno) => return Err(Error::from_errno("name a lifeline", errno)),
        }
    }
}

fn caller_at_other_end(socket: BorrowedFd<'_>) -> Option<u64> {
    let address = SocketAddrUnix::try_from(rustix::net::getpeername(socket).ok()??).ok()?;
    let name = std::str::from_utf8(address.abstract_name()?).ok()?;
    let number = u64::from_str_radix(name.strip_prefix(CALLER)?, 16).ok()?;
    // One way of writing a number, since names that differ are given to different sockets.
    (number <= MAX_NUMBER && caller_name(number) == name).then_some(number)
}

fn caller_name(number: u64) -> String {
    format!("{CALLER}{number:016x}")
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn address(name: &str) -> Result<SocketAddrUnix> {
    if name.is_empty() {
        return Err(Error::Size { what: "the length of a name", must: "at least 1", value: 0 });
    }
    let full = match name.starts_with(COMMON) {
        true => format!("sidestep-fabric/{name}"),
        false => format!("sidestep-fabric/{}/{name}", own_uid()),
    };
    SocketAddrUnix::new_abstract_name(full.as_bytes()).map_err(|_| Error::Size {
        what: "the length of a name",
        must: "at most 107 bytes with the prefix sidestep-fabric/<uid>/",
        value: full.len(),
    })
}

/// The most descriptors one message carries.
pub const MAX_DESCRIPTORS: usize = 8;

/// What names begin with that mean the same to all users.
pub const COMMON: &str = "any/";

/// The largest number of a caller.
pub const MAX_NUMBER: u64 = (1 << 61) - 1;

const CALLER: &str = "sidestep-caller/";
const SO_PASSRIGHTS: i32 = 83;
const CONTROL_SPACE: usize = rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS));
/// The most descriptors that the kernel lets a message carry.
const SCM_MAX_FD: usize = 253;
const RECEIVE_SPACE: usize = rustix::cmsg_space!(ScmRights(SCM_MAX_FD));
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
const BACKLOG: i32 = 1024;
const TAKEN_LATER: &str = "a socket for as long as the lifeline lives";
const NOT_A_RENDEZVOUS: &str = "what listens under this name is no rendezvous";

#[cfg(all(test, not(miri), not(loom)))]
mod tests;
