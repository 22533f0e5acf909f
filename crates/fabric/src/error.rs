//! What can go wrong on the fabric, in three kinds: the machine or the network refused, the peer misbehaved or
//! left, or the caller asked for something that cannot be.

use std::fmt;

use sidestep_shm as shm;

pub use crate::refusal::Refusal;

/// An error of the fabric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Memory, descriptors or a system call.
    #[error(transparent)]
    Memory(#[from] shm::Error),
    /// The owner of a region does not honour the cookie.
    #[error("the cookie is refused: {0}")]
    Cookie(#[from] Refusal),
    /// The connection is over.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
    /// The other side answered the request for a connection with a no.
    #[error("the connection was refused by the other side ({} bytes of private data)", .private.len())]
    Refused {
        /// What the other side said about it.
        private: Vec<u8>,
    },
    /// The process is there, but nobody in it listens under this name.
    #[error("nobody listens under the name {0:?}; start the other side first")]
    NobodyListens(String),
    /// The name is not of the form the link understands.
    #[error("{name:?} is not a name: {must}")]
    Name {
        /// What was given.
        name: String,
        /// What a name looks like.
        must: &'static str,
    },
    /// No link has the scheme of the name.
    #[error("there is no link {scheme:?} here, only {known}")]
    Scheme {
        /// What was given.
        scheme: Box<str>,
        /// What could have been.
        known: Box<str>,
    },
    /// The deadline passed.
    #[error("nothing happened before the deadline while waiting for {0}")]
    TimedOut(&'static str),
    /// A bounded structure is full.
    #[error("{what} is full ({limit}); wait until something is taken out")]
    Full {
        /// Which one.
        what: &'static str,
        /// Its size.
        limit: usize,
    },
    /// A request was not carried out because an earlier one of its queue failed.
    #[error("not carried out: request {0} of the same queue failed before it")]
    Flushed(u32),
    /// The caller named something that is too large, or not there.
    #[error("{what} must be {must}, not {value}")]
    Size {
        /// Which parameter.
        what: &'static str,
        /// What it must be.
        must: &'static str,
        /// What it was.
        value: usize,
    },
    /// The queue has been frozen: what was to be sent goes another way.
    #[error("the queue has been frozen")]
    Frozen,
    /// The link cannot do this.
    #[error("the link does not support {0}")]
    Unsupported(&'static str),
}

/// Every call of the data path returns a result: a larger error would make each of them slower.
const _: () = assert!(size_of::<Error>() <= 48);

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    Here,
    /// The peer closed it.
    Peer,
    /// The peer's process is gone.
    Died,
    /// The peer broke the protocol, as said.
    Violation(&'static str),
    /// The link failed.
    Link(&'static str),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseReason::Here => out.write_str("closed by this side"),
            CloseReason::Peer => out.write_str("closed by the peer"),
            CloseReason::Died => out.write_str("the peer's process ended"),
            CloseReason::Violation(what) => write!(out, "the peer broke the protocol: {what}"),
            CloseReason::Link(what) => write!(out, "the link failed: {what}"),
        }
    }
}

impl From<CloseReason> for Error {
    fn from(reason: CloseReason) -> Error {
        Error::Closed(reason)
    }
}

/// A result of the fabric.
pub type Result<T, E = Error> = std::result::Result<T, E>;
