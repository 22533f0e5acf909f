//! How the two ends of a TCP connection find each other on the fabric, without a byte on the connection.
//!
//! ```text
//!   one end waits                                  the other asks
//!   listens under the cookie of its socket         learns that cookie from the kernel, by the addresses (sock_diag)
//!                               ◀── connects ───   looks who listens there: does that process hold that socket?
//!   looks who connects: does that process          (as /proc/PID/fd says)
//!   hold the other end?         ─── accepts ──▶
//! ```
//!
//! Which end asks follows from the addresses, so that both need not agree first. A name on the fabric can be taken by any
//! process of the user: so each end lets the kernel say which process it speaks with (the credentials of the lifeline), which
//! socket is at the other end of the connection (`sock_diag` gives the number of its file), and whether the one has the
//! other open. Nothing is written to either socket, and none of its options is changed.

use std::{
    cell::Cell,
    os::fd::{AsRawFd, BorrowedFd},
    time::Duration,
};

use rustix::fs::{CWD, Dir, Mode, OFlags, openat, readlinkat};
use sidestep_fabric::{
    self as fabric, ChannelOptions, Endpoint, Node, PeerId, Request,
    channel::{Half, Joining},
    queue::{Kind, QueueSpec, Receiver, Sender},
};
use sidestep_shm as shm;
use sidestep_sockets::kernel::{self, Errno, address::Key, diag::Diag};
use sidestep_sys::clock;
use sidestep_wire::cursor::little::{Reader, Writer};

use crate::error::{Error, Result};

/// Two ends that have met.
#[derive(Debug)]
pub(crate) struct Met {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// Dropped last: the close it sends promises that nothing is written after.
    pub(crate) endpoint: Endpoint,
}

/// Says which protocol, and which version of it.
const PROTOCOL: u64 = u64::from_le_bytes(*b"ssext\0\0\x01");
/// The ring for messages and notices of each direction.
const RING: usize = 64 << 10;
/// Between two looks whether the other end is there: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// How long a connection may be on its way into the other end's tables before that end counts as one of another host.
const GRACE_NS: u64 = 200_000_000;

/// Both ends of the connection, as seen from one of them.
struct Connection {
    key: Key,
    diag: Diag,
    cookie: u64,
    /// When the other end was last seen, or first looked for.
    seen: Cell<u64>,
}

/// A socket at the other end, by its cookie and the number of its file.
#[derive(Debug, Clone, Copy)]
struct OtherEnd {
    cookie: u64,
    inode: u32,
}

/// Meets the other end of a connection; waits for it until the deadline.
pub(crate) fn meet(node: &Node, socket: BorrowedFd<'_>, deadline: u64) -> Result<Met> {
    let connection = Connection::of(socket.as_raw_fd())?;
    let half_met =
        if connection.key.asks() { connection.ask(node, deadline)? } else { connection.answer(node, deadline)? };
    half_met.join(deadline)
}

/// An accepted connection whose rings are not open yet.
struct HalfMet {
    endpoint: Endpoint,
    half: Half,
    theirs: QueueSpec,
}

impl HalfMet {
    fn join(self, deadline: u64) -> Result<Met> {
        let HalfMet { endpoint, half, theirs } = self;
        let joining = Joining::begin(&endpoint, &theirs)?;
        joining.wait(Some(deadline)).map_err(unanswered)?;
        let (sender, receiver) = half.finish(&endpoint, &joining)?;
        endpoint.own(half);
        Ok(Met { sender, receiver, endpoint })
    }
}

impl Connection {
    fn of(fd: i32) -> Result<Connection> {
        let not_connected = |Errno(errno)| Error::NotConnected { fd, errno };
        let key = Key::of(fd).map_err(not_connected)?;
        if !kernel::is_tcp(fd) {
            return Err(not_connected(Errno(libc::EPROTONOSUPPORT)));
        }
        let cookie = kernel::cookie(fd).map_err(not_connected)?;
        let diag = Diag::open().filter(|diag| diag.covers(&key)).ok_or(Error::Elsewhere)?;
        Ok(Connection { key, diag, cookie, seen: Cell::new(clock::now()) })
    }

    /// The socket at the other end. `None`: its process has not accepted it, or it is not here, which after a while is an error.
    fn other_end(&self) -> Result<Option<OtherEnd>> {
        let now = clock::now();
        match self.diag.identity(&self.key.reversed()) {
            Some((cookie, inode)) => {
                self.seen.set(now);
                // A socket that was not accepted has no file.
                Ok(Some(OtherEnd { cookie, inode }).filter(|_| inode != 0))
            }
            None if now - self.seen.get() < GRACE_NS => Ok(None),
            None => Err(Error::Elsewhere),
        }
    }

    /// Whether a peer's process holds the other end.
    fn is_held_by(&self, node: &Node, peer: PeerId) -> Result<()> {
        let held = self.other_end()?.zip(node.peer(peer).process());
        if held.is_some_and(|(end, process)| holds(process, end.inode)) { Ok(()) } else { Err(Error::Unproven) }
    }

