//! Trunks: what two processes share to carry the entries of all their connections.
//!
//! One queue of the fabric in each direction, however many VIs are connected over it. So whoever polls looks at one word
//! for all of them, and a message touches no memory that belongs to one connection alone but the VI's own. Whoever polls
//! takes what is there, for all VIs; what cannot be sent at once is gone on with by whoever polls next.
//!
//! Locks are taken in this order, and any may be left out: `inward`, a VI, `outward`.

mod inward;
mod outward;
mod trunks;

pub(crate) use self::{inward::Source, outward::Outward, trunks::Trunks};

use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering},
};

use sidestep_fabric::{
    Aperture, ChannelOptions, Endpoint, Node, PeerId,
    channel::{Half, Joining},
    queue::{Monitor, QueueSpec},
};

use sidestep_shm::attach::{Attachment, Gate};
use sidestep_sys::{
    cpu,
    lock::{Guard, Lock, Mutex, MutexGuard, Threads},
};

use self::inward::Inward;
use crate::{
    cq::Queue,
    descriptor::Completion,
    entry::Attached,
    error::{Error, Result},
    vi::{ViCore, state::Loss},
};

/// What carries the connections with one peer.
#[derive(Debug)]
pub(crate) struct Trunk {
    monitor: Monitor,
    /// How far it has been taken, and where that is.
    seen: AtomicU64,
    next: AtomicPtr<u8>,
    /// Whether something waits to be sent.
    busy: AtomicBool,
    /// Whether the program has polled since the service thread last looked.
    touched: AtomicBool,
    idle: AtomicU32,
    inward: Lock<Inward>,
    outward: Lock<Outward>,
    windows: Mutex<Vec<Option<Window>>>,
    graves: Graves,
    /// Who wants to be woken when something arrives.
    wanted: Mutex<Wanted>,
    join: Join,
    kernel: Kernel,
    node: Node,
    pub(crate) peer: PeerId,
}

/// A region of the peer that receives or RDMA targets lie in.
#[derive(Debug, Clone)]
pub(crate) enum Window {
    /// Memory that its library allocated.
    Mapped(Aperture),
    /// Memory of its program, through the kernel.
    Attached(Attached),
}

/// The numbers of connections that have gone, to be given back.
#[derive(Debug, Default)]
struct Graves {
    any: AtomicBool,
    numbers: Mutex<Vec<u32>>,
}

/// The two sides of a trunk.
#[derive(Debug)]
struct Join {
    half: Half,
    /// The peer's, once it is known.
    joined: OnceLock<Joining>,
    /// Held while it becomes known.
    joining: Mutex<()>,
}

/// Where the peer copies through the kernel, and where this side does.
#[derive(Debug)]
struct Kernel {
    gate: Option<Arc<Gate>>,
    attachment: OnceLock<Arc<Attachment>>,
}

#[derive(Debug, Default)]
struct Wanted {
    /// Threads that sleep, or are about to.
    sleepers: u32,
    /// Descriptors that programs sleep on.
    descriptors: u32,
}

/// A connection's number on its trunk. Dropping it gives the number back.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) trunk: Arc<Trunk>,
    pub(crate) number: u32,
    /// The peer's note when it was made, before the peer could tell of anything on this connection: its lower half, which
    /// finds room beside the number. Another note means only that the peer tells again.
    pub(crate) note: u32,
}

/// The ring a trunk begins with.
const FIRST_RING: usize = 32 << 10;
/// The ring it gets when a large message has to be carried in it.
const LARGE_RING: usize = 512 << 10;
/// Looks that found nothing before the process sees to other things.
const BREATH: u32 = 512;
/// Regions of one peer that it can tell of.
const MAX_WINDOWS: usize = 16 << 10;

