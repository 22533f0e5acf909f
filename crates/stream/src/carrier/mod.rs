//! A carrier: the two rings of a promoted stream, or its link over a VI, and the notes by which its ends agree where the bytes go.
//!
//! The *writer's notes* announce switches: from this position of the stream on, bytes take that path. One note is for
//! switches to the ring, which have odd numbers, one for those to TCP, which have even ones. The *reader's note* says
//! whether the direction is open, and which switch it has carried out. A writer goes to the ring only when everything
//! before has been carried out, and leaves it at any time; so at most two switches are on the way, one in each note, and
//! the reader needs no list: it drains the old path up to the position, and goes on with the new one.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, Ordering, fence},
    },
    time::Duration,
};

use rustix::thread::Timespec;
use sidestep_fabric::{Endpoint, Node, Tripwire, queue::Monitor};
use sidestep_shm::Word64;
use sidestep_sys::clock;

mod ends;
mod host;
mod notes;
pub mod via;

pub use ends::{Fault, Incoming, Mode, Outgoing};
pub use host::Host;
pub use notes::{ENDED, Reading, Switch};

use via::Link;

/// What both directions and every waiter of a promoted stream share.
#[derive(Debug)]
pub struct Carrier {
    /// No other carrier of this process has, had or will have it.
    pub serial: u64,
    /// Where waits for it sleep.
    node: Node,
    /// What carries. Dropping it ends the carrier, not the stream.
    pub way: Way,
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
    /// The process at the other end.
    pub peer: OnceLock<Peer>,
    /// The connection on the fabric has ended.
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

/// What carries a stream.
#[derive(Debug)]
pub enum Way {
    /// Rings: the connection on the fabric, and the words that the peer writes.
    Ring(Endpoint, Monitor),
    /// A link over a VI.
    Via(Arc<Link>),
}

/// A carrier with the two ends of its rings, on the way to the directions of its stream.
#[derive(Debug)]
pub struct Parts {
    /// Shared.
    pub carrier: Arc<Carrier>,
    /// For the writer.
    pub sender: Option<Outgoing>,
    /// For the reader.
    pub receiver: Option<Incoming>,
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
    pub fn new(node: &Node, way: Way, capacity: u64) -> Carrier {
        Carrier {
            serial: Carrier::next_serial(),
            node: node.clone(),
            way,
            taken: AtomicU64::new(0),
            pushed: AtomicU64::new(0),
            places: Default::default(),
            switched: AtomicU8::new(0),
            kept: AtomicU64::new(0),
            capacity: AtomicU64::new(capacity),
            peer: OnceLock::new(),
            lost: AtomicBool::new(false),
            lost_since: AtomicU64::new(0),
        }
    }