    fn ask(&self, node: &Node, deadline: u64) -> Result<HalfMet> {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(end) = self.other_end()? {
                match self.ask_once(node, end.cookie, deadline) {
                    Err(Error::Fabric(error)) if may_come_yet(&error) => {}
                    outcome => return outcome,
                }
            }
            if clock::now() >= deadline {
                return Err(Error::Unanswered);
            }
            node.progress_kernel();
            std::thread::sleep(pause);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    fn ask_once(&self, node: &Node, cookie: u64, deadline: u64) -> Result<HalfMet> {
        let (mut own, mut proven) = (None, Ok(()));
        let started = node.begin_connect_with(&name(cookie), |peer| {
            proven = self.is_held_by(node, peer);
            if proven.is_err() {
                node.peer(peer).close(fabric::CloseReason::Here);
                return Err(fabric::Error::Unsupported("a peer that does not hold the other end"));
            }
            let half = Half::new(node, peer, options())?;
            let hello = words(&self.key, &half.spec());
            own = Some(half);
            Ok(hello)
        });
        proven?;
        let (endpoint, half) = (started?, own.ok_or(Error::Unproven)?);
        endpoint.wait_connected(Some(deadline)).map_err(|error| match error {
            fabric::Error::Refused { private } if private == UNPROVEN => Error::Unproven,
            fabric::Error::Refused { private } if private == VERSION => Error::Version,
            error => unanswered(error),
        })?;
        let (_, theirs) = read_words(&endpoint.private()).ok_or(Error::Version)?;
        Ok(HalfMet { endpoint, half, theirs })
    }

    fn answer(&self, node: &Node, deadline: u64) -> Result<HalfMet> {
        let listener = node.listen(&name(self.cookie)).map_err(|error| match error {
            fabric::Error::Memory(shm::Error::NameTaken(_)) => Error::Taken,
            error => error.into(),
        })?;
        loop {
            // In slices: an end that goes away meanwhile is told of by nobody.
            let slice = deadline.min(clock::now() + LOOK_NS);
            match listener.wait(Some(slice)) {
                Ok(request) => {
                    if let Some(half_met) = self.answer_one(node, request)? {
                        return Ok(half_met);
                    }
                }
                Err(fabric::Error::TimedOut(_)) if slice < deadline => {}
                Err(error) => return Err(unanswered(error)),
            }
            self.other_end()?;
        }
    }

    /// Answers a request; `None` if it was refused.
    fn answer_one(&self, node: &Node, request: Request) -> Result<Option<HalfMet>> {
        let Some((key, theirs)) = read_words(request.private()) else {
            request.refuse(VERSION)?;
            return Ok(None);
        };
        let proven = request.peer().is_some_and(|peer| self.is_held_by(node, peer).is_ok());
        if !proven || key != self.key.reversed() {
            request.refuse(UNPROVEN)?;
            return Ok(None);
        }
        let mut own = None;
        let endpoint = request.accept_with(|endpoint| {
            let half = Half::new(node, endpoint.peer(), options())?;
            let answer = words(&self.key, &half.spec());
            own = Some(half);
            Ok(answer)
        })?;
        Ok(own.map(|half| HalfMet { endpoint, half, theirs }))
    }
}

/// How often the end that waits looks whether the connection still stands.
const LOOK_NS: u64 = 20_000_000;
const UNPROVEN: &[u8] = b"unproven";
const VERSION: &[u8] = b"version";

fn name(cookie: u64) -> String {
    format!("shm:extended-{cookie:016x}")
}

fn options() -> ChannelOptions {
    ChannelOptions { capacity: RING, kind: Kind::Stream }
}

/// Whether the other end may only not have got so far.
fn may_come_yet(error: &fabric::Error) -> bool {
    let missing = matches!(error, fabric::Error::Memory(shm::Error::NobodyListens(_)));
    // It may also have given up just now, and enable its socket again later.
    missing
        || matches!(error, fabric::Error::NobodyListens(_) | fabric::Error::Refused { .. } | fabric::Error::Closed(_))
}

fn unanswered(error: fabric::Error) -> Error {
    match error {
        fabric::Error::TimedOut(_) => Error::Unanswered,
        error => error.into(),
    }
}

/// Whether a process has a socket open, by the number of the socket's file.
fn holds(process: u32, inode: u32) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = openat(CWD, format!("/proc/{process}/fd"), flags, Mode::empty()) else { return false };
    let Ok(entries) = Dir::read_from(&folder) else { return false };
    let wanted = format!("socket:[{inode}]");
    entries.flatten().any(|entry| {
        readlinkat(&folder, entry.file_name(), Vec::new()).is_ok_and(|target| target.to_bytes() == wanted.as_bytes())
    })
}

/// What each end says: the protocol, which connection, and where its ring is.
fn words(key: &Key, spec: &QueueSpec) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    writer.u64(PROTOCOL);
    for word in key.to_words() {
        writer.u64(word);
    }
    writer.bytes(&spec.to_bytes());
    bytes
}

fn read_words(bytes: &[u8]) -> Option<(Key, QueueSpec)> {
    let mut fields = Reader::new(bytes);
    if fields.u64().ok()? != PROTOCOL {
        return None;
    }
    let mut key = [0; 6];
    for word in &mut key {
        *word = fields.u64().ok()?;
    }
    let spec = QueueSpec::from_bytes(fields.rest()).ok().filter(|spec| spec.kind == Kind::Stream)?;
    Some((Key::from_words(key), spec))
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, os::fd::AsFd};

    use super::*;

    #[test]
    fn a_process_holds_what_it_has_open() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = rustix::fs::fstat(listener.as_fd()).unwrap().st_ino as u32;
        assert!(holds(std::process::id(), inode));
        assert!(!holds(1, inode));
        assert!(!holds(u32::MAX, inode));
        drop(listener);
        assert!(!holds(std::process::id(), inode));
    }

    #[test]
    fn any_bytes_are_words_or_not() {
        for len in 0..200 {
            for fill in [0, 1, 0xff] {
                assert!(read_words(&vec![fill; len]).is_none());
            }
        }
    }
}
