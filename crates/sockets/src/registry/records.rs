//! What the records of a registry say, as values. Any process of the user can write any word of them: each is read once, and
//! what cannot be is not believed.

use sidestep_shm::{memory::Words, read_only::ReadOnlyMemory};
use std::{ops::Range, sync::atomic::Ordering::Acquire};

use super::{
    Identity, Process,
    layout::{
        CARD, CARRIED, FAR, FIRST_PROCESS, FIRST_SOCKET, Field, HeadField, LEVELS, NO_RENDEZVOUS, OWNER, PROCESS_WORDS,
        PROCESSES, ProcessField, READS_CARRIER, READY, REASON_SHIFT, SOCKET_WORDS, VIA, WILLING, WRITES_CARRIER,
    },
};
use crate::{kernel::address::Key, registry::reason::Reason};

/// What a process has said of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessRecord {
    /// Its number, in its own namespace.
    pub pid: u32,
    /// The namespace of that number.
    pub pids: u64,
    /// When the record was filled in, in nanoseconds of the monotonic clock.
    pub since: u64,
    /// Why it has no engine, and so no sockets here.
    pub excuse: Option<Reason>,
    /// What its sockets did that have ended.
    pub ended: Totals,
}

/// What became of the sockets of a process that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// How many had a second exchange.
    pub sockets: u64,
    /// How many of them were promoted.
    pub promoted: u64,
    /// Bytes over carriers, both ways.
    pub carried: u64,
    /// Bytes over TCP, both ways.
    pub tcp: u64,
    /// Calls that moved something over carriers, both ways.
    pub messages: u64,
    /// Sleeps while waiting for carriers.
    pub sleeps: u64,
    /// Doorbells rung for peers.
    pub doorbells: u64,
    /// How often directions were promoted.
    pub promotions: u64,
    /// Waits that looked for a while.
    pub looks: u64,
}

/// What a process has said of one of its sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketRecord {
    /// The process.
    pub pid: u32,
    /// A descriptor number that it has there.
    pub fd: u32,
    /// The addresses.
    pub key: Key,
    /// SO_COOKIE.
    pub cookie: u64,
    /// Whether it reads from its carrier, and whether it writes to it.
    pub on_carrier: (bool, bool),
    /// What carries it, if something does.
    pub carrier: Option<CarrierName>,
    /// Why it is where it is.
    pub reason: Reason,
    /// What it has read.
    pub read: Traffic,
    /// What it has written.
    pub written: Traffic,
    /// How it has waited.
    pub waits: Waits,
    /// How often a direction was promoted.
    pub promotions: u64,
    /// Bytes of the carrier that it reads from; 0 without one.
    pub capacity: u64,
    /// When it came into the registry, in nanoseconds of the monotonic clock. 0: it is not there, and nothing is counted.
    pub since: u64,
    /// When a direction was promoted first; 0 if never.
    pub promoted_at: u64,
}

/// How a socket has waited for its carrier, and woken its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Waits that looked for a while, for bytes or for space, before they found something or slept.
    pub looks: u64,
    /// Sleeps.
    pub sleeps: u64,
    /// Doorbells rung for the peer.
    pub doorbells: u64,
}

/// What went one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes over TCP, as of the last report.
    pub tcp: u64,
    /// Those of them in the first second.
    pub tcp_young: u64,
    /// Bytes over carriers.
    pub carried: u64,
    /// Calls that moved something over a carrier.
    pub messages: u64,
}

impl Traffic {
    /// Bytes on all paths. Hostile counters do not overflow.
    pub fn bytes(&self) -> u64 {
        self.tcp.saturating_add(self.carried)
    }
}

/// What carries a socket, as people call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CarrierName {
    /// Rings in shared memory.
    Ring,
    /// A link over a VI on shared memory.
    Via,
    /// A link over a VI on iWARP.
    ViaIwarp,
    /// A link over a VI on a card.
    ViaVmmc,
}

impl CarrierName {
    /// As `stat` prints it.
    pub fn name(self) -> &'static str {
        match self {
            CarrierName::Ring => "ring",
            CarrierName::Via => "via",
            CarrierName::ViaIwarp => "via-iwarp",
            CarrierName::ViaVmmc => "via-vmmc",
        }
    }
}

impl SocketRecord {
    /// A connection that is not in the registry, of which only the kernel tells.
    pub fn unlisted(pid: u32, fd: u32, key: Key, reason: Reason) -> SocketRecord {
        SocketRecord::of_words(pid, &[0; SOCKET_WORDS]).with(fd, key, reason)
    }

