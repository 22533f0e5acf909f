//! The words that the processes at both ends of a direction share. Each is one 64-bit word, read once and then checked.

/// Bits of a word that hold a position.
const POSITION_BITS: u32 = 48;
const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;

/// How a ring ends. Only [`Open`](End::Open) rings grow; every other state fixes the position of the tail for ever.
///
/// ```text
///                writer or reader
///   Open ──────────────────────────▶ Frozen ◀─────────────┐
///    │ │                              ▲  ▲                │ reader reclaims: the writer has died
///    │ │ reader          reader       │  │                │
///    │ └───────────▶ Wanted ──────────┘  │                │
///    │                 │    withdraws    │                │
///    │                 │ writer          │                │
///    │                 └─────────────────┼─────────────▶ Taken ──────────▶ Sent
///    │ reader            writer          │                       writer
///    └───────────▶ Asked ────────────────┘
/// ```
///
/// A carrier whose memory one side alone can reach is *ended by its writer*: its reader cannot freeze it, and asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum End {
    /// The writer may publish.
    #[default]
    Open = 0,
    /// What lies before the tail is the reader's; everything after goes over TCP.
    Frozen = 1,
    /// Frozen, and the reader asks the writer to send what is unread over TCP.
    Wanted = 2,
    /// A holder of the writing end is about to send the unread bytes over TCP; the reader has given them up.
    Taken = 3,
    /// The unread bytes are with TCP.
    Sent = 4,
    /// As [`Open`](End::Open), and the reader asks for the end of a carrier that only its writer can end.
    Asked = 5,
}

/// The tail of a ring: how far it has been written, and how it ends. It lies in memory of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tail {
    /// Bytes written to this ring since it was made.
    pub position: u64,
    /// How it ends.
    pub end: End,
}

impl Tail {
    /// As a word.
    pub fn to_word(self) -> u64 {
        self.position & POSITION_MASK | (self.end as u64) << POSITION_BITS
    }

    /// From a word. `None`: no correct peer writes this.
    pub fn from_word(word: u64) -> Option<Tail> {
        let end = match word >> POSITION_BITS {
            0 => End::Open,
            1 => End::Frozen,
            2 => End::Wanted,
            3 => End::Taken,
            4 => End::Sent,
            5 => End::Asked,
            _ => return None,
        };
        Some(Tail { position: word & POSITION_MASK, end })
    }
}

/// Where the newest ring of a direction begins: after so many bytes of TCP. It lies in memory of the reader and is stored
/// before the first byte of that ring, and before any byte of TCP that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Start {
    /// Which ring, counted from 1; 0: none was begun yet.
    pub ring: u16,
    /// Bytes of the direction that went over TCP before it.
    pub after_tcp: u64,
}

impl Start {
    /// As a word.
    pub fn to_word(self) -> u64 {
        self.after_tcp & POSITION_MASK | u64::from(self.ring) << POSITION_BITS
    }

    /// From a word. Every word is some start; the reader checks it against what it knows.
    pub fn from_word(word: u64) -> Start {
        Start { ring: (word >> POSITION_BITS) as u16, after_tcp: word & POSITION_MASK }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_carry_everything() {
        for position in [0, 1, POSITION_MASK] {
            for end in [End::Open, End::Frozen, End::Wanted, End::Taken, End::Sent, End::Asked] {
                let tail = Tail { position, end };
                assert_eq!(Tail::from_word(tail.to_word()), Some(tail));
            }
            let start = Start { ring: u16::MAX, after_tcp: position };
            assert_eq!(Start::from_word(start.to_word()), start);
        }
        assert_eq!(Tail::from_word(6 << POSITION_BITS), None);
    }
}
