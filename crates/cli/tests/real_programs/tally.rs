//! Counts the connections that leave TCP while programs come and go, as the registry of their stage says.

use std::{
    cell::Cell,
    collections::BTreeMap,
    path::Path,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use sidestep_sockets::registry::{Registry, View};

thread_local! {
    static PROMOTED: Cell<u64> = const { Cell::new(0) };
}

/// Counts until it is dropped, and adds what it has counted to what [`take`] returns.
///
/// What a process has counted stays in the registry when it has ended, until another one needs its record: only a process that is
/// replaced between two looks is missed.
pub struct Tally {
    stop: Option<Sender<()>>,
    counting: Option<JoinHandle<u64>>,
}

/// How many connections were promoted in the stages of this thread since the last call. Each has two ends that are counted.
pub fn take() -> u64 {
    PROMOTED.take().div_ceil(2)
}

impl Tally {
    /// Begins to look at the registries in this folder.
    pub fn begin(registry: &Path) -> Tally {
        let (stop, stopped) = mpsc::channel();
        let folder = registry.display().to_string();
        let counting = thread::spawn(move || {
            // A registry lasts as long as someone has it.
            let held = Registry::open(&folder).ok();
            let mut ends = BTreeMap::new();
            loop {
                let end = stopped.recv_timeout(BETWEEN_LOOKS) != Err(RecvTimeoutError::Timeout);
                Registry::look_at_all(&folder).iter().for_each(|view| look(view, &mut ends));
                if end {
                    break;
                }
            }
            drop(held);
            ends.values().sum()
        });
        Tally { stop: Some(stop), counting: Some(counting) }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        drop(self.stop.take());
        let counted = self.counting.take().and_then(|counting| counting.join().ok()).unwrap_or(0);
        PROMOTED.set(PROMOTED.get() + counted);
    }
}

/// The promoted ends of each process, by its number and when it came.
fn look(view: &View, ends: &mut BTreeMap<(u32, u64), u64>) {
    let mut open = BTreeMap::new();
    for socket in view.sockets().iter().filter(|socket| socket.promoted_at != 0) {
        *open.entry(socket.pid).or_insert(0) += 1;
    }
    let mut latest: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for process in view.processes() {
        let counted = (process.since, process.ended.promoted);
        let seen = ends.entry((process.pid, process.since)).or_insert(0);
        *seen = (*seen).max(process.ended.promoted);
        let known = latest.entry(process.pid).or_insert(counted);
        *known = counted.max(*known);
    }
    for (pid, open) in open {
        if let Some((since, ended)) = latest.get(&pid) {
            let seen = ends.entry((pid, *since)).or_insert(0);
            *seen = (*seen).max(ended + open);
        }
    }
}

/// Short beside the life of most programs, long beside what a look costs.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
