//! The reading machine of a direction.

use super::{Answer, Ask, End, Outcome, Start, Tail, rule};

/// One reading call of one holder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reader {
    state: State,
    /// Room in the caller's memory.
    room: u64,
    /// The caller knows that the anchor has news, or has not looked.
    look: bool,
    // What the call has found out so far.
    start: Start,
    tail: Tail,
    tcp_taken: u64,
    position: u64,
    offered: bool,
    pending: u64,
    ended: bool,
    locked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Idle,
    Owner,
    TakeOver,
    Opened,
    FreezeInherited,
    Lock,
    Recover,
    Pending,
    Start,
    Tail,
    TcpTaken,
    Position,
    Withdraw,
    Resume,
    Skip,
    Reclaim,
    CopyOut { at: u64, count: u64 },
    Commit { count: u64 },
    TakeTcp,
    CountTaken(u64),
    UnlockAnd(Next),
}

/// What follows when the lock has been given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Next {
    Again,
    Done(Outcome),
}

/// Where the next bytes are.
enum Place {
    Ring {
        at: u64,
        count: u64,
    },
    /// On TCP, at most so many.
    Tcp(u64),
    /// The ring is empty and open.
    EmptyRing,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            state: State::Idle,
            room: 0,
            look: false,
            start: Start::default(),
            tail: Tail::default(),
            tcp_taken: 0,
            position: 0,
            offered: false,
            pending: 0,
            ended: false,
            locked: false,
        }
    }
}

impl Reader {
    /// Begins a call with so much room. `look`: the anchor has news, or nobody has looked.
    pub fn begin(&mut self, room: u64, look: bool) -> Ask {
        *self = Reader { room, look, state: State::Owner, ..Reader::default() };
        Ask::Owner
    }

    /// Takes the answer to the last question, and asks the next one.
    pub fn step(&mut self, answer: Answer) -> Ask {
        match (self.state, answer) {
            (_, Answer::Broken) => self.leave(Outcome::Broken),
            (State::Owner, Answer::Yes) => self.ask(State::Start, Ask::Start),
            (State::Owner, _) if rule!("take_over") => self.ask(State::TakeOver, Ask::TakeOver),
            (State::Owner, _) => self.ask(State::Start, Ask::Start),
            (State::TakeOver, _) => self.ask(State::Opened, Ask::Opened),
            (State::Opened, Answer::Count(0)) => self.again(),
            (State::Opened, Answer::Count(ring)) => self.ask(State::FreezeInherited, Ask::Freeze(ring as u16)),
            (State::FreezeInherited, _) => self.again(),

            (State::Lock, Answer::Inherited) if rule!("recover") => {
                self.locked = true;
                self.ask(State::Recover, Ask::Recover)
            }
            (State::Lock, Answer::Yes | Answer::Inherited) => {
                self.locked = true;
                self.ask(State::Pending, Ask::Pending)
            }
            (State::Lock, _) => self.done(Outcome::Busy),
            (State::Recover, _) => self.ask(State::Pending, Ask::Pending),
            (State::Pending, Answer::Pending { bytes, ended }) => {
                (self.pending, self.ended) = (bytes, ended);
                if self.locked && !rule!("look_again") {
                    return self.place();
                }
                self.ask(State::Start, Ask::Start)
            }

            (State::Start, Answer::Start(start)) => {
                self.start = start;
                if start.ring == 0 { self.place() } else { self.ask(State::TcpTaken, Ask::TcpTaken) }
            }
            (State::TcpTaken, Answer::Count(taken)) => {
                self.tcp_taken = taken;
                self.ask(State::Position, Ask::Position(self.start.ring))
            }
            // Before the tail, which never goes back: so no other holder's progress looks like a tail that did.
            (State::Position, Answer::Position { at, offered }) => {
                (self.position, self.offered) = (at, offered);
                self.ask(State::Tail, Ask::Tail(self.start.ring))
            }
            (State::Tail, Answer::Tail(tail)) => {
                self.tail = tail;
                match tail.end {
                    // What was offered back is on its way over TCP.
                    End::Taken | End::Sent => self.place(),
                    _ if !self.offered => self.place(),
                    End::Frozen => self.resume(State::Resume, self.position),
                    // This holder wants to read: it withdraws the offer, whoever made it. One word decides who wins.
                    End::Open | End::Asked | End::Wanted => self.ask(State::Withdraw, Ask::Withdraw(self.start.ring)),
                }
            }
            (State::Skip, Answer::Yes) => self.ask(State::Reclaim, Ask::Reclaim(self.start.ring)),
            (State::Reclaim, Answer::No) => self.leave(Outcome::Broken),
            (State::Withdraw | State::Resume | State::Skip | State::Reclaim, _) if self.locked => {
                self.unlock(Next::Again)
            }
            (State::Withdraw | State::Resume, _) => self.again(),

            (State::CopyOut { at, count }, _) => {
                let commit = Ask::Commit { ring: self.start.ring, from: at, to: at + count };
                self.ask(State::Commit { count }, commit)
            }
            (State::Commit { count }, Answer::Yes) => self.done(Outcome::Moved(count)),
            (State::Commit { count }, _) if !rule!("commit") => self.done(Outcome::Moved(count)),
            (State::Commit { .. }, _) => self.again(),

            (State::TakeTcp, Answer::Count(0)) => self.unlock(Next::Again),
            (State::TakeTcp, Answer::Count(count)) => self.ask(State::CountTaken(count), Ask::CountTaken(count)),
            (State::CountTaken(count), _) => self.unlock(Next::Done(Outcome::Moved(count))),
            (State::UnlockAnd(Next::Done(outcome)), _) => self.done(outcome),
            (State::UnlockAnd(Next::Again), _) => self.again(),
            // The driver answers what was asked; what it cannot answer ends the stream and nothing else.
            _ => self.done(Outcome::Broken),
        }
    }

