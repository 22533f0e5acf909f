//! RDMA queues: transfers that are asked for now and happen in order.
//!
//! Within a queue requests take effect in the order they were posted, and an immediate becomes visible after the write
//! before it. A post carries out as much as one quantum allows at once; the rest is done by the scheduler, which every
//! poll and wait of the process runs, so that a large transfer of one queue does not hold up the others.
//!
//! A request that fails stops its queue: what follows is flushed, until [`RdmaQueue::reset`].

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering, fence},
    },
};

use sidestep_shm::{
    last_word::{WORD, first_part},
    wait::Waiter,
};
use sidestep_sys::lock::{Mutex, MutexGuard};

use crate::{
    aperture::Aperture,
    cookie::Rights,
    error::{Error, Result},
    event::Subscription,
    link::{Atomic, Capabilities, MAX_GATHERED, Outcome, Request},
    node::Node,
    region::{RegionSlice, perform},
    scheduler::QUANTUM,
    ticket::Completion,
    tripwire::Access,
};

/// Asynchronous transfers in order. Clones are the same queue.
#[derive(Debug, Clone)]
pub struct RdmaQueue {
    core: Arc<RdmaCore>,
    node: Node,
    _handle: Arc<Handle>,
}

/// The last handle takes the requests that have not ended with it.
#[derive(Debug)]
struct Handle(Arc<RdmaCore>);

/// Names a posted request; numbers wrap around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(u32);

#[derive(Debug)]
pub(crate) struct RdmaCore {
    state: Mutex<State>,
    /// The last request that ended. Requests end in order.
    ended: AtomicU32,
    limit: usize,
    subscription: Mutex<Option<Subscription>>,
}

#[derive(Debug)]
struct State {
    requests: VecDeque<Transfer>,
    last_posted: u32,
    failed: Option<(u32, Error)>,
    /// The last failure that was taken note of: what failed and why, and the last request that was flushed.
    past: Option<(u32, Error, u32)>,
    /// Whether the scheduler knows of it.
    active: bool,
    /// Requests at the front of which all was asked of the link, as far as they were looked at.
    asked: usize,
    /// Pieces of all requests that the link has not answered.
    under_way: usize,
    /// What is put over a link that does not map is taken from here.
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Transfer {
    id: u32,
    operation: Operation,
    target: Aperture,
    offset: usize,
    len: usize,
    /// Bytes moved, or asked of the link.
    begun: usize,
    /// Pieces the link has not answered.
    outstanding: usize,
    error: Option<Error>,
}

#[derive(Debug)]
enum Operation {
    Write(RegionSlice),
    Immediate(u32),
    Read(RegionSlice),
    Atomic(Atomic, RegionSlice),
}

/// Pieces of a queue's requests under way over a link that does not map.
const WINDOW: usize = 64;

impl RdmaQueue {
    /// A queue for at most `limit` requests that have not ended.
    pub fn new(node: &Node, limit: usize) -> RdmaQueue {
        let state = State {
            requests: VecDeque::new(),
            last_posted: 0,
            failed: None,
            past: None,
            active: false,
            asked: 0,
            under_way: 0,
            buffer: Vec::new(),
        };
        let core = RdmaCore {
            state: Mutex::new(state),
            ended: AtomicU32::new(0),
            limit: limit.clamp(1, 1 << 20),
            subscription: Mutex::new(None),
        };
        let core = Arc::new(core);
        RdmaQueue { _handle: Arc::new(Handle(core.clone())), core, node: node.clone() }
    }

    /// As if `id` were the last request: for tests of the wrap-around.
    #[doc(hidden)]
    pub fn start_after(&self, id: u32) {
        self.core.lock().last_posted = id;
        self.core.ended.store(id, Ordering::Release);
    }

    /// Writes `source` to `offset` of the target. The source must not change until the request has ended.
    pub fn write(&self, source: &RegionSlice, target: &Aperture, offset: usize) -> Result<RequestId> {
        target.check(offset, source.len(), Rights::WRITE)?;
        self.post(Operation::Write(source.clone()), target, offset, source.len())
    }

