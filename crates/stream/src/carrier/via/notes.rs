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
    /// Those of this side for which there was no room, and whether there are any.
    pub(super) untold: Lock<[Option<u64>; NOTES]>,
    pub(super) owed: AtomicBool,
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

    /// A note goes out now, or in time: the last one of its kind is what counts.
    pub(super) fn leave_note(self: &Arc<Self>, which: usize, note: u64, kind: Kind) -> Result<(), Lost> {
        let mut untold = self.notes.untold.lock();
        untold[which] = Some(note);
        self.tell_notes(&mut untold, kind)?;
        if self.notes.owed.load(Ordering::Relaxed) {
            timer::watch(self);
        }
        Ok(())
    }

    /// Sends notes that wait.
    pub(super) fn tell_notes(&self, untold: &mut [Option<u64>; NOTES], kind: Kind) -> Result<(), Lost> {
        for (which, slot) in untold.iter_mut().enumerate() {
            if let Some(note) = *slot
                && self.push(kind, &packet::note([which as u64, note]))?
            {
                *slot = None;
            }
        }
        self.notes.owed.store(untold.iter().any(Option::is_some), Ordering::Relaxed);
        Ok(())
    }
}
