//! Which members a wait reports, in which order.

use sidestep_stream::carrier::Watch;

use super::state::{FEW, QUIET, State};
use crate::readiness::member::Member;

impl State {
    /// Reports ready members, up to one that must wait until the kernel has been asked.
    pub fn collect(&mut self, events: &mut [libc::epoll_event]) -> usize {
        self.order.pass = self.order.pass.wrapping_add(1);
        self.collect_rest(events)
    }

    /// The same, without those that this collection has reported.
    pub fn collect_rest(&mut self, events: &mut [libc::epoll_event]) -> usize {
        self.order.behind = false;
        let mut count = self.report_mentioned(events);
        if self.order.behind {
            return count;
        }
        // Nobody is kept back then: others may have come before those that the kernel has just told of.
        let told_by_kernel = count > 0;
        let (known, first) = (self.active.len(), self.next);
        let many = known > FEW;
        let (mut at, mut last) = (0, 0);
        let mut idle = false;
        while at < known && count < events.len() {
            let id = self.active[(first + at) % known];
            let more = self.report(id, &mut events[count..], told_by_kernel);
            if self.order.behind {
                break;
            }
            at += 1;
            if more > 0 {
                (count, last) = (count + more, at);
            } else if many && let Some(ring) = self.members.get_mut(id).and_then(|member| member.ring.as_mut()) {
                ring.quiet += 1;
                idle |= ring.quiet > QUIET;
            }
        }
        let roused =
            if self.order.behind { 0 } else { self.report_roused(known, &mut events[count..], told_by_kernel) };
        count += roused;
        // The first look at a link may only let in what has arrived for it.
        let looked = if told_by_kernel || roused > 0 { at } else { last.saturating_sub(1) };
        if looked > 0 {
            count += self.look_back((first, known), looked, &mut events[count..], told_by_kernel);
        }
        self.next = if self.active.is_empty() { 0 } else { (first + at) % self.active.len() };
        if idle {
            self.arm_quiet();
        }
        count
    }

    /// Reports those that come to the active ones now. Behind the look at those: a writer tells of an idle member before it goes on to
    /// an active one, so what was written before is found.
    #[inline]
    fn report_roused(&mut self, known: usize, events: &mut [libc::epoll_event], at_once: bool) -> usize {
        if self.carried > known {
            self.progress();
        }
        let mut count = 0;
        for at in known..self.active.len() {
            count += self.report(self.active[at], &mut events[count..], at_once);
            if self.order.behind {
                break;
            }
        }
        count
    }

    /// Reports those that the kernel has told of, in its order. What it told may be old, and bytes that a ring has brought since newer than
    /// what it tells next: such a member waits as those do of which it has told nothing.
    #[inline]
    fn report_mentioned(&mut self, events: &mut [libc::epoll_event]) -> usize {
        if self.mentioned.is_empty() {
            return 0;
        }
        let mut mentioned = std::mem::take(&mut self.mentioned);
        let mut count = 0;
        for id in mentioned.drain(..) {
            let at_once = !self.members.get(id).is_some_and(Member::has_carried_bytes);
            count += self.report(id, &mut events[count..], at_once);
        }
        self.mentioned = mentioned;
        count
    }

    /// Reports one member, if it is ready and was not reported by this collection. Unless `at_once`, it waits until the kernel
    /// has been asked.
    #[inline]
    fn report(&mut self, id: u32, events: &mut [libc::epoll_event], at_once: bool) -> usize {
        let State { members, order, .. } = self;
        let (Some(member), Some(event)) = (members.get_mut(id), events.first_mut()) else { return 0 };
        if member.ring.as_ref().is_none_or(|ring| ring.pass == order.pass) {
            return 0;
        }
        let ready = member.ready();
        let Some(ring) = member.ring.as_mut().filter(|_| ready != 0) else { return 0 };
        if !at_once && !order.is_current(ring) {
            order.behind = true;
            return 0;
        }
        ring.pass = order.pass;
        order.reports();
        let ready = member.report(ready);
        *event = libc::epoll_event { events: ready, u64: member.data };
        1
    }

    /// Members that were looked at before one with news, and had none then, may have been written to before that one: the first so
    /// many, from this place on, of those that were known. What another thread has at hand is waited for.
    fn look_back(
        &mut self,
        (first, known): (usize, usize),
        looked: usize,
        events: &mut [libc::epoll_event],
        all: bool,
    ) -> usize {
        let mut count = 0;
        for at in 0..looked {
            let id = self.active[(first + at) % known];
            if let Some(ring) = self.members.get(id).and_then(|member| member.ring.as_ref()) {
                ring.carrier.watch().take_in();
            }
            count += self.report(id, &mut events[count..], all);
        }
        count
    }
}
