//! The dispatcher: few threads for many connections.
//!
//! One thread leads: it looks for messages, and serves what it finds itself, so that a call needs no other thread. Another is
//! on standby. It sleeps while the leader finds nothing to do, and otherwise looks from time to time whether the leader is
//! still with the same connection, and sleeps; if so, a servant blocks, and the standby leads from there on. A servant that
//! computes gets more time, for it may just as well wait for a processor. The former leader waits for its turn when its
//! servant is done.
//!
//! After that has happened, leaders hand over before they serve, for some messages: servants that block once will again.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
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
    /// What the kernel says of the thread that leads.
    leader: Option<Arc<File>>,
    has_standby: bool,
    threads: usize,
    idle: usize,
    over: bool,
}

struct Desk {
    reported: Vec<u64>,
    /// Connections that were served, and when.
    active: VecDeque<(Arc<Connection>, Instant)>,
    /// Connections found since the watch was last asked.
    found: usize,
}

/// The most messages of one connection that are served before others have their turn.
const TURN: usize = 16;

/// The most connections that are looked at directly.
const MOST_ACTIVE: usize = 16;

/// The most connections that are served before the watch is asked for others.
const FINDS: usize = 16;

/// Room for what is reported at once; if more comes, the room grows. A connection that is served while it is looked at directly
/// is reported for each of its messages all the same.
const REPORTS: usize = 256;

/// How many messages are served after handing over, once a servant has taken long.
const WARY: u32 = 64;

/// How many times longer a servant may compute than block.
const PATIENCE: u32 = 8;

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
            ready: Mutex::new(VecDeque::with_capacity(REPORTS)),
            desk: Mutex::new(Desk::new()),
        }
    }

    pub(super) fn start(self: &Arc<Self>, orb: &Orb) -> io::Result<()> {
        self.spawn(orb, self.state())
    }

    /// Takes a connection on.
    pub(super) fn add(&self, connection: &Connection) -> io::Result<()> {
        connection.attach(&self.watch)?;
        // Something may have come before it was attached.
        self.make_ready(connection.token);
        self.watch.wake();
        Ok(())
    }

    pub(super) fn stop(&self) {
        self.state().over = true;
        self.standby.notify_all();
        self.spare.notify_all();
        self.watch.wake();
    }

    /// Starts a thread, which counts as idle from now on.
    fn spawn(self: &Arc<Self>, orb: &Orb, mut state: MutexGuard<'_, State>) -> io::Result<()> {
        state.threads += 1;
        state.idle += 1;
        drop(state);
        Counts::add(&orb.server().counts.started, 1);
        let dispatcher = self.clone();
        let spawned = orb.server().spawn("orb-dispatcher", orb, move |orb| {
            let own = File::open("/proc/thread-self/stat").ok().map(Arc::new);
            while dispatcher.follow(orb) {
                dispatcher.state().leader = own.clone();
                dispatcher.lead(orb);
                dispatcher.state().idle += 1;
            }
        });
        if spawned.is_err() {
            let mut state = self.state();
            state.threads -= 1;
            state.idle -= 1;
        }
        spawned
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make_ready(&self, token: u64) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(token);
    }

    /// Waits until this thread is to lead; false if it is to end.
    fn follow(&self, orb: &Orb) -> bool {
        let counts = &orb.server().counts;
        let mut state = self.state();
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
        let mut state = state;
        for look in 1..=PATIENCE {
            let waited = self.standby.wait_timeout(state, self.settings.stall);
            let timed_out;
            (state, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
            if !timed_out.timed_out() || state.over {
                return (state, false);
            }
            let is_stuck = self.phase.load(Ordering::SeqCst) == seen;
            if !is_stuck || look == PATIENCE || !state.leader.as_deref().is_some_and(is_running) {
                break;
            }
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
                // The connection may have more, which the leader does not know of.
                return self.watch.wake();
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
                return self.watch.wake();
            }
        }
        self.state().led = false;
    }

    /// Sees to it that somebody can take over.
    fn have_standby(self: &Arc<Self>, orb: &Orb) {
        let state = self.state();
        if state.idle > 0 || state.over || state.threads >= self.settings.threads {
            return;
        }
        // Without another thread this one goes on alone.
        let _ = self.spawn(orb, state);
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
        // Whoever finds something at once needs no clock.
        let mut began = None;
        let mut looks = 0;
        loop {
            // Connections that always have something to be served keep nobody from the others.
            if desk.found < FINDS
                && let Some(connection) = self.next_ready(orb).or_else(|| desk.next_active(self.settings.active))
            {
                desk.found += 1;
                desk.keep(&connection);
                return Some(connection);
            }
            if orb.server().is_stopped() {
                desk.active.clear();
                return None;
            }
            let began = began.get_or_insert_with(Instant::now);
            let is_due = std::mem::take(&mut desk.found) >= FINDS;
            let sleeps = !is_due && looks % LOOKS == LOOKS - 1 && began.elapsed() >= self.settings.spin;
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
    fn new() -> Self {
        Self { reported: Vec::with_capacity(REPORTS), active: VecDeque::with_capacity(MOST_ACTIVE), found: 0 }
    }

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

/// Whether a thread has or wants a processor.
fn is_running(stat: &File) -> bool {
    let mut text = [0; 128];
    let count = stat.read_at(&mut text, 0).unwrap_or(0);
    // The name of the thread, which may have any characters, ends with the last parenthesis.
    let name_ends = text[..count].iter().rposition(|byte| *byte == b')');
    name_ends.is_some_and(|at| text[at..].starts_with(b") R"))
}
