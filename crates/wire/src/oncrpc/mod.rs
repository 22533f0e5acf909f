//! ONC RPC version 2 (RFC 5531): the header of a [`call`], the header of a [`reply`], the [`auth`] fields in both, and
//! the [`record`] marks that cut a byte stream into messages.
//!
//! A message is a header of varying length and what the program makes of the rest: arguments or results. So `parse`
//! gives the value of the header and the bytes behind it, and `emit` appends to a buffer.

pub mod auth;
pub mod call;
pub mod record;
pub mod reply;

pub use auth::{Auth, AuthSys};

use std::fmt;

/// The only version of the protocol.
pub const VERSION: u32 = 2;

pub(crate) const CALL: u32 = 0;
pub(crate) const REPLY: u32 = 1;

/// The number by which a reply finds its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Xid(pub u32);

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// The xid and the direction of a message, without looking at the rest: `true` for a call.
pub fn peek(message: &[u8]) -> Result<(Xid, bool), crate::xdr::Error> {
    let mut input = crate::xdr::Reader::new(message);
    let xid = Xid(input.u32()?);
    Ok((xid, direction(&mut input)? == CALL))
}

fn direction(input: &mut crate::xdr::Reader<'_>) -> Result<u32, crate::xdr::Error> {
    match input.u32()? {
        found @ (CALL | REPLY) => Ok(found),
        found => Err(crate::xdr::Error::Value { name: "msg_type", found: found as i32 }),
    }
}
