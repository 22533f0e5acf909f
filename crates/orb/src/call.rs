//! A request that is being served.

use sidestep_wire::giop::{self, reply, request};

use crate::assembler::Message;
use crate::cdr::{self, Cdr, Decoder, Encoder};
use crate::exception::{Completion, Kind, OMG, SystemException, UserException};
use crate::marshal::{self, Shape, Written};
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
    message: &'a Message<'a>,
    arguments: Decoder<'a>,
    writer: ReplyWriter<'a>,
    answered: bool,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        operation: &'a str,
        message: &'a Message<'a>,
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
        if !self.message.copy_to(&mut bytes) {
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

    pub(crate) fn into_answer(mut self, outcome: Result<(), SystemException>) -> Answer {
        match outcome {
            Ok(()) if self.answered => {}
            // What has been sent cannot be taken back.
            Err(_) if matches!(self.writer.answer.state, AnswerState::Sent | AnswerState::Lost) => {}
            Ok(()) => self.writer.exception(Kind::NoResponse.raised(Completion::Maybe)),
            Err(exception) => self.writer.exception(exception),
        }
        self.writer.answer
    }
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "call of {}", self.operation)
    }
}

/// What is in the body of a reply.
type Encode<'a> = &'a dyn Fn(&mut Encoder<'_>) -> Result<(), cdr::Error>;

/// What becomes of a request, and the buffer that it used.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) state: AnswerState,
    pub(crate) buffer: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AnswerState {
    /// Nothing is to be sent.
    #[default]
    Nothing,
    /// The buffer is to be sent.
    Reply,
    /// It has been sent.
    Sent,
    /// It could not be sent, and the connection is of no use.
    Lost,
}

/// Makes the reply to one request.
pub(crate) struct ReplyWriter<'a> {
    pub(crate) shape: Shape,
    pub(crate) request_id: u32,
    pub(crate) response: request::Response,
    /// Where large replies go; without it they go into the buffer.
    pub(crate) line: Option<&'a Line>,
    pub(crate) answer: Answer,
}

impl ReplyWriter<'_> {
    fn write(&mut self, status: reply::Status, encode: Encode<'_>) -> Result<(), cdr::Error> {
        if self.response == request::Response::None {
            return Ok(());
        }
        let version = self.shape.version;
        let header = reply::Repr { request_id: self.request_id, status, contexts: giop::Contexts::EMPTY };
        let content = |encoder: &mut Encoder<'_>| {
            header.emit(version, encoder)?;
            // Who only wants to know that the server has the request gets no results.
            if self.response == request::Response::Target {
                let header_ends = encoder.position();
                request::align_body(version, encoder);
                let body_begins = encoder.position();
                encode(encoder)?;
                if encoder.position() == body_begins {
                    encoder.truncate(header_ends);
                }
            }
            Ok(())
        };
        let buffer = std::mem::take(&mut self.answer.buffer);
        self.answer = match marshal::write(self.shape, buffer, &content).map_err(marshal::cdr_error)? {
            Written::Whole(buffer) => Answer { state: AnswerState::Reply, buffer },
            Written::Large { len, buffer } => {
                let sent = self.line.map(|line| {
                    line.with_sender(|sender| marshal::send(self.shape, (len, buffer), &content, sender, None))
                });
                match sent {
                    Some(Ok(buffer)) => Answer { state: AnswerState::Sent, buffer },
                    _ => Answer { state: AnswerState::Lost, buffer: Vec::new() },
                }
            }
        };
        Ok(())
    }

    pub(crate) fn exception(&mut self, exception: SystemException) {
        // Nothing of an exception can be impossible to encode.
        let _ = self.write(reply::Status::SystemException, &|encoder| exception.encode(encoder));
    }

    pub(crate) fn forward(&mut self, to: &Ior) {
        if let Err(error) = self.write(reply::Status::LocationForward, &|encoder| to.encode(encoder)) {
            self.exception(SystemException::of_cdr(&error, Completion::No));
        }
    }

    pub(crate) fn result<T: Cdr>(&mut self, value: &T) {
        if let Err(error) = self.write(reply::Status::NoException, &|encoder| value.encode(encoder)) {
            self.exception(SystemException::of_cdr(&error, Completion::Yes));
        }
    }
}

/// Carries out an operation that every object has; false if it is one that the servant has to know.
pub(crate) fn standard_operation(
    operation: &str,
    arguments: &Decoder<'_>,
    servant: &dyn Servant,
    writer: &mut ReplyWriter<'_>,
) -> bool {
    if !operation.starts_with('_') {
        return false;
    }
    match operation {
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
        _ => return false,
    }
    true
}
