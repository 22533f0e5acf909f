//! The dispatcher: few threads for many connections.
//!
//! One thread leads: it looks for messages, and serves what it finds itself, so that a call needs no other thread. Another is
//! on standby. It sleeps while the leader finds nothing to do, and otherwise looks from time to time whether the leader is
//! still with the same connection; if so, a servant takes long, and the standby leads from there on. The former leader
//! waits for its turn when its servant is done.
//!
//! After that has happened, leaders hand over before they serve, for some messages: servants that block once will again.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Dispatching;
use super::connection::{Connection, Served};
use super::counters::Counts;
use crate::Orb;
use crate::strand::Watch;

pub(super) struct Dispatcher {
    watch: Watch,
    settings: Dispatching,
    state: Mutex<State>,
    /// What the standby waits for.
    standby: Condvar,
    /// What threads wait for that are neither leader nor standby.
    spare: Condvar,
    /// Even while the leader looks for messages, odd while it serves. A standby that takes over counts on, which the former
    /// leader sees.
    phase: AtomicU64,
    /// The standby sleeps until the leader serves something.
    standby_sleeps: AtomicBool,
    /// How many messages are served after handing over.
    wary: AtomicU32,
    /// Connections that have something to be served.
    ready: Mutex<VecDeque<u64>>,
    /// What only the leader uses.
    desk: Mutex<Desk>,
}

#[derive(Default)]
struct State {
    led: bool,
    has_standby: bool,
    threads: usize,
    idle: usize,
    over: bool,
}

#[derive(Default)]
struct Desk {
    reported: Vec<u64>,
    /// Connections that were served, and when.
    active: VecDeque<(Arc<Connection>, Instant)>,
}

/// The most messages of one connection that are served before others have their turn.
const TURN: usize = 16;

/// The most connections that are looked at directly.
const MOST_ACTIVE: usize = 16;

/// How many messages are served after handing over, once a servant has taken long.
const WARY: u32 = 64;

/// How long a thread that is not needed waits.
const LINGER: Duration = Duration::from_secs(5);

/// Looks between which a leader that finds nothing lets others have the processor.
const LOOKS: u32 = 32;

impl Dispatcher {
    pub(super) fn new(watch: Watch, settings: Dispatching) -> Self {
        Self {
            watch,
            settings,
            state: Mutex::default(),
            standby: Condvar::new(),
            spare: Condvar::new(),
            phase: AtomicU64::new(0),
            standby_sleeps: AtomicBool::new(false),
            wary: AtomicU32::new(0),
            ready: Mutex::default(),
            desk: Mutex::default(),
        }
    }

    pub(super) fn start(self: &Arc<Self>, orb: &Orb) -> io::Result<()> {
        self.state().threads += 1;
        self.spawn(orb)
    }

    /// Takes a connection on.
    pub(super) fn add(&self, connection: &Connection) -> io::Result<()> {
        connection.line.strand.attach(&self.watch, connection.token)?;
        // Something may have come before it was attached.
        self.make_ready(connection.token);
        Ok(())
    }

    pub(super) fn stop(&self) {
        self.state().over = true;
        self.standby.notify_all();
        self.spare.notify_all();
        self.watch.wake();
    }

    fn spawn(self: &Arc<Self>, orb: &Orb) -> io::Result<()> {
        Counts::add(&orb.server().counts.started, 1);
        let dispatcher = self.clone();
        let spawned = orb.server().spawn("orb-dispatcher", orb, move |orb| {
            while dispatcher.follow(orb) {
                dispatcher.lead(orb);
            }
        });
        if spawned.is_err() {
            self.state().threads -= 1;
        }
        spawned
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make_ready(&self, token: u64) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(token);
        self.watch.wake();
    }

    /// Waits until this thread is to lead; false if it is to end.
    fn follow(&self, orb: &Orb) -> bool {
        let counts = &orb.server().counts;
        let mut state = self.state();
        state.idle += 1;
        let leads = loop {
            if state.over {
                break false;
            }
            if !state.led {
                state.led = true;
                break true;
            }
            if state.has_standby {
                let (woken, waited) = self.spare.wait_timeout(state, LINGER).unwrap_or_else(PoisonError::into_inner);
                state = woken;
                if waited.timed_out() && state.led && state.has_standby {
                    break false;
                }
                continue;
            }
            state.has_standby = true;
            let took_over;
            (state, took_over) = self.stand_by(state, counts);
            state.has_standby = false;
            if took_over {
                break true;
            }
        };
        state.idle -= 1;
        if !leads {
            state.threads -= 1;
        }
        // The next one may stand by.
        self.spare.notify_one();
        leads
    }

