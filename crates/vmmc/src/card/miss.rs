//! What the card asks of the driver, and the answer.

use super::Path;
use crate::cbh::Descriptor;
use crate::id::Cbh;
use crate::vmh::cache::Tag;
use crate::vmh::{Entry, Slot};

/// Something the card lacks: an interrupt for the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// A line of translations.
    Vmh {
        /// Where it goes.
        slot: Slot,
        /// Which.
        tag: Tag,
        /// Who asked.
        path: Path,
    },
    /// A buffer descriptor.
    Cbh {
        /// Where it goes.
        slot: Slot,
        /// Which.
        cbh: Cbh,
    },
}

/// The driver's answer to a [`Miss`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fill {
    /// A line of translations.
    Vmh {
        /// Where it goes.
        slot: Slot,
        /// Which.
        tag: Tag,
        /// One for each page.
        entries: Vec<Entry>,
    },
    /// A buffer descriptor, or the word that there is none.
    Cbh {
        /// Where it goes.
        slot: Slot,
        /// Which.
        cbh: Cbh,
        /// What it is.
        descriptor: Option<Descriptor>,
    },
}
