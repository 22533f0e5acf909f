//! The registry: which sockets of this user's processes may be promoted, and where their processes can be met. Also what
//! `sidestep stat` shows.
//!
//! One segment per user, attached by the processes of that user alone; a file says which it is ([`mod@file`]). It is a hint:
//! whatever it says is checked at the handshake, against the descriptor itself. A corrupted registry costs acceleration and
//! nothing else. It has counters of traffic, which are nobody else's business: other users read none of it.
//!
//! It is a table of records of processes and one of records of sockets ([`layout`]). Processes write their own ([`Registry`]);
//! tools attach it for reading ([`View`]). What the records say comes out as values ([`ProcessRecord`], [`SocketRecord`]).
//!
//! A record is claimed by a swap of its claim word, and given back by another. The records of a dead process are given back by
//! others: a process lives as long as its rendezvous is bound. Names of rendezvous are those of a network namespace, so a
//! process of another one is never taken for dead.
//!
//! Several may find the same process dead, and one of them so late that the record is the next one's by then. So every use of
//! a process's record has a *generation*, which is in its claim word and in those of its sockets: what is given back is given
//! back of one generation only.

use std::{
    ops::Range,
    sync::atomic::{
        Ordering::{Relaxed, Release},
        fence,
    },
};

use sidestep_shm::{
    Memory, Word64,
    memory::Words,
    passing::{COMMON, Rendezvous},
};
use sidestep_stream::carrier::{Capabilities, Kind, Peer};
use sidestep_sys::clock;

use crate::{
    config::config,
    kernel::{self, address::Key},
    registry::reason::Reason,
};

pub mod file;
pub mod layout;
mod orders;
pub mod reason;
mod records;
mod view;

pub use file::HINT_LEN;
pub use layout::Field;
pub use orders::{Subject, Turned};
pub use records::{CarrierName, ProcessRecord, SocketRecord, Totals, Traffic, Waits};
pub use view::View;

use layout::{
    CARD, CARRIED, CLAIMED, FAR, FIRST_NEWS, FIRST_PROCESS, FIRST_SOCKET, GENERATION, HeadField, IN_USE, LEVELS, MAGIC,
    NEWS_WORDS, NO_RENDEZVOUS, OWNER, PROCESS_WORDS, PROCESSES, ProcessField, READS_CARRIER, READY, REASON_SHIFT,
    SOCKET_WORDS, VERSION, VIA, WILLING, WORDS, WRITES_CARRIER,
};
use records::{Records, probes};

/// The registry of a user, as the processes in it have it.
#[derive(Debug)]
pub struct Registry {
    records: Records<Words>,
}

/// The record of this process among the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    index: usize,
    generation: u64,
}

/// The record of one socket of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    index: usize,
}

/// Identity of a process: where its rendezvous is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity(pub [u64; 2]);

/// Bytes of a segment.
pub const LEN: usize = WORDS * size_of::<u64>();
/// Between two sweeps that nobody needs.
const SWEEP_NS: u64 = 1_000_000_000;

impl Registry {
    /// The registry in a memory of [`LEN`] bytes, whatever lies there.
    fn new(memory: &Memory) -> Option<Registry> {
        Some(Registry { records: Records { words: memory.words(0, WORDS).ok()? } })
    }

    /// Begins a registry in fresh memory.
    fn found(&self, nonce: u64) {
        let head = [(HeadField::Version, VERSION), (HeadField::Nonce, nonce), (HeadField::Magic, MAGIC)];
        for (field, word) in head {
            self.records.words.word(field as usize).store(word, Release);
        }
    }

    /// Whether the memory was begun as this registry.
    fn is_founded(&self, nonce: u64) -> bool {
        view::is_founded(&self.records.words, nonce)
    }

    /// Enters this process.
    pub fn enter(&self, identity: Identity, pid: u32) -> Option<Process> {
        let (now, last) = (clock::now(), self.records.words.word(HeadField::Swept as usize));
        if now.wrapping_sub(last.load(Relaxed)) > SWEEP_NS {
            last.store(now, Relaxed);
            self.sweep();
        }
        let watcher = config().watcher.filter(|watcher| *watcher == kernel::parent());
        self.claim(identity, pid, watcher).or_else(|| {
            self.sweep();
            self.claim(identity, pid, watcher)
        })
    }

