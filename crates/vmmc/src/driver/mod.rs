//! The driver: the tables on the host, and what is done about a miss. Without I/O: pages are pinned by a [`Pinning`].
//!
//! A miss goes the way of the thesis (figure 3.1), and each step has its time: the interrupt makes a [descriptor](MissEvent), which
//! waits in a [queue](MissQueue) until the thread takes it, resolves it and writes the entries into the reserved slot.

mod bins;
mod queue;

pub use bins::{BINS, Bins};
pub use queue::{MissEvent, MissQueue, Timing};

use std::collections::{HashMap, HashSet};

use crate::card::{Fill, Miss};
use crate::cbh::{BufferTable, Descriptor};
use crate::error::{Error, Result};
use crate::id::{Address, BufferId, Cbh, Frame, Key, PAGE, Page, ProcessId, Rights};
use crate::vmh::cache::Tag;
use crate::vmh::table::HostTable;
use crate::vmh::{Entry, Slot};

/// What pins pages.
///
/// - A frame is given out for one page at a time, and is that page's until `unpin`.
/// - `pin` of a page that is pinned is not called.
pub trait Pinning {
    /// Pins pages of a process, and says for each of them where it is or why not.
    fn pin(&mut self, process: ProcessId, first: Page, count: usize) -> Vec<Result<Frame, PinFault>>;
    /// Unpins a page.
    fn unpin(&mut self, process: ProcessId, page: Page, frame: Frame);
}

/// Why a page was not pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinFault {
    /// The process has no such page.
    Unmapped,
    /// No more can be pinned.
    Limit,
}

/// How many pages of a process may be pinned: when `high` is reached, pages are given back until `low` are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// So many are too many.
    pub high: usize,
    /// So many may stay.
    pub low: usize,
}

/// What a process exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Export {
    /// Where it begins.
    pub address: Address,
    /// How long it is.
    pub len: u64,
    /// What it may be used for.
    pub rights: Rights,
    /// Whether its owner wants to be told of sends that ask for it.
    pub notify: bool,
}

/// The host's side of a card.
#[derive(Debug)]
pub struct Driver<P> {
    pinning: P,
    /// Pages of a line.
    line: usize,
    marks: Marks,
    processes: HashMap<ProcessId, Process>,
    buffers: BufferTable,
    mirror: Mirror,
    /// Pages that could not be pinned.
    failures: u64,
    unpinned: u64,
}

#[derive(Debug)]
struct Process {
    /// Bytes of memory.
    memory: u64,
    table: HostTable,
    next_buffer: u32,
}

/// What the card may have in its cache: what was filled, and not replaced by a later miss. It may lag behind by replacements
/// that the driver has not heard of, never by fills, since those are its own.
#[derive(Debug, Default)]
struct Mirror {
    by_slot: HashMap<Slot, Tag>,
    cached: HashSet<Tag>,
}

impl Marks {
    /// Whether they make sense.
    pub fn check(&self, line: usize) -> Result<()> {
        if self.low >= self.high || self.high < 2 * line {
            let must = "low below high, and high at least two lines of pages";
            let value = format!("low {} high {}", self.low, self.high);
            return Err(Error::Parameter { what: "the water marks", must, value });
        }
        Ok(())
    }
}

impl Default for Marks {
    fn default() -> Marks {
        // 256 MiB a process, and three quarters of it.
        Marks { high: 65536, low: 49152 }
    }
}

impl<P: Pinning> Driver<P> {
    /// A driver of a card whose lines have so many pages, for so many buffers.
    pub fn new(pinning: P, line: usize, marks: Marks, buffers: usize) -> Result<Driver<P>> {
        marks.check(line)?;
        Ok(Driver {
            pinning,
            line,
            marks,
            processes: HashMap::new(),
            buffers: BufferTable::new(buffers),
            mirror: Mirror::default(),
            failures: 0,
            unpinned: 0,
        })
    }

