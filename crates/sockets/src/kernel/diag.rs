//! What the kernel tells everybody about a connection, by its addresses (`sock_diag`).

use std::{
    net::IpAddr,
    os::fd::{AsRawFd, OwnedFd},
};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use sidestep_sys::descriptor;
use sidestep_wire::cursor::big;

use super::{SO_NETNS_COOKIE, TCP_ESTABLISHED, option64};
use crate::kernel::address::Key;

/// A way to ask, within one network namespace.
#[derive(Debug)]
pub struct Diag {
    socket: OwnedFd,
    namespace: u64,
}

/// What it tells of one end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// SO_MAX_PACING_RATE.
    pub rate: u64,
    /// The user that the process was which made or accepted the socket.
    pub user: u32,
    /// Which socket it is: its SO_COOKIE, and the number of its file.
    pub identity: (u64, u32),
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const INET_DIAG_INFO: u16 = 2;
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
/// From the beginning of an answer to its attributes.
const ANSWER: usize = HEADER + 72;
/// Where the identity of a connection lies: in the question, and in the answer.
const ID: usize = HEADER + 8;
const ANSWER_ID: usize = HEADER + 4;
/// Ports and addresses.
const ID_LEN: usize = 36;
/// Where an answer names the socket by its cookie, the user, and the file.
const COOKIE: usize = ANSWER_ID + 40;
const USER: usize = HEADER + 64;
const INODE: usize = HEADER + 68;
/// `tcpi_max_pacing_rate`.
const MAX_PACING_RATE: usize = 112;

impl Diag {
    /// For the network namespace of this thread.
    pub fn open() -> Option<Diag> {
        let kind = Some(netlink::SOCK_DIAG);
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, kind);
        let socket = descriptor::keep(socket.ok()?);
        let namespace = option64(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE).unwrap_or(0);
        Some(Diag { socket, namespace })
    }

    /// Which socket is the local end of the established connection with this key ([`Told::identity`]).
    pub fn identity(&self, key: &Key) -> Option<(u64, u32)> {
        self.ask(key).map(|told| told.identity)
    }

    /// Whether it can tell of this connection.
    pub fn covers(&self, key: &Key) -> bool {
        self.namespace == key.namespace
    }

    /// Of the established connection whose local end is that of the key.
    pub fn ask(&self, key: &Key) -> Option<Told> {
        let question = question(key);
        rustix::net::send(&self.socket, &question, SendFlags::empty()).ok()?;
        // The kernel has answered by now. An answer to an earlier question may lie before this one's.
        let mut answer = [0; 2048];
        for _ in 0..8 {
            let (len, _) = rustix::net::recv(&self.socket, &mut answer, RecvFlags::DONTWAIT).ok()?;
            if let Some(told) = told_in(&answer[..len.min(answer.len())], &question[ID..ID + ID_LEN]) {
                return Some(told);
            }
        }
        None
    }
}

fn question(key: &Key) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    bytes[0..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    let family = if key.local.is_ipv4() && key.remote.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    bytes[HEADER] = family as u8;
    bytes[HEADER + 1] = libc::IPPROTO_TCP as u8;
    bytes[HEADER + 2] = 1 << (INET_DIAG_INFO - 1);
    bytes[HEADER + 4..ID].fill(0xff);
    big::Writer::new(&mut bytes[ID..ID + 4]).u16(key.local.port()).u16(key.remote.port());
    for (at, address) in [(ID + 4, key.local.ip()), (ID + 20, key.remote.ip())] {
        match address {
            IpAddr::V4(v4) if family == libc::AF_INET => bytes[at..at + 4].copy_from_slice(&v4.octets()),
            IpAddr::V4(v4) => bytes[at..at + 16].copy_from_slice(&v4.to_ipv6_mapped().octets()),
            IpAddr::V6(v6) => bytes[at..at + 16].copy_from_slice(&v6.octets()),
        }
    }
    // Any interface; any cookie.
    bytes[ID + 40..ID + 48].fill(0xff);
    bytes
}

