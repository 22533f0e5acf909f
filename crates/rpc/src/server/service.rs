//! What a program gives to a server.

use std::fmt;
use std::net::SocketAddr;

use sidestep_wire::oncrpc::reply::AuthError;
use sidestep_wire::oncrpc::{Auth, Xid};

use crate::xdr::{self, Reader, Writer};

/// One version of one program. Generated servers implement it.
pub trait Service: Send + Sync + 'static {
    /// The number of the program.
    fn program(&self) -> u32;

    /// The number of the version.
    fn version(&self) -> u32;

    /// Executes a call: takes its arguments, appends its results.
    fn call(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal>;

    /// Whether a procedure may be executed twice when a call comes twice. Others are remembered.
    fn repeatable(&self, procedure: u32) -> bool {
        procedure == 0
    }
}

/// Who calls what.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The number of the call.
    pub xid: Xid,
    /// The program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// The procedure.
    pub procedure: u32,
    /// Who calls, as the caller states it.
    pub credential: Auth<'a>,
    /// What shows that it is the caller.
    pub verifier: Auth<'a>,
    /// Where the call came from.
    pub peer: &'a Peer,
}

/// Where a call came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Peer {
    /// A TCP connection.
    Tcp(SocketAddr),
    /// A UDP socket.
    Udp(SocketAddr),
    /// A process of this host, over a UNIX socket.
    Unix {
        /// The process.
        pid: u32,
        /// Its user.
        uid: u32,
    },
    /// A client over RDMA.
    Rdma(SocketAddr),
    /// A client of the fabric, over a channel or a VI.
    Fabric {
        /// A number that it has chosen at random, and keeps when it connects again.
        client: u64,
    },
}

/// Why a call is not executed, or not replied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such procedure.
    ProcedureUnavailable,
    /// The arguments cannot be decoded.
    GarbageArguments,
    /// The service has trouble of its own.
    SystemError,
    /// The caller may not do this.
    Auth(AuthError),
    /// The call was executed, and its caller expects no reply (batching).
    NoReply,
}

impl Refusal {
    /// Results that have no XDR are a fault of the service.
    #[must_use]
    pub fn of_results(_: xdr::Error) -> Self {
        Refusal::SystemError
    }
}

impl From<xdr::Error> for Refusal {
    fn from(_: xdr::Error) -> Self {
        Refusal::GarbageArguments
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::ProcedureUnavailable => f.write_str("there is no such procedure"),
            Refusal::GarbageArguments => f.write_str("the arguments cannot be decoded"),
            Refusal::SystemError => f.write_str("the service has trouble of its own"),
            Refusal::Auth(error) => error.fmt(f),
            Refusal::NoReply => f.write_str("no reply is expected"),
        }
    }
}
