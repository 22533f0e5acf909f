//! What replies say.

use sidestep_wire::giop::reply;

use crate::cdr::{self, Cdr, Decoder};
use crate::client::{Lost, Reply, Status};
use crate::exception::{Completion, Failure, Kind, OMG, SystemException};
use crate::{Ior, Object};

/// What a reply says, besides what went wrong.
pub(crate) enum Answer<T, E> {
    Outcome(Result<T, E>),
    /// The object is elsewhere.
    Forward(Object),
    /// The object has to be named in another way.
    Named(u16),
}

impl Object {
    /// What a reply says.
    #[inline]
    pub(crate) fn answer<T, E: Failure>(
        &self,
        reply: &Reply,
        decode: impl Fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    ) -> Result<Answer<T, E>, SystemException> {
        let malformed = |error: &cdr::Error| SystemException::of_cdr(error, Completion::Yes);
        let mut decoder = self.body(reply)?;
        // A server that answers another question than was asked is out of its mind.
        let Status::Replied(status) = reply.status else { return Err(Kind::CommFailure.raised(Completion::Maybe)) };
        match status {
            reply::Status::NoException => Ok(Answer::Outcome(Ok(decode(&mut decoder).map_err(|e| malformed(&e))?))),
            reply::Status::UserException => {
                let id = decoder.clone().identifier().map_err(|error| malformed(&error))?;
                match E::decode(id, &mut decoder) {
                    Some(Ok(exception)) => Ok(Answer::Outcome(Err(exception))),
                    Some(Err(error)) => Err(malformed(&error)),
                    None => Err(Kind::Unknown.with_minor(OMG | 1, Completion::Yes)),
                }
            }
            reply::Status::SystemException => Err(exception_in(&mut decoder)),
            reply::Status::LocationForward | reply::Status::LocationForwardPerm => {
                self.elsewhere(&mut decoder).map(Answer::Forward)
            }
            reply::Status::NeedsAddressingMode => decoder.u16().map(Answer::Named).map_err(|error| malformed(&error)),
        }
    }

    /// The body of a reply. Its header was read when it came.
    #[inline]
    pub(crate) fn body<'a>(&'a self, reply: &'a Reply) -> Result<Decoder<'a>, SystemException> {
        let behind_header = Decoder::at(&reply.bytes, reply.format, reply.body);
        let decoder = behind_header.ok_or(Kind::Marshal.raised(Completion::Yes))?;
        Ok(decoder.with_joints(&reply.joints).with_context(self.orb()))
    }

    /// The reference to where the object is.
    pub(crate) fn elsewhere(&self, decoder: &mut Decoder<'_>) -> Result<Object, SystemException> {
        let ior = Ior::decode(decoder).map_err(|error| SystemException::of_cdr(&error, Completion::Yes))?;
        if ior.is_nil() {
            return Err(Kind::InvObjref.raised(Completion::No));
        }
        Ok(Object::new(self.orb().clone(), ior))
    }
}

/// The exception in the body of a reply.
pub(crate) fn exception_in(decoder: &mut Decoder<'_>) -> SystemException {
    let decoded = SystemException::decode(decoder);
    decoded.unwrap_or_else(|error| SystemException::of_cdr(&error, Completion::Yes))
}

/// What the caller is told when a reply does not come.
pub(crate) fn failure_of(lost: Lost) -> SystemException {
    match lost {
        Lost::Refused => Kind::Transient.raised(Completion::No),
        Lost::Broken => Kind::CommFailure.raised(Completion::Maybe),
        Lost::TimedOut => Kind::Timeout.raised(Completion::Maybe),
    }
}

/// Whether the object may be found by asking again where it is.
pub(crate) fn is_unreachable(exception: &SystemException) -> bool {
    matches!(exception.kind, Kind::CommFailure | Kind::Transient | Kind::ObjectNotExist)
        && exception.completed == Completion::No
}
