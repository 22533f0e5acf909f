//! How a controller takes a server from another site: a pure state machine, whose every step is one operation on one word of shared
//! memory. The words lie in pages of different processes; the driver knows where.
//!
//! | word | bits | changed by |
//! |---|---|---|
//! | lock of a site | 0 free; else who holds it (16), and which of its turns it is (48) | compare-and-swap |
//! | server | site (16), generation (48) | compare-and-swap; the generation rises with every change |
//! | counter of a controller | conversions that others have told it of | fetch-and-add |
//!
//! The order of a conversion:
//!
//! 1. Lock the own site and the donor's, the one with the smaller number first, so that nobody waits in a circle.
//! 2. Compare the own counter with what it was at the last look. If others have converted since, they have seen the same load:
//!    take note, unlock, and wait for the load to settle (the *dual counters* of the thesis).
//! 3. Read all servers. The donor must have two. Then look whether its lock is still held.
//! 4. Convert one, by compare-and-swap of the word that was read.
//! 5. Tell the other controllers of the site (fetch-and-add), and unlock.
//!
//! **Leases.** A lock whose holder has not given it back in time may be taken over: its holder may have been killed between two steps. It may
//! also be slow, and go on. So who takes a lock over first raises the generation of every server of that site: whatever the former
//! holder has read before that is out of date, and its conversion fails; and what it reads afterwards it drops, since it then finds
//! its lock gone. So a site keeps its last server though locks expire at any moment. (The thesis has no leases: a controller that dies holds its site for ever.)
//!
//! `tests/explore.rs` runs every interleaving of two controllers, with a death and with locks that expire at any step.

/// A word of shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Word {
    /// The lock of a site.
    Lock(u16),
    /// The site and generation of a server.
    Server(u16),
    /// How many conversions a controller was told of.
    Counter(u16),
}

/// One access to shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Read it.
    Load(Word),
    /// Store `new` if it holds `expected`.
    CompareSwap {
        /// Which.
        word: Word,
        /// What it must hold.
        expected: u64,
        /// What it holds then.
        new: u64,
    },
    /// Add to it.
    FetchAdd {
        /// Which.
        word: Word,
        /// What is added.
        value: u64,
    },
}

/// What the machine wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// Carry this out, and tell what the word held before.
    Do(Operation),
    /// A lock is held by another: its word. Ask again, or say that its lease is over ([`Conversion::lease_is_over`]).
    Wait(u64),
    /// It has ended.
    End(Outcome),
}

/// How a conversion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// This server belongs to the own site now.
    Converted(u16),
    /// Others have converted one since the last look.
    ToldOfAnother,
    /// The donor has no server to spare.
    NothingToSpare,
    /// The server was changed, or a lock was lost, meanwhile.
    Overtaken,
}

/// Who takes part: the same for all controllers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Setting {
    /// How many servers there are.
    pub servers: u16,
    /// The controllers of the own site besides this one.
    pub others: Vec<u16>,
}

/// A conversion under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Conversion {
    setting: Setting,
    controller: u16,
    own: u16,
    donor: u16,
    wanted: u16,
    /// Names this turn of the controller in locks.
    ticket: u64,
    seen: u64,
    /// What the counter held.
    counter: u64,
    held: u8,
    /// Servers of the donor that were counted, and the word of the wanted one.
    donors: u16,
    found: u64,
    state: State,
    outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Lock,
    /// The lock is held by this word.
    Held(u64),
    /// Raising generations after taking a lock over: this server is next.
    Fence(u16),
    Raise(u16, u64),
    Count,
    Read(u16),
    /// Is the donor's lock still held? What was read after it was lost does not count.
    Verify,
    Convert,
    Tell(usize),
    Unlock,
    Ended,
}

/// The word of a server.
pub const fn server_word(site: u16, generation: u64) -> u64 {
    (generation << 16) | site as u64
}

/// The site of a server, by its word.
pub const fn site_of(word: u64) -> u16 {
    word as u16
}

/// The word of a lock that a controller holds in one of its turns.
pub const fn lock_word(controller: u16, turn: u64) -> u64 {
    (turn << 16) | (controller as u64 + 1)
}

impl Conversion {
    /// Begins to take server `wanted` from the site `donor` for the site `own`. `turn` is another one each time; `seen` is what
    /// the own counter held at the last look.
    pub fn new(
        setting: Setting,
        controller: u16,
        (own, donor, wanted): (u16, u16, u16),
        turn: u64,
        seen: u64,
    ) -> Conversion {
        Conversion {
            setting,
            controller,
            own,
            donor,
            wanted,
            ticket: lock_word(controller, turn),
            seen,
            counter: seen,
            held: 0,
            donors: 0,
            found: 0,
            state: State::Lock,
            outcome: Outcome::Overtaken,
        }
    }

