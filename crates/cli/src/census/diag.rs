//! The TCP sockets of this network namespace, as the kernel lists them in answers of `sock_diag`. They are shorter than the
//! text of `/proc/net/tcp`, and leave out the states that nobody asked for: after ten thousand connections have ended, that
//! text has as many lines for a minute.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

use super::tables::{Row, State};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// A request, for all that fit: `NLM_F_REQUEST` and `NLM_F_DUMP`.
const REQUEST_ALL: u16 = 0x301;
const DONE: u16 = 3;
const HEADER: usize = 16;
/// The header and `struct inet_diag_req_v2`.
const REQUEST: usize = HEADER + 56;
/// `struct inet_diag_msg`, without the attributes behind it.
const ANSWER: usize = 72;
const IPPROTO_TCP: u8 = 6;
/// Numbers of the kernel for the states of a socket that are shown, with what they are here.
pub const STATES: [(u8, State); 5] =
    [(1, State::Connected), (4, State::Ending), (5, State::Ending), (8, State::Ending), (10, State::Listening)];
/// The most that the kernel puts into one answer.
const MOST: usize = 32 << 10;

/// Every socket; `None` if the kernel does not answer, as in a sandbox.
pub fn rows() -> Option<Vec<Row>> {
    let kind = Some(netlink::SOCK_DIAG);
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, kind).ok()?;
    let (mut rows, mut buffer) = (Vec::new(), vec![0; MOST]);
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        send(&socket, &request(family), SendFlags::empty()).ok()?;
        loop {
            // The kernel prepares the next answer before it hands over one, so there is nothing to wait for.
            let (len, _) = recv(&socket, &mut buffer, RecvFlags::DONTWAIT).ok()?;
            if take(buffer.get(..len)?, &mut rows)? {
                break;
            }
        }
    }
    Some(rows)
}

fn request(family: AddressFamily) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    bytes[0..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_ALL.to_ne_bytes());
    bytes[HEADER] = family.as_raw() as u8;
    bytes[HEADER + 1] = IPPROTO_TCP;
    let states = STATES.iter().fold(0_u32, |states, (number, _)| states | 1 << number);
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&states.to_ne_bytes());
    bytes
}

/// Takes the sockets out of one answer; whether it was the last one, or `None` if it is no answer.
fn take(mut answer: &[u8], rows: &mut Vec<Row>) -> Option<bool> {
    while !answer.is_empty() {
        let len = u32::from_ne_bytes(answer.get(..4)?.try_into().ok()?) as usize;
        let message = answer.get(HEADER..len)?;
        match u16::from_ne_bytes(answer[4..6].try_into().ok()?) {
            SOCK_DIAG_BY_FAMILY => rows.extend(row(message.get(..ANSWER)?)),
            DONE => return Some(true),
            _ => return None,
        }
        answer = answer.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(false)
}

/// One socket.
fn row(message: &[u8]) -> Option<Row> {
    let number = |at: usize| Some(u32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?));
    let (_, state) = STATES.into_iter().find(|(number, _)| *number == message[1])?;
    let is_v4 = u16::from(message[0]) == AddressFamily::INET.as_raw();
    let end = |port: usize, address: usize| {
        let port = u16::from_be_bytes([*message.get(port)?, *message.get(port + 1)?]);
        let bytes: [u8; 16] = message.get(address..address + 16)?.try_into().ok()?;
        let ip = match Ipv6Addr::from(bytes) {
            _ if is_v4 => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
            v6 => v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4),
        };
        Some(SocketAddr::new(ip, port))
    };
    Some(Row { local: end(4, 8)?, remote: end(6, 24)?, state, user: number(64)?, inode: number(68)?.into() })
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        os::fd::AsFd,
    };

    use rustix::fs::fstat;

    use super::*;

    /// Both families, and IPv4 in sockets of IPv6.
    #[test]
    fn sockets_are_listed_with_addresses_and_inode() {
        for (listen, connect) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let stream = TcpStream::connect((connect, listener.local_addr().unwrap().port())).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            let rows = rows().expect("the kernel answers");
            for (end, state) in [(stream.as_fd(), State::Connected), (listener.as_fd(), State::Listening)] {
                let status = fstat(end).unwrap();
                let row = rows.iter().find(|row| row.inode == status.st_ino).expect("it is listed");
                assert_eq!((row.state, row.user), (state, status.st_uid), "{listen}");
            }
            let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            assert!(rows.iter().any(|row| (row.local, row.remote) == (local, remote)), "{listen}");
            assert!(rows.iter().any(|row| (row.local, row.remote) == (remote, local)), "{listen}");
            // One that has ended on both sides, and that only the kernel remembers, is not asked for.
            drop((stream, accepted));
            let ended = |row: &Row| (row.local, row.remote) == (local, remote) && row.state == State::Connected;
            assert!(!super::rows().expect("the kernel answers").iter().any(ended), "{listen}");
        }
    }

    #[test]
    fn any_bytes_are_an_answer_or_not() {
        for len in 0..300 {
            for fill in [0, 1, 2, 20, 0xff] {
                let _ = take(&vec![fill; len], &mut Vec::new());
            }
        }
    }
}
