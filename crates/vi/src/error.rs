//! What a call can refuse with, and the return code of each.

use std::io::ErrorKind;

use sidestep_fabric as fabric;

use crate::code::{Code, ViState};

/// An error of the provider. Completions with errors are not among them: those are [`crate::Completion`]s.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller named something that does not exist or cannot be.
    #[error("{0} is not valid")]
    Invalid(&'static str),
    /// No NIC has this name.
    #[error(
        "there is no NIC named {0:?}: nic0 (shared memory), iwarp and their other names are, and those in SIDESTEP_VIA_NICS"
    )]
    NoDevice(String),
    /// A limit is reached.
    #[error("no more {what} than {limit}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// The thing is still used by another.
    #[error("{0} is still in use")]
    InUse(&'static str),
    /// The fabric refused.
    #[error(transparent)]
    Fabric(fabric::Error),
    /// The time is over.
    #[error("nothing happened before the deadline")]
    TimedOut,
    /// The other side said no.
    #[error("the other side rejected the connection")]
    Rejected,
    /// The reliability levels differ.
    #[error("the reliability levels do not agree")]
    Reliability,
    /// The transfer size is outside the limits.
    #[error("a largest transfer of {0} bytes is outside the limits")]
    TransferSize(usize),
    /// There is no quality of service.
    #[error("there is no quality of service")]
    Qos,
    /// The protection tag does not exist.
    #[error("the protection tag does not exist")]
    Ptag,
    /// RDMA reads need a reliable VI.
    #[error("RDMA reads need a reliable VI")]
    RdmaRead,
    /// Not in this state.
    #[error("the VI is {is:?}, which does not allow this")]
    State {
        /// The state it is in.
        is: ViState,
    },
    /// The name service has no answer.
    #[error("the name service knows no {0}")]
    NameService(String),
    /// Nobody waits at that address.
    #[error("nobody waits at that address")]
    NoMatch,
    /// No way to that host.
    #[error("there is no way to that host")]
    NotReachable,
    /// No receive is posted at the other side, and the caller did not want to wait.
    #[error("no receive is posted at the other side")]
    NoReceive,
}

/// A result of the provider.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The return code of VIPL.
    pub fn code(&self) -> Code {
        match self {
            Error::Invalid(_) | Error::NoDevice(_) => Code::InvalidParameter,
            Error::Limit { .. } | Error::InUse(_) | Error::Fabric(_) => Code::ErrorResource,
            Error::TimedOut => Code::Timeout,
            Error::Rejected => Code::Reject,
            Error::Reliability => Code::InvalidReliabilityLevel,
            Error::TransferSize(_) => Code::InvalidMtu,
            Error::Qos => Code::InvalidQos,
            Error::Ptag => Code::InvalidPtag,
            Error::RdmaRead => Code::InvalidRdmaRead,
            Error::State { .. } => Code::InvalidState,
            Error::NameService(_) => Code::ErrorNameService,
            Error::NoMatch => Code::NoMatch,
            Error::NotReachable => Code::NotReachable,
            Error::NoReceive => Code::NotDone,
        }
    }
}

impl From<fabric::Error> for Error {
    fn from(error: fabric::Error) -> Error {
        match error {
            fabric::Error::TimedOut(_) => Error::TimedOut,
            fabric::Error::Refused { .. } => Error::Rejected,
            error if is_nobody(&error) => Error::NoMatch,
            error if is_far(&error) => Error::NotReachable,
            other => Error::Fabric(other),
        }
    }
}

/// Whether the network has no way there.
fn is_far(error: &fabric::Error) -> bool {
    let fabric::Error::Memory(sidestep_shm::Error::System { source, .. }) = error else { return false };
    let kind = std::io::Error::from_raw_os_error(source.raw_os_error()).kind();
    matches!(kind, ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable)
}

/// Whether nobody is there, as opposed to somebody who does not answer.
pub(crate) fn is_nobody(error: &fabric::Error) -> bool {
    matches!(error, fabric::Error::NobodyListens(_) | fabric::Error::Memory(sidestep_shm::Error::NobodyListens(_)))
}
