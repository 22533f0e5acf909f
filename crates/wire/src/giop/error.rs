//! Why bytes are not a message.

use super::MessageType;
use crate::cdr;

/// Why a message could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The message does not begin with `GIOP`.
    #[error("a message begins with {found:02x?} instead of GIOP")]
    Magic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// A version of GIOP that is not spoken here.
    #[error("GIOP {major}.{minor} is not supported")]
    Version {
        /// The number in front of the point.
        major: u8,
        /// The number behind the point.
        minor: u8,
    },
    /// A type of message that this version does not have.
    #[error("message type {found} does not exist in GIOP 1.{minor}")]
    MessageType {
        /// The type found.
        found: u8,
        /// The minor version of the message.
        minor: u8,
    },
    /// A fragment of, or a message that is, what may not be fragmented in this version.
    #[error("a fragmented {message_type:?} is not allowed in GIOP 1.{minor}")]
    Fragmented {
        /// The type of the message.
        message_type: MessageType,
        /// The minor version of the message.
        minor: u8,
    },
    /// A status or an addressing mode that does not exist.
    #[error("{field} has the value {found}")]
    Value {
        /// What was read.
        field: &'static str,
        /// The value found.
        found: u32,
    },
    /// A part of the message is not valid CDR.
    #[error(transparent)]
    Cdr(#[from] cdr::Error),
}
