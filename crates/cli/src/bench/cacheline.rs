//! Limit: a bare exchange of cache lines. Nothing that crosses between two cores can be faster.
//!
//! Each end owns a line with one counter; sending is storing the next count into the own line,
//! receiving is waiting for it in the other's. The counter carries the stamp of the message.

use std::sync::atomic::Ordering;

use anyhow::Result;
use sidestep_shm::Word64;

use super::control::Peer;
use super::exercise::Exercise;
use super::path::{Bench, End, Offer, Opening, Operation, Part, Path, Wait, Work};
use super::place::Placement;
use super::shared::{self, Shared};

/// The path.
pub const PATH: Path = Path {
    name: "cacheline",
    about: "limit of latency: a bare cache-line exchange between two cores",
    work: Work::Pair { open, attach },
    parts: &[Part {
        bench: Bench::Latency,
        row: "cacheline",
        operation: Operation::PingPong,
        wait: Wait::Spin,
        placements: &[Placement::Cross],
        sizes: &[LINE_BYTES],
        shift: 0,
    }],
};

/// One line is one message.
pub const LINE_BYTES: usize = 64;

/// Opens a pair of lines.
pub fn open(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let shared = shared::offer(opening, MEMORY_BYTES)?;
    LineEnd::boxed(&shared, [FIRST, SECOND], opening.wait, opening.peer())
}

/// Attaches the worker to them.
pub fn attach(offer: Offer) -> Result<Box<dyn Exercise>> {
    let (wait, peer) = (offer.wait, offer.peer.clone());
    let shared = shared::attach(offer)?;
    LineEnd::boxed(&shared, [SECOND, FIRST], wait, peer)
}

struct LineEnd {
    own: Word64,
    other: Word64,
    sent: u64,
    received: u64,
    yields: bool,
    peer: Peer,
}

impl LineEnd {
    fn boxed(shared: &Shared, [own, other]: [usize; 2], wait: Wait, peer: Peer) -> Result<Box<dyn Exercise>> {
        Ok(Box::new(LineEnd {
            own: shared.memory.word64(own)?,
            other: shared.memory.word64(other)?,
            sent: 0,
            received: 0,
            yields: wait == Wait::Yield,
            peer,
        }))
    }
}

impl End for LineEnd {
    #[inline]
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        self.sent += 1;
        let stamp = payload.first().copied().unwrap_or(0);
        self.own.store(self.sent << STAMP_BITS | u64::from(stamp), Ordering::Release);
        Ok(())
    }

    #[inline]
    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        self.received += 1;
        let mut spin = self.peer.spin();
        let word = loop {
            let word = self.other.load(Ordering::Acquire);
            if word >> STAMP_BITS == self.received {
                break word;
            }
            if self.yields { spin.turn_yielding()? } else { spin.turn()? }
        };
        if let [first, .., last] = payload {
            (*first, *last) = (word as u8, word as u8);
        }
        Ok(())
    }
}

const STAMP_BITS: u32 = 8;

// Two lines apart: processors fetch lines in pairs.
const FIRST: usize = 0;
const SECOND: usize = 128;
const MEMORY_BYTES: usize = 4096;
