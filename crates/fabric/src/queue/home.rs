//! Where one side of a queue waits: at its node, or alone with the descriptors.

use std::{os::fd::BorrowedFd, sync::Arc};

use sidestep_shm::{
    doorbell::{Sleeper, Tokens},
    pair_bell::PairBell,
    passing::Lifeline,
    sleep_word::SleepWord,
    wait::Waiter,
    watch::WatchedWord,
};
use sidestep_sys::clock;

use crate::{
    endpoint::EndpointCore,
    error::{CloseReason, Error, Result},
    event::{EventQueue, SourceId},
    node::Node,
    tripwire::{Mode, Tripwire},
};

/// The means of waiting for one word of the own block.
#[derive(Debug)]
pub(crate) enum Home {
    /// In the process that made the connection.
    Node { node: Node, endpoint: Arc<EndpointCore>, tripwire: Tripwire },
    /// In another process of the same owner.
    Alone(Alone),
}

#[derive(Debug)]
pub(crate) struct Alone {
    pub(crate) watched: WatchedWord,
    pub(crate) sleep: SleepWord,
    pub(crate) sleeper: Sleeper,
    /// What the sleeper watches.
    bell: Arc<PairBell>,
    _lifeline: Arc<Lifeline>,
}

const LIFELINE: u64 = 1;

impl Alone {
    pub(crate) fn new(
        watched: WatchedWord,
        sleep: SleepWord,
        bell: Arc<PairBell>,
        lifeline: Arc<Lifeline>,
    ) -> Result<Alone> {
        use std::os::fd::AsFd;
        let sleeper = Sleeper::new()?;
        sleeper.add_doorbell(bell.as_fd(), 0)?;
        sleeper.add_hang_up(lifeline.as_fd(), LIFELINE)?;
        Ok(Alone { watched, sleep, sleeper, bell, _lifeline: lifeline })
    }

    fn sleep(&self, deadline: Option<u64>, news: &dyn Fn() -> bool) -> Result<()> {
        let mut tokens = Tokens::new();
        self.arm();
        if !news() {
            self.sleeper.sleep(deadline, &mut tokens)?;
        }
        self.watched.disarm();
        if tokens.contains(&LIFELINE) && !news() {
            return Err(Error::Closed(CloseReason::Died));
        }
        Ok(())
    }

    fn arm(&self) {
        self.watched.arm();
        self.bell.before_sleep();
        self.sleep.prepare();
    }
}

impl Home {
    /// Whether the connection is over.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        match self {
            Home::Node { endpoint, .. } => endpoint.check_open(),
            Home::Alone(_) => Ok(()),
        }
    }

    /// Makes this side of the queue an event source: it reports writes to its word, and the end of the connection.
    pub(crate) fn attach(&self, queue: &EventQueue, token: u64, mode: Mode) -> Result<(SourceId, Tripwire)> {
        let Home::Node { endpoint, tripwire, .. } = self else {
            return Err(Error::Unsupported("events of a queue that another process made"));
        };
        let own = tripwire.beside(mode)?;
        Ok((queue.attach_queue(&own, endpoint, token), own))
    }

    /// Reports to the event queue that this side is attached to, whatever the peer does.
    pub(crate) fn report(&self, source: &Tripwire) {
        source.core().fire();
        if let Home::Node { node, .. } = self {
            node.wake();
        }
    }

    /// The connection, in the process that made it.
    pub(crate) fn connection(&self) -> Result<(&Node, &Arc<EndpointCore>)> {
        match self {
            Home::Node { node, endpoint, .. } => Ok((node, endpoint)),
            Home::Alone(_) => Err(Error::Unsupported("a larger ring in another process than the first")),
        }
    }

    /// Whether the peer has offered a larger ring to send into.
    #[inline]
    pub(crate) fn has_larger_ring(&self) -> bool {
        matches!(self, Home::Node { endpoint, .. } if endpoint.has_larger_ring())
    }

    /// Lets the process see to other things; called now and then by a side that only ever polls.
    #[cold]
    pub(crate) fn breathe(&self) -> Result<()> {
        match self {
            Home::Node { node, .. } => _ = node.progress(),
            Home::Alone(alone) => {
                let mut tokens = Tokens::new();
                alone.sleeper.sleep(Some(0), &mut tokens)?;
                if tokens.contains(&LIFELINE) {
                    return Err(Error::Closed(CloseReason::Died));
                }
            }
        }
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
        // Where a peer cannot reach memory by itself, news comes with a poll.
        let served = match self {
            Home::Node { node, endpoint, .. } if node.peer(endpoint.peer()).is_served() => Some(node),
            _ => None,
        };
        loop {
            if waiter.look(deadline, peer_core, || news() || served.is_some_and(|node| node.progress() && news())) {
                return Ok(());
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Err(Error::TimedOut(what));
            }
            match self {
                Home::Alone(alone) => alone.sleep(deadline, news)?,
                Home::Node { node, endpoint, tripwire } => {
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
        }
    }

    /// For a caller that sleeps by itself: arms, and says whether it may sleep.
    pub(crate) fn prepare_wait(&self, news: &dyn Fn() -> bool) -> bool {
        match self {
            Home::Node { node, tripwire, .. } => {
                node.progress();
                tripwire.arm();
                // What is on the way to this node has not rung, and will not.
                if node.set_ringing_once() {
                    return false;
                }
            }
            Home::Alone(alone) => alone.arm(),
        }
        !news()
    }

    /// After such a sleep.
    pub(crate) fn finish_wait(&self) {
        match self {
            Home::Node { node, tripwire, .. } => {
                tripwire.disarm();
                node.finish_ringing();
            }
            Home::Alone(alone) => {
                alone.watched.disarm();
                // Empties the descriptor.
                let _ = alone.sleeper.sleep(Some(0), &mut Tokens::new());
            }
        }
    }

    /// When a caller that sleeps by itself must look again at the latest.
    pub(crate) fn deadline(&self) -> Option<u64> {
        match self {
            Home::Node { node, .. } => node.wait_deadline(),
            Home::Alone(_) => None,
        }
    }

    /// The descriptors to sleep on after `prepare_wait`: readable when there may be news.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        match self {
            Home::Node { node, .. } => node.sleep_descriptor(),
            Home::Alone(alone) => alone.sleeper.as_fd(),
        }
    }
}
