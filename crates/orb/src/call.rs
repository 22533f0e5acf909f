//! A request that is being served.

use sidestep_wire::giop::{self, MessageType, Version, reply, request};

use crate::Ior;
use crate::cdr::{self, Cdr, CharSet, Decoder, Encoder};
use crate::exception::{Completion, Kind, OMG, SystemException, UserException};

/// What implements an object. The IDL compiler makes one of each implementation of a `Servant` trait.
pub trait Servant: Send + Sync + 'static {
    /// The repository ids of the interfaces that it has, the most derived first.
    fn type_ids(&self) -> &'static [&'static str];

    /// Carries out a request. Whatever is returned as an error is what the caller gets, unless there is a reply already.
    fn dispatch(&self, call: &mut Call<'_>) -> Result<(), SystemException>;
}

/// A request, its arguments, and the place for its reply.
pub struct Call<'a> {
    operation: &'a str,
    arguments: Decoder<'a>,
    writer: ReplyWriter,
    finished: Option<Vec<u8>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(operation: &'a str, arguments: Decoder<'a>, writer: ReplyWriter) -> Self {
        Self { operation, arguments, writer, finished: None }
    }

    /// The name of the operation.
    #[must_use]
    pub fn operation(&self) -> &'a str {
        self.operation
    }

    /// Reads the arguments.
    pub fn arguments<T>(
        &mut self,
        decode: impl FnOnce(&mut Decoder<'a>) -> Result<T, cdr::Error>,
    ) -> Result<T, SystemException> {
        decode(&mut self.arguments).map_err(|error| SystemException::of_cdr(&error, Completion::No))
    }

    /// Writes the reply: the result, then the out parameters.
    pub fn reply(
        &mut self,
        encode: impl FnOnce(&mut Encoder) -> Result<(), cdr::Error>,
    ) -> Result<(), SystemException> {
        self.finish(reply::Status::NoException, encode)
    }

    /// Writes the reply: an exception that the operation declares.
    pub fn raise<E: UserException>(&mut self, exception: &E) -> Result<(), SystemException> {
        self.finish(reply::Status::UserException, |encoder| exception.encode(encoder))
    }

    /// The exception for an operation that the servant does not have.
    #[must_use]
    pub fn unknown_operation(&self) -> SystemException {
        Kind::BadOperation.with_minor(OMG | 2, Completion::No)
    }

    fn finish(
        &mut self,
        status: reply::Status,
        encode: impl FnOnce(&mut Encoder) -> Result<(), cdr::Error>,
    ) -> Result<(), SystemException> {
        let failed = |error: &cdr::Error| SystemException::of_cdr(error, Completion::Yes);
        self.finished = Some(self.writer.write(status, encode).map_err(|error| failed(&error))?);
        Ok(())
    }

    pub(crate) fn into_reply(mut self, outcome: Result<(), SystemException>) -> Option<Vec<u8>> {
        match outcome {
            Ok(()) if self.finished.is_some() => self.finished,
            Ok(()) => self.writer.exception(Kind::NoResponse.raised(Completion::Maybe)),
            Err(exception) => self.writer.exception(exception),
        }
    }
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "call of {}", self.operation)
    }
}

/// Makes the reply to one request.
pub(crate) struct ReplyWriter {
    pub(crate) version: Version,
    pub(crate) chars: CharSet,
    pub(crate) request_id: u32,
    pub(crate) response: request::Response,
    pub(crate) buffer: Vec<u8>,
}

impl ReplyWriter {
    fn write(
        &mut self,
        status: reply::Status,
        encode: impl FnOnce(&mut Encoder) -> Result<(), cdr::Error>,
    ) -> Result<Vec<u8>, cdr::Error> {
        let buffer = std::mem::take(&mut self.buffer);
        let mut encoder = giop::begin(buffer, self.version, self.chars, MessageType::Reply);
        let header = reply::Repr { request_id: self.request_id, status, contexts: giop::Contexts::EMPTY };
        let failed = |error: giop::Error| match error {
            giop::Error::Cdr(error) => error,
            _ => cdr::Error::TypeCode,
        };
        header.emit(self.version, &mut encoder).map_err(failed)?;
        // Who only wants to know that the server has the request gets no results.
        if self.response == request::Response::Target {
            let header_ends = encoder.position();
            request::align_body(self.version, &mut encoder);
            let body_begins = encoder.position();
            encode(&mut encoder)?;
            if encoder.position() == body_begins {
                encoder.truncate(header_ends);
            }
        }
        giop::finish(encoder).map_err(failed)
    }

    pub(crate) fn exception(&mut self, exception: SystemException) -> Option<Vec<u8>> {
        self.write(reply::Status::SystemException, |encoder| exception.encode(encoder)).ok()
    }

    pub(crate) fn forward(&mut self, to: &Ior) -> Option<Vec<u8>> {
        self.write(reply::Status::LocationForward, |encoder| to.encode(encoder)).ok()
    }

    pub(crate) fn result<T: Cdr>(&mut self, value: &T) -> Option<Vec<u8>> {
        self.write(reply::Status::NoException, |encoder| value.encode(encoder)).ok()
    }
}

/// The operations that every object has. `None` if it is one that the servant has to know.
pub(crate) fn standard_operation(
    operation: &str,
    arguments: &Decoder<'_>,
    servant: &dyn Servant,
    writer: &mut ReplyWriter,
) -> Option<Option<Vec<u8>>> {
    Some(match operation {
        "_is_a" => match arguments.clone().string() {
            Ok(id) => {
                let known = servant.type_ids().contains(&id.as_str()) || id == crate::object::OBJECT_ID;
                writer.result(&known)
            }
            Err(error) => writer.exception(SystemException::of_cdr(&error, Completion::No)),
        },
        "_non_existent" | "_not_existent" => writer.result(&false),
        "_repository_id" => writer.result(&servant.type_ids().first().copied().unwrap_or_default().to_owned()),
        "_interface" => writer.exception(Kind::IntfRepos.with_minor(OMG | 1, Completion::No)),
        "_component" => writer.result(&None::<crate::Object>),
        _ => return None,
    })
}
