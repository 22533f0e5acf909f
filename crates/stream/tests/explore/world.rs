//! The world that the path machines are explored in: the shared words, a model of TCP, and up to four processes.

#[path = "access.rs"]
mod access;

use crate::path::{Ask, End, GiveBack, Outcome, Reader, Start, Tail, Writer};

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
    /// Only the writer can end the carriers.
    pub writer_ends: bool,
    /// Times that the writer parts with its carrier; without that the reader opens no other.
    pub parts: u8,
    /// What the writer says is on its way for a while.
    pub far: bool,
    /// A ring takes one byte until that is read, though there seems to be room for more.
    pub refuses: bool,
}

/// One state of everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    // Pair memory.
    start: Start,
    tails: [Tail; RINGS],
    /// What the reader sees of these two, and what is on its way to it, in order.
    shown: (Start, [Tail; RINGS]),
    flight: Vec<(Start, [Tail; RINGS])>,
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
    /// Carriers that the writer has forgotten, whose memory is gone.
    forgotten: [bool; RINGS],
    left: [u8; 6],
}

const OVERFLOWS: usize = 0;
const DEATHS: usize = 1;
const STOPS: usize = 2;
const GIVES_BACK: usize = 3;
const OPENS: usize = 4;
const PARTS: usize = 5;
/// What is found where there is no memory.
const GONE: u8 = 0xff;

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
    /// A full ring is to give way to what it writes.
    gives_way: bool,
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
    Part(Writer),
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
    /// A writer parts with its carrier.
    Part(usize),
    /// What the writer has said arrives.
    Arrive,
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
            gives_way: false,
            tell: None,
        };
        World {
            start: Start::default(),
            tails: Default::default(),
            shown: Default::default(),
            flight: Vec::new(),
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
            forgotten: [false; RINGS],
            left: [setup.overflows, setup.deaths, setup.stops, setup.gives_back, setup.opens, setup.parts],
        }
    }

    /// Everything that can happen next.
    pub fn actions(&self, setup: &Setup) -> Vec<Action> {
        let mut actions = Vec::new();
        if !self.flight.is_empty() {
            actions.push(Action::Arrive);
        }
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
            if forks && at % 2 == 0 && self.actors[at + 1].life == Life::Absent && self.may_fork(setup, at) {
                actions.push(Action::Fork(at));
            }
            let parts = self.left[PARTS] > 0 && self.entered != 0 && !self.forgotten[self.entered as usize];
            if idle && side(at) == WRITER && parts && self.holders(WRITER) == 1 {
                actions.push(Action::Part(at));
            }
            if self.left[DEATHS] > 0 {
                actions.push(Action::Die(at));
            }
            if self.left[STOPS] > 0 {
                actions.push(Action::Stop(at));
            }
            if side(at) == READER && idle && !actor.plain {
                if self.left[OPENS] > 0 && self.may_open(setup, at) {
                    actions.push(Action::Open(at));
                }
                let again = setup.writer_ends && actor.gave_back == Some(Outcome::Busy);
                if self.left[GIVES_BACK] > 0 && (actor.gave_back.is_none() || again) {
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

    /// A child cannot reach a carrier that only its writer can end: it is left before.
    fn may_fork(&self, setup: &Setup, at: usize) -> bool {
        let (actor, entered) = (&self.actors[at], self.entered as usize);
        let left = match side(at) {
            WRITER => entered == 0 || !matches!(self.tails[entered].end, End::Open | End::Asked),
            _ => self.opened == 0 || actor.gave_back == Some(Outcome::DONE),
        };
        !actor.plain && (left || !setup.writer_ends || cfg!(without = "left_before_fork"))
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
    fn may_open(&self, setup: &Setup, at: usize) -> bool {
        let ring = self.opened as usize;
        let over = ring == 0 || {
            let (position, offered) = self.positions[ring];
            let tail = self.shown.1[ring];
            let drained = position == tail.position && !offered;
            match tail.end {
                End::Open | End::Asked | End::Wanted | End::Taken => false,
                End::Frozen => drained,
                End::Sent => true,
            }
        };
        let before = self.shown.0.ring as usize;
        // What TCP has before a ring that is over must have been taken: the start is about to be forgotten.
        let passed = before == 0 || self.tcp_taken >= self.shown.0.after_tcp;
        let gives_back = |actor: &Actor| actor.gave_back.is_some();
        let gives_back = self.actors[2..].iter().any(gives_back);
        let parted = setup.parts == 0 || ring == 0 || self.forgotten[ring];
        !gives_back
            && parted
            && self.holders(side(at)) == 1
            && ring + 1 < RINGS
            && over
            && passed
            && self.owners[READER] == Some(at)
    }

    /// Carries an action out. `Err`: something has happened that must not.
    pub fn act(&mut self, setup: &Setup, action: Action) -> Result<(), String> {
        let outcome = self.act_once(setup, action);
        let said = (self.start, self.tails);
        if !setup.far {
            self.shown = said;
        } else if *self.flight.last().unwrap_or(&self.shown) != said {
            self.flight.push(said);
        }
        outcome
    }

    fn act_once(&mut self, setup: &Setup, action: Action) -> Result<(), String> {
        match action {
            Action::Arrive => {
                self.shown = self.flight.remove(0);
                self.wake(READER);
                self.wake(WRITER);
                Ok(())
            }
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
                self.actors[at].sleep = Sleep::Awake;
                self.give_back(setup, at)
            }
            Action::Part(at) => {
                self.left[PARTS] -= 1;
                self.actors[at].sleep = Sleep::Awake;
                let mut writer = Writer::default();
                let ask = writer.begin_part(self.entered, CAPACITY);
                self.asked(setup, at, Call::Part(writer), ask)
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
        self.actors[at].gives_way = false;
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

    fn give_back(&mut self, setup: &Setup, at: usize) -> Result<(), String> {
        let mut give_back = GiveBack::default();
        let ask = give_back.begin(!setup.writer_ends);
        self.asked(setup, at, Call::GiveBack(give_back), ask)
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
                Call::Write(writer) | Call::Close(writer) | Call::Part(writer) => writer.step(answer),
                Call::GiveBack(give_back) => give_back.step(answer),
                Call::None => return Err("an answer without a call".into()),
            };
            return self.asked(setup, at, call, next);
        }
        if self.actors[at].plain {
            return self.read_plain(at);
        }
        // A program that has asked for the end of its carrier waits for that.
        if setup.writer_ends && self.actors[at].gave_back == Some(Outcome::Wait) && !self.ended {
            return self.give_back(setup, at);
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
            self.actors[at].gives_way = overflow;
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
        self.actors[at].ask = None;
        let gave_way = std::mem::take(&mut self.actors[at].gives_way);
        if gave_way
            && outcome == Outcome::Wait
            && self.tails[self.entered as usize].end == End::Open
            && self.entered > 0
        {
            return Err(format!("process {at} waits for a ring that was to give way"));
        }
        let actor = &mut self.actors[at];
        match (call, outcome) {
            (_, Outcome::Broken) => return Err(format!("process {at} finds the stream broken")),
            (Call::GiveBack(_), outcome) => {
                actor.gave_back = Some(outcome);
                if setup.writer_ends && outcome == Outcome::Wait {
                    actor.sleep = if actor.sleep == Sleep::Awake { Sleep::Armed } else { Sleep::Asleep };
                }
                return Ok(());
            }
            // It is tried again, or not.
            (Call::Part(_), _) => return Ok(()),
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
        if byte == GONE {
            return Err("a byte was read from memory that is not there".into());
        }
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
}
