//! Two ends in one network namespace of one host: the kernel tells who holds the other end.
//!
//! ```text
//!   one end waits                                  the other asks
//!   listens under the cookie of its socket         learns that cookie from the kernel, by the addresses (sock_diag)
//!                               ◀── connects ───   looks who listens there: does that process hold that socket?
//!   looks who connects: does that process          (as /proc/PID/fd says)
//!   hold the other end?         ─── accepts ──▶
//! ```
//!
//! A name on the fabric can be taken by any process of the user: so each end lets the kernel say which process it speaks with
//! (the credentials of the lifeline), which socket is at the other end of the connection (`sock_diag` gives the number of
//! its file), and whether the one has the other open.

use std::{cell::Cell, time::Duration};

use rustix::{
    fs::{CWD, Dir, Mode, OFlags, openat, readlinkat},
    net::{AddressFamily, SocketFlags, SocketType, bind, socket_with},
};
use sidestep_fabric::{self as fabric, Endpoint, Listener, Node, PeerId};
use sidestep_shm as shm;
use sidestep_sockets::kernel::{self, Errno, address::Key, diag::Diag};
use sidestep_sys::{clock, descriptor};

use super::{Hello, Place};
use crate::error::{Error, Result};

/// Both ends of the connection, as seen from one of them.
pub(super) struct OneHost {
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

/// How long a connection may be on its way into the other end's tables before that end counts as one of another host.
const GRACE_NS: u64 = 200_000_000;
const PAUSE: Duration = Duration::from_millis(1);

impl OneHost {
    /// The connection with this key, if its other end is in this network namespace.
    pub(super) fn find(fd: i32, key: Key) -> Result<Option<OneHost>> {
        let cookie = kernel::cookie(fd).map_err(|Errno(errno)| Error::NotConnected { fd, errno })?;
        let Some(diag) = Diag::open().filter(|diag| diag.covers(&key)) else { return Ok(None) };
        let place = OneHost { key, diag, cookie, seen: Cell::new(clock::now()) };
        while place.diag.identity(&key.reversed()).is_none() {
            if !may_be_own(&key) || clock::now() - place.seen.get() >= GRACE_NS {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(Some(place))
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
}

impl Place for OneHost {
    fn key(&self) -> Key {
        self.key
    }

    fn ask(&self, node: &Node, _deadline: u64, hello: Hello<'_>) -> Result<Option<Endpoint>> {
        let Some(end) = self.other_end()? else { return Ok(None) };
        match node.begin_connect_with(&name(end.cookie), hello) {
            Err(fabric::Error::Memory(shm::Error::NobodyListens(_))) => Ok(None),
            started => Ok(Some(started?)),
        }
    }

    fn listen(&self, node: &Node) -> Result<Option<Listener>> {
        match node.listen(&name(self.cookie)) {
            Err(fabric::Error::Memory(shm::Error::NameTaken(_))) => Err(Error::Taken),
            listener => Ok(Some(listener?)),
        }
    }

    fn check_peer(&self, node: &Node, peer: PeerId) -> Result<()> {
        let held = self.other_end()?.zip(node.peer(peer).process());
        if held.is_some_and(|(end, process)| holds(process, end.inode)) { Ok(()) } else { Err(Error::Unproven) }
    }

    fn check_standing(&self) -> Result<()> {
        self.other_end().map(drop)
    }
}

fn name(cookie: u64) -> String {
    format!("shm:extended-{cookie:016x}")
}

/// Whether the address of the other end may be one of this network namespace: a socket can be bound to it.
fn may_be_own(key: &Key) -> bool {
    let family = if key.remote.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let Ok(socket) = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None) else { return true };
    let socket = descriptor::keep(socket);
    bind(&socket, &std::net::SocketAddr::new(key.remote.ip(), 0)) != Err(rustix::io::Errno::ADDRNOTAVAIL)
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

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        os::fd::{AsFd, AsRawFd},
    };

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
    fn an_address_of_this_host_is_told_from_another() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let key = Key::of(stream.as_raw_fd()).unwrap();
        assert!(may_be_own(&key));
        // An address for documents (RFC 5737), unless this system lets everybody bind to any address.
        let any = std::fs::read_to_string("/proc/sys/net/ipv4/ip_nonlocal_bind").is_ok_and(|text| text.trim() == "1");
        assert_eq!(may_be_own(&Key { remote: "192.0.2.1:80".parse().unwrap(), ..key }), any);
    }
}
