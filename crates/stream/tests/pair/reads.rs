//! The thread of a process that reads.

use sidestep_stream::path::{Answer, Ask, GiveBack, Outcome, Reader};

use super::{Giving, Machine, READ, Task, Why};
use crate::world::World;

impl World {
    /// One step of a thread that reads.
    pub fn read_step(&mut self, end: usize, at: usize) {
        let now = self.now;
        let process = &mut self.ends[end].processes[at];
        let was = std::mem::replace(&mut process.read, Task::Idle);
        match was {
            Task::Call(machine, Ask::Done(outcome)) => return self.has_read(end, at, machine, outcome),
            Task::Call(machine, ask) => return self.ask_reader(end, at, machine, ask),
            Task::Idle | Task::Asleep(..) => {}
        }
        if process.plain {
            return self.read_plain(end, at);
        }
        if process.giving.is_some_and(|giving| giving.until <= now) {
            process.giving = None;
        }
        if process.giving.is_some_and(|giving| !giving.reads) {
            let mut give_back = GiveBack::default();
            let freezes = self.with_read(end, at, |call| call.freezes());
            let ask = give_back.begin(freezes);
            self.ends[end].processes[at].seen[READ] = self.changes;
            self.ends[end].processes[at].read = Task::Call(Machine::GiveBack(give_back), ask);
            return;
        }
        let looks = self.random.chance(300);
        self.begin_read(end, at, looks);
    }

    fn begin_read(&mut self, end: usize, at: usize, look: bool) {
        let room = 1 + self.random.below(2 * self.script.capacity) as usize;
        let process = &mut self.ends[end].processes[at];
        process.buffer = vec![0; room];
        process.seen[READ] = self.changes;
        let mut reader = Reader::default();
        let ask = reader.begin(room as u64, look);
        process.read = Task::Call(Machine::Read(reader, look), ask);
    }

    fn ask_reader(&mut self, end: usize, at: usize, mut machine: Machine, ask: Ask) {
        let answer = self.with_read(end, at, |call| call.carry_out(ask));
        if self.shows {
            println!("{} reader {end}.{at}: {ask:?} -> {answer:?}", self.steps);
        }
        if self.is_change(1 - end, ask, answer) {
            self.changes += 1;
            self.ends[end].processes[at].seen[READ] += 1;
        }
        let bytes = match (ask, answer) {
            (Ask::Commit { from, to, .. }, Answer::Yes) => (to - from) as usize,
            (Ask::TakeTcp(_), Answer::Count(count)) => count as usize,
            _ => 0,
        };
        let bytes: Vec<u8> = self.ends[end].processes[at].buffer[..bytes].to_vec();
        self.consume(end, &bytes);
        let next = match &mut machine {
            Machine::Read(reader, _) => reader.step(answer),
            Machine::GiveBack(give_back) => give_back.step(answer),
            _ => unreachable!("a thread that reads does not write"),
        };
        self.ends[end].processes[at].read = Task::Call(machine, next);
    }

    fn has_read(&mut self, end: usize, at: usize, machine: Machine, outcome: Outcome) {
        let now = self.now;
        let lossy = self.lossy[1 - end];
        match (machine, outcome) {
            (_, Outcome::Broken) => {
                assert!(lossy, "end {end} finds the stream broken: {:?}", self.script);
                self.end_reading(end, at);
            }
            (Machine::GiveBack(_), outcome) => self.gave_back(end, at, outcome),
            (Machine::Read(_, look), outcome) => {
                self.with_read(end, at, |call| call.settle());
                self.changes += u64::from(matches!(outcome, Outcome::Moved(_)));
                let process = &mut self.ends[end].processes[at];
                if let Some(giving) = &mut process.giving {
                    giving.reads = false;
                }
                match outcome {
                    Outcome::Wait if !look => self.begin_read(end, at, true),
                    Outcome::Wait => process.read = Task::Asleep(process.seen[READ], process.giving.map(|_| now + 1)),
                    Outcome::End => {
                        self.check_end(end);
                        self.end_reading(end, at);
                    }
                    _ => {}
                }
            }
            _ => unreachable!("a thread that reads does not write"),
        }
        self.drop_parted(end);
    }

    fn gave_back(&mut self, end: usize, at: usize, outcome: Outcome) {
        let process = &mut self.ends[end].processes[at];
        let Some(giving) = process.giving else { return };
        match outcome {
            Outcome::Wait => {
                process.read = Task::Asleep(process.seen[READ], Some(giving.until));
                return;
            }
            Outcome::Busy => {
                process.giving = Some(Giving { reads: true, ..giving });
                return;
            }
            _ => process.giving = None,
        }
        match giving.why {
            Why::Exec => process.plain = true,
            Why::Fork => self.fork(end, at),
            Why::Demotion => {}
        }
        self.changes += 1;
    }

    fn read_plain(&mut self, end: usize, at: usize) {
        let (pending, ended) = self.tcp[1 - end].pending(self.now);
        if pending > 0 {
            let most = 1 + self.random.below(pending) as usize;
            let bytes = self.tcp[1 - end].receive(self.now, most);
            self.changes += 1;
            self.consume(end, &bytes);
        } else if ended {
            self.check_end(end);
            self.end_reading(end, at);
        } else {
            self.ends[end].processes[at].read = Task::Asleep(self.changes, None);
        }
    }

    fn end_reading(&mut self, end: usize, at: usize) {
        let process = &mut self.ends[end].processes[at];
        process.has_read = true;
        process.giving = None;
        self.changes += 1;
        if process.has_written {
            self.leave(end, at);
        }
    }
}