    /// What pins.
    pub fn pinning(&mut self) -> &mut P {
        &mut self.pinning
    }

    /// Pages that are pinned, of all processes.
    #[must_use]
    pub fn pinned(&self) -> usize {
        self.processes.values().map(|process| process.table.pinned()).sum()
    }

    /// Pages that were wanted and could not be pinned.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Pages that were given back to stay below the marks.
    #[must_use]
    pub fn unpinned(&self) -> u64 {
        self.unpinned
    }

    /// Other water marks, from the next miss on.
    pub fn set_marks(&mut self, marks: Marks) -> Result<()> {
        marks.check(self.line)?;
        self.marks = marks;
        Ok(())
    }

    /// A process comes, with so many bytes of memory.
    pub fn attach(&mut self, process: ProcessId, memory: u64) {
        self.processes.insert(process, Process { memory, table: HostTable::default(), next_buffer: 1 });
    }

    /// A process goes: its buffers are gone at once.
    pub fn detach(&mut self, process: ProcessId) {
        self.buffers.purge(process);
    }

    /// The card uses nothing of the process any more: its pages are unpinned.
    pub fn release(&mut self, process: ProcessId) {
        self.mirror.forget(process);
        let Some(mut gone) = self.processes.remove(&process) else { return };
        gone.table.reclaim(0, |_| false, |page, frame| self.pinning.unpin(process, page, frame));
    }

    /// Exports a range. The key must be one that nobody can guess.
    pub fn register(&mut self, process: ProcessId, export: Export, key: Key) -> Result<(Cbh, Descriptor)> {
        let own = self.processes.get_mut(&process).ok_or(Error::NoProcess(process))?;
        let Export { address, len, rights, notify } = export;
        if address.0.checked_add(len).is_none_or(|end| end > own.memory) {
            return Err(Error::Range { address: address.0, len, memory: own.memory });
        }
        let mut cbh = Cbh { process, buffer: BufferId(own.next_buffer) };
        while self.buffers.find(cbh).is_some() {
            cbh.buffer.0 = cbh.buffer.0.wrapping_add(1);
        }
        own.next_buffer = cbh.buffer.0.wrapping_add(1);
        let descriptor = Descriptor { address, len, key, rights, notify };
        self.buffers.insert(cbh, descriptor)?;
        Ok((cbh, descriptor))
    }

    /// Ends an export. The card must be told before the next fill is: [`Card::invalidate`](crate::Card::invalidate).
    pub fn deregister(&mut self, cbh: Cbh) -> Result<()> {
        self.buffers.remove(cbh).map(|_| ()).ok_or(Error::NoBuffer(cbh.buffer))
    }

    /// The baseline: pins a whole range, all of it or nothing.
    pub fn pin_range(&mut self, process: ProcessId, address: Address, len: u64) -> Result<Vec<(Page, Frame)>> {
        let own = self.processes.get_mut(&process).ok_or(Error::NoProcess(process))?;
        let pages = address.page().0..(address.0 + len).div_ceil(PAGE as u64);
        let mut frames = Vec::new();
        for page in pages.map(Page) {
            let frame = match own.table.frame(page) {
                Some(frame) => Ok(frame),
                None => self.pinning.pin(process, page, 1).pop().unwrap_or(Err(PinFault::Unmapped)),
            };
            match frame {
                Ok(frame) => {
                    own.table.insert(page, frame);
                    frames.push((page, frame));
                }
                Err(_) => return Err(Error::NoLockableMemory { limit: (frames.len() * PAGE) as u64 }),
            }
        }
        Ok(frames)
    }

    /// Resolves a miss.
    pub fn resolve(&mut self, miss: Miss) -> Fill {
        match miss {
            Miss::Cbh { slot, cbh } => Fill::Cbh { slot, cbh, descriptor: self.buffers.find(cbh) },
            Miss::Vmh { slot, tag, .. } => {
                self.mirror.replace(slot, tag);
                Fill::Vmh { slot, tag, entries: self.line(tag) }
            }
        }
    }

