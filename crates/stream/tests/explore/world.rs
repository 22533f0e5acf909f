//! The world that the path machines are explored in: the shared words, a model of TCP, and up to four processes.

use crate::path::{Answer, Ask, End, GiveBack, Outcome, Reader, Start, Tail, Writer};

/// Bytes that a ring holds.
pub const CAPACITY: u64 = 2;
/// Bytes that TCP takes before a writer has to wait. What is given back fits beside them.
const TCP_ROOM: usize = 2;
/// Rings that may be opened, and one for the number 0.
const RINGS: usize = 3;

/// What may happen, and how often.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Its name in reports.
    pub name: &'static str,
    /// Bytes that the writers write: parent, child.
    pub bytes: [u8; 2],
    /// Rings that the reader opens.
    pub opens: u8,
    /// Times that a full ring gives way.
    pub overflows: u8,
    /// The writer forks.
    pub writer_forks: bool,
    /// The reader forks.
    pub reader_forks: bool,
    /// Processes that die.
    pub deaths: u8,
    /// Processes that stop for ever.
    pub stops: u8,
    /// The reader gives its ring back, and may go on as a program that knows only TCP.
    pub gives_back: u8,
}

/// One state of everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    // Pair memory.
    start: Start,
    tails: [Tail; RINGS],
    opened: u16,
    heads: [u64; RINGS],
    data: [[u8; CAPACITY as usize]; RINGS],
    // The kernel.
    tcp: Vec<u8>,
    ended: bool,
    kernel_taken: u64,
    kernel_sent: u64,
    // Families.
    tcp_taken: u64,
    positions: [(u64, bool); RINGS],
    tcp_sent: u64,
    entered: u16,
    locks: [Option<usize>; 2],
    owners: [Option<usize>; 2],
    // Processes: two that may write, two that may read.
    actors: [Actor; 4],
    // What has happened, and what may yet.
    next_consumed: [u8; 2],
    accepted: [u8; 2],
    left: [u8; 5],
}

