//! A carrier: the two rings of a promoted stream, and the notes by which its ends agree where the bytes go.
//!
//! The *writer's notes* announce switches: from this position of the stream on, bytes take that path. One note is for
//! switches to the ring, which have odd numbers, one for those to TCP, which have even ones. The *reader's note* says
//! whether the direction is open, and which switch it has carried out. A writer goes to the ring only when everything
//! before has been carried out, and leaves it at any time; so at most two switches are on the way, one in each note, and
//! the reader needs no list: it drains the old path up to the position, and goes on with the new one.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
};

use sidestep_fabric::{
    Endpoint, Node,
    queue::{Monitor, Receiver, Sender},
};

/// What both directions and every waiter of a promoted stream share.
#[derive(Debug)]
pub struct Carrier {
    /// No other carrier of this process has, had or will have it.
    pub serial: u64,
    /// The connection on the fabric. Dropping it ends the carrier, not the stream.
    pub endpoint: Endpoint,
    /// The words that the peer writes.
    pub monitor: Monitor,
    /// How far this side has read its ring: for looking without the reader's lock.
    pub taken: AtomicU64,
    /// How far this side has written the peer's ring.
    pub pushed: AtomicU64,
    /// The last switch that this side's reader has carried out.
    pub switched: AtomicU8,
    /// Bytes that were read from TCP and come after the ring's.
    pub kept: AtomicU64,
    /// Size of the peer's ring.
    pub capacity: AtomicU64,
    /// The connection on the fabric has ended.
    pub lost: AtomicBool,
}

/// A carrier with the two ends of its rings, on the way to the directions of its stream.
#[derive(Debug)]
pub struct Parts {
    /// Shared.
    pub carrier: Arc<Carrier>,
    /// For the writer.
    pub sender: Option<Sender>,
    /// For the reader.
    pub receiver: Option<Receiver>,
}

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
    /// As a note.
    pub fn to_note(self) -> u64 {
        u64::from(self.done) << 8 | u64::from(self.open) | u64::from(self.closed) << 1 | u64::from(self.leaving) << 2
    }

    /// From a note.
    pub fn from_note(note: u64) -> Reading {
        let bit = |at: u32| note >> at & 1 != 0;
        Reading { done: (note >> 8) as u8 & 0x7f, open: bit(0), closed: bit(1), leaving: bit(2) }
    }
}

impl Carrier {
    /// A serial number for the next one.
    pub fn next_serial() -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        LAST.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The node underneath.
    pub fn node(&self) -> &Node {
        self.endpoint.node()
    }

    /// Whether the ring holds bytes that were not read. A look, without a lock.
    #[inline]
    pub fn has_bytes(&self) -> bool {
        self.monitor.written() != self.taken.load(Ordering::Relaxed)
    }

    /// Whether the ring holds at least so many.
    #[inline]
    pub fn has_at_least(&self, wanted: u32) -> bool {
        let bytes = self.monitor.written().wrapping_sub(self.taken.load(Ordering::Relaxed));
        bytes >= u64::from(wanted.max(1))
    }

    /// Bytes in flight to the peer, as far as is known.
    pub fn in_flight(&self) -> u64 {
        let read = self.monitor.read() & !(1 << 63);
        self.pushed.load(Ordering::Relaxed).saturating_sub(read)
    }

    /// Whether enough space is free that a writer should be told.
    #[inline]
    pub fn has_space(&self) -> bool {
        let capacity = self.capacity.load(Ordering::Relaxed);
        self.in_flight() <= capacity - capacity / 4
    }

    /// The switch after number `done`, if the peer's writer has announced it.
    #[inline]
    pub fn announced(&self, done: u8) -> Option<Switch> {
        let next = Switch::next_number(done);
        let switch = Switch::from_note(self.monitor.sender_note(Switch::note(next)));
        (switch.number == next).then_some(switch)
    }

    /// Whether a switch has been announced that was not carried out.
    #[inline]
    pub fn is_switching(&self) -> bool {
        self.announced(self.switched.load(Ordering::Relaxed)).is_some()
    }

    /// Whether the peer says that it writes no more.
    #[inline]
    pub fn has_ended(&self) -> bool {
        (self.monitor.sender_note(0) | self.monitor.sender_note(1)) & ENDED != 0
    }

    /// What the peer's reader says.
    #[inline]
    pub fn peer_reading(&self) -> Reading {
        Reading::from_note(self.monitor.receiver_note())
    }

    /// Sees to what has come for this process, and whether the connection on the fabric stands.
    #[cold]
    pub fn check(&self) -> bool {
        self.node().progress_kernel();
        if self.endpoint.is_connected().is_err() {
            self.lost.store(true, Ordering::Release);
        }
        !self.lost.load(Ordering::Acquire)
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
        for bits in 0..8 {
            let reading =
                Reading { done: bits * 9, open: bits & 1 != 0, closed: bits & 2 != 0, leaving: bits & 4 != 0 };
            assert_eq!(Reading::from_note(reading.to_note()), reading);
        }
        assert_eq!(Switch::next_number(127), 0);
        assert!(Switch { position: 0, number: 1 }.to_ring());
    }
}
