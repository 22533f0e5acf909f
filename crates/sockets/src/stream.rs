//! A stream: one TCP connection of the program, its anchor, and the two directions that may leave the kernel.
//!
//! # Invariants
//!
//! - S1. `reader` and `writer` are locked while bytes move, and never in a sleep or in a blocking system call. Where both
//!   are taken, the reader's comes first.
//! - S2. The position of a direction is what went over TCP plus what went over the ring. Only a switch changes the path,
//!   and only at a position that both ends know.
//! - S3. A direction is opened for the ring by its reader, when no call of this process sits in the kernel for it
//!   (`in_kernel`) and every epoll set that has the stream has a berth.
//! - S4. Only the anchor ends a stream.

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering},
};

use sidestep_shm::{
    clock,
    lock::{Guard, Lock},
};

use crate::{
    address::Key,
    carrier::{Carrier, ENDED, Parts, Switch},
    config::{Promote, config},
    engine::{self, Engine},
    kernel,
    reader::Reader,
    reason::Reason,
    registry::{Entry, Field},
    signal::Inside,
    table,
    writer::Writer,
};

/// One connection. Lives for ever and is used again; see [`table`].
#[derive(Debug)]
pub struct Stream {
    /// Its place in the pool.
    pub index: u32,
    /// A descriptor number of the anchor.
    fd: AtomicI32,
    /// All descriptor numbers of the program that lead here.
    numbers: Mutex<Vec<i32>>,
    /// Calls that are asleep, or in the kernel, and use the anchor.
    users: AtomicU32,
    /// The program has closed it; the last user closes the anchor.
    orphan: AtomicBool,
    /// O_NONBLOCK.
    pub nonblocking: AtomicBool,
    /// SO_RCVTIMEO and SO_SNDTIMEO in nanoseconds; 0: none.
    pub timeouts: [AtomicU64; 2],
    /// SO_RCVLOWAT.
    pub low_water: AtomicU32,
    /// Reads of the program, and writes, that sit in the kernel.
    pub in_kernel: [AtomicU32; 2],
    /// Bytes that went over TCP: read, written.
    pub over_tcp: [AtomicU64; 2],
    /// The program has shut a direction down.
    pub is_shut: AtomicBool,
    /// The writing direction, that is.
    pub sends_no_more: AtomicBool,
    /// The reading direction is open: its waits cover the ring.
    pub open: AtomicBool,
    /// Where bytes are read from and written to: `true` is the ring.
    pub on_ring: [AtomicBool; 2],
    stage: AtomicU8,
    /// Turns from reading to writing or back, times two, plus the last direction.
    turns: AtomicU32,
    /// Tries to find the peer, and calls to skip until the next.
    tries: AtomicU32,
    skip: AtomicU32,
    reader: Lock<Reader>,
    writer: Lock<Writer>,
    carrier: Mutex<Option<Arc<Carrier>>>,
    /// On its way to the directions.
    pub inbox: Mutex<Option<Parts>>,
    place: Mutex<Option<Place>>,
    /// Indices of epoll sets that have this stream.
    pub sets: Mutex<Vec<u32>>,
}

/// Where a stream is known.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The engine of this process.
    pub engine: &'static Engine,
    /// Its addresses.
    pub key: Key,
    /// Its place in the registry.
    pub entry: Entry,
    /// SO_COOKIE.
    pub cookie: u64,
}

/// A call that may sleep is under way.
#[derive(Debug)]
pub struct InUse(&'static Stream);

impl Drop for InUse {
    fn drop(&mut self) {
        let _inside = Inside::enter();
        self.0.unuse();
    }
}

/// How far a stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub enum Stage {
    /// It may be offered later.
    Young = 0,
    /// An offer stands.
    Offered = 1,
    /// A carrier is there.
    Carried = 2,
    /// It stays on TCP.
    Never = 3,
}

/// Index of the reading direction in pairs.
pub const READ: usize = 0;
/// Index of the writing direction in pairs.
pub const WRITE: usize = 1;

