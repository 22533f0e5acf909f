//! Waiting for a VI without holding its lock, and serving one that nobody waits for.

use std::time::Duration;

use sidestep_shm::{clock, wait::Waiter};

use crate::{
    cq::Queue,
    descriptor::Completion,
    error::{Error, Result},
    vi::{
        UNCONNECTED, ViCore,
        state::{Loss, State},
    },
    wires::Monitors,
};

impl ViCore {
    /// As the service thread looks at it: with `arm`, the next news wakes that thread. `true` if anything came.
    pub(crate) fn serve(&self, arm: bool) -> bool {
        let mut state = self.lock();
        let before = (state.receives.done.len(), state.sends.done.len(), state.seen);
        if arm && state.wires.is_some() && state.port.receive_cq.is_none() {
            if state.port.sources.is_empty() {
                let queue = self.nic.service.queue.clone();
                state.attach_receives(&queue);
                state.attach_sends(&queue);
            } else if let Some(monitors) = state.monitors() {
                monitors.transfer.arrival().arm();
            }
        }
        self.pump(&mut state);
        if state.is_closed() {
            state.lose(Loss::LOST);
        }
        before != (state.receives.done.len(), state.sends.done.len(), state.seen)
    }

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
            self.wait_news(queue, deadline, &mut |state| !state.done(queue).is_empty());
        }
    }

    /// Looks, and then sleeps, until `ready` or the deadline; may return early.
    pub(super) fn wait_news(&self, queue: Queue, deadline: Option<u64>, ready: &mut dyn FnMut(&mut State) -> bool) {
        let (monitors, seen) = {
            let state = self.lock();
            (state.monitors(), (state.seen, state.seen_cookies))
        };
        let Some(monitors) = monitors else {
            let left = deadline.map(|deadline| Duration::from_nanos(deadline.saturating_sub(clock::now())));
            return std::thread::sleep(left.unwrap_or(UNCONNECTED).min(UNCONNECTED));
        };
        let Monitors { transfer, cookies } = &*monitors;
        let read = transfer.read();
        let news = || {
            transfer.written() != seen.0
                || queue == Queue::Send && (cookies.written() != seen.1 || transfer.read() != read)
        };
        let looked = match self.waiter.try_lock() {
            Ok(mut waiter) => waiter.look(deadline, || transfer.peer_core(), news),
            Err(_) => Waiter::default().look(deadline, || transfer.peer_core(), news),
        };
        if looked {
            return;
        }
        // The deadline is looked at by the caller, and any other failure by the next look.
        let _ = transfer.arrival().wait(deadline, || {
            if queue == Queue::Send {
                cookies.arrival().arm();
                transfer.space().arm();
            }
            let mut state = self.lock();
            self.pump(&mut state);
            if state.is_closed() {
                state.lose(Loss::LOST);
            }
            state.wires.is_none() || ready(&mut state)
        });
    }
}
