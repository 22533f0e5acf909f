//! System calls on TCP sockets, none of which blocks but [`connect`].

use std::{
    net::{IpAddr, SocketAddr},
    os::fd::{BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{self, RecvFlags, Shutdown, SocketAddrAny, SocketFlags, sockopt},
};
use sidestep_shm as shm;
use sidestep_sys::descriptor;

use super::network::Network;
use crate::{
    error::{Error, Result},
    link::LinkOptions,
};

/// A socket on which peers arrive.
pub(super) fn listen(network: &dyn Network, address: SocketAddr, name: &str) -> Result<OwnedFd> {
    let attempt = || -> Result<OwnedFd, Errno> {
        let address = network.listen_at(address).map_err(errno_of)?;
        let socket = network.socket(&address).map_err(errno_of)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        net::bind(&socket, &address)?;
        net::listen(&socket, BACKLOG)?;
        Ok(socket)
    };
    attempt().map_err(|errno| match errno {
        Errno::ADDRINUSE => shm::Error::NameTaken(name.to_string()).into(),
        errno => shm::Error::from_errno("listen on a TCP port", errno).into(),
    })
}

/// The next peer that has arrived.
pub(super) fn accept(listener: BorrowedFd<'_>, options: &LinkOptions) -> Result<Option<OwnedFd>, Errno> {
    match net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        Ok(socket) => {
            let socket = descriptor::keep(socket);
            tune(&socket, options)?;
            tune_for_path(&socket);
            Ok(Some(socket))
        }
        // The peer left before it was looked at.
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// How a connection is to be made.
pub(super) struct Route<'a> {
    pub(super) network: &'a dyn Network,
    /// The address of this host that it comes from; `None`: as the system's routes say.
    pub(super) from: Option<IpAddr>,
    /// How long it may take.
    pub(super) limit: Duration,
}

/// Connects to the first of these addresses that answers.
pub(super) fn connect(
    route: &Route<'_>,
    addresses: &[SocketAddr],
    name: &str,
    options: &LinkOptions,
) -> Result<OwnedFd> {
    let mut last = Errno::CONNREFUSED;
    for address in addresses.iter().flat_map(|address| route.network.connect_to(*address)) {
        match connect_one(route, &address, options) {
            Ok(socket) => return Ok(socket),
            Err(errno) => last = errno,
        }
    }
    Err(match last {
        Errno::CONNREFUSED => Error::NobodyListens(name.to_string()),
        Errno::TIMEDOUT => Error::TimedOut("a TCP connection"),
        errno => shm::Error::from_errno("connect over TCP", errno).into(),
    })
}

fn connect_one(route: &Route<'_>, address: &SocketAddr, options: &LinkOptions) -> Result<OwnedFd, Errno> {
    let socket = route.network.socket(address).map_err(errno_of)?;
    tune(&socket, options)?;
    if let Some(from) = route.from {
        net::bind(&socket, &SocketAddr::new(from, 0))?;
    }
    match net::connect(&socket, address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => {
            let limit = timespec(route.limit);
            loop {
                match poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&limit)) {
                    Ok(0) => return Err(Errno::TIMEDOUT),
                    Ok(_) => break,
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno),
                }
            }
            sockopt::socket_error(&socket)??;
        }
        Err(errno) => return Err(errno),
    }
    // A port that nobody listens on may be given to this very socket, which then has reached itself.
    if net::getpeername(&socket)? == Some(net::getsockname(&socket)?) {
        return Err(Errno::CONNREFUSED);
    }
    tune_for_path(&socket);
    Ok(socket)
}

/// Makes a connected socket of the caller one of the link.
pub(super) fn adopt(socket: &OwnedFd, options: &LinkOptions) -> Result<()> {
    tune(socket, options).map_err(|errno| shm::Error::from_errno("use a connected TCP socket", errno))?;
    tune_for_path(socket);
    Ok(())
}

fn errno_of(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// Messages go out at once, and a peer that vanished is found out.
fn tune(socket: &OwnedFd, options: &LinkOptions) -> Result<(), Errno> {
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    let probe = (options.silence / (PROBES + 1)).max(Duration::from_secs(1));
    sockopt::set_tcp_keepidle(socket, probe)?;
    sockopt::set_tcp_keepintvl(socket, probe)?;
    sockopt::set_tcp_keepcnt(socket, PROBES)?;
    sockopt::set_tcp_user_timeout(socket, u32::try_from(options.silence.as_millis()).unwrap_or(u32::MAX))
}

/// A stream that does not leave the host loses nothing and shares no wire: it is not to be paced, as the congestion
/// control of the system may do (BBR: half of the bandwidth in many runs). Reno is in every kernel, and everybody may use it.
fn tune_for_path(socket: &OwnedFd) {
    let here = net::getsockname(socket).ok().and_then(ip);
    if here.is_some() && here == peer_address(socket) {
        // It works without, too.
        let _ = sockopt::set_tcp_congestion(socket, "reno");
    }
}

/// The address at the other end.
pub(super) fn peer_address(socket: &OwnedFd) -> Option<IpAddr> {
    net::getpeername(socket).ok().flatten().and_then(ip)
}

fn ip(address: SocketAddrAny) -> Option<IpAddr> {
    SocketAddr::try_from(address).ok().map(|address| address.ip())
}

/// Reads what has come: nothing at the end of the stream, `None` if there is none now.
pub(super) fn receive(socket: &OwnedFd, into: &mut [u8]) -> Result<Option<usize>, Errno> {
    loop {
        match net::recv(socket, &mut *into, RecvFlags::DONTWAIT) {
            Ok((count, _)) => return Ok(Some(count)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Closes this half.
pub(super) fn finish(socket: &OwnedFd) {
    // A stream that is gone needs no end.
    let _ = net::shutdown(socket, Shutdown::Write);
}

/// Makes the close of the descriptor a reset.
pub(super) fn make_reset(socket: &OwnedFd) {
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

/// The core on which the last packet was received; over the loopback interface that is where the peer runs.
pub(super) fn incoming_core(socket: &OwnedFd) -> u32 {
    sockopt::socket_incoming_cpu(socket).unwrap_or(u32::MAX)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}

/// Peers that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// Probes to a silent peer before it is given up.
const PROBES: u32 = 3;
