//! Waiting for a VI without holding its lock: in a call of its own, or in the sleep of a caller that waits for other things, too.
//!
//! Such a caller sleeps on news of the NIC's node ([`Nic::node`]). It does, in this order: [`Vi::arm`]; its announcement to the
//! node that it sleeps; [`Vi::catch_up`], and a look at what it waits for; the sleep. If other threads wait in calls of their own for
//! VIs with the same peers, it does so for all VIs of the NIC, and keeps its [`Sleeper`]s from before the arming until after the sleep.

use std::sync::Arc;
use std::time::Duration;

use sidestep_shm::wait::{Patience, Waiter};
use sidestep_sys::clock;

use crate::{
    cq::Queue,
    descriptor::Completion,
    entry::LINE,
    error::{Error, Result},
    nic::Nic,
    trunk::Trunk,
    vi::{
        Vi, ViCore,
        state::{Alert, State},
    },
};

/// Between looks at a VI that is not connected.
const UNCONNECTED: Duration = Duration::from_micros(100);

/// Counts a thread that sleeps by itself. Without it, a wait of another thread that ends would take the arming away, and news
/// for this one would wake nobody.
#[derive(Debug)]
pub struct Sleeper(Arc<Trunk>);

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.leave_sleep();
    }
}

impl Vi {
    /// Whether a look at the receive queue may find something. Takes no lock.
    #[inline]
    pub fn has_arrivals(&self) -> bool {
        match self.core.first_trunk() {
            Some(trunk) => self.core.is_ready(Queue::Receive) || trunk.has_news(),
            None => true,
        }
    }

    /// Whether more has arrived than word of a few receives, which comes behind most messages. Takes no lock.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.core.first_trunk().is_none_or(|trunk| trunk.arrived() > LINE as u64)
    }

    /// Hears of every receive that completes, from whoever takes what has arrived: it is told under the lock of the VI, and calls
    /// nothing of it.
    pub fn set_alert(&self, alert: impl Fn() + Send + Sync + 'static) {
        self.core.lock().port.alert = Some(Box::new(Alert(Box::new(alert))));
    }

    /// From now on the next arrival from this peer, and the next room, is news of the node. Look again after this.
    pub fn arm(&self) {
        if let Some(trunk) = self.core.first_trunk() {
            trunk.arm();
        }
    }

    /// Takes what has arrived, also if another thread is at it: then it waits for that one.
    pub fn catch_up(&self) {
        if let Some(trunk) = self.core.first_trunk() {
            trunk.touch();
            trunk.poll(true);
        }
    }
}

impl Nic {
    /// Whether something may have arrived for some VI. Takes no lock of one.
    #[inline]
    pub fn has_arrivals(&self) -> bool {
        self.core.trunks.list().iter().any(|trunk| trunk.has_news())
    }

    /// Takes what has arrived for any VI.
    pub fn take_arrivals(&self) {
        self.core.trunks.poll(|| false);
    }

    /// Adds what a thread that is about to [`arm`](Self::arm) and sleep keeps meanwhile, one for each peer.
    pub fn add_sleepers(&self, sleepers: &mut Vec<Sleeper>) {
        sleepers.extend(self.core.trunks.list().iter().map(|trunk| {
            trunk.enter_sleep();
            Sleeper(trunk.clone())
        }));
    }

    /// Has the next arrival from any peer be news of the node; look again after this, with [`catch_up`](Self::catch_up).
    pub fn arm(&self) {
        self.core.trunks.list().iter().for_each(|trunk| trunk.arm());
    }

    /// Takes everything that has arrived for any VI, also if another thread is at it.
    pub fn catch_up(&self) {
        self.core.trunks.list().iter().for_each(|trunk| trunk.poll(true));
    }
}

impl ViCore {
    pub(super) fn wait(&self, queue: Queue, deadline: Option<u64>) -> Result<Completion> {
        if self.has_cq(queue) {
            return Err(Error::Invalid("waiting on a queue with a completion queue"));
        }
        loop {
            if let Some(completion) = self.poll(queue) {
                return Ok(completion);
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Err(Error::TimedOut);
            }
            self.wait_news(deadline, &mut |state| state.has_done(queue));
        }
    }

    /// Looks, and then sleeps, until `ready` or the deadline, or the connection is over; may return early.
    pub(super) fn wait_news(&self, deadline: Option<u64>, ready: &mut dyn FnMut(&mut State) -> bool) {
        // Mostly there is news soon: for that no lock is taken, and nothing is counted.
        let first = self.first_trunk();
        if first.is_some_and(|trunk| self.look(trunk, deadline)) {
            return;
        }
        let Some(trunk) = self.trunk() else {
            let left = deadline.map(|deadline| Duration::from_nanos(deadline.saturating_sub(clock::now())));
            return std::thread::sleep(left.unwrap_or(UNCONNECTED).min(UNCONNECTED));
        };
        if first.is_none() && self.look(&trunk, deadline) {
            return;
        }
        trunk.enter_sleep();
        // The deadline is looked at by the caller, and any other failure by the next look.
        let _ = self.nic.node.wait_for(&mut Waiter::with(Patience::NONE), deadline, &mut || {
            trunk.arm();
            trunk.poll(true);
            self.nic.see_endings();
            let mut state = self.lock();
            (state.line.is_none() || ready(&mut state)).then_some(())
        });
        trunk.leave_sleep();
    }

    /// Looks for news for as long as that pays.
    fn look(&self, trunk: &Trunk, deadline: Option<u64>) -> bool {
        trunk.touch();
        let news = || trunk.has_news();
        match self.waiter.try_lock() {
            Some(mut waiter) => waiter.look(deadline, || trunk.peer_core(), news),
            None => Waiter::default().look(deadline, || trunk.peer_core(), news),
        }
    }
}
