//! A list of descriptors, sorted by who knows of them: rings, or the kernel.

use std::{
    cell::{Cell, RefCell},
    mem::ManuallyDrop,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sidestep_shm::wait::{Waiter, nearest_core};
use sidestep_stream::carrier::{Carrier, Watch};
use sidestep_sys::{clock, cpu};

use super::Others;
use crate::{
    config::config,
    descriptors::table,
    kernel::{
        self, Errno, KeptList, Result,
        thread_end::{self, Kept},
    },
    readiness::{
        Here, IN, OUT, bytes_here,
        jump::{self, Note, What},
        look_again, ring_events,
    },
    streams::{READ, Stream, WRITE},
};

/// One entry that has a ring.
pub struct Ringed {
    pub at: usize,
    pub stream: &'static Stream,
    pub carrier: Arc<Carrier>,
}

/// A list, sorted. Kept by its thread for the next call.
#[derive(Default)]
pub struct List {
    pub ringed: Vec<Ringed>,
    /// Streams that have none: counted as in the kernel while this call sleeps.
    pub plain: Vec<&'static Stream>,
    /// Entries for which the family shares bytes.
    pub inherited: Vec<usize>,
    /// There are entries for which it shares too few.
    pub scarce: bool,
    /// For the kernel: the first entry is the node's, the others stand as in the program's list.
    pub fds: Vec<libc::pollfd>,
    /// The same, where the kernel finds it while the call sleeps.
    words: Vec<AtomicU64>,
}

/// A list that its thread keeps while the call sleeps.
#[derive(Debug, Clone, Copy)]
pub struct Bed {
    note: Note,
    number: u64,
    /// Where the kernel finds it.
    pub words: KeptList,
}

thread_local! {
    static SPARE: ManuallyDrop<RefCell<Vec<List>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
    /// Lists of calls that sleep, by number, and the last number.
    static ASLEEP: ManuallyDrop<RefCell<Vec<(u64, List)>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
    static LAST: Cell<u64> = const { Cell::new(0) };
    static LOOKED: Cell<u64> = const { Cell::new(0) };
    static TOLD_ALL: Cell<u32> = const { Cell::new(0) };
    /// The last list of which the kernel was asked, and what the peers had told it before.
    static ASKED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    static WAITER: RefCell<Option<Waiter>> = const { RefCell::new(None) };
}

/// Ticks between two looks at the kernel's descriptors while rings are busy: some 20 microseconds.
pub const LOOK_TICKS: u64 = 50_000;

/// Calls whose rings say all that was asked for, of which one looks at the kernel.
const REST_CALLS: u32 = 16;

/// How long an error without a hang-up, or a hang-up without an end, is looked at before it is taken for all there is: longer
/// than a processor is mostly kept from the rest of its work.
const HALF_TOLD_NS: u64 = 2_000_000;

/// After so many questions rings with news are kept waiting no longer: peers may tell the kernel something all the time.
const MOST_HELD: u32 = 16;

/// A time that is over.
const AT_ONCE: u64 = 0;

impl List {
    pub fn of(fds: &[libc::pollfd]) -> List {
        let none = libc::pollfd { fd: -1, events: 0, revents: 0 };
        let mut list = SPARE.with(|spare| spare.borrow_mut().pop()).unwrap_or_default();
        list.scarce = false;
        list.fds.clear();
        list.fds.resize(fds.len() + 1, none);
        for (at, entry) in fds.iter().enumerate() {
            list.fds[at + 1] = libc::pollfd { revents: 0, ..*entry };
            if entry.fd < 0 {
                continue;
            }
            if let Some(set) = table::set(entry.fd) {
                set.export();
            }
            let Some(stream) = table::stream(entry.fd) else { continue };
            match stream.carrier() {
                Some(carrier) => {
                    // First: what the kernel is asked depends on the paths.
                    stream.keep_up(&carrier);
                    let ringed = Ringed { at, stream, carrier };
                    list.fds[at + 1].events = ringed.kernel_events(entry.events);
                    list.ringed.push(ringed);
                }
                None => {
                    match bytes_here(stream) {
                        Here::Enough if entry.events & IN != 0 => list.inherited.push(at),
                        Here::TooFew => list.scarce = true,
                        _ => {}
                    }
                    list.plain.push(stream)
                }
            }
        }
        list
    }

    /// Adds entries that the kernel knows nothing of; returns how many there are then.
    pub fn add_inherited(&self, fds: &mut [libc::pollfd], count: usize) -> usize {
        let mut more = 0;
        for at in &self.inherited {
            let entry = &mut fds[*at];
            more += usize::from(entry.revents == 0);
            entry.revents |= entry.events & IN;
        }
        count + more
    }

    /// Whether a full ring, whose reader does not move, has given way to TCP: the kernel must be asked about that one then.
    /// Sleeps see to it by themselves; a program that finds other news each time does not sleep.
    pub fn gives_way(&self, fds: &[libc::pollfd]) -> bool {
        self.ringed.iter().any(|ringed| ringed.look_again(fds[ringed.at].events) == Some(AT_ONCE))
    }

    pub fn rings_ready(&self, fds: &[libc::pollfd]) -> bool {
        !self.inherited.is_empty() || self.ringed.iter().any(|ringed| ringed.events(fds[ringed.at].events) != 0)
    }

    /// Whether the kernel must be asked before anything is reported: a direction is on TCP or about to change, or an end
    /// is near.
    pub fn needs_kernel(&self, fds: &[libc::pollfd], others: Others) -> bool {
        if others == Others::Always && self.ringed.len() < fds.len() {
            return true;
        }
        self.ringed.iter().any(|ringed| {
            let events = fds[ringed.at].events;
            let [reads, writes] = [READ, WRITE].map(|way| ringed.stream.on_ring(way));
            events & IN != 0 && !reads
                || events & OUT != 0 && !writes
                || ringed.stream.ends.is_shut.load(Ordering::Relaxed)
                || ringed.carrier.has_ended()
                || ringed.carrier.may_leave()
        })
    }

    /// Whether the kernel is asked though rings have news: now and then, and less often if they say all that was asked for, so
    /// that it could add an end of which there is no word.
    pub fn is_due(&self, fds: &[libc::pollfd]) -> bool {
        let says_all = |ringed: &Ringed| ringed.events(fds[ringed.at].events) == fds[ringed.at].events;
        let all = self.ringed.len() == fds.len() && self.ringed.iter().all(says_all);
        let rested = TOLD_ALL.with(|calls| calls.replace(if all { calls.get().wrapping_add(1) } else { 0 }));
        (!all || rested % REST_CALLS == REST_CALLS - 1) && looks_again()
    }

    /// This list, and how far the peers of its rings have come with what they tell by way of the kernel (`readiness/set/order.rs`).
    fn order(&self) -> (u64, u64) {
        let mix = |hash: u64, entry: &libc::pollfd| {
            (hash ^ (entry.fd as u64) << 16 ^ entry.events as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let news = self.ringed.iter().fold(0, |sum: u64, ringed| sum.wrapping_add(ringed.carrier.kernel_news()));
        (self.fds[1..].iter().fold(1, mix), news)
    }

    /// Whether a peer may have told something of other entries before it wrote to a ring, and the kernel was not asked since.
    pub fn is_behind(&self) -> bool {
        let alone = self.ringed.len() + 1 == self.fds.len();
        !alone && ASKED.with(Cell::get) != self.order()
    }

    /// The kernel is about to be asked.
    fn asks_kernel(&self) {
        if self.ringed.len() + 1 < self.fds.len() {
            ASKED.with(|asked| asked.set(self.order()));
        }
    }

    pub fn look_at_kernel(&mut self) -> Result<()> {
        self.asks_kernel();
        self.fds[0].fd = -1;
        let mut until = None;
        loop {
            match kernel::poll(&mut self.fds, Some(Duration::ZERO), None) {
                Ok(_) | Err(Errno(libc::EINTR)) => {}
                Err(errno) => return Err(errno),
            }
            // The kernel stores the error of a reset first, the hang-up then, and the end of both directions last; only who
            // looks without sleeping sees that.
            let half = |entry: &libc::pollfd| {
                let ends = entry.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLRDHUP);
                ends == libc::POLLERR || ends & libc::POLLHUP != 0 && entry.events & !ends & libc::POLLRDHUP != 0
            };
            if !self.fds.iter().any(|entry| half(entry) && table::stream(entry.fd).is_some()) {
                return Ok(());
            }
            let now = clock::now();
            if now > *until.get_or_insert(now + HALF_TOLD_NS) {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }

    /// Looks for a while: at rings all the time, at the kernel now and then.
    pub fn look_longer(&mut self, fds: &[libc::pollfd], deadline: Option<u64>) -> Result<bool> {
        let List { ringed, fds: kernel_fds, .. } = self;
        let mut looked = cpu::ticks();
        let core = || nearest_core(ringed.iter().map(|ringed| ringed.carrier.watch().peer_core()));
        let found = WAITER.with_borrow_mut(|waiter| {
            waiter.get_or_insert_with(|| Waiter::with(config().patience)).look(deadline, core, || {
                if ringed.iter().any(|ringed| ringed.events(fds[ringed.at].events) != 0) {
                    return true;
                }
                let now = cpu::ticks();
                if now.wrapping_sub(looked) < LOOK_TICKS {
                    return false;
                }
                looked = now;
                kernel_fds[0].fd = -1;
                kernel::poll(kernel_fds, Some(Duration::ZERO), None).is_ok_and(|count| count > 0)
            })
        });
        Ok(found)
    }

    pub fn arm(&self, fds: &[libc::pollfd]) {
        for ringed in &self.ringed {
            let events = fds[ringed.at].events;
            if events & libc::POLLIN != 0 {
                ringed.carrier.watch().arm_arrival();
            }
            if events & libc::POLLOUT != 0 && ringed.stream.on_ring(WRITE) {
                ringed.carrier.watch().arm_space();
            }
        }
    }

    /// Writes what is known into the program's list; returns how many entries have something. Rings that have come since the kernel
    /// was asked may have come after what it has now.
    pub fn report_in_order(&mut self, fds: &mut [libc::pollfd]) -> Result<usize> {
        for _ in 0..MOST_HELD {
            let count = self.report(fds);
            let by_ring = |ringed: &Ringed| fds[ringed.at].revents & !self.fds[ringed.at + 1].revents != 0;
            if !self.ringed.iter().any(by_ring) || !self.is_behind() {
                return Ok(count);
            }
            self.look_at_kernel()?;
        }
        Ok(self.report(fds))
    }

    fn report(&mut self, fds: &mut [libc::pollfd]) -> usize {
        for ringed in &self.ringed {
            let entry = &mut self.fds[ringed.at + 1];
            if entry.revents & libc::POLLRDHUP != 0 && !ringed.stream.ends.is_shut.swap(true, Ordering::Relaxed) {
                ringed.stream.notice_end(&ringed.carrier);
                entry.revents |= kernel::look(entry.fd, entry.events);
            }
        }
        for ringed in &self.ringed {
            ringed.stream.tells(self.fds[ringed.at + 1].revents);
        }
        for (at, entry) in fds.iter_mut().enumerate() {
            let asked = entry.events | libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
            entry.revents = self.fds[at + 1].revents & asked;
        }
        for ringed in &self.ringed {
            let entry = &mut fds[ringed.at];
            entry.revents |= ringed.events(entry.events);
        }
        self.add_inherited(fds, 0);
        fds.iter().filter(|entry| entry.revents != 0).count()
    }

    /// Before a sleep, which a handler may leave by a jump: the thread keeps the list meanwhile. With the entry that stands for the
    /// node, if the list is what the call sleeps on. Inside.
    pub fn lie_down(mut self, first: Option<libc::pollfd>) -> Bed {
        self.words.clear();
        if let Some(first) = first {
            let others = self.fds.iter().skip(1).map(|entry| libc::pollfd { revents: 0, ..*entry });
            self.words.extend([first].into_iter().chain(others).map(|entry| AtomicU64::new(kernel::to_word(entry))));
        }
        let words = KeptList::of(&self.words);
        let number = LAST.get() + 1;
        LAST.set(number);
        thread_end::note(Kept::Lists, give_back);
        ASLEEP.with(|asleep| asleep.borrow_mut().push((number, self)));
        Bed { note: jump::note(What::List(number)), number, words }
    }

    /// After it, with what the kernel has found. `None`: the call was left, and goes on all the same. Inside.
    pub fn get_up(bed: Bed) -> Option<List> {
        jump::strike(bed.note);
        let mut list = take(bed.number)?;
        for (at, entry) in list.fds.iter_mut().enumerate() {
            entry.revents = list.words.get(at).map_or(0, |word| kernel::found_in(word.load(Ordering::Relaxed)));
        }
        Some(list)
    }

    /// Keeps the memory of a list for the next call.
    pub fn put_by(mut self) {
        self.ringed.clear();
        self.plain.clear();
        self.inherited.clear();
        thread_end::note(Kept::Lists, give_back);
        // One for each call that a handler makes in the middle of another.
        SPARE.with(|spare| spare.borrow_mut().push(self));
    }
}

/// The list that the thread keeps under this number.
fn take(number: u64) -> Option<List> {
    ASLEEP.with(|asleep| {
        let mut asleep = asleep.borrow_mut();
        let at = asleep.iter().rposition(|(other, _)| *other == number)?;
        Some(asleep.remove(at).1)
    })
}

/// The call that sleeps with this list was left by a jump.
pub fn forget(number: u64) {
    if let Some(list) = take(number) {
        list.put_by();
    }
}

impl Ringed {
    /// What the rings say, of the events asked for.
    #[inline]
    pub fn events(&self, asked: i16) -> i16 {
        ring_events(self.stream, &self.carrier) & asked
    }

    /// When a wait must look again at the latest.
    pub fn look_again(&self, asked: i16) -> Option<u64> {
        let on_ring = || self.stream.on_ring(WRITE);
        let before = on_ring();
        let until = look_again(self.stream, &self.carrier, asked);
        // The kernel has not been asked about space that TCP has: it is, at once.
        if before && !on_ring() { Some(AT_ONCE) } else { until }
    }

    /// What the kernel is asked in its stead: the end of the stream always shows at the anchor.
    fn kernel_events(&self, asked: i16) -> i16 {
        let asked = if self.stream.on_ring(WRITE) { asked & !OUT } else { asked };
        // An end without the peer's word wants a closer look, once.
        let watched = !self.carrier.has_ended() && !self.stream.ends.is_shut.load(Ordering::Relaxed);
        if watched { asked | libc::POLLRDHUP } else { asked }
    }
}

/// The thread ends.
fn give_back() {
    drop((SPARE.with(|spare| spare.take()), ASLEEP.with(|asleep| asleep.take())));
}

/// Whether the kernel's descriptors are due for a look by this thread.
fn looks_again() -> bool {
    let now = cpu::ticks();
    LOOKED.with(|looked| {
        let due = now.wrapping_sub(looked.get()) > LOOK_TICKS;
        if due {
            looked.set(now);
        }
        due
    })
}
