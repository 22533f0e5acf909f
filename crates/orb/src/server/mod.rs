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

/// How long to wait before accepting again when the process has no descriptors left.
const EXHAUSTED: Duration = Duration::from_millis(10);

#[derive(Default)]
pub(crate) struct Server {
    listeners: Vec<Arc<dyn Listener>>,
    endpoints: Vec<Endpoint>,
    connections: Mutex<HashMap<u64, Arc<dyn Strand>>>,
    next_id: AtomicU64,
    stopped: AtomicBool,
    /// The number of threads that are not done; whoever stops the broker waits for none.
    running: Mutex<usize>,
    ended: Condvar,
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
        self.stopped.store(true, Ordering::SeqCst);
        self.listeners.iter().for_each(|listener| listener.close());
        let connections = std::mem::take(&mut *self.connections.lock().unwrap_or_else(PoisonError::into_inner));
        for strand in connections.values() {
            let farewell = giop::bare(Version::V1_2, MessageType::CloseConnection);
            let _ = strand.send(&farewell, Some(Instant::now() + PARTING));
            strand.close();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Waits until every thread has ended.
    pub(crate) fn wait(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running > 0 || !self.is_stopped() {
            let waited = self.ended.wait_timeout(running, PARTING);
            running = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn enter(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn leave(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.ended.notify_all();
    }

    fn add(&self, strand: Arc<dyn Strand>) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).insert(id, strand);
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
                let _ = server.spawn("orb-connection", move || connection(strand.into(), &orb));
            }
            Err(_) if server.is_stopped() => break,
            // A client that is gone already, or too many descriptors: neither is the end.
            Err(_) => thread::sleep(EXHAUSTED),
        }
    }
    server.leave();
}

fn connection(strand: Arc<dyn Strand>, orb: &Orb) {
    let server = orb.server();
    server.enter();
    let id = server.add(strand.clone());
    if !server.is_stopped() {
        read(&*strand, orb);
    }
    strand.close();
    server.remove(id);
    server.leave();
}

/// Serves one connection until it ends.
fn read(strand: &dyn Strand, orb: &Orb) {
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
                    if strand.send(&reply, None).is_err() {
                        return;
                    }
                    session.recycle(reply);
                }
                Ok(None) if session.is_over() => return,
                Ok(None) => {}
                Err(_) => {
                    let complaint = giop::bare(session.version(), MessageType::MessageError);
                    let _ = strand.send(&complaint, Some(Instant::now() + PARTING));
                    return;
                }
            }
            if let Some(cancelled) = session.take_cancelled() {
                assembler.forget(cancelled);
            }
        }
        match strand.receive(assembler.space(), None) {
            Ok(0) | Err(_) => return,
            Ok(count) => assembler.filled(count),
        }
    }
}
