//! General Inter-ORB Protocol, the messages of CORBA (CORBA 3.3 part 2 §9.4).
//!
//! ```text
//! | header, 12 bytes | header of the message type | body |
//! ```
//!
//! [`header`] is what every message begins with. [`request`], [`reply`], [`locate`] and [`fragment`]
//! are the headers of the message types; each has a `Repr` that borrows from the message, with
//! `parse` and `emit`. A message is parsed and emitted as a whole, from its first byte, since that is
//! where alignment counts from.

pub mod fragment;
pub mod header;
pub mod locate;
pub mod reply;
pub mod request;
pub mod target;

mod context;
mod error;
mod plain;

pub use context::{BI_DIR_IIOP, CODE_SETS, ContextId, Contexts};
pub use error::Error;
pub use target::Target;

use std::fmt;

use crate::cdr::{CharSet, Encoder, Format};

/// A version of GIOP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// GIOP 1.0: no fragments.
    V1_0,
    /// GIOP 1.1: requests and replies may be fragmented.
    V1_1,
    /// GIOP 1.2: fragments say what they belong to, and bodies are aligned to eight bytes.
    V1_2,
}

impl Version {
    /// The number behind the point.
    #[must_use]
    pub fn minor(self) -> u8 {
        self as u8
    }

    /// The version with this number behind the point.
    ///
    /// Later versions of GIOP 1 differ from 1.2 only in messages of both directions, so an end that
    /// names one is spoken to in 1.2.
    #[must_use]
    pub fn from_minor(minor: u8) -> Self {
        match minor {
            0 => Version::V1_0,
            1 => Version::V1_1,
            _ => Version::V1_2,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor())
    }
}

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// Calls an operation.
    Request,
    /// Answers a request.
    Reply,
    /// Says that nobody waits for a reply any more.
    CancelRequest,
    /// Asks where an object is.
    LocateRequest,
    /// Answers a locate request.
    LocateReply,
    /// Says that the server closes the connection and serves nothing that it has not answered.
    CloseConnection,
    /// Says that a message was not understood.
    MessageError,
    /// Continues a message.
    Fragment,
}

impl MessageType {
    const ALL: [Self; 8] = [
        Self::Request,
        Self::Reply,
        Self::CancelRequest,
        Self::LocateRequest,
        Self::LocateReply,
        Self::CloseConnection,
        Self::MessageError,
        Self::Fragment,
    ];
}

/// Begins a message in `buffer`, which is emptied; [`finish`] completes it.
#[must_use]
pub fn begin<'a>(mut buffer: Vec<u8>, version: Version, chars: CharSet, message_type: MessageType) -> Encoder<'a> {
    let mut head = [0; header::LEN];
    let format = Format { minor: version.minor(), chars, ..Format::NATIVE };
    let repr = header::Repr { version, order: format.order, more_fragments: false, message_type, size: 0 };
    repr.emit(&mut head);
    buffer.clear();
    buffer.extend_from_slice(&head);
    Encoder::new(buffer, format)
}

/// Goes on with a message of which `buffer` has the beginning.
#[inline]
#[must_use]
pub fn resume<'a>(buffer: Vec<u8>, version: Version, chars: CharSet) -> Encoder<'a> {
    Encoder::new(buffer, Format { minor: version.minor(), chars, ..Format::NATIVE })
}

/// Writes the length of a message that was begun into its header.
#[inline]
pub fn finish(mut encoder: Encoder<'_>) -> Result<Vec<u8>, Error> {
    let body = encoder.position() - header::LEN;
    let size = u32::try_from(body).map_err(|_| crate::cdr::Error::Length { found: body })?;
    encoder.patch_u32(header::SIZE_AT, size);
    Ok(encoder.into_bytes())
}

/// Writes the length of the whole message, which is known beforehand, into the header of one that was just begun.
#[inline]
pub fn announce(encoder: &mut Encoder<'_>, len: usize) -> Result<(), Error> {
    let found = len - header::LEN.min(len);
    let size = u32::try_from(found).map_err(|_| crate::cdr::Error::Length { found })?;
    encoder.patch_u32(header::SIZE_AT, size);
    Ok(())
}

/// A message that is nothing but its header: `CloseConnection` or `MessageError`.
#[must_use]
pub fn bare(version: Version, message_type: MessageType) -> [u8; header::LEN] {
    let order = crate::cdr::ByteOrder::NATIVE;
    let mut bytes = [0; header::LEN];
    header::Repr { version, order, more_fragments: false, message_type, size: 0 }.emit(&mut bytes);
    bytes
}
