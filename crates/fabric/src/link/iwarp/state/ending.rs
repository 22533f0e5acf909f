//! How a connection ends, and how the node learns of it.

use std::time::Duration;

use rustix::io::Errno;

use super::{Delivery, State};
use crate::{
    error::CloseReason,
    link::{
        Outcome, Target,
        iwarp::{control::Control, session::Around},
    },
};

impl State {
    /// Ends the connection from this side.
    pub(in super::super) fn close(&mut self, reason: CloseReason, now: Duration) -> bool {
        if self.ended.is_some() {
            return false;
        }
        if let CloseReason::Violation(_) = reason {
            self.connection.abort(now);
        } else {
            // A connection that is not made yet has nobody to take leave of.
            let _ = self.send(&Control::Goodbye, None);
            self.connection.close(now);
        }
        self.end(reason);
        true
    }

    /// The peer has closed its half, or the stream had failed before, and a write was told why.
    pub(in super::super) fn end_of_stream(
        &mut self,
        around: Around<'_>,
        target: &dyn Target,
        deliveries: &mut Vec<Delivery>,
    ) {
        let failed = self.stream.cannot_send.map(State::reason_of);
        if let Some(reason @ CloseReason::Link(_)) = failed {
            return self.lose(reason);
        }
        self.connection.handle_end(around.now());
        self.collect(around, target, deliveries);
        // A peer that takes leave says so first.
        self.lose(CloseReason::Died);
    }

    /// The stream is of no more use.
    pub(in super::super) fn lose(&mut self, reason: CloseReason) {
        self.end(reason);
        self.connection.reset();
        self.stream.gone = true;
    }

    /// What a failed call says about the peer.
    pub(in super::super) fn reason_of(errno: Errno) -> CloseReason {
        match errno {
            Errno::CONNRESET | Errno::PIPE => CloseReason::Died,
            Errno::TIMEDOUT => CloseReason::Link("the peer no longer answers"),
            _ => CloseReason::Link("the network no longer reaches the peer"),
        }
    }

    /// Reports the end, once, after everything else.
    pub(in super::super) fn report(&mut self, deliveries: &mut Vec<Delivery>) {
        let Some(reason) = self.ended.filter(|_| !self.told.end) else { return };
        self.told.end = true;
        if !self.told.peer {
            return;
        }
        let mut ended = |ticket, outcome| deliveries.push(Delivery::Completed(ticket, outcome));
        self.asks.fail(reason, &mut ended);
        for early in self.early.drain(..) {
            if let Some(ticket) = early.ticket() {
                ended(ticket, Outcome::Closed(reason));
            }
        }
        deliveries.push(Delivery::Closed(reason));
    }

    pub(in super::super) fn is_reported(&self) -> bool {
        self.told.end || self.ended.is_none()
    }

    pub(super) fn end(&mut self, reason: CloseReason) {
        if self.ended.is_none() {
            self.ended = Some(reason);
            self.memory.closed = true;
            self.open = false;
        }
    }
}
