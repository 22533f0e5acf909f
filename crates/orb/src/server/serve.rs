//! One message to its answer. There is no connection here, so calls within a process come the same way.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sidestep_wire::giop::{self, MessageType, Version, locate, request};

use super::Line;
use crate::Orb;
use crate::assembler::{Broken, Message};
use crate::call::{Answer, AnswerState, Call, ReplyWriter, standard_operation};
use crate::cdr::{self, Cdr, CharSet, Decoder, Format};
use crate::exception::{Completion, Kind};
use crate::marshal::Shape;
use crate::poa::Refusal;

/// What is remembered between the messages of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    chars: Option<CharSet>,
    version: Version,
    cancelled: Option<u32>,
    over: bool,
    buffer: Vec<u8>,
}

impl Default for Session {
    fn default() -> Self {
        Self { chars: None, version: Version::V1_0, cancelled: None, over: false, buffer: Vec::new() }
    }
}

impl Session {
    /// For calls within a process, whose text needs no agreement.
    pub(crate) fn local(buffer: Vec<u8>) -> Self {
        Self { chars: Some(CharSet::Utf8), buffer, ..Self::default() }
    }

    /// The version of the last message that was understood.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Whether the peer has said that nothing follows.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    pub(crate) fn take_cancelled(&mut self) -> Option<u32> {
        self.cancelled.take()
    }

    /// Takes the buffer of a reply that was sent, for the next one.
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }

    fn chars(&self) -> CharSet {
        self.chars.unwrap_or(CharSet::Latin1)
    }

    /// The answer that is nothing.
    fn silence(&mut self) -> Answer {
        Answer { state: AnswerState::Nothing, buffer: std::mem::take(&mut self.buffer) }
    }
}

/// Serves a message; returns what is to be sent back. Large replies are sent over `line` at once.
pub(crate) fn serve(
    orb: &Orb,
    message: &Message<'_>,
    session: &mut Session,
    line: Option<&Line>,
) -> Result<Answer, Broken> {
    session.version = message.header.version;
    let served = serve_where_it_lies(orb, message, session, line);
    // The header of the message does not end where it usually does. Nothing has been carried out.
    let mut bytes = Vec::new();
    if !matches!(served, Err(Broken::Giop(giop::Error::Cdr(cdr::Error::Elsewhere)))) || !message.copy_to(&mut bytes) {
        return served;
    }
    serve_where_it_lies(orb, &Message { header: message.header, bytes: &bytes, rest: None }, session, line)
}

fn serve_where_it_lies(
    orb: &Orb,
    message: &Message<'_>,
    session: &mut Session,
    line: Option<&Line>,
) -> Result<Answer, Broken> {
    match message.header.message_type {
        MessageType::Request => serve_request(orb, message, session, line),
        MessageType::LocateRequest => serve_locate(orb, message, session),
        MessageType::CancelRequest => {
            session.cancelled = Some(request::parse_cancel(&mut message.decoder(CharSet::Latin1))?);
            Ok(session.silence())
        }
        MessageType::CloseConnection | MessageType::MessageError => {
            session.over = true;
            Ok(session.silence())
        }
        MessageType::Reply | MessageType::LocateReply | MessageType::Fragment => {
            Err(Broken::Giop(giop::Error::MessageType {
                found: message.header.message_type as u8,
                minor: session.version.minor(),
            }))
        }
    }
}

fn serve_request(
    orb: &Orb,
    message: &Message<'_>,
    session: &mut Session,
    line: Option<&Line>,
) -> Result<Answer, Broken> {
    let version = message.header.version;
    let mut decoder = message.decoder(session.chars()).with_context(orb);
    let request = request::Repr::parse(version, &mut decoder)?;
    let key = request.target.key()?;
    let mut code_sets = Ok(());
    if let Some(context) = request.contexts.find(giop::CODE_SETS) {
        code_sets = agree(context, session);
        // The body is text in the code set that was just agreed on.
        decoder = message.decoder(session.chars()).with_context(orb);
        request::Repr::parse(version, &mut decoder)?;
    }
    let direct = if line.is_some() { orb.direct() } else { usize::MAX };
    let shape = Shape { version, chars: session.chars(), message_type: MessageType::Reply, direct };
    let mut writer = ReplyWriter {
        shape,
        request_id: request.request_id,
        response: request.response,
        line,
        answer: session.silence(),
    };
    match (code_sets, std::str::from_utf8(request.operation)) {
        (Err(()), _) => writer.exception(Kind::CodesetIncompatible.raised(Completion::No)),
        (_, Err(_)) => writer.exception(Kind::BadOperation.raised(Completion::No)),
        (Ok(()), Ok(operation)) => return Ok(carry_out(orb, key, operation, (message, decoder), writer)),
    }
    Ok(writer.answer)
}

fn carry_out<'a>(
    orb: &Orb,
    key: &[u8],
    operation: &'a str,
    (message, arguments): (&'a Message<'a>, Decoder<'a>),
    mut writer: ReplyWriter<'a>,
) -> Answer {
    let serving = match orb.find_servant(key, operation) {
        Ok(serving) => serving,
        Err(refusal) => {
            match refusal {
                Refusal::System(exception) => writer.exception(exception),
                Refusal::Forward(object) => writer.forward(object.ior()),
            }
            return writer.answer;
        }
    };
    if standard_operation(operation, &arguments, &**serving.servant(), &mut writer) {
        return writer.answer;
    }
    let mut call = Call::new(operation, message, arguments, writer);
    // A servant that panics is a fault of one call, not of the server.
    let outcome = catch_unwind(AssertUnwindSafe(|| serving.dispatch(&mut call)));
    call.into_answer(outcome.unwrap_or_else(|_| Err(Kind::Unknown.raised(Completion::Maybe))))
}

fn serve_locate(orb: &Orb, message: &Message<'_>, session: &mut Session) -> Result<Answer, Broken> {
    let version = message.header.version;
    let mut decoder = message.decoder(session.chars());
    let request = locate::Request::parse(version, &mut decoder)?;
    let found = orb.locate(request.target.key()?);
    let buffer = std::mem::take(&mut session.buffer);
    let mut encoder = giop::begin(buffer, version, session.chars(), MessageType::LocateReply);
    let status = match &found {
        Ok(()) => locate::Status::ObjectHere,
        Err(Refusal::Forward(_)) => locate::Status::ObjectForward,
        Err(Refusal::System(_)) => locate::Status::UnknownObject,
    };
    locate::Reply { request_id: request.request_id, status }.emit(&mut encoder);
    if let Err(Refusal::Forward(object)) = found {
        object.ior().encode(&mut encoder).map_err(giop::Error::Cdr)?;
    }
    Ok(Answer { state: AnswerState::Reply, buffer: giop::finish(encoder)? })
}

/// Takes the code sets that the client has chosen.
fn agree(context: &[u8], session: &mut Session) -> Result<(), ()> {
    let mut decoder = Decoder::of_encapsulation(context, Format::NATIVE).map_err(drop)?;
    let chosen = decoder.u32().map_err(drop)?;
    session.chars = Some(CharSet::from_id(chosen).ok_or(())?);
    match decoder.u32() {
        Ok(0 | crate::cdr::UTF16) | Err(_) => Ok(()),
        Ok(_) => Err(()),
    }
}
