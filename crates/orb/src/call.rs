//! A request that is being served.

use sidestep_wire::giop::{self, MessageType, Version, reply, request, target};

use crate::assembler::Message;
use crate::cdr::{self, Cdr, CharSet, Decoder, Encoder};
use crate::exception::{Completion, Kind, OMG, SystemException, UserException};
use crate::marshal::{self, Shape};
use crate::poa::Serving;
use crate::server::Line;
use crate::{Ior, Orb};

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
    /// The message, if not all of it is at hand.
    message: Option<&'a Message<'a>>,
    arguments: Decoder<'a>,
    writer: ReplyWriter<'a>,
    answered: bool,
}

impl<'a> Call<'a> {
    #[inline]
    pub(crate) fn new(
        operation: &'a str,
        message: Option<&'a Message<'a>>,
        arguments: Decoder<'a>,
        writer: ReplyWriter<'a>,
    ) -> Self {
        Self { operation, message, arguments, writer, answered: false }
    }

    /// The name of the operation.
    #[must_use]
    pub fn operation(&self) -> &'a str {
        self.operation
    }

    /// Reads the arguments. They are read again if they have to be fetched from where they lie first.
    pub fn arguments<T>(
        &mut self,
        decode: impl Fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    ) -> Result<T, SystemException> {
        let begin = self.arguments.clone();
        let decoded = match decode(&mut self.arguments) {
            Err(cdr::Error::Elsewhere) => self.fetched(&begin, decode),
            other => other,
        };
        decoded.map_err(|error| SystemException::of_cdr(&error, Completion::No))
    }

    fn fetched<T>(
        &self,
        begin: &Decoder<'a>,
        decode: impl Fn(&mut Decoder<'_>) -> Result<T, cdr::Error>,
    ) -> Result<T, cdr::Error> {
        let mut bytes = Vec::new();
        if !self.message.is_some_and(|message| message.copy_to(&mut bytes)) {
            return Err(cdr::Error::Elsewhere);
        }
        let mut decoder = Decoder::new(&bytes, begin.format());
        if let Some(orb) = begin.context::<Orb>() {
            decoder = decoder.with_context(orb);
        }
        decoder.raw(begin.position())?;
        decode(&mut decoder)
    }

    /// Writes the reply: the result, then the out parameters. It is written twice if there are large blocks in it.
    pub fn reply(
        &mut self,
        encode: impl Fn(&mut Encoder<'_>) -> Result<(), cdr::Error>,
    ) -> Result<(), SystemException> {
        self.finish(reply::Status::NoException, &encode)
    }

    /// Writes the reply: an exception that the operation declares.
    pub fn raise<E: UserException>(&mut self, exception: &E) -> Result<(), SystemException> {
        self.finish(reply::Status::UserException, &|encoder| exception.encode(encoder))
    }

    /// The exception for an operation that the servant does not have.
    #[must_use]
    pub fn unknown_operation(&self) -> SystemException {
        Kind::BadOperation.with_minor(OMG | 2, Completion::No)
    }

    fn finish(&mut self, status: reply::Status, encode: Encode<'_>) -> Result<(), SystemException> {
        let written = self.writer.write(status, encode);
        written.map_err(|error| SystemException::of_cdr(&error, Completion::Yes))?;
        self.answered = true;
        Ok(())
    }

    /// What becomes of the request, after this outcome.
    #[inline]
    pub(crate) fn answer(mut self, outcome: Result<(), SystemException>) -> Answer {
        match outcome {
            Ok(()) if self.answered => self.writer.answer,
            // What has been sent cannot be taken back.
            Err(_) if matches!(self.writer.answer, Answer::Sent | Answer::Lost) => self.writer.answer,
            Ok(()) => self.writer.exception(Kind::NoResponse.raised(Completion::Maybe)),
            Err(exception) => self.writer.exception(exception),
        }
    }

    /// Carries out an operation that every object has; false if it is one that the servant has to know.
    #[inline]
    pub(crate) fn is_standard(&mut self, serving: &Serving) -> bool {
        self.answered = self.operation.starts_with('_') && self.carry_out_standard(serving);
        self.answered
    }

    #[cold]
    fn carry_out_standard(&mut self, serving: &Serving) -> bool {
        let writer = &mut self.writer;
        match self.operation {
            "_is_a" => match self.arguments.clone().string() {
                Ok(id) => {
                    let known = serving.type_ids().contains(&id.as_str()) || id == crate::object::OBJECT_ID;
                    writer.result(&known)
                }
                Err(error) => writer.exception(SystemException::of_cdr(&error, Completion::No)),
            },
            "_non_existent" | "_not_existent" => writer.result(&false),
            "_repository_id" => writer.result(&serving.type_ids().first().copied().unwrap_or_default().to_owned()),
            "_interface" => writer.exception(Kind::IntfRepos.with_minor(OMG | 1, Completion::No)),
            "_component" => writer.result(&None::<crate::Object>),
            _ => return false,
        };
        true
    }
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "call of {}", self.operation)
    }
}

