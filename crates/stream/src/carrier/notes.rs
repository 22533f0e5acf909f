//! The words by which the ends of a stream agree where its bytes go.

/// A switch, as one of the writer's notes says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Position of the stream.
    pub position: u64,
    /// Which one, counted modulo 128. Odd ones are to the ring, even ones to TCP.
    pub number: u8,
}

/// In either of the writer's notes: nothing follows what has been written.
pub const ENDED: u64 = 1 << 63;

/// The reader's note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// The last switch that was carried out.
    pub done: u8,
    /// Every wait of the reader covers the ring.
    pub open: bool,
    /// The reader takes nothing more.
    pub closed: bool,
    /// The reader wants the rest over TCP.
    pub leaving: bool,
    /// The reader wants the carrier to be given up.
    pub parting: bool,
    /// The reader gives back what it has not read, and has not decided whether it stays so.
    pub wanted: bool,
    /// It stays so: the writer sends that over TCP.
    pub given: bool,
    /// It has closed with bytes that it has not read: the kernel resets the connection.
    pub resets: bool,
    /// Changes while the reader is on its way to a link, with what TCP has before it.
    pub paces: u16,
}

impl Switch {
    /// As a note.
    pub fn to_note(self) -> u64 {
        self.position << 8 & !ENDED | u64::from(self.number & 0x7f)
    }

    /// From a note.
    pub fn from_note(note: u64) -> Switch {
        Switch { position: (note & !ENDED) >> 8, number: note as u8 & 0x7f }
    }

    /// Where to.
    pub fn to_ring(self) -> bool {
        self.number % 2 != 0
    }

    /// Which of the two notes it is in.
    pub fn note(number: u8) -> usize {
        usize::from(number % 2 == 0)
    }

    /// The number after this one.
    pub fn next_number(number: u8) -> u8 {
        (number + 1) & 0x7f
    }
}

impl Reading {
    /// The bits of a note that ask something of the writer.
    pub const ASKS: u64 = 0x3c;

    /// As a note.
    pub fn to_note(self) -> u64 {
        let paces = u64::from(self.paces) << 16;
        let bits = [self.open, self.closed, self.leaving, self.parting, self.wanted, self.given, self.resets];
        let bits = bits.iter().enumerate().fold(0, |bits, (at, bit)| bits | u64::from(*bit) << at);
        paces | u64::from(self.done) << 8 | bits
    }

    /// From a note.
    pub fn from_note(note: u64) -> Reading {
        let bit = |at: u32| note >> at & 1 != 0;
        let (done, paces) = ((note >> 8) as u8 & 0x7f, (note >> 16) as u16);
        let [open, closed, leaving, parting, wanted, given, resets] = [0, 1, 2, 3, 4, 5, 6].map(bit);
        Reading { done, open, closed, leaving, parting, wanted, given, resets, paces }
    }

    /// Whether the reader wants the writer to leave the carrier, for whatever reason.
    #[inline]
    pub fn asks_to_leave(&self) -> bool {
        self.leaving || self.parting || self.wanted || self.given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_carry_everything() {
        for position in [0, 1, 77, 1 << 40] {
            for number in [1, 5, 126, 127] {
                let switch = Switch { position, number };
                assert_eq!(Switch::from_note(switch.to_note()), switch);
                assert_eq!(Switch::from_note(switch.to_note() | ENDED), switch);
            }
        }
        for bits in 0..128 {
            let [open, closed, leaving, parting, wanted, given, resets] =
                [1, 2, 4, 8, 16, 32, 64].map(|bit| bits & bit != 0);
            let paces = 0x101 * u16::from(bits);
            let reading = Reading { done: bits, open, closed, leaving, parting, wanted, given, resets, paces };
            assert_eq!(Reading::from_note(reading.to_note()), reading);
        }
        assert_eq!(Switch::next_number(127), 0);
        assert!(Switch { position: 0, number: 1 }.to_ring());
    }
}
