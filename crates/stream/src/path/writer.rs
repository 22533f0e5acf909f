//! The writing machine of a direction.

use super::{Answer, Ask, End, Outcome, Tail, rule};

/// One writing call of one holder.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Writer {
    state: State,
    /// Bytes of the caller.
    count: u64,
    /// Bytes that a ring holds.
    capacity: u64,
    /// A full ring gives way to TCP.
    overflow: bool,
    purpose: Purpose,
    // What the call has found out so far.
    ring: u16,
    tail: Tail,
    /// Unread bytes that were sent already: by a dead holder, or by an earlier call.
    sent_back: u64,
    /// Where those begin that are to be sent next.
    back: u64,
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Purpose {
    #[default]
    Write,
    /// To end the carrier.
    Close,
    /// To end it, and to forget it.
    Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum State {
    #[default]
    Idle,
    Owner,
    TakeOver,
    EnteredBefore,
    Entered,
    Tail,
    Head,
    CopyIn,
    Publish,
    Freeze,
    Lock,
    TailLocked,
    Recover,
    Unlock,
    UnlockToWait,
    TakeBack,
    Unread,
    ArrivedBefore,
    SendBack,
    CountSentBack,
    ConfirmSent,
    Arrived,
    Opened,
    TailOpened(u16),
    FreezeOpened,
    Enter(u16),
    Read,
    Forget,
    SendTcp,
    CountSent(u64),
}

impl Writer {
    /// Begins a call with so many bytes, for rings of this capacity. `overflow`: a full ring is not waited for.
    pub fn begin(&mut self, count: u64, capacity: u64, overflow: bool) -> Ask {
        *self = Writer { state: State::Owner, count, capacity, overflow, ..Writer::default() };
        Ask::Owner
    }

    /// Begins the end of the carrier: the last holder closes the stream, or shuts it down, and the anchor's end comes after;
    /// or the process is about to fork, and its child cannot reach the carrier.
    pub fn begin_close(&mut self, capacity: u64) -> Ask {
        *self = Writer { state: State::Entered, capacity, purpose: Purpose::Close, ..Writer::default() };
        Ask::Entered
    }

    /// Begins to part with a carrier, whether or not it was begun: ends it, and forgets it if the reader has read everything.
    /// [`Outcome::Wait`]: it has not; this is to be called again when it has moved.
    pub fn begin_part(&mut self, ring: u16, capacity: u64) -> Ask {
        *self = Writer { state: State::Freeze, ring, capacity, purpose: Purpose::Part, ..Writer::default() };
        Ask::Freeze(ring)
    }

    /// Takes the answer to the last question, and asks the next one.
    pub fn step(&mut self, answer: Answer) -> Ask {
        match (self.state, answer) {
            (_, Answer::Broken) => self.done(Outcome::Broken),
            (State::Owner, Answer::Yes) => self.ask(State::Entered, Ask::Entered),
            (State::Owner, _) if rule!("take_over") => self.ask(State::TakeOver, Ask::TakeOver),
            (State::Owner, _) => self.ask(State::Entered, Ask::Entered),
            (State::TakeOver, _) => self.ask(State::EnteredBefore, Ask::Entered),
            (State::EnteredBefore, Answer::Count(0)) => self.go_on_over_tcp(),
            (State::EnteredBefore, Answer::Count(ring)) => {
                self.ring = ring as u16;
                self.ask(State::Freeze, Ask::Freeze(self.ring))
            }

            (State::Entered, Answer::Count(0)) => self.go_on_over_tcp(),
            (State::Entered, Answer::Count(ring)) => {
                self.ring = ring as u16;
                if self.purpose != Purpose::Write {
                    return self.ask(State::Freeze, Ask::Freeze(self.ring));
                }
                self.ask(State::Tail, Ask::Tail(self.ring))
            }
            (State::Tail | State::Freeze, Answer::Tail(tail)) => {
                self.tail = tail;
                match tail.end {
                    End::Asked if rule!("follow") => self.ask(State::Freeze, Ask::Freeze(self.ring)),
                    End::Open | End::Asked => self.ask(State::Head, Ask::Head(self.ring)),
                    // Whoever finds them taken waits until they are with TCP, or finishes what a dead holder began.
                    End::Wanted if self.purpose != Purpose::Write || rule!("give_back_first") => {
                        self.ask(State::Lock, Ask::Lock)
                    }
                    End::Taken if rule!("await_sent") => self.ask(State::Lock, Ask::Lock),
                    _ => self.go_on_over_tcp(),
                }
            }
            // It cannot be told now.
            (State::Freeze, Answer::No) => self.done(Outcome::Wait),
            (State::Lock, Answer::Yes | Answer::Inherited) => self.ask(State::TailLocked, Ask::Tail(self.ring)),
            (State::Lock, _) => self.done(Outcome::Busy),
            (State::TailLocked, Answer::Tail(tail)) => {
                self.tail = tail;
                match tail.end {
                    End::Wanted => self.ask(State::TakeBack, Ask::TakeBack(self.ring)),
                    End::Taken if rule!("recover") => self.ask(State::Recover, Ask::Recover),
                    End::Taken => self.ask(State::Unread, Ask::Head(self.ring)),
                    _ => self.ask(State::Unlock, Ask::Unlock),
                }
            }
            // While unread bytes are taken back nobody sends anything else: whatever has gone since the ring began are those.
            (State::Recover, Answer::Count(count)) => {
                self.sent_back = count;
                self.ask(State::Unread, Ask::Head(self.ring))
            }
            (State::Unlock, _) => self.ask(State::Tail, Ask::Tail(self.ring)),
            (State::UnlockToWait, _) => self.done(Outcome::Wait),
            (State::Head, Answer::Count(head)) => {
                let filled = self.tail.position.wrapping_sub(head);
                if filled > self.capacity {
                    return self.done(Outcome::Broken);
                }
                // A part of the call, if not all of it fits.
                if filled < self.capacity {
                    self.count = self.count.min(self.capacity - filled);
                    return self.ask(State::CopyIn, Ask::CopyIn { ring: self.ring, at: self.tail.position });
                }
                if self.overflow {
                    return self.ask(State::Freeze, Ask::Freeze(self.ring));
                }
                self.done(Outcome::Wait)
            }
            (State::CopyIn, _) => {
                let (from, to) = (self.tail.position, self.tail.position + self.count);
                self.ask(State::Publish, Ask::Publish { ring: self.ring, from, to })
            }
            // There seemed to be room.
            (State::Publish, Answer::Count(0)) if self.overflow && rule!("give_way") => {
                self.ask(State::Freeze, Ask::Freeze(self.ring))
            }
            (State::Publish, Answer::Count(0)) => self.done(Outcome::Wait),
            (State::Publish, Answer::Count(count)) => self.done(Outcome::Moved(count)),
            (State::Publish, Answer::Yes) => self.done(Outcome::Moved(self.count)),
            // Another holder has published, or the ring has ended.
            (State::Publish, _) => self.ask(State::Tail, Ask::Tail(self.ring)),

            (State::TakeBack, Answer::Yes) => self.ask(State::Unread, Ask::Head(self.ring)),
            (State::TakeBack, _) => self.ask(State::Unlock, Ask::Unlock),
            (State::Unread, Answer::Count(head)) => {
                self.back = head + self.sent_back;
                if self.back > self.tail.position || self.tail.position - head > self.capacity {
                    return self.done(Outcome::Broken);
                }
                if rule!("arrive") { self.ask(State::ArrivedBefore, Ask::Arrived(self.ring)) } else { self.send_back() }
            }
            (State::ArrivedBefore, Answer::Yes) => self.send_back(),
            (State::ArrivedBefore, _) | (State::SendBack, Answer::Count(0)) => {
                self.ask(State::UnlockToWait, Ask::Unlock)
            }
            (State::SendBack, Answer::Count(count)) => {
                self.back += count;
                self.ask(State::CountSentBack, Ask::CountSent(count))
            }
            (State::CountSentBack, _) => self.send_back(),
            (State::ConfirmSent, _) => self.ask(State::Unlock, Ask::Unlock),

            (State::Arrived, Answer::Yes) => self.on_tcp(),
            (State::Arrived, _) => self.done(Outcome::Wait),
            // On TCP. A ring that the reader has opened since is entered, if that is allowed.
            (State::Opened, Answer::Count(opened)) if opened > u64::from(self.ring) => {
                self.ask(State::TailOpened(opened as u16), Ask::Tail(opened as u16))
            }
            (State::TailOpened(ring), Answer::Tail(tail)) => match tail.end {
                End::Asked if rule!("follow") => self.ask(State::FreezeOpened, Ask::Freeze(ring)),
                End::Open | End::Asked => self.ask(State::Enter(ring), Ask::Enter(ring)),
                _ => self.ask(State::SendTcp, Ask::SendTcp),
            },
            (State::FreezeOpened, _) => self.ask(State::SendTcp, Ask::SendTcp),
            (State::Opened, _) => self.ask(State::SendTcp, Ask::SendTcp),
            (State::Enter(ring), Answer::Yes) => {
                self.ring = ring;
                self.ask(State::Tail, Ask::Tail(ring))
            }
            (State::Enter(_), _) => self.ask(State::SendTcp, Ask::SendTcp),
            (State::Read, Answer::Count(head)) if head == self.tail.position => self.forget(),
            (State::Read, Answer::Count(head)) if head > self.tail.position => self.done(Outcome::Broken),
            (State::Read, _) => self.done(Outcome::Wait),
            (State::Forget, _) => self.done(Outcome::DONE),
            (State::SendTcp, Answer::Count(0)) => self.done(Outcome::Wait),
            (State::SendTcp, Answer::Count(count)) => self.ask(State::CountSent(count), Ask::CountSent(count)),
            (State::CountSent(count), _) => self.done(Outcome::Moved(count)),
            _ => self.done(Outcome::Broken),
        }
    }

    fn go_on_over_tcp(&mut self) -> Ask {
        if self.ring != 0 && rule!("arrive") {
            return self.ask(State::Arrived, Ask::Arrived(self.ring));
        }
        self.on_tcp()
    }

    /// Sends what is left of the unread bytes.
    fn send_back(&mut self) -> Ask {
        if self.back >= self.tail.position {
            return self.ask(State::ConfirmSent, Ask::ConfirmSent(self.ring));
        }
        self.ask(State::SendBack, Ask::SendBack { ring: self.ring, from: self.back, to: self.tail.position })
    }

    fn on_tcp(&mut self) -> Ask {
        match self.purpose {
            Purpose::Write => self.ask(State::Opened, Ask::Opened),
            Purpose::Close => self.done(Outcome::DONE),
            Purpose::Part if self.tail.end == End::Sent || !rule!("part_when_read") => self.forget(),
            Purpose::Part => self.ask(State::Read, Ask::Head(self.ring)),
        }
    }

    fn forget(&mut self) -> Ask {
        self.ask(State::Forget, Ask::Forget(self.ring))
    }

    fn ask(&mut self, state: State, ask: Ask) -> Ask {
        self.state = state;
        ask
    }

    fn done(&mut self, outcome: Outcome) -> Ask {
        self.ask(State::Idle, Ask::Done(outcome))
    }
}