/// What is in the body of a reply.
type Encode<'a> = &'a dyn Fn(&mut Encoder<'_>) -> Result<(), cdr::Error>;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing is to be sent.
    Nothing,
    /// The reply in the buffer is to be sent.
    Reply,
    /// It has been sent.
    Sent,
    /// It could not be sent, and the connection is of no use.
    Lost,
}

/// Makes the reply to one request.
pub(crate) struct ReplyWriter<'a> {
    version: Version,
    chars: CharSet,
    request_id: u32,
    response: request::Response,
    /// Where large replies go; without it they go into the buffer.
    line: Option<&'a Line>,
    /// Blocks of at least so many octets go out from where they lie.
    direct: usize,
    answer: Answer,
    buffer: &'a mut Vec<u8>,
}

impl<'a> ReplyWriter<'a> {
    #[inline]
    pub(crate) fn new(
        orb: &Orb,
        (version, chars): (Version, CharSet),
        (request_id, response): (u32, request::Response),
        line: Option<&'a Line>,
        buffer: &'a mut Vec<u8>,
    ) -> Self {
        let direct = if line.is_some() { orb.direct() } else { usize::MAX };
        Self { version, chars, request_id, response, line, direct, answer: Answer::Nothing, buffer }
    }

    fn write(&mut self, status: reply::Status, encode: Encode<'_>) -> Result<(), cdr::Error> {
        if self.response == request::Response::None {
            return Ok(());
        }
        let buffer = std::mem::take(self.buffer);
        let header = (self.request_id, status);
        let mut encoder = reply::begin(buffer, self.version, self.chars, header).counting(self.direct);
        self.emit_body(&mut encoder, encode)?;
        if encoder.is_partial() {
            let measured = (encoder.position(), encoder.into_bytes());
            self.send(status, encode, measured);
            return Ok(());
        }
        let len = encoder.position();
        giop::announce(&mut encoder, len).map_err(marshal::cdr_error)?;
        *self.buffer = encoder.into_bytes();
        self.answer = Answer::Reply;
        Ok(())
    }

    #[inline]
    fn emit_body(&self, encoder: &mut Encoder<'_>, encode: Encode<'_>) -> Result<(), cdr::Error> {
        // Who only wants to know that the server has the request gets no results.
        if self.response != request::Response::Target {
            return Ok(());
        }
        request::emit_body(self.version, encoder, encode)
    }

    /// Sends a reply that has large blocks, and was found to be so long.
    #[cold]
    fn send(&mut self, status: reply::Status, encode: Encode<'_>, measured: (usize, Vec<u8>)) {
        let Self { version, chars, direct, .. } = *self;
        let header = reply::Repr { request_id: self.request_id, status, contexts: giop::Contexts::EMPTY };
        let content = |encoder: &mut Encoder<'_>| {
            header.emit(version, encoder)?;
            Ok(self.emit_body(encoder, encode)?)
        };
        let shape = Shape { version, chars, message_type: MessageType::Reply, direct };
        let sent =
            self.line.map(|line| line.with_sender(|sender| marshal::send(shape, measured, &content, sender, None)));
        self.answer = match sent {
            Some(Ok(buffer)) => {
                *self.buffer = buffer;
                Answer::Sent
            }
            _ => Answer::Lost,
        };
    }

    pub(crate) fn exception(&mut self, exception: SystemException) -> Answer {
        // Nothing of an exception can be impossible to encode.
        let _ = self.write(reply::Status::SystemException, &|encoder| exception.encode(encoder));
        self.answer
    }

    pub(crate) fn forward(&mut self, to: &Ior) -> Answer {
        match self.write(reply::Status::LocationForward, &|encoder| to.encode(encoder)) {
            Ok(()) => self.answer,
            Err(error) => self.exception(SystemException::of_cdr(&error, Completion::No)),
        }
    }

    /// The object was named in a way that is not known here: it is to be named by its key.
    pub(crate) fn needs_key(&mut self) -> Answer {
        // Nothing of a number can be impossible to encode.
        let _ = self.write(reply::Status::NeedsAddressingMode, &|encoder| {
            encoder.u16(target::KEY);
            Ok(())
        });
        self.answer
    }

    fn result<T: Cdr>(&mut self, value: &T) -> Answer {
        match self.write(reply::Status::NoException, &|encoder| value.encode(encoder)) {
            Ok(()) => self.answer,
            Err(error) => self.exception(SystemException::of_cdr(&error, Completion::Yes)),
        }
    }
}
