//! Calls that are sent now and collected later.

use std::time::Instant;

use crate::buffers;
use crate::cdr::{self, Decoder};
use crate::client::{Reply, Ticket};
use crate::exception::{Completion, Failure, Kind};
use crate::object::{Answer, Object, Sent, failure_of};

/// A call that is under way.
///
/// Dropped without being collected, it is forgotten: the operation is carried out all the same.
#[must_use = "the outcome of the call has to be collected"]
pub struct Deferred<T, E> {
    object: Object,
    sent: Option<Sent>,
    /// The reply, once it has come.
    reply: Reply,
    deadline: Option<Instant>,
    decode: fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    failure: std::marker::PhantomData<fn() -> E>,
}

impl<T, E: Failure> Deferred<T, E> {
    pub(crate) fn new(
        object: Object,
        (sent, reply): (Sent, Reply),
        deadline: Option<Instant>,
        decode: fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    ) -> Self {
        Self { object, sent: Some(sent), reply, deadline, decode, failure: std::marker::PhantomData }
    }

    /// Whether [`Deferred::collect`] would not have to wait.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match &self.sent {
            Some(Sent::Remote(connection, id)) => connection.is_answered(*id),
            _ => true,
        }
    }

    /// Waits for the outcome.
    pub fn collect(mut self) -> Result<T, E> {
        match self.sent.take() {
            Some(Sent::Remote(connection, id)) => {
                let ticket = Ticket::of_pending(id);
                self.reply.bytes = buffers::take();
                connection.wait(ticket, &mut self.reply, self.deadline).map_err(failure_of)?;
            }
            Some(Sent::Answered) => {}
            Some(Sent::Lost(lost)) => return Err(failure_of(lost).into()),
            Some(Sent::Unanswered) => return Err(Kind::Internal.raised(Completion::Maybe).into()),
            None => return Err(Kind::BadInvOrder.raised(Completion::No).into()),
        }
        let answer = self.object.answer(&self.reply, self.decode);
        buffers::keep(std::mem::take(&mut self.reply.bytes));
        match answer? {
            Answer::Outcome(outcome) => outcome,
            Answer::Forward(object) => {
                self.object.forward(Some(object));
                Err(Kind::Transient.raised(Completion::No).into())
            }
        }
    }
}

impl<T, E> Drop for Deferred<T, E> {
    fn drop(&mut self) {
        if let Some(Sent::Remote(connection, id)) = &self.sent {
            connection.abandon(*id);
        }
    }
}

impl<T, E> std::fmt::Debug for Deferred<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "call under way to {:?}", self.object)
    }
}
