//! Home-based shared virtual memory: processes that share an array of pages, each of which has a *home*.
//!
//! ```text
//!   program ── loads, stores ──▶ view ── fault ──▶ pager: fetch from the home ──▶ admit, protected
//!                                  │ first write ──▶ pager: keep a twin, allow writes
//!      barrier: what differs from the twin ──▶ sent to the home; which pages ──▶ told to all; pages that others wrote ──▶ forgotten
//! ```
//!
//! - The home's copy of a page counts. Others fetch it when they touch it, and forget it at a barrier before which it was written.
//! - What a process wrote is what differs from the twin, so that several may write different words of a page between two barriers.
//! - A word that two processes use, one of them writing, without a barrier between, may have either value.
//! - Everything goes through VMMC: pages are fetched and sent by the card straight between the memories that the processes gave to
//!   their cards; barriers are sends with notifications. The program's *view* is a second mapping of that memory.

mod array;
mod diff;
pub mod fft;
mod kernel;
pub mod lu;
mod meeting;
mod pager;

use std::collections::HashSet;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use sidestep_shm::faults::Faults;
use sidestep_shm::memory::Words;
use sidestep_sys::clock;

use crate::driver::Export;
use crate::error::{Error, Fault, Result};
use crate::id::{Address, PAGE, Rights};
use crate::process::{Attach, Process, Remote, Standing};
use crate::workload::Step;
pub use array::{Alone, Array};
pub use kernel::{Kernel, Report};
use pager::{Pager, State};

/// Words of a page.
pub const PAGE_WORDS: usize = PAGE / 8;
/// The most processes of one memory.
pub const MOST_PROCESSES: usize = 16;

/// How a process joins a shared memory.
#[derive(Debug)]
pub struct Join<'a> {
    /// The name of the memory.
    pub name: &'a str,
    /// Which of its processes this is.
    pub rank: usize,
    /// How many there are.
    pub count: usize,
    /// The home of each page.
    pub homes: Vec<u8>,
    /// The name of this process's card.
    pub card: &'a str,
    /// What starts it, if it is not there.
    pub start: Option<Command>,
}

/// A memory that processes share. One thread of each process uses it.
#[derive(Debug)]
pub struct SharedMemory {
    rank: usize,
    /// Where pages and written-page lists of each process are; the own ones are not used.
    others: Vec<Option<Other>>,
    layout: Layout,
    words: Words,
    faults: Arc<Faults>,
    pager: Pager,
    epoch: u64,
    /// Lists that have come: of which epoch's parity, from whom.
    told: HashSet<(u64, usize)>,
}

/// Another process.
#[derive(Debug, Clone, Copy)]
struct Other {
    pages: Remote,
    lists: Remote,
}

/// The memory that a process gives to its card: the shared pages, then for even and odd barriers a list of each process, then the
/// own list for even and odd ones. A list has a bit for each page.
#[derive(Debug, Clone, Copy)]
struct Layout {
    pages: usize,
    count: usize,
    list_pages: usize,
}

impl Layout {
    fn new(pages: usize, count: usize) -> Layout {
        Layout { pages, count, list_pages: pages.div_ceil(8 * PAGE) }
    }

    fn list_len(&self) -> usize {
        self.pages.div_ceil(8)
    }

    /// Where the list of a process lies, from the beginning of all lists.
    fn list(&self, parity: u64, from: usize) -> u64 {
        ((parity as usize * self.count + from) * self.list_pages * PAGE) as u64
    }

    fn lists(&self) -> Address {
        Address((self.pages * PAGE) as u64)
    }

    fn own_list(&self, parity: u64) -> Address {
        Address(self.lists().0 + self.list(0, 2 * self.count) + parity * (self.list_pages * PAGE) as u64)
    }

    fn total(&self) -> usize {
        (self.pages + (2 * self.count + 2) * self.list_pages) * PAGE
    }
}

