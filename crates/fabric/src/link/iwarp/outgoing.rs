//! The bytes of a connection that are on their way out.

use std::collections::VecDeque;

use sidestep_iwarp::BufferId;

use super::{
    MAX_TRANSFER,
    lent::{Kept, Lent},
};

/// Bytes that the stream has not taken yet, and buffers for more.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// By name, of which later ones are greater.
    kept: VecDeque<(u64, Kept)>,
    next: u64,
    /// Bytes of them.
    pub(super) queued: usize,
    /// Bytes of a caller that are being transmitted.
    pub(super) lent: Option<BufferId>,
    pool: Vec<Vec<u8>>,
}

/// Buffers kept for the next use.
const KEPT: usize = 16;

impl Outgoing {
    /// A name for bytes on their way out.
    pub(super) fn name(&mut self) -> BufferId {
        self.next += 1;
        BufferId(self.next)
    }

    /// Keeps bytes until the stream has taken them.
    pub(super) fn keep(&mut self, id: BufferId, fill: impl FnOnce(&mut Vec<u8>)) -> u32 {
        let mut bytes = self.buffer();
        bytes.clear();
        fill(&mut bytes);
        self.keep_bytes(id, bytes)
    }

    /// Keeps a copy of bytes until the stream has taken them.
    pub(super) fn keep_copy(&mut self, id: BufferId, lent: Lent<'_>) {
        let mut bytes = self.buffer();
        // What was in it is written over.
        bytes.resize(lent.len(), 0);
        lent.area(0, lent.len()).copy_out(&mut bytes);
        self.keep_bytes(id, bytes);
    }

    fn keep_bytes(&mut self, id: BufferId, bytes: Vec<u8>) -> u32 {
        let len = bytes.len();
        self.queued += len;
        self.kept.push_back((id.0, Kept::Bytes(bytes)));
        len as u32
    }

    /// Keeps what was lent: a copy of it, or the place of bytes of a region that have no checksum.
    pub(super) fn keep_lent(&mut self, id: BufferId, lent: Lent<'_>, crc: bool) {
        match lent {
            Lent::Part(span, at, len) if !crc => {
                self.queued += len;
                self.kept.push_back((id.0, Kept::Part(span.clone(), at, len)));
            }
            lent => self.keep_copy(id, lent),
        }
    }

    /// The stream has taken them.
    pub(super) fn release(&mut self, id: u64) {
        self.lent.take_if(|lent| lent.0 == id);
        // They go out in order, but for refusals.
        let Some(at) = self.kept.iter().position(|(kept, _)| *kept == id) else { return };
        let Some((_, kept)) = self.kept.remove(at) else { return };
        self.queued -= kept.lent().len();
        if let Kept::Bytes(bytes) = kept {
            self.recycle(bytes);
        }
    }

    /// Bytes on their way out.
    pub(super) fn get(&self, id: BufferId) -> Lent<'_> {
        let kept = self.kept.iter().find(|(kept, _)| *kept == id.0);
        kept.map_or(Lent::Bytes(&[]), |(_, kept)| kept.lent())
    }

    pub(super) fn recycle(&mut self, bytes: Vec<u8>) {
        if self.pool.len() < KEPT && bytes.capacity() <= 2 * MAX_TRANSFER {
            self.pool.push(bytes);
        }
    }

    /// A buffer, with whatever is in it.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.pool.pop().unwrap_or_default()
    }
}
