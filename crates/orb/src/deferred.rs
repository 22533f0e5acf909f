//! Calls that are sent now and collected later.

use std::time::Instant;

use crate::cdr::{self, Decoder};
use crate::exception::{Completion, Failure, Kind};
use crate::object::{Answer, Object, Sent, failure_of};

/// A call that is under way.
///
/// Dropped without being collected, it is forgotten: the operation is carried out all the same.
#[must_use = "the outcome of the call has to be collected"]
pub struct Deferred<T, E> {
    object: Object,
    sent: Option<Sent>,
    deadline: Option<Instant>,
    decode: fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    failure: std::marker::PhantomData<fn() -> E>,
}

impl<T, E: Failure> Deferred<T, E> {
    pub(crate) fn new(
        object: Object,
        sent: Sent,
        deadline: Option<Instant>,
        decode: fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    ) -> Self {
        Self { object, sent: Some(sent), deadline, decode, failure: std::marker::PhantomData }
    }

    /// Whether [`Deferred::collect`] would not have to wait.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match &self.sent {
            Some(Sent::Remote(connection, id, _)) => connection.is_answered(*id),
            _ => true,
        }
    }

    /// Waits for the outcome.
    pub fn collect(mut self) -> Result<T, E> {
        let Some(sent) = self.sent.take() else { return Err(Kind::BadInvOrder.raised(Completion::No).into()) };
        let reply = sent.wait(self.deadline).map_err(failure_of)?;
        match self.object.answer(reply, self.decode)? {
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
        if let Some(Sent::Remote(connection, id, _)) = &self.sent {
            connection.abandon(*id);
        }
    }
}

impl<T, E> std::fmt::Debug for Deferred<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "call under way to {:?}", self.object)
    }
}
