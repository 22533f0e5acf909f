//! The registry: which sockets of this user's processes may be promoted, and where their processes can be met. Also what
//! `sidestep stat` shows.
//!
//! One segment per user, attached by the processes of that user alone; a file says which it is ([`mod@file`]). It is a hint:
//! whatever it says is checked at the handshake, against the descriptor itself. A corrupted registry costs acceleration and
//! nothing else. It has counters of traffic, which are nobody else's business: other users read none of it.
//!
//! ```text
//!   0x0000  magic, layout version, nonce, time of the last sweep
//!   0x1000  processes: 1,024 x 128 bytes   claim, identity (two words), pid, totals (four words), network namespace,
//!                                          pid namespace
//!   0x21000 sockets: 16,384 x 192 bytes    claim, key (six words), state, cookie, counters
//!   0x321000 news: 1,024 x 128 bytes       of each process: how often it has written to the kernel
//! ```
//!
//! A place is claimed by a swap of its claim word, and given back by another. The places of a dead process are given back by
//! others: a process lives as long as its rendezvous is bound. Names of rendezvous are those of a network namespace, so a
//! process of another one is never taken for dead.
//!
//! Several may find the same process dead, and one of them so late that the place is the next one's by then. So every use of
//! a process's place has a *generation*, which is in its claim word and in those of its sockets: what is given back is given
//! back of one generation only.
//!
//! ```text
//!   claim of a process   bits 0-31 pid, bit 32 claimed, bit 33 its identity is there, bits 34-63 generation, also when free
//!   claim of a socket    bits 0-15 place of its process plus 1, bits 16-45 generation of that; 0 when free
//! ```

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use sidestep_shm::{Memory, Word64, memory::Words, passing::Rendezvous};
use sidestep_stream::carrier::{Capabilities, Kind, Peer};
use sidestep_sys::clock;

use crate::{address::Key, kernel, reason::Reason};

pub mod file;

pub use file::HINT_LEN;

/// The registry of a user, or what it said at some moment.
#[derive(Debug)]
pub struct Registry {
    words: Words,
    _memory: Memory,
}

/// A place of this process among the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    index: usize,
    generation: u64,
}

/// A place of one socket of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    index: usize,
}

/// Identity of a process: where its rendezvous is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity(pub [u64; 2]);

/// Words of a socket's place after its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Field {
    /// Path of reading, path of writing, reason, whether an offer stands.
    State = 7,
    /// SO_COOKIE.
    Cookie = 8,
    /// A descriptor number of the program's.
    Descriptor = 9,
    /// Bytes read over TCP.
    ReadTcp = 10,
    /// Bytes read over the ring.
    ReadRing = 11,
    /// Bytes written over TCP.
    WrittenTcp = 12,
    /// Bytes written over the ring.
    WrittenRing = 13,
    /// Receiving calls that found something on the ring.
    ReadMessages = 14,
    /// Sending calls that went over the ring.
    WrittenMessages = 15,
    /// Sleeps while waiting for the ring.
    Sleeps = 16,
    /// Doorbells rung for the peer.
    Doorbells = 17,
    /// When it was tracked, on the clock of all processes.
    Since = 18,
    /// When its first direction was promoted; 0 if never.
    Promoted = 19,
    /// Bytes read over TCP when it was a second old.
    ReadTcpYoung = 20,
    /// Bytes written over TCP when it was a second old.
    WrittenTcpYoung = 21,
}

/// What became of the sockets of a process that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// How many had a second exchange.
    pub sockets: u64,
    /// How many of them were promoted.
    pub promoted: u64,
    /// Bytes over rings, both ways.
    pub ring: u64,
    /// Bytes over TCP, both ways.
    pub tcp: u64,
}

/// What `stat` shows of one socket.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The process.
    pub process: u32,
    /// The addresses.
    pub key: Key,
    /// Where it reads from and writes to: `true` is the ring, or the link.
    pub on_ring: (bool, bool),
    /// Whether it has a link, and whether that goes over a wire.
    pub via: bool,
    /// As above.
    pub wire: bool,
    /// Why.
    pub reason: Reason,
    /// All words of the place, by [`Field`].
    pub words: [u64; SOCKET_WORDS],
}