    fn claim(&self, identity: Identity, pid: u32, watcher: Option<u32>) -> Option<Process> {
        let pids = kernel::pid_namespace();
        for index in 0..PROCESSES {
            let word = self.process_word(index, ProcessField::Claim);
            let free = word.load(Relaxed);
            if free & IN_USE == 0 && self.is_awaited(index, pids) {
                continue;
            }
            let claim = (free & !IN_USE).wrapping_add(GENERATION) | u64::from(pid) | CLAIMED;
            if free & IN_USE == 0 && word.compare_swap(free, claim) == free {
                let fields = [
                    (ProcessField::EndedSockets, 0),
                    (ProcessField::EndedPromoted, 0),
                    (ProcessField::EndedCarried, 0),
                    (ProcessField::EndedTcp, 0),
                    (ProcessField::EndedMessages, 0),
                    (ProcessField::EndedSleeps, 0),
                    (ProcessField::EndedDoorbells, 0),
                    (ProcessField::EndedPromotions, 0),
                    (ProcessField::Off, 0),
                    (ProcessField::EndedLooks, 0),
                    (ProcessField::Watcher, watcher.unwrap_or(0).into()),
                    (ProcessField::Pid, u64::from(pid)),
                    (ProcessField::Network, kernel::network_namespace()),
                    (ProcessField::Pids, pids),
                    (ProcessField::Since, clock::now()),
                    (ProcessField::IdentityHigh, identity.0[0]),
                    (ProcessField::IdentityLow, identity.0[1]),
                ];
                fields.iter().for_each(|(field, value)| self.process_word(index, *field).store(*value, Relaxed));
                word.store(claim | READY, Release);
                return Some(Process::of_claim(index, claim));
            }
        }
        None
    }

    /// Whether someone of this namespace of process ids is about to read what a process has left.
    fn is_awaited(&self, index: usize, pids: u64) -> bool {
        let watcher = self.records.of_process(index, ProcessField::Watcher);
        let here = || self.records.of_process(index, ProcessField::Pids) == pids;
        watcher != 0 && here() && kernel::is_alive(watcher)
    }

    /// Counts what a process has told its peers by way of the kernel: writes, connections, ends. Who has read from a ring of that
    /// process asks the kernel when this has changed, since that may have come before.
    pub fn kernel_news(&self, process: Process) -> Word64 {
        self.records.words.word(FIRST_NEWS + process.index * NEWS_WORDS)
    }

    /// The process whose socket has this key, as carriers know it.
    pub fn peer_of(&self, key: &Key) -> Option<Peer> {
        let process = self.records.owner(self.records.of_socket(self.records.index_of(key)?, Field::Claim))?;
        Some(Peer::new(process.index(), self.kernel_news(process)))
    }

    /// Leaves word why the process with this number has no engine, and so no sockets here.
    pub fn excuse(&self, pid: u32, reason: Reason) {
        // As an identity without a rendezvous: it lives as long as the process does.
        let _ = self.enter(Identity([NO_RENDEZVOUS, u64::from(reason as u8) + 1]), pid);
    }

    /// Adds a socket that has ended to the totals of this process.
    pub fn add_totals(&self, process: Process, entry: Entry) {
        let sum = |fields: &[Field]| {
            fields.iter().fold(0, |sum: u64, field| sum.wrapping_add(self.field(entry, *field).load(Relaxed)))
        };
        let promoted = self.field(entry, Field::Promoted).load(Relaxed) != 0;
        let more = [
            (ProcessField::EndedSockets, 1),
            (ProcessField::EndedPromoted, u64::from(promoted)),
            (ProcessField::EndedCarried, sum(&[Field::ReadRing, Field::WrittenRing])),
            (ProcessField::EndedTcp, sum(&[Field::ReadTcp, Field::WrittenTcp])),
            (ProcessField::EndedMessages, sum(&[Field::ReadMessages, Field::WrittenMessages])),
            (ProcessField::EndedSleeps, sum(&[Field::Sleeps])),
            (ProcessField::EndedDoorbells, sum(&[Field::Doorbells])),
            (ProcessField::EndedPromotions, sum(&[Field::Promotions])),
            (ProcessField::EndedLooks, sum(&[Field::ReadLooks, Field::WriteLooks])),
        ];
        for (field, more) in more {
            self.process_word(process.index, field).fetch_add(more, Relaxed);
        }
    }

