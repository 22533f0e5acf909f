//! Calls that are sent now and collected later.

use std::cell::Cell;
use std::time::Instant;

use sidestep_wire::giop::Version;

use crate::answer::{Answer, failure_of};
use crate::buffers;
use crate::cdr::{self, CharSet, Decoder, Encoder, Format};
use crate::client::{Lost, Reply, Ticket, Wanted};
use crate::draft::Draft;
use crate::exception::{Completion, Failure, Kind, SystemException};
use crate::object::{MAX_HOPS, Object, Sent, What};
use crate::request::Encode;

/// A call that is under way.
///
/// Dropped without being collected, it is forgotten: the operation is carried out all the same.
#[must_use = "the outcome of the call has to be collected"]
pub struct Deferred<T, E> {
    object: Object,
    sent: Option<Sent>,
    /// The reply, once it has come.
    reply: Reply,
    /// The request, in case it has to be sent elsewhere.
    again: Option<Again>,
    deadline: Option<Instant>,
    decode: fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    failure: std::marker::PhantomData<fn() -> E>,
}

impl<T, E: Failure> Deferred<T, E> {
    pub(crate) fn new(
        object: Object,
        (sent, reply): (Sent, Reply),
        again: Option<Again>,
        deadline: Option<Instant>,
        decode: fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    ) -> Self {
        Self { object, sent: Some(sent), reply, again, deadline, decode, failure: std::marker::PhantomData }
    }

    /// Whether [`Deferred::collect`] would not have to wait for the server.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match &self.sent {
            Some(Sent::Remote(connection, id)) => connection.is_answered(*id),
            _ => true,
        }
    }

    /// Waits for the outcome. A request that the server has not served, or has sent elsewhere, is sent again now.
    pub fn collect(mut self) -> Result<T, E> {
        for _ in 0..=MAX_HOPS {
            let answer = match self.wait() {
                // The server closed an idle connection while the request was on its way.
                Err(Lost::Refused) if self.again.is_some() => None,
                Err(lost) => return Err(failure_of(lost).into()),
                Ok(()) => Some(self.object.answer(&self.reply, self.decode)),
            };
            buffers::keep(std::mem::take(&mut self.reply.bytes));
            match answer.transpose()? {
                Some(Answer::Outcome(outcome)) => return outcome,
                Some(Answer::Forward(object)) => self.object.forward(Some(object)),
                Some(Answer::Named(mode)) => {
                    let forwarded = self.object.forwarded();
                    if !forwarded.as_ref().unwrap_or(&self.object).name_by(mode) {
                        return Err(Kind::NoImplement.raised(Completion::No).into());
                    }
                }
                None => {}
            }
            let again = self.again.as_ref().ok_or(Kind::Transient.raised(Completion::No))?;
            (self.sent, self.reply) =
                again.send(&self.object, self.deadline).map(|(sent, reply)| (Some(sent), reply))?;
        }
        Err(Kind::Transient.raised(Completion::No).into())
    }

    /// Waits for the reply.
    fn wait(&mut self) -> Result<(), Lost> {
        match self.sent.take() {
            Some(Sent::Remote(connection, id)) => {
                self.reply.bytes = buffers::take();
                connection.wait(Ticket::of_pending(id), &mut self.reply, self.deadline)
            }
            Some(Sent::Answered) => Ok(()),
            Some(Sent::Lost(lost)) => Err(lost),
            // Nobody sends a call that is to be collected without wanting a reply.
            Some(Sent::Unanswered) | None => Err(Lost::Broken),
        }
    }
}

/// A request that may have to be sent once more.
pub(crate) struct Again {
    version: Version,
    chars: CharSet,
    operation: String,
    /// The arguments, as they are behind a header that ends at a multiple of eight.
    body: Vec<u8>,
}

impl Again {
    /// The request in the draft. `None` before GIOP 1.2, where bodies begin anywhere.
    pub(crate) fn of(draft: &Draft, operation: &str, encode: Encode<'_>) -> Option<Self> {
        let (version, chars) = draft.format().filter(|(version, _)| *version == Version::V1_2)?;
        let mut kept = buffers::take();
        kept.clear();
        match draft.body() {
            Some(body) => kept.extend_from_slice(body),
            None => {
                let mut encoder = Encoder::new(kept, Format { minor: version.minor(), chars, ..Format::NATIVE });
                encode(&mut encoder).ok()?;
                kept = encoder.into_bytes();
            }
        }
        Some(Self { version, chars, operation: operation.to_owned(), body: kept })
    }

    /// Sends it to where the reference leads now. An object there that wants values to be encoded in another way makes the call fail: the next one goes there.
    fn send(&self, object: &Object, deadline: Option<Instant>) -> Result<(Sent, Reply), SystemException> {
        let fits = Cell::new(true);
        let encode = |encoder: &mut Encoder<'_>| {
            let format = encoder.format();
            fits.set((format.minor, format.chars) == (self.version.minor(), self.chars));
            encoder.raw(&self.body);
            if fits.get() { Ok(()) } else { Err(cdr::Error::TypeCode) }
        };
        let mut draft = Draft::take();
        let sent = object.send_on(&mut draft, What::Call(&self.operation, &encode), Wanted::Later, deadline);
        let reply =
            if matches!(sent, Ok(Sent::Answered)) { std::mem::take(&mut draft.reply) } else { Reply::default() };
        draft.keep();
        match sent {
            Ok(sent) => Ok((sent, reply)),
            Err(_) if !fits.get() => Err(Kind::Transient.raised(Completion::No)),
            Err(exception) => Err(exception),
        }
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        buffers::keep(std::mem::take(&mut self.body));
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