const MAGIC: u64 = u64::from_le_bytes(*b"SIDESTEP");
/// Raised by every change of the layout.
pub const VERSION: u64 = 3;
const PROCESSES: usize = 1024;
const PROCESS_WORDS: usize = 16;
const PID: usize = 3;
const TOTALS: usize = 4;
const NETWORK: usize = 8;
const PIDS: usize = 9;
/// Words of the header.
const NONCE: usize = 2;
const SWEPT: usize = 3;
/// Between two sweeps that nobody needs.
const SWEEP_NS: u64 = 1_000_000_000;
const SOCKETS: usize = 16_384;
/// Words of a socket's place.
pub const SOCKET_WORDS: usize = 24;
const FIRST_PROCESS: usize = 0x1000 / 8;
const FIRST_SOCKET: usize = FIRST_PROCESS + PROCESSES * PROCESS_WORDS;
const FIRST_NEWS: usize = FIRST_SOCKET + SOCKETS * SOCKET_WORDS;
/// Words between those of two processes: no two share a pair of cache lines.
const NEWS_WORDS: usize = 16;
/// Bytes of a segment.
pub const LEN: usize = (FIRST_NEWS + PROCESSES * NEWS_WORDS) * 8;
/// Places looked at for one key.
const PROBES: usize = 64;

/// Instead of the first half of an identity: the second is an excuse.
const NO_RENDEZVOUS: u64 = 0;
const WILLING: u64 = 1;
const READS_RING: u64 = 2;
const WRITES_RING: u64 = 4;
const VIA: u64 = 8;
const WIRE: u64 = 16;

impl Registry {
    /// The registry in a memory of [`LEN`] bytes, whatever lies there.
    fn new(memory: Memory) -> Option<Registry> {
        Some(Registry { words: memory.words(0, LEN / 8).ok()?, _memory: memory })
    }

    /// Begins a registry in fresh memory.
    fn found(&self, nonce: u64) {
        for (at, word) in [(1, VERSION), (NONCE, nonce), (0, MAGIC)] {
            self.words.word(at).store(word, Relaxed);
        }
    }

    /// Whether the memory was begun as this registry.
    fn is_founded(&self, nonce: u64) -> bool {
        [(0, MAGIC), (1, VERSION), (NONCE, nonce)].iter().all(|(at, word)| self.words.word(*at).load(Acquire) == *word)
    }

    /// Enters this process.
    pub fn enter(&self, identity: Identity, number: u32) -> Option<Process> {
        let (now, last) = (clock::now(), self.words.word(SWEPT));
        if now.wrapping_sub(last.load(Relaxed)) > SWEEP_NS {
            last.store(now, Relaxed);
            self.sweep();
        }
        self.claim(identity, number).or_else(|| {
            self.sweep();
            self.claim(identity, number)
        })
    }

    fn claim(&self, identity: Identity, number: u32) -> Option<Process> {
        for index in 0..PROCESSES {
            let word = self.process_word(index, 0);
            let free = word.load(Relaxed);
            let claim = (free & !IN_USE).wrapping_add(GENERATION) | u64::from(number) | CLAIMED;
            if free & IN_USE == 0 && word.compare_swap(free, claim) == free {
                (TOTALS..PROCESS_WORDS).for_each(|at| self.process_word(index, at).store(0, Relaxed));
                self.process_word(index, PID).store(u64::from(number), Relaxed);
                self.process_word(index, NETWORK).store(kernel::network_namespace(), Relaxed);
                self.process_word(index, PIDS).store(kernel::namespace("pid"), Relaxed);
                self.process_word(index, 1).store(identity.0[0], Relaxed);
                self.process_word(index, 2).store(identity.0[1], Relaxed);
                word.store(claim | READY, Release);
                return Some(Process::of_claim(index, claim));
            }
        }
        None
    }

