//! TCP and UNIX sockets.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use nix::poll::PollFlags;
use sidestep_sys::clock;

use super::{Take, Transport, after, wait};
use crate::client::lock;
use crate::record::Assembler;

/// Connects to the first address of a host that takes it.
pub(super) fn dial(host: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
    for server in host.to_socket_addrs()? {
        outcome = TcpStream::connect_timeout(&server, timeout);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

pub(super) fn tcp(host: &str, max_message: usize, timeout: Duration) -> io::Result<Box<dyn Transport>> {
    let stream = dial(host, timeout)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(Box::new(Stream::new(Socket::Tcp(stream), max_message)))
}

pub(super) fn unix(path: &Path, max_message: usize) -> io::Result<Box<dyn Transport>> {
    let stream = UnixStream::connect(path)?;
    stream.set_nonblocking(true)?;
    Ok(Box::new(Stream::new(Socket::Unix(stream), max_message)))
}

/// A connected socket that does not block.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).read(buffer),
            Socket::Unix(stream) => (&mut &*stream).read(buffer),
        }
    }

    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&mut &*stream).write(bytes),
            Socket::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    /// Whoever waits in another thread is told; an error means that it was closed before.
    pub fn shutdown(&self) {
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

struct Stream {
    socket: Socket,
    inward: Mutex<Inward>,
}

struct Inward {
    assembler: Assembler,
    buffer: Box<[u8]>,
}

/// How much is read at once.
pub(crate) const READ: usize = 64 << 10;

impl Stream {
    fn new(socket: Socket, max_message: usize) -> Self {
        let inward = Inward { assembler: Assembler::new(max_message), buffer: vec![0; READ].into() };
        Self { socket, inward: Mutex::new(inward) }
    }
}

impl Transport for Stream {
    fn lossy(&self) -> bool {
        false
    }

    fn send(&self, frame: &[u8]) -> io::Result<usize> {
        match self.socket.write(frame) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            outcome => outcome,
        }
    }

    fn receive(&self, until: u64, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        self.receive_into(&mut lock(&self.inward), until, take)
    }

    fn wait_sendable(&self, until: u64, take: Option<&mut Take<'_>>) -> io::Result<()> {
        let Some(take) = take else {
            // The server will take more of ours when its replies are taken. Nobody may do so after a while.
            let until = until.min(after(OTHERS_RECEIVE));
            return wait(self.socket.as_fd(), PollFlags::POLLOUT, until).map(|_| ());
        };
        let found = wait(self.socket.as_fd(), PollFlags::POLLIN | PollFlags::POLLOUT, until)?;
        if found.intersects(PollFlags::POLLOUT) || !found.intersects(PollFlags::POLLIN) {
            return Ok(());
        }
        self.receive_into(&mut lock(&self.inward), clock::now(), take).map(|_| ())
    }

    fn close(&self) {
        self.socket.shutdown();
    }
}

/// How long to wait before looking again whether somebody else still receives.
const OTHERS_RECEIVE: Duration = Duration::from_millis(10);

impl Stream {
    fn receive_into(&self, inward: &mut Inward, until: u64, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let Inward { assembler, buffer } = inward;
        loop {
            if wait(self.socket.as_fd(), PollFlags::POLLIN, until)?.is_empty() {
                return Ok(false);
            }
            match self.socket.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    if assembler.feed_any(&buffer[..count], take)? {
                        return Ok(true);
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
