//! The serving side: listeners, connections, and the threads that serve them.

mod connection;
mod counters;
mod dispatcher;
mod line;
mod prediction;
mod serve;
mod threads;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sidestep_wire::giop::{MessageType, Version};

use self::connection::{Connection, Served};
use self::counters::Counts;
use self::dispatcher::Dispatcher;
use self::threads::Cache;
use crate::Orb;
use crate::strand::{Endpoint, Listener, Strand};

pub use counters::Counters;
pub(crate) use line::Line;
pub(crate) use serve::{Session, serve, serve_predicted};
pub use threads::{Dispatching, Threads};

/// How long to wait before accepting again when the process has no descriptors left.
const EXHAUSTED: Duration = Duration::from_millis(10);

#[derive(Default)]
pub(crate) struct Server {
    listeners: Vec<Arc<dyn Listener>>,
    endpoints: Vec<Endpoint>,
    threads: Threads,
    cache: Arc<Cache>,
    dispatchers: Mutex<Vec<Arc<Dispatcher>>>,
    connections: Mutex<HashMap<u64, Arc<Connection>>>,
    next_id: AtomicU64,
    stopped: AtomicBool,
    /// The number of threads that are not done.
    running: Mutex<usize>,
    ended: Condvar,
    counts: Counts,
}

impl Server {
    pub(crate) fn new(listeners: Vec<Arc<dyn Listener>>, threads: Threads) -> Self {
        let endpoints = listeners.iter().map(|listener| listener.endpoint()).collect();
        Self { listeners, endpoints, threads, ..Self::default() }
    }

    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counts.look()
    }

    /// Begins to accept connections.
    pub(crate) fn start(&self, orb: &Orb) -> io::Result<()> {
        for listener in &self.listeners {
            let dispatcher = match self.threads {
                Threads::PerConnection => None,
                Threads::Dispatcher(settings) => {
                    let dispatcher = Arc::new(Dispatcher::new(listener.watch()?, settings));
                    dispatcher.start(orb)?;
                    self.dispatchers.lock().unwrap_or_else(PoisonError::into_inner).push(dispatcher.clone());
                    Some(dispatcher)
                }
            };
            let listener = listener.clone();
            self.spawn("orb-accept", orb, move |orb| accept(&*listener, orb, dispatcher.as_deref()))?;
        }
        Ok(())
    }

    /// Starts a thread that counts as one of the server.
    fn spawn(&self, name: &str, orb: &Orb, run: impl FnOnce(&Orb) + Send + 'static) -> io::Result<()> {
        self.enter();
        let owned = orb.clone();
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || {
            run(&owned);
            owned.server().leave();
        });
        if spawned.is_err() {
            self.leave();
        }
        spawned.map(drop)
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
        connections.values().for_each(|each| each.line.part(Version::V1_2, MessageType::CloseConnection));
        let dispatchers = std::mem::take(&mut *self.dispatchers.lock().unwrap_or_else(PoisonError::into_inner));
        dispatchers.iter().for_each(|dispatcher| dispatcher.stop());
        self.cache.stop();
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

    fn add(&self, strand: Strand, limit: usize) -> Arc<Connection> {
        let token = self.next_id.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection::new(token, strand, limit));
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).insert(token, connection.clone());
        connection
    }

    fn connection(&self, token: u64) -> Option<Arc<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).get(&token).cloned()
    }

    fn remove(&self, connection: &Connection) {
        connection.line.close();
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).remove(&connection.token);
    }
}

fn accept(listener: &dyn Listener, orb: &Orb, dispatcher: Option<&Dispatcher>) {
    let server = orb.server();
    while !server.is_stopped() {
        match listener.accept() {
            Ok(strand) => {
                let connection = server.add(strand, orb.message_limit());
                // Whoever stops the server before this has not seen the connection.
                if server.is_stopped() {
                    return server.remove(&connection);
                }
                let served = match dispatcher {
                    Some(dispatcher) => dispatcher.add(&connection),
                    None => Cache::run(&server.cache, orb, connection.clone()),
                };
                // Without a thread the connection is closed, and its client may try elsewhere.
                if served.is_err() {
                    server.remove(&connection);
                }
            }
            Err(_) if server.is_stopped() => break,
            // A client that is gone already, or too many descriptors: neither is the end.
            Err(_) => thread::sleep(EXHAUSTED),
        }
    }
}

/// Serves one connection until it ends.
fn serve_connection(connection: &Connection, orb: &Orb) {
    let server = orb.server();
    while !server.is_stopped() && connection.serve_ready(orb, None, usize::MAX) != Served::Over {}
    server.remove(connection);
}
