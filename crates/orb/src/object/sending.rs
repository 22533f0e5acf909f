//! What is sent to an object, by the best way that works.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use sidestep_wire::giop::{Target, Version, target};

use super::{Object, ObjectTarget, Sent, What};
use crate::cdr::CharSet;
use crate::client::{Connection, Lost, Wanted};
use crate::draft::Draft;
use crate::exception::{Completion, Kind, OMG, SystemException};
use crate::request::Request;
use crate::route::Route;
use crate::strand::SendHalf;

impl Object {
    /// Sends something by the best way that works, and waits for its reply if that is wanted now.
    pub(crate) fn send(
        &self,
        draft: &mut Draft,
        what: What<'_>,
        wanted: Wanted,
        deadline: Option<Instant>,
    ) -> Result<Sent, SystemException> {
        let ObjectTarget { orb, routes, local, .. } = &*self.target;
        if let Some(local) = *local {
            let (version, chars) = (Version::V1_2, CharSet::Utf8);
            match what {
                What::Call(operation, encode) => {
                    let request = Request::new(&routes[local], version, chars, operation, wanted != Wanted::Never);
                    draft.write(&request, usize::MAX, encode)?;
                }
                What::Locate => draft.write_locate(&Request::new(&routes[local], version, chars, "", true))?,
            }
            let buffer = std::mem::take(&mut draft.reply.bytes);
            let reply = orb.serve_locally(draft.bytes(), buffer);
            return Ok(reply.map_or(Sent::Unanswered, |reply| {
                draft.reply = reply;
                Sent::Answered
            }));
        }
        if routes.is_empty() {
            return Err(Kind::InvObjref.raised(Completion::No));
        }
        let mut failure = Kind::Transient.with_minor(OMG | 2, Completion::No);
        for route in routes {
            // A connection that was kept may have been closed meanwhile: a new one is tried once.
            for _ in 0..2 {
                if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    return Err(Kind::Timeout.raised(Completion::No));
                }
                let found;
                let connection = match route.first() {
                    Some(connection) => connection,
                    None => match self.connect(route, deadline) {
                        Ok(connection) => {
                            found = connection;
                            &found
                        }
                        Err(_) => break,
                    },
                };
                match self.submit(connection, route, draft, (what, wanted), deadline) {
                    Ok(sent) => return Ok(sent),
                    Err(Unsent::Encoding(exception)) => return Err(exception),
                    Err(Unsent::Lost(Lost::TimedOut)) => return Err(Kind::Timeout.raised(Completion::No)),
                    Err(Unsent::Lost(Lost::Refused | Lost::Broken)) => {
                        failure = Kind::CommFailure.raised(Completion::No);
                    }
                }
            }
        }
        Err(failure)
    }

    /// The connection that was used last on a route, or another one.
    #[cold]
    fn connect(&self, route: &Route, deadline: Option<Instant>) -> io::Result<Arc<Connection>> {
        if let Some(connection) = route.last() {
            return Ok(connection);
        }
        let orb = &self.target.orb;
        let (version, chars) = route.format(orb.version());
        let connection = orb.connection((&route.endpoint, self.target.slot), version, chars, deadline)?;
        route.keep(&connection);
        Ok(connection)
    }

    /// Sends a request over a connection.
    #[inline]
    fn submit(
        &self,
        connection: &Arc<Connection>,
        route: &Route,
        draft: &mut Draft,
        (what, wanted): (What<'_>, Wanted),
        deadline: Option<Instant>,
    ) -> Result<Sent, Unsent> {
        let orb = &self.target.orb;
        let (version, chars) = route.format(orb.version());
        let operation = if let What::Call(operation, _) = what { operation } else { "" };
        let mut request = Request::new(route, version, chars, operation, wanted != Wanted::Never);
        if !connection.knows_code_sets() {
            request = request.telling(route.chars);
        }
        let mode = self.target.addressing.load(Ordering::Relaxed);
        if mode != target::KEY
            && let Some(target) = self.named(mode, route)
        {
            request = request.naming(target);
        }
        let direct = orb.direct();
        match what {
            What::Call(_, encode) => draft.write(&request, direct, encode),
            What::Locate => draft.write_locate(&request),
        }
        .map_err(Unsent::Encoding)?;
        let mut stream = |draft: &mut Draft, sender: &mut dyn SendHalf| match what {
            What::Call(_, encode) => draft.stream(&request, direct, encode, sender, deadline),
            // It has no large blocks.
            What::Locate => Err(io::ErrorKind::InvalidInput.into()),
        };
        let ticket = connection.send(draft, wanted, deadline, &mut stream).map_err(Unsent::Lost)?;
        Ok(match wanted {
            Wanted::Now => match connection.wait(ticket, &mut draft.reply, deadline) {
                Ok(()) => Sent::Answered,
                Err(lost) => Sent::Lost(lost),
            },
            Wanted::Later => Sent::Remote(connection.clone(), ticket.id),
            Wanted::Never => Sent::Unanswered,
        })
    }

    /// What requests name the object by, if that is not its key.
    #[cold]
    fn named<'a>(&'a self, mode: u16, route: &'a Route) -> Option<Target<'a>> {
        let ior = self.ior();
        match mode {
            target::PROFILE => {
                let profile = ior.profiles.get(route.profile)?;
                Some(Target::Profile { tag: profile.tag, data: &profile.data })
            }
            target::REFERENCE => Some(Target::Reference { selected: u32::try_from(route.profile).ok()?, ior }),
            _ => None,
        }
    }
}

/// Why a request was not sent.
enum Unsent {
    Lost(Lost),
    /// Its arguments cannot be encoded.
    Encoding(SystemException),
}
