//! The wait of a call that moves bytes: how long it lasts, what ends it, and what the call gives then.

use std::sync::{Arc, atomic::Ordering};

use sidestep_stream::carrier::{Carrier, Watch};
use sidestep_sys::clock;

use crate::{
    kernel::{
        Errno, Result,
        signal::{self, Inside, Runs},
    },
    promotion::engine,
    readiness::{
        ring_is_next,
        sleep::{self, LastLook},
        switch_is_reached,
    },
    streams::Stream,
};

/// The wait of one call.
#[derive(Debug)]
pub(super) struct Wait {
    /// Handlers that had run when it began.
    pub before: Runs,
    nonblocking: bool,
    deadline: Option<u64>,
}

impl Wait {
    /// Of a call that begins now, in this direction.
    pub fn new(stream: &Stream, direction: usize, nonblocking: bool) -> Wait {
        let before = signal::runs();
        let timeout = stream.timeout(direction);
        Wait { before, nonblocking, deadline: (timeout != 0).then(|| clock::now() + timeout) }
    }

    /// Why a call that has nothing returns instead of sleeping, if it does.
    pub fn is_over(&self) -> Option<Errno> {
        if self.nonblocking {
            return Some(Errno(libc::EAGAIN));
        }
        if sleep::is_interrupted(self.before, self.deadline.is_some()) {
            return Some(Errno(libc::EINTR));
        }
        self.deadline.filter(|deadline| clock::now() >= *deadline).map(|_| Errno(libc::EAGAIN))
    }

    /// Whether the call is to be made anew, after such a sleep. With the thread outside, what was put off has run.
    pub fn restarts(&self, slept: Result<usize>) -> bool {
        let ended = slept == Err(Errno(libc::EINTR)) || signal::was_cancelled(self.before);
        ended && !sleep::is_interrupted(self.before, self.deadline.is_some())
    }

    /// Its end, or this earlier one.
    pub fn until(&self, earlier: Option<u64>) -> Option<u64> {
        self.deadline.into_iter().chain(earlier).min()
    }

    /// Sleeps until there may be something to read, and until then at the latest. `true`: the anchor has news.
    pub fn to_read(&self, stream: &'static Stream, carrier: Arc<Carrier>, until: Option<u64>) -> (bool, Result<usize>) {
        let _inside = Inside::enter();
        count_sleep(stream);
        let ended = carrier.has_ended();
        let arm = || carrier.watch().arm_arrival();
        // A switch that TCP has not reached is no news: the bytes before it wake this call by the anchor.
        let in_ring = || carrier.has_bytes() && ring_is_next(stream, &carrier);
        let news = || in_ring() || switch_is_reached(stream, &carrier) || carrier.has_ended() != ended;
        let ready = || {
            engine::see_to_links();
            carrier.watch().settle();
            let follows = stream.must_follow(&carrier) || !stream.is_carried_by(&carrier);
            news() || follows || signal::was_cancelled(self.before)
        };
        let (events, last_look) = ((libc::EPOLLIN | libc::EPOLLRDHUP) as u32, LastLook { arm: &arm, ready: &ready });
        let sleep = sleep::announce(stream, &carrier, events, self.until(until), last_look);
        drop(carrier);
        sleep.sleep()
    }

    /// Sleeps until there may be space, and until then at the latest.
    pub fn to_write(&self, stream: &'static Stream, carrier: Arc<Carrier>, until: Option<u64>) -> Result<usize> {
        let _inside = Inside::enter();
        count_sleep(stream);
        let read = carrier.watch().read();
        let arm = || carrier.watch().arm_space();
        let ready = || {
            engine::see_to_links();
            carrier.watch().settle();
            let space = carrier.watch().read() != read || carrier.watch().has_other_space();
            space || stream.must_follow(&carrier) || !stream.is_carried_by(&carrier)
        };
        let sleep = sleep::announce(stream, &carrier, 0, self.until(until), LastLook { arm: &arm, ready: &ready });
        drop(carrier);
        sleep.sleep().1
    }
}

fn count_sleep(stream: &Stream) {
    if let Some(place) = stream.known_place() {
        place.engine.registry.field(place.entry, crate::registry::Field::Sleeps).fetch_add(1, Ordering::Relaxed);
    }
}
