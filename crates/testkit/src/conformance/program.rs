//! Random programs of fabric operations against an oracle that is two arrays of bytes.

use sidestep_fabric::{Aperture, Error, RdmaQueue, Region, RegionSlice, rdma::RequestId};

use super::{
    fixture::Fixture,
    nodes::{Pair, contents, pattern},
};
use crate::seeded::Seeded;

/// One operation of a program, at `a`.
#[derive(Debug, Clone, Copy)]
enum Step {
    Store { offset: usize, len: usize, seed: u64 },
    StoreWord { offset: usize, value: u64 },
    Write { from: usize, to: usize, len: usize },
    Read { from: usize, to: usize, len: usize },
    Immediate { offset: usize, value: u32 },
    FetchAdd { offset: usize, value: u64, into: usize },
    CompareSwap { offset: usize, guess_right: bool, new: u64, into: usize },
    Revoke,
}

/// What the two memories must hold.
struct Oracle {
    local: Vec<u8>,
    remote: Vec<u8>,
}

struct Machine<'a> {
    pair: &'a Pair,
    local: Region,
    remote: Region,
    aperture: Aperture,
    queue: RdmaQueue,
    last: Option<RequestId>,
}

const LEN: usize = 64 * 1024;
const PROGRAMS: u64 = 12;
const STEPS: usize = 60;

/// Whatever a program does, the memories of both sides are what a simple model says.
pub fn memories_are_what_the_oracle_says(fixture: Fixture) {
    for seed in 1..=PROGRAMS {
        let pair = Pair::new(fixture);
        let mut random = Seeded::new(seed);
        let mut oracle = Oracle { local: pattern(LEN, seed), remote: pattern(LEN, !seed) };
        let mut machine = Machine::new(&pair, &oracle);
        let mut steps = Vec::new();
        for _ in 0..STEPS {
            let step = Step::random(&mut random);
            steps.push(step);
            machine.carry_out(step, &oracle);
            oracle.carry_out(step);
            if random.chance(150) {
                machine.compare(&oracle, seed, &steps);
            }
        }
        machine.compare(&oracle, seed, &steps);
    }
}

impl Step {
    fn random(random: &mut Seeded) -> Step {
        let len = match random.below(4) {
            0 => random.below(9),
            1 => random.below(200),
            2 => random.below(5_000),
            _ => random.below(LEN as u64),
        } as usize;
        let mut place = |len: usize| random.below((LEN - len + 1) as u64) as usize;
        let (from, to) = (place(len), place(len));
        let (word, half, into) = (place(8) / 8 * 8, place(4) / 4 * 4, place(8) / 8 * 8);
        let value = random.next_u64();
        match random.below(100) {
            0..20 => Step::Store { offset: to, len, seed: value },
            20..30 => Step::StoreWord { offset: word, value },
            30..50 => Step::Write { from, to, len },
            50..70 => Step::Read { from, to, len },
            70..78 => Step::Immediate { offset: half, value: value as u32 },
            78..88 => Step::FetchAdd { offset: word, value, into },
            88..97 => Step::CompareSwap { offset: word, guess_right: value % 2 == 0, new: value, into },
            _ => Step::Revoke,
        }
    }
}

impl Oracle {
    fn carry_out(&mut self, step: Step) {
        match step {
            Step::Store { offset, len, seed } => self.remote[offset..offset + len].copy_from_slice(&pattern(len, seed)),
            Step::StoreWord { offset, value } => self.set_word(offset, value),
            Step::Write { from, to, len } => self.remote[to..to + len].copy_from_slice(&self.local[from..from + len]),
            Step::Read { from, to, len } => self.local[to..to + len].copy_from_slice(&self.remote[from..from + len]),
            Step::Immediate { offset, value } => self.remote[offset..offset + 4].copy_from_slice(&value.to_le_bytes()),
            Step::FetchAdd { offset, value, into } => {
                let held = self.word(offset);
                self.set_word(offset, held.wrapping_add(value));
                self.local[into..into + 8].copy_from_slice(&held.to_le_bytes());
            }
            Step::CompareSwap { offset, guess_right, new, into } => {
                let held = self.word(offset);
                if guess_right {
                    self.set_word(offset, new);
                }
                self.local[into..into + 8].copy_from_slice(&held.to_le_bytes());
            }
            Step::Revoke => {}
        }
    }

