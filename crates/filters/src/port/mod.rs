//! The ports of a copy: buffers are taken from inputs and given to outputs, in place.

mod buffer;
mod dealer;
pub(crate) mod delay;
mod input;
mod output;
mod sleep;

pub use buffer::{Buffer, Filling};
pub use input::{Input, Inputs};
pub use output::{Output, Outputs};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::counters::Counters;
use crate::graph::Key;
use crate::link::bell::Bell;
use crate::schedule::Schedule;

/// What a port knows of its stream.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    /// The name of the port.
    pub port: String,
    /// Bytes of a buffer.
    pub capacity: usize,
    /// Buffers that may wait at a copy.
    pub queue: usize,
    pub schedule: Schedule,
    /// Where the key of a buffer lies in it, if the filter does not say it.
    pub key: Option<Key>,
    /// The consumer acknowledges.
    pub acknowledged: bool,
    /// The numbers of buffers are handed on from input to output.
    pub tagged: bool,
    /// No other port of the copy is of the same side.
    pub is_only: bool,
    /// The consumer takes buffers in the order of their numbers.
    pub ordered: bool,
}

/// What the ports of one copy share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub bell: Arc<Bell>,
    pub counters: Arc<Counters>,
    pub position: Arc<Position>,
}

/// The number of the buffer that is being worked on, for outputs that hand it on. One thread uses it.
#[derive(Debug, Default)]
pub(crate) struct Position {
    tag: AtomicU64,
    /// A buffer was taken and none given for it.
    owes: AtomicBool,
}

impl Position {
    #[inline]
    fn take(&self, tag: u64) {
        self.tag.store(tag, Ordering::Relaxed);
        self.owes.store(true, Ordering::Relaxed);
    }

    #[inline]
    fn tag(&self) -> u64 {
        self.tag.load(Ordering::Relaxed)
    }

    #[inline]
    fn owes(&self) -> bool {
        self.owes.load(Ordering::Relaxed)
    }

    #[inline]
    fn give(&self) {
        self.owes.store(false, Ordering::Relaxed);
    }
}
