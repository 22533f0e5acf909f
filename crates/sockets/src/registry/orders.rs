//! What users order by hand: processes and ports whose connections stay on TCP, and taps.
//!
//! Whoever orders something writes it here, raises the count of orders, and rings the processes that it concerns. They look at
//! the count before they sleep and now and then while they run, and carry out what has changed. Only processes of the user,
//! and root as that user, can attach the registry; so nobody else can order anything.

use std::{
    collections::HashSet,
    sync::atomic::Ordering::{Acquire, Relaxed, Release},
};

use sidestep_shm::{Word64, passing::Lifeline, segment::SegmentId};

use super::{
    Process, Registry, View,
    layout::{
        FIRST_PORT, FIRST_SOCKET, Field, HeadField, NO_RENDEZVOUS, PORTS, PROCESSES, ProcessField, READY, SOCKET_WORDS,
    },
    records::{Load, Records},
};
use crate::kernel::{self, address::Key};

/// What is turned off, or on again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Every connection of the process with this number.
    Process(u32),
    /// Every connection that has this port at either end.
    Port(u16),
}

/// What became of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turned {
    /// It stands, and so many processes were rung.
    Ordered(usize),
    /// The process is not in the registry.
    Unknown,
    /// As many ports are turned off as can be.
    TooMany,
}

impl Registry {
    /// Counts what was ordered.
    pub fn orders(&self) -> Word64 {
        self.records.words.word(HeadField::Orders as usize)
    }

    /// Orders that the connections of a process or of a port stay on TCP, or that they need not.
    pub fn turn(&self, subject: Subject, off: bool) -> Turned {
        match subject {
            Subject::Process(pid) => {
                let Some(index) = self.records.process_with(pid) else { return Turned::Unknown };
                self.process_word(index, ProcessField::Off).store(u64::from(off), Relaxed);
            }
            Subject::Port(port) => {
                if !self.turn_port(port, off) {
                    return Turned::TooMany;
                }
            }
        }
        // Pairs with the load of whoever looks at what was ordered.
        self.orders().fetch_add(1, Release);
        let concerned = self.records.concerned(subject);
        Turned::Ordered(concerned.into_iter().filter(|process| self.ring(*process)).count())
    }

    /// Raises the count of orders, and rings every process: something was ordered that concerns all.
    fn announce(&self) {
        self.orders().fetch_add(1, Release);
        (0..PROCESSES).filter_map(|index| self.records.process_at(index)).for_each(|process| _ = self.ring(process));
    }

    /// The segment of the tap that is there, and its nonce.
    pub fn tap(&self) -> Option<(SegmentId, u64)> {
        let word = |field: HeadField| self.records.words.word(field as usize).load(Acquire);
        let segment = u32::try_from(word(HeadField::TapSegment).checked_sub(1)?).ok()?;
        Some((SegmentId(segment), word(HeadField::TapNonce)))
    }

    /// Begins a tap, or ends it.
    pub fn set_tap(&self, tap: Option<(SegmentId, u64)>) {
        let word = |field: HeadField| self.records.words.word(field as usize);
        word(HeadField::TapSegment).store(0, Release);
        if let Some((segment, nonce)) = tap {
            word(HeadField::TapNonce).store(nonce, Release);
            word(HeadField::TapSegment).store(u64::from(segment.0) + 1, Release);
        }
        self.announce();
    }

    /// The number of the process whose socket has this key.
    pub fn pid_of(&self, key: &Key) -> Option<u32> {
        let owner = self.records.owner(self.records.of_socket(self.records.index_of(key)?, Field::Claim))?;
        u32::try_from(self.records.of_process(owner.index(), ProcessField::Pid)).ok()
    }

    fn turn_port(&self, port: u16, off: bool) -> bool {
        let word = |at| self.records.words.word(FIRST_PORT + at);
        let places = |value: u64| (0..PORTS).filter(move |at| word(*at).load(Relaxed) == value);
        match off {
            false => places(port.into()).for_each(|at| word(at).store(0, Relaxed)),
            true if places(port.into()).next().is_none() => {
                return (0..PORTS).any(|at| word(at).compare_swap(0, port.into()) == 0);
            }
            true => {}
        }
        true
    }

