//! A stream: one TCP connection of the program, its anchor, and the two directions that may leave the kernel.
//!
//! # Invariants
//!
//! - S1. `reader` and `writer` are locked while bytes move, and never in a sleep or in a blocking system call. Where both
//!   are taken, the reader's comes first.
//! - S2. The position of a direction is what went over TCP plus what went over the ring, and those before it. Only a switch changes the path,
//!   and only at a position that both ends know.
//! - S3. A direction is opened for the ring by its reader, when no call of this process sits in the kernel for it
//!   (`calls_in_kernel`) and every epoll set that has the stream has a berth.
//! - S4. Only the anchor ends a stream.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering},
};

use sidestep_stream::{
    carrier::{Carrier, Halves},
    record::Record,
};
use sidestep_sys::{
    clock,
    lock::{Guard, Lock, Mutex, MutexGuard},
};

use crate::{
    address::Key,
    asking,
    engine::{self, Engine},
    fork::Legacy,
    heirloom::Heirloom,
    kernel,
    reader::Reader,
    reason::Reason,
    registry::{Entry, Field},
    signal::Inside,
    writer::Writer,
};

mod number;
mod parting;
mod promotion;
mod sharing;
mod words;
mod young;

pub use number::{InKernel, Passing};
pub use sharing::{Retired, hold_retired};

/// One connection. Lives for ever and is used again; see [`table`].
#[derive(Debug)]
pub struct Stream {
    /// Its place in the pool.
    pub index: u32,
    /// The words that decide where its bytes go, and the options of its open file. In memory of this process alone.
    record: Record,
    /// A descriptor number of the anchor.
    fd: AtomicI32,
    /// All descriptor numbers of the program that lead here, if there were ever several: else there is the one above.
    numbers: Mutex<Vec<i32>>,
    had_copies: AtomicBool,
    /// Calls that are asleep, or in the kernel, and use the anchor.
    users: AtomicU32,
    /// The program has closed it; the last user closes the anchor.
    orphan: AtomicBool,
    /// `connect` has begun, or it was accepted. Before, it is a stream only so that all that is done to the socket is known.
    pub connected: AtomicBool,
    /// That was `connect`: what is sent is mostly a question.
    pub asks: AtomicBool,
    /// The socket was not made by this process: who else has it, or waits for it, is not known.
    pub foreign: AtomicBool,
    /// TCP_INQ: `recvmsg` tells how many bytes are left to read.
    pub tells_unread: AtomicBool,
    /// The carrier is to be given up.
    pub parting: AtomicBool,
    /// How many were.
    pub partings: AtomicU32,
    /// How often TCP had no space.
    pub fulls: AtomicU64,
    /// How often the program did what wakes those who wait for edges: `shutdown`, another low-water mark.
    pub stirs: AtomicU64,
    /// The program has shut a direction down.
    pub is_shut: AtomicBool,
    /// The writing direction, that is.
    pub sends_no_more: AtomicBool,
    /// Writes are the kernel's, which knows their error: the program has shut that direction down, or was told that the
    /// connection is gone.
    pub writes_over: AtomicBool,
    stage: AtomicU8,
    /// Code of the [`Reason`] that was last given.
    reason: AtomicU8,
    /// Turns from reading to writing or back, times two, plus the last direction.
    turns: AtomicU32,
    /// Tries to find the peer, and calls to skip until the next.
    tries: AtomicU32,
    skip: AtomicU32,
    reader: Lock<Reader>,
    writer: Lock<Writer>,
    carrier: Mutex<Option<Arc<Carrier>>>,
    /// On its way to the directions.
    pub inbox: Mutex<Option<Halves>>,
    place: Mutex<Option<Place>>,
    /// Indices of epoll sets that have this stream.
    pub sets: Mutex<Vec<u32>>,
    /// Bytes that the family shares, and whether there may be some.
    heirloom: Mutex<Option<Arc<Heirloom>>>,
    has_heirloom: AtomicBool,
    /// A child may take its rings over, or read from them.
    pub shared: AtomicBool,
    /// It has been more than a young connection whose calls are the kernel's: it may be known elsewhere, and its directions may
    /// have changed.
    grown: AtomicBool,
}