/// Turns after which a stream is offered: the second exchange has begun.
const TURNS: u32 = 3;
/// Bytes in one direction after which it is offered.
const BULK: u64 = 64 << 10;
/// Calls of a stream that stays on TCP between two tellings of its counters.
const TOLD_EVERY: u32 = 64;
/// The most calls between two tries to find the peer.
const MOST_SKIPPED: u32 = 4096;

impl Stream {
    /// One that is not used yet.
    pub fn new(index: u32) -> Stream {
        Stream {
            index,
            fd: AtomicI32::new(-1),
            numbers: Mutex::default(),
            users: AtomicU32::new(0),
            orphan: AtomicBool::new(false),
            nonblocking: AtomicBool::new(false),
            timeouts: Default::default(),
            low_water: AtomicU32::new(1),
            in_kernel: Default::default(),
            over_tcp: Default::default(),
            is_shut: AtomicBool::new(false),
            sends_no_more: AtomicBool::new(false),
            open: AtomicBool::new(false),
            on_ring: Default::default(),
            stage: AtomicU8::new(Stage::Young as u8),
            turns: AtomicU32::new(0),
            tries: AtomicU32::new(0),
            skip: AtomicU32::new(0),
            reader: Lock::default(),
            writer: Lock::default(),
            carrier: Mutex::default(),
            inbox: Mutex::default(),
            place: Mutex::default(),
            sets: Mutex::default(),
        }
    }

    /// Makes it the stream behind a descriptor. Under the lock of the table.
    pub fn begin(&self, fd: i32) {
        self.fd.store(fd, Ordering::Relaxed);
        *lock(&self.numbers) = vec![fd];
        self.users.store(0, Ordering::Relaxed);
        self.orphan.store(false, Ordering::Relaxed);
        self.nonblocking.store(kernel::is_nonblocking(fd), Ordering::Relaxed);
        self.low_water.store(1, Ordering::Relaxed);
        for pair in [&self.timeouts, &self.over_tcp] {
            pair.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        self.in_kernel.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.on_ring.iter().for_each(|word| word.store(false, Ordering::Relaxed));
        self.open.store(false, Ordering::Relaxed);
        self.is_shut.store(false, Ordering::Relaxed);
        self.sends_no_more.store(false, Ordering::Relaxed);
        self.stage.store(Stage::Young as u8, Ordering::Relaxed);
        for word in [&self.turns, &self.tries, &self.skip] {
            word.store(0, Ordering::Relaxed);
        }
        *self.reader() = Reader::default();
        *self.writer() = Writer::default();
        *lock(&self.carrier) = None;
        *lock(&self.inbox) = None;
        *lock(&self.place) = None;
        lock(&self.sets).clear();
    }

    /// In a forked child: goes on where the parent's stream was, if that was on TCP.
    pub fn inherit(&self, from: &Stream, fd: i32) {
        self.begin(fd);
        for direction in [READ, WRITE] {
            let bytes = from.over_tcp[direction].load(Ordering::Relaxed);
            self.over_tcp[direction].store(bytes, Ordering::Relaxed);
            self.timeouts[direction].store(from.timeouts[direction].load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.low_water.store(from.low_water.load(Ordering::Relaxed), Ordering::Relaxed);
        if from.stage() >= Stage::Carried {
            // Its bytes are in memory of the parent's. The parent goes on; here nothing can.
            self.stage.store(Stage::Never as u8, Ordering::Relaxed);
        }
    }

    /// The descriptor number of the anchor.
    #[inline]
    pub fn fd(&self) -> i32 {
        self.fd.load(Ordering::Relaxed)
    }

    /// The reading direction.
    #[inline]
    pub fn reader(&self) -> Guard<'_, Reader> {
        self.reader.lock()
    }

    /// The writing direction.
    #[inline]
    pub fn writer(&self) -> Guard<'_, Writer> {
        self.writer.lock()
    }

    /// The reading direction, unless someone else has it.
    pub fn try_reader(&self) -> Option<Guard<'_, Reader>> {
        self.reader.try_lock()
    }

