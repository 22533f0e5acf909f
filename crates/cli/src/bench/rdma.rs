//! Candidate: one-sided writes. The payload lies in a region and is written to the other side's memory by an RDMA queue,
//! followed by an immediate that counts messages; the other side looks at that word.
//!
//! The receiver finds the payload in its own memory: it looks at the first and the last byte and copies nothing. Two
//! buffers are used in turn (one for the largest), four in `rdma-four`; the receiver stores into the sender's memory how many it has seen.

use anyhow::{Context, Result};
use sidestep_fabric::{Aperture, Cookie, Endpoint, Node, RdmaQueue, Region, Rights};
use sidestep_shm::{Word32, sync::Ordering};

use super::clock;
use super::control::Peer;
use super::exercise::Exercise;
use super::path::{
    BANDWIDTH_SIZES, Bench, End, LATENCY_SIZES, Offer, Opening, Operation, Part, Path, RATE_SIZES, Wait, Work,
};
use super::place::Placement;
use super::shared;

/// The path.
pub const PATH: Path = Path {
    name: "rdma",
    about: "RDMA write into the other side's region, then an immediate",
    work: Work::Pair { open, attach },
    parts: &[
        part(Bench::Latency, "rdma", Operation::PingPong, LATENCY_SIZES),
        part(Bench::Rate, "rdma", Operation::Stream, RATE_SIZES),
        part(Bench::Bandwidth, "rdma", Operation::Stream, BANDWIDTH_SIZES),
    ],
};

/// The same with as many buffers as `via` has receives.
pub const FOUR: Path = Path {
    name: "rdma-four",
    about: "RDMA write into four buffers in turn, as many as via has receives posted",
    work: Work::Pair { open: open_four, attach: attach_four },
    parts: &[part(Bench::Bandwidth, "rdma-four", Operation::Stream, FOUR_SIZES)],
};

const FOUR_SIZES: &[usize] = &[64 << 10, 256 << 10, 1 << 20];

const fn part(bench: Bench, row: &'static str, operation: Operation, sizes: &'static [usize]) -> Part {
    Part { bench, row, operation, wait: Wait::Spin, placements: &[Placement::Cross], sizes, shift: 0 }
}

fn open(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    open_with(opening, 2)
}

fn open_four(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    open_with(opening, 4)
}

fn attach(offer: Offer) -> Result<Box<dyn Exercise>> {
    attach_with(offer, 2)
}

fn attach_four(offer: Offer) -> Result<Box<dyn Exercise>> {
    attach_with(offer, 4)
}

fn open_with(opening: &mut Opening<'_>, buffers: u32) -> Result<Box<dyn Exercise>> {
    let node = Node::new()?;
    let name = shared::fabric_name();
    let listener = node.listen(&name)?;
    opening.offer(&name, &[])?;
    let target = Region::new(&node, REGION)?;
    let request = listener.wait(clock::in_seconds(10))?;
    let theirs = Cookie::from_bytes(request.private())?;
    let endpoint = request.accept_with(|endpoint| Ok(endpoint.share(&target, Rights::ALL)?.to_bytes().to_vec()))?;
    RdmaEnd::boxed(endpoint, (target, buffers), &theirs, opening.peer())
}

fn attach_with(offer: Offer, buffers: u32) -> Result<Box<dyn Exercise>> {
    let node = Node::new()?;
    let target = Region::new(&node, REGION)?;
    let private = target.cookie(Rights::ALL).to_bytes();
    let endpoint = node.connect(&offer.note, &private, clock::in_seconds(10)).context("cannot connect")?;
    let theirs = Cookie::from_bytes(&endpoint.private())?;
    RdmaEnd::boxed(endpoint, (target, buffers), &theirs, offer.peer)
}

struct RdmaEnd {
    queue: RdmaQueue,
    /// Where the other side writes: the buffers, then the words.
    target: Region,
    buffers: u32,
    source: Region,
    aperture: Aperture,
    arrived: Word32,
    taken: Word32,
    sent: u32,
    seen: u32,
    peer: Peer,
    _endpoint: Endpoint,
}

impl RdmaEnd {
    fn boxed(
        endpoint: Endpoint,
        (target, buffers): (Region, u32),
        theirs: &Cookie,
        peer: Peer,
    ) -> Result<Box<dyn Exercise>> {
        let aperture = Aperture::open(&endpoint, theirs, clock::in_seconds(10))?;
        // Whoever opens last asks the other, who must still be there to answer.
        endpoint.post(b"open")?;
        endpoint.wait_message(clock::in_seconds(10))?;
        let source = Region::new(endpoint.node(), BUFFER)?;
        let pattern: Vec<u8> = (0..BUFFER).map(|at| at as u8).collect();
        source.write(0, &pattern)?;
        Ok(Box::new(RdmaEnd {
            queue: RdmaQueue::new(endpoint.node(), 64),
            arrived: target.word32(ARRIVED)?,
            taken: target.word32(TAKEN)?,
            target,
            buffers,
            source,
            aperture,
            sent: 0,
            seen: 0,
            peer,
            _endpoint: endpoint,
        }))
    }
}

impl End for RdmaEnd {
    #[inline]
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        let mut spin = self.peer.spin();
        let buffers = self.buffers(payload.len());
        while self.sent.wrapping_sub(self.taken.load(Ordering::Acquire)) >= buffers {
            spin.turn()?;
        }
        if let (Some(first), Some(last)) = (payload.first(), payload.last()) {
            self.source.write(0, &[*first])?;
            self.source.write(payload.len() - 1, &[*last])?;
        }
        let offset = (self.sent % buffers) as usize * BUFFER;
        self.sent = self.sent.wrapping_add(1);
        if !payload.is_empty() {
            self.queue.write(&self.source.slice(0, payload.len())?, &self.aperture, offset)?;
        }
        let id = self.queue.immediate(&self.aperture, ARRIVED, self.sent)?;
        if !self.queue.test(id)? {
            self.queue.wait(id, None)?;
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        let mut spin = self.peer.spin();
        while self.arrived.load(Ordering::Acquire) == self.seen {
            spin.turn()?;
        }
        let offset = (self.seen % self.buffers(payload.len())) as usize * BUFFER;
        if let Some(last) = payload.len().checked_sub(1) {
            self.target.read(offset, &mut payload[..1])?;
            self.target.read(offset + last, &mut payload[last..])?;
        }
        self.seen = self.seen.wrapping_add(1);
        Ok(self.aperture.store32(TAKEN, self.seen)?)
    }
}

impl RdmaEnd {
    /// How many buffers are used in turn: of the largest, as much memory in all as a copy of this size touches.
    fn buffers(&self, size: usize) -> u32 {
        if size > BUFFER / 2 { 1 } else { self.buffers }
    }
}

const MOST_BUFFERS: usize = 4;
const BUFFER: usize = 4 << 20;
const ARRIVED: usize = MOST_BUFFERS * BUFFER;
const TAKEN: usize = ARRIVED + 64;
const REGION: usize = TAKEN + 64;
