//! How a connection ends: in good order, with a terminate message, or without a word.

use crate::connection::{Connection, Phase};
use crate::event::{Completion, Event, Outcome, SetupFailure};
use crate::fault::Fault;
use crate::rx::Receive;
use crate::terminate::Refused;
use sidestep_wire::mpa::frame::Revision;
use std::time::Duration;

impl Connection {
    /// Closes in good order: what was posted goes out and is answered, then this half is closed.
    pub fn close(&mut self, now: Duration) {
        match self.phase {
            Phase::Operating => {
                self.phase = Phase::Closing;
                self.nudge = None;
                self.deadline = Some(now + self.config.close_timeout);
                self.advance(now);
            }
            Phase::Setup { .. } | Phase::Deciding(_) => self.finish(false),
            _ => {}
        }
    }

    /// Gives up: tells the peer with a terminate message, and drops what was not sent.
    pub fn abort(&mut self, now: Duration) {
        match self.phase {
            Phase::Operating | Phase::Closing => self.fail(now, Fault::Aborted, None),
            _ => self.finish(true),
        }
    }

    /// Gives up without a word.
    pub fn reset(&mut self) {
        self.finish(true);
    }

    /// The peer has closed its half of the stream, or the stream is lost.
    pub fn handle_end(&mut self, now: Duration) {
        if self.peer_finished {
            return;
        }
        self.peer_finished = true;
        match self.phase {
            Phase::Setup { initiator } => {
                // RFC 6581 §10: a responder of revision one closes without a word.
                if initiator && self.config.revision == Revision::Two && self.unfinished == 0 {
                    self.events.push_back(Event::FallBack { revision: Revision::One });
                } else {
                    let received = self.unfinished;
                    let failure = SetupFailure::StreamEnded { received };
                    self.events.push_back(Event::SetupFailed(failure));
                }
                self.finish(false);
            }
            Phase::Deciding(_) => self.finish(false),
            Phase::Operating | Phase::Closing => {
                let unanswered = self.tx.awaited_count();
                if unanswered > 0 || self.unfinished > 0 {
                    let unfinished_bytes = self.unfinished;
                    self.events.push_back(Event::Lost { unfinished_bytes, unanswered });
                    self.finish(false);
                } else {
                    self.events.push_back(Event::PeerClosed);
                    self.advance(now);
                }
            }
            Phase::Ending | Phase::Finished { .. } => self.advance(now),
            Phase::Closed { .. } => {}
        }
    }

    /// The peer broke the protocol: it is told why, and nothing else is sent or taken any more.
    pub(crate) fn fail(&mut self, now: Duration, fault: Fault, refused: Option<&Refused>) {
        self.tx.end_with(fault.terminate(refused));
        self.flush();
        self.nudge = None;
        self.events.push_back(Event::Failed(fault));
        let sendable = self.tx.open && !matches!(self.phase, Phase::Finished { .. });
        self.phase = Phase::Ending;
        self.deadline = Some(now + self.config.close_timeout);
        if !sendable {
            // A responder that has received no valid FPDU may not send one, nor may a closed half.
            self.finish(true);
        }
    }

    /// While something moves, a close is not late.
    pub(crate) fn extend_closing(&mut self, now: Duration) {
        if matches!(self.phase, Phase::Closing) {
            self.deadline = Some(now + self.config.close_timeout);
        }
    }

    /// Goes on to the next phase where everything is done.
    pub(crate) fn advance(&mut self, now: Duration) {
        let quiet = self.frame.is_none() && self.tx.is_idle() && self.tx.ledger.is_drained();
        if matches!(self.phase, Phase::Closing | Phase::Ending) && quiet {
            let receiving = matches!(self.phase, Phase::Closing);
            self.phase = Phase::Finished { receiving };
            self.deadline = Some(now + self.config.close_timeout);
        }
        if matches!(self.phase, Phase::Finished { .. }) && self.peer_finished {
            self.finish(false);
        }
    }

    /// Everything is over.
    pub(crate) fn finish(&mut self, reset: bool) {
        if matches!(self.phase, Phase::Closed { .. }) {
            return;
        }
        self.tx.stop();
        self.tx.ledger.forget_output();
        self.flush();
        self.frame = None;
        self.nudge = None;
        self.deadline = None;
        self.phase = Phase::Closed { reset };
        self.events.push_back(Event::Closed);
    }

    /// Completes what is left.
    pub(crate) fn flush(&mut self) {
        self.tx.ledger.flush();
        while let Some(Receive { work, .. }) = self.rx.receives.pop_front() {
            self.completions.push_back(Completion { work, outcome: Outcome::Flushed });
        }
    }
}