impl Trunk {
    /// This side of the trunk to a peer.
    fn new(node: &Node, peer: PeerId, threads: Threads) -> sidestep_fabric::Result<Trunk> {
        let half = Half::new(node, peer, ChannelOptions { capacity: FIRST_RING, ..ChannelOptions::default() })?;
        Ok(Trunk {
            monitor: half.monitor(node)?,
            seen: AtomicU64::new(0),
            next: AtomicPtr::default(),
            busy: AtomicBool::new(false),
            touched: AtomicBool::new(false),
            idle: AtomicU32::new(0),
            inward: Lock::within(threads, Inward::default()),
            outward: Lock::within(threads, Outward::default()),
            windows: Mutex::default(),
            graves: Graves::default(),
            wanted: Mutex::default(),
            join: Join { half, joined: OnceLock::new(), joining: Mutex::default() },
            kernel: Kernel { gate: node.peer(peer).gate(), attachment: OnceLock::new() },
            node: node.clone(),
            peer,
        })
    }

    /// What the peer must know to send here.
    pub(crate) fn spec(&self) -> QueueSpec {
        self.join.half.spec()
    }

    /// Joins this side with the peer's, which every connection names; the first one does it.
    pub(crate) fn join(
        &self,
        endpoint: &Endpoint,
        theirs: &QueueSpec,
        deadline: Option<u64>,
    ) -> sidestep_fabric::Result<()> {
        let _joining = self.join.joining.lock().expect("no panic while joining");
        if let Some(joined) = self.join.joined.get() {
            let other = sidestep_fabric::CloseReason::Violation("another trunk than the one that stands");
            return if joined.theirs() == theirs { Ok(()) } else { Err(sidestep_fabric::Error::Closed(other)) };
        }
        let joining = Joining::begin(endpoint, theirs)?;
        joining.wait(deadline)?;
        let (sender, receiver) = self.join.half.finish(endpoint, &joining)?;
        self.inward().attach(receiver);
        self.outward().attach(sender);
        if let Some(attachment) = self.node.peer(self.peer).attachment() {
            let _ = self.kernel.attachment.set(attachment);
        }
        let _ = self.join.joined.set(joining);
        Ok(())
    }

    /// A number for a connection of this VI.
    pub(crate) fn route(self: &Arc<Self>, vi: &Weak<ViCore>) -> Result<Route> {
        let mut inward = self.inward();
        self.bury(&mut inward);
        let number =
            inward.insert(vi.clone()).ok_or(Error::Limit { what: "connections with one peer", limit: 4096 })?;
        Ok(Route { trunk: self.clone(), number, note: self.peer_note() as u32 })
    }

    /// The VI of a connection knows of it: what came before is taken now.
    pub(crate) fn open(&self, number: u32) {
        self.inward().open(number);
        self.poll(true);
    }