    fn word(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.remote[offset..offset + 8].try_into().expect("eight bytes"))
    }

    fn set_word(&mut self, offset: usize, value: u64) {
        self.remote[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    }
}

impl<'a> Machine<'a> {
    fn new(pair: &'a Pair, oracle: &Oracle) -> Machine<'a> {
        let (remote, aperture) = pair.target(LEN);
        let local = Region::new(&pair.a, LEN).expect("memory");
        local.write(0, &oracle.local).expect("the whole region");
        remote.write(0, &oracle.remote).expect("the whole region");
        Machine { pair, local, remote, aperture, queue: RdmaQueue::new(&pair.a, 8), last: None }
    }

    /// Begins a step; the oracle knows what the memories hold before it.
    fn carry_out(&mut self, step: Step, oracle: &Oracle) {
        match step {
            // Stores through the aperture are not in the queue, so each waits for the other.
            Step::Store { offset, len, seed } => {
                self.finish();
                let bytes = pattern(len, seed);
                self.pair.until("room for a store", || room(self.aperture.write(offset, &bytes)));
                self.pair.flush(&self.aperture).expect("stores that arrive");
            }
            Step::StoreWord { offset, value } => {
                self.finish();
                self.pair.until("room for a store", || room(self.aperture.store64(offset, value)));
                self.pair.flush(&self.aperture).expect("stores that arrive");
            }
            Step::Write { from, to, len } => {
                let source = self.part(from, len);
                self.post(|machine| machine.queue.write(&source, &machine.aperture, to));
            }
            Step::Read { from, to, len } => {
                let into = self.part(to, len);
                self.post(|machine| machine.queue.read(&machine.aperture, from, &into));
            }
            Step::Immediate { offset, value } => {
                self.post(|machine| machine.queue.immediate(&machine.aperture, offset, value));
            }
            Step::FetchAdd { offset, value, into } => {
                let into = self.part(into, 8);
                self.post(|machine| machine.queue.fetch_add(&machine.aperture, offset, value, &into));
            }
            Step::CompareSwap { offset, guess_right, new, into } => {
                let expected = oracle.word(offset) ^ u64::from(!guess_right);
                let into = self.part(into, 8);
                self.post(|machine| machine.queue.compare_swap(&machine.aperture, offset, expected, new, &into));
            }
            Step::Revoke => {
                self.finish();
                self.remote.revoke().expect("a revocation");
                let cookie = self.remote.cookie(sidestep_fabric::Rights::ALL);
                self.aperture = self.pair.open(&cookie).expect("a good cookie");
            }
        }
    }

    fn part(&self, offset: usize, len: usize) -> RegionSlice {
        self.local.slice(offset, len).expect("inside")
    }

    fn post(&mut self, post: impl Fn(&Machine<'_>) -> sidestep_fabric::Result<RequestId>) {
        let id = self.pair.until("room in the queue", || room(post(self)));
        self.last = Some(id);
    }

    fn finish(&mut self) {
        if let Some(last) = self.last.take() {
            self.pair.wait(&self.queue, last).expect("all transfers");
        }
    }

    fn compare(&mut self, oracle: &Oracle, seed: u64, steps: &[Step]) {
        self.finish();
        let differs = |ours: &[u8], theirs: &[u8]| ours.iter().zip(theirs).position(|(a, b)| a != b);
        let (local, remote) = (contents(&self.local), contents(&self.remote));
        let found = (differs(&local, &oracle.local), differs(&remote, &oracle.remote));
        assert_eq!(found, (None, None), "first difference (local, remote) in program {seed}: {steps:#?}");
    }
}

fn room<T>(outcome: sidestep_fabric::Result<T>) -> Option<T> {
    match outcome {
        Ok(done) => Some(done),
        Err(Error::Full { .. }) => None,
        Err(error) => panic!("an operation: {error}"),
    }
}
