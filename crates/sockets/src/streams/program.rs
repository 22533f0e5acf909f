//! What a program has done with a stream, and what it was told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How a program came to a stream.
#[derive(Debug, Default)]
pub struct Origin {
    /// `connect` has begun, or it was accepted. Before, it is a stream only so that all that is done to the socket is known.
    pub connected: AtomicBool,
    /// That was `connect`: what is sent is mostly a question.
    pub asks: AtomicBool,
    /// The socket was not made by this process: who else has it, or waits for it, is not known.
    pub foreign: AtomicBool,
}

/// What has ended.
#[derive(Debug, Default)]
pub struct Ends {
    /// The program has shut a direction down.
    pub is_shut: AtomicBool,
    /// The writing direction, that is.
    pub sends_no_more: AtomicBool,
    /// Writes are the kernel's, which knows their error: the program has shut that direction down, or was told that the
    /// connection is gone.
    pub writes_over: AtomicBool,
}

/// What wakes those who wait for edges.
#[derive(Debug, Default)]
pub struct Edges {
    /// How often TCP had no space.
    pub fulls: AtomicU64,
    /// How often the program did something that does so: `shutdown`, another low-water mark.
    pub stirs: AtomicU64,
}

impl Origin {
    pub(super) fn begin(&self) {
        [&self.connected, &self.asks, &self.foreign].iter().for_each(|word| word.store(false, Ordering::Relaxed));
    }

    /// In a forked child: as the parent's.
    pub(super) fn inherit(&self, from: &Origin) {
        let pairs = [(&self.connected, &from.connected), (&self.asks, &from.asks), (&self.foreign, &from.foreign)];
        pairs.iter().for_each(|(word, from)| word.store(from.load(Ordering::Relaxed), Ordering::Relaxed));
    }
}

impl Ends {
    pub(super) fn begin(&self) {
        [&self.is_shut, &self.sends_no_more, &self.writes_over]
            .iter()
            .for_each(|word| word.store(false, Ordering::Relaxed));
    }

    /// Whether any of it has.
    pub fn any(&self) -> bool {
        [&self.is_shut, &self.sends_no_more, &self.writes_over].iter().any(|end| end.load(Ordering::SeqCst))
    }
}

impl Edges {
    pub(super) fn begin(&self) {
        [&self.fulls, &self.stirs].iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}
