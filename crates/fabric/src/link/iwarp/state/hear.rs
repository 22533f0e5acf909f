//! What the engine has to say: requests that ended, sends of the peer, and events of the connection.

use std::time::Duration;

use sidestep_iwarp::{self as iwarp, Event, SetupFailure, Stag, TaggedOffset};

use super::{Delivery, GET, HELLO, ID_MASK, KIND_SHIFT, RECEIVE, SENT, State, early::Early};
use crate::{
    error::CloseReason,
    link::{
        Outcome, Target,
        iwarp::{
            MAX_MESSAGE,
            asks::Answer,
            control::{Control, Hello},
        },
    },
};

impl State {
    /// Something that was posted has ended.
    pub(super) fn complete(
        &mut self,
        completion: iwarp::Completion,
        target: &dyn Target,
        deliveries: &mut Vec<Delivery>,
    ) {
        let (kind, id) = (completion.work.0 >> KIND_SHIFT, completion.work.0 & ID_MASK);
        if completion.work == RECEIVE {
            if let iwarp::Outcome::Received { invalidated, .. } = completion.outcome {
                let _ = self.connection.post_receive(RECEIVE, MAX_MESSAGE as u32 + 1);
                let message = std::mem::take(&mut self.memory.message);
                if let Err(what) = self.heard(&message, invalidated, target, deliveries) {
                    self.memory.violation = Some(what);
                }
                self.memory.message = message;
                self.memory.message.clear();
            } else if completion.outcome != iwarp::Outcome::Flushed {
                self.memory.violation = Some("immediate data, which nobody waits for");
            }
            return;
        }
        self.work.posted -= 1;
        let answer = match (kind, completion.outcome) {
            (SENT, _) => return self.memory.outgoing.release(id),
            (_, iwarp::Outcome::Flushed) => return,
            (GET, _) => self.memory.gets.pop_front().map_or(Answer::Flush, Answer::Bytes),
            (_, iwarp::Outcome::Atomic { original }) => Answer::Value(original),
            _ => Answer::Flush,
        };
        if self.ended.is_some() {
            return;
        }
        let idle = self.asks.answered(answer, |ticket, outcome| deliveries.push(Delivery::Completed(ticket, outcome)));
        // A connection that ends meanwhile has no use for tags.
        for stag in idle {
            let _ = self.send(&Control::Unbind, Some(stag));
        }
        let _ = self.flush(false);
        self.memory.urgent |= !self.connection.has_gathered_all();
    }

    /// A send of the peer.
    fn heard(
        &mut self,
        bytes: &[u8],
        invalidated: Option<Stag>,
        target: &dyn Target,
        deliveries: &mut Vec<Delivery>,
    ) -> Result<(), &'static str> {
        if self.ended.is_some() {
            return Ok(());
        }
        if let Some(stag) = invalidated {
            self.memory.unbind(stag);
            self.table.deregister(stag);
        }
        match Control::parse(bytes)? {
            Control::Message(message) => deliveries.push(Delivery::Message(message.to_vec())),
            Control::Bind { stag, cookie } => {
                let (length, rights) = self.memory.bind(stag, cookie)?;
                let (domain, stream) = (self.identity.domain, Some(self.identity.stream));
                let region = iwarp::Region { base: TaggedOffset(0), length, rights, domain, stream };
                self.table.register(region, || stag.0).map_err(|_| "it bound a tag that is not free")?;
            }
            Control::Check { stag } => self.memory.check(stag, target)?,
            Control::Refused { stag, units, refusal } => self.asks.refuse(stag, units, refusal)?,
            Control::Goodbye => self.lose(CloseReason::Peer),
            Control::Unbind => {}
        }
        Ok(())
    }

    pub(super) fn handle_event(&mut self, event: Event, now: Duration, deliveries: &mut Vec<Delivery>) {
        match event {
            Event::Requested { private_data, .. } => {
                let answered = match Hello::parse(&private_data) {
                    Ok(hello) if hello == HELLO => self.connection.accept(&HELLO.to_bytes()),
                    _ => self.connection.reject(now, &HELLO.to_bytes()),
                };
                if answered.is_err() {
                    self.lose(CloseReason::Link("set-up failed"));
                }
            }
            Event::Established { private_data, agreement } => {
                if self.told.peer && Hello::parse(&private_data) != Ok(HELLO) {
                    return self.lose(CloseReason::Violation("it does not speak the protocol of the fabric"));
                }
                self.crc = agreement.crc;
                if agreement.markers_received.is_some() {
                    self.memory.expect_pieces();
                }
                self.established(deliveries);
            }
            Event::Rejected { .. } => self.lose(CloseReason::Link("the peer refused the set-up")),
            Event::FallBack { .. } => self.lose(CloseReason::Died),
            Event::SetupFailed(SetupFailure::TimedOut { .. }) => {
                self.lose(CloseReason::Link("the peer did not finish set-up in time"));
            }
            Event::SetupFailed(SetupFailure::StreamEnded { .. }) => self.lose(CloseReason::Died),
            Event::SetupFailed(_) => self.lose(CloseReason::Violation("a set-up frame that is none")),
            // A peer that takes leave says goodbye first.
            Event::PeerClosed | Event::Lost { .. } => self.lose(CloseReason::Died),
            Event::PeerTerminated(_) => self.lose(CloseReason::Link("the peer ended it with a terminate message")),
            Event::Failed(fault) => self.end(CloseReason::Violation(fault.check().description())),
            Event::Closed => {
                self.end(CloseReason::Link("the peer did not close in time"));
                self.stream.gone = true;
            }
        }
    }

    /// The connection is made: what was posted before goes out.
    fn established(&mut self, deliveries: &mut Vec<Delivery>) {
        self.open = true;
        if !std::mem::replace(&mut self.told.peer, true) {
            deliveries.push(Delivery::Opened);
        }
        for early in std::mem::take(&mut self.early) {
            let ticket = early.ticket();
            let begun = match (&early, early.request()) {
                (Early::Post(bytes), _) => self.send(&Control::Message(bytes), None).map(|()| None),
                (_, Some((ticket, cookie, request))) => self.ask(ticket, cookie, request),
                (_, None) => Ok(None),
            };
            match begun {
                Ok(Some((id, lent))) => self.memory.outgoing.keep_lent(id, lent, self.crc),
                Ok(None) => {}
                Err(error) => deliveries.extend(ticket.map(|it| Delivery::Completed(it, Outcome::Failed(error)))),
            }
        }
        self.memory.urgent = true;
    }
}
