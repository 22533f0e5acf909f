//! What can go wrong, and which `errno` says so to a C program.

use sidestep_fabric as fabric;
use sidestep_fabric::{CloseReason, Refusal};
use sidestep_shm as shm;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The descriptor is not what an extended socket is made of.
    #[error("descriptor {fd} is not a connected TCP socket (errno {errno}); connect it first")]
    NotConnected {
        /// Which.
        fd: i32,
        /// What the kernel said.
        errno: i32,
    },
    /// The other end is not on this host, and this stack has no port to meet it on.
    #[error(
        "the other end of the connection is not in this network namespace of this host; to meet it, give both ends a port \
         (SIDESTEP_EXTENDED_PORT)"
    )]
    Elsewhere,
    /// The environment names a port that is none.
    #[error("SIDESTEP_EXTENDED_PORT is {0:?}; it must be a port from 1 to 65535, or empty")]
    Port(String),
    /// The environment says neither yes nor no.
    #[error("SIDESTEP_EXTENDED_IN_PLACE is {0:?}; it must be 1, 0 or empty")]
    InPlace(String),
    /// In place: there are bytes of the stream that nobody has read, or the other end sent some that are no request.
    #[error(
        "the connection has bytes that are not read, or that are no request to extend it in place; read all of them at both \
         ends first, and extend both in place; the socket is as it was"
    )]
    Unread,
    /// In place: the other end has not answered, and the connection has carried what it was asked.
    #[error(
        "the other end did not extend the connection in place, or ended it; a request was written to it, so that it is of no \
         more use as a stream: close it"
    )]
    Spent,
    /// The other end has not enabled its socket.
    #[error(
        "the other end did not enable its socket in time; both ends must (between hosts with the same port, open in every \
         firewall), and the socket is as it was"
    )]
    Unanswered,
    /// Whoever answered does not hold the other end of the connection, or it cannot be seen whether it does.
    #[error(
        "whoever answers is not seen to hold the other end of the connection (see /proc/PID/fd; between hosts, by its \
         address); it is refused"
    )]
    Unproven,
    /// The other end speaks another version of the protocol.
    #[error("the other end speaks another version of this protocol; use the same version of Sidestep at both ends")]
    Version,
    /// Another process that has the same socket enables it, or has. Or another process listened on the port all the time.
    #[error(
        "this end of the connection is being enabled already, by another thread or process (between hosts: or the port is \
         taken)"
    )]
    Taken,
    /// The object was made before a fork, by the parent.
    #[error("this belongs to the parent process; enable the socket in this one, or use it there")]
    Forked,
    /// The region is the source or target of an operation that has not ended.
    #[error("the region is still used by an operation; take its completion first")]
    Busy,
    /// The region was registered with fewer rights.
    #[error("the region was registered for {held}, not for {wanted}")]
    Rights {
        /// What it was registered for.
        held: fabric::Rights,
        /// What was asked.
        wanted: fabric::Rights,
    },
    /// The remote region came over another socket.
    #[error("the remote region was imported over another socket")]
    OtherSocket,
    /// A message is longer than the receive that was posted for it.
    #[error("a message of {len} bytes came for a receive of {room}; it is lost")]
    TooLong {
        /// Of the message.
        len: usize,
        /// Of the receive.
        room: usize,
    },
    /// Too much waits to be sent or received.
    #[error("{what}: there are {limit} already; take completions first")]
    Full {
        /// What.
        what: &'static str,
        /// How many there can be.
        limit: usize,
    },
    /// An operation before it, of the same socket, has failed.
    #[error("not carried out, since an operation posted before it on the same socket has failed")]
    Cancelled,
    /// The fabric says why.
    #[error(transparent)]
    Fabric(fabric::Error),
}

impl From<fabric::Error> for Error {
    fn from(error: fabric::Error) -> Error {
        match error {
            fabric::Error::Flushed(_) => Error::Cancelled,
            error => Error::Fabric(error),
        }
    }
}

impl From<CloseReason> for Error {
    fn from(reason: CloseReason) -> Error {
        Error::Fabric(fabric::Error::Closed(reason))
    }
}

impl Error {
    /// The `errno` that says it to a C program.
    pub fn errno(&self) -> i32 {
        match self {
            Error::NotConnected { errno, .. } => *errno,
            Error::Elsewhere => libc::EHOSTUNREACH,
            Error::Unanswered => libc::ETIMEDOUT,
            Error::Unproven | Error::Rights { .. } => libc::EACCES,
            Error::Version | Error::Unread => libc::EPROTO,
            Error::Spent => libc::ECONNABORTED,
            Error::Taken | Error::Busy => libc::EBUSY,
            Error::Forked => libc::EPERM,
            Error::OtherSocket | Error::Port(_) | Error::InPlace(_) => libc::EINVAL,
            Error::TooLong { .. } => libc::EMSGSIZE,
            Error::Full { .. } => libc::EAGAIN,
            Error::Cancelled => libc::ECANCELED,
            Error::Fabric(error) => errno_of(error),
        }
    }
}

fn errno_of(error: &fabric::Error) -> i32 {
    match error {
        fabric::Error::Cookie(Refusal::Rights { .. } | Refusal::Forged) => libc::EACCES,
        fabric::Error::Cookie(Refusal::Range { .. }) | fabric::Error::Size { .. } => libc::EINVAL,
        fabric::Error::Cookie(_) => libc::ESTALE,
        fabric::Error::Closed(CloseReason::Here) => libc::ENOTCONN,
        fabric::Error::Closed(CloseReason::Violation(_)) => libc::EPROTO,
        fabric::Error::Closed(_) => libc::ECONNRESET,
        fabric::Error::Refused { .. } | fabric::Error::NobodyListens(_) => libc::ECONNREFUSED,
        fabric::Error::TimedOut(_) => libc::ETIMEDOUT,
        fabric::Error::Full { .. } => libc::EAGAIN,
        fabric::Error::Flushed(_) => libc::ECANCELED,
        fabric::Error::Unsupported(_) => libc::EOPNOTSUPP,
        fabric::Error::Memory(error) => errno_of_memory(error),
        _ => libc::EIO,
    }
}

fn errno_of_memory(error: &shm::Error) -> i32 {
    match error {
        shm::Error::Range { .. } | shm::Error::Size { .. } => libc::EINVAL,
        shm::Error::System { source, .. } => source.raw_os_error(),
        shm::Error::Limit { source, .. } => match source.raw_os_error() {
            libc::ENFILE => libc::ENFILE,
            // Of this process, open or on their way.
            libc::EMFILE | libc::ETOOMANYREFS => libc::EMFILE,
            _ => libc::ENOMEM,
        },
        shm::Error::Foreign(_) | shm::Error::Peer(_) => libc::EPROTO,
        _ => libc::EIO,
    }
}

#[cfg(test)]
mod tests;
