//! Waiting for a VI without holding its lock.

use std::time::Duration;

use sidestep_shm::wait::{Patience, Waiter};
use sidestep_sys::clock;

use crate::{
    cq::Queue,
    descriptor::Completion,
    error::{Error, Result},
    vi::{ViCore, state::State},
};

/// Between looks at a VI that is not connected.
const UNCONNECTED: Duration = Duration::from_micros(100);

impl ViCore {
    pub(super) fn wait(&self, queue: Queue, deadline: Option<u64>) -> Result<Completion> {
        if self.lock().port.cq(queue).is_some() {
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
        let Some(trunk) = self.trunk() else {
            let left = deadline.map(|deadline| Duration::from_nanos(deadline.saturating_sub(clock::now())));
            return std::thread::sleep(left.unwrap_or(UNCONNECTED).min(UNCONNECTED));
        };
        trunk.touch();
        let news = || trunk.has_news();
        let looked = match self.waiter.try_lock() {
            Ok(mut waiter) => waiter.look(deadline, || trunk.peer_core(), news),
            Err(_) => Waiter::default().look(deadline, || trunk.peer_core(), news),
        };
        if looked {
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
}
