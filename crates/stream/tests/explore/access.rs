//! What each question of a machine does to the world: one access to a shared word, or one system call.

use super::{CAPACITY, GONE, Life, READER, Setup, TCP_ROOM, WRITER, World, side};
use crate::path::{Answer, Ask, End, Start, Tail};

impl World {
    /// Carries one question of a machine out.
    pub(super) fn carry_out(&mut self, setup: &Setup, at: usize, ask: Ask) -> Result<Answer, String> {
        let of = side(at);
        let yes = |condition: bool| if condition { Answer::Yes } else { Answer::No };
        // A carrier that only its writer can end is in memory which a child does not have.
        let reaches = !setup.writer_ends || at % 2 == 0;
        Ok(match ask {
            Ask::Owner => yes(self.owners[of].is_none_or(|owner| owner == at)),
            Ask::TakeOver => {
                self.owners[of] = None;
                Answer::Done
            }
            Ask::Start => Answer::Start(self.shown.0),
            Ask::Tail(ring) if of == READER => Answer::Tail(self.shown.1[ring as usize]),
            Ask::Tail(ring) => Answer::Tail(self.tails[ring as usize]),
            Ask::Arrived(_) => yes(self.flight.is_empty()),
            Ask::Freeze(ring) => {
                if reaches && (of == WRITER || !setup.writer_ends) {
                    self.settle(ring, &[End::Open, End::Asked], End::Frozen);
                }
                Answer::Tail(self.tails[ring as usize])
            }
            Ask::Withdraw(ring) => {
                self.settle(ring, &[End::Open, End::Wanted], End::Frozen);
                Answer::Done
            }
            Ask::Request(ring) => {
                self.settle(ring, &[End::Open], End::Asked);
                Answer::Done
            }
            Ask::Forget(ring) => {
                self.forgotten[ring as usize] = true;
                self.data[ring as usize] = [GONE; CAPACITY as usize];
                Answer::Done
            }
            Ask::Reclaim(ring) => {
                self.settle(ring, &[End::Taken], End::Frozen);
                Answer::Yes
            }
            Ask::TakeBack(ring) => yes(self.settle(ring, &[End::Wanted], End::Taken)),
            Ask::ConfirmSent(ring) => {
                self.settle(ring, &[End::Taken], End::Sent);
                Answer::Done
            }
            Ask::Want { ring, at } => {
                let same = self.tails[ring as usize].position == at;
                yes(same && self.settle(ring, &[End::Open], End::Wanted))
            }
            Ask::Opened => Answer::Count(u64::from(self.opened)),
            Ask::Head(ring) => Answer::Count(self.heads[ring as usize]),
            Ask::TellHead { ring, at } => {
                self.heads[ring as usize] = at;
                Answer::Done
            }
            Ask::TcpTaken => Answer::Count(self.tcp_taken),
            Ask::CountTaken(count) => {
                self.tcp_taken += count;
                Answer::Done
            }
            Ask::Recover => {
                let (counted, kernel) = match of {
                    WRITER => (&mut self.tcp_sent, self.kernel_sent),
                    _ => (&mut self.tcp_taken, self.kernel_taken),
                };
                *counted = kernel;
                Answer::Count(kernel.saturating_sub(self.start.after_tcp))
            }
            Ask::Position(ring) => {
                let (at, offered) = self.positions[ring as usize];
                Answer::Position { at, offered }
            }
            Ask::CopyOut { ring, at: from, count } => {
                let data = self.data[ring as usize];
                let byte = |at: u64| if reaches { data[(at % CAPACITY) as usize] } else { GONE };
                self.actors[at].copied = (from..from + count).map(byte).collect();
                Answer::Done
            }
            Ask::Commit { ring, from, to } => {
                let copied = std::mem::take(&mut self.actors[at].copied);
                let won = self.positions[ring as usize] == (from, false);
                if won || cfg!(without = "commit") {
                    self.positions[ring as usize] = (to, false);
                    self.actors[at].tell = Some((ring, to));
                    for byte in copied {
                        self.consume(byte)?;
                    }
                }
                yes(won)
            }
            Ask::Offer { ring, at } => {
                let position = &mut self.positions[ring as usize];
                let won = *position == (at, false);
                position.1 |= won;
                yes(won)
            }
            Ask::Resume { ring, from, to } => {
                let position = &mut self.positions[ring as usize];
                let won = position.0 == from && (position.1 || from == to);
                if won {
                    *position = (to, false);
                }
                yes(won)
            }
            Ask::Lock => match self.locks[of] {
                None => {
                    self.locks[of] = Some(at);
                    Answer::Yes
                }
                Some(holder) if matches!(self.actors[holder].life, Life::Dead | Life::Finished) => {
                    self.locks[of] = Some(at);
                    Answer::Inherited
                }
                Some(_) => Answer::No,
            },
            Ask::Unlock => {
                if self.locks[of] == Some(at) {
                    self.locks[of] = None;
                }
                Answer::Done
            }
            Ask::Pending => Answer::Pending { bytes: self.tcp.len() as u64, ended: self.ended },
            Ask::TakeTcp(count) => {
                let taken: Vec<u8> = self.tcp.drain(..(count as usize).min(self.tcp.len())).collect();
                self.kernel_taken += taken.len() as u64;
                let count = taken.len() as u64;
                for byte in taken {
                    self.consume(byte)?;
                }
                self.wake(WRITER);
                Answer::Count(count)
            }
            Ask::Entered => Answer::Count(u64::from(self.entered)),
            Ask::Enter(ring) => {
                let sole = self.holders(WRITER) == 1 || cfg!(without = "sole_enters");
                let counted = self.tcp_sent == self.kernel_sent || cfg!(without = "sole_enters");
                let may = reaches && sole && counted;
                if may {
                    self.start = Start { ring, after_tcp: self.tcp_sent };
                    self.entered = ring;
                    self.wake(READER);
                }
                yes(may)
            }
            Ask::CopyIn { ring, at: position } => {
                let byte = if reaches { at as u8 * 16 + self.actors[at].next } else { GONE };
                self.data[ring as usize][(position % CAPACITY) as usize] = byte;
                Answer::Done
            }
            Ask::Publish { ring, from, .. } if setup.refuses && from > self.heads[ring as usize] => Answer::Count(0),
            Ask::Publish { ring, from, to } => {
                let tail = &mut self.tails[ring as usize];
                let open = tail.position == from && matches!(tail.end, End::Open | End::Asked);
                if open {
                    tail.position = to;
                } else if cfg!(without = "publish") {
                    *tail = Tail { position: to, end: tail.end };
                }
                if open || cfg!(without = "publish") {
                    self.accepted[at] += 1;
                    self.wake(READER);
                }
                yes(open || cfg!(without = "publish"))
            }
            Ask::SendBack { ring, from, to } => {
                // TCP has space for them, but does not take them all at once.
                let to = to.min(from + 1);
                let bytes = (from..to).map(|at| self.data[ring as usize][(at % CAPACITY) as usize]);
                self.tcp.extend(bytes);
                self.kernel_sent += to - from;
                self.wake(READER);
                Answer::Count(to - from)
            }
            Ask::SendTcp => {
                if self.tcp.len() >= TCP_ROOM {
                    return Ok(Answer::Count(0));
                }
                let byte = at as u8 * 16 + self.actors[at].next;
                self.tcp.push(byte);
                self.kernel_sent += 1;
                self.accepted[at] += 1;
                self.wake(READER);
                Answer::Count(1)
            }
            Ask::CountSent(count) => {
                self.tcp_sent += count;
                Answer::Done
            }
            Ask::Done(_) => return Err("a call that has ended asks".into()),
        })
    }

    /// Changes how a ring ends, from one of some states. Wakes both ends.
    fn settle(&mut self, ring: u16, from: &[End], to: End) -> bool {
        let tail = &mut self.tails[ring as usize];
        let may = from.contains(&tail.end);
        if may {
            tail.end = to;
            self.wake(READER);
            self.wake(WRITER);
        }
        may
    }
}
