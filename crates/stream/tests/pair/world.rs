//! Two ends of a stream under virtual time: who runs next is chosen by a seed, one question of a machine at a time.

use std::{collections::HashSet, env};

use sidestep_shm::memory::Memory;
use sidestep_stream::{
    carrier::Halves,
    driver::{Holders, Inward, Locked, Outward, ReadCall, WriteCall},
    record::{self, Direction, Holder, Record},
};
use sidestep_testkit::seeded::Seeded;

use crate::{
    carriers,
    process::{Life, Process},
    script::{Fault, Script, What},
    tcp::Tcp,
};

/// Steps after which a run is not going to end.
const MOST_STEPS: u64 = 100_000;
/// How long a process stops, longer than anything else lasts.
const STOP: u64 = 5_000;

/// Everything.
pub struct World {
    pub script: Script,
    pub now: u64,
    pub random: Seeded,
    /// What goes from the first end to the second, and back.
    pub tcp: [Tcp; 2],
    pub ends: [End; 2],
    /// Grows with everything that somebody may wait for.
    pub changes: u64,
    /// Bytes may be missing at the end of this direction.
    pub lossy: [bool; 2],
    /// For each direction, and each process that writes: bytes that were accepted, and bytes that were read.
    pub accepted: [[u64; 2]; 2],
    pub consumed: [[u64; 2]; 2],
    /// Directions and carriers of which the end is known.
    pub frozen: HashSet<(usize, u16)>,
    made: u16,
    pub steps: u64,
    /// Every question and its answer are printed.
    pub shows: bool,
}

/// One end.
pub struct End {
    pub record: Record,
    pub carrier: Option<(u16, Halves)>,
    pub locks: [Option<usize>; 2],
    pub processes: [Process; 2],
    /// This end wants to part with its carrier.
    pub parting: bool,
}

/// The holders of one end, as one of its processes sees them.
pub struct Family<'a> {
    own: usize,
    lives: [Life; 2],
    locks: &'a mut [Option<usize>; 2],
}

/// The anchor of one end.
pub struct Socket<'a> {
    now: u64,
    inward: &'a mut Tcp,
    outward: &'a mut Tcp,
}

/// Carries a whole script out. Returns how many steps it took.
pub fn run(script: &Script) -> u64 {
    let mut world = World::new(script.clone());
    while world.step() {}
    world.check();
    world.steps
}

impl World {
    fn new(script: Script) -> World {
        let end = |side: usize| {
            let memory = Memory::heap(record::LEN).expect("memory");
            let owner = Holder::new(0).expect("a place");
            End {
                record: Record::create(&memory, 0, 1, owner, [0; 2]).expect("a record"),
                carrier: None,
                locks: [None; 2],
                processes: [Process::new(Life::Alive, &script.ops[side]), Process::new(Life::Absent, &[])],
                parting: false,
            }
        };
        let ends = [end(0), end(1)];
        World {
            now: 0,
            random: Seeded::new(script.seed),
            tcp: [(); 2].map(|()| Tcp::new(script.room, script.delay)),
            ends,
            changes: 0,
            lossy: [false; 2],
            accepted: [[0; 2]; 2],
            consumed: [[0; 2]; 2],
            frozen: HashSet::new(),
            made: 0,
            steps: 0,
            shows: env::var_os("SIDESTEP_SHOW").is_some(),
            script,
        }
    }

    /// Lets something happen. `false`: nothing will any more.
    fn step(&mut self) -> bool {
        self.steps += 1;
        assert!(self.steps < MOST_STEPS, "does not come to rest: {:?}", self.script);
        if self.script.fault.is_some_and(|fault| fault.after == self.steps) {
            self.strike();
        }
        self.pass(1);
        if self.random.chance(120) {
            self.promote();
        }
        let candidates: Vec<(usize, usize, Direction)> = (0..8)
            .map(|at| (at / 4, at / 2 % 2, if at % 2 == 0 { Direction::Read } else { Direction::Write }))
            .filter(|(end, process, task)| self.may_run(*end, *process, *task))
            .collect();
        if candidates.is_empty() {
            let Some(next) = self.next_event() else { return false };
            self.pass(next - self.now);
            return true;
        }
        let (end, process, task) = candidates[self.random.below(candidates.len() as u64) as usize];
        match task {
            Direction::Read => self.read_step(end, process),
            Direction::Write => self.write_step(end, process),
        }
        true
    }

    /// Time passes; what comes meanwhile is a change.
    fn pass(&mut self, time: u64) {
        let comes = |tcp: &Tcp| tcp.next_event(self.now).is_some_and(|when| when <= self.now + time);
        if self.tcp.iter().any(comes) {
            self.changes += 1;
        }
        self.now += time;
        for process in self.ends.iter_mut().flat_map(|end| &mut end.processes) {
            if matches!(process.life, Life::Stopped(until) if until <= self.now) {
                process.life = Life::Alive;
            }
        }
    }