    /// Counts what a process has told its peers by way of the kernel: writes, connections, ends. Who has read from a ring of that
    /// process asks the kernel when this has changed, since that may have come before.
    pub fn kernel_news(&self, process: Process) -> Word64 {
        self.words.word(FIRST_NEWS + process.index * NEWS_WORDS)
    }

    /// The process whose socket has this key, as carriers know it.
    pub fn peer_of(&self, key: &Key) -> Option<Peer> {
        let process = self.process_of(key)?;
        Some(Peer::new(process.index(), self.kernel_news(process)))
    }

    /// The process whose socket has this key.
    pub fn process_of(&self, key: &Key) -> Option<Process> {
        self.owner(self.socket_word(self.index_of(key)?, 0).load(Acquire))
    }

    /// The process that has claimed a socket's place with this word, if it is still in its own.
    fn owner(&self, claim: u64) -> Option<Process> {
        let index = (claim & OWNER).checked_sub(1).filter(|index| *index < PROCESSES as u64)? as usize;
        let of_process = self.process_word(index, 0).load(Acquire);
        let process = Process::of_claim(index, of_process);
        (of_process & READY != 0 && process.socket_claim() == claim).then_some(process)
    }

    /// The place of the socket with this key.
    fn index_of(&self, key: &Key) -> Option<usize> {
        let words = key.to_words();
        let fits = |index: usize| {
            self.socket_word(index, 0).load(Acquire) != 0
                && words.iter().enumerate().all(|(at, word)| self.socket_word(index, at + 1).load(Relaxed) == *word)
        };
        probes(&words).find(|index| fits(*index))
    }

    /// Leaves word why the process with this number has no engine, and so no sockets here.
    pub fn excuse(&self, number: u32, reason: Reason) {
        // As an identity without a rendezvous: it lives as long as the process does.
        let _ = self.enter(Identity([NO_RENDEZVOUS, u64::from(reason as u8) + 1]), number);
    }

    /// Why the process with this number has no engine, if it left word.
    pub fn excuse_of(&self, number: u32) -> Option<Reason> {
        let word = |index, at| self.process_word(index, at).load(Acquire);
        let excused = |index: &usize| {
            word(*index, 0) & READY != 0 && word(*index, PID) == u64::from(number) && word(*index, 1) == NO_RENDEZVOUS
        };
        let index = (0..PROCESSES).find(excused)?;
        Some(Reason::from_code(word(index, 2).saturating_sub(1) as u8))
    }

    /// Adds a socket that has ended to the totals of this process.
    pub fn add_totals(&self, process: Process, entry: Entry) {
        let ring =
            self.field(entry, Field::ReadRing).load(Relaxed) + self.field(entry, Field::WrittenRing).load(Relaxed);
        let tcp = self.field(entry, Field::ReadTcp).load(Relaxed) + self.field(entry, Field::WrittenTcp).load(Relaxed);
        let promoted = self.field(entry, Field::Promoted).load(Relaxed) != 0;
        for (at, more) in [1, u64::from(promoted), ring, tcp].into_iter().enumerate() {
            self.process_word(process.index, TOTALS + at).fetch_add(more, Relaxed);
        }
    }

    /// What the process with this number has done so far, or had done when it ended.
    pub fn totals(&self, number: u32) -> Option<Totals> {
        let index = (0..PROCESSES).find(|index| self.process_word(*index, PID).load(Relaxed) == u64::from(number))?;
        let [sockets, promoted, ring, tcp] = [0, 1, 2, 3].map(|at| self.process_word(index, TOTALS + at).load(Relaxed));
        Some(Totals { sockets, promoted, ring, tcp })
    }

    /// Takes this process and its sockets out.
    pub fn withdraw(&self, process: Process) {
        let claim = self.process_word(process.index, 0).load(Acquire);
        if Process::of_claim(process.index, claim) == process {
            self.give_back(process.index, claim);
        }
    }

    /// Gives back the places of processes that are gone.
    pub fn sweep(&self) -> usize {
        let here = [kernel::network_namespace(), kernel::namespace("pid")];
        (0..PROCESSES).filter(|index| self.bury(*index, here)).count()
    }

