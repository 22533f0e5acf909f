//! Epoll sets: the kernel's, with the rings of promoted streams beside it.
//!
//! A stream without a ring is registered as the program says, and the kernel answers alone. A stream with one has a
//! registration of ours: edge-triggered, for everything, with a token instead of the program's data. What the program
//! then changes is changed in memory only.
//!
//! Promoted members are *active* (looked at by every wait) or *idle* (their tripwires armed, so that news puts them into
//! an event queue). So a wait costs by active members, not by open ones.

use std::{
    os::fd::{AsFd, AsRawFd},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering},
    },
    time::Duration,
};

use sidestep_fabric::{Berth, EventQueue};
use sidestep_shm::{clock, cpu, wait::Waiter};

use crate::{
    config::config,
    engine,
    kernel::{self, Errno, Mask, Result},
    member::{EDGE, ENDS, IN, Member, Members, OUT, RDHUP, Ring, Seen},
    poll::{EXPORTED, LOOK_TICKS},
    signal::{self, Inside, Runs},
    sleep,
    stream::{Stage, Stream, lock},
    table,
};

/// One epoll set. Lives for ever and is used again; see [`table`].
#[derive(Debug)]
pub struct Set {
    /// Its place in the pool.
    pub index: u32,
    fd: AtomicI32,
    numbers: AtomicU32,
    /// Something else may wait on it: no member has a ring.
    exported: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    members: Members,
    /// Promoted members that are looked at.
    active: Vec<u32>,
    /// How many members are promoted.
    carried: usize,
    berth: Option<Arc<Berth>>,
    news: Option<EventQueue>,
    waiter: Waiter,
    /// When the kernel was last asked, in ticks of the processor.
    looked: u64,
    /// Where the next look begins, so that nobody is left out.
    next: usize,
}

const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;
/// The lower half of the token of a set's own berth.
const BERTH: u32 = u32::MAX;
/// Looks without news after which a member becomes idle, if there are many.
const QUIET: u32 = 64;
/// So many members are looked at without further ado.
const FEW: usize = 16;

