//! What names a thing: nodes, processes, buffers, pages, and the keys without which a buffer is out of reach.

use std::fmt;

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// A card, as another card numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u16);

/// A process on its card. Numbers are not used again while the card lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// A buffer that a process has exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// The name of a buffer on its card: the communication buffer handle (CBH).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cbh {
    /// Whose.
    pub process: ProcessId,
    /// Which.
    pub buffer: BufferId,
}

/// Bytes from the beginning of the memory that a process has given to its card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

/// A page of that memory. With its process it is the virtual memory handle (VMH).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Page(pub u64);

/// A page that is pinned, as the driver numbers it: what a card on a bus would know as a physical page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame(pub u32);

/// The caller's name for something it posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Work(pub u64);

/// Who has it may use the buffer. It cannot be guessed, and dies with the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub u128);

/// What a buffer may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rights {
    /// Others may send into it.
    pub send: bool,
    /// Others may fetch from it.
    pub fetch: bool,
}

impl Rights {
    /// Both.
    pub const ALL: Rights = Rights { send: true, fetch: true };

    /// As bits.
    #[must_use]
    pub fn bits(self) -> u8 {
        u8::from(self.send) | u8::from(self.fetch) << 1
    }

    /// From bits.
    #[must_use]
    pub fn from_bits(bits: u8) -> Rights {
        Rights { send: bits & 1 != 0, fetch: bits & 2 != 0 }
    }
}

impl Address {
    /// The page that it lies in.
    #[must_use]
    pub fn page(self) -> Page {
        Page(self.0 / PAGE as u64)
    }

    /// Bytes from the beginning of its page.
    #[must_use]
    pub fn within_page(self) -> usize {
        (self.0 % PAGE as u64) as usize
    }
}

impl Page {
    /// Where it begins.
    #[must_use]
    pub fn address(self) -> Address {
        Address(self.0 * PAGE as u64)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A key in a log would be a key that others have.
        out.write_str("Key")
    }
}

/// The pieces of a range, none of which crosses the end of a page: page, bytes from its beginning, length.
pub(crate) fn pieces(address: Address, len: usize) -> Vec<(Page, usize, usize)> {
    let (mut at, mut left) = (address, len);
    let mut pieces = Vec::with_capacity(2);
    while left > 0 {
        let piece = left.min(PAGE - at.within_page());
        pieces.push((at.page(), at.within_page(), piece));
        at = Address(at.0.wrapping_add(piece as u64));
        left -= piece;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_at_pages() {
        assert_eq!(pieces(Address(4090), 10), [(Page(0), 4090, 6), (Page(1), 0, 4)]);
        assert_eq!(pieces(Address(8192), 4096), [(Page(2), 0, 4096)]);
        assert_eq!(pieces(Address(1), 0), []);
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Key(77)), "Key");
    }
}
