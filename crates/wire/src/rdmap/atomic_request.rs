//! The header of an atomic request (RFC 7306 §5.2.1).
//!
//! ```text
//! | reserved, operation: 4 bytes | request identifier, 4 | tag, 4 | offset, 8 |
//! | data to add or swap, 8 | its mask, 8 | data to compare, 8 | its mask, 8 |
//! ```

use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::error::{Error, Part, check_len};
use crate::{Stag, TaggedOffset};
use std::fmt;

/// The length of the header.
pub const LEN: usize = 52;

mod field {
    use std::ops::Range;
    pub(super) const OPERATION: Range<usize> = 0..4;
    pub(super) const ID: Range<usize> = 4..8;
    pub(super) const STAG: Range<usize> = 8..12;
    pub(super) const OFFSET: Range<usize> = 12..20;
    pub(super) const DATA: Range<usize> = 20..28;
    pub(super) const DATA_MASK: Range<usize> = 28..36;
    pub(super) const COMPARE: Range<usize> = 36..44;
    pub(super) const COMPARE_MASK: Range<usize> = 44..52;
}

const OPERATION_MASK: u32 = 0x0f;
const FETCH_ADD: u32 = 0;
const COMPARE_SWAP: u32 = 2;

/// What is done to the 64-bit word, in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Adds to the fields of the word (RFC 7306 §5.1.1).
    FetchAdd {
        /// What is added.
        add: u64,
        /// A set bit is the highest bit of a field: its carry is dropped. Zero adds 64 bits.
        mask: u64,
    },
    /// Replaces bits of the word if other bits are as expected (RFC 7306 §5.1.2).
    CompareSwap {
        /// The bits to put in.
        swap: u64,
        /// Which bits are put in.
        swap_mask: u64,
        /// The bits that are expected.
        compare: u64,
        /// Which bits are compared.
        compare_mask: u64,
    },
}

impl Operation {
    /// What the word holds after the operation.
    #[must_use]
    pub fn apply(&self, original: u64) -> u64 {
        match *self {
            // Without the highest bit of each field no carry leaves a field; that bit is the sum of
            // the two bits and the carry into it.
            Operation::FetchAdd { add, mask } => {
                (original & !mask).wrapping_add(add & !mask) ^ ((original ^ add) & mask)
            }
            Operation::CompareSwap { swap, swap_mask, compare, compare_mask } => {
                if (compare ^ original) & compare_mask == 0 {
                    (original & !swap_mask) | (swap & swap_mask)
                } else {
                    original
                }
            }
        }
    }
}

/// A view of an atomic request header.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which may be longer than the header.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        check_len(Part::AtomicRequest, LEN, buffer.as_ref().len())?;
        Ok(Self { buffer })
    }

    /// The code of the operation.
    pub fn operation(&self) -> u8 {
        (u32_at(self.buffer.as_ref(), field::OPERATION) & OPERATION_MASK) as u8
    }

    /// The number that comes back in the response.
    pub fn id(&self) -> u32 {
        u32_at(self.buffer.as_ref(), field::ID)
    }

    /// The tag of the buffer.
    pub fn stag(&self) -> Stag {
        Stag(u32_at(self.buffer.as_ref(), field::STAG))
    }

    /// Where in the buffer the word lies.
    pub fn offset(&self) -> TaggedOffset {
        TaggedOffset(u64_at(self.buffer.as_ref(), field::OFFSET))
    }

    /// What is added or swapped in.
    pub fn data(&self) -> u64 {
        u64_at(self.buffer.as_ref(), field::DATA)
    }

    /// The mask of the data.
    pub fn data_mask(&self) -> u64 {
        u64_at(self.buffer.as_ref(), field::DATA_MASK)
    }

    /// What is compared.
    pub fn compare(&self) -> u64 {
        u64_at(self.buffer.as_ref(), field::COMPARE)
    }

    /// The mask of the comparison.
    pub fn compare_mask(&self) -> u64 {
        u64_at(self.buffer.as_ref(), field::COMPARE_MASK)
    }
}

/// The value of an atomic request header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The number that comes back in the response.
    pub id: u32,
    /// The tag of the buffer.
    pub stag: Stag,
    /// Where in the buffer the word lies.
    pub offset: TaggedOffset,
    /// What is done.
    pub operation: Operation,
}

