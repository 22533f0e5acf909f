//! What an RDMA queue holds, and how it is served.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use sidestep_sys::lock::{Mutex, MutexGuard};

use super::{
    RequestId,
    transfer::{Transfer, Turn},
    work::Work,
};
use crate::{
    error::{Error, Result},
    event::Subscription,
    link::Outcome,
    node::NodeCore,
    scheduler::{QUANTUM, Serve, Served},
};

#[derive(Debug)]
pub(crate) struct RdmaCore {
    pub(super) state: Mutex<State>,
    /// The last request that ended. Requests end in order.
    ended: AtomicU32,
    /// Requests that have ended, and their bytes.
    counted: AtomicU64,
    bytes: AtomicU64,
    pub(super) limit: usize,
    pub(super) subscription: Mutex<Option<Subscription>>,
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
            counted: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            limit,
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

    /// Takes requests that belong together, all or none. The id of the last one.
    pub(super) fn post(self: &Arc<Self>, node: &NodeCore, work: impl ExactSizeIterator<Item = Work>) -> Result<u32> {
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
                    Ok(()) => self.count(1, total),
                    Err(error) => state.failed = Some((id, error)),
                }
                self.end(id);
                drop(state);
                node.notify();
                return Ok(id);
            }
            state.requests.push_back(Transfer::new(id, work, 0));
        }
        if let (false, Some(transfer)) = (alone, state.requests.get_mut(first)) {
            transfer.group = total;
        }
        let last = state.last_posted;
        if first > 0 {
            let mut turn = Turn { left: QUANTUM, stalled: false };
            self.follow(&mut state, &mut turn);
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
        let mut turn = Turn { left: quantum, stalled: false };
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
                    let (id, len) = (transfer.id, transfer.work.len);
                    state.requests.pop_front();
                    state.asked = state.asked.saturating_sub(1);
                    moved = true;
                    self.count(1, len);
                    self.end(id);
                }
                Ok(false) => {
                    moved |= self.follow(state, &mut turn);
                    more = true;
                    break;
                }
                Err(error) => {
                    state.failed = Some((transfer.id, error));
                    state.drop_all();
                    self.end(state.last_posted);
                    moved = true;
                    break;
                }
            }
        }
        Served { moved, more, stalled: turn.stalled }
    }

    /// Ends the requests at the front of which the link has answered every piece. `true` if there were any.
    fn end_answered(&self, state: &mut State) -> bool {
        let mut last = None;
        while let Some(transfer) = state.requests.front().filter(|transfer| transfer.is_answered()) {
            last = Some(transfer.id);
            self.count(1, transfer.work.len);
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

    fn end(&self, id: u32) {
        self.ended.store(id, Ordering::Release);
        if let Some(subscription) = &*self.subscription.lock().expect("no panic while subscribed") {
            subscription.post();
        }
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

    /// Under the lock of the state: nobody else counts.
    fn count(&self, requests: u64, bytes: usize) {
        self.counted.store(self.counted.load(Ordering::Relaxed) + requests, Ordering::Relaxed);
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }

    /// Requests that have ended well, and their bytes.
    pub(super) fn counted(&self) -> (u64, u64) {
        (self.counted.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl State {
    /// Forgets all requests.
    pub(super) fn drop_all(&mut self) -> VecDeque<Transfer> {
        (self.asked, self.under_way) = (0, 0);
        std::mem::take(&mut self.requests)
    }
}
