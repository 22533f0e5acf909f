//! Which threads serve connections, and the cache of those that have a connection each.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::connection::Connection;
use super::counters::Counts;
use super::serve_connection;
use crate::Orb;

/// Which threads serve the connections of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// Each connection has one: the shortest way for few connections.
    #[default]
    PerConnection,
    /// Idle connections have none. One thread looks after all connections of a transport, and serves what comes; another
    /// takes its place when a servant takes long.
    Dispatcher(Dispatching),
}

/// How a dispatcher behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatching {
    /// How long it goes on looking for messages after it has served one, before it sleeps.
    pub spin: Duration,
    /// How long a connection that was served is looked at directly.
    pub active: Duration,
    /// How long a servant may take before another thread looks after the other connections.
    pub stall: Duration,
    /// The most threads of one dispatcher. With all of them in servants, other requests wait.
    pub threads: usize,
}

impl Default for Dispatching {
    fn default() -> Self {
        Self {
            spin: Duration::from_micros(50),
            active: Duration::from_micros(20),
            stall: Duration::from_millis(2),
            threads: 256,
        }
    }
}

/// Threads that have no connection at the moment.
#[derive(Default)]
pub(super) struct Cache {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Connection>>,
    idle: usize,
    stopped: bool,
}

/// How many threads wait for a connection, and for how long.
const MOST: usize = 16;
const LINGER: Duration = Duration::from_secs(5);

impl Cache {
    /// Has a thread serve the connection: one that waits, or a new one.
    pub(super) fn run(cache: &Arc<Self>, orb: &Orb, connection: Arc<Connection>) -> io::Result<()> {
        {
            let mut state = cache.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.idle > state.waiting.len() {
                state.waiting.push_back(connection);
                cache.changed.notify_one();
                return Ok(());
            }
        }
        Counts::add(&orb.server().counts.started, 1);
        let cache = cache.clone();
        orb.server().spawn("orb-connection", orb, move |orb| {
            let mut next = Some(connection);
            while let Some(connection) = next {
                serve_connection(&connection, orb);
                drop(connection);
                next = cache.next();
            }
        })
    }

    fn next(&self) -> Option<Arc<Connection>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.stopped || state.idle >= MOST {
            return None;
        }
        state.idle += 1;
        let nothing = |state: &mut State| state.waiting.is_empty() && !state.stopped;
        let waited = self.changed.wait_timeout_while(state, LINGER, nothing);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.idle -= 1;
        state.waiting.pop_front()
    }

    pub(super) fn stop(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.changed.notify_all();
    }
}
