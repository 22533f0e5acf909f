//! From the bytes of a call to the bytes of its reply, without I/O.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sidestep_wire::oncrpc::reply::{Accepted, AuthError, Body, Denied};
use sidestep_wire::oncrpc::{self, Auth, AuthSys, Xid, call, reply};

use super::cache::{Cache, Found};
use super::connection::ReplyPath;
use super::lines::InPlace;
use super::service::{Call, Peer, Refusal, Service};
use crate::record::{self, ROOM};
use crate::xdr::{self, Place, Reader, Writer};

pub(super) type Authorize = Box<dyn Fn(&Call<'_>) -> Result<(), AuthError> + Send + Sync>;

/// Knows the services, and what they have done.
pub(super) struct Dispatcher {
    /// Sorted by program and version.
    services: Vec<Entry>,
    cache: Cache,
    authorize: Authorize,
    max_message: usize,
}

struct Entry {
    program: u32,
    version: u32,
    service: Arc<dyn Service>,
}

impl Entry {
    #[inline]
    fn name(&self) -> (u32, u32) {
        (self.program, self.version)
    }
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The frame of the reply is ready.
    Reply,
    /// There is no reply, or another one gives it.
    Silence,
    /// The peer does not speak RPC.
    Nonsense,
}

impl Dispatcher {
    pub fn new(services: Vec<Arc<dyn Service>>, cache: Cache, authorize: Authorize, max_message: usize) -> Self {
        let entry =
            |service: Arc<dyn Service>| Entry { program: service.program(), version: service.version(), service };
        let mut services: Vec<Entry> = services.into_iter().map(entry).collect();
        services.sort_by_key(Entry::name);
        // The first of several with the same name serves.
        services.dedup_by_key(|entry| entry.name());
        Self { services, cache, authorize, max_message }
    }

    /// Handles a message. `reply` is overwritten with a marked frame of at most `limit` bytes of message, or with the end of
    /// one whose beginning lies in its place. Others who asked for the same call meanwhile are replied to over their own paths.
    pub fn handle(
        &self,
        message: &[u8],
        peer: &Peer,
        path: &ReplyPath,
        limit: usize,
        reply: &mut Vec<u8>,
        place: Option<&mut InPlace<'_>>,
    ) -> Outcome {
        let limit = limit.min(self.max_message);
        let (header, arguments) = match call::Repr::parse(message) {
            Ok(parsed) => parsed,
            Err(error) => return refuse(message, &error, reply),
        };
        let call::Repr { xid, program, version, procedure, credential, verifier } = header;
        let call = Call { xid, program, version, procedure, credential, verifier, peer };
        if let Err(error) = (self.authorize)(&call) {
            return finish(reply, xid, Body::Denied(Denied::AuthError(error)));
        }
        let service = match self.find(program, version) {
            Ok(service) => service,
            Err(state) => return finish(reply, xid, accepted(state)),
        };
        let key = if service.repeatable(procedure) {
            None
        } else {
            match self.cache.find(&message[4..], xid.0, peer, path, reply) {
                Found::New(key) => key,
                Found::Again { replied: true } => return Outcome::Reply,
                Found::Again { replied: false } | Found::Running => return Outcome::Silence,
            }
        };
        // A reply that is remembered is not put together elsewhere.
        let place = if key.is_none() { place } else { None };
        let outcome = execute(&**service, &call, arguments, limit, reply, place);
        if let Some(key) = key {
            let frame = (outcome == Outcome::Reply).then_some(reply.as_slice());
            for other in self.cache.done(key, frame) {
                if let Some(frame) = frame {
                    other.send(frame);
                }
            }
        }
        outcome
    }

    #[inline]
    fn find(&self, program: u32, version: u32) -> Result<&Arc<dyn Service>, Accepted> {
        match self.services.binary_search_by_key(&(program, version), Entry::name) {
            Ok(found) => Ok(&self.services[found].service),
            Err(_) => Err(self.versions(program)),
        }
    }

    /// Why there is no such version.
    #[cold]
    fn versions(&self, program: u32) -> Accepted {
        let numbers = || self.services.iter().filter(|entry| entry.program == program).map(|entry| entry.version);
        match (numbers().min(), numbers().max()) {
            (Some(low), Some(high)) => Accepted::ProgramMismatch { low, high },
            _ => Accepted::ProgramUnavailable,
        }
    }
}

/// Lets in who states nothing, or states a user well.
pub(super) fn authorize(call: &Call<'_>) -> Result<(), AuthError> {
    match call.credential.flavor {
        Auth::AUTH_NONE => Ok(()),
        Auth::AUTH_SYS => AuthSys::parse(call.credential.body).map(|_| ()).map_err(|_| AuthError::BadCredential),
        _ => Err(AuthError::RejectedCredential),
    }
}

fn execute(
    service: &dyn Service,
    call: &Call<'_>,
    arguments: &[u8],
    limit: usize,
    reply: &mut Vec<u8>,
    mut in_place: Option<&mut InPlace<'_>>,
) -> Outcome {
    begin_success(reply, call.xid);
    let place = in_place.as_mut().map(|place| &mut **place as &mut dyn Place);
    let mut out = Writer::with_place(reply, ROOM + limit.max(MIN_REPLY), place);
    let mut input = Reader::new(arguments);
    // A service that panics has trouble of its own, and only its call is refused.
    let outcome = catch_unwind(AssertUnwindSafe(|| service.call(call, &mut input, &mut out)));
    let placed = out.placed() > 0;
    if let Ok(Ok(())) = outcome {
        if !placed {
            record::mark(reply);
        }
        return Outcome::Reply;
    }
    if let Some(place) = in_place {
        place.clear();
    }
    let body = match outcome {
        Ok(Ok(()) | Err(Refusal::NoReply)) => return Outcome::Silence,
        Ok(Err(Refusal::ProcedureUnavailable)) => accepted(Accepted::ProcedureUnavailable),
        Ok(Err(Refusal::GarbageArguments)) => accepted(Accepted::GarbageArguments),
        Ok(Err(Refusal::Auth(error))) => Body::Denied(Denied::AuthError(error)),
        Ok(Err(Refusal::SystemError)) | Err(_) => accepted(Accepted::SystemError),
    };
    finish(reply, call.xid, body)
}

/// Begins the reply that most calls get. The last one was often such a reply, too, and its header differs in the xid alone.
#[inline]
fn begin_success(reply: &mut Vec<u8>, xid: Xid) {
    const HEAD: usize = ROOM + reply::PLAIN_LEN;
    let header = reply::success_header(xid);
    let (number, rest) = header.split_at(size_of::<Xid>());
    if reply.get(ROOM + number.len()..HEAD) == Some(rest) {
        reply.truncate(HEAD);
        reply[ROOM..ROOM + number.len()].copy_from_slice(number);
        return;
    }
    reply.clear();
    reply.extend_from_slice(&[0; ROOM]);
    reply.extend_from_slice(&header);
}

/// A message that is no call that could be executed.
#[cold]
fn refuse(message: &[u8], error: &xdr::Error, reply: &mut Vec<u8>) -> Outcome {
    match error {
        xdr::Error::RpcVersion { xid, .. } => {
            let denied = Denied::RpcMismatch { low: oncrpc::VERSION, high: oncrpc::VERSION };
            finish(reply, Xid(*xid), Body::Denied(denied))
        }
        // A reply, which nobody here has asked for.
        _ if matches!(oncrpc::peek(message), Ok((_, false))) => Outcome::Silence,
        _ => Outcome::Nonsense,
    }
}

#[cold]
fn finish(reply: &mut Vec<u8>, xid: Xid, body: Body<'_>) -> Outcome {
    reply.clear();
    reply.extend_from_slice(&[0; ROOM]);
    let header = reply::Repr { xid, body };
    header.emit(&mut Writer::new(reply, ROOM + MIN_REPLY)).expect("a reply header fits into the shortest reply");
    record::mark(reply);
    Outcome::Reply
}

fn accepted(state: Accepted) -> Body<'static> {
    Body::Accepted { verifier: Auth::NONE, state }
}

/// Every reply header of this server fits.
const MIN_REPLY: usize = 64;
