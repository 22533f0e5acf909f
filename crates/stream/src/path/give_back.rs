//! Giving a ring back: before `exec`, before a descriptor is passed on, and wherever only the kernel can read on.
//!
//! It ends with [`Outcome::DONE`] when nothing of the ring is left to read, with [`Outcome::Wait`] when the writer has been
//! asked to send the rest over TCP, and with [`Outcome::Busy`] when the rest cannot be given back: the ring had ended before.
//! A reading call of any holder withdraws what was asked.
//!
//! A carrier that only its writer can end is given back in two steps: the first try asks for its end and returns
//! [`Outcome::Wait`]; one after the writer has moved returns [`Outcome::DONE`], or [`Outcome::Busy`] while there is something
//! left to read.

use super::{Answer, Ask, End, Outcome, Start, Tail, rule};

/// One try to give a ring back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct GiveBack {
    state: State,
    /// Either end can end the carrier.
    freezes: bool,
    start: Start,
    tail: Tail,
    position: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum State {
    #[default]
    Idle,
    Opened,
    FreezeOpened,
    Start,
    Tail,
    Position,
    Freeze,
    Offer,
    TellHead,
    Want,
    Resume,
    TailOpened(u16),
    Request,
    PositionOpened,
}

impl GiveBack {
    /// Begins. `freezes`: either end can end the carrier.
    pub fn begin(&mut self, freezes: bool) -> Ask {
        *self = GiveBack { state: State::Start, freezes, ..GiveBack::default() };
        Ask::Start
    }

    /// Takes the answer to the last question, and asks the next one.
    pub fn step(&mut self, answer: Answer) -> Ask {
        match (self.state, answer) {
            (_, Answer::Broken) => self.done(Outcome::Broken),
            (State::Start, Answer::Start(start)) => {
                self.start = start;
                self.ask(State::Opened, Ask::Opened)
            }
            (State::Opened, Answer::Count(0)) => self.done(Outcome::DONE),
            (State::Opened, Answer::Count(opened)) if !self.freezes => {
                self.ask(State::TailOpened(opened as u16), Ask::Tail(opened as u16))
            }
            (State::TailOpened(ring), Answer::Tail(tail)) => {
                self.tail = tail;
                match tail.end {
                    End::Open | End::Asked if !rule!("ask_end") => self.done(Outcome::DONE),
                    End::Open => self.ask(State::Request, Ask::Request(ring)),
                    End::Frozen => self.ask(State::PositionOpened, Ask::Position(ring)),
                    End::Asked => self.done(Outcome::Wait),
                    End::Wanted | End::Taken | End::Sent => self.done(Outcome::Broken),
                }
            }
            (State::Request, _) => self.done(Outcome::Wait),
            (State::PositionOpened, Answer::Position { at, .. }) if at >= self.tail.position => {
                self.done(Outcome::DONE)
            }
            (State::PositionOpened, _) => self.done(Outcome::Busy),
            // A ring that was opened and not begun is not to be begun.
            (State::Opened, Answer::Count(opened)) if opened > u64::from(self.start.ring) => {
                self.ask(State::FreezeOpened, Ask::Freeze(opened as u16))
            }
            (State::Opened, _) if self.start.ring == 0 => self.done(Outcome::DONE),
            (State::Opened, _) => self.ask(State::Tail, Ask::Tail(self.start.ring)),
            // It may have been begun meanwhile.
            (State::FreezeOpened, Answer::Tail(Tail { position: 0, .. })) if self.start.ring == 0 => {
                self.done(Outcome::DONE)
            }
            (State::FreezeOpened, Answer::Tail(Tail { position: 0, .. })) => {
                self.ask(State::Tail, Ask::Tail(self.start.ring))
            }
            (State::FreezeOpened, Answer::Tail(_)) => self.done(Outcome::Busy),
            (State::Tail, Answer::Tail(tail)) => {
                self.tail = tail;
                self.ask(State::Position, Ask::Position(self.start.ring))
            }
            (State::Position, Answer::Position { at, .. }) => {
                self.position = at;
                let (ring, read) = (self.start.ring, at >= self.tail.position);
                match self.tail.end {
                    End::Open if read => self.ask(State::Freeze, Ask::Freeze(ring)),
                    End::Open if !rule!("offer") => self.ask(State::TellHead, Ask::TellHead { ring, at }),
                    End::Open => self.ask(State::Offer, Ask::Offer { ring, at }),
                    End::Frozen if read => self.done(Outcome::DONE),
                    End::Frozen => self.done(Outcome::Busy),
                    End::Wanted => self.done(Outcome::Wait),
                    End::Taken | End::Sent => self.done(Outcome::DONE),
                    End::Asked => self.done(Outcome::Broken),
                }
            }
            // What was published in between is unread.
            (State::Freeze, _) => self.begin(self.freezes),
            (State::Offer, Answer::Yes) => {
                self.ask(State::TellHead, Ask::TellHead { ring: self.start.ring, at: self.position })
            }
            (State::Offer, _) => self.begin(self.freezes),
            (State::TellHead, _) => self.ask(State::Want, Ask::Want { ring: self.start.ring, at: self.tail.position }),
            (State::Want, Answer::Yes) => self.done(Outcome::Wait),
            (State::Want, _) => {
                let (ring, at) = (self.start.ring, self.position);
                self.ask(State::Resume, Ask::Resume { ring, from: at, to: at })
            }
            (State::Resume, _) => self.begin(self.freezes),
            _ => self.done(Outcome::Broken),
        }
    }

    fn ask(&mut self, state: State, ask: Ask) -> Ask {
        self.state = state;
        ask
    }

    fn done(&mut self, outcome: Outcome) -> Ask {
        self.ask(State::Idle, Ask::Done(outcome))
    }
}
