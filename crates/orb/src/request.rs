//! Requests on their way out.

use std::io;
use std::time::Instant;

use sidestep_wire::giop::{self, MessageType, Target, Version, locate, request};
use sidestep_wire::ior::encapsulate;

use crate::cdr::{self, CharSet, Encoder, UTF16};
use crate::marshal::{self, Shape};
use crate::route::Route;
use crate::strand::SendHalf;

/// What is in the body of a request.
pub(crate) type Encode<'a> = &'a dyn Fn(&mut Encoder<'_>) -> Result<(), cdr::Error>;

/// What becomes a request.
pub(crate) struct Request<'a> {
    version: Version,
    chars: CharSet,
    target: Target<'a>,
    /// The number of the route.
    pub(crate) route: u64,
    pub(crate) operation: &'a str,
    pub(crate) expects_reply: bool,
    /// The code set that both ends know, if the server has said so, and is to be told.
    code_set: Option<CharSet>,
}

impl<'a> Request<'a> {
    #[inline]
    pub(crate) fn new(
        route: &'a Route,
        version: Version,
        chars: CharSet,
        operation: &'a str,
        expects_reply: bool,
    ) -> Self {
        Self {
            version,
            chars,
            target: Target::Key(&route.key),
            route: route.number,
            operation,
            expects_reply,
            code_set: None,
        }
    }

    /// The same request, which tells the server the code set, if it has said which ones it knows.
    pub(crate) fn telling(self, code_set: Option<CharSet>) -> Self {
        // GIOP 1.0 has no code sets.
        let code_set = code_set.filter(|_| self.version > Version::V1_0);
        Self { code_set, ..self }
    }

    /// The same request, which names the object in another way than by its key.
    pub(crate) fn naming(self, target: Target<'a>) -> Self {
        Self { target, ..self }
    }

    /// Whether its header has nothing in it but what is called, and the key of the object.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.code_set.is_none() && matches!(self.target, Target::Key(_))
    }

    /// How its values are encoded.
    #[inline]
    pub(crate) fn format(&self) -> (Version, CharSet) {
        (self.version, self.chars)
    }

    /// Writes the question where the object is, without the id, into a buffer.
    pub(crate) fn locate(&self, buffer: Vec<u8>) -> Result<Vec<u8>, giop::Error> {
        let mut encoder = giop::begin(buffer, self.version, self.chars, MessageType::LocateRequest);
        locate::Request { request_id: 0, target: self.target }.emit(self.version, &mut encoder)?;
        giop::finish(encoder)
    }

    /// Begins the message in a buffer.
    pub(crate) fn begin(&self, buffer: Vec<u8>) -> Encoder<'static> {
        giop::begin(buffer, self.version, self.chars, MessageType::Request)
    }

    /// Goes on behind what is in a buffer.
    #[inline]
    pub(crate) fn resume(&self, buffer: Vec<u8>) -> Encoder<'static> {
        giop::resume(buffer, self.version, self.chars)
    }

    /// Writes the header, without the id; returns where that belongs.
    pub(crate) fn emit_header(&self, encoder: &mut Encoder<'_>) -> Result<usize, giop::Error> {
        self.emit_header_with(0, encoder)
    }

    fn emit_header_with(&self, request_id: u32, encoder: &mut Encoder<'_>) -> Result<usize, giop::Error> {
        let code_sets = self.code_set.map(code_sets_context);
        let contexts: &[_] = match &code_sets {
            Some(code_sets) => &[(giop::CODE_SETS, code_sets.as_slice())],
            None => &[],
        };
        let header = request::Repr {
            request_id,
            response: if self.expects_reply { request::Response::Target } else { request::Response::None },
            target: self.target,
            operation: self.operation.as_bytes(),
            contexts: giop::Contexts::EMPTY,
        };
        header.emit(self.version, contexts, encoder)?;
        Ok(request::id_at(self.version, contexts))
    }

    /// Pads to where the body begins.
    pub(crate) fn align_body(&self, encoder: &mut Encoder<'_>) {
        request::align_body(self.version, encoder);
    }

    /// Sends a request that has large blocks, and was found to be so long; returns the buffer.
    pub(crate) fn send(
        &self,
        id: u32,
        direct: usize,
        measured: (usize, Vec<u8>),
        encode: Encode<'_>,
        sender: &mut dyn SendHalf,
        deadline: Option<Instant>,
    ) -> io::Result<Vec<u8>> {
        let shape = Shape { version: self.version, chars: self.chars, message_type: MessageType::Request, direct };
        let content = |encoder: &mut Encoder<'_>| {
            self.emit_header_with(id, encoder)?;
            Ok(request::emit_body(self.version, encoder, encode)?)
        };
        marshal::send(shape, measured, &content, sender, deadline)
    }
}

fn code_sets_context(chars: CharSet) -> Vec<u8> {
    let encoded = encapsulate(|encoder| {
        encoder.u32(chars.id());
        encoder.u32(UTF16);
        Ok(())
    });
    encoded.unwrap_or_default()
}
