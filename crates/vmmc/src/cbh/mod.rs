//! Communication buffer handles: what a buffer is, where, and who may use it.
//!
//! The host has a [table](table) of all buffers; the card has a [cache](cache) of those that are used, and of some that are not
//! there.

pub mod cache;
pub mod table;

use crate::error::Fault;
use crate::id::{Address, Key, Rights};

pub use cache::{CbhCache, CbhLookup};
pub use table::BufferTable;

/// What the card knows of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Where it begins.
    pub address: Address,
    /// How long it is.
    pub len: u64,
    /// Without it, nothing.
    pub key: Key,
    /// What it may be used for.
    pub rights: Rights,
    /// Whether its owner wants to be told.
    pub notify: bool,
}

/// What an operation wants of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// To send into it.
    Send,
    /// To fetch from it.
    Fetch,
}

impl Descriptor {
    /// Whether an operation of this range may be, as the owner decides for every one.
    pub fn check(&self, key: Key, want: Want, at: u64, len: u64) -> Result<(), Fault> {
        if key != self.key {
            return Err(Fault::WrongKey);
        }
        let allowed = match want {
            Want::Send => self.rights.send,
            Want::Fetch => self.rights.fetch,
        };
        if !allowed {
            return Err(Fault::NotAllowed);
        }
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(Fault::OutOfRange),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_made() {
        let rights = Rights { send: true, fetch: false };
        let buffer = Descriptor { address: Address(0), len: 100, key: Key(7), rights, notify: false };
        assert_eq!(buffer.check(Key(7), Want::Send, 10, 90), Ok(()));
        assert_eq!(buffer.check(Key(8), Want::Send, 0, 1), Err(Fault::WrongKey));
        assert_eq!(buffer.check(Key(7), Want::Fetch, 0, 1), Err(Fault::NotAllowed));
        assert_eq!(buffer.check(Key(7), Want::Send, 10, 91), Err(Fault::OutOfRange));
        assert_eq!(buffer.check(Key(7), Want::Send, u64::MAX, 2), Err(Fault::OutOfRange));
    }
}
