//! References to objects, and calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sidestep_wire::giop::{Version, reply};

use crate::buffers;
use crate::cdr::{self, Cdr, CharSet, Decoder, Encoder, Reference};
use crate::client::{Connection, Lost, Reply};
use crate::deferred::Deferred;
use crate::exception::{Completion, Failure, Kind, OMG, SystemException};
use crate::marshal::Written;
use crate::request::{Encode, Request};
use crate::route::{Route, routes};
use crate::{Ior, Orb};

/// A reference to an object of any interface.
#[derive(Clone)]
pub struct Object {
    target: Arc<ObjectTarget>,
    timeout: Option<Duration>,
}

struct ObjectTarget {
    orb: Orb,
    ior: Ior,
    routes: Vec<Route>,
    /// Which of the connections to its server is used.
    slot: usize,
    /// Where a server has sent us, and whether one has.
    forwarded: Mutex<Option<Object>>,
    is_forwarded: AtomicBool,
}

/// A typed reference, as the IDL compiler makes it.
pub trait Stub: Reference + Clone {
    /// A typed reference to the object, whatever its type is. [`Object::narrow`] asks first.
    fn from_object(object: Object) -> Self;

    /// The reference without its type.
    fn object(&self) -> &Object;
}

/// How often a call may be sent elsewhere before something is taken to be wrong.
const MAX_HOPS: usize = 10;

/// Where a request went.
pub(crate) enum Sent {
    /// Over a connection, by this number; the reply may be put into the buffer.
    Remote(Arc<Connection>, u32, Vec<u8>),
    /// The object is in this process, and this is its reply; or there is none.
    Local(Option<Reply>),
}

/// What a reply says, besides results and exceptions.
pub(crate) enum Answer<T, E> {
    Outcome(Result<T, E>),
    Forward(Object),
}

impl Object {
    pub(crate) fn new(orb: Orb, ior: Ior) -> Self {
        let timeout = orb.default_timeout();
        let (routes, slot) = (routes(&ior), orb.new_slot());
        let (forwarded, is_forwarded) = (Mutex::new(None), AtomicBool::new(false));
        Self { target: Arc::new(ObjectTarget { orb, ior, routes, slot, forwarded, is_forwarded }), timeout }
    }

    /// The reference that a message holds. The context of the decoder is the broker.
    pub fn from_ior(ior: Ior, decoder: &Decoder<'_>) -> Result<Self, cdr::Error> {
        let orb: &Orb = decoder.context().ok_or(cdr::Error::TypeCode)?;
        Ok(Self::new(orb.clone(), ior))
    }

    /// Where the object is.
    #[must_use]
    pub fn ior(&self) -> &Ior {
        &self.target.ior
    }

    /// The broker of the reference.
    #[must_use]
    pub fn orb(&self) -> &Orb {
        &self.target.orb
    }

