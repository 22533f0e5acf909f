//! The numbers that name things on the wire, as types that cannot be mixed up.

use std::fmt;

/// A steering tag: the name of a tagged buffer (RFC 5041 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stag(pub u32);

/// An offset within a tagged buffer (RFC 5041 §4.2). A buffer may begin at any value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TaggedOffset(pub u64);

/// A message sequence number of one untagged queue (RFC 5041 §4.3). It starts at one and wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Msn(pub u32);

/// The offset of a segment's payload within its untagged message (RFC 5041 §4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MessageOffset(pub u32);

/// The number of an untagged queue (RFC 5041 §4.3, RFC 5040 §4.1, RFC 7306 §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueueNumber(pub u32);

impl Msn {
    /// The number of the first message of every queue.
    pub const FIRST: Self = Self(1);

    /// The number of the message after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

impl QueueNumber {
    /// Sends and immediate data.
    pub const SEND: Self = Self(0);
    /// Read requests and atomic requests.
    pub const READ_REQUEST: Self = Self(1);
    /// The terminate message.
    pub const TERMINATE: Self = Self(2);
    /// Atomic responses.
    pub const ATOMIC_RESPONSE: Self = Self(3);
}

impl fmt::Display for Stag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

impl fmt::Display for TaggedOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for Msn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for MessageOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for QueueNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_numbers_wrap_to_zero() {
        assert_eq!(Msn(u32::MAX).next(), Msn(0));
        assert_eq!(Msn::FIRST.next(), Msn(2));
    }
}
