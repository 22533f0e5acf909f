//! Sets of a process that has shut itself in: the kernel answers, and beside it the memory of members whose peers have not
//! followed them to TCP. Only calls that the program itself makes are made.

use std::sync::atomic::Ordering;

use sidestep_stream::carrier::Watch;

use crate::{
    kernel::{self, signal::Inside},
    processes::heirloom,
    promotion::{engine, leaving},
    readiness::{
        Here, bytes_here,
        member::{EDGE, ERR, HUP, IN, Member, ONE_SHOT, OUT, RDHUP},
    },
    streams::{Stream, lock},
};

use super::{Set, state::State, token::token};

impl Set {
    /// The process is about to shut itself in, and its streams were asked to leave.
    pub fn shut_in(&self) {
        if !self.exported.swap(true, Ordering::AcqRel) {
            self.give_to_kernel();
        }
    }

    /// Whether bytes for a member lie here.
    pub fn has_bytes_alone(&self) -> bool {
        lock(&self.state).members.iter().any(|(_, member)| is_due(member))
    }

    /// Whether too few do.
    pub fn is_scarce(&self) -> bool {
        if !heirloom::are_left() {
            return false;
        }
        let _inside = Inside::enter();
        let scarce = |member: &Member| wants_bytes(member) && bytes_here(member.stream) == Here::TooFew;
        lock(&self.state).members.iter().any(|(_, member)| scarce(member))
    }

    /// Adds to what the kernel reported members for which bytes lie here; returns how many events there are then.
    pub fn add_alone(&self, events: &mut [libc::epoll_event], count: usize) -> usize {
        let set = self.fd.load(Ordering::Relaxed);
        let mut count = count;
        let mut state = lock(&self.state);
        state.add_inherited(&mut events[..count]);
        for (id, member) in state.members.iter_mut().filter(|(_, member)| is_due(member)) {
            if events[..count].iter().any(|event| event.u64 == member.data) {
                continue;
            }
            let Some(event) = events.get_mut(count) else { break };
            // As the kernel does, which tells of all that is so when it tells of one thing.
            let also = match engine::is_disabled() {
                true => 0,
                false => kernel::look(member.stream.fd(), (member.events & (OUT | RDHUP)) as i16) as u32,
            };
            *event = libc::epoll_event { events: IN | also & (member.events | HUP | ERR), u64: member.data };
            count += 1;
            if member.events & ONE_SHOT != 0 {
                // As the kernel does with what it reports. A program with such members makes this call itself.
                let u64 = if engine::is_disabled() { member.data } else { token(id) };
                let silent = libc::epoll_event { events: ONE_SHOT, u64 };
                let _ = kernel::epoll_control(set, libc::EPOLL_CTL_MOD, member.fd, Some(silent));
            }
            is_told(member);
        }
        count
    }

    /// The kernel has changed a registration.
    pub fn was_controlled(&self, op: i32, fd: i32, stream: &'static Stream, event: Option<libc::epoll_event>) {
        let mut state = lock(&self.state);
        let id = state.members.id(fd);
        let member = id.and_then(|id| state.members.get_mut(id)).filter(|member| member.stream.index == stream.index);
        match (member, event) {
            (Some(member), Some(event)) if op != libc::EPOLL_CTL_DEL => {
                member.change(event);
            }
            (Some(member), _) => (member.events, member.present) = (0, false),
            (None, Some(event)) if op == libc::EPOLL_CTL_ADD && !leaving::is_kernels(stream) => {
                state.members.insert(fd, Member::new(stream, fd, event.events, event.u64));
                drop(state);
                let mut sets = lock(&stream.sets);
                if !sets.contains(&self.index) {
                    sets.push(self.index);
                }
            }
            (None, _) => {}
        }
    }
}

impl State {
    /// Adds to members that the kernel has told of what it does not know: bytes for them lie here.
    pub fn add_inherited(&mut self, events: &mut [libc::epoll_event]) {
        let readable =
            |(_, member): &(u32, &mut Member)| wants_bytes(member) && bytes_here(member.stream) == Here::Enough;
        for (_, member) in self.members.iter_mut().filter(readable) {
            if let Some(event) = events.iter_mut().find(|event| event.u64 == member.data) {
                event.events |= IN;
                is_told(member);
            }
        }
    }
}

/// Whether a member is to be told that it can be read. An edge-triggered one is told once of what lies here.
fn is_due(member: &Member) -> bool {
    let news = || member.events & EDGE == 0 || member.told != Some(written(member));
    wants_bytes(member) && bytes_here(member.stream) == Here::Enough && news()
}

/// Whether the kernel alone would answer for it.
fn wants_bytes(member: &Member) -> bool {
    member.ring.is_none() && member.present && !member.spent && member.events & IN != 0
}

fn is_told(member: &mut Member) {
    member.spent = member.events & ONE_SHOT != 0;
    member.told = Some(written(member));
}

/// How far the peer has written a carrier that it has not left.
fn written(member: &Member) -> u64 {
    member.stream.carrier().map_or(0, |carrier| carrier.watch().written())
}
