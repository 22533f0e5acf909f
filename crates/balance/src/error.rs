//! What can go wrong, and what to do about it.

use std::io;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The description of the data centre is wrong.
    #[error("the description: {0}")]
    Config(String),
    /// An address cannot be listened at.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Which.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// A node does not answer.
    #[error("the node at {0} does not answer; is it started?")]
    Gone(String),
    /// Extended sockets say why.
    #[error(transparent)]
    Extended(#[from] sidestep_extended::Error),
}