/// Where a stream is known.
#[derive(Debug, Clone)]
pub struct Place {
    /// The engine of this process.
    pub engine: Arc<Engine>,
    /// Its addresses.
    pub key: Key,
    /// Its place in the registry.
    pub entry: Entry,
    /// SO_COOKIE.
    pub cookie: u64,
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

/// Looks for a writer that is not busy.
const NOTICE_TRIES: u32 = 100;
/// Index of the reading direction in pairs.
pub const READ: usize = 0;
/// Index of the writing direction in pairs.
pub const WRITE: usize = 1;

impl Stream {
    /// One that is not used yet.
    pub fn new(index: u32) -> Stream {
        Stream {
            index,
            record: Record::private(words::own()),
            fd: AtomicI32::new(-1),
            numbers: Mutex::default(),
            had_copies: AtomicBool::new(false),
            users: AtomicU32::new(0),
            orphan: AtomicBool::new(false),
            connected: AtomicBool::new(false),
            asks: AtomicBool::new(false),
            foreign: AtomicBool::new(false),
            tells_unread: AtomicBool::new(false),
            parting: AtomicBool::new(false),
            partings: AtomicU32::new(0),
            fulls: AtomicU64::new(0),
            stirs: AtomicU64::new(0),
            is_shut: AtomicBool::new(false),
            sends_no_more: AtomicBool::new(false),
            writes_over: AtomicBool::new(false),
            stage: AtomicU8::new(Stage::Young as u8),
            reason: AtomicU8::new(Reason::Young as u8),
            turns: AtomicU32::new(0),
            tries: AtomicU32::new(0),
            skip: AtomicU32::new(0),
            reader: Lock::default(),
            writer: Lock::default(),
            carrier: Mutex::default(),
            inbox: Mutex::default(),
            place: Mutex::default(),
            sets: Mutex::default(),
            heirloom: Mutex::default(),
            has_heirloom: AtomicBool::new(false),
            shared: AtomicBool::new(false),
            grown: AtomicBool::new(false),
        }
    }

    /// Makes it the stream behind a descriptor in this mode. Under the lock of the table. Both directions are as new:
    /// the end of the last use has seen to that.
    pub fn begin(&self, fd: i32, nonblocking: bool) {
        if self.has_heirloom.load(Ordering::Relaxed) {
            self.forget_heirloom();
        }
        self.record.begin(words::own(), [0; 2]);
        self.record.shared().set_nonblocking(nonblocking);
        self.record.shared().set_low_water(1);
        self.fd.store(fd, Ordering::Relaxed);
        self.had_copies.store(false, Ordering::Relaxed);
        self.users.store(0, Ordering::Relaxed);
        self.orphan.store(false, Ordering::Relaxed);
        self.connected.store(false, Ordering::Relaxed);
        self.asks.store(false, Ordering::Relaxed);
        self.foreign.store(false, Ordering::Relaxed);
        self.tells_unread.store(false, Ordering::Relaxed);
        self.parting.store(false, Ordering::Relaxed);
        self.partings.store(0, Ordering::Relaxed);
        self.fulls.store(0, Ordering::Relaxed);
        self.stirs.store(0, Ordering::Relaxed);
        self.is_shut.store(false, Ordering::Relaxed);
        self.sends_no_more.store(false, Ordering::Relaxed);
        self.writes_over.store(false, Ordering::Relaxed);
        self.stage.store(Stage::Young as u8, Ordering::Relaxed);
        self.reason.store(Reason::Young as u8, Ordering::Relaxed);
        for word in [&self.turns, &self.tries, &self.skip] {
            word.store(0, Ordering::Relaxed);
        }
        lock(&self.sets).clear();
        self.shared.store(false, Ordering::Relaxed);
        if self.grown.load(Ordering::Relaxed) {
            *lock(&self.carrier) = None;
            *lock(&self.inbox) = None;
            *lock(&self.place) = None;
            *lock(&self.heirloom) = None;
            self.grown.store(false, Ordering::Relaxed);
        }
    }

    /// Whether it has been more than a young connection.
    fn has_grown(&self) -> bool {
        self.grown.load(Ordering::Relaxed)
    }

    /// It is about to be more than a young connection.
    #[inline]
    fn grows(&self) {
        if !self.grown.load(Ordering::Relaxed) {
            self.grown.store(true, Ordering::Relaxed);
        }
    }

