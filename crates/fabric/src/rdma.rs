//! RDMA queues: transfers that are asked for now and happen in order.
//!
//! Within a queue requests take effect in the order they were posted, and an immediate becomes visible after the write
//! before it. A post carries out as much as one quantum allows at once; the rest is done by the scheduler, which every
//! poll and wait of the process runs, so that a large transfer of one queue does not hold up the others.
//!
//! Requests that belong together are posted as a [`Group`]. A request may have several sources, or several places to put what
//! it reads.
//!
//! A request that fails stops its queue: what follows is flushed, until [`RdmaQueue::reset`].

mod operation;
mod pieces;
mod queue;
mod transfer;
mod work;

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{Ordering, fence},
    },
};

use sidestep_shm::wait::Waiter;

pub(crate) use self::queue::RdmaCore;
use self::work::Work;
pub use self::{queue::Totals, work::Group};
use crate::{
    aperture::{Aperture, Mapped},
    cookie::Rights,
    error::{Error, Result},
    event::Subscription,
    link::Atomic,
    node::Node,
    region::RegionSlice,
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

impl RdmaQueue {
    /// A queue for at most `limit` requests that have not ended.
    pub fn new(node: &Node, limit: usize) -> RdmaQueue {
        Self::numbered_from(node, limit, 1)
    }

    /// As [`new`](Self::new), with the number of the first request. Numbers wrap, and so may begin anywhere.
    pub fn numbered_from(node: &Node, limit: usize, first: u32) -> RdmaQueue {
        let core = Arc::new(RdmaCore::new(limit.clamp(1, 1 << 20), first));
        RdmaQueue { _handle: Arc::new(Handle(core.clone())), core, node: node.clone() }
    }

    /// Writes `source` to `offset` of the target. The source must not change until the request has ended.
    pub fn write(&self, source: &RegionSlice, target: &Aperture, offset: usize) -> Result<RequestId> {
        let len = source.len();
        target.check(offset, len, Rights::WRITE)?;
        let copy =
            |mapped: &Mapped| Ok(mapped.data.copy_from_in_order(offset, &source.core().data, source.offset(), len)?);
        match self.core.do_at_once(self.node.core(), target, (offset, len, Access::Write), copy) {
            Some(id) => Ok(id),
            None => self.gather(std::slice::from_ref(source), target, offset),
        }
    }

    /// Writes the sources, one after the other, to `offset` of the target, as one request.
    pub fn gather(&self, sources: &[RegionSlice], target: &Aperture, offset: usize) -> Result<RequestId> {
        self.post_one(Work::write(sources, Cow::Borrowed(target), offset)?)
    }

    /// Stores one 32-bit word in queue order, without a source buffer: a flag or pointer after its payload.
    pub fn immediate(&self, target: &Aperture, offset: usize, value: u32) -> Result<RequestId> {
        let work = Work::immediate(Cow::Borrowed(target), offset, value)?;
        // Pairs with the owner's Acquire load: what the queue wrote before is visible.
        let store = |mapped: &Mapped| Ok(mapped.memory.store32(offset, value, Ordering::Release)?);
        match self.core.do_at_once(self.node.core(), target, (offset, size_of::<u32>(), Access::Write), store) {
            Some(id) => Ok(id),
            None => self.post_one(work),
        }
    }

    /// Reads from `offset` of the target into `into`.
    pub fn read(&self, target: &Aperture, offset: usize, into: &RegionSlice) -> Result<RequestId> {
        let len = into.len();
        target.check(offset, len, Rights::READ)?;
        let copy = |mapped: &Mapped| {
            into.core().data.copy_from(into.offset(), &mapped.data, offset, len)?;
            // The reads of a queue are in order. Pairs with the owner's Release stores.
            fence(Ordering::Acquire);
            Ok(())
        };
        match self.core.do_at_once(self.node.core(), target, (offset, len, Access::Read), copy) {
            Some(id) => Ok(id),
            None => self.scatter(target, offset, std::slice::from_ref(into)),
        }
    }

    /// Reads from `offset` of the target into the slices, one after the other, as one request.
    pub fn scatter(&self, target: &Aperture, offset: usize, into: &[RegionSlice]) -> Result<RequestId> {
        self.post_one(Work::read(Cow::Borrowed(target), offset, into)?)
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
        self.post_one(Work::atomic(Cow::Borrowed(target), offset, Atomic::CompareSwap { expected, new }, into)?)
    }

    /// Adds to the 64-bit word at `offset`; what it held is put into `into`.
    pub fn fetch_add(&self, target: &Aperture, offset: usize, value: u64, into: &RegionSlice) -> Result<RequestId> {
        self.post_one(Work::atomic(Cow::Borrowed(target), offset, Atomic::FetchAdd(value), into)?)
    }

    /// Posts requests that belong together: all of them, or none if the queue has no room. The id is that of the last one,
    /// which ends after the others.
    pub fn post(&self, group: Group) -> Result<RequestId> {
        if group.is_empty() {
            return Err(Error::Size { what: "group of requests", must: "at least one", value: 0 });
        }
        self.core.post(self.node.core(), group.work.into_iter()).map(RequestId)
    }

    fn post_one(&self, work: Work<'_>) -> Result<RequestId> {
        self.core.post(self.node.core(), std::iter::once(work)).map(RequestId)
    }

    /// What the queue has done so far.
    pub fn totals(&self) -> Totals {
        self.core.lock().totals
    }

    /// Whether a request has ended; an error if it failed or was flushed.
    pub fn test(&self, id: RequestId) -> Result<bool> {
        if !self.core.has_ended(id) {
            self.push();
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
            self.push();
            // Work this process does itself is no reason to sleep.
            while self.node.core().scheduler.run() {
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
            self.push();
            self.node.core().scheduler.run();
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
        self.core.subscribe(subscription);
    }

    /// Lets the link put off nothing that a request may wait for.
    fn push(&self) {
        self.node.core().links.push();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let requests = self.0.lock().drop_all();
        drop(requests);
    }
}