    /// The writing direction, unless someone else has it.
    pub fn try_writer(&self) -> Option<Guard<'_, Writer>> {
        self.writer.try_lock()
    }

    /// Both, unless someone else has one of them.
    pub fn try_both(&self) -> Option<(Guard<'_, Reader>, Guard<'_, Writer>)> {
        Some((self.reader.try_lock()?, self.writer.try_lock()?))
    }

    /// The carrier, if there is one.
    #[inline]
    pub fn carrier(&self) -> Option<Arc<Carrier>> {
        if self.stage() == Stage::Carried { lock(&self.carrier).clone() } else { None }
    }

    /// How far it has come.
    #[inline]
    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::SeqCst) {
            0 => Stage::Young,
            1 => Stage::Offered,
            2 => Stage::Carried,
            _ => Stage::Never,
        }
    }

    /// Where it is known; enters it if it is not.
    pub fn place(&self) -> Option<Place> {
        let mut place = lock(&self.place);
        if place.is_none() {
            *place = self.enter();
        }
        *place
    }

    /// Where it is known, if it is.
    pub fn known_place(&self) -> Option<Place> {
        *lock(&self.place)
    }

    fn enter(&self) -> Option<Place> {
        let engine = engine::engine()?;
        let key = Key::of(self.fd()).ok()?;
        let cookie = kernel::cookie(self.fd()).ok()?;
        let entry = engine.registry.add(engine.process, &key)?;
        engine.registry.field(entry, Field::Cookie).store(cookie, Ordering::Relaxed);
        engine.registry.field(entry, Field::Descriptor).store(self.fd() as u64, Ordering::Relaxed);
        engine.registry.field(entry, Field::Since).store(clock::now(), Ordering::Relaxed);
        Some(Place { engine, key, entry, cookie })
    }

    /// Carries out a switch of the reading direction that waits for nothing else.
    pub fn keep_up(&self, carrier: &Carrier) {
        if carrier.is_switching()
            && let Some(mut reader) = self.reader.try_lock()
        {
            reader.keep_up(self);
        }
    }

    /// The kernel says that the peer's end has come. If it came without the peer's word, by its death, and bytes of ours
    /// lay unread, TCP would have been reset: the anchor is shut, so that every wait sees it.
    pub fn notice_end(&self, carrier: &Carrier) {
        if carrier.has_ended() || carrier.peer_reading().closed || !kernel::has_peer_ended(self.fd()) {
            return;
        }
        if self.writer.try_lock().is_some_and(|mut writer| writer.is_cut_off()) {
            let _ = kernel::shutdown(self.fd(), libc::SHUT_RDWR);
        }
    }

    /// Called by every call that goes to the kernel: counts turns and bytes, and sees to the promotion.
    #[inline]
    pub fn passes(&self, direction: usize) {
        match self.stage() {
            Stage::Young => {
                let turns = self.turns.load(Ordering::Relaxed);
                if turns & 1 != direction as u32 || turns == 0 {
                    self.turns.store((turns & !1) + 2 + direction as u32, Ordering::Relaxed);
                }
                let due = turns / 2 >= TURNS
                    || self.over_tcp[direction].load(Ordering::Relaxed) >= BULK
                    || config().promote == Promote::Eager;
                if due {
                    self.offer();
                }
            }
            Stage::Offered => self.pursue(),
            Stage::Carried => {}
            Stage::Never => {
                // Counters are told now and then.
                let calls = self.skip.fetch_add(1, Ordering::Relaxed);
                if calls % TOLD_EVERY == 0 {
                    self.publish_counts();
                }
            }
        }
    }

    /// Makes the offer: from now on a peer may ask, or this side looks for one.
    #[cold]
    fn offer(&self) {
        let Some(place) = self.place() else { return self.stay(Reason::Resources) };
        if config().promote == Promote::Never || !config().allows(&place.key) {
            return self.stay(Reason::Rule);
        }
        if self.stage.compare_exchange(0, Stage::Offered as u8, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        self.set_reason(Reason::PeerUnknown);
        if !place.key.asks() {
            place.engine.await_peer(&place, self.index);
        }
        self.pursue();
    }

    /// While an offer stands: sees to what has arrived, and looks for the peer now and then.
    #[cold]
    fn pursue(&self) {
        let skip = self.skip.load(Ordering::Relaxed);
        let Some(place) = self.known_place() else { return };
        if place.engine.pump() {
            self.publish_counts();
        }
        if !place.key.asks() || self.stage() != Stage::Offered {
            return;
        }
        if skip > 0 {
            self.skip.store(skip - 1, Ordering::Relaxed);
            return;
        }
        let tries = self.tries.fetch_add(1, Ordering::Relaxed);
        self.skip.store((1 << tries.min(12)).min(MOST_SKIPPED) - 1, Ordering::Relaxed);
        place.engine.ask(&place, self);
    }

    /// Whether an option is set that only the kernel can carry out.
    pub fn has_odd_options(&self) -> bool {
        let fd = self.fd();
        let is_set = |level, name| kernel::option(fd, level, name).is_ok_and(|value| value != 0);
        let mut protocol = [0; 16];
        let layered = kernel::read_option(fd, libc::IPPROTO_TCP, libc::TCP_ULP, &mut protocol).is_ok_and(|len| len > 0);
        let peeks = kernel::option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF).is_ok_and(|offset| offset >= 0);
        layered && protocol[0] != 0
            || peeks
            || is_set(libc::IPPROTO_TCP, libc::TCP_INQ)
            || [libc::SO_TIMESTAMP, libc::SO_TIMESTAMPNS, libc::SO_TIMESTAMPING, libc::SO_ZEROCOPY]
                .into_iter()
                .any(|name| is_set(libc::SOL_SOCKET, name))
    }

    /// Options that the program set before this library looked.
    fn read_options(&self) {
        let fd = self.fd();
        for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            let mut time = [0; 16];
            if kernel::read_option(fd, libc::SOL_SOCKET, name, &mut time) == Ok(16) {
                crate::calls::option_was_set(fd, libc::SOL_SOCKET, name, &time);
            }
        }
        if let Ok(bytes) = kernel::option(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT) {
            self.low_water.store(bytes.max(1) as u32, Ordering::Relaxed);
        }
    }

    /// A carrier has been made: the directions take it up at their next calls.
    pub fn carried(&self, parts: Parts) {
        self.read_options();
        *lock(&self.carrier) = Some(parts.carrier.clone());
        *lock(&self.inbox) = Some(parts);
        self.stage.store(Stage::Carried as u8, Ordering::SeqCst);
        if let Some(place) = self.known_place() {
            place.engine.registry.set_willing(place.entry, false);
        }
        self.set_reason(Reason::Promoted);
        // SeqCst: a shutdown sees the carrier, or this sees the shutdown and says so in the writer's stead.
        if self.sends_no_more.load(Ordering::SeqCst)
            && let Some(sender) = lock(&self.inbox).as_mut().and_then(|parts| parts.sender.as_mut())
        {
            let _ = sender.set_note(Switch::note(0), ENDED);
        }
    }

    /// It stays on TCP, for this reason.
    #[cold]
    pub fn stay(&self, reason: Reason) {
        // What has a carrier leaves it by itself.
        if self.stage() == Stage::Carried {
            return;
        }
        self.stage.store(Stage::Never as u8, Ordering::Release);
        if let Some(place) = self.known_place() {
            place.engine.forget(&place.key);
            place.engine.registry.set_willing(place.entry, false);
        }
        self.set_reason(reason);
    }

    /// Writes paths and reason where `stat` looks.
    pub fn set_reason(&self, reason: Reason) {
        if let Some(place) = self.known_place() {
            let [reads, writes] = [READ, WRITE].map(|direction| self.on_ring[direction].load(Ordering::Relaxed));
            place.engine.registry.set_state(place.entry, reads, writes, reason);
        }
    }

    /// A direction has changed its path.
    pub fn moved(&self, direction: usize, to_ring: bool, reason: Reason) {
        self.on_ring[direction].store(to_ring, Ordering::Release);
        self.set_reason(reason);
        self.publish_counts();
        if let Some(place) = self.known_place() {
            let promoted = place.engine.registry.field(place.entry, Field::Promoted);
            if to_ring && promoted.load(Ordering::Relaxed) == 0 {
                promoted.store(clock::now(), Ordering::Relaxed);
            }
        }
    }

    /// Bytes that the kernel has carried.
    #[inline]
    pub fn count(&self, direction: usize, bytes: usize) {
        self.over_tcp[direction].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Stores the counters of the TCP path where `stat` looks.
    pub fn publish_counts(&self) {
        if let Some(place) = self.known_place() {
            let fields = [Field::ReadTcp, Field::WrittenTcp];
            let young = [Field::ReadTcpYoung, Field::WrittenTcpYoung];
            let since = place.engine.registry.field(place.entry, Field::Since).load(Ordering::Relaxed);
            let is_young = clock::now() < since + 1_000_000_000;
            for direction in [READ, WRITE] {
                let bytes = self.over_tcp[direction].load(Ordering::Relaxed);
                place.engine.registry.field(place.entry, fields[direction]).store(bytes, Ordering::Relaxed);
                if is_young {
                    place.engine.registry.field(place.entry, young[direction]).store(bytes, Ordering::Relaxed);
                }
            }
        }
    }

    /// Another number leads here.
    pub fn add_number(&self, fd: i32) {
        lock(&self.numbers).push(fd);
    }

    /// Whether a single number leads here.
    pub fn has_one_number(&self) -> bool {
        lock(&self.numbers).len() == 1
    }

    /// A number leads here no more. `true`: it was the last one.
    pub fn drop_number(&self, fd: i32) -> bool {
        let mut numbers = lock(&self.numbers);
        numbers.retain(|number| *number != fd);
        if let Some(other) = numbers.first() {
            self.fd.store(*other, Ordering::Relaxed);
        }
        numbers.is_empty()
    }

    /// Begins a call that may sleep: the anchor stays until it has ended, also if the program closes the descriptor.
    pub fn in_use(&'static self) -> InUse {
        self.users.fetch_add(1, Ordering::SeqCst);
        InUse(self)
    }

    fn unuse(&'static self) {
        if self.users.fetch_sub(1, Ordering::SeqCst) == 1 && self.orphan.load(Ordering::SeqCst) {
            let _change = table::change();
            if self.users.load(Ordering::SeqCst) == 0 && self.orphan.swap(false, Ordering::SeqCst) {
                let _ = self.end();
            }
        }
    }

    /// The program has closed its last number, which is still open. Under the lock of the table.
    pub fn close(&'static self) -> kernel::Result<()> {
        let fd = self.fd();
        if self.users.load(Ordering::SeqCst) > 0 {
            // Calls are under way. The anchor moves away, so that none of them touches a number that is used again.
            if let Ok(moved) = kernel::duplicate_high(fd) {
                self.fd.store(moved, Ordering::SeqCst);
                self.orphan.store(true, Ordering::SeqCst);
                return kernel::close(fd);
            }
        }
        self.end()
    }

    /// Its last number is about to lead elsewhere, by someone else's doing. Under the lock of the table.
    pub fn detach(&'static self, fd: i32) {
        // The other end must not find the carrier gone before the end of the stream: a copy keeps the anchor meanwhile.
        if let Ok(moved) = kernel::duplicate_high(fd) {
            self.fd.store(moved, Ordering::SeqCst);
            if self.users.load(Ordering::SeqCst) > 0 {
                self.orphan.store(true, Ordering::SeqCst);
                return;
            }
        }
        let _ = self.end();
    }

    /// Closes the anchor and gives everything back.
    fn end(&'static self) -> kernel::Result<()> {
        self.publish_counts();
        let fd = self.fd();
        let (mut reader, mut writer) = (self.reader(), self.writer());
        if self.stage() == Stage::Carried {
            reader.end(self);
            writer.end(self);
        }
        crate::custody::releasing(fd);
        // The anchor first: who finds the carrier gone must find the end of the stream behind it.
        let closed = kernel::close(fd);
        *reader = Reader::default();
        *writer = Writer::default();
        if let Some(place) = lock(&self.place).take() {
            place.engine.forget(&place.key);
            place.engine.registry.add_totals(place.engine.process, place.entry);
            place.engine.registry.remove(place.entry);
        }
        *lock(&self.inbox) = None;
        *lock(&self.carrier) = None;
        self.stage.store(Stage::Never as u8, Ordering::Release);
        table::recycle_stream(self);
        closed
    }
}

/// Locks; a thread that panicked inside has left nothing half done that the next one cannot see.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