    /// Takes this process and its sockets out.
    pub fn withdraw(&self, process: Process) {
        let claim = self.records.of_process(process.index, ProcessField::Claim);
        if Process::of_claim(process.index, claim) == process {
            self.give_back(process.index, claim);
        }
    }

    /// Gives back the records of processes that are gone.
    pub fn sweep(&self) -> usize {
        let here = [kernel::network_namespace(), kernel::pid_namespace()];
        (0..PROCESSES).filter(|index| self.bury(*index, here)).count()
    }

    /// Gives back the records of the process with this identity, where nobody was met.
    pub fn sweep_one(&self, identity: Identity) {
        let here = [kernel::network_namespace(), kernel::pid_namespace()];
        for index in (0..PROCESSES).filter(|index| self.records.identity(*index) == identity) {
            self.bury(index, here);
        }
    }

    /// Gives back the records of a process that is known to be gone, seen from these namespaces.
    fn bury(&self, index: usize, [network, pids]: [u64; 2]) -> bool {
        let word = |field| self.records.of_process(index, field);
        let claim = word(ProcessField::Claim);
        if claim & READY == 0 {
            return false;
        }
        let identity = self.records.identity(index);
        let gone = match identity.0[0] {
            NO_RENDEZVOUS => word(ProcessField::Pids) == pids && !kernel::is_alive(word(ProcessField::Pid)),
            _ => word(ProcessField::Network) == network && !identity.is_alive(),
        };
        gone && self.give_back(index, claim)
    }

    /// Gives back the record of a process, as it was claimed with this word, and those of its sockets. `false`: that was done
    /// before.
    fn give_back(&self, index: usize, claim: u64) -> bool {
        let word = self.process_word(index, ProcessField::Claim);
        if claim & IN_USE == 0 || word.compare_swap(claim, claim & !IN_USE) != claim {
            return false;
        }
        let of_socket = Process::of_claim(index, claim).socket_claim();
        for socket in self.records.used() {
            let word = self.socket_word(socket, Field::Claim as usize);
            if word.load(Relaxed) == of_socket {
                word.compare_swap(of_socket, 0);
            }
        }
        true
    }

    /// A record for a socket of this process, with this cookie and descriptor number.
    pub fn add(&self, process: Process, key: &Key, cookie: u64, fd: i32) -> Option<Entry> {
        let used = self.records.levels();
        let add = |levels| self.add_within(levels, process, key, cookie, fd);
        add(0..used).or_else(|| {
            (used..LEVELS.len()).find_map(|level| {
                // Before a record is there, so that whoever looks for it does so in this level, too.
                self.records.words.word(HeadField::Levels as usize).fetch_or(1 << (level - 1), Release);
                add(level..level + 1)
            })
        })
    }

    fn add_within(&self, levels: Range<usize>, process: Process, key: &Key, cookie: u64, fd: i32) -> Option<Entry> {
        let words = key.to_words();
        let mine = process.socket_claim();
        for index in probes(&words, levels) {
            let word = self.socket_word(index, Field::Claim as usize);
            let claim = word.load(Relaxed);
            // Who gave its process's record back may have died before it gave back this one.
            let free = claim == 0 || self.records.owner(claim).is_none();
            if !free || word.compare_swap(claim, mine) != claim {
                continue;
            }
            let entry = Entry { index };
            self.unsettle(entry);
            for at in Field::State as usize..SOCKET_WORDS {
                self.socket_word(index, at).store(0, Relaxed);
            }
            for (at, word) in words.iter().enumerate() {
                self.socket_word(index, Field::Namespace as usize + at).store(*word, Relaxed);
            }
            self.field(entry, Field::Descriptor).store(fd as u64, Relaxed);
            self.field(entry, Field::Since).store(clock::now(), Relaxed);
            // Pairs with the loads of `Records::sockets`: what it finds with this cookie is this socket's.
            self.field(entry, Field::Cookie).store(cookie, Release);
            return Some(entry);
        }
        None
    }

