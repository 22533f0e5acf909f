//! Replies (CORBA 3.3 part 2 §9.4.3).
//!
//! ```text
//! 1.0, 1.1:  | contexts | id, 4 | status, 4 |
//! 1.2:       | id, 4 | status, 4 | contexts | pad to 8 if a body |
//! ```

use std::fmt;

use super::context::Contexts;
use super::plain;
use super::{Error, Version};
use crate::cdr::{CharSet, Decoder, Encoder};

/// How an operation went, and so what the body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The result and the out parameters.
    NoException,
    /// A repository id and the exception.
    UserException,
    /// A repository id, a minor code and a completion status.
    SystemException,
    /// Another reference, to be used for this call.
    LocationForward,
    /// Another reference, to be used from now on.
    LocationForwardPerm,
    /// How the target has to be named; the request is to be sent again.
    NeedsAddressingMode,
}

impl Status {
    const ALL: [Self; 6] = [
        Self::NoException,
        Self::UserException,
        Self::SystemException,
        Self::LocationForward,
        Self::LocationForwardPerm,
        Self::NeedsAddressingMode,
    ];

    fn parse(version: Version, found: u32) -> Result<Self, Error> {
        Self::ALL
            .get(found as usize)
            .copied()
            .filter(|status| version == Version::V1_2 || (*status as u32) < Self::LocationForwardPerm as u32)
            .ok_or(Error::Value { field: "reply status", found })
    }
}

/// The header of a reply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repr<'a> {
    /// The id of the request.
    pub request_id: u32,
    /// How it went.
    pub status: Status,
    /// What the brokers tell each other.
    pub contexts: Contexts<'a>,
}

impl<'a> Repr<'a> {
    /// Reads the header; the decoder stands behind the message header, and afterwards at the body.
    pub fn parse(version: Version, decoder: &mut Decoder<'a>) -> Result<Self, Error> {
        if version == Version::V1_2
            && let Some((request_id, status)) = plain::parse_reply(decoder)
        {
            let status = Status::parse(version, status)?;
            return Ok(Self { request_id, status, contexts: Contexts::EMPTY });
        }
        Self::parse_any(version, decoder)
    }

    #[inline(never)]
    pub(super) fn parse_any(version: Version, decoder: &mut Decoder<'a>) -> Result<Self, Error> {
        if version < Version::V1_2 {
            let contexts = Contexts::parse(decoder)?;
            let request_id = decoder.u32()?;
            return Ok(Self { request_id, status: Status::parse(version, decoder.u32()?)?, contexts });
        }
        let request_id = decoder.u32()?;
        let status = Status::parse(version, decoder.u32()?)?;
        let contexts = Contexts::parse(decoder)?;
        if decoder.remaining() > 0 {
            decoder.align(8)?;
        }
        Ok(Self { request_id, status, contexts })
    }

    /// Writes the header. The caller aligns to eight before a body: [`super::request::align_body`].
    pub fn emit(&self, version: Version, encoder: &mut Encoder) -> Result<(), Error> {
        if version < Version::V1_2 {
            self.contexts.emit(encoder)?;
            encoder.u32(self.request_id);
            encoder.u32(self.status as u32);
            return Ok(());
        }
        if self.contexts.is_empty() {
            plain::emit_reply(self.request_id, self.status as u32, encoder);
            return Ok(());
        }
        encoder.u32(self.request_id);
        encoder.u32(self.status as u32);
        self.contexts.emit(encoder)?;
        Ok(())
    }
}

/// Begins a reply without service contexts in `buffer`, which is emptied, up to where the body may be; [`super::finish`]
/// completes it.
#[inline]
#[must_use]
pub fn begin<'a>(
    mut buffer: Vec<u8>,
    version: Version,
    chars: CharSet,
    (request_id, status): (u32, Status),
) -> Encoder<'a> {
    buffer.clear();
    buffer.extend_from_slice(&plain::whole_reply(version, request_id, status as u32));
    super::resume(buffer, version, chars)
}

/// A reply as most are: GIOP 1.2, in the byte order of this machine, without service contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// The id of the request.
    pub request_id: u32,
    /// How it went.
    pub status: Status,
    /// The length of the message.
    pub len: usize,
}

impl Plain {
    /// Where the body begins.
    pub const BODY: usize = plain::WHOLE_REPLY_LEN;

    /// Reads the headers of the message that `bytes` begin with, if it is such a reply and all of it is there.
    #[inline]
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (request_id, status, len) = plain::parse_whole_reply(bytes)?;
        Some(Self { request_id, status: *Status::ALL.get(status as usize)?, len })
    }
}

impl fmt::Display for Repr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reply {}, {:?}", self.request_id, self.status)
    }
}
