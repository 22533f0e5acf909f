//! Asking where an object is.

use sidestep_wire::giop::locate;

use crate::Object;
use crate::answer::{exception_in, failure_of, is_unreachable};
use crate::client::{Lost, Status, Wanted};
use crate::draft::Draft;
use crate::exception::{Completion, Kind, SystemException};
use crate::object::{MAX_HOPS, Sent, What};

/// What a server says of an object.
enum Place {
    Here,
    Unknown,
    Elsewhere(Object),
    /// It has to be named in another way.
    Named(u16),
}

impl Object {
    /// Asks the server where the object is, without calling it: whether there is such an object. If it is elsewhere, calls go there
    /// from now on, also those without a reply.
    pub fn locate(&self) -> Result<bool, SystemException> {
        let deadline = self.deadline();
        let mut forwarded = self.forwarded();
        for _ in 0..=MAX_HOPS {
            let object = forwarded.as_ref().unwrap_or(self);
            let mut draft = Draft::take();
            let place = match object.send(&mut draft, What::Locate, Wanted::Now, deadline) {
                Ok(Sent::Answered) => object.place(&draft),
                // Asked again: the server closed an idle connection while the question was on its way.
                Ok(Sent::Lost(Lost::Refused)) => continue,
                Ok(Sent::Lost(lost)) => Err(failure_of(lost)),
                Ok(Sent::Unanswered | Sent::Remote(..)) => Err(Kind::Internal.raised(Completion::No)),
                Err(exception) => Err(exception),
            };
            draft.keep();
            match place {
                Ok(Place::Here) => return Ok(true),
                Ok(Place::Unknown) if forwarded.is_none() => return Ok(false),
                Ok(Place::Elsewhere(object)) => {
                    self.forward(Some(object.clone()));
                    forwarded = Some(object);
                }
                Ok(Place::Named(mode)) if object.name_by(mode) => {}
                Ok(Place::Named(_)) => return Err(Kind::NoImplement.raised(Completion::No)),
                // Where we were sent it is not: the one who sent us knows better.
                Ok(Place::Unknown) => {
                    self.forward(None);
                    forwarded = None;
                }
                Err(exception) if forwarded.is_some() && is_unreachable(&exception) => {
                    self.forward(None);
                    forwarded = None;
                }
                Err(exception) => return Err(exception),
            }
        }
        Err(Kind::Transient.raised(Completion::No))
    }

    fn place(&self, draft: &Draft) -> Result<Place, SystemException> {
        let mut decoder = self.body(&draft.reply)?;
        // A server that answers another question than was asked is out of its mind.
        let Status::Located(status) = draft.reply.status else { return Err(Kind::CommFailure.raised(Completion::No)) };
        Ok(match status {
            locate::Status::UnknownObject => Place::Unknown,
            locate::Status::ObjectHere => Place::Here,
            locate::Status::ObjectForward | locate::Status::ObjectForwardPerm => {
                Place::Elsewhere(self.elsewhere(&mut decoder)?)
            }
            locate::Status::SystemException => return Err(exception_in(&mut decoder)),
            locate::Status::NeedsAddressingMode => {
                Place::Named(decoder.u16().map_err(|error| SystemException::of_cdr(&error, Completion::No))?)
            }
        })
    }
}
