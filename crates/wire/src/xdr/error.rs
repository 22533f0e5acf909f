//! Why bytes are not the XDR that was expected, or why a value has no XDR.

/// What is wrong with a message, or with a value that was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The message ends before the item does.
    #[error("an item needs {needed} bytes, {have} are left in the message")]
    Truncated {
        /// How many bytes the item needs.
        needed: usize,
        /// How many are left.
        have: usize,
    },
    /// Bytes are left after the last item.
    #[error("{count} bytes are left behind the last item")]
    Trailing {
        /// How many.
        count: usize,
    },
    /// A length beyond the limit that its type declares.
    #[error("a length of {length}, at most {limit} is allowed")]
    Length {
        /// The length found.
        length: usize,
        /// The greatest length allowed.
        limit: usize,
    },
    /// A boolean that is neither 0 nor 1.
    #[error("{found} is not a boolean")]
    Bool {
        /// The value found.
        found: u32,
    },
    /// A value that an enumeration, or the discriminant of a union, does not have.
    #[error("{found} is not a value of {name}")]
    Value {
        /// The enumeration or union.
        name: &'static str,
        /// The value found.
        found: i32,
    },
    /// A string that is not UTF-8.
    #[error("a string is not UTF-8 after {valid} bytes")]
    Utf8 {
        /// How many bytes are.
        valid: usize,
    },
    /// Recursive data nests too deep.
    #[error("data nest more than {limit} deep")]
    Depth {
        /// The greatest depth.
        limit: u32,
    },
    /// Recursive data take too much of the stack, though they do not nest too deep.
    #[error("data nest so deep that they take more than {limit} bytes of the stack")]
    Stack {
        /// The greatest number of bytes.
        limit: usize,
    },
    /// The values of a message take much more memory than the message.
    #[error("the values of the message take more than {limit} bytes of memory")]
    Memory {
        /// The greatest number of bytes.
        limit: usize,
    },
    /// The message would be longer than its transport carries.
    #[error("the message would be longer than {limit} bytes")]
    Full {
        /// The greatest length.
        limit: usize,
    },
    /// A call of another version of the RPC protocol.
    #[error("RPC version {found}, only version 2 is spoken")]
    RpcVersion {
        /// The call it was found in.
        xid: u32,
        /// The version found.
        found: u32,
    },
    /// A header of another version of RPC-over-RDMA.
    #[error("RPC-over-RDMA version {found}, only version 1 is spoken")]
    RdmaVersion {
        /// The call it was found in.
        xid: u32,
        /// The version found.
        found: u32,
    },
}
