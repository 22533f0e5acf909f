//! What both directions and every waiter of a promoted stream share.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, Ordering, fence},
    },
    time::Duration,
};

use rustix::thread::Timespec;
use sidestep_fabric::{Node, PeerId};
use sidestep_shm::Word64;
use sidestep_sys::clock;

use super::{AnyInbound, AnyOutbound, AnyWatch, Capabilities, ENDED, Reading, Switch, Watch};

/// The state of a carrier that any thread may look at.
#[derive(Debug)]
pub struct Carrier {
    /// No other carrier of this process has, had or will have it.
    pub serial: u64,
    /// Where waits for it sleep.
    node: Node,
    /// What comes for it.
    watch: AnyWatch,
    /// How far this side has read its ring: for looking without the reader's lock.
    pub taken: AtomicU64,
    /// How far this side has written the peer's ring.
    pub pushed: AtomicU64,
    /// Where the next byte to read lies, and where the next one to write belongs: hints to the processor, nothing else.
    pub places: [AtomicPtr<u8>; 2],
    /// The last switch that this side's reader has carried out.
    pub switched: AtomicU8,
    /// Bytes that were read from TCP and come after the ring's.
    pub kept: AtomicU64,
    /// Size of the peer's ring.
    pub capacity: AtomicU64,
    /// What the peer's reader [asked](Carrier::asked) when this side last followed it.
    pub followed: AtomicU64,
    /// The process at the other end, if this one sees its count of what it tells by way of the kernel.
    pub peer: OnceLock<Peer>,
    /// One whose count cannot be seen: it tells that with its bytes, and wants to be told this process's.
    pub teller: OnceLock<PeerId>,
    /// The connection underneath has ended.
    pub lost: AtomicBool,
    /// Since when that is known; 0: nobody has asked.
    lost_since: AtomicU64,
}

/// The process at the other end.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its place among the processes that this one knows of.
    pub index: usize,
    /// How often it has told something by way of the kernel.
    kernel_news: Word64,
}

impl Peer {
    /// The process in this place, with the word in which it counts what it tells by way of the kernel.
    pub fn new(index: usize, kernel_news: Word64) -> Peer {
        Peer { index, kernel_news }
    }

    /// How often it has told something by way of the kernel: what came before bytes that were seen in its ring is counted.
    #[inline]
    pub fn kernel_news(&self) -> u64 {
        // Pairs with the Release of whoever counts, by way of the ring: the look at the ring comes first.
        fence(Ordering::Acquire);
        self.kernel_news.load(Ordering::Acquire)
    }
}

/// A carrier with its two halves, on the way to the directions of its stream. When all of them are gone it ends, not the stream.
#[derive(Debug)]
pub struct Halves {
    /// What every waiter shares.
    pub carrier: Arc<Carrier>,
    /// For the writer.
    pub outbound: Option<AnyOutbound>,
    /// For the reader.
    pub inbound: Option<AnyInbound>,
}

/// How long the peer's word for the end of a stream is waited for, and how often it is looked for.
const WORD_NS: u64 = 1_000_000_000;
const LOOK: Duration = Duration::from_micros(20);

impl Carrier {
    /// A serial number for the next one.
    pub fn next_serial() -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        LAST.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// One that nothing has gone over.
    pub fn new(node: &Node, watch: AnyWatch, capacity: u64) -> Carrier {
        Carrier {
            serial: Carrier::next_serial(),
            node: node.clone(),
            watch,
            taken: AtomicU64::new(0),
            pushed: AtomicU64::new(0),
            places: Default::default(),
            switched: AtomicU8::new(0),
            kept: AtomicU64::new(0),
            capacity: AtomicU64::new(capacity),
            followed: AtomicU64::new(0),
            peer: OnceLock::new(),
            teller: OnceLock::new(),
            lost: AtomicBool::new(false),
            lost_since: AtomicU64::new(0),
        }
    }

    /// The node whose news ends waits for it.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// What comes for it: what to look at, what to arm.
    #[inline]
    pub fn watch(&self) -> &AnyWatch {
        &self.watch
    }

    /// What it can do.
    #[inline]
    pub fn capabilities(&self) -> Capabilities {
        self.watch.capabilities()
    }

    /// After the anchor has ended: the peer's word for it comes before the kernel's, but over a wire it may arrive later. It is
    /// waited for until the link is over, too.
    pub fn settle_end(&self) {
        self.watch.settle();
        if !self.capabilities().far {
            return;
        }
        let until = clock::now() + WORD_NS;
        while !self.has_ended() && self.check() && clock::now() < until {
            pause(LOOK);
            self.watch.settle();
        }
    }