    /// What is to be done now.
    pub fn next(&self) -> Next {
        let swap = |word, expected, new| Next::Do(Operation::CompareSwap { word, expected, new });
        match self.state {
            State::Lock => swap(Word::Lock(self.lock()), 0, self.ticket),
            State::Held(by) => Next::Wait(by),
            State::Fence(server) | State::Read(server) => Next::Do(Operation::Load(Word::Server(server))),
            State::Raise(server, word) => swap(Word::Server(server), word, raised(word)),
            State::Count => Next::Do(Operation::Load(Word::Counter(self.controller))),
            State::Verify => Next::Do(Operation::Load(Word::Lock(self.donor))),
            State::Convert => swap(Word::Server(self.wanted), self.found, self.converted()),
            State::Tell(at) => Next::Do(Operation::FetchAdd { word: Word::Counter(self.setting.others[at]), value: 1 }),
            State::Unlock => swap(Word::Lock(self.last_locked()), self.ticket, 0),
            State::Ended => Next::End(self.outcome),
        }
    }

    /// The operation was carried out: what its word held before.
    pub fn done(&mut self, held: u64) {
        self.state = match self.state {
            State::Lock if held == 0 => self.locked(),
            State::Lock => State::Held(held),
            State::Fence(server) if site_of(held) == self.lock() => State::Raise(server, held),
            State::Fence(server) => self.fenced(server),
            // Changed meanwhile: look again.
            State::Raise(server, word) if held != word => State::Fence(server),
            State::Raise(server, _) => self.fenced(server),
            State::Count if held > self.seen => {
                self.counter = held;
                self.give_up(Outcome::ToldOfAnother)
            }
            State::Count => State::Read(0),
            State::Read(server) => self.read(server, held),
            State::Verify if held == self.ticket => State::Convert,
            State::Verify => self.give_up(Outcome::Overtaken),
            State::Convert if held == self.found => {
                self.outcome = Outcome::Converted(self.wanted);
                self.tell(0)
            }
            State::Convert => self.give_up(Outcome::Overtaken),
            State::Tell(at) => self.tell(at + 1),
            State::Unlock => {
                self.held -= 1;
                if self.held == 0 { State::Ended } else { State::Unlock }
            }
            state @ (State::Held(_) | State::Ended) => state,
        };
    }

    /// A lock was held by another: it is tried again.
    pub fn try_again(&mut self) {
        if matches!(self.state, State::Held(_)) {
            self.state = State::Lock;
        }
    }

    /// The lease of who holds a lock is over, by what that lock holds: the operation that takes it over. Tell what it held by
    /// [`taken_over`](Self::taken_over).
    pub fn lease_is_over(&self) -> Option<Operation> {
        match self.state {
            State::Held(by) => {
                Some(Operation::CompareSwap { word: Word::Lock(self.lock()), expected: by, new: self.ticket })
            }
            _ => None,
        }
    }

    /// The lock held this when it was to be taken over.
    pub fn taken_over(&mut self, held: u64) {
        if let State::Held(by) = self.state {
            // What its former holder has read must not count any more.
            self.state = if held == by { State::Fence(0) } else { State::Lock };
        }
    }

    /// What the own counter held, for the next conversion.
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// The lock that is wanted next.
    fn lock(&self) -> u16 {
        let (first, second) = (self.own.min(self.donor), self.own.max(self.donor));
        if self.held == 0 { first } else { second }
    }

    fn last_locked(&self) -> u16 {
        let (first, second) = (self.own.min(self.donor), self.own.max(self.donor));
        if self.held == 2 { second } else { first }
    }

    fn locked(&mut self) -> State {
        self.held += 1;
        if self.held == 2 { State::Count } else { State::Lock }
    }

    fn fenced(&mut self, server: u16) -> State {
        if server + 1 < self.setting.servers { State::Fence(server + 1) } else { self.locked() }
    }

    fn read(&mut self, server: u16, word: u64) -> State {
        self.donors += u16::from(site_of(word) == self.donor);
        if server == self.wanted {
            self.found = word;
        }
        if server + 1 < self.setting.servers {
            return State::Read(server + 1);
        }
        if site_of(self.found) != self.donor {
            return self.give_up(Outcome::Overtaken);
        }
        if self.donors < 2 { self.give_up(Outcome::NothingToSpare) } else { State::Verify }
    }

    fn converted(&self) -> u64 {
        server_word(self.own, (self.found >> 16) + 1)
    }

    fn tell(&self, at: usize) -> State {
        if at < self.setting.others.len() { State::Tell(at) } else { State::Unlock }
    }

    fn give_up(&mut self, outcome: Outcome) -> State {
        self.outcome = outcome;
        State::Unlock
    }
}

/// The same site, one generation on.
fn raised(word: u64) -> u64 {
    server_word(site_of(word), (word >> 16) + 1)
}