    /// In a forked child: goes on over TCP where the parent's stream was, with what that has left to it.
    pub fn inherit(&self, from: &Stream, fd: i32, legacy: Option<&Legacy>) {
        self.begin(fd, kernel::is_nonblocking(fd));
        self.inherit_words(from, legacy.map_or([0; 2], |legacy| legacy.carried));
        self.connected.store(from.connected.load(Ordering::Relaxed), Ordering::Relaxed);
        self.asks.store(from.asks.load(Ordering::Relaxed), Ordering::Relaxed);
        self.foreign.store(from.foreign.load(Ordering::Relaxed), Ordering::Relaxed);
        if let Some(heirloom) = legacy.and_then(|legacy| legacy.heirloom.clone()) {
            self.inherit_bytes(heirloom);
        }
        let left = legacy.is_some_and(|legacy| legacy.left);
        if from.stage() == Stage::Never || from.stage() == Stage::Carried && !left {
            // A link whose peer did not follow is the parent's alone.
            self.stage.store(Stage::Never as u8, Ordering::Relaxed);
            self.reason.store(Reason::OtherHolder as u8, Ordering::Relaxed);
        }
    }

    /// What the family shares is read before everything else.
    pub fn inherit_bytes(&self, heirloom: Arc<Heirloom>) {
        let mut reader = self.reader();
        reader.inherit(heirloom.clone());
        self.has_inherited(heirloom);
    }

    /// The descriptor number of the anchor.
    #[inline]
    pub fn fd(&self) -> i32 {
        self.fd.load(Ordering::Relaxed)
    }

    /// The reading direction.
    #[inline]
    pub fn reader(&self) -> Guard<'_, Reader> {
        self.grows();
        self.reader.lock()
    }

