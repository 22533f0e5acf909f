//! One connection of a server: what has come in part, and what the client has not taken yet.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};

use super::lines::Line;
use super::rdma::Mailbox;
use super::service::Peer;
use crate::client::lock;
use crate::record::{Assembler, ROOM};
use crate::transport::Socket;

pub(super) struct Connection {
    pub token: u64,
    pub peer: Peer,
    pub socket: Socket,
    pub inward: Mutex<Assembler>,
    outward: Mutex<Outward>,
    /// Nothing is read until the client takes its replies.
    pub paused: AtomicBool,
    /// How many messages wait to be executed.
    pub waiting: AtomicUsize,
    /// Nothing is read until they are.
    pub held: AtomicBool,
    /// Nothing more comes; the connection ends when the replies that wait are sent.
    pub ended: AtomicBool,
    /// The messages that wait for their turn, where calls are executed in order.
    pub turn: Mutex<Turn>,
    epoll: Arc<Epoll>,
}

#[derive(Default)]
pub(super) struct Turn {
    pub messages: VecDeque<Vec<u8>>,
    /// Somebody executes them.
    pub taken: bool,
}

#[derive(Default)]
struct Outward {
    /// What the socket has not taken.
    waiting: Vec<u8>,
    sent: usize,
    broken: bool,
}

/// With so many bytes of replies waiting, nothing more is read from a client.
const PAUSE: usize = 256 << 10;

impl Connection {
    pub fn new(token: u64, peer: Peer, socket: Socket, max_message: usize, epoll: Arc<Epoll>) -> Self {
        Self {
            token,
            peer,
            socket,
            inward: Mutex::new(Assembler::new(max_message)),
            outward: Mutex::default(),
            paused: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            held: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            turn: Mutex::default(),
            epoll,
        }
    }

    /// Sends a frame, or keeps what the client does not take now.
    pub fn send(&self, frame: &[u8]) {
        let mut outward = lock(&self.outward);
        let mut rest = frame;
        while outward.waiting.is_empty() && !rest.is_empty() && !outward.broken {
            match self.socket.write(rest) {
                Ok(0) => outward.broken = true,
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    outward.waiting.extend_from_slice(rest);
                    rest = &[];
                    self.watch(EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT);
                }
                Err(_) => outward.broken = true,
            }
        }
        if !outward.broken {
            outward.waiting.extend_from_slice(rest);
        }
        if outward.waiting.len() - outward.sent > PAUSE {
            self.paused.store(true, Ordering::Relaxed);
        }
        if outward.broken {
            outward.waiting = Vec::new();
            self.socket.shutdown();
        }
    }

    /// The socket takes more: sends what waits. Whether everything is sent.
    pub fn flush(&self) -> bool {
        let mut outward = lock(&self.outward);
        while outward.sent < outward.waiting.len() && !outward.broken {
            match self.socket.write(&outward.waiting[outward.sent..]) {
                Ok(0) => outward.broken = true,
                Ok(count) => outward.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => outward.broken = true,
            }
        }
        if !outward.waiting.is_empty() {
            // A client that was slow once does not hold memory for ever.
            outward.waiting = Vec::new();
            outward.sent = 0;
            self.watch(EpollFlags::EPOLLIN);
        }
        true
    }

    /// Every change of what is watched reports again what is so already: nothing gets lost at the edge.
    fn watch(&self, events: EpollFlags) {
        let mut event = EpollEvent::new(events | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET, self.token);
        // It fails if the connection has ended, and then nothing is to be watched.
        let _ = self.epoll.modify(self.socket.as_fd(), &mut event);
    }
}

/// How a reply gets to its caller.
#[derive(Clone)]
pub(super) enum ReplyPath {
    Stream(Arc<Connection>),
    Datagram(Arc<UdpSocket>, SocketAddr),
    Line(Arc<dyn Line>),
    Rdma(Arc<Mailbox>),
    #[cfg(test)]
    None,
}

impl ReplyPath {
    /// Sends a marked frame.
    pub fn send(&self, frame: &[u8]) {
        match self {
            ReplyPath::Stream(connection) => connection.send(frame),
            ReplyPath::Line(line) => line.send(frame),
            ReplyPath::Rdma(mailbox) => mailbox.put(&frame[ROOM..]),
            // A datagram that gets lost is asked for again.
            ReplyPath::Datagram(socket, to) => drop(socket.send_to(&frame[ROOM..], to)),
            #[cfg(test)]
            ReplyPath::None => {}
        }
    }
}
