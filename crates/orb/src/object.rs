//! References to objects, and calls.

mod sending;

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sidestep_wire::giop::target;

use crate::answer::{Answer, failure_of, is_unreachable};
use crate::cdr::{self, Decoder, Encoder, Reference};
use crate::client::{Connection, Lost, Wanted};
use crate::deferred::{Again, Deferred};
use crate::draft::Draft;
use crate::exception::{Completion, Failure, Kind, SystemException};
use crate::request::Encode;
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
    /// The route that leads to this broker itself.
    local: Option<usize>,
    /// Where a server has sent us, and whether one has.
    forwarded: Mutex<Option<Object>>,
    is_forwarded: AtomicBool,
    /// How requests name the object: [`target::KEY`], unless the server wants it otherwise.
    addressing: AtomicU16,
}

/// A typed reference, as the IDL compiler makes it.
pub trait Stub: Reference + Clone {
    /// A typed reference to the object, whatever its type is. [`Object::narrow`] asks first.
    fn from_object(object: Object) -> Self;

    /// The reference without its type.
    fn object(&self) -> &Object;
}

/// How often a call may be sent elsewhere before something is taken to be wrong.
pub(crate) const MAX_HOPS: usize = 10;

/// Where a request went.
pub(crate) enum Sent {
    /// Over a connection, by this number. The reply has not been waited for.
    Remote(Arc<Connection>, u32),
    /// The reply has come, and lies in the draft.
    Answered,
    /// There is no reply.
    Unanswered,
    /// The reply will not come.
    Lost(Lost),
}

/// What is sent.
#[derive(Clone, Copy)]
pub(crate) enum What<'a> {
    /// A request for an operation, with these arguments.
    Call(&'a str, Encode<'a>),
    /// The question where the object is.
    Locate,
}

impl Object {
    pub(crate) fn new(orb: Orb, ior: Ior) -> Self {
        let timeout = orb.default_timeout();
        let (routes, slot) = (routes(&ior), orb.new_slot());
        let local = routes.iter().position(|route| orb.listens_on(&route.endpoint));
        let (forwarded, is_forwarded) = (Mutex::new(None), AtomicBool::new(false));
        let addressing = AtomicU16::new(target::KEY);
        let target = ObjectTarget { orb, ior, routes, slot, local, forwarded, is_forwarded, addressing };
        Self { target: Arc::new(target), timeout }
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
        let deadline = self.deadline();
        let mut forwarded = self.forwarded();
        let mut hops = 0;
        loop {
            let object = forwarded.as_ref().unwrap_or(self);
            let mut draft = Draft::take();
            let sent = object.send(&mut draft, What::Call(operation, &encode), Wanted::Now, deadline);
            let answer = match sent {
                Ok(Sent::Answered) => self.answer(&draft.reply, &decode),
                // The server closed an idle connection while the request was on its way, and has not served it.
                Ok(Sent::Lost(Lost::Refused)) if hops < MAX_HOPS => {
                    hops += 1;
                    continue;
                }
                Ok(Sent::Lost(lost)) => Err(failure_of(lost)),
                Ok(Sent::Unanswered | Sent::Remote(..)) => Err(Kind::Internal.raised(Completion::Maybe)),
                Err(exception) => Err(exception),
            };
            draft.keep();
            hops += 1;
            match answer {
                Ok(Answer::Outcome(outcome)) => return outcome,
                Ok(Answer::Forward(object)) if hops < MAX_HOPS => {
                    self.forward(Some(object.clone()));
                    forwarded = Some(object);
                }
                Ok(Answer::Forward(_)) => return Err(Kind::Transient.raised(Completion::No).into()),
                Ok(Answer::Named(mode)) if hops < MAX_HOPS && object.name_by(mode) => {}
                Ok(Answer::Named(_)) => return Err(Kind::NoImplement.raised(Completion::No).into()),
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
    ///
    /// A server that would send the call elsewhere cannot say so: [`Object::locate`] asks before.
    pub fn oneway(
        &self,
        operation: &str,
        encode: impl Fn(&mut Encoder<'_>) -> Result<(), cdr::Error>,
    ) -> Result<(), SystemException> {
        let deadline = self.deadline();
        let mut draft = Draft::take();
        let sent = self.send_on(&mut draft, What::Call(operation, &encode), Wanted::Never, deadline).map(drop);
        draft.keep();
        sent
    }

    /// Sends a request now, to collect its outcome later.
    ///
    /// A server that sends the call elsewhere is followed when the outcome is collected.
    pub fn begin<T, E: Failure>(
        &self,
        operation: &str,
        encode: impl Fn(&mut Encoder<'_>) -> Result<(), cdr::Error>,
        decode: fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    ) -> Result<Deferred<T, E>, E> {
        let deadline = self.deadline();
        let mut draft = Draft::take();
        let sent = self.send_on(&mut draft, What::Call(operation, &encode), Wanted::Later, deadline);
        let again = if sent.is_ok() { Again::of(&draft, operation, &encode) } else { None };
        let answered = matches!(sent, Ok(Sent::Answered)).then(|| std::mem::take(&mut draft.reply));
        draft.keep();
        Ok(Deferred::new(self.clone(), (sent?, answered.unwrap_or_default()), again, deadline, decode))
    }

    /// Until when a call that begins now may take.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.timeout.map(|timeout| Instant::now() + timeout)
    }

    /// Sends something to where this reference was forwarded to, or to where it leads if that is no longer there.
    pub(crate) fn send_on(
        &self,
        draft: &mut Draft,
        what: What<'_>,
        wanted: Wanted,
        deadline: Option<Instant>,
    ) -> Result<Sent, SystemException> {
        if let Some(forwarded) = self.forwarded() {
            match forwarded.send(draft, what, wanted, deadline) {
                Err(exception) if is_unreachable(&exception) => self.forward(None),
                sent => return sent,
            }
        }
        self.send(draft, what, wanted, deadline)
    }

    /// Names the object in this way from now on; false if it is none, or not another one.
    #[cold]
    pub(crate) fn name_by(&self, mode: u16) -> bool {
        matches!(mode, target::KEY | target::PROFILE | target::REFERENCE)
            && self.target.addressing.swap(mode, Ordering::Relaxed) != mode
    }

    #[inline]
    pub(crate) fn forwarded(&self) -> Option<Object> {
        if self.target.is_forwarded.load(Ordering::Acquire) { self.forwarded_to() } else { None }
    }

    #[cold]
    fn forwarded_to(&self) -> Option<Object> {
        self.target.forwarded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn forward(&self, to: Option<Object>) {
        let mut forwarded = self.target.forwarded.lock().unwrap_or_else(PoisonError::into_inner);
        self.target.is_forwarded.store(to.is_some(), Ordering::Release);
        *forwarded = to;
    }
}

/// The repository id of every object.
pub(crate) const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

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
