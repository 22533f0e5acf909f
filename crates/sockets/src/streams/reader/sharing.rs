//! A reading direction whose stream a child holds, too: this process owns the ring until another holder takes over.

use std::{
    io::IoSliceMut,
    sync::{Arc, atomic::Ordering},
};

use sidestep_fabric::queue::Heir;
use sidestep_stream::carrier::{AnyInbound, Inbound, Mode};

use crate::{
    kernel::{Errno, Result},
    processes::{custody, heirloom::Heirloom},
    streams::Stream,
};

use super::{Reader, Step};

/// Messages between two looks at whether all others have gone.
const LOOK: u64 = 64;

impl Reader {
    /// Whether this direction can be shared as it is: on its ring, or never opened. Gives what a child needs of the ring, and
    /// how far it was read.
    pub fn settled(&mut self) -> Option<(Option<Heir>, u64)> {
        let busy = self.aside.is_some() || !self.kept.is_empty() || self.note.leaving || self.note.parting;
        let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else {
            return (!busy).then_some((None, 0));
        };
        let stays = self.on_ring && !busy && !self.cut_off && carrier.announced(self.note.done).is_none();
        let heir = if stays { ring.heir() } else { None };
        heir.map(|heir| (Some(heir), ring.position()))
    }

    /// What the holders share of the ring, which this process owns.
    pub fn shared(&self) -> Option<&Arc<Heirloom>> {
        self.shared.as_ref()
    }

    /// A child will hold the stream. The writer does not come back to the ring once it has left: where it did would have to be
    /// known to all.
    pub fn share(&mut self, heirloom: Arc<Heirloom>) {
        self.note.open = false;
        self.shared = Some(heirloom);
    }

    /// All other holders have gone. One of them may have taken over before.
    pub fn unshare(&mut self, stream: &Stream) {
        self.see_sharing(stream);
        if self.shared.take().is_some() {
            stream.family.shared.store(false, Ordering::Relaxed);
            stream.forget_heirloom();
            if self.ring.is_some() {
                self.note.open = true;
                self.tell();
            }
        }
    }

    /// The ring is the family's from now on, whose holders read what is left of it before they read from TCP.
    #[cold]
    pub fn surrender(&mut self, stream: &Stream) {
        let Some(heirloom) = self.shared.take() else { return };
        // What this process has read and written is counted where its carrier is given up.
        let Some([end, _]) = heirloom.count().or_else(|| heirloom.take_over()) else { return };
        if let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) {
            ring.skip_to_end(end);
            carrier.taken.store(end, Ordering::Relaxed);
        }
        self.inherit(heirloom.clone());
        stream.has_inherited(heirloom);
        stream.carriage.parting.store(true, Ordering::SeqCst);
        self.note.parting = true;
        // Carries the end of the ring out, and tells the peer.
        if !matches!(self.cross(stream), Ok(true)) {
            self.tell();
        }
    }

    /// As `take`, of a ring that may be taken over at any moment: the bytes are the caller's when the family's word was moved.
    #[cold]
    pub(super) fn take_shared(&mut self, stream: &Stream, parts: &mut [IoSliceMut<'_>], flags: i32) -> Result<usize> {
        let Some(heirloom) = self.shared.clone() else { return Ok(0) };
        if heirloom.is_taken_over() {
            return self.take_surrendered(stream, parts, flags);
        }
        let Some(ring) = &mut self.ring else { return Ok(0) };
        if !ring.has_news() {
            return Ok(0);
        }
        let from = ring.position();
        let room: usize = parts.iter().map(|part| part.len()).sum();
        let copied = match flags & libc::MSG_TRUNC {
            0 => ring.receive_parts(parts, Mode::Peek),
            _ => Ok(ring.available().min(room)),
        };
        // What another holder does to the ring may look like a peer's fault.
        let Ok(count) = copied else {
            return match heirloom.is_taken_over() {
                true => self.take_surrendered(stream, parts, flags),
                false => Err(Errno(libc::ECONNRESET)),
            };
        };
        if flags & libc::MSG_PEEK != 0 || count == 0 {
            return Ok(count);
        }
        if !heirloom.advance(from, count) {
            return self.take_surrendered(stream, parts, flags);
        }
        if ring.consume(count).is_err() {
            return Ok(count);
        }
        self.took(count);
        if self.counts.messages % LOOK == 0
            && stream.known_place().is_some_and(|place| custody::is_sole_holder(place.cookie))
        {
            self.unshare(stream);
        }
        Ok(count)
    }

    /// Gives the ring up, and takes from what the family shares then.
    fn take_surrendered(&mut self, stream: &Stream, parts: &mut [IoSliceMut<'_>], flags: i32) -> Result<usize> {
        self.surrender(stream);
        match self.take_aside(stream, parts, flags)? {
            Some(Step::Got(count)) => Ok(count),
            _ => Ok(0),
        }
    }

    /// Another holder may have taken over: what it has left is known then.
    #[inline]
    pub fn see_sharing(&mut self, stream: &Stream) {
        if self.shared.as_ref().is_some_and(|heirloom| heirloom.is_taken_over()) {
            self.surrender(stream);
        }
    }

    /// Takes the ring out, which others may read from.
    pub fn take_ring(&mut self) -> Option<AnyInbound> {
        self.ring.take()
    }
}