    /// Whether there may be something to take, or to go on with.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.has_arrivals() || self.busy.load(Ordering::Relaxed)
    }

    #[inline]
    fn has_arrivals(&self) -> bool {
        // Where the next entry will be is watched along with the word that tells of it: when the peer writes both, both are
        // on their way here at once, and not the entry only after the word.
        cpu::prefetch(self.next.load(Ordering::Relaxed), 1);
        self.monitor.written() != self.seen.load(Ordering::Relaxed)
    }

    /// Bytes that have arrived and not been taken.
    #[inline]
    pub(crate) fn arrived(&self) -> u64 {
        self.monitor.written().wrapping_sub(self.seen.load(Ordering::Relaxed))
    }

    /// Where the peer last ran.
    pub(crate) fn peer_core(&self) -> u32 {
        self.monitor.peer_core()
    }

    /// The program looks after this trunk itself.
    #[inline]
    pub(crate) fn touch(&self) {
        self.touched.store(true, Ordering::Relaxed);
    }

    /// Whether nobody has polled since the last time this was asked, and nobody sleeps on it.
    pub(crate) fn is_neglected(&self) -> bool {
        !self.touched.swap(false, Ordering::Relaxed) && self.wanted().sleepers == 0
    }

    /// Counts a look that found nothing. `true` now and then: see to other things.
    #[inline]
    pub(crate) fn is_breath_due(&self) -> bool {
        let idle = self.idle.load(Ordering::Relaxed) + 1;
        self.idle.store(if idle < BREATH { idle } else { 0 }, Ordering::Relaxed);
        idle >= BREATH
    }

    /// Takes what has arrived, and goes on with what waits. Another thread may be at it, which `wait` waits for.
    #[inline]
    pub(crate) fn poll(&self, wait: bool) {
        self.take(wait, None);
        if self.busy.load(Ordering::Relaxed) {
            self.go_on();
        }
    }

    /// As `poll`, and returns the completion of that VI's queue as soon as there is one.
    #[inline]
    pub(crate) fn poll_for(&self, vi: &ViCore, queue: Queue) -> Option<Completion> {
        let completion = self.take(false, Some((vi, Some(queue))));
        if completion.is_none() && self.busy.load(Ordering::Relaxed) {
            self.go_on();
        }
        completion
    }

    /// As `poll`, for a VI that is at hand; what is for others is taken too.
    #[inline]
    pub(crate) fn poll_beside(&self, vi: &ViCore) {
        self.take(false, Some((vi, None)));
        if self.busy.load(Ordering::Relaxed) {
            self.go_on();
        }
    }

    #[inline]
    fn take(&self, wait: bool, wanted: Option<(&ViCore, Option<Queue>)>) -> Option<Completion> {
        if !self.has_arrivals() && !wait {
            return None;
        }
        let mut inward = match self.inward.try_lock() {
            Some(inward) => inward,
            None if wait => self.inward.lock(),
            None => return None,
        };
        if self.graves.any.load(Ordering::Relaxed) {
            self.bury(&mut inward);
        }
        let before = self.monitor.written();
        let mut found = None;
        let taken = inward.drain(self, wanted, &mut found);
        self.seen.store(inward.position().unwrap_or(before), Ordering::Relaxed);
        self.next.store(inward.next_place().cast_mut(), Ordering::Relaxed);
        if inward.is_owing() {
            self.set_busy();
        }
        if let Err(what) = taken {
            let lines = inward.lines();
            drop(inward);
            self.break_off(what, lines);
        }
        found
    }

    /// The peer broke the protocol: all its connections end, and the session with it.
    #[cold]
    fn break_off(&self, what: &'static str, lines: Vec<Arc<ViCore>>) {
        let reason = sidestep_fabric::CloseReason::Violation(what);
        self.node.peer(self.peer).close(reason);
        lines.iter().for_each(|vi| vi.lose(Loss::BROKEN));
    }

    /// Goes on with what waits for room.
    #[cold]
    fn go_on(&self) {
        // Before the looks: who sets it behind one of them is not overruled.
        self.busy.store(false, Ordering::Relaxed);
        // Who has the lock may owe a head, and may have set the word before this call cleared it.
        let owes_head = self.inward.try_lock().is_none_or(|mut inward| {
            inward.tell_again();
            inward.is_owing()
        });
        let (waiting, owes) = {
            let mut outward = self.outward();
            outward.flush();
            (outward.take_waiting(), outward.is_owing())
        };
        if owes_head || owes {
            self.set_busy();
        }
        for vi in waiting.iter().filter_map(Weak::upgrade) {
            vi.go_on();
        }
    }

    /// What can be sent on. The caller may hold the lock of one VI.
    #[inline]
    pub(crate) fn outward(&self) -> Guard<'_, Outward> {
        self.outward.lock()
    }

    /// Something waits for room, or for an answer that only polling shows.
    pub(crate) fn set_busy(&self) {
        self.busy.store(true, Ordering::Relaxed);
    }

    fn inward(&self) -> Guard<'_, Inward> {
        self.inward.lock()
    }

    fn bury(&self, inward: &mut Inward) {
        self.graves.any.store(false, Ordering::Relaxed);
        let graves = std::mem::take(&mut *self.graves.numbers.lock().expect("no panic with graves"));
        graves.into_iter().for_each(|number| inward.remove(number));
    }

    /// A region of the peer that it has announced, if it is open.
    pub(crate) fn window(&self, number: u32) -> Option<Window> {
        let window = self.windows.lock().expect("no panic with windows").get(number as usize)?.clone()?;
        let Window::Mapped(aperture) = &window else { return Some(window) };
        if aperture.is_open() == Ok(false) {
            // What goes another way meanwhile takes longer than a look for the answer.
            self.node.progress_kernel();
        }
        (aperture.is_open() == Ok(true)).then_some(window)
    }

    /// Where the peer reaches memory of the program, if it may.
    pub(crate) fn gate(&self) -> Option<&Arc<Gate>> {
        self.kernel.gate.as_ref()
    }

    /// Where this side reaches memory of the peer's program, if it can.
    pub(crate) fn attachment(&self) -> Option<&Arc<Attachment>> {
        self.kernel.attachment.get()
    }

    /// How often the peer has withdrawn memory.
    pub(crate) fn peer_note(&self) -> u64 {
        self.monitor.sender_note(0)
    }

    fn add_window(&self, number: u32, window: Option<Window>) -> Result<(), &'static str> {
        let mut windows = self.windows.lock().expect("no panic with windows");
        for old in windows.iter_mut() {
            // Of a connection that has ended: its pages are given back.
            if matches!(old, Some(Window::Mapped(aperture)) if aperture.is_open().is_err()) {
                *old = None;
            }
        }
        if number as usize != windows.len() || windows.len() >= MAX_WINDOWS {
            return Err("a window out of turn");
        }
        windows.push(window);
        Ok(())
    }

    /// Opens a region whose number was taken when it was announced, before its connection was known.
    fn open_window(&self, number: u32, window: Option<Window>) -> Result<(), &'static str> {
        let mut windows = self.windows.lock().expect("no panic with windows");
        *windows.get_mut(number as usize).ok_or("a window out of turn")? = window;
        Ok(())
    }

    /// Whether the peer is there.
    fn is_alive(&self) -> bool {
        self.join.joined.get().is_none_or(|joined| joined.poll().is_ok())
    }

    /// Whether the peer's side is known.
    fn is_joined(&self) -> bool {
        self.join.joined.get().is_some()
    }

    /// Counts a thread in that is about to sleep until something arrives.
    pub(crate) fn enter_sleep(&self) {
        self.wanted().sleepers += 1;
    }

    /// From now on the next arrival, and the next room, wakes. Look again after this.
    pub(crate) fn arm(&self) {
        self.monitor.arrival().arm();
        self.monitor.space().arm();
    }

    /// Counts it out; the last one leaves plain stores to the peer.
    pub(crate) fn leave_sleep(&self) {
        let mut wanted = self.wanted();
        wanted.sleepers -= 1;
        self.settle_wanted(wanted);
    }

    /// A descriptor is to tell of arrivals, until `unwatch`. Whoever takes an arrival rings it for what it completes.
    pub(crate) fn watch(&self) {
        self.wanted().descriptors += 1;
    }

    pub(crate) fn unwatch(&self) {
        let mut wanted = self.wanted();
        wanted.descriptors -= 1;
        self.settle_wanted(wanted);
    }

    fn settle_wanted(&self, wanted: MutexGuard<'_, Wanted>) {
        match *wanted {
            Wanted { sleepers: 0, descriptors: 0 } => {
                self.monitor.arrival().disarm();
                self.monitor.space().disarm();
            }
            Wanted { sleepers: 0, .. } => {
                // The last firing was for who slept; the next is for the descriptor.
                drop(wanted);
                self.arm();
                self.poll(true);
            }
            _ => {}
        }
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().expect("no panic with sleepers")
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.trunk.graves.numbers.lock().expect("no panic with graves").push(self.number);
        self.trunk.graves.any.store(true, Ordering::Relaxed);
    }
}