    /// The node whose news ends waits for it.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The connection of rings.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match &self.way {
            Way::Ring(endpoint, _) => Some(endpoint),
            Way::Via(_) => None,
        }
    }

    /// The link, if it is one.
    pub fn link(&self) -> Option<&Arc<Link>> {
        match &self.way {
            Way::Ring(..) => None,
            Way::Via(link) => Some(link),
        }
    }

    /// What fires when something arrives, and when there is space, if this stream has tripwires of its own.
    pub fn tripwires(&self) -> Option<[&Tripwire; 2]> {
        match &self.way {
            Way::Ring(_, monitor) => Some([monitor.arrival(), monitor.space()]),
            Way::Via(_) => None,
        }
    }

    /// How far the peer has written; to compare with an earlier answer.
    #[inline]
    pub fn written(&self) -> u64 {
        match &self.way {
            Way::Ring(_, monitor) => monitor.written(),
            Way::Via(link) => link.written(),
        }
    }

    /// How far the peer has read; to compare with an earlier answer.
    #[inline]
    pub fn read(&self) -> u64 {
        match &self.way {
            Way::Ring(_, monitor) => monitor.read(),
            Way::Via(link) => link.read(),
        }
    }

    /// Where the peer last ran.
    #[inline]
    pub fn peer_core(&self) -> u32 {
        match &self.way {
            Way::Ring(_, monitor) => monitor.peer_core(),
            Way::Via(link) => link.peer_core(),
        }
    }

    #[inline]
    fn sender_note(&self, which: usize) -> u64 {
        match &self.way {
            Way::Ring(_, monitor) => monitor.sender_note(which),
            Way::Via(link) => link.writer_note(which),
        }
    }

    #[inline]
    fn receiver_note(&self) -> u64 {
        match &self.way {
            Way::Ring(_, monitor) => monitor.receiver_note(),
            Way::Via(link) => {
                link.absorb();
                link.reader_note()
            }
        }
    }

    /// What tells that the peer's reader moves; to compare with an earlier answer.
    #[inline]
    pub fn said(&self) -> (u64, u64) {
        match &self.way {
            Way::Ring(_, monitor) => (monitor.read(), 0),
            Way::Via(link) => (link.read(), link.reader_note()),
        }
    }

    /// Of what the peer's reader has [`said`](Self::said): how far it has come, and by how much one moves that is at work. The
    /// reader of a link tells each half of a window then; fewer packets may be told late by a timer, long after they were read.
    #[inline]
    pub fn progress(&self, said: (u64, u64)) -> (u64, u64) {
        match &self.way {
            Way::Ring(..) => (said.0, 1),
            Way::Via(link) => (u64::from(link.acknowledged()), u64::from(link.options().window / 2)),
        }
    }

    /// From now on what arrives is news of the node; look again after this.
    #[inline]
    pub fn arm_arrival(&self) {
        match &self.way {
            Way::Ring(_, monitor) => monitor.arrival().arm(),
            Way::Via(link) => link.arm(),
        }
    }

    /// The same for space.
    #[inline]
    pub fn arm_space(&self) {
        match &self.way {
            Way::Ring(_, monitor) => monitor.space().arm(),
            Way::Via(link) => link.arm(),
        }
    }

    /// The last thing before a sleep, when it has been announced: what other threads are about to take is taken.
    #[inline]
    pub fn settle(&self) {
        if let Way::Via(link) = &self.way {
            link.settle();
        }
    }

    /// After the anchor has ended: the peer's word for it comes before the kernel's, but over a wire it may arrive later. It is
    /// waited for until the link is over, too.
    pub fn settle_end(&self) {
        self.settle();
        if !self.is_distant() {
            return;
        }
        let until = clock::now() + WORD_NS;
        while !self.has_ended() && self.check() && clock::now() < until {
            pause(LOOK);
            self.settle();
        }
    }

    /// Since when a carrier that is lost has been known to be.
    pub fn lost_since(&self) -> u64 {
        let now = clock::now();
        self.lost_since
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed)
            .map_or_else(|since| since, |_| now)
    }

    /// Whether what was sent may be on its way for a while: the peer's memory is not mapped.
    pub fn is_distant(&self) -> bool {
        self.link().is_some_and(|link| link.is_distant())
    }

    /// Waits until everything that was sent lies in memory of the peer, or the time is over.
    pub fn deliver(&self, until: u64) {
        let (Some(link), mut mark) = (self.link(), None) else { return };
        while !link.has_arrived(&mut mark) && link.check() && clock::now() < until {
            pause(LOOK);
        }
    }

    /// Wakes the peer, and says nothing.
    pub fn nudge(&self) {
        match &self.way {
            Way::Ring(endpoint, _) => drop(endpoint.post(&[])),
            Way::Via(link) => link.nudge(),
        }
    }

    /// TCP_NODELAY: small writes are not combined.
    pub fn set_prompt(&self, prompt: bool) {
        if let Way::Via(link) = &self.way {
            link.set_prompt(prompt);
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
        let bytes = self.written().wrapping_sub(self.taken.load(Ordering::Relaxed));
        let enough = bytes >= u64::from(wanted.max(1));
        if !enough && let Way::Via(link) = &self.way {
            link.found_nothing();
        }
        enough
    }

    /// Bytes in flight to the peer, as far as is known.
    pub fn in_flight(&self) -> u64 {
        let read = self.read() & !(1 << 63);
        self.pushed.load(Ordering::Relaxed).saturating_sub(read)
    }

    /// How much of the peer's ring has been filled since the beginning, in bytes; of a link in packets, which fill it.
    pub fn filled(&self) -> u64 {
        match &self.way {
            Way::Ring(..) => self.pushed.load(Ordering::Relaxed),
            Way::Via(link) => u64::from(link.packets()),
        }
    }

    /// So much is filled after a reader moved that was at work: half a ring. The reader of a link tells what it took when that
    /// is half of the window; one that has told nothing of three quarters takes nothing. What the window has room for, and the
    /// way to the peer has not, says nothing.
    pub fn much(&self) -> u64 {
        match &self.way {
            Way::Ring(..) => self.capacity.load(Ordering::Relaxed) / 2,
            Way::Via(link) if link.has_credit() => 0,
            Way::Via(link) => u64::from(link.options().window) * 3 / 4,
        }
    }

    /// Whether enough space is free that a writer should be told.
    #[inline]
    pub fn has_space(&self) -> bool {
        if let Way::Via(link) = &self.way {
            return link.has_space();
        }
        let capacity = self.capacity.load(Ordering::Relaxed);
        self.in_flight() <= capacity - capacity / 4
    }

    /// The switch after number `done`, if the peer's writer has announced it.
    #[inline]
    pub fn announced(&self, done: u8) -> Option<Switch> {
        let next = Switch::next_number(done);
        let switch = Switch::from_note(self.sender_note(Switch::note(next)));
        (switch.number == next).then_some(switch)
    }

    /// Whether a switch has been announced that was not carried out.
    #[inline]
    pub fn is_switching(&self) -> bool {
        self.announced(self.switched.load(Ordering::Relaxed)).is_some()
    }

    /// Whether the peer says that it writes no more.
    #[inline]
    pub fn has_ended(&self) -> bool {
        (self.sender_note(0) | self.sender_note(1)) & ENDED != 0
    }

    /// What the peer's reader says.
    #[inline]
    pub fn peer_reading(&self) -> Reading {
        Reading::from_note(self.receiver_note())
    }

    /// Sees to what has come for this process, and whether the connection on the fabric stands.
    #[cold]
    pub fn check(&self) -> bool {
        self.node().progress_kernel();
        let stands = match &self.way {
            Way::Ring(endpoint, _) => endpoint.is_connected().is_ok(),
            Way::Via(link) => link.check(),
        };
        if !stands {
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
