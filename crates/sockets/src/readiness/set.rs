//! Epoll sets: the kernel's, with the rings of promoted streams beside it.
//!
//! A stream without a ring is registered as the program says, and the kernel answers alone. A stream with one has a
//! registration of ours: edge-triggered, for everything, with a token instead of the program's data. What the program
//! then changes is changed in memory only.
//!
//! Promoted members are *active* (looked at by every wait) or *idle* (their tripwires armed, so that news puts them into
//! an event queue). So a wait costs by active members, not by open ones.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use sidestep_sys::lock::Mutex;

use crate::{
    config::config,
    descriptors::table,
    kernel::{self, Result},
    promotion::engine,
    readiness::{
        member::{Member, ONE_SHOT},
        poll::EXPORTED,
    },
    streams::{Stage, Stream, lock},
};

use state::State;

mod alone;
mod collect;
mod order;
pub(crate) mod state;
mod token;
mod told;
mod wait;

/// One epoll set. Lives for ever and is used again; see [`table`].
#[derive(Debug)]
pub struct Set {
    /// Its place in the pool.
    pub index: u32,
    fd: AtomicI32,
    numbers: AtomicU32,
    /// Something else may wait on it: no member has a ring.
    exported: AtomicBool,
    /// It is a parent's, too, who has registered members in its own way: this process makes them the program's again.
    registered_elsewhere: AtomicBool,
    /// Threads that sleep in it, or are about to. Counted under the lock of the state: what was changed before is seen by
    /// such a thread's last look, and who changes something after sees the thread.
    sleepers: AtomicU32,
    state: Mutex<State>,
}

impl Set {
    /// One that is not used yet.
    pub fn new(index: u32) -> Set {
        Set {
            index,
            fd: AtomicI32::new(-1),
            numbers: AtomicU32::new(0),
            exported: AtomicBool::new(false),
            registered_elsewhere: AtomicBool::new(false),
            sleepers: AtomicU32::new(0),
            state: Mutex::default(),
        }
    }

    /// Makes it the set behind a descriptor. Under the lock of the table.
    pub fn begin(&self, fd: i32) {
        self.fd.store(fd, Ordering::Relaxed);
        self.numbers.store(1, Ordering::Relaxed);
        self.exported.store(false, Ordering::Relaxed);
        self.registered_elsewhere.store(false, Ordering::Relaxed);
        *lock(&self.state) = State::new(config().patience);
    }

