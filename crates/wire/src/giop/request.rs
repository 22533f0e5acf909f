//! Requests (CORBA 3.3 part 2 §9.4.2) and cancelled requests (§9.4.4).
//!
//! ```text
//! 1.0, 1.1:  | contexts | id, 4 | response, 1 | reserved, 3 (1.1) | key | operation | principal |
//! 1.2:       | id, 4 | response, 1 | reserved, 3 | target | operation | contexts | pad to 8 if a body |
//! ```

use std::fmt;

use super::context::{ContextId, Contexts, emit_list};
use super::{Error, Target, Version};
use crate::cdr::{Decoder, Encoder};

/// What the client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// Nothing: a oneway operation.
    None,
    /// That the server has the request; the target need not have been called.
    Server,
    /// The outcome of the operation.
    Target,
}

impl Response {
    fn parse(version: Version, flags: u8) -> Self {
        match (version, flags & 3) {
            (_, 0) => Response::None,
            (Version::V1_2, 1 | 2) => Response::Server,
            _ => Response::Target,
        }
    }

    fn flags(self, version: Version) -> u8 {
        match self {
            Response::None => 0,
            Response::Server => 1,
            Response::Target if version == Version::V1_2 => 3,
            Response::Target => 1,
        }
    }
}

/// The header of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repr<'a> {
    /// What the reply will be known by.
    pub request_id: u32,
    /// What the client waits for.
    pub response: Response,
    /// The object.
    pub target: Target<'a>,
    /// The name of the operation.
    pub operation: &'a [u8],
    /// What the brokers tell each other.
    pub contexts: Contexts<'a>,
}

impl<'a> Repr<'a> {
    /// Reads the header; the decoder stands behind the message header, and afterwards at the body.
    pub fn parse(version: Version, decoder: &mut Decoder<'a>) -> Result<Self, Error> {
        if version < Version::V1_2 {
            let contexts = Contexts::parse(decoder)?;
            let request_id = decoder.u32()?;
            let response = Response::parse(version, decoder.u8()?);
            if version == Version::V1_1 {
                decoder.raw(3)?;
            }
            let target = Target::parse(version, decoder)?;
            let operation = decoder.identifier()?;
            decoder.octets()?;
            return Ok(Self { request_id, response, target, operation, contexts });
        }
        let request_id = decoder.u32()?;
        let response = Response::parse(version, decoder.u8()?);
        decoder.raw(3)?;
        let target = Target::parse(version, decoder)?;
        let operation = decoder.identifier()?;
        let contexts = Contexts::parse(decoder)?;
        // The body may be missing, and its padding with it.
        if decoder.remaining() > 0 {
            decoder.align(8)?;
        }
        Ok(Self { request_id, response, target, operation, contexts })
    }

    /// Writes the header; `more` are service contexts besides those of the value.
    ///
    /// The caller aligns to eight before a body in GIOP 1.2: [`align_body`].
    pub fn emit(&self, version: Version, more: &[(ContextId, &[u8])], encoder: &mut Encoder) -> Result<(), Error> {
        let contexts = |encoder: &mut Encoder| {
            if more.is_empty() { self.contexts.emit(encoder) } else { emit_list(more, encoder) }
        };
        if version < Version::V1_2 {
            contexts(encoder)?;
            encoder.u32(self.request_id);
            encoder.u8(self.response.flags(version));
            if version == Version::V1_1 {
                encoder.raw(&[0; 3]);
            }
            self.target.emit(version, encoder)?;
            encoder.identifier(self.operation)?;
            encoder.octets(&[])?;
            return Ok(());
        }
        encoder.u32(self.request_id);
        encoder.u8(self.response.flags(version));
        encoder.raw(&[0; 3]);
        self.target.emit(version, encoder)?;
        encoder.identifier(self.operation)?;
        contexts(encoder)?;
        Ok(())
    }
}

/// Pads to where the body of a request or a reply begins.
pub fn align_body(version: Version, encoder: &mut Encoder) {
    if version == Version::V1_2 {
        encoder.align(8);
    }
}

/// Reads a cancelled request: the id of the request.
pub fn parse_cancel(decoder: &mut Decoder<'_>) -> Result<u32, Error> {
    Ok(decoder.u32()?)
}

impl fmt::Display for Repr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = String::from_utf8_lossy(self.operation);
        write!(f, "request {} of {operation}, {:?} answers", self.request_id, self.response)
    }
}