    /// Gives back the places of the process with this identity, where nobody was met.
    pub fn sweep_one(&self, identity: Identity) {
        let here = [kernel::network_namespace(), kernel::namespace("pid")];
        for index in (0..PROCESSES).filter(|index| self.identity(*index) == identity) {
            self.bury(index, here);
        }
    }

    /// Gives back the places of a process that is known to be gone, seen from these namespaces.
    fn bury(&self, index: usize, [network, pids]: [u64; 2]) -> bool {
        let word = |at| self.process_word(index, at).load(Acquire);
        let claim = word(0);
        if claim & READY == 0 {
            return false;
        }
        let identity = self.identity(index);
        let gone = match identity.0[0] {
            NO_RENDEZVOUS => word(PIDS) == pids && !kernel::is_alive(word(PID)),
            _ => word(NETWORK) == network && !identity.is_alive(),
        };
        gone && self.give_back(index, claim)
    }

    /// Gives back the place of a process, as it was claimed with this word, and those of its sockets. `false`: that was done
    /// before.
    fn give_back(&self, index: usize, claim: u64) -> bool {
        if claim & IN_USE == 0 || self.process_word(index, 0).compare_swap(claim, claim & !IN_USE) != claim {
            return false;
        }
        let of_socket = Process::of_claim(index, claim).socket_claim();
        for socket in 0..SOCKETS {
            let word = self.socket_word(socket, 0);
            if word.load(Relaxed) == of_socket {
                word.compare_swap(of_socket, 0);
            }
        }
        true
    }

    fn identity(&self, index: usize) -> Identity {
        Identity([1, 2].map(|at| self.process_word(index, at).load(Acquire)))
    }

    /// A place for a socket of this process.
    pub fn add(&self, process: Process, key: &Key) -> Option<Entry> {
        let words = key.to_words();
        let mine = process.socket_claim();
        for index in probes(&words) {
            let word = self.socket_word(index, 0);
            let claim = word.load(Relaxed);
            // Who gave its process's place back may have died before it gave back this one.
            let free = claim == 0 || self.owner(claim).is_none();
            if !free || word.compare_swap(claim, mine) != claim {
                continue;
            }
            for at in 7..SOCKET_WORDS {
                self.socket_word(index, at).store(0, Relaxed);
            }
            for (at, word) in words.iter().enumerate() {
                self.socket_word(index, at + 1).store(*word, Relaxed);
            }
            return Some(Entry { index });
        }
        None
    }

    /// Gives a place back.
    pub fn remove(&self, entry: Entry) {
        self.socket_word(entry.index, Field::State as usize).store(0, Relaxed);
        self.socket_word(entry.index, 1).store(0, Relaxed);
        self.socket_word(entry.index, 0).store(0, Release);
    }

    /// A word of a place.
    pub fn field(&self, entry: Entry, field: Field) -> Word64 {
        self.socket_word(entry.index, field as usize)
    }

    /// Stores paths and reason; keeps the rest.
    pub fn set_state(&self, entry: Entry, reads_ring: bool, writes_ring: bool, reason: Reason) {
        let word = self.field(entry, Field::State);
        let kept = word.load(Relaxed) & (WILLING | VIA | WIRE);
        let paths = if reads_ring { READS_RING } else { 0 } | if writes_ring { WRITES_RING } else { 0 };
        word.store(kept | paths | u64::from(reason as u8) << 8, Release);
    }

