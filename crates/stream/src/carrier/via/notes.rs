//! Notes: the words by which the two ends of a stream agree where its bytes go.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use sidestep_sys::lock::Lock;

use super::{
    Link, Lost, NOTES, READER,
    packet::{self, Kind, NOTE},
    timer,
};

/// Those of both sides.
#[derive(Debug, Default)]
pub struct Notes {
    /// The last ones that the peer left: two of its writer, one of its reader.
    pub(super) last: [AtomicU64; NOTES],
    /// Those of this side, and whether there are any that were not sent for want of room.
    pub(super) own: Lock<Own>,
    pub(super) owed: AtomicBool,
}

/// The notes of this side.
#[derive(Debug, Default)]
pub struct Own {
    /// The last ones.
    last: [Option<u64>; NOTES],
    /// Those for which there was no room.
    untold: [Option<u64>; NOTES],
}

impl Link {
    /// A note that the peer's writer left. What it sent before has been counted.
    #[inline]
    pub fn writer_note(&self, which: usize) -> u64 {
        self.notes.last[which & 1].load(Ordering::Acquire)
    }

    /// The note that the peer's reader left.
    #[inline]
    pub fn reader_note(&self) -> u64 {
        self.notes.last[READER].load(Ordering::Acquire)
    }

    /// Whether there is room for a note.
    pub fn may_note(&self) -> bool {
        self.absorb();
        !self.notes.owed.load(Ordering::Relaxed) && self.line.vi.may_send(NOTE, 0)
    }

    /// Leaves a note of this side's writer; it may be the end of the stream.
    pub fn set_writer_note(self: &Arc<Self>, which: usize, note: u64, ends: bool) -> Result<(), Lost> {
        self.leave_note(which & 1, note, if ends { Kind::Fin } else { Kind::Note })
    }

    /// Leaves a note of this side's reader.
    pub fn set_reader_note(self: &Arc<Self>, note: u64) -> Result<(), Lost> {
        self.leave_note(READER, note, Kind::Note)
    }

    /// A note goes out now, or in time: the last one of its kind is what counts. What was said before is not said again: a peer
    /// that does not look has receives for few packets.
    pub(super) fn leave_note(self: &Arc<Self>, which: usize, note: u64, kind: Kind) -> Result<(), Lost> {
        let mut own = self.notes.own.lock();
        if own.last[which].replace(note) != Some(note) {
            own.untold[which] = Some(note);
        }
        self.tell_notes(&mut own, kind)?;
        if self.notes.owed.load(Ordering::Relaxed) {
            timer::watch(self);
        }
        Ok(())
    }

    /// Sends notes that wait.
    pub(super) fn tell_notes(&self, own: &mut Own, kind: Kind) -> Result<(), Lost> {
        for (which, slot) in own.untold.iter_mut().enumerate() {
            if let Some(note) = *slot
                && self.push(kind, &packet::note([which as u64, note]))?
            {
                *slot = None;
            }
        }
        self.notes.owed.store(own.untold.iter().any(Option::is_some), Ordering::Relaxed);
        Ok(())
    }
}