impl Repr {
    /// Reads the value.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        let operation = match u32::from(header.operation()) {
            FETCH_ADD => Operation::FetchAdd { add: header.data(), mask: header.data_mask() },
            COMPARE_SWAP => Operation::CompareSwap {
                swap: header.data(),
                swap_mask: header.data_mask(),
                compare: header.compare(),
                compare_mask: header.compare_mask(),
            },
            _ => {
                return Err(Error::AtomicOpcode { found: header.operation() });
            }
        };
        Ok(Self { id: header.id(), stag: header.stag(), offset: header.offset(), operation })
    }

    /// The number of bytes that `emit` writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        LEN
    }

    /// Writes the value.
    ///
    /// # Panics
    /// If the buffer is shorter than [`Repr::buffer_len`].
    pub fn emit(&self, buffer: &mut [u8]) {
        let (code, words) = match self.operation {
            Operation::FetchAdd { add, mask } => (FETCH_ADD, [add, mask, 0, u64::MAX]),
            Operation::CompareSwap { swap, swap_mask, compare, compare_mask } => {
                (COMPARE_SWAP, [swap, swap_mask, compare, compare_mask])
            }
        };
        put_u32(buffer, field::OPERATION, code);
        put_u32(buffer, field::ID, self.id);
        put_u32(buffer, field::STAG, self.stag.0);
        put_u64(buffer, field::OFFSET, self.offset.0);
        put_u64(buffer, field::DATA, words[0]);
        put_u64(buffer, field::DATA_MASK, words[1]);
        put_u64(buffer, field::COMPARE, words[2]);
        put_u64(buffer, field::COMPARE_MASK, words[3]);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id {} at {}+{} ", self.id, self.stag, self.offset)?;
        match self.operation {
            Operation::FetchAdd { add, mask } => write!(f, "fetch-add {add:#x} mask {mask:#x}"),
            Operation::CompareSwap { swap, swap_mask, compare, compare_mask } => {
                write!(f, "compare {compare:#x} mask {compare_mask:#x} swap {swap:#x} mask {swap_mask:#x}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden(code: u8, words: [u64; 4]) -> [u8; LEN] {
        // RFC 7306 figure 4: code in the lowest four bits of the first word, then field by field.
        let mut bytes = [0; LEN];
        bytes[3] = code;
        bytes[7] = 9;
        bytes[8..12].copy_from_slice(&[0xca, 0xfe, 0xba, 0xbe]);
        bytes[19] = 0x40;
        for (at, word) in words.into_iter().enumerate() {
            bytes[20 + 8 * at..28 + 8 * at].copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    fn check(golden: [u8; LEN], operation: Operation, shown: &str) {
        let repr = Repr::parse(&Header::new_checked(golden).unwrap()).unwrap();
        let expected = Repr { id: 9, stag: Stag(0xcafe_babe), offset: TaggedOffset(0x40), operation };
        assert_eq!(repr, expected);
        let mut out = [0xee; LEN];
        repr.emit(&mut out);
        assert_eq!(out, golden);
        assert_eq!(repr.to_string(), shown);
    }

    #[test]
    fn parses_and_emits_golden_requests() {
        check(
            golden(0, [5, 0x80, 0, u64::MAX]),
            Operation::FetchAdd { add: 5, mask: 0x80 },
            "id 9 at 0xcafebabe+0x40 fetch-add 0x5 mask 0x80",
        );
        check(
            golden(2, [1, 2, 3, 4]),
            Operation::CompareSwap { swap: 1, swap_mask: 2, compare: 3, compare_mask: 4 },
            "id 9 at 0xcafebabe+0x40 compare 0x3 mask 0x4 swap 0x1 mask 0x2",
        );
    }

    #[test]
    fn other_operations_are_refused() {
        for code in (0..16).filter(|code| ![0, 2].contains(code)) {
            let header = Header::new_checked(golden(code, [0; 4])).unwrap();
            assert_eq!(Repr::parse(&header), Err(Error::AtomicOpcode { found: code }));
        }
        assert!(Header::new_checked([0; 51]).is_err());
    }

    /// The loop over bits by which RFC 7306 §5.1.1 defines the addition.
    fn add_bit_by_bit(original: u64, add: u64, mask: u64) -> u64 {
        let (mut result, mut carry) = (0, 0);
        for bit in 0..64 {
            let sum = carry + ((original >> bit) & 1) + ((add >> bit) & 1);
            result |= (sum & 1) << bit;
            carry = if (mask >> bit) & 1 == 1 { 0 } else { sum >> 1 };
        }
        result
    }

    #[test]
    fn masked_addition_keeps_carries_within_fields() {
        let numbers = [0, 1, 0xff, 0x8000_0000_0000_0000, u64::MAX, 0x0123_4567_89ab_cdef];
        for original in numbers {
            for add in numbers {
                for mask in [0, 0x80, 0x8080_8080_8080_8080, u64::MAX, 0x8000_0000_0000_0001] {
                    assert_eq!(Operation::FetchAdd { add, mask }.apply(original), add_bit_by_bit(original, add, mask));
                }
            }
        }
    }

    #[test]
    fn masked_compare_and_swap() {
        let swap =
            |compare, compare_mask| Operation::CompareSwap { swap: 0xffff, swap_mask: 0x00f0, compare, compare_mask };
        assert_eq!(swap(0x1200, 0xff00).apply(0x1234), 0x12f4);
        assert_eq!(swap(0x1300, 0xff00).apply(0x1234), 0x1234);
        assert_eq!(swap(0x1300, 0).apply(0x1234), 0x12f4);
    }
}