    /// The frames of an aligned line, pinned where they are not.
    fn line(&mut self, tag: Tag) -> Vec<Entry> {
        let first = tag.line.saturating_mul(self.line as u64);
        let mut entries = vec![Entry::Unmapped; self.line];
        let Some(own) = self.processes.get(&tag.process) else { return entries };
        // Pages that lack a frame, in runs, so that the kernel is asked once for each run.
        let frame = |at: usize| own.table.frame(Page(first + at as u64));
        for (at, entry) in entries.iter_mut().enumerate() {
            if let Some(frame) = frame(at) {
                *entry = Entry::Frame(frame);
            }
        }
        let mut at = 0;
        while at < self.line {
            let run = entries[at..].iter().take_while(|entry| !matches!(entry, Entry::Frame(_))).count();
            if run > 0 {
                self.pin_run(tag, first + at as u64, &mut entries[at..at + run]);
            }
            at += run.max(1);
        }
        self.keep_below(tag.process, self.marks.high, self.marks.low);
        entries
    }

    fn pin_run(&mut self, tag: Tag, first: u64, entries: &mut [Entry]) {
        let process = tag.process;
        let mut pinned = self.pinning.pin(process, Page(first), entries.len());
        if pinned.contains(&Err(PinFault::Limit)) {
            // Others give back what nobody uses, and it is tried once more.
            self.note(tag, first, &pinned);
            let all: Vec<ProcessId> = self.processes.keys().copied().collect();
            all.into_iter().for_each(|process| self.keep_below(process, 0, 0));
            for (at, outcome) in pinned.iter_mut().enumerate().filter(|(_, outcome)| outcome.is_err()) {
                *outcome = self.pinning.pin(process, Page(first + at as u64), 1).pop().unwrap_or(*outcome);
            }
        }
        self.note(tag, first, &pinned);
        for (entry, outcome) in entries.iter_mut().zip(&pinned) {
            *entry = match outcome {
                Ok(frame) => Entry::Frame(*frame),
                Err(PinFault::Unmapped) => Entry::Unmapped,
                Err(PinFault::Limit) => Entry::Unpinned,
            };
            self.failures += u64::from(*entry == Entry::Unpinned);
        }
    }

    fn note(&mut self, tag: Tag, first: u64, pinned: &[Result<Frame, PinFault>]) {
        let Some(own) = self.processes.get_mut(&tag.process) else { return };
        for (at, frame) in pinned.iter().enumerate().filter_map(|(at, outcome)| Some((at, outcome.ok()?))) {
            let page = Page(first + at as u64);
            if own.table.frame(page).is_none() {
                own.table.insert(page, frame);
            }
        }
    }

    /// If more than `high` pages are pinned, gives some back; never one that may be in the cache.
    fn keep_below(&mut self, process: ProcessId, high: usize, low: usize) {
        let Some(own) = self.processes.get_mut(&process) else { return };
        if own.table.pinned() <= high {
            return;
        }
        let (line, mirror, pinning) = (self.line as u64, &self.mirror, &mut self.pinning);
        let in_use = |page: Page| mirror.cached.contains(&Tag { process, line: page.0 / line });
        own.table.reclaim(low, in_use, |page, frame| {
            pinning.unpin(process, page, frame);
            self.unpinned += 1;
        });
    }
}

impl Mirror {
    fn replace(&mut self, slot: Slot, tag: Tag) {
        if let Some(old) = self.by_slot.insert(slot, tag)
            && !self.by_slot.values().any(|other| *other == old)
        {
            self.cached.remove(&old);
        }
        self.cached.insert(tag);
    }

    fn forget(&mut self, process: ProcessId) {
        self.by_slot.retain(|_, tag| tag.process != process);
        self.cached.retain(|tag| tag.process != process);
    }
}

#[cfg(test)]
mod tests;
