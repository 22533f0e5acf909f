//! What a writer knows of a reader that makes no room: how long it is waited for before TCP, which has buffers of its own, takes
//! over.

use std::{sync::atomic::Ordering, time::Duration};

use sidestep_shm::wait::Waiter;
use sidestep_stream::carrier::{Carrier, Watch};
use sidestep_sys::clock;

use crate::{config::config, kernel};

/// A full ring whose reader does not move for so long gives way to TCP. A reader whose turn it is not on a busy core moves
/// within a few time slices.
pub const STALL_NS: u64 = 8_000_000;
const MOST_STALL_NS: u64 = 1_000_000_000;
/// A large ring takes as much as most programs ever write before they read. So long its reader may rest, be it that it reads at
/// some rate, or that a program waits for space in `poll` or `epoll`: four times as long each further time.
const LARGE_STALL_NS: u64 = 200_000_000;
/// How long a writer that does not wait looks for signs of a link's reader before it gives way, and between two looks.
const LINK_LOOK_NS: u64 = 2_000_000;
const LINK_LOOK: Duration = Duration::from_micros(20);

/// What a writer knows of its reader.
#[derive(Debug, Default)]
pub(super) struct Patience {
    waiter: Waiter,
    /// Since when the ring has been full, and how far the peer had read then.
    stalled: Option<(u64, u64)>,
    /// How often the ring gave way to TCP.
    overflows: u32,
    /// What the peer's reader has said last: how far it has read, and its note.
    said: (u64, u64),
    /// How far it had come when this side last saw it at work, and how much of its ring or link had been filled then.
    progress: u64,
    filled: u64,
}

impl Patience {
    /// With a carrier that nothing has gone over, of a stream whose carriers have overflowed so often.
    pub fn begin(&mut self) {
        *self = Patience { waiter: Waiter::with(config().patience), overflows: self.overflows, ..Patience::default() };
    }

    /// Notes how far the peer has read, when that has changed.
    #[inline]
    pub fn watch(&mut self, carrier: &Carrier) {
        let said = carrier.watch().said();
        if said != self.said {
            let (now, stride) = carrier.watch().progress(said);
            if now.wrapping_sub(self.progress) >= stride || said.1 != self.said.1 {
                (self.progress, self.filled) = (now, carrier.filled());
            }
            self.said = said;
        }
    }

    /// Something was written.
    #[inline]
    pub fn moved(&mut self) {
        self.stalled = None;
    }

    /// TCP takes over.
    pub fn overflows(&mut self) {
        self.stalled = None;
        self.overflows += 1;
    }

    /// Whether the reader has taken nothing of the last half a ring.
    pub fn is_idle(&self, carrier: &Carrier) -> bool {
        self.said == carrier.watch().said() && carrier.filled().wrapping_sub(self.filled) >= carrier.much()
    }

    /// Notes that the ring is full. Returns since when its reader has not moved.
    pub fn stall(&mut self, carrier: &Carrier) -> u64 {
        let read = carrier.watch().read();
        match self.stalled {
            Some((since, then)) if then == read => since,
            _ => {
                let now = clock::now();
                self.stalled = Some((now, read));
                now
            }
        }
    }

    /// Whether the reader of a full ring has stood still for too long.
    pub fn has_stalled(&mut self, carrier: &Carrier, patient: bool) -> bool {
        let since = self.stall(carrier);
        clock::now() - since > self.limit(carrier, patient)
    }

    /// When that will be so, if the ring is known to be full.
    pub fn deadline(&self, carrier: &Carrier) -> Option<u64> {
        self.stalled.map(|(since, _)| since + self.limit(carrier, true) + 1)
    }

    /// Longer with every time: a reader that is slow is better waited for. Most programs that do not wait in the call itself
    /// can do something else meanwhile.
    pub fn limit(&self, carrier: &Carrier, patient: bool) -> u64 {
        // A link whose window has room for more than the way to the peer takes as little as a small ring.
        let is_large = is_large(carrier) || !patient && carrier.watch().is_choked();
        match (is_large, patient) {
            (true, false) => LARGE_STALL_NS << (2 * self.overflows.min(3)),
            (true, true) => (LARGE_STALL_NS << (2 * self.overflows.min(3))).min(MOST_STALL_NS),
            (false, _) => (STALL_NS << (2 * self.overflows.min(5))).min(MOST_STALL_NS),
        }
    }

    /// Looks for a while whether the reader makes space.
    pub fn look(&mut self, carrier: &Carrier, patient: bool) -> bool {
        if !patient && carrier.capabilities().packets {
            // The reader of a link says seldom what it has read, and one that comes from TCP has much to read there first.
            let (before, until) = (carrier.watch().said(), clock::now() + LINK_LOOK_NS);
            while carrier.watch().said() == before && clock::now() < until {
                kernel::pause(LINK_LOOK);
            }
            return carrier.watch().said() != before;
        }
        let before = carrier.watch().read();
        let core = || carrier.watch().peer_core();
        self.waiter.look(None, core, || carrier.watch().read() != before)
    }
}

/// Whether a ring takes as much as a program may expect of a connection that nobody reads.
pub(super) fn is_large(carrier: &Carrier) -> bool {
    let large = config().rings[2] as u64;
    carrier.capacity.load(Ordering::Relaxed) >= large
}
