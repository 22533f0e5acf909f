//! The threads of a server.
//!
//! Every thread waits in the same epoll set. Connections are edge-triggered, so that one arrival wakes one thread: it
//! takes what has come, leaves further messages to others, and executes the first one itself. While it does, whatever
//! comes next wakes another thread.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::Limits;
use super::connection::{Connection, ReplyPath};
use super::dispatch::{Dispatcher, Outcome};
use super::service::Peer;
use crate::client::lock;
use crate::transport::{MAX_DATAGRAM, READ, Socket};

/// What a server waits for.
pub(super) enum Source {
    Tcp(TcpListener),
    Unix(UnixListener),
    Udp(Arc<UdpSocket>),
    Connection(Arc<Connection>),
}

/// The threads, which end with it.
pub(super) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    dispatcher: Arc<Dispatcher>,
    limits: Limits,
    epoll: Arc<Epoll>,
    sources: Mutex<HashMap<u64, Arc<Source>>>,
    next_token: AtomicU64,
    open: AtomicUsize,
    jobs: Mutex<VecDeque<Job>>,
    /// Readable while the server stops; written to wake a thread for a job.
    wake: EventFd,
    stopping: AtomicBool,
    idle: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A message that waits for a thread.
struct Job {
    connection: Arc<Connection>,
    message: Vec<u8>,
}

/// The buffers of one thread.
struct Buffers {
    input: Box<[u8]>,
    message: Vec<u8>,
    reply: Vec<u8>,
}

const WAKE: u64 = 0;

/// With more messages of one connection waiting to be executed, nothing more is read from it.
const MAX_WAITING: usize = 256;

/// After an error of `accept`, usually for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A buffer that was used for a large message once does not hold its memory for ever.
const KEPT: usize = 256 << 10;

impl Pool {
    pub fn start(dispatcher: Arc<Dispatcher>, sources: Vec<Source>, limits: Limits) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            dispatcher,
            limits,
            epoll: Arc::new(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?),
            sources: Mutex::default(),
            next_token: AtomicU64::new(WAKE + 1),
            open: AtomicUsize::new(0),
            jobs: Mutex::default(),
            wake: EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?,
            stopping: AtomicBool::new(false),
            idle: AtomicUsize::new(0),
            threads: Mutex::default(),
        });
        shared.epoll.add(&shared.wake, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, WAKE))?;
        for source in sources {
            let token = shared.next_token.fetch_add(1, Ordering::Relaxed);
            shared.add(token, Arc::new(source))?;
        }
        shared.spawn()?;
        Ok(Pool { shared })
    }

    pub fn connections(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    pub fn stop(&self) {
        let shared = &self.shared;
        shared.stopping.store(true, Ordering::Relaxed);
        // From now on the descriptor stays readable and reports to all.
        let _ = shared.epoll.modify(&shared.wake, &mut EpollEvent::new(EpollFlags::EPOLLIN, WAKE));
        let _ = shared.wake.write(1);
        loop {
            let thread = lock(&shared.threads).pop();
            match thread {
                // A thread ends when its call does. A service that stops its own server does not wait for itself.
                Some(thread) if thread.thread().id() != std::thread::current().id() => drop(thread.join()),
                Some(_) => {}
                None => break,
            }
        }
        lock(&shared.sources).clear();
    }
}

impl Source {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Source::Tcp(listener) => listener.as_fd(),
            Source::Unix(listener) => listener.as_fd(),
            Source::Udp(socket) => socket.as_fd(),
            Source::Connection(connection) => connection.socket.as_fd(),
        }
    }

    fn events(&self) -> EpollFlags {
        match self {
            // One datagram at a time, as long as there is one.
            Source::Udp(_) => EpollFlags::EPOLLIN,
            _ => EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET,
        }
    }
}

impl Shared {
    fn add(&self, token: u64, source: Arc<Source>) -> io::Result<()> {
        lock(&self.sources).insert(token, source.clone());
        let added = self.epoll.add(source.fd(), EpollEvent::new(source.events(), token));
        if added.is_err() {
            lock(&self.sources).remove(&token);
        }
        Ok(added?)
    }

    fn spawn(self: &Arc<Self>) -> io::Result<()> {
        let mut threads = lock(&self.threads);
        if threads.len() < self.limits.threads && !self.stopping.load(Ordering::Relaxed) {
            let shared = self.clone();
            self.idle.fetch_add(1, Ordering::Relaxed);
            let thread = std::thread::Builder::new().name("rpc".to_owned()).spawn(move || shared.run());
            if thread.is_err() {
                self.idle.fetch_sub(1, Ordering::Relaxed);
            }
            threads.push(thread?);
        }
        Ok(())
    }

