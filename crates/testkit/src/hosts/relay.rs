//! A relay between two tunnels: every packet is held for a while, some are lost, doubled or overtaken.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use crate::seeded::Seeded;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use sidestep_sys::clock;

/// What happens to packets, in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weather {
    /// Where the generator starts.
    pub seed: u64,
    /// How long each packet is held, at least.
    pub delay_ns: u64,
    /// How much longer some are held; those behind them overtake them.
    pub jitter_ns: u64,
    /// How many of a thousand are lost.
    pub lost_per_mille: u32,
    /// How many of a thousand come twice.
    pub doubled_per_mille: u32,
}

/// The relay. Dropping it cuts the connection without a word.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    weather: Mutex<Weather>,
    /// Nothing passes.
    cut: AtomicBool,
    over: AtomicBool,
    passed: AtomicU64,
    lost: AtomicU64,
    overtaken: AtomicU64,
}

/// Packets on their way, by the time at which they are due.
type Due = BTreeMap<(u64, u64), (usize, Vec<u8>)>;

impl Default for Weather {
    fn default() -> Self {
        Weather { seed: 1, delay_ns: 0, jitter_ns: 0, lost_per_mille: 0, doubled_per_mille: 0 }
    }
}

impl Relay {
    pub(super) fn start(ends: [OwnedFd; 2], weather: Weather) -> io::Result<Relay> {
        let shared = Arc::new(Shared {
            weather: Mutex::new(weather),
            cut: AtomicBool::new(false),
            over: AtomicBool::new(false),
            passed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            overtaken: AtomicU64::new(0),
        });
        let seen = shared.clone();
        let thread = std::thread::Builder::new().name("relay".into()).spawn(move || run(&ends, &seen))?;
        Ok(Relay { shared, thread: Some(thread) })
    }

    /// From now on nothing passes, or everything again.
    pub fn cut(&self, cut: bool) {
        self.shared.cut.store(cut, Ordering::Release);
    }

    /// Changes the weather.
    pub fn set(&self, weather: Weather) {
        *self.shared.weather.lock().expect("no panic in a relay") = weather;
    }

    /// Packets that passed, were lost, and were overtaken, so far.
    pub fn counts(&self) -> (u64, u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.shared.passed), count(&self.shared.lost), count(&self.shared.overtaken))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(ends: &[OwnedFd; 2], shared: &Shared) {
    let mut random = Seeded::new(shared.weather.lock().expect("no panic in a relay").seed);
    let (mut due, mut number) = (Due::new(), 0);
    let mut packet = vec![0; 64 * 1024];
    while !shared.over.load(Ordering::Acquire) {
        let now = clock::now();
        while let Some(entry) = due.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, packet) = entry.remove();
            // An interface that is down takes nothing.
            let _ = rustix::io::write(&ends[to], &packet);
        }
        for (from, end) in ends.iter().enumerate() {
            for _ in 0..64 {
                match rustix::io::read(end, &mut packet) {
                    Ok(len) => accept(&packet[..len], 1 - from, &mut due, &mut number, &mut random, shared),
                    Err(Errno::INTR) => {}
                    Err(_) => break,
                }
            }
        }
        let next =
            due.keys().next().map_or(MOST_SLEEP_NS, |(at, _)| at.saturating_sub(clock::now()).min(MOST_SLEEP_NS));
        let limit = Timespec { tv_sec: 0, tv_nsec: next as i64 };
        let mut sets = [
            PollFd::from_borrowed_fd(ends[0].as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(ends[1].as_fd(), PollFlags::IN),
        ];
        let _ = poll(&mut sets, Some(&limit));
    }
}

fn accept(packet: &[u8], to: usize, due: &mut Due, number: &mut u64, random: &mut Seeded, shared: &Shared) {
    let weather = *shared.weather.lock().expect("no panic in a relay");
    if shared.cut.load(Ordering::Acquire) || random.chance(weather.lost_per_mille) {
        shared.lost.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let copies = 1 + usize::from(random.chance(weather.doubled_per_mille));
    for _ in 0..copies {
        let late = if weather.jitter_ns > 0 { random.below(weather.jitter_ns) } else { 0 };
        let at = clock::now() + weather.delay_ns + late;
        if due.iter().any(|((other, _), (end, _))| *end == to && *other > at) {
            shared.overtaken.fetch_add(1, Ordering::Relaxed);
        }
        *number += 1;
        due.insert((at, *number), (to, packet.to_vec()));
        shared.passed.fetch_add(1, Ordering::Relaxed);
    }
}

/// The longest the relay does not look whether it is over.
const MOST_SLEEP_NS: u64 = 10_000_000;
