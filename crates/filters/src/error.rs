//! What can go wrong, in three kinds: the description is wrong, a peer is gone or broke the protocol, or the caller asked for
//! something that cannot be.

use std::{fmt, io};

use crate::graph::Problem;

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The description of a group is wrong.
    #[error("{}", Problem::list(.0))]
    Description(Vec<Problem>),
    /// The other end of a stream is gone.
    #[error("the connection with {0} is over")]
    Gone(String),
    /// The unit of work was given up, by the user or because another copy failed.
    #[error("the unit of work was given up")]
    Cancelled,
    /// The other end of a stream sent what it must not.
    #[error("{peer} broke the protocol: {what}")]
    Broken {
        /// Who.
        peer: String,
        /// How.
        what: &'static str,
    },
    /// The filter used its ports in a way that cannot be.
    #[error("{0}")]
    Misuse(String),
    /// A process of a group cannot be started or prepared.
    #[error("process {process} cannot be used: {what}")]
    Start {
        /// Its name.
        process: String,
        /// Why.
        what: String,
    },
    /// The operating system refused something.
    #[error("{what}: {source}")]
    System {
        /// What.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The fabric refused something.
    #[error(transparent)]
    Fabric(#[from] sidestep_fabric::Error),
    /// The VIA provider refused something.
    #[error(transparent)]
    Vi(#[from] sidestep_vi::Error),
}

/// A result of the runtime.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a filter ends a unit of work early. Every error becomes one by `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    what: String,
    cause: Cause,
}

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Cause {
    /// The filter's own.
    Own,
    /// Another copy went away.
    Neighbour,
    /// The unit was given up.
    Cancelled,
}

impl Failure {
    /// A failure of the filter's own.
    pub fn new(what: impl fmt::Display) -> Failure {
        Failure { what: what.to_string(), cause: Cause::Own }
    }

    pub(crate) fn cause(&self) -> Cause {
        self.cause
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.what)
    }
}

impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        let cause = match (&error as &dyn std::error::Error).downcast_ref::<Error>() {
            Some(Error::Gone(_)) => Cause::Neighbour,
            Some(Error::Cancelled) => Cause::Cancelled,
            _ => Cause::Own,
        };
        Failure { what: error.to_string(), cause }
    }
}

impl Error {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { what, source }
    }
}