    /// Whether something is turned off.
    pub fn has_off(&self) -> bool {
        self.records.ports_off().next().is_some()
            || (0..PROCESSES)
                .filter(|index| self.records.process_at(*index).is_some())
                .any(|index| self.records.of_process(index, ProcessField::Off) != 0)
    }

    /// Whether a connection of this process stays on TCP by order: for its sake, or for that of its peer.
    pub fn is_off(&self, process: Process, key: &Key) -> bool {
        let is_process_off = |process: Process| self.records.of_process(process.index(), ProcessField::Off) != 0;
        let ends = [key.local.port(), key.remote.port()];
        let peer = || self.records.owner(self.records.of_socket(self.records.index_of(&key.reversed())?, Field::Claim));
        is_process_off(process)
            || self.records.ports_off().any(|port| ends.contains(&port))
            || peer().is_some_and(is_process_off)
    }

    /// Wakes a process that sleeps, so that it looks. Whoever connects to a rendezvous does.
    fn ring(&self, process: Process) -> bool {
        let identity = self.records.identity(process.index());
        identity.0[0] != NO_RENDEZVOUS && Lifeline::connect(&identity.name(), |_| true).is_ok()
    }
}

impl View {
    /// The ports that are turned off.
    pub fn ports_off(&self) -> Vec<u16> {
        self.records.ports_off().collect()
    }

    /// The processes that are turned off.
    pub fn processes_off(&self) -> Vec<u32> {
        let off = |index: usize| {
            self.records.process_at(index)?;
            let word = |field| self.records.of_process(index, field);
            (word(ProcessField::Off) != 0).then(|| word(ProcessField::Pid) as u32)
        };
        (0..PROCESSES).filter_map(off).collect()
    }
}

impl<W: Load> Records<W> {
    /// The ports that are turned off.
    fn ports_off(&self) -> impl Iterator<Item = u16> + '_ {
        let port = |at| u16::try_from(self.words.load(FIRST_PORT + at)).ok();
        (0..PORTS).filter_map(port).filter(|port| *port != 0)
    }

    /// The process that has this record, if one has.
    fn process_at(&self, index: usize) -> Option<Process> {
        let claim = self.of_process(index, ProcessField::Claim);
        (claim & READY != 0).then(|| Process::of_claim(index, claim))
    }

    /// The record of the process with this number, as this process counts.
    fn process_with(&self, pid: u32) -> Option<usize> {
        let pids = kernel::pid_namespace();
        let is_it = |index: &usize| {
            let word = |field| self.of_process(*index, field);
            word(ProcessField::Pid) == u64::from(pid) && word(ProcessField::Pids) == pids
        };
        let since = |index: &usize| self.of_process(*index, ProcessField::Since);
        (0..PROCESSES).filter(|index| self.process_at(*index).is_some()).filter(is_it).max_by_key(since)
    }

    /// The processes at both ends of the connections that an order is about, and the process itself.
    fn concerned(&self, subject: Subject) -> Vec<Process> {
        let own = match subject {
            Subject::Process(pid) => self.process_with(pid).and_then(|index| self.process_at(index)),
            Subject::Port(_) => None,
        };
        let mut found: HashSet<usize> = own.iter().map(|process| process.index()).collect();
        for index in self.used() {
            let claim = self.of_socket(index, Field::Claim);
            let Some(owner) = (claim != 0).then(|| self.owner(claim)).flatten() else { continue };
            let first = FIRST_SOCKET + index * SOCKET_WORDS + Field::Namespace as usize;
            let key = Key::from_words(std::array::from_fn(|at| self.words.load(first + at)));
            let peer = || self.owner(self.of_socket(self.index_of(&key.reversed())?, Field::Claim));
            let fits = match subject {
                Subject::Process(_) => peer().is_some() && peer() == own,
                Subject::Port(port) => [key.local.port(), key.remote.port()].contains(&port),
            };
            if fits {
                found.insert(owner.index());
            }
        }
        found.into_iter().filter_map(|index| self.process_at(index)).collect()
    }
}