impl Set {
    /// One that is not used yet.
    pub fn new(index: u32) -> Set {
        Set {
            index,
            fd: AtomicI32::new(-1),
            numbers: AtomicU32::new(0),
            exported: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Makes it the set behind a descriptor. Under the lock of the table.
    pub fn begin(&self, fd: i32) {
        self.fd.store(fd, Ordering::Relaxed);
        self.numbers.store(1, Ordering::Relaxed);
        self.exported.store(false, Ordering::Relaxed);
        *lock(&self.state) = State { waiter: Waiter::with(config().patience), ..State::default() };
    }

    /// Another number leads here.
    pub fn add_number(&self) {
        self.numbers.fetch_add(1, Ordering::Relaxed);
    }

    /// A number leads here no more. Under the lock of the table.
    pub fn drop_number(&'static self) {
        if self.numbers.fetch_sub(1, Ordering::Relaxed) == 1 {
            let state = std::mem::take(&mut *lock(&self.state));
            for (_, member) in state.members.iter() {
                lock(&member.stream.sets).retain(|set| *set != self.index);
            }
            table::recycle_set(self);
        }
    }

    /// Something other than our own wait looks at this set: its members go back to TCP.
    pub fn export(&self) {
        if self.exported.swap(true, Ordering::AcqRel) {
            return;
        }
        let streams: Vec<_> = lock(&self.state).members.iter().map(|(_, member)| member.stream).collect();
        for stream in streams {
            crate::calls::leave_stream(stream, EXPORTED);
        }
        // The kernel answers alone from now on.
        let set = self.fd.load(Ordering::Relaxed);
        let mut state = lock(&self.state);
        let ids: Vec<u32> = state.members.iter().map(|(id, _)| id).collect();
        for id in ids {
            state.uncarry(set, id);
        }
        if let Some(berth) = state.berth.take() {
            let _ = kernel::epoll_control(set, libc::EPOLL_CTL_DEL, berth.as_fd().as_raw_fd(), None);
        }
    }

    /// `epoll_ctl`.
    pub fn control(&'static self, op: i32, fd: i32, event: Option<libc::epoll_event>) -> Result<()> {
        let set = self.fd.load(Ordering::Relaxed);
        if let Some(nested) = table::set(fd) {
            nested.export();
        }
        let Some(stream) = table::stream(fd) else { return kernel::epoll_control(set, op, fd, event) };
        let mut state = lock(&self.state);
        let id = state
            .members
            .id(fd)
            .filter(|id| state.members.get(*id).is_some_and(|member| member.stream.index == stream.index));
        if let Some(id) = id
            && state.members.get(id).is_some_and(|member| member.ring.is_some())
        {
            let outcome = state.control_carried(op, id, event);
            drop(state);
            // A thread that waits does not see what is changed in memory only.
            wake();
            return outcome;
        }
        kernel::epoll_control(set, op, fd, event)?;
        match (op, event) {
            (libc::EPOLL_CTL_DEL, _) => {
                if let Some(id) = id {
                    state.members.remove(id);
                }
                let others = state.members.iter().any(|(_, member)| member.stream.index == stream.index);
                if !others {
                    lock(&stream.sets).retain(|index| *index != self.index);
                }
            }
            (_, Some(event)) => {
                let (events, data) = (event.events, event.u64);
                match id.and_then(|id| state.members.get_mut(id)) {
                    Some(member) => (member.events, member.data) = (events, data),
                    None => {
                        let member = Member { stream, fd, events, data, present: true, spent: false, ring: None };
                        let id = state.members.insert(fd, member);
                        let mut sets = lock(&stream.sets);
                        if !sets.contains(&self.index) {
                            sets.push(self.index);
                        }
                        drop(sets);
                        if self.exported.load(Ordering::Acquire) {
                            drop(state);
                            crate::calls::leave_stream(stream, EXPORTED);
                            return Ok(());
                        }
                        state.give_berth(set);
                        if stream.carrier().is_some() {
                            state.carry(set, id);
                            wake();
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A member has been opened for its ring, or writes to one.
    fn opened(&self, stream: &Stream) {
        let set = self.fd.load(Ordering::Relaxed);
        let mut state = lock(&self.state);
        let ids: Vec<u32> =
            state.members.iter().filter(|(_, member)| member.stream.index == stream.index).map(|(id, _)| id).collect();
        for id in ids {
            state.carry(set, id);
        }
    }

    /// A descriptor of the program's is closed; with `last`, the stream with it.
    pub fn closed(&self, fd: i32, stream: &Stream, last: bool) {
        let set = self.fd.load(Ordering::Relaxed);
        let mut state = lock(&self.state);
        let ids: Vec<u32> = state
            .members
            .iter()
            .filter(|(_, member)| member.stream.index == stream.index && (last || member.fd == fd))
            .map(|(id, _)| id)
            .collect();
        for id in ids {
            let keeps = state.members.get(id).is_some_and(|member| member.present && member.ring.is_some());
            let stale = state.members.get(id).is_some_and(|member| !member.present);
            if stale && !last {
                // Taken out in memory only: the kernel must not find it again under this number.
                let _ = kernel::epoll_control(set, libc::EPOLL_CTL_DEL, fd, None);
            }
            if last || !keeps {
                state.remove(id);
            }
            if !last && !keeps {
                // The kernel keeps the registration of a number that is gone: nobody can change it any more.
                stream.stay(EXPORTED);
            }
        }
        state.members.forget_number(fd);
    }

    /// A number leads to a stream again: a registration that was made under it is its own once more.
    pub fn renumbered(&self, fd: i32, stream: &Stream) {
        let mut state = lock(&self.state);
        let id = state.members.iter().find(|(_, member)| member.fd == fd && member.stream.index == stream.index);
        if let Some(id) = id.map(|(id, _)| id) {
            state.members.set_number(fd, id);
        }
    }

    /// `epoll_wait` and its relatives.
    pub fn wait(
        &'static self,
        events: &mut [libc::epoll_event],
        timeout: Option<Duration>,
        mask: Option<Mask>,
        before: Runs,
    ) -> Result<usize> {
        let set = self.fd.load(Ordering::Relaxed);
        if events.is_empty() {
            return kernel::epoll_wait(set, events, timeout, mask);
        }
        let deadline = timeout.map(|timeout| clock::now().saturating_add(timeout.as_nanos() as u64));
        loop {
            let inside = Inside::enter();
            let mut state = lock(&self.state);
            if state.carried == 0 {
                drop(state);
                drop(inside);
                let left = deadline.map(|deadline| Duration::from_nanos(deadline.saturating_sub(clock::now())));
                let interrupted = sleep::is_interrupted(before, true);
                let left = if interrupted { Some(Duration::ZERO) } else { left };
                let count = kernel::epoll_wait(set, events, left, mask)?;
                if count == 0 && interrupted {
                    return Err(Errno(libc::EINTR));
                }
                // Mostly nothing of ours is among them. A member may have got its ring meanwhile.
                if !events[..count].iter().any(|event| (event.u64 >> 32) as u32 == salt()) {
                    return Ok(count);
                }
                let _inside = Inside::enter();
                let mut state = lock(&self.state);
                state.progress();
                let count = state.translate(events, count);
                if count > 0 {
                    return Ok(count);
                }
                continue;
            }
            let count = state.collect(events);
            if count > 0 {
                let count = if state.kernel_is_due() { state.add_kernel(set, events, count) } else { count };
                return Ok(count);
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Ok(state.add_kernel(set, events, 0));
            }
            if state.look(set, deadline) {
                drop(state);
                let mut state = lock(&self.state);
                let count = state.collect(events);
                let count = state.add_kernel(set, events, count);
                if count > 0 {
                    return Ok(count);
                }
                continue;
            }
            if sleep::is_interrupted(before, true) {
                return Err(Errno(libc::EINTR));
            }
            let Some(berth) = state.berth.clone() else { continue };
            let node = engine::running().map(|engine| engine.node.clone());
            let Some(node) = node else { continue };
            // What another thread dispatches from here on changes the epoch. What it dispatched before is in the queue.
            let epoch = node.epoch();
            state.arm();
            state.progress();
            drop(state);
            let mut outcome = Ok(0);
            let cancelled = || signal::was_cancelled(before);
            if berth.occupy() && !lock(&self.state).has_news() && node.epoch() == epoch && !cancelled() {
                outcome = sleep::sleep_unmasked(mask, |mask| {
                    let left = deadline.map(|deadline| Duration::from_nanos(deadline.saturating_sub(clock::now())));
                    kernel::epoll_wait(set, events, left, Some(mask))
                });
            }
            berth.leave();
            let mut state = lock(&self.state);
            state.looked = cpu::ticks();
            state.progress();
            let count = match outcome {
                Ok(count) => state.translate(events, count),
                Err(_) => 0,
            };
            let count = count + state.collect(&mut events[count..]);
            if count > 0 {
                return Ok(count);
            }
            drop(state);
            drop(inside);
            if outcome == Err(Errno(libc::EINTR)) || signal::was_cancelled(before) {
                return Err(sleep::why(before, true));
            }
        }
    }
}

impl State {
    /// From the start, every set that has a stream of ours can be woken by the fabric.
    fn give_berth(&mut self, set: i32) {
        if self.berth.is_some() {
            return;
        }
        let Some(engine) = engine::engine() else { return };
        let Ok(berth) = engine.node.berth() else { return };
        let event = libc::epoll_event { events: IN | EDGE, u64: token(BERTH) };
        if kernel::epoll_control(set, libc::EPOLL_CTL_ADD, berth.as_fd().as_raw_fd(), Some(event)).is_ok() {
            self.berth = Some(Arc::new(berth));
            self.news = Some(EventQueue::new(&engine.node));
        }
    }

    /// A member gets its ring.
    fn carry(&mut self, set: i32, id: u32) {
        self.give_berth(set);
        let (Some(news), Some(member)) = (&self.news, self.members.get_mut(id)) else { return };
        if member.ring.is_some() {
            return;
        }
        let Some(carrier) = member.stream.carrier() else { return };
        let fd = member.fd;
        let event = libc::epoll_event { events: IN | OUT | RDHUP | EDGE, u64: token(id) };
        let changed = kernel::epoll_control(set, libc::EPOLL_CTL_MOD, fd, Some(event)).or_else(|_| {
            // An exclusive registration cannot be changed.
            kernel::epoll_control(set, libc::EPOLL_CTL_DEL, fd, None)?;
            kernel::epoll_control(set, libc::EPOLL_CTL_ADD, fd, Some(event))
        });
        if changed.is_err() {
            return;
        }
        let monitor = &carrier.monitor;
        let sources = [
            news.attach_tripwire(monitor.arrival(), u64::from(id) * 2),
            news.attach_tripwire(monitor.space(), u64::from(id) * 2 + 1),
        ];
        let anchor = kernel::look(fd, libc::POLLRDHUP) as u32 & ENDS;
        // For an edge-triggered member everything that is there is new.
        let seen = Seen { written: u64::MAX, read: u64::MAX, anchor: 0 };
        member.ring = Some(Ring { carrier, sources, active: true, quiet: 0, anchor, seen });
        self.active.push(id);
        self.carried += 1;
    }

    /// A member is the kernel's again, as the program registered it.
    fn uncarry(&mut self, set: i32, id: u32) {
        let numbered = self.members.get(id).is_some_and(|member| self.members.id(member.fd) == Some(id));
        let Some(member) = self.members.get_mut(id).filter(|_| numbered) else { return };
        let Some(ring) = member.ring.take() else { return };
        let event = libc::epoll_event { events: member.events, u64: member.data };
        let op = if member.present { libc::EPOLL_CTL_MOD } else { libc::EPOLL_CTL_DEL };
        let _ = kernel::epoll_control(set, op, member.fd, Some(event));
        self.drop_ring(id, &ring);
    }

    fn drop_ring(&mut self, id: u32, ring: &Ring) {
        self.carried -= 1;
        self.active.retain(|other| *other != id);
        if let Some(news) = &self.news {
            ring.sources.iter().for_each(|source| news.detach(*source));
        }
    }

    fn remove(&mut self, id: u32) {
        if let Some(member) = self.members.remove(id)
            && let Some(ring) = &member.ring
        {
            self.drop_ring(id, ring);
        }
    }

    fn control_carried(&mut self, op: i32, id: u32, event: Option<libc::epoll_event>) -> Result<()> {
        let Some(member) = self.members.get_mut(id) else { return Err(Errno(libc::ENOENT)) };
        match (op, event) {
            (libc::EPOLL_CTL_ADD, Some(_)) if member.present => return Err(Errno(libc::EEXIST)),
            (libc::EPOLL_CTL_ADD, Some(event)) => {
                (member.events, member.data, member.present, member.spent) = (event.events, event.u64, true, false);
            }
            (libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL, _) if !member.present => return Err(Errno(libc::ENOENT)),
            (libc::EPOLL_CTL_MOD, Some(event)) if (member.events | event.events) & EXCLUSIVE != 0 => {
                return Err(Errno(libc::EINVAL));
            }
            (libc::EPOLL_CTL_MOD, Some(event)) => {
                (member.events, member.data, member.spent) = (event.events, event.u64, false);
            }
            (libc::EPOLL_CTL_DEL, _) => {
                (member.events, member.present) = (0, false);
                return Ok(());
            }
            (_, None) => return Err(Errno(libc::EFAULT)),
            _ => return Err(Errno(libc::EINVAL)),
        }
        if let Some(ring) = &mut member.ring {
            ring.seen = Seen { written: u64::MAX, read: u64::MAX, anchor: 0 };
        }
        self.activate(id);
        Ok(())
    }

    fn activate(&mut self, id: u32) {
        if let Some(ring) = self.members.get_mut(id).and_then(|member| member.ring.as_mut()) {
            ring.quiet = 0;
            if !ring.active {
                ring.active = true;
                self.active.push(id);
            }
        }
    }

    /// Takes what the fabric has for this set.
    fn progress(&mut self) {
        while let Some(event) = self.news.as_ref().and_then(|news| news.poll()) {
            self.activate((event.token / 2) as u32);
        }
    }

    /// Whether some active member has an event for the program.
    fn has_news(&self) -> bool {
        self.active.iter().any(|id| self.members.get(*id).is_some_and(|member| member.ready() != 0))
    }

    /// Reports ready members.
    fn collect(&mut self, events: &mut [libc::epoll_event]) -> usize {
        if self.carried > self.active.len() {
            self.progress();
        }
        let State { members, active, next, .. } = self;
        let many = active.len() > FEW;
        let mut count = 0;
        let mut at = 0;
        let first = *next;
        let mut idle = false;
        while at < active.len() && count < events.len() {
            let id = active[(first + at) % active.len()];
            at += 1;
            let Some(member) = members.get_mut(id) else { continue };
            let ready = member.ready();
            if ready == 0 {
                if many && let Some(ring) = &mut member.ring {
                    ring.quiet += 1;
                    idle |= ring.quiet > QUIET;
                }
                continue;
            }
            events[count] = libc::epoll_event { events: ready, u64: member.data };
            count += 1;
            member.reported();
        }
        *next = if active.is_empty() { 0 } else { (first + at) % active.len() };
        if idle {
            self.arm_quiet();
        }
        count
    }

    /// Many members: those without news for long become idle.
    #[cold]
    fn arm_quiet(&mut self) {
        let State { members, active, .. } = self;
        active.retain(|id| {
            let Some(member) = members.get_mut(*id) else { return false };
            member.ring.as_ref().is_none_or(|ring| ring.quiet <= QUIET) || !member.becomes_idle()
        });
    }

    /// Before a sleep: everyone becomes idle who has no news.
    fn arm(&mut self) {
        let State { members, active, .. } = self;
        active.retain(|id| members.get_mut(*id).is_some_and(|member| !member.becomes_idle()));
    }

    fn kernel_is_due(&mut self) -> bool {
        cpu::ticks().wrapping_sub(self.looked) > LOOK_TICKS
    }

    /// Asks the kernel, without waiting, and adds what it has.
    fn add_kernel(&mut self, set: i32, events: &mut [libc::epoll_event], count: usize) -> usize {
        self.looked = cpu::ticks();
        let rest = &mut events[count..];
        if rest.is_empty() {
            return count;
        }
        match kernel::epoll_wait(set, rest, Some(Duration::ZERO), None) {
            Ok(more) => {
                let more = self.translate(rest, more);
                if more == 0 && count == 0 {
                    return self.collect(events);
                }
                count + more
            }
            Err(_) => count,
        }
    }

    /// Takes our own out of what the kernel reported.
    fn translate(&mut self, events: &mut [libc::epoll_event], count: usize) -> usize {
        let mut kept = 0;
        for at in 0..count {
            let event = events[at];
            if (event.u64 >> 32) as u32 != salt() {
                events[kept] = event;
                kept += 1;
                continue;
            }
            let id = event.u64 as u32;
            if id == BERTH {
                self.progress();
            } else if let Some(ring) = self.members.get_mut(id).and_then(|member| member.ring.as_mut()) {
                ring.anchor |= event.events & ENDS;
                // News of TCP is new, whatever the ring says.
                if event.events & IN != 0 {
                    ring.seen.written = u64::MAX;
                }
                if event.events & OUT != 0 {
                    ring.seen.read = u64::MAX;
                }
                let carrier = ring.carrier.clone();
                if event.events & ENDS != 0
                    && let Some(member) = self.members.get(id)
                {
                    member.stream.notice_end(&carrier);
                }
                self.activate(id);
            }
        }
        kept
    }

    /// Looks for a while: at active members all the time, at the kernel now and then.
    fn look(&mut self, set: i32, deadline: Option<u64>) -> bool {
        let State { members, active, carried, waiter, looked, .. } = self;
        let ring = |id: &u32| members.get(*id).and_then(|member| member.ring.as_ref());
        let core = || active.last().and_then(ring).map_or(u32::MAX, |ring| ring.carrier.monitor.peer_core());
        let node = engine::running().map(|engine| &engine.node).filter(|_| *carried > active.len());
        waiter.look(deadline, core, || {
            if active.iter().any(|id| members.get(*id).is_some_and(|member| member.ready() != 0)) {
                return true;
            }
            if node.is_some_and(|node| node.has_news()) {
                return true;
            }
            let now = cpu::ticks();
            if now.wrapping_sub(*looked) < LOOK_TICKS {
                return false;
            }
            *looked = now;
            kernel::look(set, libc::POLLIN) != 0
        })
    }
}

/// A stream has a ring from now on: its sets look at it.
pub fn opened(stream: &Stream) {
    if stream.stage() != Stage::Carried {
        return;
    }
    let sets = lock(&stream.sets).clone();
    for set in sets.into_iter().filter_map(table::set_at) {
        set.opened(stream);
    }
}

fn wake() {
    if let Some(engine) = engine::running() {
        engine.node.wake();
    }
}

/// The upper half of every token of ours.
fn salt() -> u32 {
    static SALT: OnceLock<u32> = OnceLock::new();
    *SALT.get_or_init(|| {
        let mut bytes = [0; 4];
        let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
        u32::from_ne_bytes(bytes) | 1 << 31
    })
}

fn token(low: u32) -> u64 {
    u64::from(salt()) << 32 | u64::from(low)
}
