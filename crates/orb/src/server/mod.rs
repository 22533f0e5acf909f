//! The serving side: listeners, and a thread for each connection.

mod serve;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sidestep_wire::giop::{self, MessageType, Version};

use crate::Orb;
use crate::assembler::Assembler;
use crate::strand::{Endpoint, Listener, Strand};

pub(crate) use serve::{Session, serve};

/// How long a peer that does not read may hold up the end of its connection.
const PARTING: Duration = Duration::from_millis(100);

/// How long to wait before looking whether a reply has gone out.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// How long to wait before accepting again when the process has no descriptors left.
const EXHAUSTED: Duration = Duration::from_millis(10);

#[derive(Default)]
pub(crate) struct Server {
    listeners: Vec<Arc<dyn Listener>>,
    endpoints: Vec<Endpoint>,
    connections: Mutex<HashMap<u64, Arc<Line>>>,
    next_id: AtomicU64,
    stopped: AtomicBool,
    /// The number of threads that are not done.
    running: Mutex<usize>,
    ended: Condvar,
}

/// A connection, which its own thread and the end of the broker send on.
struct Line {
    strand: Box<dyn Strand>,
    /// Held while a message is sent, so that messages do not mix.
    sending: Mutex<()>,
}

impl Line {
    fn send(&self, bytes: &[u8], deadline: Option<Instant>) -> io::Result<()> {
        let _sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        self.strand.send(bytes, deadline)
    }

    /// Says something last, unless a message is stuck on the way, and closes the connection.
    fn part(&self, version: Version, message_type: MessageType) {
        let deadline = Instant::now() + PARTING;
        loop {
            if let Ok(_sending) = self.sending.try_lock() {
                let _ = self.strand.send(&giop::bare(version, message_type), Some(deadline));
                break;
            }
            // A reply that goes out is followed; a peer that does not read its reply is not waited for.
            if Instant::now() >= deadline {
                break;
            }
            thread::sleep(LOOK_AGAIN);
        }
        self.strand.close();
    }
}

impl Server {
    pub(crate) fn new(listeners: Vec<Arc<dyn Listener>>) -> Self {
        let endpoints = listeners.iter().map(|listener| listener.endpoint()).collect();
        Self { listeners, endpoints, ..Self::default() }
    }

    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Begins to accept connections.
    pub(crate) fn start(&self, orb: &Orb) -> io::Result<()> {
        for listener in &self.listeners {
            let (listener, orb) = (listener.clone(), orb.clone());
            self.spawn("orb-accept", move || accept(&*listener, &orb))?;
        }
        Ok(())
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
    }

    /// Ends every connection. Requests that are being served are finished, their replies are lost.
    pub(crate) fn stop(&self) {
        {
            // Whoever waits for the end looks at both under this lock.
            let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            self.stopped.store(true, Ordering::SeqCst);
        }
        self.listeners.iter().for_each(|listener| listener.close());
        let connections = std::mem::take(&mut *self.connections.lock().unwrap_or_else(PoisonError::into_inner));
        connections.values().for_each(|line| line.part(Version::V1_2, MessageType::CloseConnection));
        self.ended.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Waits until every thread has ended.
    pub(crate) fn wait(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running > 0 || !self.is_stopped() {
            running = self.ended.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn enter(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn leave(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.ended.notify_all();
    }

    fn add(&self, line: Arc<Line>) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).insert(id, line);
        id
    }

    fn remove(&self, id: u64) {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

fn accept(listener: &dyn Listener, orb: &Orb) {
    let server = orb.server();
    server.enter();
    while !server.is_stopped() {
        match listener.accept() {
            Ok(strand) => {
                let orb = orb.clone();
                // Without a thread the connection is closed, and its client may try elsewhere.
                let _ = server.spawn("orb-connection", move || connection(strand, &orb));
            }
            Err(_) if server.is_stopped() => break,
            // A client that is gone already, or too many descriptors: neither is the end.
            Err(_) => thread::sleep(EXHAUSTED),
        }
    }
    server.leave();
}

fn connection(strand: Box<dyn Strand>, orb: &Orb) {
    let server = orb.server();
    server.enter();
    let line = Arc::new(Line { strand, sending: Mutex::new(()) });
    let id = server.add(line.clone());
    if !server.is_stopped() {
        read(&line, orb);
    }
    line.strand.close();
    server.remove(id);
    server.leave();
}

/// Serves one connection until it ends.
fn read(line: &Line, orb: &Orb) {
    let mut assembler = Assembler::new(orb.message_limit());
    let mut session = Session::default();
    loop {
        loop {
            let served = match assembler.next() {
                Ok(Some(message)) => serve(orb, &message, &mut session),
                Ok(None) => break,
                Err(broken) => Err(broken),
            };
            match served {
                Ok(Some(reply)) => {
                    if line.send(&reply, None).is_err() {
                        return;
                    }
                    session.recycle(reply);
                }
                Ok(None) if session.is_over() => return,
                Ok(None) => {}
                Err(_) => {
                    return line.part(session.version(), MessageType::MessageError);
                }
            }
            if let Some(cancelled) = session.take_cancelled() {
                assembler.forget(cancelled);
            }
        }
        match line.strand.receive(assembler.space(), None) {
            Ok(0) | Err(_) => return,
            Ok(count) => assembler.filled(count),
        }
    }
}