    /// Stores one 32-bit word in queue order, without a source buffer: a flag or pointer after its payload.
    pub fn immediate(&self, target: &Aperture, offset: usize, value: u32) -> Result<RequestId> {
        target.check(offset, 4, Rights::WRITE)?;
        aligned(offset, 4)?;
        self.post(Operation::Immediate(value), target, offset, 4)
    }

    /// Reads from `offset` of the target into `into`.
    pub fn read(&self, target: &Aperture, offset: usize, into: &RegionSlice) -> Result<RequestId> {
        target.check(offset, into.len(), Rights::READ)?;
        self.post(Operation::Read(into.clone()), target, offset, into.len())
    }

    /// Stores `new` in the 64-bit word at `offset` if it holds `expected`; what it held is put into `into`.
    pub fn compare_swap(
        &self,
        target: &Aperture,
        offset: usize,
        expected: u64,
        new: u64,
        into: &RegionSlice,
    ) -> Result<RequestId> {
        self.atomic(target, offset, Atomic::CompareSwap { expected, new }, into)
    }

    /// Adds to the 64-bit word at `offset`; what it held is put into `into`.
    pub fn fetch_add(&self, target: &Aperture, offset: usize, value: u64, into: &RegionSlice) -> Result<RequestId> {
        self.atomic(target, offset, Atomic::FetchAdd(value), into)
    }

    fn atomic(&self, target: &Aperture, offset: usize, atomic: Atomic, into: &RegionSlice) -> Result<RequestId> {
        target.check(offset, 8, Rights::ATOMIC)?;
        aligned(offset, 8)?;
        into.word64(0)?;
        self.post(Operation::Atomic(atomic, into.clone()), target, offset, 8)
    }

    /// Whether a request has ended; an error if it failed or was flushed.
    pub fn test(&self, id: RequestId) -> Result<bool> {
        if !self.core.has_ended(id) {
            self.node.core().link().push();
            self.node.progress();
        }
        self.core.outcome(id)
    }

    /// Waits until a request has ended.
    pub fn wait(&self, id: RequestId, deadline: Option<u64>) -> Result<()> {
        if self.core.outcome(id)? {
            return Ok(());
        }
        let mut waiter = Waiter::default();
        self.node.wait_until(&mut waiter, deadline, "a transfer", &mut || {
            self.node.core().link().push();
            // Work this process does itself is no reason to sleep.
            while self.node.core().scheduler.run(&self.node) {
                if self.core.has_ended(id) {
                    break;
                }
            }
            Ok(self.core.outcome(id)?.then_some(()))
        })
    }

    /// Waits until another request can be posted.
    pub fn wait_space(&self, deadline: Option<u64>) -> Result<()> {
        let mut waiter = Waiter::default();
        self.node.wait_until(&mut waiter, deadline, "space in an RDMA queue", &mut || {
            self.node.core().link().push();
            self.node.core().scheduler.run(&self.node);
            let state = self.core.lock();
            if let Some((id, _)) = &state.failed {
                return Err(Error::Flushed(*id));
            }
            Ok((state.requests.len() < self.core.limit).then_some(()))
        })
    }

    /// Takes note of a failure and lets the queue go on.
    pub fn reset(&self) {
        let mut state = self.core.lock();
        if let Some((id, error)) = state.failed.take() {
            state.past = Some((id, error, state.last_posted));
        }
    }

    pub(crate) fn subscribe(&self, subscription: Subscription) {
        *self.core.subscription.lock().expect("no panic while subscribed") = Some(subscription);
    }