    /// In a forked child: the set is the parent's, too. The kernel answers alone.
    pub fn inherit(&self, fd: i32) {
        self.begin(fd);
        self.exported.store(true, Ordering::Relaxed);
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
            crate::promotion::leaving::leave(stream, EXPORTED);
        }
        self.give_to_kernel();
    }

    /// The kernel answers alone from now on.
    fn give_to_kernel(&self) {
        let set = self.fd.load(Ordering::Relaxed);
        let mut state = lock(&self.state);
        let ids: Vec<u32> = state.members.iter().map(|(id, _)| id).collect();
        for id in ids {
            state.uncarry(set, id);
        }
        state.lapsed = false;
        state.berth = None;
    }

    /// A member is on TCP both ways, and another process will have this set: the kernel's registration is the program's again.
    fn given_back(&self, stream: &Stream) {
        let set = self.fd.load(Ordering::Relaxed);
        let mut state = lock(&self.state);
        for id in state.members.of(stream) {
            state.uncarry(set, id);
            state.lapsed |= stream.stage() == Stage::Carried && !self.is_exported();
        }
    }

    /// In a forked child: the parent had a stream in the set for which bytes lie here.
    pub fn inherit_member(&self, stream: &'static Stream, Membership { fd, events, data, .. }: Membership) {
        lock(&self.state).members.insert(fd, Member::new(stream, fd, events, data));
        lock(&stream.sets).push(self.index);
        self.registered_elsewhere.store(true, Ordering::Relaxed);
    }

    /// In a forked child that waits here: members that its parent had on rings are taken over, and registered as the program did.
    #[cold]
    fn register_again(&self) {
        let set = self.fd.load(Ordering::Relaxed);
        let state = lock(&self.state);
        for (_, member) in state.members.iter().filter(|(_, member)| member.present && !member.spent) {
            member.stream.take_over();
            let event = libc::epoll_event { events: member.events, u64: member.data };
            let _ = state::change(set, member.fd, event);
        }
    }

    /// Members whose carriers were given up are the kernel's again, and the berth with the last of them.
    pub fn give_back(&self) {
        let set = self.fd.load(Ordering::Relaxed);
        let mut state = lock(&self.state);
        let given = |member: &Member| member.ring.is_some() && member.stream.carrier().is_none();
        let ids: Vec<u32> = state.members.iter().filter(|(_, member)| given(member)).map(|(id, _)| id).collect();
        for id in ids {
            state.uncarry(set, id);
        }
        state.drop_berth();
    }

    /// Whether the kernel answers alone.
    pub fn is_exported(&self) -> bool {
        self.exported.load(Ordering::Acquire)
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
            // A thread that sleeps does not see what is changed in memory only.
            if self.sleepers.load(Ordering::Relaxed) != 0 {
                wake();
            }
            return outcome;
        }
        kernel::epoll_control(set, op, fd, event)?;
        match (op, event) {
            (libc::EPOLL_CTL_DEL, _) => {
                if let Some(id) = id {
                    state.remove(id);
                }
                let is_own = |(_, member): (u32, &Member)| member.stream.index == stream.index;
                if stream.had_one_number() || !state.members.iter().any(is_own) {
                    lock(&stream.sets).retain(|index| *index != self.index);
                }
            }
            (_, Some(event)) => match id.and_then(|id| Some((id, state.members.get_mut(id)?))) {
                Some((id, member)) => {
                    member.change(event);
                    if event.events & ONE_SHOT != 0 && stream.carrier().is_some() {
                        state.carry(set, id);
                        wake();
                    }
                }
                None => {
                    let id = state.members.insert(fd, Member::new(stream, fd, event.events, event.u64));
                    let mut sets = lock(&stream.sets);
                    if !sets.contains(&self.index) {
                        sets.push(self.index);
                    }
                    drop(sets);
                    if self.exported.load(Ordering::Acquire) {
                        drop(state);
                        crate::promotion::leaving::leave(stream, EXPORTED);
                        return Ok(());
                    }
                    match stream.carrier() {
                        Some(carrier) if !state.serves(carrier.node()) => {
                            drop(state);
                            crate::promotion::leaving::leave(stream, EXPORTED);
                        }
                        Some(_) => {
                            state.carry(set, id);
                            wake();
                        }
                        None => {}
                    }
                }
            },
            _ => {}
        }
        Ok(())
    }

    /// A member has been opened for its ring, or writes to one.
    fn opened(&self, stream: &Stream) {
        let set = self.fd.load(Ordering::Relaxed);
        let mut state = lock(&self.state);
        for id in state.members.of(stream) {
            state.carry(set, id);
        }
    }

    fn can_carry(&self, stream: &Stream) -> bool {
        let mut state = lock(&self.state);
        if self.is_exported() {
            // What woke a wait of ours would be news to whoever looks at the set.
            return false;
        }
        let Some(carrier) = stream.carrier().filter(|carrier| state.serves(carrier.node())) else { return false };
        let can = |id: u32, member: &Member| {
            let numbered = state.members.id(member.fd) == Some(id);
            member.ring.is_some() || numbered && member.events & ONE_SHOT == 0
        };
        if !state.members.of(stream).into_iter().all(|id| state.members.get(id).is_none_or(|member| can(id, member))) {
            return false;
        }
        let set = self.fd.load(Ordering::Relaxed);
        for id in state.members.of(stream) {
            // Before there is a berth: what wakes it is news to the kernel.
            if let Some(member) = state.members.get_mut(id).filter(|member| member.ring.is_none()) {
                let told = member.told_so_far(&carrier, || kernel::look(set, libc::POLLIN) != 0);
                member.told_before = told.map(|told| (carrier.serial, told));
            }
        }
        state.give_berth(set, carrier.node());
        state.berth.is_some()
    }

    /// A descriptor of the program's is closed; with `last`, the stream with it.
    pub fn closed(&self, fd: i32, stream: &Stream, last: bool) {
        let set = self.fd.load(Ordering::Relaxed);
        let mut state = lock(&self.state);
        for id in state.members.of(stream) {
            let member = state.members.get(id);
            if !last && member.is_none_or(|member| member.fd != fd) {
                continue;
            }
            let present = member.is_some_and(|member| member.present);
            if !present && !last {
                // Taken out in memory only: the kernel must not find it again under this number.
                let _ = kernel::epoll_control(set, libc::EPOLL_CTL_DEL, fd, None);
            }
            if last || !present {
                state.remove(id);
            }
        }
        state.members.forget_number(fd);
    }

    /// The members of a stream are the kernel's from now on, as the program registered them.
    pub fn release(&self, stream: &Stream) {
        let set = self.fd.load(Ordering::Relaxed);
        let mut state = lock(&self.state);
        for id in state.members.of(stream) {
            state.uncarry(set, id);
            state.remove(id);
        }
    }

    /// A number leads to a stream again: a registration that was made under it is its own once more.
    pub fn renumbered(&self, fd: i32, stream: &Stream) {
        let mut state = lock(&self.state);
        let id = state.members.iter().find(|(_, member)| member.fd == fd && member.stream.index == stream.index);
        if let Some(id) = id.map(|(id, _)| id) {
            state.members.set_number(fd, id);
        }
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

/// A place of a stream in a set.
#[derive(Debug, Clone, Copy)]
pub struct Membership {
    /// The index of the set.
    pub set: u32,
    fd: i32,
    events: u32,
    data: u64,
}

/// The places of a stream in sets.
pub fn memberships(stream: &Stream) -> Vec<Membership> {
    let sets = lock(&stream.sets).clone();
    let mut all = Vec::new();
    for set in sets.into_iter().filter_map(table::set_at) {
        let state = lock(&set.state);
        let own = state.members.of(stream).filter_map(|id| state.members.get(id));
        all.extend(own.filter(|member| member.present && !member.spent).map(|member| Membership {
            set: set.index,
            fd: member.fd,
            events: member.events,
            data: member.data,
        }));
    }
    all
}

/// A stream has left its carrier: its sets leave it to the kernel.
pub fn given_back(stream: &Stream) {
    let sets = lock(&stream.sets).clone();
    for set in sets.into_iter().filter_map(table::set_at) {
        set.given_back(stream);
    }
}

/// Whether all sets of a stream can look at a ring of it. One-shot members cannot before they are armed anew: nobody knows
/// whether the kernel has reported them. Nor can those whose number is gone: nobody can change their registration.
pub fn can_open(stream: &Stream) -> bool {
    let sets = lock(&stream.sets).clone();
    sets.into_iter().filter_map(table::set_at).all(|set| set.can_carry(stream))
}

fn wake() {
    if let Some(engine) = engine::running() {
        engine.node.wake();
    }
}
