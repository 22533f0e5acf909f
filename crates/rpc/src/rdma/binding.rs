//! Bulk data that travel apart from their message, and how the two come together again.

use std::fmt;

use crate::Procedure;

/// Which data of programs may travel in chunks of their own over RDMA: an upper-layer binding (RFC 8166 §6). Such data are
/// the bytes of a variable-length opaque. Both sides of a connection must have the same one.
#[derive(Clone, Copy)]
pub struct Binding {
    /// Where the bytes of such an opaque begin in the arguments of a procedure.
    pub argument: fn(Procedure, &[u8]) -> Option<usize>,
    /// Where they begin in its results. It must not look at what lies behind.
    pub result: fn(Procedure, &[u8]) -> Option<usize>,
    /// How many there can be in the results, by the arguments.
    pub result_limit: fn(Procedure, &[u8]) -> Option<u32>,
}

impl Binding {
    /// No data travel apart.
    pub const NONE: Binding = Binding { argument: |_, _| None, result: |_, _| None, result_limit: |_, _| None };
}

impl Default for Binding {
    fn default() -> Self {
        Binding::NONE
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Binding")
    }
}

/// The bytes of an opaque that begin at `at` of an item: their number, if all of them are there.
pub(crate) fn bulk_at(item: &[u8], at: usize) -> Option<usize> {
    let length = u32::from_be_bytes(*item.get(at.checked_sub(4)?..at)?.first_chunk()?) as usize;
    (item.len() - at >= length).then_some(length)
}

/// Puts a message together out of what was sent inline and of chunks with their positions in the whole, in ascending order.
/// `None` if they do not fit together.
pub(crate) fn assemble(inline: &[u8], chunks: &[(usize, &[u8])], limit: usize) -> Option<Vec<u8>> {
    let length = chunks.iter().map(|(_, bytes)| bytes.len().next_multiple_of(4)).sum::<usize>() + inline.len();
    if length > limit {
        return None;
    }
    let mut message = Vec::with_capacity(length);
    let mut rest = inline;
    for (position, bytes) in chunks {
        let before = position.checked_sub(message.len())?;
        message.extend_from_slice(rest.get(..before)?);
        rest = &rest[before..];
        message.extend_from_slice(bytes);
        message.resize(message.len().next_multiple_of(4), 0);
    }
    message.extend_from_slice(rest);
    Some(message)
}

/// Puts bulk data and their fill back into a message.
pub(crate) fn insert(message: &[u8], at: usize, bulk: &[u8], limit: usize) -> Option<Vec<u8>> {
    assemble(message, &[(at, bulk)], limit).filter(|_| at <= message.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_put_together_by_position() {
        assert_eq!(assemble(b"abcdijkl", &[(4, b"efg")], 100).unwrap(), b"abcdefg\0ijkl");
        assert_eq!(assemble(b"", &[(0, b"abcd"), (4, b"efgh")], 100).unwrap(), b"abcdefgh");
        assert_eq!(assemble(b"abcdmnop", &[(4, b"efgh"), (8, b"ijkl")], 100).unwrap(), b"abcdefghijklmnop");
        // Behind the end, before what is there already, too long.
        assert_eq!(assemble(b"abcd", &[(8, b"efgh")], 100), None);
        assert_eq!(assemble(b"abcd", &[(4, b"efgh"), (4, b"ijkl")], 100), None);
        assert_eq!(assemble(b"abcd", &[(4, b"efgh")], 7), None);
    }

    #[test]
    fn bulk_is_found_by_its_length() {
        let item = [0, 0, 0, 9, 0, 0, 0, 2, b'a', b'b', 0, 0];
        assert_eq!(bulk_at(&item, 8), Some(2));
        assert_eq!(bulk_at(&item, 4), None);
        assert_eq!((bulk_at(&item, 2), bulk_at(&item, 13)), (None, None));
    }
}