/// What an answer says, if it is about the connection with this identity.
fn told_in(answer: &[u8], id: &[u8]) -> Option<Told> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let state = *answer.get(HEADER + 1)?;
    if kind != SOCK_DIAG_BY_FAMILY || state != TCP_ESTABLISHED || !same(answer.get(ANSWER_ID..ANSWER_ID + ID_LEN)?, id)
    {
        return None;
    }
    let half = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let cookie = u64::from_ne_bytes(answer.get(COOKIE..COOKIE + 8)?.try_into().ok()?);
    let (user, identity) = (half(USER)?, (cookie, half(INODE)?));
    let mut rest = answer.get(ANSWER..)?;
    loop {
        let len = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        if kind == INET_DIAG_INFO {
            let rate = rest.get(4..len)?.get(MAX_PACING_RATE..MAX_PACING_RATE + 8)?;
            return Some(Told { rate: u64::from_ne_bytes(rate.try_into().ok()?), user, identity });
        }
        rest = rest.get(len.max(4).next_multiple_of(4)..)?;
    }
}

/// Whether two identities are the same: an IPv6 socket tells IPv4 addresses in their mapped form.
fn same(told: &[u8], asked: &[u8]) -> bool {
    let address = |bytes: &[u8]| -> [u8; 4] {
        let mapped = bytes[..10] == [0; 10] && bytes[10..12] == [0xff; 2];
        bytes[if mapped { 12..16 } else { 0..4 }].try_into().expect("four bytes")
    };
    let alike = |at: usize| {
        told[at..at + 16] == asked[at..at + 16]
            || is_plain(&asked[at..at + 16]) && address(&told[at..at + 16]) == address(&asked[at..at + 16])
    };
    told[..4] == asked[..4] && alike(4) && alike(20)
}

/// Whether an address is one of IPv4, followed by zeros.
fn is_plain(address: &[u8]) -> bool {
    address[4..] == [0; 12]
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::kernel::{SO_MAX_PACING_RATE, set_option};

    #[test]
    fn a_rate_is_told_of_the_right_connection() {
        let diag = Diag::open().unwrap();
        for (listen, connect) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let port = listener.local_addr().unwrap().port();
            let pairs: Vec<_> =
                (0..3).map(|_| (TcpStream::connect((connect, port)).unwrap(), listener.accept().unwrap().0)).collect();
            for (at, pair) in pairs.iter().enumerate() {
                for (end, stream) in [&pair.0, &pair.1].into_iter().enumerate() {
                    let rate = 1 << 62 | (at * 2 + end) as u64;
                    set_option(stream.as_raw_fd(), libc::SOL_SOCKET, SO_MAX_PACING_RATE, &rate.to_ne_bytes()).unwrap();
                }
            }
            for (at, pair) in pairs.iter().enumerate() {
                for (end, stream) in [&pair.0, &pair.1].into_iter().enumerate() {
                    let key = Key::of(stream.as_raw_fd()).unwrap();
                    assert!(diag.covers(&key));
                    let user = rustix::process::geteuid().as_raw();
                    let told = |stream: &TcpStream, number: usize| {
                        let inode = rustix::fs::fstat(stream).unwrap().st_ino as u32;
                        let identity = (crate::kernel::cookie(stream.as_raw_fd()).unwrap(), inode);
                        Some(Told { rate: 1 << 62 | number as u64, user, identity })
                    };
                    let other = [&pair.1, &pair.0][end];
                    assert_eq!(diag.ask(&key), told(stream, at * 2 + end), "{listen}");
                    assert_eq!(diag.ask(&key.reversed()), told(other, at * 2 + 1 - end), "{listen}");
                }
            }
            let gone = Key::of(pairs[0].0.as_raw_fd()).unwrap();
            drop(pairs);
            assert_eq!(diag.ask(&gone), None);
        }
    }

    #[test]
    fn any_bytes_are_an_answer_or_not() {
        for len in 0..300 {
            for fill in [0, 1, 2, 20, 0xff] {
                let _ = told_in(&vec![fill; len], &[fill; ID_LEN]);
            }
        }
    }
}