    fn with(self, fd: u32, key: Key, reason: Reason) -> SocketRecord {
        SocketRecord { fd, key, reason, ..self }
    }

    fn of_words(pid: u32, words: &[u64; SOCKET_WORDS]) -> SocketRecord {
        let word = |field: Field| words[field as usize];
        let state = word(Field::State);
        let key = Key::from_words(std::array::from_fn(|at| words[Field::Namespace as usize + at]));
        let carrier = match () {
            () if state & CARRIED == 0 => None,
            () if state & VIA == 0 => Some(CarrierName::Ring),
            () if state & FAR != 0 => Some(CarrierName::ViaIwarp),
            () if state & CARD != 0 => Some(CarrierName::ViaVmmc),
            () => Some(CarrierName::Via),
        };
        SocketRecord {
            pid,
            fd: word(Field::Descriptor) as u32,
            key,
            cookie: word(Field::Cookie),
            on_carrier: (state & READS_CARRIER != 0, state & WRITES_CARRIER != 0),
            carrier,
            reason: Reason::from_code((state >> REASON_SHIFT) as u8),
            read: Traffic {
                tcp: word(Field::ReadTcp),
                tcp_young: word(Field::ReadTcpYoung),
                carried: word(Field::ReadRing),
                messages: word(Field::ReadMessages),
            },
            written: Traffic {
                tcp: word(Field::WrittenTcp),
                tcp_young: word(Field::WrittenTcpYoung),
                carried: word(Field::WrittenRing),
                messages: word(Field::WrittenMessages),
            },
            waits: Waits {
                looks: word(Field::ReadLooks).saturating_add(word(Field::WriteLooks)),
                sleeps: word(Field::Sleeps),
                doorbells: word(Field::Doorbells),
            },
            promotions: word(Field::Promotions),
            capacity: word(Field::Capacity),
            since: word(Field::Since),
            promoted_at: word(Field::Promoted),
        }
    }
}

/// The words of a registry, wherever they are mapped.
pub trait Load {
    /// The word with this index, which is within the registry. Acquire: words are read in the order of the calls.
    fn load(&self, at: usize) -> u64;
}

impl Load for Words {
    fn load(&self, at: usize) -> u64 {
        Words::load(self, at, Acquire)
    }
}

impl Load for ReadOnlyMemory {
    fn load(&self, at: usize) -> u64 {
        self.load64(at * size_of::<u64>()).unwrap_or(0)
    }
}

/// Reads records. Nothing here writes, so it serves the processes that have the registry and the tools that look at it.
#[derive(Debug)]
pub struct Records<W> {
    /// The words.
    pub words: W,
}

impl<W: Load> Records<W> {
    /// A word of a process's record.
    pub fn of_process(&self, index: usize, field: ProcessField) -> u64 {
        self.words.load(FIRST_PROCESS + index * PROCESS_WORDS + field as usize)
    }

    /// A word of a socket's record.
    pub fn of_socket(&self, index: usize, field: Field) -> u64 {
        self.words.load(FIRST_SOCKET + index * SOCKET_WORDS + field as usize)
    }

    /// How many levels of the table of sockets have been used.
    pub fn levels(&self) -> usize {
        let last = u64::BITS - self.words.load(HeadField::Levels as usize).leading_zeros();
        (last as usize).min(LEVELS.len() - 1) + 1
    }

    /// The records of sockets in those levels.
    pub fn used(&self) -> Range<usize> {
        0..LEVELS[..self.levels()].iter().sum()
    }

    /// Where the rendezvous of a process is.
    pub fn identity(&self, index: usize) -> Identity {
        Identity([ProcessField::IdentityHigh, ProcessField::IdentityLow].map(|field| self.of_process(index, field)))
    }

    /// The process that has claimed a socket's record with this word, if it still has its own.
    pub fn owner(&self, claim: u64) -> Option<Process> {
        let index = (claim & OWNER).checked_sub(1).filter(|index| *index < PROCESSES as u64)? as usize;
        let of_process = self.of_process(index, ProcessField::Claim);
        let process = Process::of_claim(index, of_process);
        (of_process & READY != 0 && process.socket_claim() == claim).then_some(process)
    }

    /// The record of the socket with this key, if it has one.
    pub fn index_of(&self, key: &Key) -> Option<usize> {
        let words = key.to_words();
        probes(&words, 0..self.levels()).find(|index| self.has_key(*index, &words))
    }

