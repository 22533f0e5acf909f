//! One message to its answer. There is no connection here, so calls within a process come the same way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sidestep_wire::giop::{self, MessageType, Version, locate, request, target};

use super::Line;
use super::prediction::{Predicted, Prediction};
use crate::Orb;
use crate::assembler::{Broken, Message};
use crate::call::{Answer, Call, ReplyWriter};
use crate::cdr::{self, Cdr, CharSet, Decoder, Format};
use crate::exception::{Completion, Kind};
use crate::poa::{Entry, Refusal, Serving};

/// What is remembered between the messages of a connection.
pub(crate) struct Session {
    chars: Option<CharSet>,
    version: Version,
    cancelled: Option<u32>,
    over: bool,
    /// The reply.
    buffer: Vec<u8>,
    prediction: Prediction,
}

impl Default for Session {
    fn default() -> Self {
        let (buffer, prediction) = (Vec::new(), Prediction::default());
        Self { chars: None, version: Version::V1_0, cancelled: None, over: false, buffer, prediction }
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

    /// The last reply that was not sent.
    pub(crate) fn reply(&self) -> &[u8] {
        &self.buffer
    }

    pub(crate) fn into_reply(self) -> Vec<u8> {
        self.buffer
    }

    fn chars(&self) -> CharSet {
        self.chars.unwrap_or(CharSet::Latin1)
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
    serve_where_it_lies(orb, &Message { header: message.header, bytes: &bytes, rest: None, joints: &[] }, session, line)
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
            Ok(Answer::Nothing)
        }
        MessageType::CloseConnection | MessageType::MessageError => {
            session.over = true;
            Ok(Answer::Nothing)
        }
        MessageType::Reply | MessageType::LocateReply | MessageType::Fragment => {
            Err(Broken::Giop(giop::Error::MessageType {
                found: message.header.message_type as u8,
                minor: session.version.minor(),
            }))
        }
    }
}

/// Serves the request that `bytes` begin with, if it is like the last one; returns its length, too.
#[inline]
pub(crate) fn serve_predicted(orb: &Orb, bytes: &[u8], session: &mut Session, line: &Line) -> Option<(Answer, usize)> {
    let Session { chars, version, buffer, prediction, .. } = session;
    let Predicted { bytes, request_id, response, body } = prediction.fits(bytes)?;
    let shape = (Version::V1_2, chars.unwrap_or(CharSet::Latin1));
    let format = Format { minor: Version::V1_2.minor(), chars: shape.1, ..Format::NATIVE };
    let arguments = Decoder::at(bytes, format, body)?.with_context(orb);
    let serving = prediction.serve()?;
    *version = Version::V1_2;
    let writer = ReplyWriter::new(orb, shape, (request_id, response), Some(line), buffer);
    let call = Call::new(&prediction.operation, None, arguments, writer);
    let (answer, entry) = carry_out(serving, call);
    prediction.served(entry);
    Some((answer, bytes.len()))
}

fn serve_request(
    orb: &Orb,
    message: &Message<'_>,
    session: &mut Session,
    line: Option<&Line>,
) -> Result<Answer, Broken> {
    let version = message.header.version;
    let mut arguments = message.decoder(session.chars()).with_context(orb);
    let request = request::Repr::parse(version, &mut arguments)?;
    let mut code_sets = Ok(());
    if let Some(context) = request.contexts.find(giop::CODE_SETS) {
        code_sets = agree(context, session);
        // The body is text in the code set that was just agreed on.
        arguments = message.decoder(session.chars()).with_context(orb);
        request::Repr::parse(version, &mut arguments)?;
    }
    let shape = (version, session.chars());
    let Session { buffer, prediction, .. } = session;
    let mut writer = ReplyWriter::new(orb, shape, (request.request_id, request.response), line, buffer);
    // What is named by a profile that is not of IIOP is named by its key the next time.
    let Ok(key) = request.target.key() else { return Ok(writer.needs_key()) };
    let operation = match (code_sets, std::str::from_utf8(request.operation)) {
        (Ok(()), Ok(operation)) => operation,
        (Err(()), _) => return Ok(writer.exception(Kind::CodesetIncompatible.raised(Completion::No))),
        (_, Err(_)) => return Ok(writer.exception(Kind::BadOperation.raised(Completion::No))),
    };
    let serving = match orb.find_servant(key, operation) {
        Ok(serving) => serving,
        Err(Refusal::System(exception)) => return Ok(writer.exception(exception)),
        Err(Refusal::Forward(object)) => return Ok(writer.forward(object.ior())),
    };
    let (answer, entry) = carry_out(serving, Call::new(operation, Some(message), arguments, writer));
    if let Some(entry) = entry {
        prediction.learn(message, &request, operation, entry);
    }
    Ok(answer)
}

/// Has a servant carry out a request; returns the object, too, if it is an active one.
#[inline]
fn carry_out(mut serving: Serving, mut call: Call<'_>) -> (Answer, Option<Arc<Entry>>) {
    if call.is_standard(&serving) {
        return (call.answer(Ok(())), None);
    }
    // A servant that panics is a fault of one call, not of the server.
    let outcome = catch_unwind(AssertUnwindSafe(|| serving.dispatch(&mut call)));
    let entry = serving.leave();
    (call.answer(outcome.unwrap_or_else(|_| Err(Kind::Unknown.raised(Completion::Maybe)))), entry)
}

fn serve_locate(orb: &Orb, message: &Message<'_>, session: &mut Session) -> Result<Answer, Broken> {
    let version = message.header.version;
    let mut decoder = message.decoder(session.chars());
    let request = locate::Request::parse(version, &mut decoder)?;
    let found = request.target.key().map(|key| orb.locate(key));
    let buffer = std::mem::take(&mut session.buffer);
    let mut encoder = giop::begin(buffer, version, session.chars(), MessageType::LocateReply);
    let status = match &found {
        Ok(Ok(())) => locate::Status::ObjectHere,
        Ok(Err(Refusal::Forward(_))) => locate::Status::ObjectForward,
        Ok(Err(Refusal::System(exception))) if exception.kind == Kind::ObjectNotExist => locate::Status::UnknownObject,
        // Before GIOP 1.2 nothing else can be said.
        _ if version < Version::V1_2 => locate::Status::UnknownObject,
        Ok(Err(Refusal::System(_))) => locate::Status::SystemException,
        Err(_) => locate::Status::NeedsAddressingMode,
    };
    locate::Reply { request_id: request.request_id, status }.emit(&mut encoder);
    let body = match (status, &found) {
        (locate::Status::NeedsAddressingMode, _) => {
            encoder.u16(target::KEY);
            Ok(())
        }
        (locate::Status::SystemException, Ok(Err(Refusal::System(exception)))) => exception.encode(&mut encoder),
        (_, Ok(Err(Refusal::Forward(object)))) => object.ior().encode(&mut encoder),
        _ => Ok(()),
    };
    body.map_err(giop::Error::Cdr)?;
    session.buffer = giop::finish(encoder)?;
    Ok(Answer::Reply)
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