    fn post(&self, operation: Operation, target: &Aperture, offset: usize, len: usize) -> Result<RequestId> {
        let mut state = self.core.lock();
        if let Some((id, _)) = &state.failed {
            return Err(Error::Flushed(*id));
        }
        if state.requests.len() >= self.core.limit {
            return Err(Error::Full { what: "the RDMA queue", limit: self.core.limit });
        }
        let id = state.last_posted.wrapping_add(1);
        state.last_posted = id;
        // Nothing before it, and memory that is mapped: it is done here and now.
        if state.requests.is_empty() && len <= QUANTUM && operation.is_direct(target) {
            match operation.move_bytes(target, offset, 0, len) {
                Ok(()) => operation.report(target, offset, len),
                Err(error) => state.failed = Some((id, error)),
            }
            self.core.end(id);
            drop(state);
            self.node.notify();
            return Ok(RequestId(id));
        }
        state.requests.push_back(Transfer {
            id,
            operation,
            target: target.clone(),
            offset,
            len,
            begun: 0,
            outstanding: 0,
            error: None,
        });
        if !state.active {
            let (_, more) = self.core.serve_locked(&mut state, QUANTUM);
            if more {
                state.active = true;
                self.node.core().scheduler.activate(self.core.clone());
            }
            drop(state);
            self.node.notify();
        } else {
            self.core.follow(&mut state, &mut { QUANTUM });
        }
        Ok(RequestId(id))
    }
}

impl Operation {
    /// Whether this process does it by itself.
    fn is_direct(&self, target: &Aperture) -> bool {
        match self {
            Operation::Read(_) => target.reads_directly(),
            _ => target.is_mapped(),
        }
    }

    /// Lets the owner know of what it watches, when bytes at `offset` of memory that is mapped have been moved.
    fn report(&self, target: &Aperture, offset: usize, len: usize) {
        match self {
            Operation::Read(_) if !target.is_mapped() => target.report_reads(offset, len),
            Operation::Read(_) => target.fire(offset, len, Access::Read),
            _ => target.fire(offset, len, Access::Write),
        }
    }

    /// Moves bytes `from .. from + count` of the request, at `offset` of memory that is mapped.
    #[inline]
    fn move_bytes(&self, target: &Aperture, offset: usize, from: usize, count: usize) -> Result<()> {
        let Some(mapped) = target.mapped() else {
            if let (Operation::Read(into), Some(readable)) = (self, target.readable()) {
                readable.copy_to(offset + from, &into.core().data, into.offset() + from, count)?;
            }
            return Ok(());
        };
        match self {
            Operation::Write(source) => {
                let (data, at) = (&source.core().data, source.offset() + from);
                mapped.data.copy_from_in_order(offset + from, data, at, count)?;
            }
            Operation::Read(into) => {
                let (data, at) = (&into.core().data, into.offset() + from);
                data.copy_from(at, &mapped.data, offset + from, count)?;
                // The reads of a queue are in order. Pairs with the owner's Release stores.
                fence(Ordering::Acquire);
            }
            // Pairs with the owner's Acquire load: what the queue wrote before is visible.
            Operation::Immediate(value) => mapped.memory.word32(offset)?.store(*value, Ordering::Release),
            Operation::Atomic(atomic, into) => {
                let held = perform(&mapped.memory.word64(offset)?, *atomic);
                into.word64(0)?.store(held, Ordering::Release);
            }
        }
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        (state.asked, state.under_way) = (0, 0);
        let requests = std::mem::take(&mut state.requests);
        drop(state);
        drop(requests);
    }
}

impl RdmaCore {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in an RDMA queue")
    }

    fn has_ended(&self, id: RequestId) -> bool {
        self.ended.load(Ordering::Acquire).wrapping_sub(id.0) < 1 << 31
    }