    /// Gives a record back.
    pub fn remove(&self, entry: Entry) {
        self.unsettle(entry);
        self.field(entry, Field::State).store(0, Relaxed);
        self.field(entry, Field::Namespace).store(0, Relaxed);
        self.field(entry, Field::Claim).store(0, Release);
    }

    /// Says that the words of a record change hands. Release: none of them is changed before.
    fn unsettle(&self, entry: Entry) {
        self.field(entry, Field::Cookie).store(0, Relaxed);
        fence(Release);
    }

    /// A word of a socket's record.
    pub fn field(&self, entry: Entry, field: Field) -> Word64 {
        self.socket_word(entry.index, field as usize)
    }

    /// Stores paths and reason; keeps the rest.
    pub fn set_state(&self, entry: Entry, reads: bool, writes: bool, reason: Reason) {
        let word = self.field(entry, Field::State);
        let kept = word.load(Relaxed) & (WILLING | VIA | FAR | CARD | CARRIED);
        let paths = if reads { READS_CARRIER } else { 0 } | if writes { WRITES_CARRIER } else { 0 };
        word.store(kept | paths | u64::from(reason as u8) << REASON_SHIFT, Release);
    }

    /// Notes what carries a socket.
    pub fn set_carrier(&self, entry: Entry, capabilities: Capabilities) {
        let word = self.field(entry, Field::State);
        let kind = match capabilities.kind {
            Kind::Via("iwarp") => VIA | FAR,
            Kind::Via("vmmc") => VIA | CARD,
            Kind::Via(_) => VIA,
            Kind::Ring | Kind::Loopback => 0,
        };
        word.store(word.load(Relaxed) & !(VIA | FAR | CARD) | CARRIED | kind, Release);
    }

    /// Makes an offer, or takes it back.
    pub fn set_willing(&self, entry: Entry, willing: bool) {
        let word = self.field(entry, Field::State);
        if willing {
            word.fetch_or(WILLING, Release);
        } else {
            word.fetch_and(!WILLING, Release);
        }
    }

    /// How much the socket with this key says to have written to its carrier; its process may be dead by now.
    pub fn written(&self, key: &Key) -> Option<u64> {
        Some(self.records.of_socket(self.records.index_of(key)?, Field::WrittenRing))
    }

    /// How much it says to have read from it.
    pub fn read(&self, key: &Key) -> Option<u64> {
        Some(self.records.of_socket(self.records.index_of(key)?, Field::ReadRing))
    }

    /// The process whose socket has this key and is offered.
    pub fn find(&self, key: &Key) -> Option<Identity> {
        self.records.find(key)
    }

    fn process_word(&self, index: usize, field: ProcessField) -> Word64 {
        self.records.words.word(FIRST_PROCESS + index * PROCESS_WORDS + field as usize)
    }

    fn socket_word(&self, index: usize, at: usize) -> Word64 {
        self.records.words.word(FIRST_SOCKET + index * SOCKET_WORDS + at)
    }
}

impl Process {
    /// The use of a record that began with this claim.
    fn of_claim(index: usize, claim: u64) -> Process {
        Process { index, generation: claim / GENERATION }
    }

    /// The claim of its sockets.
    fn socket_claim(self) -> u64 {
        self.generation << OWNER.count_ones() | (self.index as u64 + 1)
    }

    /// Its number among the records of processes.
    pub fn index(self) -> usize {
        self.index
    }
}

impl Identity {
    /// The name of its rendezvous on the fabric, which means the same to all users.
    pub fn name(self) -> String {
        format!("{COMMON}sockets-{:016x}{:016x}", self.0[0], self.0[1])
    }

    fn is_alive(self) -> bool {
        // A name can be bound only if nobody has it; it is given back at once.
        Rendezvous::listen(&self.name()).is_err()
    }
}

#[cfg(test)]
mod tests;