    fn run(self: &Arc<Self>) {
        let mut buffers = Buffers { input: vec![0; READ].into(), message: Vec::new(), reply: Vec::new() };
        while !self.stopping.load(Ordering::Relaxed) {
            let job = lock(&self.jobs).pop_front();
            if let Some(Job { connection, message }) = job {
                self.busy(|| {
                    self.wake_for_jobs();
                    self.execute(&connection, &message, &mut buffers.reply);
                    connection.waiting.fetch_sub(1, Ordering::AcqRel);
                    if resumes(&connection) {
                        self.read(&connection, true, &mut buffers);
                    }
                });
                continue;
            }
            let mut events = [EpollEvent::empty()];
            match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Ok(1) => self.busy(|| self.event(events[0].data(), events[0].events(), &mut buffers)),
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                // The set is ours and its descriptor is open.
                Err(error) => panic!("epoll_wait: {error}"),
            }
            if buffers.reply.capacity() > KEPT {
                buffers.reply = Vec::new();
            }
            if buffers.message.capacity() > KEPT {
                buffers.message = Vec::new();
            }
        }
    }

    /// Does something that may take long. If nobody else waits for what comes next, there is one thread more.
    fn busy(self: &Arc<Self>, work: impl FnOnce()) {
        if self.idle.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Without it, calls wait for each other.
            let _ = self.spawn();
        }
        work();
        self.idle.fetch_add(1, Ordering::Relaxed);
    }

    fn event(self: &Arc<Self>, token: u64, events: EpollFlags, buffers: &mut Buffers) {
        if token == WAKE {
            return;
        }
        let Some(source) = lock(&self.sources).get(&token).cloned() else {
            return;
        };
        match &*source {
            Source::Tcp(listener) => self.accept(&source, token, || {
                let (stream, from) = listener.accept()?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Ok((Socket::Tcp(stream), Peer::Tcp(from)))
            }),
            Source::Unix(listener) => self.accept(&source, token, || {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                let who = rustix::net::sockopt::socket_peercred(&stream)?;
                let peer = Peer::Unix { pid: who.pid.as_raw_nonzero().get() as u32, uid: who.uid.as_raw() };
                Ok((Socket::Unix(stream), peer))
            }),
            Source::Udp(socket) => self.datagram(socket, buffers),
            Source::Connection(connection) => {
                if events.intersects(EpollFlags::EPOLLOUT) && connection.flush() {
                    connection.paused.store(false, Ordering::Relaxed);
                    if connection.ended.load(Ordering::Relaxed) {
                        return self.remove(connection);
                    }
                }
                let ends = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
                self.read(connection, events.intersects(ends), buffers);
            }
        }
    }

    fn accept(&self, source: &Source, token: u64, accept: impl Fn() -> io::Result<(Socket, Peer)>) {
        loop {
            match accept() {
                Ok(_) if self.open.load(Ordering::Relaxed) >= self.limits.connections => {}
                Ok((socket, peer)) => {
                    let token = self.next_token.fetch_add(1, Ordering::Relaxed);
                    let connection = Connection::new(token, peer, socket, self.limits.max_message, self.epoll.clone());
                    // Counted first: another thread may find its end before this one goes on.
                    self.open.fetch_add(1, Ordering::Relaxed);
                    if self.add(token, Arc::new(Source::Connection(Arc::new(connection)))).is_err() {
                        self.open.fetch_sub(1, Ordering::Relaxed);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {
                }
                Err(_) => {
                    std::thread::sleep(ACCEPT_PAUSE);
                    let mut event = EpollEvent::new(source.events(), token);
                    let _ = self.epoll.modify(source.fd(), &mut event);
                    return;
                }
            }
        }
    }

    fn datagram(&self, socket: &Arc<UdpSocket>, buffers: &mut Buffers) {
        // Others may have been woken for the same datagram.
        let Ok((count, from)) = socket.recv_from(&mut buffers.input) else {
            return;
        };
        let path = ReplyPath::Datagram(socket.clone(), from);
        let message = &buffers.input[..count];
        let outcome = self.dispatcher.handle(message, &Peer::Udp(from), &path, MAX_DATAGRAM, &mut buffers.reply, None);
        if outcome == Outcome::Reply {
            path.send(&buffers.reply);
        }
    }

    /// Takes what has come, and executes it. If the client has ended its side, the end is among it.
    fn read(self: &Arc<Self>, connection: &Arc<Connection>, ends: bool, buffers: &mut Buffers) {
        self.read_some(connection, ends, buffers);
        while resumes(connection) {
            self.read_some(connection, true, buffers);
        }
    }

    /// Like [`Shared::read`], but stops when too many messages wait.
    fn read_some(self: &Arc<Self>, connection: &Arc<Connection>, ends: bool, buffers: &mut Buffers) {
        let Buffers { input, message: first, reply } = buffers;
        let mut have_first = false;
        let mut further: Vec<Vec<u8>> = Vec::new();
        let mut open = true;
        let mut inward = lock(&connection.inward);
        while !connection.paused.load(Ordering::Relaxed) && !connection.held.load(Ordering::Relaxed) {
            match connection.socket.read(input) {
                Ok(0) => open = false,
                Ok(count) => {
                    let fed = inward.feed(&input[..count], |message| {
                        if have_first {
                            further.push(message.to_vec());
                        } else {
                            first.clear();
                            first.extend_from_slice(message);
                            have_first = true;
                        }
                    });
                    if fed.is_err() {
                        connection.socket.shutdown();
                        open = false;
                    } else if further.len() + connection.waiting.load(Ordering::Relaxed) > MAX_WAITING {
                        // Whoever executes the last of them reads on.
                        connection.held.store(true, Ordering::Release);
                    } else if ends || count == input.len() {
                        continue;
                    }
                    // Less than was asked for: the socket is empty, and the next arrival is another edge.
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => open = false,
            }
            break;
        }
        let waiting = further.len() + usize::from(self.limits.ordered && have_first);
        connection.waiting.fetch_add(waiting, Ordering::AcqRel);
        if self.limits.ordered {
            let mut turn = lock(&connection.turn);
            turn.messages.extend(have_first.then(|| std::mem::take(first)));
            turn.messages.extend(further);
            drop(turn);
            drop(inward);
            self.execute_in_turn(connection, reply);
        } else {
            drop(inward);
            self.leave(connection, further);
            if have_first {
                self.execute(connection, first, reply);
            }
        }
        if !open {
            connection.ended.store(true, Ordering::Relaxed);
            if connection.flush() {
                self.remove(connection);
            }
        }
    }

    /// Leaves messages to whoever is free.
    fn leave(&self, connection: &Arc<Connection>, messages: Vec<Vec<u8>>) {
        if messages.is_empty() {
            return;
        }
        let jobs = messages.into_iter().map(|message| Job { connection: connection.clone(), message });
        lock(&self.jobs).extend(jobs);
        self.wake_for_jobs();
    }

    fn wake_for_jobs(&self) {
        if self.idle.load(Ordering::Relaxed) > 0 && !lock(&self.jobs).is_empty() {
            let _ = self.wake.write(1);
        }
    }

    fn execute_in_turn(&self, connection: &Arc<Connection>, reply: &mut Vec<u8>) {
        if std::mem::replace(&mut lock(&connection.turn).taken, true) {
            return;
        }
        loop {
            let mut turn = lock(&connection.turn);
            let Some(message) = turn.messages.pop_front() else {
                turn.taken = false;
                return;
            };
            drop(turn);
            self.execute(connection, &message, reply);
            connection.waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn execute(&self, connection: &Arc<Connection>, message: &[u8], reply: &mut Vec<u8>) {
        let path = ReplyPath::Stream(connection.clone());
        match self.dispatcher.handle(message, &connection.peer, &path, self.limits.max_message, reply, None) {
            Outcome::Reply => connection.send(reply),
            Outcome::Silence => {}
            // The next edge finds the end of the connection.
            Outcome::Nonsense => connection.socket.shutdown(),
        }
    }

    fn remove(&self, connection: &Connection) {
        let removed = lock(&self.sources).remove(&connection.token);
        if removed.is_some() {
            let _ = self.epoll.delete(connection.socket.as_fd());
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether the messages of a connection from which nothing was read are all executed, and the caller must read on.
fn resumes(connection: &Connection) -> bool {
    connection.waiting.load(Ordering::Acquire) == 0 && connection.held.swap(false, Ordering::AcqRel)
}