    /// Waits as the standby; true if it has taken over.
    fn stand_by<'a>(&'a self, state: MutexGuard<'a, State>, counts: &Counts) -> (MutexGuard<'a, State>, bool) {
        let seen = self.phase.load(Ordering::SeqCst);
        if seen % 2 == 0 {
            // The leader changes the phase, and then looks whether somebody sleeps.
            self.standby_sleeps.store(true, Ordering::SeqCst);
            let woken = if self.phase.load(Ordering::SeqCst) == seen {
                self.standby.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                state
            };
            self.standby_sleeps.store(false, Ordering::SeqCst);
            return (woken, false);
        }
        let waited = self.standby.wait_timeout(state, self.settings.stall);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if !waited.timed_out() || state.over {
            return (state, false);
        }
        let next = seen + 1;
        if self.phase.compare_exchange(seen, next, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            Counts::add(&counts.spurious, 1);
            return (state, false);
        }
        Counts::add(&counts.switches, 1);
        self.wary.store(WARY, Ordering::Relaxed);
        (state, true)
    }

    /// Leads until another thread does, or the end.
    fn lead(self: &Arc<Self>, orb: &Orb) {
        while let Some(connection) = self.find(orb) {
            self.have_standby(orb);
            let wary = self.wary.load(Ordering::Relaxed);
            if wary > 0 && self.hand_over() {
                let quick = self.serve(&connection, orb);
                if quick {
                    self.wary.store(wary - 1, Ordering::Relaxed);
                }
                Counts::add(&orb.server().counts.switches, 1);
                return;
            }
            let serving = self.phase.load(Ordering::SeqCst) + 1;
            self.phase.store(serving, Ordering::SeqCst);
            if self.standby_sleeps.load(Ordering::SeqCst) {
                drop(self.state());
                self.standby.notify_one();
            }
            self.serve(&connection, orb);
            let next = serving + 1;
            if self.phase.compare_exchange(serving, next, Ordering::SeqCst, Ordering::SeqCst).is_err() {
                return;
            }
        }
        self.state().led = false;
    }

    /// Sees to it that somebody can take over.
    fn have_standby(self: &Arc<Self>, orb: &Orb) {
        let mut state = self.state();
        if state.idle > 0 || state.over || state.threads >= self.settings.threads {
            return;
        }
        state.threads += 1;
        drop(state);
        // Without another thread this one goes on alone.
        let _ = self.spawn(orb);
    }

    /// Lets the standby lead, if there is one.
    fn hand_over(&self) -> bool {
        let mut state = self.state();
        if state.idle == 0 {
            return false;
        }
        state.led = false;
        drop(state);
        self.standby.notify_one();
        true
    }

    /// Serves a connection that was claimed; whether that was quick.
    fn serve(&self, connection: &Arc<Connection>, orb: &Orb) -> bool {
        let counts = &orb.server().counts;
        let began = Instant::now();
        loop {
            match connection.serve_ready(orb, Some(began), TURN) {
                Served::Over => {
                    orb.server().remove(connection);
                    break;
                }
                Served::Some => {
                    Counts::add(&counts.served, TURN);
                    if connection.release() {
                        // There may be more, which nobody is told of.
                        self.make_ready(connection.token);
                        break;
                    }
                }
                Served::All(count) => {
                    Counts::add(&counts.served, count);
                    Counts::add(&counts.spurious, usize::from(count == 0));
                    if connection.release() {
                        break;
                    }
                }
            }
        }
        began.elapsed() < self.settings.stall
    }

    /// Waits for a connection that has something to be served, and claims it; `None` at the end.
    fn find(&self, orb: &Orb) -> Option<Arc<Connection>> {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let mut looks = 0;
        loop {
            if let Some(connection) = self.next_ready(orb).or_else(|| desk.next_active(self.settings.active)) {
                desk.keep(&connection);
                return Some(connection);
            }
            if orb.server().is_stopped() {
                desk.active.clear();
                return None;
            }
            let sleeps = looks % LOOKS == LOOKS - 1 && began.elapsed() >= self.settings.spin;
            if sleeps {
                Counts::add(&orb.server().counts.sleeps, 1);
            }
            // A watch that fails for good cannot be told from one that has nothing; the end is looked for above.
            if self.watch.wait(&mut desk.reported, !sleeps).is_err() {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).extend(desk.reported.drain(..));
            looks += 1;
            if looks % LOOKS == 0 {
                std::thread::yield_now();
            }
        }
    }

    fn next_ready(&self, orb: &Orb) -> Option<Arc<Connection>> {
        loop {
            let token = self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
            if let Some(connection) = orb.server().connection(token).filter(|connection| connection.claim()) {
                return Some(connection);
            }
        }
    }
}

impl Desk {
    /// A connection that has something to be served, of those that were served lately.
    fn next_active(&mut self, active: Duration) -> Option<Arc<Connection>> {
        for _ in 0..self.active.len() {
            let (connection, since) = self.active.pop_front()?;
            if connection.has_news() && connection.claim() {
                return Some(connection);
            }
            if since.elapsed() < active {
                self.active.push_back((connection, since));
            }
        }
        None
    }

    fn keep(&mut self, connection: &Arc<Connection>) {
        self.active.retain(|(each, _)| !Arc::ptr_eq(each, connection));
        if self.active.len() < MOST_ACTIVE {
            self.active.push_back((connection.clone(), Instant::now()));
        }
    }
}
