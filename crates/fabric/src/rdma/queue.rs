//! What an RDMA queue holds, and how it is served.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering, fence},
    },
};

use sidestep_sys::lock::{Mutex, MutexGuard};

use super::{
    RequestId,
    transfer::{Transfer, Turn},
    work::Work,
};
use crate::{
    aperture::{Aperture, Mapped},
    error::{Error, Result},
    event::Subscription,
    link::Outcome,
    node::NodeCore,
    scheduler::{QUANTUM, Serve, Served},
    tripwire::Access,
};

#[derive(Debug)]
pub(crate) struct RdmaCore {
    pub(super) state: Mutex<State>,
    /// The last request that ended. Requests end in order.
    ended: AtomicU32,
    /// Some request has failed. Set before that one ends.
    has_failed: AtomicBool,
    pub(super) limit: usize,
    /// Whether there is a subscription.
    reports: AtomicBool,
    subscription: Mutex<Option<Subscription>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) requests: VecDeque<Transfer>,
    pub(super) last_posted: u32,
    pub(super) failed: Option<(u32, Error)>,
    /// The last failure that was taken note of: what failed and why, and the last request that was flushed.
    pub(super) past: Option<(u32, Error, u32)>,
    /// Whether the scheduler knows of it.
    pub(super) active: bool,
    /// It was found empty, and stays with the scheduler until it is found so again: the next request may come at once.
    lingers: bool,
    /// Requests at the front of which all was asked of the link, as far as they were looked at.
    asked: usize,
    /// Pieces of all requests that the link has not answered.
    under_way: usize,
    /// What is put over a link that does not map is taken from here.
    buffer: Vec<u8>,
    pub(super) totals: Totals,
}

/// What a queue has done, by the way the bytes went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that have ended well.
    pub requests: u64,
    /// Bytes that this process copied to or from memory that is mapped.
    pub mapped_bytes: u64,
    /// Bytes that it copied through the kernel, to or from memory of a peer's program.
    pub reached_bytes: u64,
    /// Bytes that it asked the link for: their owner copies them.
    pub asked_bytes: u64,
}

/// Pieces of a queue's requests under way over a link that does not map.
const WINDOW: usize = 64;

impl Serve for RdmaCore {
    fn serve(self: &Arc<Self>, quantum: usize) -> Served {
        let mut state = self.lock();
        let mut served = self.serve_locked(&mut state, quantum);
        // Lazily: it is taken from the round only if it is still empty after all others have had their turn.
        let stays = served.more || !state.lingers;
        state.lingers = !served.more;
        state.active = stays;
        served.more = stays;
        served
    }
}