    /// The writing direction.
    #[inline]
    pub fn writer(&self) -> Guard<'_, Writer> {
        self.grows();
        self.writer.lock()
    }

    /// The reading direction, unless someone else has it.
    pub fn try_reader(&self) -> Option<Guard<'_, Reader>> {
        self.grows();
        self.reader.try_lock()
    }

    /// The writing direction, unless someone else has it.
    pub fn try_writer(&self) -> Option<Guard<'_, Writer>> {
        self.grows();
        self.writer.try_lock()
    }

    /// Both, unless someone else has one of them.
    pub fn try_both(&self) -> Option<(Guard<'_, Reader>, Guard<'_, Writer>)> {
        Some((self.try_reader()?, self.try_writer()?))
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

    /// Whether no offer was made yet.
    #[inline]
    pub fn is_young(&self) -> bool {
        self.stage.load(Ordering::SeqCst) == Stage::Young as u8
    }

    /// Where it is known; enters it if it is not.
    pub fn place(&self) -> Option<Place> {
        let mut place = lock(&self.place);
        if place.is_none() {
            self.grows();
            *place = self.enter();
        }
        place.clone()
    }

    /// Where it is known, if it is.
    pub fn known_place(&self) -> Option<Place> {
        lock(&self.place).clone()
    }

    fn enter(&self) -> Option<Place> {
        let engine = engine::engine()?;
        let key = Key::of(self.fd()).ok()?;
        let cookie = kernel::cookie(self.fd()).ok()?;
        let entry = engine.registry.add(engine.process, &key, cookie, self.fd())?;
        Some(Place { engine, key, entry, cookie })
    }

    /// The position of a direction, of whose carrier so much has been used.
    #[inline]
    pub fn position(&self, direction: usize, on_carrier: u64) -> u64 {
        self.over_tcp(direction) + self.carried_bytes(direction, on_carrier)
    }

    /// Bytes of a direction that went over carriers.
    #[inline]
    pub fn carried_bytes(&self, direction: usize, on_carrier: u64) -> u64 {
        self.over_former(direction) + on_carrier
    }

    /// [`keep_up`](Self::keep_up) with the carrier of now, if there is one.
    pub fn keep_up_now(&self) {
        let _inside = Inside::enter();
        if let Some(carrier) = self.carrier() {
            self.keep_up(&carrier);
        }
    }

    /// Carries out a switch of the reading direction that waits for nothing else, and follows a peer that leaves.
    pub fn keep_up(&self, carrier: &Carrier) {
        let _inside = Inside::enter();
        if carrier.is_switching()
            && let Some(mut reader) = self.try_reader()
        {
            reader.keep_up(self);
        }
        let reading = carrier.peer_reading();
        if (reading.leaving || reading.parting)
            && self.on_ring(WRITE)
            && let Some(mut writer) = self.try_writer()
        {
            writer.follow(self, reading.leaving);
        }
        // The sets of one without a place want to know, and this thread may have the lock of one.
        if lock(&self.place).is_some() {
            self.see_parting();
        }
    }

    /// The kernel says that the peer's end has come. If it came without the peer's word, by its death, and bytes of ours
    /// lay unread, TCP would have been reset: the anchor is shut, so that every wait sees it.
    pub fn notice_end(&self, carrier: &Carrier) {
        if carrier.has_ended() || carrier.peer_reading().closed || !kernel::has_peer_ended(self.fd()) {
            return;
        }
        // The peer's word comes before the kernel's.
        carrier.settle_end();
        if carrier.has_ended() || carrier.peer_reading().closed {
            return;
        }
        // Who holds the lock may wait for that of a set, which this thread may have: not for ever, then.
        for _ in 0..NOTICE_TRIES {
            if let Some(writer) = self.try_writer() {
                if writer.has_unread(self) || self.writes_over.load(Ordering::Relaxed) {
                    self.writes_over.store(true, Ordering::Relaxed);
                    let _ = kernel::shutdown(self.fd(), libc::SHUT_RDWR);
                }
                return;
            }
            std::thread::yield_now();
        }
    }

    /// The program is told of an error. If the connection has gone with it, writes are the kernel's.
    #[cold]
    pub fn tells_error(&self) {
        if kernel::state(self.fd()) == Ok(kernel::TCP_CLOSE) {
            self.writes_over.store(true, Ordering::Relaxed);
        }
    }

    /// The program is told of these events of the anchor: after a hang-up writes are the kernel's.
    #[inline]
    pub fn tells(&self, events: i16) {
        if events & libc::POLLHUP != 0 {
            self.writes_over.store(true, Ordering::Relaxed);
        }
    }

    /// Writes paths and reason where `stat` looks.
    pub fn set_reason(&self, reason: Reason) {
        self.reason.store(reason as u8, Ordering::Relaxed);
        if let Some(place) = self.known_place() {
            let [reads, writes] = [READ, WRITE].map(|direction| self.on_ring(direction));
            place.engine.registry.set_state(place.entry, reads, writes, reason);
        }
    }

    /// The reason that was last given, also if it was written nowhere.
    fn reason(&self) -> Reason {
        Reason::from_code(self.reason.load(Ordering::Relaxed))
    }

    /// A direction has changed its path. A writer has said so in the record.
    pub fn moved(&self, direction: usize, to_ring: bool, reason: Reason) {
        if direction == READ {
            self.record.reading().set_within(to_ring);
        }
        self.set_reason(reason);
        self.publish_counts();
        if let Some(place) = self.known_place().filter(|_| to_ring) {
            let [first, count] =
                [Field::Promoted, Field::Promotions].map(|field| place.engine.registry.field(place.entry, field));
            count.fetch_add(1, Ordering::Relaxed);
            if first.load(Ordering::Relaxed) == 0 {
                first.store(clock::now(), Ordering::Relaxed);
            }
        }
    }

    /// TCP takes no more now: space will be news.
    pub fn is_full(&self) {
        self.fulls.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes that the kernel has carried.
    #[inline]
    pub fn count(&self, direction: usize, bytes: usize) {
        self.count_tcp(direction, bytes as u64);
        if direction == WRITE {
            engine::told_kernel();
            if self.asks.load(Ordering::Relaxed) {
                asking::asked();
            }
        }
    }

    /// Stores the counters of the TCP path where `stat` looks.
    pub fn publish_counts(&self) {
        if let Some(place) = self.known_place() {
            let fields = [Field::ReadTcp, Field::WrittenTcp];
            let young = [Field::ReadTcpYoung, Field::WrittenTcpYoung];
            let since = place.engine.registry.field(place.entry, Field::Since).load(Ordering::Relaxed);
            let is_young = clock::now() < since + 1_000_000_000;
            for direction in [READ, WRITE] {
                let bytes = self.over_tcp(direction);
                place.engine.registry.field(place.entry, fields[direction]).store(bytes, Ordering::Relaxed);
                if is_young {
                    place.engine.registry.field(place.entry, young[direction]).store(bytes, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Locks; a thread that panicked inside has left nothing half done that the next one cannot see.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
