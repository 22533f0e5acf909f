//! What the kernel says of a socket: its options, its addresses, and the state of its connection.

use super::{Errno, Result, plain};

/// Names the network namespace of a socket for as long as the machine runs.
pub const SO_NETNS_COOKIE: i32 = 71;
/// How fast a connection may send, in bytes a second.
pub const SO_MAX_PACING_RATE: i32 = 47;
/// Established, in `tcp_info`.
pub const TCP_ESTABLISHED: u8 = 1;
/// On its way.
pub const TCP_SYN_SENT: u8 = 2;
const TCP_FIN_WAIT1: u8 = 4;
const TCP_FIN_WAIT2: u8 = 5;
pub const TCP_TIME_WAIT: u8 = 6;
/// Gone.
pub const TCP_CLOSE: u8 = 7;
pub const TCP_CLOSE_WAIT: u8 = 8;
pub const TCP_LAST_ACK: u8 = 9;
pub const TCP_CLOSING: u8 = 11;

/// A socket option that is one integer.
pub fn option(fd: i32, level: i32, name: i32) -> Result<i32> {
    let mut value = [0; 4];
    read_option(fd, level, name, &mut value)?;
    Ok(i32::from_ne_bytes(value))
}

/// A socket option that is one 64-bit integer.
pub fn option64(fd: i32, level: i32, name: i32) -> Result<u64> {
    let mut value = [0; 8];
    read_option(fd, level, name, &mut value)?;
    Ok(u64::from_ne_bytes(value))
}

/// Any socket option; returns how many bytes the kernel wrote.
pub fn read_option(fd: i32, level: i32, name: i32, value: &mut [u8]) -> Result<usize> {
    let mut len = value.len() as libc::socklen_t;
    let arguments = [fd as usize, level as usize, name as usize, value.as_mut_ptr() as usize, &raw mut len as usize, 0];
    plain(libc::SYS_getsockopt, arguments).map(|_| len as usize)
}

/// Whether a program filters what comes for a socket.
pub fn has_filter(fd: i32) -> bool {
    match read_option(fd, libc::SOL_SOCKET, libc::SO_GET_FILTER, &mut []) {
        Ok(len) => len > 0,
        // An eBPF program is not shown.
        Err(errno) => errno == Errno(libc::EACCES),
    }
}

/// Sets a socket option.
pub fn set_option(fd: i32, level: i32, name: i32, value: &[u8]) -> Result<()> {
    let arguments = [fd as usize, level as usize, name as usize, value.as_ptr() as usize, value.len(), 0];
    plain(libc::SYS_setsockopt, arguments).map(drop)
}

/// What was sent and the kernel holds back, to send it with more, goes out now.
pub fn push_out(fd: i32) {
    if option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY) == Ok(0) {
        for value in [1i32, 0] {
            let _ = set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &value.to_ne_bytes());
        }
    }
}

/// The end of this connection will be a reset.
pub fn reset_at_close(fd: i32) {
    let linger = [1i32.to_ne_bytes(), 0i32.to_ne_bytes()].concat();
    let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger);
}

/// The address of this end, or of the other one, as the kernel's bytes.
pub fn address(fd: i32, of_peer: bool) -> Result<([u8; 28], usize)> {
    let mut bytes = [0; 28];
    let mut len = bytes.len() as libc::socklen_t;
    let number = if of_peer { libc::SYS_getpeername } else { libc::SYS_getsockname };
    plain(number, [fd as usize, bytes.as_mut_ptr() as usize, &raw mut len as usize, 0, 0, 0])?;
    Ok((bytes, (len as usize).min(28)))
}

/// Whether a descriptor is a socket of TCP.
pub fn is_tcp(fd: i32) -> bool {
    option(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL) == Ok(libc::IPPROTO_TCP)
}

/// Whether a socket waits for connections.
pub fn listens(fd: i32) -> bool {
    option(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN) == Ok(1)
}

/// SO_COOKIE: names the socket for as long as the machine runs.
pub fn cookie(fd: i32) -> Result<u64> {
    option64(fd, libc::SOL_SOCKET, libc::SO_COOKIE)
}

/// The kernel's state of a connection (`TCP_ESTABLISHED` and so on).
pub fn state(fd: i32) -> Result<u8> {
    let mut info = [0u8; 8];
    read_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info).map(|_| info[0])
}

/// Whether the peer has closed or shut down, or the connection is gone. (A `shutdown` of one's own does not count.)
pub fn has_peer_ended(fd: i32) -> bool {
    !matches!(state(fd), Ok(TCP_ESTABLISHED | TCP_FIN_WAIT1 | TCP_FIN_WAIT2))
}