    /// The process whose socket has this key and is offered.
    pub fn find(&self, key: &Key) -> Option<Identity> {
        let words = key.to_words();
        let offered =
            |index: &usize| self.has_key(*index, &words) && self.of_socket(*index, Field::State) & WILLING != 0;
        let owner = |index: usize| self.owner(self.of_socket(index, Field::Claim));
        let process = probes(&words, 0..self.levels()).filter(offered).find_map(owner)?;
        Some(self.identity(process.index()))
    }

    fn has_key(&self, index: usize, words: &[u64; 6]) -> bool {
        let first = FIRST_SOCKET + index * SOCKET_WORDS + Field::Namespace as usize;
        self.of_socket(index, Field::Claim) != 0
            && words.iter().enumerate().all(|(at, word)| self.words.load(first + at) == *word)
    }

    /// Every process that is there, or was there: records of the dead stay until they are needed.
    pub fn processes(&self) -> impl Iterator<Item = ProcessRecord> + '_ {
        (0..PROCESSES).filter_map(|index| self.process(index))
    }

    fn process(&self, index: usize) -> Option<ProcessRecord> {
        let word = |field| self.of_process(index, field);
        let claim = word(ProcessField::Claim);
        let identity = self.identity(index);
        let record = ProcessRecord {
            pid: u32::try_from(word(ProcessField::Pid)).ok().filter(|pid| *pid > 0)?,
            pids: word(ProcessField::Pids),
            since: word(ProcessField::Since),
            excuse: (identity.0[0] == NO_RENDEZVOUS && claim & READY != 0)
                .then(|| Reason::from_code(identity.0[1].saturating_sub(1) as u8)),
            ended: Totals {
                sockets: word(ProcessField::EndedSockets),
                promoted: word(ProcessField::EndedPromoted),
                carried: word(ProcessField::EndedCarried),
                tcp: word(ProcessField::EndedTcp),
                messages: word(ProcessField::EndedMessages),
                sleeps: word(ProcessField::EndedSleeps),
                doorbells: word(ProcessField::EndedDoorbells),
                promotions: word(ProcessField::EndedPromotions),
                looks: word(ProcessField::EndedLooks),
            },
        };
        // The same use of the record before and after. Its end changes nothing but the claim.
        (word(ProcessField::Claim) / super::layout::GENERATION == claim / super::layout::GENERATION).then_some(record)
    }

    /// Every socket of the processes of a namespace of process ids, as it is at the moment. One that comes or goes meanwhile
    /// is left out.
    pub fn sockets(&self, pids: u64) -> impl Iterator<Item = SocketRecord> + '_ {
        // A number of another namespace says nothing here.
        let here = move |owner: &Process| self.of_process(owner.index(), ProcessField::Pids) == pids;
        self.used().filter_map(move |index| {
            let claim = self.of_socket(index, Field::Claim);
            let owner = (claim != 0).then(|| self.owner(claim).filter(here)).flatten()?;
            let cookie = self.of_socket(index, Field::Cookie);
            let pid = u32::try_from(self.of_process(owner.index(), ProcessField::Pid)).ok().filter(|pid| *pid > 0)?;
            let mut words: [u64; SOCKET_WORDS] =
                std::array::from_fn(|at| self.words.load(FIRST_SOCKET + index * SOCKET_WORDS + at));
            // The words are those of one socket if it was the same before and after: the cookie is cleared before any of
            // them changes hands, and stored behind them.
            let settled = cookie != 0
                && self.of_socket(index, Field::Cookie) == cookie
                && self.of_socket(index, Field::Claim) == claim;
            words[Field::Cookie as usize] = cookie;
            settled.then(|| SocketRecord::of_words(pid, &words))
        })
    }
}

/// The records that a socket with this key may have in some levels.
pub fn probes(words: &[u64; 6], levels: Range<usize>) -> impl Iterator<Item = usize> + use<> {
    let mixed = words.iter().fold(0x9e37_79b9_7f4a_7c15_u64, |hash, word| {
        (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
    });
    let first = (mixed ^ mixed >> 31) as usize;
    let in_level = move |level: usize| {
        let begin = LEVELS[..level].iter().sum::<usize>();
        (0..PROBES).map(move |step| begin + first.wrapping_add(step) % LEVELS[level])
    };
    levels.flat_map(in_level)
}

/// Records of a level that are looked at for one key.
pub const PROBES: usize = 64;
