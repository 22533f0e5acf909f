//! Where one side of a queue waits: at its node, for one word of its block.

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
};

use sidestep_shm::wait::Waiter;
use sidestep_sys::clock;

use crate::{
    berth::Berth,
    endpoint::EndpointCore,
    error::{Error, Result},
    event::{EventQueue, SourceId},
    node::Node,
    tripwire::{Mode, Tripwire},
};

/// The means of waiting for one word of the own block.
#[derive(Debug)]
pub(crate) struct Home {
    pub(super) node: Node,
    pub(super) endpoint: Arc<EndpointCore>,
    pub(super) tripwire: Tripwire,
    /// Where a caller sleeps by itself. Threads that sleep at the node have another place, so neither takes a ring from the
    /// other.
    outside: Option<Outside>,
}

#[derive(Debug)]
struct Outside {
    berth: Berth,
    /// A caller sleeps, or is about to.
    is_occupied: bool,
}

impl Home {
    pub(super) fn new(node: Node, endpoint: Arc<EndpointCore>, tripwire: Tripwire) -> Home {
        Home { node, endpoint, tripwire, outside: None }
    }

    /// Whether the connection is over.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        self.endpoint.check_open()
    }

    /// Makes this side of the queue an event source: it reports writes to its word, and the end of the connection.
    pub(crate) fn attach(&self, queue: &EventQueue, token: u64, mode: Mode) -> Result<(SourceId, Tripwire)> {
        let own = self.tripwire.beside(mode)?;
        Ok((queue.attach_queue(&own, &self.endpoint, token), own))
    }

    /// Reports to the event queue that this side is attached to, whatever the peer does.
    pub(crate) fn report(&self, source: &Tripwire) {
        source.core().fire();
        self.node.wake();
    }

    /// Whether the peer has offered a larger ring to send into.
    #[inline]
    pub(crate) fn has_larger_ring(&self) -> bool {
        self.endpoint.has_larger_ring()
    }

    /// Lets the process see to other things; called now and then by a side that only ever polls.
    #[cold]
    pub(crate) fn breathe(&self) -> Result<()> {
        self.node.progress();
        self.check_open()
    }

    /// Waits until `news`: looks, then arms, looks again and sleeps. While it looks nothing is armed, so a peer that
    /// answers soon makes no more than a store.
    pub(crate) fn wait(
        &self,
        waiter: &mut Waiter,
        deadline: Option<u64>,
        what: &'static str,
        peer_core: &dyn Fn() -> u32,
        news: &dyn Fn() -> bool,
    ) -> Result<()> {
        let Home { node, endpoint, tripwire, .. } = self;
        // Where a peer cannot reach memory by itself, news comes with a poll.
        let is_served = node.peer(endpoint.peer()).is_served();
        loop {
            if waiter.look(deadline, peer_core, || news() || is_served && node.progress() && news()) {
                return Ok(());
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Err(Error::TimedOut(what));
            }
            node.progress();
            if news() {
                return Ok(());
            }
            endpoint.check_open()?;
            tripwire.arm();
            let at_once = node.block(deadline, &mut || Ok(news().then_some(())))?;
            // A sleep that ended with news was ended by the firing, which has cleared the bit; its event is taken
            // by the next progress.
            if at_once.is_none() && news() {
                return Ok(());
            }
            tripwire.disarm();
        }
    }

    /// For a caller that sleeps by itself: arms, and says whether it may sleep.
    pub(crate) fn prepare_wait(&mut self, news: &dyn Fn() -> bool) -> Result<bool> {
        self.node.progress();
        self.outside()?;
        self.tripwire.arm();
        let Some(Outside { berth, is_occupied }) = &mut self.outside else { return Ok(false) };
        // What is on the way to this node has not rung, and will not.
        let is_quiet = if *is_occupied { !self.node.has_news() } else { berth.occupy() };
        *is_occupied = true;
        let may_sleep = is_quiet && !news();
        if !may_sleep {
            self.finish_wait();
        }
        Ok(may_sleep)
    }

    /// After such a sleep.
    pub(crate) fn finish_wait(&mut self) {
        self.tripwire.disarm();
        if let Some(outside) = &mut self.outside
            && std::mem::take(&mut outside.is_occupied)
        {
            outside.berth.leave();
        }
    }

    /// When a caller that sleeps by itself must look again at the latest.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.node.wait_deadline()
    }

    /// The descriptor to sleep on after `prepare_wait`: readable when there may be news.
    pub(crate) fn descriptor(&mut self) -> Result<BorrowedFd<'_>> {
        Ok(self.outside()?.berth.as_fd())
    }

    fn outside(&mut self) -> Result<&mut Outside> {
        match &mut self.outside {
            Some(outside) => Ok(outside),
            none => Ok(none.insert(Outside { berth: self.node.berth()?, is_occupied: false })),
        }
    }
}
