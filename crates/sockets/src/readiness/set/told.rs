//! What a set asks the kernel, and what it makes of the answers.

use std::time::Duration;

use sidestep_fabric::Berth;
use sidestep_shm::wait::nearest_core;
use sidestep_stream::carrier::{SharedNews, Watch};
use sidestep_sys::cpu;

use crate::{
    kernel,
    readiness::{
        member::{ENDS, Member},
        poll::LOOK_TICKS,
    },
};

use super::{
    state::{FEW, State},
    token::{berth_token, is_ours},
};

/// Answers about nothing but doorbells after which a call that does not wait believes that there is nothing else.
const MOST_RINGS: usize = 1000;

impl State {
    /// Whether the kernel was asked long ago.
    pub fn kernel_is_due(&mut self) -> bool {
        cpu::ticks().wrapping_sub(self.looked) > LOOK_TICKS
    }

    /// Asks the kernel, without waiting, and adds what it has.
    pub fn add_kernel(&mut self, set: i32, events: &mut [libc::epoll_event], count: usize) -> usize {
        self.see_to_full();
        let rest = &mut events[count..];
        if rest.is_empty() {
            return count;
        }
        self.asks_kernel();
        self.looked = cpu::ticks();
        let mut more = 0;
        // Ours may take all the room that the program gave; then the others are still to come. Doorbells can ring anew all the time.
        for _ in 0..=self.carried + MOST_RINGS {
            let found = kernel::epoll_wait(set, rest, Some(Duration::ZERO), None).unwrap_or(0);
            more = self.translate(rest, found);
            self.order.more = found == rest.len();
            if more > 0 || found < rest.len() {
                break;
            }
        }
        if count > 0 {
            return count + more;
        }
        // Members of ours of which the kernel knew; none has been reported by this call.
        self.rouse();
        match more + self.collect(&mut events[more..]) {
            // What the peer did meanwhile must not hide what there is from a call that does not wait.
            0 if self.order.behind => self.collect_in_order(set, events),
            count => count,
        }
    }

    /// Asks the kernel, without waiting. Returns how many events it has told.
    pub fn ask_kernel(&mut self, set: i32, events: &mut [libc::epoll_event]) -> usize {
        self.asks_kernel();
        self.looked = cpu::ticks();
        kernel::epoll_wait(set, events, Some(Duration::ZERO), None).unwrap_or(0)
    }

    /// Reports what the kernel has just told, and ready members after it.
    pub fn add_found(&mut self, events: &mut [libc::epoll_event], found: usize) -> usize {
        self.order.more = found == events.len();
        let count = self.translate(events, found);
        self.see_to_full();
        self.rouse();
        count + self.collect(&mut events[count..])
    }

    /// A writer stores its bytes, and then tells of them if somebody waits: who sees the bytes between the two and asks this
    /// set must be told of them. Where there are many members that is left to the next wait.
    pub fn rouse(&mut self) {
        if self.carried <= self.active.len() || self.carried > FEW {
            return;
        }
        let is_idle = |member: &Member| member.ring.as_ref().is_some_and(|ring| !ring.active);
        let ready = |member: &Member| is_idle(member) && member.ready() != 0;
        let ids: Vec<u32> = self.members.iter().filter(|(_, member)| ready(member)).map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.activate(id));
    }

    /// Takes our own out of what the kernel reported.
    pub fn translate(&mut self, events: &mut [libc::epoll_event], count: usize) -> usize {
        let mut kept = 0;
        for at in 0..count {
            let event = events[at];
            if !is_ours(&event) {
                events[kept] = event;
                kept += 1;
                continue;
            }
            if let Some(token) = berth_token(&event) {
                self.kernel_told |= Berth::is_of_kernel(token);
                self.progress();
                continue;
            }
            let id = event.u64 as u32;
            if let Some(ring) = self.members.get_mut(id).and_then(|member| member.ring.as_mut()) {
                ring.anchor |= event.events & ENDS;
                let carrier = ring.carrier.clone();
                if event.events & ENDS != 0
                    && let Some(member) = self.members.get(id)
                {
                    member.stream.notice_end(&carrier);
                }
                self.activate(id);
                self.mentioned.push(id);
            }
        }
        kept
    }

    /// Looks for a while: at active members all the time, at the kernel now and then. Returns whether there is news, and how
    /// many events the kernel has told, which then are in `events`.
    pub fn look(&mut self, set: i32, deadline: Option<u64>, events: &mut [libc::epoll_event]) -> (bool, usize) {
        let State { members, active, carried, waiter, looked, shared, node, order, .. } = self;
        let shared = shared.as_ref().filter(|_| *carried > active.len());
        let ring = |id: &u32| members.get(*id).and_then(|member| member.ring.as_ref());
        let core = || nearest_core(active.iter().filter_map(ring).map(|ring| ring.carrier.watch().peer_core()));
        let node = node.as_ref().filter(|_| *carried > active.len());
        if waiter.is_resting() {
            // The sleep that follows sees what the kernel has.
            *looked = cpu::ticks();
        }
        let mut found = 0;
        let news = waiter.look(deadline, core, || {
            if active.iter().any(|id| members.get(*id).is_some_and(|member| member.ready() != 0)) {
                return true;
            }
            if node.is_some_and(|node| node.has_news()) || shared.is_some_and(SharedNews::has_arrivals) {
                return true;
            }
            let now = cpu::ticks();
            if now.wrapping_sub(*looked) < LOOK_TICKS {
                return false;
            }
            *looked = now;
            active.iter().filter_map(ring).for_each(|ring| order.asks(ring));
            found = kernel::epoll_wait(set, events, Some(Duration::ZERO), None).unwrap_or(0);
            found > 0
        });
        (news, found)
    }
}