const OVERFLOWS: usize = 0;
const DEATHS: usize = 1;
const STOPS: usize = 2;
const GIVES_BACK: usize = 3;
const OPENS: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Actor {
    life: Life,
    call: Call,
    ask: Option<Ask>,
    /// Bytes of a ring that were copied out and not committed.
    copied: Vec<u8>,
    /// The next byte to write.
    next: u8,
    sleep: Sleep,
    /// Goes on as a program that knows only TCP.
    plain: bool,
    /// Has asked the writer to send the rest over TCP.
    gave_back: Option<Outcome>,
    /// A position that the writer is to be told.
    tell: Option<(u16, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Life {
    Absent,
    Alive,
    Stopped,
    Dead,
    Finished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sleep {
    Awake,
    /// Every word that could bring news is armed; the call is made once more.
    Armed,
    Asleep,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Call {
    None,
    Read(Reader),
    Write(Writer),
    Close(Writer),
    GiveBack(GiveBack),
}

/// Something that can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A process makes its next access, or begins its next call.
    Go(usize),
    /// A process writes, and a full ring is to give way.
    WriteOver(usize),
    /// A process forks.
    Fork(usize),
    /// A process dies.
    Die(usize),
    /// A process stops.
    Stop(usize),
    /// A reader opens a ring.
    Open(usize),
    /// A reader gives its ring back.
    GiveBack(usize),
    /// A reader goes on as a program that knows only TCP.
    Exec(usize),
}

const WRITER: usize = 0;
const READER: usize = 1;

fn side(actor: usize) -> usize {
    actor / 2
}

impl World {
    /// The beginning: a connection that is on TCP both ways.
    pub fn new(setup: &Setup) -> World {
        let actor = |life| Actor {
            life,
            call: Call::None,
            ask: None,
            copied: Vec::new(),
            next: 0,
            sleep: Sleep::Awake,
            plain: false,
            gave_back: None,
            tell: None,
        };
        World {
            start: Start::default(),
            tails: Default::default(),
            opened: 0,
            heads: [0; RINGS],
            data: Default::default(),
            tcp: Vec::new(),
            ended: false,
            kernel_taken: 0,
            kernel_sent: 0,
            tcp_taken: 0,
            positions: [(0, false); RINGS],
            tcp_sent: 0,
            entered: 0,
            locks: [None; 2],
            owners: [Some(0), Some(2)],
            actors: [Life::Alive, Life::Absent, Life::Alive, Life::Absent].map(actor),
            next_consumed: [0; 2],
            accepted: [0; 2],
            left: [setup.overflows, setup.deaths, setup.stops, setup.gives_back, setup.opens],
        }
    }

    /// Everything that can happen next.
    pub fn actions(&self, setup: &Setup) -> Vec<Action> {
        let mut actions = Vec::new();
        for (at, actor) in self.actors.iter().enumerate() {
            if actor.life != Life::Alive {
                continue;
            }
            let idle = actor.ask.is_none() && actor.tell.is_none();
            if actor.sleep != Sleep::Asleep && !self.waits_for_sent(actor) {
                actions.push(Action::Go(at));
            }
            if idle && side(at) == WRITER && self.left[OVERFLOWS] > 0 && actor.next < setup.bytes[at] {
                actions.push(Action::WriteOver(at));
            }
            let forks = if side(at) == WRITER { setup.writer_forks } else { setup.reader_forks };
            if forks && at % 2 == 0 && self.actors[at + 1].life == Life::Absent && !actor.plain {
                actions.push(Action::Fork(at));
            }
            if self.left[DEATHS] > 0 {
                actions.push(Action::Die(at));
            }
            if self.left[STOPS] > 0 {
                actions.push(Action::Stop(at));
            }
            if side(at) == READER && idle && !actor.plain {
                if self.left[OPENS] > 0 && self.may_open(at) {
                    actions.push(Action::Open(at));
                }
                if self.left[GIVES_BACK] > 0 && actor.gave_back.is_none() {
                    actions.push(Action::GiveBack(at));
                }
                if self.may_exec(actor) {
                    actions.push(Action::Exec(at));
                }
            }
        }
        actions
    }

    /// A process that executes another program waits, once the writer has taken the unread bytes, until they have come.
    fn waits_for_sent(&self, actor: &Actor) -> bool {
        actor.gave_back == Some(Outcome::Wait)
            && actor.ask.is_none()
            && !actor.plain
            && self.tails[self.start.ring as usize].end == End::Taken
            && !self.ended
    }

    fn may_exec(&self, actor: &Actor) -> bool {
        match actor.gave_back {
            Some(Outcome::Moved(0)) => true,
            Some(Outcome::Wait) => self.tails[self.start.ring as usize].end == End::Sent,
            _ => false,
        }
    }

    fn holders(&self, of: usize) -> usize {
        let holds = |actor: &&Actor| matches!(actor.life, Life::Alive | Life::Stopped);
        self.actors[of * 2..of * 2 + 2].iter().filter(holds).count()
    }

    /// Only a sole holder opens a ring, and only when the one before is over.
    fn may_open(&self, at: usize) -> bool {
        let ring = self.opened as usize;
        let over = ring == 0 || {
            let (position, offered) = self.positions[ring];
            let drained = position == self.tails[ring].position && !offered;
            match self.tails[ring].end {
                End::Open | End::Wanted | End::Taken => false,
                End::Frozen => drained,
                End::Sent => true,
            }
        };
        let before = self.start.ring as usize;
        // What TCP has before a ring that is over must have been taken: the start is about to be forgotten.
        let passed = before == 0 || self.tcp_taken >= self.start.after_tcp;
        let gives_back = |actor: &Actor| actor.gave_back.is_some();
        let gives_back = self.actors[2..].iter().any(gives_back);
        !gives_back
            && self.holders(side(at)) == 1
            && ring + 1 < RINGS
            && over
            && passed
            && self.owners[READER] == Some(at)
    }

    /// Carries an action out. `Err`: something has happened that must not.
    pub fn act(&mut self, setup: &Setup, action: Action) -> Result<(), String> {
        match action {
            Action::Go(at) => self.go(setup, at, false),
            Action::WriteOver(at) => {
                self.left[OVERFLOWS] -= 1;
                self.go(setup, at, true)
            }
            Action::Fork(at) => {
                let child = Actor { life: Life::Alive, ..World::new(setup).actors[1].clone() };
                self.actors[at + 1] = child;
                // A child of a program that is about to execute another has not asked for anything.
                Ok(())
            }
            Action::Die(at) => {
                self.left[DEATHS] -= 1;
                self.leave(at, Life::Dead);
                Ok(())
            }
            Action::Stop(at) => {
                self.left[STOPS] -= 1;
                self.actors[at].life = Life::Stopped;
                Ok(())
            }
            Action::Open(at) => {
                self.left[OPENS] -= 1;
                let _ = at;
                self.opened += 1;
                self.wake(WRITER);
                Ok(())
            }
            Action::GiveBack(at) => {
                self.left[GIVES_BACK] -= 1;
                let mut give_back = GiveBack::default();
                let ask = give_back.begin();
                self.actors[at].sleep = Sleep::Awake;
                self.asked(setup, at, Call::GiveBack(give_back), ask)
            }
            Action::Exec(at) => {
                self.actors[at].plain = true;
                self.actors[at].sleep = Sleep::Awake;
                Ok(())
            }
        }
    }

    /// The end of a process, by its own will or not: the kernel closes what it held.
    fn leave(&mut self, at: usize, life: Life) {
        self.actors[at] = Actor { life, ..self.actors[at].clone() };
        self.actors[at].call = Call::None;
        self.actors[at].ask = None;
        self.actors[at].tell = None;
        self.actors[at].copied.clear();
        if side(at) == WRITER && self.holders(WRITER) == 0 {
            self.ended = true;
            self.wake(READER);
        }
    }

    fn wake(&mut self, side: usize) {
        for actor in &mut self.actors[side * 2..side * 2 + 2] {
            actor.sleep = Sleep::Awake;
        }
    }

    fn go(&mut self, setup: &Setup, at: usize, overflow: bool) -> Result<(), String> {
        if let Some((ring, position)) = self.actors[at].tell.take() {
            self.heads[ring as usize] = self.heads[ring as usize].max(position);
            self.wake(WRITER);
            return Ok(());
        }
        if let Some(ask) = self.actors[at].ask {
            let answer = self.carry_out(setup, at, ask)?;
            let mut call = std::mem::replace(&mut self.actors[at].call, Call::None);
            let next = match &mut call {
                Call::Read(reader) => reader.step(answer),
                Call::Write(writer) | Call::Close(writer) => writer.step(answer),
                Call::GiveBack(give_back) => give_back.step(answer),
                Call::None => return Err("an answer without a call".into()),
            };
            return self.asked(setup, at, call, next);
        }
        if self.actors[at].plain {
            return self.read_plain(at);
        }
        if side(at) == READER {
            let mut reader = Reader::default();
            let look = self.actors[at].sleep == Sleep::Armed;
            let ask = reader.begin(2, look);
            return self.asked(setup, at, Call::Read(reader), ask);
        }
        let mut writer = Writer::default();
        if self.actors[at].next < setup.bytes[at] {
            let ask = writer.begin(1, CAPACITY, overflow);
            self.asked(setup, at, Call::Write(writer), ask)
        } else if self.holders(WRITER) > 1 {
            self.leave(at, Life::Finished);
            Ok(())
        } else {
            let ask = writer.begin_close(CAPACITY);
            self.asked(setup, at, Call::Close(writer), ask)
        }
    }

    /// A machine has asked something, or ended its call.
    fn asked(&mut self, setup: &Setup, at: usize, call: Call, ask: Ask) -> Result<(), String> {
        let Ask::Done(outcome) = ask else {
            (self.actors[at].call, self.actors[at].ask) = (call, Some(ask));
            return Ok(());
        };
        let _ = setup;
        self.actors[at].ask = None;
        let actor = &mut self.actors[at];
        match (call, outcome) {
            (_, Outcome::Broken) => return Err(format!("process {at} finds the stream broken")),
            (Call::GiveBack(_), outcome) => {
                actor.gave_back = Some(outcome);
                return Ok(());
            }
            (_, Outcome::Wait) => {
                actor.sleep = if actor.sleep == Sleep::Awake { Sleep::Armed } else { Sleep::Asleep };
                return Ok(());
            }
            (_, Outcome::Busy) => {}
            (Call::Write(_), Outcome::Moved(_)) => actor.next += 1,
            (Call::Close(_), _) | (Call::Read(_), Outcome::End) => self.leave(at, Life::Finished),
            _ => {}
        }
        self.actors[at].sleep = Sleep::Awake;
        Ok(())
    }

    fn read_plain(&mut self, at: usize) -> Result<(), String> {
        if self.tcp.is_empty() {
            if self.ended {
                self.leave(at, Life::Finished);
            } else {
                self.actors[at].sleep = Sleep::Asleep;
            }
            return Ok(());
        }
        let byte = self.tcp.remove(0);
        self.kernel_taken += 1;
        self.wake(WRITER);
        self.consume(byte)
    }

    /// A byte has reached a program. Bytes of one writer come in order, each once.
    fn consume(&mut self, byte: u8) -> Result<(), String> {
        let (writer, index) = (usize::from(byte / 16), byte % 16);
        if index != self.next_consumed[writer] {
            let due = self.next_consumed[writer];
            return Err(format!("byte {index} of writer {writer} was read where {due} was due"));
        }
        self.next_consumed[writer] += 1;
        Ok(())
    }

    /// At a rest: whether everything that was written has been read, and nothing else was to be expected.
    pub fn is_final(&self) -> bool {
        let done = |actor: &Actor| !matches!(actor.life, Life::Alive);
        if self.actors.iter().all(done) {
            return true;
        }
        // The one wait for another process that the design allows: a stopped holder of the lock of TCP's bytes.
        let stopped = |holder: &Option<usize>| holder.is_some_and(|at| self.actors[at].life == Life::Stopped);
        if self.locks.iter().any(stopped) {
            return true;
        }
        // A writer that is stopped, or a reader: the other end waits for it, asleep, with everything written before read.
        let waits = |at: usize, actor: &Actor| {
            let other = &self.actors[(1 - side(at)) * 2..][..2];
            let alive = other.iter().any(|actor| actor.life == Life::Alive);
            let held = other.iter().any(|actor| actor.life == Life::Stopped);
            let reads_all = side(at) == WRITER || self.next_consumed == self.accepted;
            let taking = self.tails[self.start.ring as usize].end == End::Taken;
            !alive && (actor.sleep == Sleep::Asleep && reads_all || taking) && (held || side(at) == WRITER)
        };
        self.actors.iter().enumerate().all(|(at, actor)| done(actor) || waits(at, actor))
    }

    /// Checked in final states.
    pub fn check_final(&self) -> Result<(), String> {
        let reader_lives = self.actors[2..].iter().any(|actor| actor.life == Life::Finished);
        if reader_lives && self.next_consumed != self.accepted {
            return Err(format!("read {:?} of {:?} bytes", self.next_consumed, self.accepted));
        }
        Ok(())
    }

    fn carry_out(&mut self, setup: &Setup, at: usize, ask: Ask) -> Result<Answer, String> {
        let of = side(at);
        let yes = |condition: bool| if condition { Answer::Yes } else { Answer::No };
        Ok(match ask {
            Ask::Owner => yes(self.owners[of].is_none_or(|owner| owner == at)),
            Ask::TakeOver => {
                self.owners[of] = None;
                Answer::Done
            }
            Ask::Start => Answer::Start(self.start),
            Ask::Tail(ring) => Answer::Tail(self.tails[ring as usize]),
            Ask::Freeze(ring) => {
                self.settle(ring, &[End::Open], End::Frozen);
                Answer::Tail(self.tails[ring as usize])
            }
            Ask::Withdraw(ring) => {
                self.settle(ring, &[End::Open, End::Wanted], End::Frozen);
                Answer::Done
            }
            Ask::Reclaim(ring) => {
                self.settle(ring, &[End::Taken], End::Frozen);
                Answer::Done
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
                let bytes = (from..from + count).map(|at| self.data[ring as usize][(at % CAPACITY) as usize]);
                self.actors[at].copied = bytes.collect();
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
                if sole && counted {
                    self.start = Start { ring, after_tcp: self.tcp_sent };
                    self.entered = ring;
                    self.wake(READER);
                }
                yes(sole && counted)
            }
            Ask::CopyIn { ring, at: position } => {
                let byte = at as u8 * 16 + self.actors[at].next;
                self.data[ring as usize][(position % CAPACITY) as usize] = byte;
                Answer::Done
            }
            Ask::Publish { ring, from, to } => {
                let open = self.tails[ring as usize] == Tail { position: from, end: End::Open };
                let tail = &mut self.tails[ring as usize];
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
            Ask::Done(_) => {
                let _ = setup;
                return Err("a call that has ended asks".into());
            }
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
