//! What a packet of a link says of itself: its kind and an acknowledgement, in the 32 bits of immediate data.
//!
//! ```text
//!   0..4    kind
//!   4       the sender wants an acknowledgement as soon as everything has been read
//!   5..12   packets read since the last acknowledgement
//!   12..32  bytes in them
//! ```

use sidestep_wire::cursor::little::{Reader, Writer};

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Bytes of the stream.
    Data = 0,
    /// An acknowledgement that no data takes along.
    Ack = 1,
    /// The first packet, which tells where acknowledgements can be written; later ones say nothing, but wake.
    Wakeup = 2,
    /// The end of the stream, with the last note of its writer.
    Fin = 3,
    /// All bytes before the end have been read.
    FinAck = 4,
    /// A note of the writer or of the reader.
    Note = 5,
    /// Bytes that the reader may take from where they are: their address, and the number and length of the offer.
    Offer = 6,
    /// Bytes that were not read, and go back to their writer, behind a word that says where they begin.
    Return = 7,
    /// All that was sent, and not read, has come back.
    Ready = 8,
}

/// Kind and acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// What it is.
    pub kind: Kind,
    /// An acknowledgement is wanted.
    pub wants: bool,
    /// What has been read.
    pub read: Read,
}

/// Packets and bytes that have been read and not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Read {
    /// Packets, below 128.
    pub packets: u32,
    /// Bytes, below 1 MiB.
    pub bytes: u32,
}

/// The most that one acknowledgement can say.
pub const MOST_PACKETS: u32 = 127;
/// The most bytes that one acknowledgement can say.
pub const MOST_BYTES: u32 = (1 << 20) - 1;

impl Packet {
    /// As immediate data.
    #[inline]
    pub fn to_bits(self) -> u32 {
        let read = self.read.packets.min(MOST_PACKETS) << 5 | self.read.bytes.min(MOST_BYTES) << 12;
        self.kind as u32 | u32::from(self.wants) << 4 | read
    }

    /// From immediate data. `None`: no such kind.
    #[inline]
    pub fn from_bits(bits: u32) -> Option<Packet> {
        let kind = match bits & 0xf {
            0 => Kind::Data,
            1 => Kind::Ack,
            2 => Kind::Wakeup,
            3 => Kind::Fin,
            4 => Kind::FinAck,
            5 => Kind::Note,
            6 => Kind::Offer,
            7 => Kind::Return,
            8 => Kind::Ready,
            _ => return None,
        };
        let read = Read { packets: bits >> 5 & MOST_PACKETS, bytes: bits >> 12 };
        Some(Packet { kind, wants: bits >> 4 & 1 != 0, read })
    }
}

/// The bytes of packets that are no data.
pub const NOTE: usize = 16;

/// What they say is two words.
pub fn note([first, second]: [u64; 2]) -> [u8; NOTE] {
    let mut bytes = [0; NOTE];
    Writer::new(&mut bytes[..]).u64(first).u64(second);
    bytes
}

/// Reads them.
pub fn read_note(bytes: &[u8; NOTE]) -> Option<[u64; 2]> {
    let mut fields = Reader::new(bytes);
    Some([fields.u64().ok()?, fields.u64().ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_carry_everything() {
        use Kind::*;
        for kind in [Data, Ack, Wakeup, Fin, FinAck, Note, Offer, Return, Ready] {
            for (wants, packets, bytes) in [(false, 0, 0), (true, 1, 17), (false, MOST_PACKETS, MOST_BYTES)] {
                let packet = Packet { kind, wants, read: Read { packets, bytes } };
                assert_eq!(Packet::from_bits(packet.to_bits()), Some(packet));
            }
        }
        assert_eq!(Packet::from_bits(0xf), None);
    }
}