    fn next_event(&self) -> Option<u64> {
        let tcp = self.tcp.iter().filter_map(|tcp| tcp.next_event(self.now));
        let processes = self.ends.iter().flat_map(|end| &end.processes).filter_map(|process| process.next_event());
        tcp.chain(processes).filter(|when| *when > self.now).min()
    }

    /// What the script says happens to one of its ends.
    fn strike(&mut self) {
        let Some(Fault { end, what, .. }) = self.script.fault else { return };
        let living = [0, 1].map(|at| self.ends[end].processes[at].life == Life::Alive);
        let Some(at) = (0..2).map(|at| (at + self.random.below(2) as usize) % 2).find(|at| living[*at]) else { return };
        match what {
            What::Kill => self.kill(end, at),
            What::Stop => self.ends[end].processes[at].life = Life::Stopped(self.now + STOP),
            What::Reset => {
                self.tcp[end].reset(self.now);
                self.lossy[end] = true;
                (0..2).filter(|at| living[*at]).for_each(|at| self.kill(end, at));
            }
            What::GiveBack => self.ends[end].processes[at].demote(self.now),
            What::Fork => self.ends[end].processes[at].fork_next(),
        }
        self.changes += 1;
    }

    fn kill(&mut self, end: usize, at: usize) {
        // What it had taken back from a ring and not sent goes with it.
        self.lossy[end] |= !self.ends[end].processes[at].taken.is_empty();
        self.leave(end, at);
        // Another holder has to end what this one would have.
        self.ends[end].processes.iter_mut().for_each(|process| process.has_written = false);
    }

    /// A process is gone: the kernel closes what nobody else holds.
    pub fn leave(&mut self, end: usize, at: usize) {
        self.ends[end].processes[at].life = Life::Gone;
        if self.ends[end].processes.iter().all(|process| !process.life.holds()) {
            self.tcp[end].finish(self.now);
            self.tcp[1 - end].refuse(self.now);
            self.ends[end].carrier = None;
        }
        self.changes += 1;
    }

    /// A carrier for both ends, if neither has one; and one that is there may be opened.
    fn promote(&mut self) {
        let sole = [0, 1].map(|end| self.sole(end));
        let [Some(first), Some(second)] = sole else { return };
        let free = |end: &End| end.carrier.is_none();
        if self.ends.iter().all(free) && self.made < self.script.carriers {
            self.made += 1;
            let halves = carriers::make(self.script.kind, self.script.capacity);
            for (end, halves) in self.ends.iter_mut().zip(halves) {
                assert_eq!(end.record.mount(self.made), Ok(true), "the former carrier is over");
                end.carrier = Some((self.made, halves));
                end.parting = false;
            }
        }
        let end = self.random.below(2) as usize;
        let at = [first, second][end];
        if self.ends[end].processes[at].may_open() && self.with_read(end, at, |call| call.open()) {
            self.changes += 1;
        }
    }

    /// The one process that holds this end, if it uses carriers.
    fn sole(&self, end: usize) -> Option<usize> {
        let holds = |at: &usize| self.ends[end].processes[*at].life.holds();
        let mut holders = [0, 1].into_iter().filter(holds);
        let (one, other) = (holders.next()?, holders.next());
        let process = &self.ends[end].processes[one];
        (other.is_none() && process.life == Life::Alive && !process.plain).then_some(one)
    }

    /// A carrier that is over both ways is dropped, whatever the peer has come to.
    pub fn drop_parted(&mut self, end: usize) {
        let end = &mut self.ends[end];
        if let Some((number, _)) = end.carrier
            && end.record.has_parted(number) == Ok(true)
        {
            end.carrier = None;
            self.changes += 1;
        }
    }

    /// Makes a receiving call of a process.
    pub fn with_read<T>(
        &mut self,
        end: usize,
        at: usize,
        call: impl FnOnce(&mut ReadCall<'_, '_, Socket<'_>, Family<'_>>) -> T,
    ) -> T {
        let World { tcp, ends, now, .. } = self;
        let End { record, carrier, locks, processes, .. } = &mut ends[end];
        let lives = processes.each_ref().map(|process| process.life);
        let carrier = carrier.as_mut().map(|(number, halves)| {
            let half = halves.inbound.as_mut().expect("a half");
            Inward { number: *number, half, watch: halves.carrier.watch() }
        });
        let mut parts = [std::io::IoSliceMut::new(&mut processes[at].buffer)];
        call(&mut ReadCall {
            record,
            carrier,
            anchor: &mut Socket::new(tcp, end, *now),
            holders: &mut Family { own: at, lives, locks },
            parts: &mut parts,
        })
    }