    fn outcome(&self, id: RequestId) -> Result<bool> {
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

    /// Does up to `quantum` bytes of work. (whether anything moved, whether work is left)
    pub(crate) fn serve(self: &Arc<Self>, _node: &Node, quantum: usize) -> (bool, bool) {
        let mut state = self.lock();
        let (moved, more) = self.serve_locked(&mut state, quantum);
        state.active = more;
        (moved, more)
    }

    fn serve_locked(self: &Arc<Self>, state: &mut State, quantum: usize) -> (bool, bool) {
        let mut left = quantum;
        let mut moved = self.end_answered(state);
        while let Some(transfer) = state.requests.front_mut() {
            let before = (transfer.begun, transfer.outstanding);
            let step = transfer.advance(self, &mut state.buffer, WINDOW, &mut left);
            moved |= (transfer.begun, transfer.outstanding) != before;
            state.under_way += transfer.outstanding - before.1;
            match step {
                Ok(true) => {
                    let id = transfer.id;
                    state.requests.pop_front();
                    state.asked = state.asked.saturating_sub(1);
                    moved = true;
                    self.end(id);
                }
                Ok(false) => return (self.follow(state, &mut left) || moved, true),
                Err(error) => {
                    state.failed = Some((transfer.id, error));
                    state.requests.clear();
                    (state.asked, state.under_way) = (0, 0);
                    self.end(state.last_posted);
                    return (true, false);
                }
            }
            if left == 0 && !state.requests.is_empty() {
                return (moved, true);
            }
        }
        (moved, false)
    }

    /// Ends the requests at the front of which the link has answered every piece. `true` if there were any.
    fn end_answered(&self, state: &mut State) -> bool {
        let mut last = None;
        while let Some(transfer) = state.requests.front().filter(|transfer| transfer.is_answered()) {
            last = Some(transfer.id);
            state.requests.pop_front();
            state.asked = state.asked.saturating_sub(1);
        }
        last.inspect(|id| self.end(*id)).is_some()
    }

    /// Begins requests behind the first, which waits for the link. The link keeps their order; and a region whose owner
    /// refuses one of them refuses the later ones too, so none is carried out behind one that fails. `true` if any began.
    fn follow(self: &Arc<Self>, state: &mut State, left: &mut usize) -> bool {
        if state.requests.back().is_some_and(Transfer::is_under_way) {
            return false;
        }
        let State { requests, buffer, asked, under_way, .. } = state;
        let Some(first) = requests.front().filter(|first| !first.is_direct()).map(|first| first.target.names()) else {
            return false;
        };
        let mut moved = false;
        let mut fetches = false;
        for (index, transfer) in requests.iter_mut().enumerate().skip(*asked) {
            // What a read or an atomic brings may be what a later write sends.
            let waits = fetches && matches!(transfer.operation, Operation::Write(_));
            if waits || transfer.is_direct() || transfer.target.names() != first {
                break;
            }
            fetches |= matches!(transfer.operation, Operation::Read(_) | Operation::Atomic(..));
            if index > 0 && !transfer.is_under_way() {
                let (begun, outstanding) = (transfer.begun, transfer.outstanding);
                let window = WINDOW.saturating_sub(*under_way - outstanding);
                let advanced = transfer.advance(self, buffer, window, left);
                *under_way += transfer.outstanding - outstanding;
                moved |= transfer.begun != begun;
                // Its failure is told when its turn has come.
                if let Err(error) = advanced {
                    transfer.error = Some(error);
                }
            }
            if transfer.begun < transfer.len || transfer.error.is_some() || *under_way >= WINDOW {
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
        let placed = match (outcome, &transfer.operation) {
            (Outcome::Refused(refusal), _) => Err(refusal.into()),
            (Outcome::Closed(reason), _) => Err(reason.into()),
            (Outcome::Failed(error), _) => Err(error),
            (Outcome::Bytes(bytes), Operation::Read(into)) => {
                into.span().and_then(|span| Ok(span.copy_in(at, &bytes)?))
            }
            (Outcome::Value(held), Operation::Atomic(_, into)) => {
                into.word64(0).map(|word| word.store(held, Ordering::Release))
            }
            _ => Ok(()),
        };
        if let Err(error) = placed {
            transfer.error.get_or_insert(error);
            // Nothing behind it begins any more.
            *asked = 0;
        }
    }
}

impl Transfer {
    /// Whether all of it was asked of the link, and nothing is known of its end.
    fn is_under_way(&self) -> bool {
        self.begun == self.len && self.outstanding > 0 && self.error.is_none()
    }

    fn is_direct(&self) -> bool {
        self.operation.is_direct(&self.target)
    }

    /// Whether the link has carried out all of it.
    fn is_answered(&self) -> bool {
        self.begun == self.len && self.outstanding == 0 && self.error.is_none() && !self.is_direct()
    }

    /// Goes on. `true` when the request has ended.
    fn advance(
        &mut self,
        queue: &Arc<RdmaCore>,
        buffer: &mut Vec<u8>,
        window: usize,
        left: &mut usize,
    ) -> Result<bool> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        // Settled again at every step: the owner may have revoked meanwhile.
        self.target.check(self.offset, self.len, Rights::NONE)?;
        if self.is_direct() { self.advance_direct(left) } else { self.advance_proxied(queue, buffer, window) }
    }

    fn advance_direct(&mut self, left: &mut usize) -> Result<bool> {
        // A word is moved whole, and so is the last one of a longer transfer.
        let rest = self.len - self.begun;
        let count = if rest <= 2 * WORD { rest } else { first_part(rest, (*left).max(2 * WORD)) };
        *left -= count.min(*left);
        self.operation.move_bytes(&self.target, self.offset, self.begun, count)?;
        self.begun += count;
        if self.begun < self.len {
            return Ok(false);
        }
        self.operation.report(&self.target, self.offset, self.len);
        Ok(true)
    }

    fn advance_proxied(&mut self, queue: &Arc<RdmaCore>, buffer: &mut Vec<u8>, window: usize) -> Result<bool> {
        let Capabilities { max_transfer, gathers, .. } = self.target.node().core().link().capabilities();
        let limit = if gathers && matches!(self.operation, Operation::Write(_)) { MAX_GATHERED } else { max_transfer };
        while self.begun < self.len && self.outstanding < window {
            let count = first_part(self.len - self.begun, limit);
            let completion = Completion::Rdma(Arc::downgrade(queue), self.id, self.begun);
            match self.ask(count, buffer, completion) {
                Ok(()) => {}
                // The link takes no more for now.
                Err(Error::Full { .. }) => {
                    self.target.node().core().scheduler.note_stalled();
                    break;
                }
                Err(error) => return Err(error),
            }
            self.begun += count;
            self.outstanding += 1;
        }
        Ok(self.begun == self.len && self.outstanding == 0)
    }

    /// Asks the link for the next `count` bytes.
    fn ask(&self, count: usize, buffer: &mut Vec<u8>, completion: Completion) -> Result<()> {
        let (node, peer, cookie) = (self.target.node(), self.target.peer(), self.target.cookie());
        let offset = (self.offset + self.begun) as u64;
        let word;
        let request = match &self.operation {
            Operation::Write(source) => {
                if node.core().link().capabilities().gathers {
                    if count == source.len() {
                        return node.put(peer, cookie, offset, source, completion);
                    }
                    return node.put(peer, cookie, offset, &source.part(self.begun, count), completion);
                }
                if buffer.len() < count {
                    buffer.resize(count, 0);
                }
                source.span()?.copy_out(self.begun, &mut buffer[..count])?;
                Request::Put { offset, bytes: &buffer[..count] }
            }
            Operation::Immediate(value) => {
                word = value.to_le_bytes();
                Request::Put { offset, bytes: &word }
            }
            Operation::Read(_) => Request::Get { offset, len: count },
            Operation::Atomic(atomic, _) => Request::Atomic { offset, atomic: *atomic },
        };
        node.request(peer, cookie, request, completion)
    }
}

fn aligned(offset: usize, to: usize) -> Result<()> {
    if offset % to != 0 {
        return Err(crate::error::Refusal::Range { offset: offset as u64, len: to as u64 }.into());
    }
    Ok(())
}
