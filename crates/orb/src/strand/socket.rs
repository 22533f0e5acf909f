//! TCP (which makes it IIOP) and UNIX sockets.

use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::{Close, Endpoint, Listener, ReceiveHalf, SendHalf, Strand, Watch};

/// A connected socket; both halves are one.
#[derive(Debug, Clone)]
struct Socket(Arc<OwnedFd>);

/// Connects to a broker by TCP.
pub(crate) fn connect_tcp(host: &str, port: u16, deadline: Option<Instant>) -> io::Result<Strand> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        let connected = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            Some(left) if left.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
            Some(left) => TcpStream::connect_timeout(&address, left),
            None => TcpStream::connect(address),
        };
        match connected {
            Ok(stream) => return of_tcp(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Connects to a broker by a UNIX socket.
pub(crate) fn connect_unix(path: &str) -> io::Result<Strand> {
    Ok(strand(UnixStream::connect(path)?.into()))
}

/// A request is one message: it must not wait for others.
fn of_tcp(stream: TcpStream) -> io::Result<Strand> {
    stream.set_nodelay(true)?;
    Ok(strand(stream.into()))
}

fn strand(descriptor: OwnedFd) -> Strand {
    let socket = Socket(Arc::new(descriptor));
    Strand { sender: Box::new(socket.clone()), receiver: Box::new(socket.clone()), closer: Arc::new(socket) }
}

impl Socket {
    fn wait(&self, flags: PollFlags, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(self.0.as_fd(), flags)], Some(&timeout)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl SendHalf for Socket {
    fn send(&mut self, mut bytes: &[u8], more: bool, deadline: Option<Instant>) -> io::Result<()> {
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::DONTWAIT, deadline.is_some());
        flags.set(SendFlags::MORE, more);
        while !bytes.is_empty() {
            match (send(&*self.0, bytes, flags), deadline) {
                (Ok(sent), _) => bytes = &bytes[sent.min(bytes.len())..],
                (Err(rustix::io::Errno::INTR), _) => {}
                (Err(rustix::io::Errno::AGAIN), Some(deadline)) => self.wait(PollFlags::OUT, deadline)?,
                (Err(error), _) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl ReceiveHalf for Socket {
    fn receive(&mut self, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        let flags = if deadline.is_some() { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        loop {
            match (recv(&*self.0, &mut *into, flags), deadline) {
                (Ok((count, _)), _) => return Ok(count),
                (Err(rustix::io::Errno::INTR), _) => {}
                (Err(rustix::io::Errno::AGAIN), Some(deadline)) => self.wait(PollFlags::IN, deadline)?,
                (Err(error), _) => return Err(error.into()),
            }
        }
    }

    fn attach(&mut self, watch: &Watch, token: u64) -> io::Result<()> {
        let Watch::Sockets(sockets) = watch else { return Err(io::ErrorKind::Unsupported.into()) };
        let events = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        Ok(epoll::add(&sockets.set, &*self.0, epoll::EventData::new_u64(token), events)?)
    }
}

impl Close for Socket {
    fn close(&self) {
        // Fails only if the peer is gone already.
        let _ = shutdown(&*self.0, Shutdown::Both);
    }
}

/// A listening socket.
#[derive(Debug)]
pub(crate) enum SocketListener {
    Tcp { listener: TcpListener, host: String },
    Unix { listener: UnixListener, path: String },
}

impl SocketListener {
    /// Listens on `address`. References name `host`, or the address itself.
    pub(crate) fn tcp(address: &str, host: Option<&str>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let own = listener.local_addr()?.ip();
        let host = host.map_or_else(|| own.to_string(), str::to_owned);
        Ok(Self::Tcp { listener, host })
    }

    pub(crate) fn unix(path: &str) -> io::Result<Self> {
        if path.is_empty() {
            // The kernel would bind it to a name that no reference can have.
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a UNIX socket needs a path"));
        }
        Ok(Self::Unix { listener: UnixListener::bind(path)?, path: path.to_owned() })
    }
}

impl Listener for SocketListener {
    fn accept(&self) -> io::Result<Strand> {
        match self {
            Self::Tcp { listener, .. } => of_tcp(listener.accept()?.0),
            Self::Unix { listener, .. } => Ok(strand(listener.accept()?.0.into())),
        }
    }

    fn close(&self) {
        // Shutting down a listening socket wakes whoever waits for a connection.
        let _ = match self {
            Self::Tcp { listener, .. } => shutdown(listener, Shutdown::Both),
            Self::Unix { listener, path } => {
                let _ = std::fs::remove_file(path);
                shutdown(listener, Shutdown::Both)
            }
        };
    }

    fn endpoint(&self) -> Endpoint {
        match self {
            Self::Tcp { listener, host } => {
                let port = listener.local_addr().map_or(0, |address| address.port());
                Endpoint::Tcp { host: host.clone(), port }
            }
            Self::Unix { path, .. } => Endpoint::Unix { path: path.clone() },
        }
    }

    fn watch(&self) -> io::Result<Watch> {
        Watch::sockets()
    }
}
