//! The thread of a process that carries its script out.

use sidestep_stream::{
    carrier::{Outbound, Watch},
    path::{Answer, Ask, End as Ending, Outcome, Tail, Writer},
};

use super::{Giving, Life, Machine, PATIENCE, Process, Task, WRITE, Why};
use crate::{
    carriers::Kind,
    script::Op,
    world::{PATTERN, World},
};

impl World {
    /// One step of a thread that carries the script out.
    pub fn write_step(&mut self, end: usize, at: usize) {
        let process = &mut self.ends[end].processes[at];
        let was = std::mem::replace(&mut process.write, Task::Idle);
        match was {
            Task::Call(machine, Ask::Done(outcome)) => return self.has_written(end, at, machine, outcome),
            Task::Call(machine, ask) => return self.ask_writer(end, at, machine, ask),
            Task::Idle | Task::Asleep(..) => {}
        }
        // Nobody reads any more, or another holder has shut the stream down.
        if self.tcp[end].is_refused(self.now) || self.tcp[end].is_finished() {
            process.ops.clear();
            process.data.clear();
            process.giving = None;
            return self.end_writing(end, at);
        }
        if self.wants_to_part(end, at) {
            return self.begin_write(end, at, |writer, capacity, number| {
                (Machine::Part as fn(Writer) -> Machine, writer.begin_part(number, capacity))
            });
        }
        self.carry_on(end, at);
    }

    /// Does what comes next in the script.
    fn carry_on(&mut self, end: usize, at: usize) {
        let (now, changes, kind) = (self.now, self.changes, self.script.kind);
        let sole = self.ends[end].processes.iter().filter(|process| process.life.holds()).count() == 1;
        let process = &mut self.ends[end].processes[at];
        match process.ops.front().copied() {
            Some(Op::Write(len) | Op::Overflow(len)) if process.data.is_empty() => {
                let byte = |index: u64| (at as u8) << 7 | (index % PATTERN) as u8;
                process.data = (process.made..process.made + len as u64).map(byte).collect();
                process.made += len as u64;
            }
            Some(Op::Write(_) | Op::Overflow(_)) if process.plain => self.write_plain(end, at),
            Some(Op::Write(_)) => self.begin_data(end, at, false),
            Some(Op::Overflow(_)) => self.begin_data(end, at, true),
            Some(Op::Pause(time)) => {
                process.ops.pop_front();
                process.write = Task::Asleep(u64::MAX, Some(now + time));
            }
            Some(Op::Part) => {
                process.ops.pop_front();
                process.demote(now);
                self.ends[end].parting = true;
                self.changes += 1;
            }
            // Two processes at each end are enough.
            Some(Op::Fork) if !sole || at == 1 || process.plain => _ = process.ops.pop_front(),
            Some(Op::Exec) if !sole || process.plain => _ = process.ops.pop_front(),
            Some(Op::Fork) if kind == Kind::Ring => {
                process.ops.pop_front();
                self.fork(end, at);
            }
            Some(Op::Fork | Op::Exec) if !process.has_left => self.begin_close(end, at),
            // It has been given back, or not in time.
            Some(op @ (Op::Fork | Op::Exec)) => match process.giving {
                Some(_) => process.write = Task::Asleep(changes, Some(now + PATIENCE)),
                None => {
                    process.ops.pop_front();
                    process.has_left = false;
                    let _ = op;
                }
            },
            Some(Op::Shutdown | Op::Close) | None => {
                let others = self.ends[end].processes.iter().enumerate();
                let others = others.filter(|(other, process)| *other != at && process.life.holds());
                if others.into_iter().any(|(_, process)| !process.has_written) {
                    self.end_writing(end, at);
                } else {
                    self.begin_close(end, at);
                }
            }
        }
    }

    fn begin_data(&mut self, end: usize, at: usize, overflow: bool) {
        let count = self.ends[end].processes[at].data.len() as u64;
        self.begin_write(end, at, |writer, capacity, _| {
            (Machine::Write as fn(Writer) -> Machine, writer.begin(count, capacity, overflow))
        });
    }

    fn begin_close(&mut self, end: usize, at: usize) {
        self.begin_write(end, at, |writer, capacity, _| {
            (Machine::Close as fn(Writer) -> Machine, writer.begin_close(capacity))
        });
    }

    fn begin_write(
        &mut self,
        end: usize,
        at: usize,
        begin: impl FnOnce(&mut Writer, u64, u16) -> (fn(Writer) -> Machine, Ask),
    ) {
        let capacity = self.with_write(end, at, |call| call.capacity());
        let number = self.ends[end].carrier.as_ref().map_or(0, |(number, _)| *number);
        let mut writer = Writer::default();
        let (machine, ask) = begin(&mut writer, capacity, number);
        let process = &mut self.ends[end].processes[at];
        process.seen[WRITE] = self.changes;
        process.write = Task::Call(machine(writer), ask);
    }

