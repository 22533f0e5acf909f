//! A connection as a program has it: made, waited on and used through the C library, whose names the preload library
//! replaces. (`rustix` would call the kernel itself, and never be accelerated.)

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::job::Waiting;

/// A connection.
pub enum Wire {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a UNIX socket.
    Unix(UnixStream),
}

/// Where connections come from.
pub enum Door {
    /// Over TCP.
    Tcp(TcpListener),
    /// Over UNIX sockets.
    Unix(UnixListener),
}

impl Door {
    /// Listens at an address.
    pub fn open(address: &str) -> Result<Door> {
        match address.split_once(':') {
            Some(("tcp", at)) => {
                Ok(Door::Tcp(TcpListener::bind(at).with_context(|| format!("cannot listen on {at}"))?))
            }
            Some(("unix", at)) => {
                Ok(Door::Unix(UnixListener::bind(at).with_context(|| format!("cannot listen on {at}"))?))
            }
            _ => bail!("{address}: neither tcp: nor unix:"),
        }
    }

    /// Its address, with the port it got.
    pub fn address(&self, asked: &str) -> Result<String> {
        match self {
            Door::Tcp(listener) => Ok(format!("tcp:{}", listener.local_addr()?)),
            Door::Unix(_) => Ok(asked.into()),
        }
    }

    /// The next connection.
    pub fn accept(&self) -> Result<Wire> {
        let wire = match self {
            Door::Tcp(listener) => Wire::Tcp(listener.accept()?.0),
            Door::Unix(listener) => Wire::Unix(listener.accept()?.0),
        };
        wire.without_delay()
    }
}

impl Wire {
    /// Connects.
    pub fn connect(address: &str) -> Result<Wire> {
        let wire = match address.split_once(':') {
            Some(("tcp", at)) => Wire::Tcp(TcpStream::connect(at).with_context(|| format!("cannot connect to {at}"))?),
            Some(("unix", at)) => {
                Wire::Unix(UnixStream::connect(at).with_context(|| format!("cannot connect to {at}"))?)
            }
            _ => bail!("{address}: neither tcp: nor unix:"),
        };
        wire.without_delay()
    }

    fn without_delay(self) -> Result<Wire> {
        if let Wire::Tcp(stream) = &self {
            stream.set_nodelay(true)?;
        }
        Ok(self)
    }

    /// Receives some bytes; 0 at the end, also when that is a reset.
    pub fn receive(&self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = match self {
                Wire::Tcp(stream) => (&*stream).read(bytes),
                Wire::Unix(stream) => (&*stream).read(bytes),
            };
            match got {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(0),
                other => return other,
            }
        }
    }

    /// Sends all of them.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Wire::Tcp(stream) => (&*stream).write_all(bytes),
            Wire::Unix(stream) => (&*stream).write_all(bytes),
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Wire::Tcp(stream) => stream.as_fd(),
            Wire::Unix(stream) => stream.as_fd(),
        }
    }
}

/// Waits for one connection, in one of the ways.
pub struct Waiter {
    waiting: Waiting,
    set: Option<Epoll>,
}

impl Waiter {
    /// A waiter for this connection.
    pub fn new(waiting: Waiting, wire: &Wire) -> Result<Waiter> {
        let set = match waiting {
            Waiting::Epoll => {
                let set = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
                set.add(wire, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
                Some(set)
            }
            _ => None,
        };
        Ok(Waiter { waiting, set })
    }

    /// Receives just so many bytes; false at the end of the stream.
    pub fn receive_exactly(&self, wire: &Wire, bytes: &mut [u8]) -> Result<bool> {
        let mut done = 0;
        while done < bytes.len() {
            self.wait(wire)?;
            match wire.receive(&mut bytes[done..])? {
                0 => return Ok(false),
                count => done += count,
            }
        }
        Ok(true)
    }

    fn wait(&self, wire: &Wire) -> Result<()> {
        match (self.waiting, &self.set) {
            (Waiting::Poll, _) => {
                poll(&mut [PollFd::new(wire.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE)?;
            }
            (Waiting::Epoll, Some(set)) => {
                let mut events = [EpollEvent::empty()];
                set.wait(&mut events, EpollTimeout::NONE)?;
            }
            _ => {}
        }
        Ok(())
    }
}