    /// Notes what carries a socket.
    pub fn set_carrier(&self, entry: Entry, capabilities: Capabilities) {
        let word = self.field(entry, Field::State);
        let via = if capabilities.kind == Kind::Via { VIA } else { 0 };
        let bits = via | if capabilities.far { WIRE } else { 0 };
        word.store(word.load(Relaxed) & !(VIA | WIRE) | bits, Release);
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

    /// How much the socket with this key says to have written to its ring or link; its process may be dead by now.
    pub fn written(&self, key: &Key) -> Option<u64> {
        Some(self.socket_word(self.index_of(key)?, Field::WrittenRing as usize).load(Relaxed))
    }

    /// How much it says to have read from it.
    pub fn read(&self, key: &Key) -> Option<u64> {
        Some(self.socket_word(self.index_of(key)?, Field::ReadRing as usize).load(Relaxed))
    }

    /// The process whose socket has this key and an offer standing.
    pub fn find(&self, key: &Key) -> Option<Identity> {
        let words = key.to_words();
        for index in probes(&words) {
            let claim = self.socket_word(index, 0).load(Acquire);
            let fits = claim != 0
                && words.iter().enumerate().all(|(at, word)| self.socket_word(index, at + 1).load(Relaxed) == *word);
            if !fits || self.socket_word(index, Field::State as usize).load(Acquire) & WILLING == 0 {
                continue;
            }
            if let Some(process) = self.owner(claim) {
                return Some(self.identity(process.index));
            }
        }
        None
    }

    /// Every socket, as it is at the moment.
    pub fn snapshot(&self) -> Vec<Snapshot> {
        let (mut all, here) = (Vec::new(), kernel::namespace("pid"));
        for index in 0..SOCKETS {
            let Some(owner) = self.owner(self.socket_word(index, 0).load(Acquire)) else { continue };
            // A number of another namespace says nothing here.
            if self.process_word(owner.index, PIDS).load(Relaxed) != here {
                continue;
            }
            let process = self.process_word(owner.index, PID).load(Relaxed) as u32;
            let words: [u64; SOCKET_WORDS] = std::array::from_fn(|at| self.socket_word(index, at).load(Relaxed));
            let state = words[Field::State as usize];
            all.push(Snapshot {
                process,
                key: Key::from_words(words[1..7].try_into().expect("six words")),
                on_ring: (state & READS_RING != 0, state & WRITES_RING != 0),
                via: state & VIA != 0,
                wire: state & WIRE != 0,
                reason: Reason::from_code((state >> 8) as u8),
                words,
            });
        }
        all
    }

    fn process_word(&self, index: usize, at: usize) -> Word64 {
        self.words.word(FIRST_PROCESS + index * PROCESS_WORDS + at)
    }

    fn socket_word(&self, index: usize, at: usize) -> Word64 {
        self.words.word(FIRST_SOCKET + index * SOCKET_WORDS + at)
    }
}

impl Process {
    /// The use of a place that began with this claim.
    fn of_claim(index: usize, claim: u64) -> Process {
        Process { index, generation: claim / GENERATION }
    }

    /// The claim of its sockets.
    fn socket_claim(self) -> u64 {
        self.generation << OWNER.count_ones() | (self.index as u64 + 1)
    }

    /// Its number among the places of processes.
    pub fn index(self) -> usize {
        self.index
    }
}

impl Identity {
    /// The name of its rendezvous on the fabric.
    pub fn name(self) -> String {
        format!("sockets-{:016x}{:016x}", self.0[0], self.0[1])
    }

    fn is_alive(self) -> bool {
        // A name can be bound only if nobody has it; it is given back at once.
        Rendezvous::listen(&self.name()).is_err()
    }
}

impl Snapshot {
    /// One of its words.
    pub fn field(&self, field: Field) -> u64 {
        self.words[field as usize]
    }
}

fn probes(words: &[u64; 6]) -> impl Iterator<Item = usize> {
    let mixed = words.iter().fold(0x9e37_79b9_7f4a_7c15_u64, |hash, word| {
        (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
    });
    let first = (mixed ^ mixed >> 31) as usize;
    (0..PROBES).map(move |step| first.wrapping_add(step) % SOCKETS)
}

/// Set in the claim of a process, so that number 0 claims, too.
const CLAIMED: u64 = 1 << 32;
/// Set in it once the identity is there.
const READY: u64 = 1 << 33;
/// What is added to it for every use of the place, and the bits below, which are 0 while nobody uses it.
const GENERATION: u64 = 1 << 34;
const IN_USE: u64 = GENERATION - 1;
/// The bits of a socket's claim that say which process has it.
const OWNER: u64 = 0xffff;

#[cfg(test)]
mod tests;
