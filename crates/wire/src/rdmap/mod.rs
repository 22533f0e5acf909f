//! RDMAP: what a DDP message means (RFC 5040), with immediate data and atomics (RFC 7306).
//!
//! The first byte that DDP leaves to the layer above holds the version and the [`Opcode`]. Some
//! messages have a header of their own behind the DDP header: [`read_request`], [`terminate`],
//! [`immediate`], [`atomic_request`], [`atomic_response`]. [`segment`] puts both headers together.

pub mod atomic_request;
pub mod atomic_response;
pub mod immediate;
pub mod read_request;
pub mod segment;
pub mod terminate;

use crate::{Error, QueueNumber};
use std::fmt;

const VERSION_SHIFT: u32 = 6;
const VERSION: u8 = 1;
const OPCODE_MASK: u8 = 0x0f;

/// The kinds of RDMAP messages (RFC 5040 §4.1, RFC 7306 §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// RDMA write.
    Write,
    /// RDMA read request.
    ReadRequest,
    /// RDMA read response.
    ReadResponse,
    /// Send.
    Send,
    /// Send with invalidate.
    SendInvalidate,
    /// Send with solicited event.
    SendSolicited,
    /// Send with solicited event and invalidate.
    SendSolicitedInvalidate,
    /// Terminate.
    Terminate,
    /// Immediate data.
    Immediate,
    /// Immediate data with solicited event.
    ImmediateSolicited,
    /// Atomic request.
    AtomicRequest,
    /// Atomic response.
    AtomicResponse,
}

/// Every opcode, in the order of their numbers.
const OPCODES: [Opcode; 12] = [
    Opcode::Write,
    Opcode::ReadRequest,
    Opcode::ReadResponse,
    Opcode::Send,
    Opcode::SendInvalidate,
    Opcode::SendSolicited,
    Opcode::SendSolicitedInvalidate,
    Opcode::Terminate,
    Opcode::Immediate,
    Opcode::ImmediateSolicited,
    Opcode::AtomicRequest,
    Opcode::AtomicResponse,
];

impl Opcode {
    /// The opcode in a control byte of version one.
    pub fn parse(control: u8) -> Result<Self, Error> {
        let version = control >> VERSION_SHIFT;
        if version != VERSION {
            return Err(Error::RdmapVersion { found: version });
        }
        let found = control & OPCODE_MASK;
        OPCODES.get(usize::from(found)).copied().ok_or(Error::Opcode { found })
    }

    /// The control byte with this opcode.
    #[must_use]
    pub fn control(self) -> u8 {
        VERSION << VERSION_SHIFT | self as u8
    }

    /// Whether its segments are tagged.
    #[must_use]
    pub fn tagged(self) -> bool {
        matches!(self, Opcode::Write | Opcode::ReadResponse)
    }

    /// The queue of its messages, unless they are tagged.
    #[must_use]
    pub fn queue(self) -> Option<QueueNumber> {
        Some(match self {
            Opcode::Write | Opcode::ReadResponse => return None,
            Opcode::Send
            | Opcode::SendInvalidate
            | Opcode::SendSolicited
            | Opcode::SendSolicitedInvalidate
            | Opcode::Immediate
            | Opcode::ImmediateSolicited => QueueNumber::SEND,
            Opcode::ReadRequest | Opcode::AtomicRequest => QueueNumber::READ_REQUEST,
            Opcode::Terminate => QueueNumber::TERMINATE,
            Opcode::AtomicResponse => QueueNumber::ATOMIC_RESPONSE,
        })
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Opcode::Write => "write",
            Opcode::ReadRequest => "read request",
            Opcode::ReadResponse => "read response",
            Opcode::Send => "send",
            Opcode::SendInvalidate => "send with invalidate",
            Opcode::SendSolicited => "send with solicited event",
            Opcode::SendSolicitedInvalidate => "send with solicited event and invalidate",
            Opcode::Terminate => "terminate",
            Opcode::Immediate => "immediate",
            Opcode::ImmediateSolicited => "immediate with solicited event",
            Opcode::AtomicRequest => "atomic request",
            Opcode::AtomicResponse => "atomic response",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_and_their_numbers() {
        for (number, opcode) in OPCODES.into_iter().enumerate() {
            assert_eq!(opcode.control(), 0x40 | number as u8);
            assert_eq!(Opcode::parse(opcode.control()), Ok(opcode));
            // Reserved bits are ignored.
            assert_eq!(Opcode::parse(opcode.control() | 0x30), Ok(opcode));
            assert_eq!(opcode.tagged(), opcode.queue().is_none());
        }
        assert_eq!(Opcode::parse(0x4c), Err(Error::Opcode { found: 0xc }));
        assert_eq!(Opcode::parse(0x03), Err(Error::RdmapVersion { found: 0 }));
        assert_eq!(Opcode::parse(0xc3), Err(Error::RdmapVersion { found: 3 }));
    }
}