    /// The same reference, whose calls fail with `TIMEOUT` after this time.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self.clone() }
    }

    /// The typed reference, or `None` if the object is of another type. May ask the object.
    pub fn narrow<T: Stub>(&self) -> Result<Option<T>, SystemException> {
        Ok(self.is_a(T::TYPE_ID)?.then(|| T::from_object(self.clone())))
    }

    /// Whether the object has this interface.
    pub fn is_a(&self, type_id: &str) -> Result<bool, SystemException> {
        if self.ior().type_id == type_id || type_id == OBJECT_ID {
            return Ok(true);
        }
        self.call("_is_a", |encoder| encoder.string(type_id), |decoder| decoder.bool())
    }

    /// Whether the object is known not to exist.
    pub fn non_existent(&self) -> Result<bool, SystemException> {
        match self.call("_non_existent", |_| Ok(()), |decoder| decoder.bool()) {
            Err(SystemException { kind: Kind::ObjectNotExist, .. }) => Ok(true),
            other => other,
        }
    }

    /// Calls an operation and waits for its outcome.
    pub fn call<T, E: Failure>(
        &self,
        operation: &str,
        encode: impl Fn(&mut Encoder<'_>) -> Result<(), cdr::Error>,
        decode: impl Fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    ) -> Result<T, E> {
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let mut forwarded = self.forwarded();
        let mut hops = 0;
        loop {
            let object = forwarded.as_ref().unwrap_or(self);
            let answer = match object.send(operation, true, &encode, deadline).map(|sent| sent.wait(deadline)) {
                // The server closed an idle connection while the request was on its way, and has not served it.
                Ok(Err(Lost::Refused)) if hops < MAX_HOPS => {
                    hops += 1;
                    continue;
                }
                Ok(reply) => reply.map_err(failure_of).and_then(|reply| self.answer(reply, &decode)),
                Err(exception) => Err(exception),
            };
            hops += 1;
            match answer {
                Ok(Answer::Outcome(outcome)) => return outcome,
                Ok(Answer::Forward(object)) if hops < MAX_HOPS => {
                    self.forward(Some(object.clone()));
                    forwarded = Some(object);
                }
                Ok(Answer::Forward(_)) => return Err(Kind::Transient.raised(Completion::No).into()),
                // Where we were sent is no longer there: the one who sent us knows better.
                Err(exception) if forwarded.is_some() && is_unreachable(&exception) && hops < MAX_HOPS => {
                    self.forward(None);
                    forwarded = None;
                }
                Err(exception) => return Err(exception.into()),
            }
        }
    }

    /// Sends a request that has no reply. Only what happens before it is sent can fail.
    pub fn oneway(
        &self,
        operation: &str,
        encode: impl Fn(&mut Encoder<'_>) -> Result<(), cdr::Error>,
    ) -> Result<(), SystemException> {
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        self.forwarded().as_ref().unwrap_or(self).send(operation, false, &encode, deadline).map(drop)
    }

    /// Sends a request now, to collect its outcome later.
    ///
    /// A server that sends the call elsewhere makes it fail with `TRANSIENT`; the next call goes there.
    pub fn begin<T, E: Failure>(
        &self,
        operation: &str,
        encode: impl Fn(&mut Encoder<'_>) -> Result<(), cdr::Error>,
        decode: fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    ) -> Result<Deferred<T, E>, E> {
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let forwarded = self.forwarded();
        let sent = forwarded.as_ref().unwrap_or(self).send(operation, true, &encode, deadline)?;
        Ok(Deferred::new(self.clone(), sent, deadline, decode))
    }

    fn forwarded(&self) -> Option<Object> {
        if !self.target.is_forwarded.load(Ordering::Acquire) {
            return None;
        }
        self.target.forwarded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn forward(&self, to: Option<Object>) {
        let mut forwarded = self.target.forwarded.lock().unwrap_or_else(PoisonError::into_inner);
        self.target.is_forwarded.store(to.is_some(), Ordering::Release);
        *forwarded = to;
    }

    /// Sends a request by the best way that works.
    fn send(
        &self,
        operation: &str,
        expects_reply: bool,
        encode: Encode<'_>,
        deadline: Option<Instant>,
    ) -> Result<Sent, SystemException> {
        let orb = &self.target.orb;
        if self.target.routes.is_empty() {
            return Err(Kind::InvObjref.raised(Completion::No));
        }
        if let Some(route) = self.target.routes.iter().find(|route| orb.listens_on(&route.endpoint)) {
            let request = Request::new(route, Version::V1_2, CharSet::Utf8, operation, expects_reply);
            let message = match request.write(usize::MAX, buffers::take(), encode)? {
                Written::Whole(message) | Written::Large { buffer: message, .. } => message,
            };
            let reply = orb.serve_locally(&message);
            buffers::keep(message);
            return Ok(Sent::Local(reply));
        }
        let mut failure = Kind::Transient.with_minor(OMG | 2, Completion::No);
        for route in &self.target.routes {
            // A connection that was kept may have been closed meanwhile: a new one is tried once.
            for _ in 0..2 {
                if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    return Err(Kind::Timeout.raised(Completion::No));
                }
                let chars = route.chars.unwrap_or(CharSet::Latin1);
                let version = route.version.min(orb.version());
                let connection = match route.connection() {
                    Some(connection) => connection,
                    None => match orb.connection((&route.endpoint, self.target.slot), version, chars, deadline) {
                        Ok(connection) => {
                            route.keep(&connection);
                            connection
                        }
                        Err(_) => break,
                    },
                };
                let request = Request::new(route, version, chars, operation, expects_reply);
                match submit(&connection, request, orb.direct(), encode, deadline) {
                    Ok((id, buffer)) if expects_reply => return Ok(Sent::Remote(connection, id, buffer)),
                    Ok((_, buffer)) => {
                        buffers::keep(buffer);
                        return Ok(Sent::Local(None));
                    }
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

    /// What a reply says.
    pub(crate) fn answer<T, E: Failure>(
        &self,
        reply: Option<Reply>,
        decode: impl Fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    ) -> Result<Answer<T, E>, SystemException> {
        let reply = reply.ok_or(Kind::Internal.raised(Completion::Maybe))?;
        let answer = self.read_answer(&reply, decode);
        buffers::keep(reply.bytes);
        answer
    }

    fn read_answer<T, E: Failure>(
        &self,
        reply: &Reply,
        decode: impl Fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    ) -> Result<Answer<T, E>, SystemException> {
        let message = crate::assembler::Message { header: reply.header, bytes: &reply.bytes, rest: None };
        let orb = &self.target.orb;
        let mut decoder = message.decoder(reply.chars).with_context(orb);
        let malformed = |error: &cdr::Error| SystemException::of_cdr(error, Completion::Yes);
        // The header was read when the reply came.
        decoder.raw(reply.body - decoder.position().min(reply.body)).map_err(|error| malformed(&error))?;
        match reply.status {
            reply::Status::NoException => Ok(Answer::Outcome(Ok(decode(&mut decoder).map_err(|e| malformed(&e))?))),
            reply::Status::UserException => {
                let id = decoder.clone().identifier().map_err(|error| malformed(&error))?;
                match E::decode(id, &mut decoder) {
                    Some(Ok(exception)) => Ok(Answer::Outcome(Err(exception))),
                    Some(Err(error)) => Err(malformed(&error)),
                    None => Err(Kind::Unknown.with_minor(OMG | 1, Completion::Yes)),
                }
            }
            reply::Status::SystemException => {
                Err(SystemException::decode(&mut decoder).unwrap_or_else(|error| malformed(&error)))
            }
            reply::Status::LocationForward | reply::Status::LocationForwardPerm => {
                let ior = Ior::decode(&mut decoder).map_err(|error| malformed(&error))?;
                if ior.is_nil() {
                    return Err(Kind::InvObjref.raised(Completion::No));
                }
                Ok(Answer::Forward(Object::new(orb.clone(), ior)))
            }
            // We name objects by their key, which every server has to understand.
            reply::Status::NeedsAddressingMode => Err(Kind::NoImplement.raised(Completion::No)),
        }
    }
}

/// Why a request was not sent.
enum Unsent {
    Lost(Lost),
    /// Its arguments cannot be encoded.
    Encoding(SystemException),
}

/// Sends a request over a connection; returns its id and the buffer that it used.
fn submit(
    connection: &Connection,
    mut request: Request<'_>,
    direct: usize,
    encode: Encode<'_>,
    deadline: Option<Instant>,
) -> Result<(u32, Vec<u8>), Unsent> {
    let id = connection.begin(request.expects_reply).map_err(Unsent::Lost)?;
    request.id = id;
    request.tells_code_sets = !connection.knows_code_sets();
    let written = request.write(direct, buffers::take(), encode).map_err(|exception| {
        connection.abandon(id);
        Unsent::Encoding(exception)
    })?;
    let sent = connection.submit(id, |sender| match written {
        Written::Whole(message) => sender.send(&message, false, deadline).map(|()| message),
        Written::Large { len, buffer } => request.send(direct, (len, buffer), encode, sender, deadline),
    });
    sent.map(|buffer| (id, buffer)).map_err(Unsent::Lost)
}

impl Sent {
    /// Waits for the reply.
    pub(crate) fn wait(self, deadline: Option<Instant>) -> Result<Option<Reply>, Lost> {
        match self {
            Sent::Local(reply) => Ok(reply),
            Sent::Remote(connection, id, buffer) => connection.wait(id, buffer, deadline).map(Some),
        }
    }
}

/// What the caller is told when a reply does not come.
pub(crate) fn failure_of(lost: Lost) -> SystemException {
    match lost {
        Lost::Refused => Kind::Transient.raised(Completion::No),
        Lost::Broken => Kind::CommFailure.raised(Completion::Maybe),
        Lost::TimedOut => Kind::Timeout.raised(Completion::Maybe),
    }
}

/// The repository id of every object.
pub(crate) const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

/// Whether the object may be found by asking again where it is.
fn is_unreachable(exception: &SystemException) -> bool {
    matches!(exception.kind, Kind::CommFailure | Kind::Transient | Kind::ObjectNotExist)
        && exception.completed == Completion::No
}

impl Reference for Object {
    const TYPE_ID: &'static str = OBJECT_ID;
    const NAME: &'static str = "Object";

    fn from_ior(ior: Ior, decoder: &Decoder<'_>) -> Result<Self, cdr::Error> {
        Object::from_ior(ior, decoder)
    }

    fn ior(&self) -> &Ior {
        Object::ior(self)
    }
}

impl Stub for Object {
    fn from_object(object: Object) -> Self {
        object
    }

    fn object(&self) -> &Object {
        self
    }
}

impl PartialEq for Object {
    /// Whether both are one reference. Two references may also lead to one object without being equal.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.target, &other.target) || self.target.ior == other.target.ior
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "reference to {:?} by", self.ior().type_id)?;
        self.target.routes.iter().try_for_each(|route| write!(f, " {}", route.endpoint))
    }
}
