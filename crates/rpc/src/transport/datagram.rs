//! UDP: a message is a datagram, and may get lost.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::poll::PollFlags;
use sidestep_sys::clock;

use super::{Take, Transport, after, wait};
use crate::record::ROOM;

/// The greatest datagram that UDP carries.
pub(crate) const MAX_DATAGRAM: usize = 65_507;

pub(super) fn connect(host: &str) -> io::Result<Box<dyn Transport>> {
    let mut last = io::ErrorKind::AddrNotAvailable.into();
    for server in host.to_socket_addrs()? {
        match connect_to(server) {
            Ok(socket) => {
                let buffer = Mutex::new(vec![0; MAX_DATAGRAM].into());
                return Ok(Box::new(Datagram { socket, buffer, closed: AtomicBool::new(false) }));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_to(server: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = if server.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    // Datagrams from elsewhere do not reach a connected socket.
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

struct Datagram {
    socket: UdpSocket,
    buffer: Mutex<Box<[u8]>>,
    closed: AtomicBool,
}

/// How long a receive may miss that it was closed: a UDP socket has no end that poll would see.
const CLOSE_CHECK: Duration = Duration::from_millis(50);

impl Transport for Datagram {
    fn lossy(&self) -> bool {
        true
    }

    fn send(&self, frame: &[u8]) -> io::Result<usize> {
        match self.socket.send(&frame[ROOM..]) {
            Ok(_) => Ok(frame.len()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            // The answer to an earlier datagram: nobody listened then. This one is sent again, and the next may be heard.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(frame.len()),
            Err(error) => Err(error),
        }
    }

    fn receive(&self, until: u64, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let mut buffer = self.buffer.lock().unwrap_or_else(|poison| poison.into_inner());
        loop {
            if self.closed.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::NotConnected.into());
            }
            if wait(self.socket.as_fd(), PollFlags::POLLIN, until.min(after(CLOSE_CHECK)))?.is_empty() {
                if clock::now() >= until {
                    return Ok(false);
                }
                continue;
            }
            match self.socket.recv(&mut buffer) {
                Ok(count) => {
                    take(&buffer[..count]);
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn wait_sendable(&self, until: u64, _: Option<&mut Take<'_>>) -> io::Result<()> {
        wait(self.socket.as_fd(), PollFlags::POLLOUT, until).map(|_| ())
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}
