//! Why a call, or setting up, failed.

use std::io;
use std::time::Duration;

use sidestep_wire::oncrpc::reply::{Accepted, Denied};
use sidestep_wire::xdr;

/// Why a call failed, or why a client or server could not be made. What lies behind it is its
/// [source](std::error::Error::source), whose words are not repeated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address that is none.
    #[error("`{address}` is not an address: {reason}")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Nobody could be reached, or nobody can reach us.
    #[error("cannot {what} {address}")]
    Setup {
        /// What was tried: `connect to`, `listen on`, ...
        what: &'static str,
        /// Where.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The connection ended while the call was outstanding. Whether it was executed is not known.
    #[error("the connection to {address} ended during the call")]
    Disconnected {
        /// Where the connection led.
        address: String,
    },
    /// No reply came in time. Whether the call was executed is not known.
    #[error("no reply from {address} within {after:?}")]
    TimedOut {
        /// Where the call went.
        address: String,
        /// How long was waited.
        after: Duration,
    },
    /// The arguments have no XDR.
    #[error("the arguments cannot be sent")]
    Arguments(#[source] xdr::Error),
    /// The reply, or its results, are not what they should be.
    #[error("the reply cannot be understood")]
    Reply(#[source] xdr::Error),
    /// The server did not execute the call.
    #[error("the call was refused: {0}")]
    Refused(Accepted),
    /// The server did not accept the call.
    #[error("the call was denied: {0}")]
    Denied(Denied),
    /// The transport cannot do this.
    #[error("there are no {0}")]
    Unsupported(&'static str),
    /// rpcbind does not know the program.
    #[error("program {program} version {version} is not registered for {network}")]
    NotRegistered {
        /// The program.
        program: u32,
        /// Its version.
        version: u32,
        /// The transport.
        network: String,
    },
    /// rpcbind did not take a registration.
    #[error("rpcbind does not register program {program} version {version}: somebody else has")]
    NotTaken {
        /// The program.
        program: u32,
        /// Its version.
        version: u32,
    },
}
