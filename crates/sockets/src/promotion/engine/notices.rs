//! The notices of an engine: those of other processes, which it reads, and its own, which it takes back.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use sidestep_sys::lock::Mutex;

use super::{
    guests, of_key,
    proof::{self, Board, Notice},
};
use crate::{
    kernel::{address::Key, diag::Told},
    streams::{READ, Stage, Stream, WRITE, lock},
};

/// Time between two looks at all notices: as long as some thousand streams take, a hundred times.
const CLEAR_NS: u64 = 10_000_000;

/// See the file.
#[derive(Debug, Default)]
pub struct Notices {
    board: Board,
    /// Streams of this process that have a notice which the other side may not have seen yet, and whether that is of another user.
    posted: Mutex<HashMap<u32, (Key, bool)>>,
    /// When they were last gone through.
    cleared: AtomicU64,
}

impl Notices {
    /// Whether the socket with this key, which is another process's, has this notice.
    pub fn have(&self, key: &Key, notice: Notice) -> bool {
        self.board.has(key, notice)
    }

    /// What the kernel tells of the socket with this key.
    pub fn look(&self, key: &Key) -> Option<Told> {
        self.board.look(key)
    }

    /// A stream of this process has a notice now, for whoever asked.
    pub fn posted(&self, stream: &Stream, own: &Key) {
        lock(&self.posted).entry(stream.index).or_insert((*own, false)).0 = *own;
    }

    /// A stream of this process has a notice now, for a process of another user, which is expected to ask.
    pub fn posted_for_guest(&self, stream: &Stream, own: &Key) {
        let mut posted = lock(&self.posted);
        posted.insert(stream.index, (*own, true));
        guests::expect(&posted);
    }

    /// Goes through all of them, unless that was done just now.
    pub fn clear_if_due(&self, now: u64) {
        if now.wrapping_sub(self.cleared.load(Ordering::Relaxed)) >= CLEAR_NS {
            self.cleared.store(now, Ordering::Relaxed);
            self.clear();
        }
    }

    /// Takes notices back that the other side has acted upon, or never will.
    fn clear(&self) {
        let mut posted = lock(&self.posted);
        posted.retain(|index, (key, _)| {
            let Some(stream) = of_key(*index, key) else { return false };
            let waits = match stream.stage() {
                Stage::Offered => true,
                // The other side uses the carrier, so it has taken it up.
                Stage::Carried => ![READ, WRITE].iter().any(|direction| stream.on_ring(*direction)),
                Stage::Young | Stage::Never | Stage::Off => false,
            };
            if !waits {
                proof::take_back(stream.fd());
            }
            waits
        });
        guests::expect(&posted);
    }
}
