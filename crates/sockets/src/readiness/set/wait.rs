//! Waiting in a set.

use std::{
    cell::Cell,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use sidestep_shm::doorbell::Tokens;
use sidestep_sys::{clock, cpu, lock::MutexGuard};

use crate::{
    kernel::{
        self, Errno, Mask, Result,
        signal::{self, Inside, Runs},
        stack,
    },
    processes::heirloom,
    promotion::engine,
    readiness::{
        asking,
        jump::{self, What},
        sleep, soon,
    },
    streams::lock,
};

use super::{
    Set,
    state::State,
    token::{berth_token, is_ours},
};

/// What ends a wait.
#[derive(Clone, Copy)]
struct Until {
    deadline: Option<u64>,
    mask: Option<Mask>,
    /// The handlers that had run when the call began.
    before: Runs,
}

/// So many events are collected on the stack.
const FEW: usize = 16;
const NO_EVENT: libc::epoll_event = libc::epoll_event { events: 0, u64: 0 };

thread_local! {
    /// Room for more, from the last call.
    static ROOM: Cell<Vec<libc::epoll_event>> = const { Cell::new(Vec::new()) };
}

impl Set {
    /// `epoll_wait` and its relatives. The kernel also tells of what is ours alone: the program finds the events that it is told of in
    /// its list, and all else there as it was.
    pub fn wait(
        &'static self,
        events: &mut [libc::epoll_event],
        timeout: Option<Duration>,
        mask: Option<Mask>,
        before: Runs,
    ) -> Result<usize> {
        match events.len() {
            0 => kernel::epoll_wait(self.fd.load(Ordering::Relaxed), events, timeout, mask),
            wanted @ 1..=FEW => {
                let mut few = [NO_EVENT; FEW];
                let count = self.wait_for(&mut few[..wanted], timeout, mask, before)?;
                events[..count].copy_from_slice(&few[..count]);
                Ok(count)
            }
            wanted => {
                let mut room = ROOM.try_with(Cell::take).unwrap_or_default();
                room.resize(room.len().max(wanted), NO_EVENT);
                let outcome = self.wait_for(&mut room[..wanted], timeout, mask, before);
                if let Ok(count) = outcome {
                    events[..count].copy_from_slice(&room[..count]);
                }
                let _ = ROOM.try_with(|place| place.set(room));
                outcome
            }
        }
    }

    fn wait_for(
        &'static self,
        events: &mut [libc::epoll_event],
        timeout: Option<Duration>,
        mask: Option<Mask>,
        before: Runs,
    ) -> Result<usize> {
        let set = self.fd.load(Ordering::Relaxed);
        let deadline = timeout.map(|timeout| clock::now().saturating_add(timeout.as_nanos() as u64));
        let until = Until { deadline, mask, before };
        if self.registered_elsewhere.swap(false, Ordering::Relaxed) {
            let _inside = Inside::enter();
            self.register_again();
        }
        let (mut whole, mut awaits) = (Some(timeout), asking::awaits());
        loop {
            let inside = Inside::enter();
            if heirloom::are_left() && self.has_bytes_alone() {
                let count = kernel::epoll_wait(set, events, Some(Duration::ZERO), mask)?;
                let count = lock(&self.state).translate(events, count);
                let count = self.add_alone(events, count);
                return Ok(count + lock(&self.state).collect(&mut events[count..]));
            }
            let mut state = self.see_to_kernel();
            if state.lapsed {
                state.carry_again(set);
            }
            if state.carried == 0 {
                drop(state);
                drop(inside);
                let left = whole.take().unwrap_or_else(|| sleep::left(deadline));
                match self.wait_without_rings(events, left, until)? {
                    Some(count) => return Ok(count),
                    None => continue,
                }
            }
            let count = state.collect_in_order(set, events);
            if count > 0 {
                return Ok(count);
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Ok(state.add_kernel(set, events, 0));
            }
            let (news, found) = match std::mem::take(&mut awaits) {
                // Mostly there is something already. If not, a sleep follows, for which active members have to be armed.
                true if !state.active.is_empty() => (false, state.ask_kernel(set, events)),
                true => (false, 0),
                false => state.look(set, deadline, events),
            };
            if found > 0 {
                match state.add_found(events, found) {
                    0 => continue,
                    count => return Ok(count),
                }
            }
            if news {
                drop(state);
                let mut state = lock(&self.state);
                let count = state.collect_in_order(set, events);
                let count = if count == 0 { state.add_kernel(set, events, 0) } else { count };
                if count > 0 {
                    return Ok(count);
                }
                continue;
            }
            if sleep::is_interrupted(before, true) {
                return Err(Errno(libc::EINTR));
            }
            let Some((count, outcome)) = self.sleep(state, events, until) else { continue };
            if count > 0 {
                return Ok(count);
            }
            drop(inside);
            if outcome == Err(Errno(libc::EINTR)) || signal::was_cancelled(before) {
                return Err(sleep::why(before, true));
            }
        }
    }

    /// Sees to what an earlier wait has told of the node's own descriptors.
    #[inline]
    fn see_to_kernel(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        if std::mem::take(&mut state.kernel_told)
            && let Some(node) = state.node.clone()
        {
            drop(state);
            stack::on_own(|| node.progress_kernel());
            state = lock(&self.state);
        }
        state
    }

    /// Waits while no member has a ring: the kernel answers. `None`: only for us.
    fn wait_without_rings(
        &self,
        events: &mut [libc::epoll_event],
        left: Option<Duration>,
        until: Until,
    ) -> Result<Option<usize>> {
        let interrupted = sleep::is_interrupted(until.before, true);
        let scarce = self.is_scarce();
        let left = if interrupted { Some(Duration::ZERO) } else { soon(left, scarce) };
        let count = kernel::epoll_wait(self.fd.load(Ordering::Relaxed), events, left, until.mask)?;
        if count == 0 && interrupted {
            return Err(Errno(libc::EINTR));
        }
        if count == 0 && scarce && sleep::left(until.deadline) != Some(Duration::ZERO) {
            return Ok(None);
        }
        // Mostly nothing of ours is among them. A member may have got its ring meanwhile.
        let none_is_ours = !events[..count].iter().any(is_ours);
        if none_is_ours && !heirloom::are_left() {
            return Ok(Some(count));
        }
        let _inside = Inside::enter();
        let mut state = lock(&self.state);
        state.progress();
        let count = state.translate(events, count);
        state.add_inherited(&mut events[..count]);
        let count = count + state.collect(&mut events[count..]);
        Ok((none_is_ours || count > 0).then_some(count))
    }

    /// Sleeps once. Returns how many events there are then, and what became of the kernel's call; `None`: there is no place to
    /// sleep any more.
    fn sleep(
        &'static self,
        mut state: MutexGuard<'_, State>,
        events: &mut [libc::epoll_event],
        until: Until,
    ) -> Option<(usize, Result<usize>)> {
        let (berth, node) = (state.berth.clone()?, state.node.clone()?);
        // What another thread dispatches from here on changes the epoch. What it dispatched before is in the queue.
        let epoch = node.epoch();
        let then = state.order.now();
        let again = state.arm();
        state.progress();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let note = jump::note(What::Set(self));
        drop(state);
        let has_news = || {
            engine::see_to_links();
            lock(&self.state).has_news()
        };
        let is_cancelled = || signal::was_cancelled(until.before);
        let sleeps = berth.occupy() && !has_news() && node.epoch() == epoch && !is_cancelled();
        // Who leaves this sleep by a jump keeps nothing: if the set is closed meanwhile, its berth goes.
        let weak = Arc::downgrade(&berth);
        drop((berth, node));
        let mut outcome = Ok(0);
        if sleeps {
            let left = soon(sleep::left(until.deadline.into_iter().chain(again).min()), self.is_scarce());
            let set = self.fd.load(Ordering::Relaxed);
            outcome = sleep::in_kernel(|| kernel::epoll_wait(set, events, left, until.mask));
        }
        let found = outcome.unwrap_or(0);
        if jump::strike(note) {
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
            if let Some(berth) = weak.upgrade() {
                let mut tokens = Tokens::new();
                events[..found].iter().filter_map(berth_token).for_each(|token| tokens.push(token));
                berth.leave_with(&tokens);
            }
        }
        let mut state = lock(&self.state);
        state.looked = cpu::ticks();
        state.progress();
        if sleeps && outcome.is_ok() {
            state.order.asked_at(&then);
        }
        state.order.more |= found == events.len();
        let count = state.translate(events, found);
        if count > 0 {
            state.rouse();
        }
        let count = count + state.collect(&mut events[count..]);
        if count == 0 {
            // Woken for nothing that the program asked for: a peer may have changed its path, or want this side to.
            state.keep_up();
        }
        Some((count, outcome))
    }

    /// A sleep in it was left by a jump. What the kernel's call had taken out of the set by then is lost, though members with
    /// rings are registered for edges: everything is looked at.
    pub fn wakes(&self) {
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        let mut state = lock(&self.state);
        state.look_at_all();
        let berth = state.berth.clone();
        drop(state);
        if let Some(berth) = berth {
            sleep::look_at_all(&berth);
        }
    }
}