    /// Goes where the next bytes are.
    fn place(&mut self) -> Ask {
        if self.position > self.tail.position {
            return self.leave(Outcome::Broken);
        }
        match self.find() {
            Place::Tcp(limit) if self.locked => {
                let count = limit.min(self.pending).min(self.room);
                match (count, self.ended) {
                    (0, false) => self.leave(Outcome::Wait),
                    // The writer has died between taking the unread bytes and sending them: some may have come.
                    (0, true) if self.tail.end == End::Taken && self.start.ring != 0 && rule!("reclaim") => {
                        let sent = self.tcp_taken.saturating_sub(self.start.after_tcp);
                        self.resume(State::Skip, self.position + sent)
                    }
                    // Bytes before the ring never come: the other end has not told the truth, or was reset.
                    (0, true) if limit != u64::MAX => self.leave(Outcome::Broken),
                    (0, true) => self.leave(Outcome::End),
                    (count, _) => self.ask(State::TakeTcp, Ask::TakeTcp(count)),
                }
            }
            Place::Tcp(_) if rule!("lock_tcp") => self.ask(State::Lock, Ask::Lock),
            Place::Tcp(_) => {
                self.locked = true;
                self.ask(State::Pending, Ask::Pending)
            }
            _ if self.locked => {
                // A ring has begun since. If the anchor's end has come meanwhile, it is found again behind the ring.
                self.look |= self.ended;
                self.unlock(Next::Again)
            }
            Place::Ring { at, count } => {
                let count = count.min(self.room);
                self.ask(State::CopyOut { at, count }, Ask::CopyOut { ring: self.start.ring, at, count })
            }
            // The tail was looked at after the end had come: nothing follows.
            Place::EmptyRing if self.ended => self.leave(Outcome::End),
            Place::EmptyRing if self.look => {
                self.look = false;
                self.ask(State::Pending, Ask::Pending)
            }
            Place::EmptyRing => self.leave(Outcome::Wait),
        }
    }

    fn find(&self) -> Place {
        let Start { ring, after_tcp } = self.start;
        let unread = self.tail.position - self.position;
        match self.tail.end {
            _ if ring == 0 => Place::Tcp(u64::MAX),
            End::Taken | End::Sent => Place::Tcp(u64::MAX),
            // It is over: where it began matters no more, also if a program that does not count takes from TCP, too.
            End::Frozen | End::Wanted if unread == 0 => Place::Tcp(u64::MAX),
            _ if self.tcp_taken < after_tcp && rule!("limit") => Place::Tcp(after_tcp - self.tcp_taken),
            _ if self.tcp_taken < after_tcp => Place::Tcp(u64::MAX),
            _ if unread > 0 => Place::Ring { at: self.position, count: unread },
            _ => Place::EmptyRing,
        }
    }

    /// Lets all holders read on from there.
    fn resume(&mut self, state: State, to: u64) -> Ask {
        self.ask(state, Ask::Resume { ring: self.start.ring, from: self.position, to })
    }

    fn ask(&mut self, state: State, ask: Ask) -> Ask {
        self.state = state;
        ask
    }

    /// Looks at everything anew, from the start of the ring.
    fn again(&mut self) -> Ask {
        self.locked = false;
        self.ended = false;
        self.ask(State::Start, Ask::Start)
    }

    fn unlock(&mut self, next: Next) -> Ask {
        self.locked = false;
        self.ask(State::UnlockAnd(next), Ask::Unlock)
    }

    /// Ends the call, after giving the lock back.
    fn leave(&mut self, outcome: Outcome) -> Ask {
        if self.locked { self.unlock(Next::Done(outcome)) } else { self.done(outcome) }
    }

    fn done(&mut self, outcome: Outcome) -> Ask {
        self.ask(State::Idle, Ask::Done(outcome))
    }
}
