//! Limit: a bare byte ring in each direction, one producer and one consumer, and nothing else.
//!
//! No framing, no sleeping, no checks against a hostile peer, no statistics: what a message queue
//! could cost if it were for nothing but this benchmark.

use std::sync::atomic::Ordering;

use anyhow::Result;
use sidestep_shm::{Span, Word64};

use super::control::Peer;
use super::exercise::Exercise;
use super::path::{
    BANDWIDTH_SIZES, Bench, End, LATENCY_SIZES, Offer, Opening, Operation, Part, Path, RATE_SIZES, SHIFTED_SIZES, Wait,
    Work,
};
use super::place::Placement;
use super::shared::{self, Shared};

/// The path.
pub const PATH: Path = Path {
    name: "ring",
    about: "limit of messages: a bare byte ring of 1 MiB in shared memory, both ends spinning",
    work: Work::Pair { open, attach },
    parts: &[
        // A byte stream has no empty messages.
        part(Bench::Latency, Operation::PingPong, LATENCY_SIZES.split_at(1).1),
        part(Bench::Rate, Operation::Stream, RATE_SIZES),
        part(Bench::Bandwidth, Operation::Stream, BANDWIDTH_SIZES),
        shifted("ring+1", 1),
        shifted("ring+16", 16),
        shifted("ring+31", 31),
    ],
};

const fn part(bench: Bench, operation: Operation, sizes: &'static [usize]) -> Part {
    let placements = &[Placement::Cross];
    Part { bench, row: "ring", operation, wait: Wait::Spin, placements, sizes, shift: 0 }
}

const fn shifted(row: &'static str, shift: usize) -> Part {
    Part { row, shift, ..part(Bench::Bandwidth, Operation::Stream, SHIFTED_SIZES) }
}

fn open(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let shared = shared::offer(opening, 2 * DIRECTION_BYTES)?;
    RingEnd::boxed(&shared, [0, DIRECTION_BYTES], opening.peer())
}

fn attach(offer: Offer) -> Result<Box<dyn Exercise>> {
    let peer = offer.peer.clone();
    RingEnd::boxed(&shared::attach(offer)?, [DIRECTION_BYTES, 0], peer)
}

struct RingEnd {
    outgoing: Producer,
    incoming: Consumer,
    peer: Peer,
}

impl RingEnd {
    fn boxed(shared: &Shared, starts: [usize; 2], peer: Peer) -> Result<Box<dyn Exercise>> {
        let [outgoing, incoming] = starts.map(|start| Direction::at(shared, start));
        let outgoing = Producer { ring: outgoing?, written: 0, known_read: 0 };
        let incoming = Consumer { ring: incoming?, read: 0, known_written: 0 };
        Ok(Box::new(RingEnd { outgoing, incoming, peer }))
    }
}

impl End for RingEnd {
    #[inline]
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        self.outgoing.send(payload, &self.peer)
    }

    #[inline]
    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        self.incoming.receive(payload, &self.peer)
    }
}

/// One direction in shared memory. Positions count bytes and only grow.
struct Direction {
    /// How far the producer has written; stored by it alone.
    written: Word64,
    /// How far the consumer has read; stored by it alone.
    read: Word64,
    bytes: Span,
}

impl Direction {
    fn at(shared: &Shared, start: usize) -> Result<Direction> {
        Ok(Direction {
            written: shared.memory.word64(start + WRITTEN)?,
            read: shared.memory.word64(start + READ)?,
            bytes: shared.memory.span(start + BYTES, CAPACITY)?,
        })
    }
}

struct Producer {
    ring: Direction,
    written: u64,
    /// The consumer's position when it was last looked at, which is only when space runs out.
    known_read: u64,
}

impl Producer {
    #[inline]
    fn send(&mut self, payload: &[u8], peer: &Peer) -> Result<()> {
        let mut rest = payload;
        while !rest.is_empty() {
            let (offset, contiguous) = at(self.written);
            let part = rest.len().min(CHUNK).min(contiguous);
            let mut spin = peer.spin();
            while CAPACITY - ((self.written - self.known_read) as usize) < part {
                // Pairs with `Consumer::receive`: the bytes below are copied out.
                let read = self.ring.read.load(Ordering::Acquire);
                if read == self.known_read {
                    spin.turn()?;
                }
                self.known_read = read;
            }
            self.ring.bytes.copy_in(offset, &rest[..part])?;
            self.written += part as u64;
            // Pairs with `Consumer::receive`: the bytes below are copied in.
            self.ring.written.store(self.written, Ordering::Release);
            rest = &rest[part..];
        }
        Ok(())
    }
}

struct Consumer {
    ring: Direction,
    read: u64,
    /// The producer's position when it was last looked at, which is only when bytes run out.
    known_written: u64,
}

impl Consumer {
    #[inline]
    fn receive(&mut self, payload: &mut [u8], peer: &Peer) -> Result<()> {
        let mut filled = 0;
        while filled < payload.len() {
            let mut spin = peer.spin();
            while self.known_written == self.read {
                // Pairs with `Producer::send`: the bytes below are copied in.
                self.known_written = self.ring.written.load(Ordering::Acquire);
                if self.known_written == self.read {
                    spin.turn()?;
                }
            }
            let (offset, contiguous) = at(self.read);
            let available = (self.known_written - self.read) as usize;
            let part = (payload.len() - filled).min(available).min(contiguous);
            self.ring.bytes.copy_out(offset, &mut payload[filled..filled + part])?;
            self.read += part as u64;
            // Pairs with `Producer::send`: the bytes below are copied out.
            self.ring.read.store(self.read, Ordering::Release);
            filled += part;
        }
        Ok(())
    }
}

/// The offset of a position, and how many bytes lie between it and the end of the ring.
#[inline]
fn at(position: u64) -> (usize, usize) {
    let offset = position as usize % CAPACITY;
    (offset, CAPACITY - offset)
}

const CAPACITY: usize = 1 << 20;

/// Large messages are published in parts of this many bytes, so that both ends copy at a time.
const CHUNK: usize = 16 << 10;

// The two positions and the bytes begin on lines, and pairs of lines, of their own.
const WRITTEN: usize = 0;
const READ: usize = 128;
const BYTES: usize = 4096;
const DIRECTION_BYTES: usize = BYTES + CAPACITY;