    /// Since when a carrier that is lost has been known to be.
    pub fn lost_since(&self) -> u64 {
        let now = clock::now();
        self.lost_since
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed)
            .map_or_else(|since| since, |_| now)
    }

    /// Waits until everything that was sent lies in memory of the peer, or the time is over.
    pub fn deliver(&self, until: u64) {
        let mut mark = None;
        while !self.watch.has_arrived(&mut mark) && self.watch.stands() && clock::now() < until {
            pause(LOOK);
        }
    }

    /// Whether the ring holds bytes that were not read. A look, without a lock.
    #[inline]
    pub fn has_bytes(&self) -> bool {
        self.has_at_least(1)
    }

    /// Whether the ring holds at least so many.
    #[inline]
    pub fn has_at_least(&self, wanted: u32) -> bool {
        let bytes = self.watch.written().wrapping_sub(self.taken.load(Ordering::Relaxed));
        let enough = bytes >= u64::from(wanted.max(1));
        if !enough {
            self.watch.found_nothing();
        }
        enough
    }

    /// Bytes in flight to the peer, as far as is known.
    pub fn in_flight(&self) -> u64 {
        let read = self.watch.read() & !(1 << 63);
        self.pushed.load(Ordering::Relaxed).saturating_sub(read)
    }

    /// How much has been filled since the beginning.
    pub fn filled(&self) -> u64 {
        self.watch.filled(self.pushed.load(Ordering::Relaxed))
    }

    /// So much is filled after a reader moved that was at work.
    pub fn much(&self) -> u64 {
        self.watch.much(self.capacity.load(Ordering::Relaxed))
    }

    /// Whether enough space is free that a writer should be told.
    #[inline]
    pub fn has_space(&self) -> bool {
        self.watch.has_space(|| self.in_flight(), self.capacity.load(Ordering::Relaxed))
    }

    /// The switch after number `done`, if the peer's writer has announced it.
    #[inline]
    pub fn announced(&self, done: u8) -> Option<Switch> {
        let next = Switch::next_number(done);
        let switch = Switch::from_note(self.watch.writer_note(Switch::note(next)));
        (switch.number == next).then_some(switch)
    }

    /// Whether a switch has been announced that was not carried out.
    #[inline]
    pub fn is_switching(&self) -> bool {
        self.announced(self.switched.load(Ordering::Relaxed)).is_some()
    }

    /// Whether what is read next may come over TCP though this side reads the carrier still: a switch has been announced, or the
    /// carrier has been ended without one, as another process does that takes the peer's end over.
    #[inline]
    pub fn may_leave(&self) -> bool {
        self.is_switching() || self.watch.is_frozen()
    }

    /// How far the peer has come with what it tells by way of the kernel, as far as this process can know. If it neither sees that
    /// nor is told, every byte that comes may come after something of that kind.
    #[inline]
    pub fn kernel_news(&self) -> u64 {
        match self.peer.get() {
            Some(peer) => peer.kernel_news(),
            None if self.teller.get().is_some() => self.watch.writer_count(),
            None => self.watch.written(),
        }
    }

    /// Whether the peer says that it writes no more.
    #[inline]
    pub fn has_ended(&self) -> bool {
        (self.watch.writer_note(0) | self.watch.writer_note(1)) & ENDED != 0
    }

    /// What the peer's reader says.
    #[inline]
    pub fn peer_reading(&self) -> Reading {
        Reading::from_note(self.watch.reader_note())
    }

    /// What the peer's reader asks of this side's writer, to compare with an earlier answer. 0: nothing.
    pub fn asked(&self) -> u64 {
        let note = self.watch.reader_note();
        let asks = Reading::from_note(note).asks_to_leave();
        if asks { note & Reading::ASKS | self.watch.returns() << 32 } else { 0 }
    }

    /// Whether that is something which this side has not followed.
    #[inline]
    pub fn asks_anew(&self) -> bool {
        let asked = self.asked();
        asked != 0 && asked != self.followed.load(Ordering::Relaxed)
    }

    /// Sees to what has come for this process, and whether the connection underneath stands.
    #[cold]
    pub fn check(&self) -> bool {
        self.node().progress_kernel();
        if !self.watch.stands() {
            self.lost.store(true, Ordering::Release);
        }
        !self.lost.load(Ordering::Acquire)
    }
}

/// Sleeps for a while; one that a signal ends was long enough.
fn pause(time: Duration) {
    let time = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    let _ = rustix::thread::nanosleep(&time);
}
