//! Where the key of a buffer lies in its bytes, for streams that are dealt by key.

use serde::{Deserialize, Serialize};

/// What of a buffer is its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Key {
    /// So many bytes of each buffer, from an offset. Of a buffer that ends before, those that are there.
    Bytes {
        /// From here.
        at: usize,
        /// How many.
        bytes: usize,
    },
    /// A field of each line. The lines of a buffer go their ways, in buffers of their own. A line without the field has an
    /// empty key.
    Field {
        /// Which one, from 1.
        number: usize,
        /// What stands between two of them; without it any number of blanks and tabs.
        separator: Option<u8>,
    },
}

impl Key {
    /// The parts of a buffer that have a key of their own, each with its key.
    pub(crate) fn parts(self, buffer: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
        let (lines, whole) = match self {
            Key::Bytes { at, bytes } => {
                let from = at.min(buffer.len());
                let to = at.saturating_add(bytes).min(buffer.len());
                (None, Some((hash(&buffer[from..to]), buffer)))
            }
            Key::Field { number, separator } => {
                let lines = buffer.split_inclusive(|byte| *byte == b'\n');
                // An empty buffer has no lines, but it may be an answer that someone waits for.
                let empty = buffer.is_empty().then_some((hash(b""), buffer));
                (Some(lines.map(move |line| (hash(field(line, number, separator)), line))), empty)
            }
        };
        lines.into_iter().flatten().chain(whole)
    }
}

fn field(line: &[u8], number: usize, separator: Option<u8>) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let at = number.saturating_sub(1);
    let found = match separator {
        Some(separator) => line.split(|byte| *byte == separator).nth(at),
        None => line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty()).nth(at),
    };
    found.unwrap_or_default()
}

/// FNV-1a: the same in every build, since producers in different processes must agree.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(key: Key, buffer: &[u8]) -> Vec<(u64, &[u8])> {
        key.parts(buffer).collect()
    }

    #[test]
    fn bytes_are_a_key_as_far_as_they_are_there() {
        let key = Key::Bytes { at: 2, bytes: 3 };
        assert_eq!(keys(key, b"abcdefgh"), [(hash(b"cde"), &b"abcdefgh"[..])]);
        assert_eq!(keys(key, b"abcd"), [(hash(b"cd"), &b"abcd"[..])]);
        assert_eq!(keys(key, b""), [(hash(b""), &b""[..])]);
        let far = Key::Bytes { at: usize::MAX, bytes: usize::MAX };
        assert_eq!(keys(far, b"ab"), [(hash(b""), &b"ab"[..])]);
    }

    #[test]
    fn every_line_has_a_key_of_its_own() {
        let lines = b"a  b c\n\tb\tx\nz\nlast b";
        let second = Key::Field { number: 2, separator: None };
        let expected: [(u64, &[u8]); 4] =
            [(hash(b"b"), b"a  b c\n"), (hash(b"x"), b"\tb\tx\n"), (hash(b""), b"z\n"), (hash(b"b"), b"last b")];
        assert_eq!(keys(second, lines), expected);
        let third = Key::Field { number: 3, separator: Some(b',') };
        assert_eq!(keys(third, b"a,,c\n"), [(hash(b"c"), &b"a,,c\n"[..])]);
        assert_eq!(keys(third, b""), [(hash(b""), &b""[..])]);
    }
}