impl RdmaCore {
    /// With the number of its first request.
    pub(super) fn new(limit: usize, first: u32) -> RdmaCore {
        let before = first.wrapping_sub(1);
        RdmaCore {
            state: Mutex::new(State { last_posted: before, ..State::default() }),
            ended: AtomicU32::new(before),
            has_failed: AtomicBool::new(false),
            limit,
            reports: AtomicBool::new(false),
            subscription: Mutex::new(None),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in an RDMA queue")
    }

    pub(super) fn has_ended(&self, id: RequestId) -> bool {
        self.ended.load(Ordering::Acquire).wrapping_sub(id.0) < 1 << 31
    }

    pub(super) fn outcome(&self, id: RequestId) -> Result<bool> {
        if !self.has_ended(id) {
            return Ok(false);
        }
        if !self.has_failed.load(Ordering::Relaxed) {
            return Ok(true);
        }
        self.outcome_after_failure(id)
    }

    #[cold]
    fn outcome_after_failure(&self, id: RequestId) -> Result<bool> {
        let state = self.lock();
        let present = state.failed.as_ref().map(|(failed, error)| (*failed, error, state.last_posted));
        let past = state.past.as_ref().map(|(failed, error, last)| (*failed, error, *last));
        for (failed, error, last) in present.into_iter().chain(past) {
            if id.0 == failed {
                return Err(error.clone());
            }
            if id.0.wrapping_sub(failed) <= last.wrapping_sub(failed) {
                return Err(Error::Flushed(failed));
            }
        }
        Ok(true)
    }

    /// Does a request to mapped memory here and now, if nothing is before it. `None`: it is to be posted.
    #[inline]
    pub(super) fn do_at_once(
        &self,
        node: &NodeCore,
        target: &Aperture,
        (offset, len, access): (usize, usize, Access),
        act: impl FnOnce(&Mapped) -> Result<()>,
    ) -> Option<RequestId> {
        let mapped = target.mapped()?;
        let mut state = self.lock();
        let is_first = state.requests.is_empty() && state.failed.is_none();
        if !is_first || !node.scheduler.may_overtake(len, state.active) {
            return None;
        }
        let id = state.last_posted.wrapping_add(1);
        state.last_posted = id;
        match act(mapped) {
            Ok(()) => {
                target.fire(offset, len, access);
                state.totals.requests += 1;
                state.totals.mapped_bytes += len as u64;
            }
            Err(error) => self.fail(&mut state, id, error),
        }
        self.end(id);
        drop(state);
        node.notify();
        Some(RequestId(id))
    }

    /// Takes requests that belong together, all or none. The id of the last one.
    pub(super) fn post<'w>(
        self: &Arc<Self>,
        node: &NodeCore,
        work: impl ExactSizeIterator<Item = Work<'w>>,
    ) -> Result<u32> {
        let mut state = self.lock();
        if let Some((id, _)) = &state.failed {
            return Err(Error::Flushed(*id));
        }
        if state.requests.len() + work.len() > self.limit {
            return Err(Error::Full { what: "the RDMA queue", limit: self.limit });
        }
        let (first, alone) = (state.requests.len(), work.len() == 1);
        let mut total = 0;
        for work in work {
            let id = state.last_posted.wrapping_add(1);
            state.last_posted = id;
            total += work.len;
            // Nothing before it, and memory that is mapped: it is done here and now.
            if alone && first == 0 && node.scheduler.may_overtake(total, state.active) && work.is_mapped() {
                match work.carry_out() {
                    Ok(()) => {
                        state.totals.requests += 1;
                        state.totals.mapped_bytes += total as u64;
                    }
                    Err(error) => self.fail(&mut state, id, error),
                }
                self.end(id);
                drop(state);
                node.notify();
                return Ok(id);
            }
            state.requests.push_back(Transfer::new(id, work.into_owned(), 0));
        }
        if let (false, Some(transfer)) = (alone, state.requests.get_mut(first)) {
            transfer.group = total;
        }
        let last = state.last_posted;
        if first > 0 {
            let mut turn = Turn::new(QUANTUM);
            self.follow(&mut state, &mut turn);
            state.totals.add(&turn);
            node.scheduler.note_stalled(turn.stalled);
            return Ok(last);
        }
        // While others wait for their turn, it waits for its own, unless the link does the work.
        let begins = node.scheduler.may_overtake(total, state.active) || !state.requests[0].is_done_here();
        let served = match begins {
            true => self.serve_locked(&mut state, QUANTUM),
            false => Served { more: true, ..Served::default() },
        };
        if served.more {
            state.lingers = false;
            node.scheduler.note_stalled(served.stalled);
            if !std::mem::replace(&mut state.active, true) {
                node.scheduler.activate(self.clone());
            }
        }
        drop(state);
        node.notify();
        Ok(last)
    }

    /// Does up to `quantum` bytes of work.
    fn serve_locked(self: &Arc<Self>, state: &mut State, quantum: usize) -> Served {
        let mut turn = Turn::new(quantum);
        let mut moved = self.end_answered(state);
        let mut more = false;
        while let Some(transfer) = state.requests.front_mut() {
            // A group that fits into a turn is not begun at the end of one.
            let splits = turn.left < transfer.group && transfer.group <= quantum;
            if turn.left == 0 || splits && transfer.is_new() && turn.left < quantum {
                more = true;
                break;
            }
            let before = transfer.mark();
            let step = transfer.advance(self, &mut state.buffer, WINDOW, &mut turn);
            moved |= transfer.mark() != before;
            state.under_way += transfer.outstanding - before.1;
            match step {
                Ok(true) => {
                    let id = transfer.id;
                    state.requests.pop_front();
                    state.asked = state.asked.saturating_sub(1);
                    moved = true;
                    state.totals.requests += 1;
                    self.end(id);
                }
                Ok(false) => {
                    moved |= self.follow(state, &mut turn);
                    more = true;
                    break;
                }
                Err(error) => {
                    let id = transfer.id;
                    self.fail(state, id, error);
                    state.drop_all();
                    self.end(state.last_posted);
                    moved = true;
                    break;
                }
            }
        }
        state.totals.add(&turn);
        Served { moved, more, stalled: turn.stalled }
    }

