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

use std::{
    io::IoSlice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sidestep_stream::{
    carrier::{Carrier, Watch},
    record::Record,
};
use sidestep_sys::lock::{Guard, Lock, Mutex, MutexGuard};

use crate::{
    kernel::{self, signal::Inside},
    processes::{fork::Legacy, heirloom::Heirloom},
    promotion::engine,
    readiness::asking,
    registry::reason::Reason,
    streams::{reader::Reader, writer::Writer},
};

mod number;
mod parting;
mod program;
mod promotion;
pub mod reader;
mod sharing;
mod telling;
mod words;
pub mod writer;
mod young;

pub use number::{InKernel, Passing};
pub use parting::{Carriage, Withheld};
pub use program::{Edges, Ends, Origin};
pub use sharing::{Family, Retired, hold_retired};
pub use telling::Place;

use number::Names;
use promotion::Promotion;

/// One connection. Lives for ever and is used again; see [`table`](crate::descriptors::table).
#[derive(Debug)]
pub struct Stream {
    /// Its place in the pool.
    pub index: u32,
    /// The words that decide where its bytes go, and the options of its open file. In memory of this process alone.
    record: Record,
    names: Names,
    /// How the program came to it.
    pub origin: Origin,
    /// TCP_INQ: `recvmsg` tells how many bytes are left to read.
    pub tells_unread: AtomicBool,
    /// What the program, or the peer, has ended.
    pub ends: Ends,
    /// What wakes those who wait for edges.
    pub edges: Edges,
    promotion: Promotion,
    /// Its carrier, if it has one.
    pub carriage: Carriage,
    reader: Lock<Reader>,
    writer: Lock<Writer>,
    place: Mutex<Option<Place>>,
    /// Indices of epoll sets that have this stream.
    pub sets: Mutex<Vec<u32>>,
    /// What other processes that hold it may have of it.
    pub family: Family,
    /// It has been more than a young connection whose calls are the kernel's: it may be known elsewhere, and its directions may
    /// have changed.
    grown: AtomicBool,
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
    /// The same, until it is turned on by hand.
    Off = 4,
}

/// Looks for a writer that is not busy.
const NOTICE_TRIES: u32 = 100;
/// The highest number of a standard descriptor.
const STANDARD: i32 = libc::STDERR_FILENO;
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
            names: Names::default(),
            origin: Origin::default(),
            tells_unread: AtomicBool::new(false),
            ends: Ends::default(),
            edges: Edges::default(),
            promotion: Promotion::default(),
            carriage: Carriage::default(),
            reader: Lock::default(),
            writer: Lock::default(),
            place: Mutex::default(),
            sets: Mutex::default(),
            family: Family::default(),
            grown: AtomicBool::new(false),
        }
    }

    /// Makes it the stream behind a descriptor in this mode. Under the lock of the table. Both directions are as new:
    /// the end of the last use has seen to that.
    pub fn begin(&self, fd: i32, nonblocking: bool) {
        if self.family.has_heirloom.load(Ordering::Relaxed) {
            self.forget_heirloom();
        }
        self.record.begin(words::own(), [0; 2]);
        self.record.shared().set_nonblocking(nonblocking);
        self.record.shared().set_low_water(1);
        self.names.begin(fd);
        self.origin.begin();
        self.tells_unread.store(false, Ordering::Relaxed);
        self.ends.begin();
        self.edges.begin();
        self.promotion.begin();
        self.carriage.parting.store(false, Ordering::Relaxed);
        self.carriage.partings.store(0, Ordering::Relaxed);
        self.carriage.losses.store(0, Ordering::Relaxed);
        self.carriage.brief.store(0, Ordering::Relaxed);
        lock(&self.sets).clear();
        self.family.shared.store(false, Ordering::Relaxed);
        self.family.set_tally(None);
        if self.grown.load(Ordering::Relaxed) {
            self.carriage.end();
            *lock(&self.place) = None;
            *lock(&self.family.heirloom) = None;
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
        self.origin.inherit(&from.origin);
        if let Some(heirloom) = legacy.and_then(|legacy| legacy.heirloom.clone()) {
            self.inherit_bytes(heirloom);
        }
        let left = legacy.is_some_and(|legacy| legacy.left);
        if from.stays() || from.stage() == Stage::Carried && !left {
            // A link whose peer did not follow is the parent's alone.
            self.promotion.stage.store(Stage::Never as u8, Ordering::Relaxed);
            self.promotion.reason.store(Reason::OtherHolder as u8, Ordering::Relaxed);
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
        self.names.fd.load(Ordering::Relaxed)
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
        if self.stage() == Stage::Carried { lock(&self.carriage.carrier).clone() } else { None }
    }

    /// How far it has come.
    #[inline]
    pub fn stage(&self) -> Stage {
        match self.promotion.stage.load(Ordering::SeqCst) {
            0 => Stage::Young,
            1 => Stage::Offered,
            2 => Stage::Carried,
            4 => Stage::Off,
            _ => Stage::Never,
        }
    }

    /// Whether it has no carrier, and gets none.
    pub fn stays(&self) -> bool {
        matches!(self.stage(), Stage::Never | Stage::Off)
    }

    /// Whether no offer was made yet.
    #[inline]
    pub fn is_young(&self) -> bool {
        self.promotion.stage.load(Ordering::SeqCst) == Stage::Young as u8
    }

    /// The position of a direction, of whose carrier so much has been used.
    #[inline]
    pub fn position(&self, direction: usize, on_carrier: u64) -> u64 {
        self.over_tcp(direction).wrapping_add(self.carried_bytes(direction, on_carrier))
    }

    /// Bytes of a direction that went over carriers. While bytes that were taken back count as TCP's, and what their ring has carried
    /// is not added yet, that is less than nothing ([`forget_heirloom`](Self::forget_heirloom)): all sums of it wrap.
    #[inline]
    pub fn carried_bytes(&self, direction: usize, on_carrier: u64) -> u64 {
        self.over_former(direction).wrapping_add(on_carrier)
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
        if (carrier.is_switching() || self.on_ring(READ) && carrier.watch().is_frozen())
            && let Some(mut reader) = self.try_reader()
        {
            reader.keep_up(self);
        }
        let (asked, reading) = (carrier.asked(), carrier.peer_reading());
        if asked != 0
            && self.on_ring(WRITE)
            && let Some(mut writer) = self.try_writer()
            && self.is_carried_by(carrier)
        {
            // What comes later is followed later.
            carrier.followed.store(asked, Ordering::Relaxed);
            writer.follow(self, reading.leaving);
        }
        // The sets of one without a place want to know, and this thread may have the lock of one.
        if lock(&self.place).is_some() {
            self.see_parting();
        }
    }

    /// The carrier, if this side has written to it and may be asked for what the peer has not read: who waits then does not do so
    /// in the kernel, where it would not hear of that.
    pub fn written_carrier(&self) -> Option<Arc<Carrier>> {
        self.carrier().filter(|_| self.on_ring(WRITE))
    }

    /// Whether the peer asks for something that this side has not followed: nobody sleeps before that.
    #[inline]
    pub fn must_follow(&self, carrier: &Carrier) -> bool {
        carrier.asks_anew() && self.on_ring(WRITE)
    }

    /// The kernel says that the peer's end has come. If it came without the peer's word, by its death, and bytes of ours
    /// lay unread, TCP would have been reset: the anchor is shut, so that every wait sees it.
    pub fn notice_end(&self, carrier: &Carrier) {
        let reading = carrier.peer_reading();
        if reading.closed && !reading.resets && carrier.capabilities().far {
            return self.notice_late_bytes();
        }
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
                if !self.is_carried_by(carrier) {
                    // What the peer has said is said of the next one.
                    return;
                }
                if writer.has_unread(self) || self.ends.writes_over.load(Ordering::Relaxed) {
                    self.ends.writes_over.store(true, Ordering::Relaxed);
                    let _ = kernel::shutdown(self.fd(), libc::SHUT_RDWR);
                }
                return;
            }
            std::thread::yield_now();
        }
    }

    /// A peer that is far away has closed, and had read all that had come. Bytes that were on their way to it then are a reset on TCP: the
    /// kernel finds that by itself when it has one of them.
    #[cold]
    fn notice_late_bytes(&self) {
        let Some(writer) = self.try_writer().filter(|writer| writer.has_unread(self)) else { return };
        if !self.ends.writes_over.swap(true, Ordering::Relaxed) {
            let _ = kernel::send(self.fd(), &[IoSlice::new(&[0])], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
        }
        drop(writer);
    }

    /// The program is told of an error. If the connection has gone with it, writes are the kernel's.
    #[cold]
    pub fn tells_error(&self) {
        if kernel::state(self.fd()) == Ok(kernel::TCP_CLOSE) {
            self.ends.writes_over.store(true, Ordering::Relaxed);
        }
    }

    /// The program is told of these events of the anchor: after a hang-up writes are the kernel's.
    #[inline]
    pub fn tells(&self, events: i16) {
        if events & libc::POLLHUP != 0 {
            self.ends.writes_over.store(true, Ordering::Relaxed);
        }
    }

    /// No more is taken now: space will be news.
    pub fn is_full(&self) {
        self.edges.fulls.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes that the kernel has carried.
    #[inline]
    pub fn count(&self, direction: usize, bytes: usize) {
        self.count_tcp(direction, bytes as u64);
        if direction == WRITE {
            engine::told_kernel();
            if self.origin.asks.load(Ordering::Relaxed) {
                asking::asked();
            }
        }
    }
}

/// Locks; a thread that panicked inside has left nothing half done that the next one cannot see.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
