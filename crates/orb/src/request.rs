//! Requests on their way out.

use std::io;
use std::time::Instant;

use sidestep_wire::giop::{self, MessageType, Target, Version, request};
use sidestep_wire::ior::encapsulate;

use crate::cdr::{self, CharSet, Encoder, UTF16};
use crate::exception::{Completion, Kind, SystemException};
use crate::marshal::{self, Shape, Written};
use crate::route::Route;
use crate::strand::SendHalf;

/// What is in the body of a request.
pub(crate) type Encode<'a> = &'a dyn Fn(&mut Encoder<'_>) -> Result<(), cdr::Error>;

/// What becomes a request.
pub(crate) struct Request<'a> {
    version: Version,
    chars: CharSet,
    key: &'a [u8],
    pub(crate) id: u32,
    operation: &'a str,
    pub(crate) expects_reply: bool,
    /// The code set that both ends know, if the server has said so.
    code_set: Option<CharSet>,
    /// Whether the server is told.
    pub(crate) tells_code_sets: bool,
}

impl<'a> Request<'a> {
    pub(crate) fn new(
        route: &'a Route,
        version: Version,
        chars: CharSet,
        operation: &'a str,
        expects_reply: bool,
    ) -> Self {
        // GIOP 1.0 has no code sets.
        let code_set = route.chars.filter(|_| version > Version::V1_0);
        Self { version, chars, key: &route.key, id: 0, operation, expects_reply, code_set, tells_code_sets: false }
    }

    fn shape(&self, direct: usize) -> Shape {
        Shape { version: self.version, chars: self.chars, message_type: MessageType::Request, direct }
    }

    pub(crate) fn write(&self, direct: usize, buffer: Vec<u8>, encode: Encode<'_>) -> Result<Written, SystemException> {
        let content = |encoder: &mut Encoder<'_>| self.emit(encoder, encode);
        marshal::write(self.shape(direct), buffer, &content).map_err(|error| match error {
            giop::Error::Cdr(error) => SystemException::of_cdr(&error, Completion::No),
            _ => Kind::Marshal.raised(Completion::No),
        })
    }

    /// Sends a request that has large blocks.
    pub(crate) fn send(
        &self,
        direct: usize,
        measured: (usize, Vec<u8>),
        encode: Encode<'_>,
        sender: &mut dyn SendHalf,
        deadline: Option<Instant>,
    ) -> io::Result<Vec<u8>> {
        let content = |encoder: &mut Encoder<'_>| self.emit(encoder, encode);
        marshal::send(self.shape(direct), measured, &content, sender, deadline)
    }

    fn emit(&self, encoder: &mut Encoder<'_>, encode: Encode<'_>) -> Result<(), giop::Error> {
        let code_sets = self.code_set.filter(|_| self.tells_code_sets).map(code_sets_context);
        let contexts: &[_] = match &code_sets {
            Some(code_sets) => &[(giop::CODE_SETS, code_sets.as_slice())],
            None => &[],
        };
        let header = request::Repr {
            request_id: self.id,
            response: if self.expects_reply { request::Response::Target } else { request::Response::None },
            target: Target::Key(self.key),
            operation: self.operation.as_bytes(),
            contexts: giop::Contexts::EMPTY,
        };
        header.emit(self.version, contexts, encoder)?;
        let header_ends = encoder.position();
        request::align_body(self.version, encoder);
        let body_begins = encoder.position();
        encode(encoder)?;
        // Without a body there is no padding either.
        if encoder.position() == body_begins {
            encoder.truncate(header_ends);
        }
        Ok(())
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