    fn ask_writer(&mut self, end: usize, at: usize, mut machine: Machine, ask: Ask) {
        let answer = self.with_write(end, at, |call| call.carry_out(ask));
        if self.shows {
            println!("{} writer {end}.{at}: {ask:?} -> {answer:?}", self.steps);
        }
        if self.is_change(end, ask, answer) {
            self.changes += 1;
            self.ends[end].processes[at].seen[WRITE] += 1;
        }
        if let (Ask::Publish { .. } | Ask::SendTcp, Answer::Count(count)) = (ask, answer) {
            self.accepted[end][at] += count;
        }
        let (Machine::Write(writer) | Machine::Close(writer) | Machine::Part(writer)) = &mut machine else {
            unreachable!("a thread that writes does not read")
        };
        let next = writer.step(answer);
        self.ends[end].processes[at].write = Task::Call(machine, next);
    }

    fn has_written(&mut self, end: usize, at: usize, machine: Machine, outcome: Outcome) {
        let now = self.now;
        let lossy = self.lossy[end];
        let process = &mut self.ends[end].processes[at];
        match (machine, outcome) {
            (_, Outcome::Broken) => {
                assert!(lossy, "end {end} finds the stream broken when it writes: {:?}", self.script);
                process.ops.clear();
                self.tcp[end].finish(now);
                self.end_writing(end, at);
            }
            (_, Outcome::Busy) => {}
            (Machine::Write(_), Outcome::Moved(count)) => {
                process.data.drain(..count as usize);
                if process.data.is_empty() {
                    process.ops.pop_front();
                }
            }
            (Machine::Write(_), _) => process.write = Task::Asleep(process.seen[WRITE], None),
            (Machine::Close(_), _) => self.has_closed(end, at),
            _ => self.drop_parted(end),
        }
    }

    /// The carrier has been ended by this side, for one of several reasons.
    fn has_closed(&mut self, end: usize, at: usize) {
        let process = &mut self.ends[end].processes[at];
        match process.ops.front() {
            Some(op @ (Op::Exec | Op::Fork)) => {
                let why = if *op == Op::Exec { Why::Exec } else { Why::Fork };
                process.has_left = true;
                // A reader that has come to its end has nothing to give back.
                if process.has_read {
                    process.giving = None;
                } else {
                    process.giving = Some(Giving { until: self.now + PATIENCE, why, reads: false });
                }
                self.changes += 1;
            }
            Some(Op::Close) => {
                process.ops.clear();
                self.tcp[end].finish(self.now);
                self.leave(end, at);
            }
            _ => {
                process.ops.clear();
                self.tcp[end].finish(self.now);
                self.end_writing(end, at);
            }
        }
    }

    fn write_plain(&mut self, end: usize, at: usize) {
        let process = &mut self.ends[end].processes[at];
        let count = self.tcp[end].send(self.now, &process.data);
        process.data.drain(..count);
        if count == 0 {
            process.write = Task::Asleep(self.changes, None);
        }
        if process.data.is_empty() {
            process.ops.pop_front();
        }
        self.accepted[end][at] += count as u64;
        self.changes += 1;
    }

    fn end_writing(&mut self, end: usize, at: usize) {
        let process = &mut self.ends[end].processes[at];
        process.has_written = true;
        self.changes += 1;
        if process.has_read {
            self.leave(end, at);
        }
    }

    /// The child has the rest of the script, and so has the parent.
    pub(super) fn fork(&mut self, end: usize, at: usize) {
        let ops: Vec<Op> = self.ends[end].processes[at].ops.iter().copied().filter(|op| *op != Op::Fork).collect();
        if at == 0 && self.ends[end].processes[1].life == Life::Absent {
            self.ends[end].processes[1] = Process::new(Life::Alive, &ops);
            self.changes += 1;
        }
    }

    /// A sole holder parts with a carrier that has ended, or that it wants to be rid of, now and then.
    fn wants_to_part(&mut self, end: usize, at: usize) -> bool {
        let sole = self.ends[end].processes.iter().filter(|process| process.life.holds()).count() == 1;
        let chosen = self.random.chance(250);
        let state = &mut self.ends[end];
        if !sole || !chosen || state.processes[at].plain || state.processes[at].has_left {
            return false;
        }
        let Some((number, halves)) = &mut state.carrier else { return false };
        let reading = state.record.reading();
        let asked = halves.carrier.watch().reader_note() & 2 != 0;
        let ended = halves.outbound.as_mut().is_some_and(|half| half.end() != Ok(Ending::Open));
        let ended = ended || asked || state.record.writing().end() != Ok(Tail::default());
        // One that was never opened brings nothing.
        let number = *number;
        let over = reading.over().expect("a record") >= number;
        if !over && (state.parting || ended) && reading.opened().expect("a record") < number {
            reading.set_over(number);
        }
        (state.parting || ended || over) && state.record.writing().forgotten().expect("a record") < number
    }
}