    /// Ends the requests at the front of which the link has answered every piece. `true` if there were any.
    fn end_answered(&self, state: &mut State) -> bool {
        let mut last = None;
        while let Some(transfer) = state.requests.front().filter(|transfer| transfer.is_answered()) {
            last = Some(transfer.id);
            state.totals.requests += 1;
            state.requests.pop_front();
            state.asked = state.asked.saturating_sub(1);
        }
        last.inspect(|id| self.end(*id)).is_some()
    }

    /// Begins requests behind the first, which waits for the link. The link keeps their order; and a region whose owner
    /// refuses one of them refuses the later ones too, so none is carried out behind one that fails. `true` if any began.
    fn follow(self: &Arc<Self>, state: &mut State, turn: &mut Turn) -> bool {
        if state.requests.back().is_some_and(Transfer::is_under_way) {
            return false;
        }
        let State { requests, buffer, asked, under_way, .. } = state;
        let asks = |transfer: &Transfer| transfer.outstanding > 0 || transfer.is_begun();
        let first = requests.front().filter(|first| asks(first) && !first.is_mapped());
        let Some(first) = first.map(|first| first.work.target.names()) else { return false };
        let mut moved = false;
        let mut fetches = false;
        for (index, transfer) in requests.iter_mut().enumerate().skip(*asked) {
            // What a read or an atomic brings may be what a later write sends.
            let waits = fetches && matches!(transfer.work.operation, super::operation::Operation::Write(_));
            if waits || transfer.is_mapped() || transfer.work.target.names() != first {
                break;
            }
            fetches |= transfer.work.operation.fetches();
            if index > 0 && !transfer.is_under_way() {
                let before = transfer.mark();
                let window = WINDOW.saturating_sub(*under_way - before.1);
                transfer.ask_ahead(self, buffer, window, turn);
                *under_way += transfer.outstanding - before.1;
                moved |= transfer.mark() != before;
            }
            if !transfer.is_begun() || *under_way >= WINDOW {
                break;
            }
            if !fetches {
                *asked = index + 1;
            }
        }
        moved
    }

    fn fail(&self, state: &mut State, id: u32, error: Error) {
        state.failed = Some((id, error));
        self.has_failed.store(true, Ordering::Relaxed);
    }

    #[inline]
    fn end(&self, id: u32) {
        // SeqCst, both: either this sees the subscription, or whoever has subscribed and looks afterwards sees the end.
        self.ended.swap(id, Ordering::SeqCst);
        if self.reports.load(Ordering::SeqCst) {
            self.report();
        }
    }

    fn report(&self) {
        if let Some(subscription) = &*self.subscription.lock().expect("no panic while subscribed") {
            subscription.post();
        }
    }

    pub(super) fn subscribe(&self, subscription: Subscription) {
        *self.subscription.lock().expect("no panic while subscribed") = Some(subscription);
        self.reports.store(true, Ordering::SeqCst);
        // Pairs with `end`.
        fence(Ordering::SeqCst);
    }

    /// The link has answered the piece of request `id` that starts at `at`. A late answer to one that was flushed finds
    /// nobody.
    pub(crate) fn completed(&self, id: u32, at: usize, outcome: Outcome) {
        let mut state = self.lock();
        let State { requests, asked, under_way, .. } = &mut *state;
        let Some(first) = requests.front().map(|first| first.id) else { return };
        let Some(transfer) = requests.get_mut(id.wrapping_sub(first) as usize) else { return };
        if transfer.outstanding > 0 {
            transfer.outstanding -= 1;
            *under_way -= 1;
        }
        if !transfer.answered(at, outcome) {
            // Nothing behind it begins any more.
            *asked = 0;
        }
    }
}

impl Totals {
    fn add(&mut self, turn: &Turn) {
        self.mapped_bytes += turn.mapped as u64;
        self.reached_bytes += turn.reached as u64;
        self.asked_bytes += turn.asked as u64;
    }
}

impl State {
    /// Forgets all requests.
    pub(super) fn drop_all(&mut self) -> VecDeque<Transfer> {
        (self.asked, self.under_way) = (0, 0);
        std::mem::take(&mut self.requests)
    }
}