impl SharedMemory {
    /// Joins; waits for the others.
    pub fn join(join: Join<'_>) -> Result<SharedMemory> {
        let Join { name, rank, count, homes, card, start } = join;
        let is_sound = (2..=MOST_PROCESSES).contains(&count) && rank < count && !homes.is_empty();
        if !is_sound || homes.iter().any(|home| usize::from(*home) >= count) {
            let (what, must) = ("a shared memory", "2 to 16 processes, a rank below that, and homes among them");
            return Err(Error::Parameter {
                what,
                must,
                value: format!("rank {rank} of {count}, {} pages", homes.len()),
            });
        }
        let layout = Layout::new(homes.len(), count);
        let mut process = Process::attach(Attach { name: card, memory: layout.total(), start })?;
        let faults = Arc::new(Faults::of(process.memory())?);
        let words = faults.view().words(0, layout.pages * PAGE_WORDS)?;
        let mut export = |address: Address, len: usize, rights, notify| {
            process.export(Export { address, len: len as u64, rights, notify })
        };
        let pages = export(Address(0), layout.pages * PAGE, Rights::ALL, false)?;
        let lists_len = layout.list(0, 2 * count) as usize;
        let lists = export(layout.lists(), lists_len, Rights { send: true, fetch: false }, true)?;
        let own = [pages.handle().clone(), lists.handle().clone()];
        let mut others = vec![None; count];
        for (at, [pages, lists]) in meeting::meet(name, rank, count, own)?.into_iter().enumerate() {
            if at != rank {
                others[at] = Some(Other { pages: process.import(&pages)?, lists: process.import(&lists)? });
            }
        }
        let state =
            State::new(process, rank, homes, others.iter().map(|other| other.map(|other| other.pages)).collect());
        let pager = Pager::start(faults.clone(), state)?;
        let mut memory = SharedMemory { rank, others, layout, words, faults, pager, epoch: 0, told: HashSet::new() };
        // Nobody fetches a page before all are here.
        memory.barrier()?;
        Ok(memory)
    }

    /// Which process this is.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.others.len()
    }

    /// Reads a word of the shared array.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> f64 {
        f64::from_bits(self.words.load(index, Ordering::Relaxed))
    }

    /// Writes a word of the shared array.
    #[inline]
    pub fn set(&self, index: usize, value: f64) {
        self.words.store(index, value.to_bits(), Ordering::Relaxed);
    }

    /// Waits for all processes. What any of them wrote before is seen by every one afterwards. An error of a page fault since the
    /// last barrier is told here.
    pub fn barrier(&mut self) -> Result<()> {
        let mut state = self.pager.state();
        if let Some(error) = state.take_error() {
            return Err(error);
        }
        state.send_changes()?;
        let parity = self.epoch % 2;
        let list = state.written_list(self.layout.list_len());
        state.process.write(self.layout.own_list(parity), &list)?;
        let (len, slot) = (list.len() as u64, self.layout.list(parity, self.rank));
        let own = self.layout.own_list(parity);
        for other in self.others.iter().flatten() {
            state.process.send(own, len, &other.lists, slot, true)?;
        }
        let mut written = vec![0; list.len()];
        for from in (0..self.others.len()).filter(|from| *from != self.rank) {
            hear(&mut state, &mut self.told, &self.others, &self.layout, (parity, from))?;
            let mut theirs = vec![0; list.len()];
            let at = Address(self.layout.lists().0 + self.layout.list(parity, from));
            state.process.read(at, &mut theirs)?;
            written.iter_mut().zip(theirs).for_each(|(all, one)| *all |= one);
        }
        state.settle(&self.faults, &written)?;
        self.epoch += 1;
        Ok(())
    }

    /// What the card of this process says of itself.
    pub fn standing(&mut self) -> Result<Standing> {
        self.pager.state().process.standing()
    }

    /// Leaves, with all others; what this process fetched and sent, and when it waited.
    pub fn leave(mut self) -> Result<Vec<Step>> {
        self.barrier()?;
        // Two, so that nobody waits for one that has heard the last and is gone.
        let steps = self.pager.state().take_steps();
        self.barrier()?;
        Ok(steps)
    }
}

/// Waits until a list has come.
fn hear(
    state: &mut MutexGuard<'_, State>,
    told: &mut HashSet<(u64, usize)>,
    others: &[Option<Other>],
    layout: &Layout,
    wanted: (u64, usize),
) -> Result<()> {
    while !told.remove(&wanted) {
        match state.process.wait_notice(Some(clock::now() + LOOK_NS)) {
            Ok(notice) => {
                let slot = notice.at as usize / (layout.list_pages * PAGE);
                told.insert(((slot / layout.count) as u64, slot % layout.count));
            }
            // One that is dead says nothing, and its card knows no page of it.
            Err(Error::TimedOut) => {
                if let Some(other) = &others[wanted.1] {
                    let probe = state.process.fetch(&other.pages, 0, 0, Address(0));
                    probe.map_err(|error| lost(wanted.1, error))?;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A process that is gone while others wait for it.
fn lost(rank: usize, error: Error) -> Error {
    match error {
        Error::Refused(Fault::UnknownBuffer | Fault::Unreachable) => Error::RankGone(rank),
        error => error,
    }
}

/// How long a process is waited for before it is looked whether it lives.
const LOOK_NS: u64 = 50_000_000;

#[cfg(test)]
mod tests;
