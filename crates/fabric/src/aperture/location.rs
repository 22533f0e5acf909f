//! Where memory of a peer's program lies, which is reached through the kernel.
//!
//! The owner tells it for one turn of its gate. When it takes anything back, the turn is over: a copy that has not begun fails,
//! the request goes by messages, which the owner checks, and the location is asked for again.

use std::sync::Arc;

use sidestep_shm::{Span, attach::Attachment};
use sidestep_sys::lock::{Mutex, MutexGuard};

use super::Aperture;

/// What this side knows of it.
#[derive(Debug, Default)]
pub(super) struct Location(Mutex<Known>);

#[derive(Debug, Default, Clone, Copy)]
enum Known {
    /// Nothing, so far or since it was taken back.
    #[default]
    Nothing,
    /// It begins there, in a turn of the owner's gate.
    At(u64, u64),
    /// The kernel does not let this process.
    OutOfReach,
}

/// The way to copy there.
#[derive(Debug)]
pub(crate) struct Reach<'a> {
    aperture: &'a Aperture,
    attachment: Arc<Attachment>,
    address: u64,
    turn: u64,
}

impl Location {
    /// The owner has told it.
    pub(super) fn told(&self, address: u64, turn: u64) {
        let mut known = self.lock();
        if matches!(*known, Known::Nothing) {
            *known = Known::At(address, turn);
        }
    }

    pub(super) fn is_known(&self) -> bool {
        matches!(*self.lock(), Known::At(..))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().expect("no panic with a location")
    }
}

impl Aperture {
    /// The way to copy through the kernel, if there is one.
    pub(crate) fn reach(&self) -> Option<Reach<'_>> {
        let Known::At(address, turn) = *self.core.location.lock() else { return None };
        match self.node.peer(self.core.peer).attachment() {
            Some(attachment) => Some(Reach { aperture: self, attachment, address, turn }),
            None => {
                *self.core.location.lock() = Known::OutOfReach;
                None
            }
        }
    }
}

impl Reach<'_> {
    /// Copies `len` bytes of a span from `at` on to `offset` of the region. `false`: not all of them could be.
    pub(crate) fn write(&self, bytes: (&Span, usize, usize), offset: usize) -> bool {
        self.attachment.write(bytes, self.address.wrapping_add(offset as u64), self.turn, || self.is_usable())
    }

    /// Copies `len` bytes from `offset` of the region into a span, likewise.
    pub(crate) fn read(&self, bytes: (&Span, usize, usize), offset: usize) -> bool {
        self.attachment.read(bytes, self.address.wrapping_add(offset as u64), self.turn, || self.is_usable())
    }

    /// A copy failed: asks anew if it was taken back, and else lets it be.
    pub(crate) fn lose(&self) {
        let taken_back = self.attachment.turn() != self.turn;
        let core = &self.aperture.core;
        *core.location.lock() = if taken_back { Known::Nothing } else { Known::OutOfReach };
        if taken_back {
            self.aperture.node.core().ask_location(core);
        }
    }

    fn is_usable(&self) -> bool {
        self.aperture.core.check_usable().is_ok()
    }
}