    /// Makes a sending call of a process.
    pub fn with_write<T>(
        &mut self,
        end: usize,
        at: usize,
        call: impl FnOnce(&mut WriteCall<'_, Socket<'_>, Family<'_>>) -> T,
    ) -> T {
        let World { tcp, ends, now, .. } = self;
        let End { record, carrier, locks, processes, .. } = &mut ends[end];
        let lives = processes.each_ref().map(|process| process.life);
        let carrier = carrier.as_mut().map(|(number, halves)| {
            let capacity = halves.carrier.capacity.load(std::sync::atomic::Ordering::Relaxed);
            let half = halves.outbound.as_mut().expect("a half");
            Outward { number: *number, half, watch: halves.carrier.watch(), capacity }
        });
        let Process { data, taken, .. } = &mut processes[at];
        call(&mut WriteCall {
            record,
            carrier,
            anchor: &mut Socket::new(tcp, end, *now),
            holders: &mut Family { own: at, lives, locks },
            parts: &[std::io::IoSlice::new(data)],
            taken,
        })
    }

    /// Bytes have come to a program: those of one writer in order, each once.
    pub fn consume(&mut self, end: usize, bytes: &[u8]) {
        let direction = 1 - end;
        for byte in bytes {
            let writer = usize::from(byte >> 7);
            let due = self.consumed[direction][writer];
            assert_eq!(
                u64::from(byte & 0x7f),
                due % PATTERN,
                "byte {due} of writer {writer} of end {direction} was due: {:?}",
                self.script
            );
            self.consumed[direction][writer] += 1;
        }
    }

    /// At an end of the stream: it is the anchor's, and nothing is missing before it.
    pub fn check_end(&self, end: usize) {
        let direction = 1 - end;
        assert!(self.tcp[direction].has_ended(self.now), "an end that is not the anchor's: {:?}", self.script);
        if !self.lossy[direction] {
            assert_eq!(
                self.consumed[direction], self.accepted[direction],
                "the end came to end {end} before the last bytes: {:?}",
                self.script
            );
        }
    }

    /// At rest everybody has come to an end, and the counts are the kernel's.
    fn check(&self) {
        for (number, end) in self.ends.iter().enumerate() {
            for (at, process) in end.processes.iter().enumerate() {
                assert!(
                    !process.life.holds(),
                    "process {at} of end {number} waits for ever: {}, {:?}",
                    process.state(),
                    self.script
                );
            }
            let reading = &self.consumed[1 - number];
            assert!(reading.iter().zip(&self.accepted[1 - number]).all(|(read, written)| read <= written));
        }
    }
}

/// Numbers that the bytes of one writer go round.
pub const PATTERN: u64 = 127;

impl<'a> Socket<'a> {
    fn new(tcp: &'a mut [Tcp; 2], end: usize, now: u64) -> Socket<'a> {
        let [first, second] = tcp;
        let (outward, inward) = if end == 0 { (first, second) } else { (second, first) };
        Socket { now, inward, outward }
    }
}

impl sidestep_stream::driver::Anchor for Socket<'_> {
    fn pending(&mut self) -> (u64, bool) {
        self.inward.pending(self.now)
    }

    fn receive(&mut self, parts: &mut [std::io::IoSliceMut<'_>], most: usize) -> usize {
        let part = &mut parts[0];
        let bytes = self.inward.receive(self.now, most.min(part.len()));
        part[..bytes.len()].copy_from_slice(&bytes);
        bytes.len()
    }

    fn send(&mut self, parts: &[std::io::IoSlice<'_>]) -> usize {
        if self.outward.is_finished() { 0 } else { self.outward.send(self.now, &parts[0]) }
    }

    fn send_all(&mut self, bytes: &[u8]) {
        self.outward.send_all(self.now, bytes);
    }

    fn received(&mut self) -> u64 {
        self.inward.received
    }

    fn sent(&mut self) -> u64 {
        self.outward.sent
    }
}

impl Holders for Family<'_> {
    fn own(&self) -> Holder {
        Holder::new(self.own).expect("a place")
    }

    fn is_sole(&self) -> bool {
        self.lives.iter().filter(|life| life.holds()).count() == 1
    }

    fn try_lock(&mut self, direction: Direction) -> Locked {
        let lock = &mut self.locks[direction as usize];
        match *lock {
            None => {
                *lock = Some(self.own);
                Locked::Yes
            }
            Some(holder) if !self.lives[holder].holds() => {
                *lock = Some(self.own);
                Locked::Inherited
            }
            Some(_) => Locked::No,
        }
    }

    fn unlock(&mut self, direction: Direction) {
        let lock = &mut self.locks[direction as usize];
        if *lock == Some(self.own) {
            *lock = None;
        }
    }
}
