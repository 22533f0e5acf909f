//! A card for processes: one process is the card, and others use it through queues in shared memory.
//!
//! ```text
//!   process ── words ──▶ card process ◀── packets ──▶ card process of another name
//!      │  ◀── answers ──   │   ▲
//!      │                   ▼   │ fills
//!      └── memory ──▶ mapped by the card; its driver's thread locks the pages that are used
//! ```
//!
//! [`Process::attach`] starts the card if none of that name is there; it ends when its last process has gone. Packets go by channels of the
//! fabric: over shared memory, and between hosts if the card was given an address of its own ([`serve_at`]).

mod entrance;
mod handlers;
mod lines;
mod lockable;
mod memory;
mod options;
mod server;
mod standing;
mod start;
mod thread;
mod user;
mod words;

pub use lockable::lockable;
pub use options::CardOptions;
pub use server::{serve, serve_at};
pub use standing::Standing;
pub use start::{be_card, card_command};
pub use user::{Attach, Buffer, Handle, Notice, Process, Remote};

use sidestep_fabric::ChannelOptions;
use sidestep_fabric::queue::Kind;

/// Where a card of a name listens for processes and other cards.
fn address(name: &str) -> String {
    format!("shm:vmmc-{name}")
}

/// Bytes of an address that is told to processes.
const LONGEST_ADDRESS: usize = 200;

/// Where it takes their memory.
fn memory_address(name: &str) -> String {
    format!("vmmc-memory-{name}")
}

/// Whether a card heeds these bytes from a process: one that says anything else is dismissed.
#[must_use]
pub fn is_word(bytes: &[u8]) -> bool {
    words::Word::parse(bytes).is_some()
}

/// The queue of a process, or towards it.
fn word_queue() -> ChannelOptions {
    ChannelOptions { capacity: 64 * 256, kind: Kind::Slots(256) }
}

/// The queue between two cards.
fn packet_queue() -> ChannelOptions {
    ChannelOptions { capacity: 64 * 8192, kind: Kind::Slots(8192) }
}

/// The first byte of what is said when a channel is made: a process, with the sign under which it has sent its memory.
const PROCESS: u8 = b'p';
/// Or a card.
const CARD: u8 = b'c';

#[cfg(test)]
mod tests;
