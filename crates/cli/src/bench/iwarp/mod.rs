//! Candidates: iWARP over TCP. One-sided writes, one-sided reads and messages, by parameters of the stream.
//!
//! A written message lies before a word that counts messages, in one of several slots of the other side's region; both
//! travel in one write, and the receiver looks at the word. It stores into the sender's memory how many it has seen,
//! now and then.

use anyhow::{Context, Result, bail};
use sidestep_fabric::{
    Access, Aperture, Cookie, Endpoint, Mode, Node, RdmaQueue, Region, Rights, Tripwire, link::iwarp::IwarpOptions,
    rdma::RequestId,
};
use sidestep_shm::sync::Ordering;

use super::clock::{self, Stopwatch};
use super::control::Peer;
use super::exercise::{Exercise, Run, Seen};
use super::hosts;
use super::path::{Bench, End, Offer, Opening, Operation, Part, Path, Wait, Work};
use super::place::Placement;

/// RDMA writes with markers at one interval.
macro_rules! marked {
    ($name:literal, $interval:literal, $crc:literal) => {{
        const OPTIONS: Parameters = Parameters { crc: $crc, markers: $interval };
        Path {
            name: $name,
            about: "RDMA write over iWARP, with markers",
            work: Work::Pair {
                open: |opening| open_write(opening, OPTIONS),
                attach: |offer| attach_write(offer, OPTIONS),
            },
            parts: &[bandwidth($name, SWEEP_SIZES, Wait::Block)],
        }
    }};
}

/// RDMA writes with CRC, as the standard prescribes.
pub const WRITE: Path = Path {
    name: "write",
    about: "RDMA write over iWARP, with CRC",
    work: Work::Pair { open: |opening| open_write(opening, CRC), attach: |offer| attach_write(offer, CRC) },
    parts: &[
        latency("write", LATENCY_SIZES, Wait::Spin),
        latency("write-block", &[64], Wait::Block),
        bandwidth("write", BANDWIDTH_SIZES, Wait::Block),
        bandwidth("write-spin", BANDWIDTH_SIZES, Wait::Spin),
    ],
};

/// RDMA writes without CRC.
pub const PLAIN: Path = Path {
    name: "write-plain",
    about: "RDMA write over iWARP, without CRC and markers",
    work: Work::Pair { open: |opening| open_write(opening, NO_CRC), attach: |offer| attach_write(offer, NO_CRC) },
    parts: &[latency("write-plain", &[64], Wait::Spin), bandwidth("write-plain", BANDWIDTH_SIZES, Wait::Block)],
};

/// RDMA reads.
pub const READ: Path = Path {
    name: "read",
    about: "RDMA read over iWARP, with CRC; one way is half of the read",
    work: Work::Pair { open: open_read, attach: attach_read },
    parts: &[latency("read", LATENCY_SIZES, Wait::Spin), bandwidth("read", &[64 << 10, 1 << 20], Wait::Spin)],
};

/// Messages.
pub const SEND: Path = Path {
    name: "send",
    about: "send over iWARP, with CRC",
    work: Work::Pair { open: open_send, attach: attach_send },
    parts: &[latency("send", &[64, 1024, 4096], Wait::Spin), bandwidth("send", &[4096], Wait::Spin)],
};

/// Markers at the interval of the standard; none is `write`.
pub const M512: Path = marked!("m512", 512, true);
/// Markers further apart.
pub const M4096: Path = marked!("m4096", 4096, true);
/// Markers about once a frame.
pub const M32768: Path = marked!("m32768", 32768, true);
/// Markers without CRC; none is `write-plain`.
pub const M512_PLAIN: Path = marked!("m512-plain", 512, false);
/// Markers further apart, without CRC.
pub const M4096_PLAIN: Path = marked!("m4096-plain", 4096, false);
/// Markers about once a frame, without CRC.
pub const M32768_PLAIN: Path = marked!("m32768-plain", 32768, false);

/// What a stream is asked for.
#[derive(Clone, Copy)]
pub struct Parameters {
    crc: bool,
    /// Zero for none.
    markers: u32,
}

const CRC: Parameters = Parameters { crc: true, markers: 0 };
const NO_CRC: Parameters = Parameters { crc: false, markers: 0 };

impl Parameters {
    fn node(self) -> Result<Node> {
        let markers = (self.markers != 0).then_some(self.markers);
        Ok(Node::iwarp(IwarpOptions { crc: self.crc, markers, ..IwarpOptions::default() })?)
    }
}

const fn latency(row: &'static str, sizes: &'static [usize], wait: Wait) -> Part {
    let placements = placements(wait);
    Part { bench: Bench::Latency, row, operation: Operation::PingPong, wait, placements, sizes, shift: 0 }
}

const fn bandwidth(row: &'static str, sizes: &'static [usize], wait: Wait) -> Part {
    let placements = placements(wait);
    Part { bench: Bench::Bandwidth, row, operation: Operation::Stream, wait, placements, sizes, shift: 0 }
}

/// Those of plain TCP: blocking ends wherever they do best.
const fn placements(wait: Wait) -> &'static [Placement] {
    if matches!(wait, Wait::Block) { &[Placement::Free, Placement::Same] } else { &[Placement::Cross] }
}

/// A connection, a region for the other side, and the other side's region.
pub type Connected = (Endpoint, Region, Aperture);

/// Connects two nodes, each with a region for the other: listens, and offers the name.
pub fn open_pair(opening: &mut Opening<'_>, node: Node, name: &str) -> Result<Connected> {
    let listener = node.listen(name)?;
    opening.offer(name, &[])?;
    let target = Region::new(&node, REGION)?;
    let request = listener.wait(clock::in_seconds(10))?;
    let theirs = Cookie::from_bytes(request.private())?;
    let endpoint = request.accept(&target.cookie(Rights::ALL).to_bytes())?;
    meet(endpoint, target, &theirs)
}

/// Connects to what [`open_pair`] offered.
pub fn attach_pair(offer: &Offer, node: Node) -> Result<Connected> {
    let target = Region::new(&node, REGION)?;
    let private = target.cookie(Rights::ALL).to_bytes();
    let endpoint = node.connect(&offer.note, &private, clock::in_seconds(10)).context("cannot connect")?;
    let theirs = Cookie::from_bytes(&endpoint.private())?;
    meet(endpoint, target, &theirs)
}

fn meet(endpoint: Endpoint, target: Region, theirs: &Cookie) -> Result<Connected> {
    let aperture = Aperture::open(&endpoint, theirs, clock::in_seconds(10))?;
    // Whoever opens last asks the other, who must still be there to answer.
    endpoint.post(b"open")?;
    endpoint.wait_message(clock::in_seconds(10))?;
    Ok((endpoint, target, aperture))
}

fn open_write(opening: &mut Opening<'_>, parameters: Parameters) -> Result<Box<dyn Exercise>> {
    let (endpoint, target, aperture) = open_pair(opening, parameters.node()?, &hosts::iwarp_name())?;
    WriteEnd::boxed(endpoint, target, aperture, opening.wait, opening.peer())
}

fn attach_write(offer: Offer, parameters: Parameters) -> Result<Box<dyn Exercise>> {
    let (endpoint, target, aperture) = attach_pair(&offer, parameters.node()?)?;
    WriteEnd::boxed(endpoint, target, aperture, offer.wait, offer.peer)
}

struct WriteEnd {
    endpoint: Endpoint,
    queue: RdmaQueue,
    target: Region,
    source: Region,
    aperture: Aperture,
    /// The write under way from each slot.
    under_way: Vec<Option<RequestId>>,
    /// What is watched in each slot, and where.
    watches: Vec<Option<(usize, Tripwire)>>,
    sent: u32,
    seen: u32,
    told: u32,
    wait: Wait,
    peer: Peer,
}

impl WriteEnd {
    fn boxed(
        endpoint: Endpoint,
        target: Region,
        aperture: Aperture,
        wait: Wait,
        peer: Peer,
    ) -> Result<Box<dyn Exercise>> {
        let source = Region::new(endpoint.node(), REGION)?;
        let pattern: Vec<u8> = (0..REGION).map(|at| at as u8).collect();
        source.write(0, &pattern)?;
        Ok(Box::new(WriteEnd {
            queue: RdmaQueue::new(endpoint.node(), 256),
            endpoint,
            target,
            source,
            aperture,
            under_way: vec![None; MAX_SLOTS],
            watches: (0..MAX_SLOTS).map(|_| None).collect(),
            sent: 0,
            seen: 0,
            told: 0,
            wait,
            peer,
        }))
    }

    /// Waits until a word of this side's region has a value.
    fn wait_for(&mut self, slot: usize, word: usize, expected: u32) -> Result<()> {
        let arrived = self.target.word32(word)?;
        if self.wait == Wait::Spin {
            return self.until(|| Ok(arrived.load(Ordering::Acquire) == expected));
        }
        let watch = &mut self.watches[slot];
        if watch.as_ref().is_none_or(|(at, _)| *at != word) {
            *watch = Some((word, Tripwire::new(&self.target, word, Access::Write, Mode::Once)?));
        }
        if let Some((_, tripwire)) = watch {
            // It may have fired for the message before.
            while arrived.load(Ordering::Acquire) != expected {
                tripwire.wait(None, || arrived.load(Ordering::Acquire) == expected)?;
            }
        }
        Ok(())
    }

    /// Waits until a write has ended.
    fn wait_end(&self, id: RequestId) -> Result<()> {
        match self.wait {
            Wait::Spin => self.until(|| Ok(self.queue.test(id)?)),
            _ => Ok(self.queue.wait(id, None)?),
        }
    }

    /// Waits until `found`, driving the node.
    fn until(&self, mut found: impl FnMut() -> Result<bool>) -> Result<()> {
        let node = self.endpoint.node();
        let mut spin = self.peer.spin();
        while !found()? {
            if !node.progress() {
                spin.turn()?;
            }
        }
        Ok(())
    }
}

/// Where a message of this size lies, and its word: the word is aligned, and the message ends at it.
fn place(size: usize, number: u32) -> (usize, usize, usize) {
    let stride = (size + 4).next_multiple_of(64) + 64;
    let slots = (USED_LEN / stride).clamp(2, MAX_SLOTS);
    let slot = number as usize % slots;
    let word = slot * stride + stride - 64;
    (slot, word, slots)
}

impl End for WriteEnd {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        let (slot, word, slots) = place(payload.len(), self.sent);
        if let Some(before) = self.under_way[slot].take() {
            self.wait_end(before)?;
        }
        let taken = self.target.word32(TAKEN)?;
        if self.sent.wrapping_sub(taken.load(Ordering::Acquire)) >= slots as u32 {
            self.until(|| Ok(self.sent.wrapping_sub(taken.load(Ordering::Acquire)) < slots as u32))?;
        }
        self.sent = self.sent.wrapping_add(1);
        let start = word - payload.len();
        if let (Some(first), Some(last)) = (payload.first(), payload.last()) {
            self.source.write(start, &[*first])?;
            self.source.write(word - 1, &[*last])?;
        }
        self.source.word32(word)?.store(self.sent, Ordering::Release);
        let id = self.queue.write(&self.source.slice(start, payload.len() + 4)?, &self.aperture, start)?;
        self.under_way[slot] = Some(id);
        Ok(())
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        let (slot, word, slots) = place(payload.len(), self.seen);
        let expected = self.seen.wrapping_add(1);
        let arrived = self.target.word32(word)?;
        if arrived.load(Ordering::Acquire) != expected {
            self.wait_for(slot, word, expected)?;
        }
        if let Some(last) = payload.len().checked_sub(1) {
            self.target.read(word - payload.len(), &mut payload[..1])?;
            self.target.read(word - 1, &mut payload[last..])?;
        }
        self.seen = expected;
        if self.seen.wrapping_sub(self.told) as usize >= slots.div_ceil(2) {
            self.told = self.seen;
            self.aperture.store32(TAKEN, self.seen)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let under_way: Vec<_> = self.under_way.iter_mut().filter_map(Option::take).collect();
        under_way.into_iter().try_for_each(|id| self.wait_end(id))
    }
}

fn open_send(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let (endpoint, ..) = open_pair(opening, CRC.node()?, &hosts::iwarp_name())?;
    Ok(Box::new(SendEnd { endpoint, peer: opening.peer(), unconfirmed: 0, received: 0 }))
}

fn attach_send(offer: Offer) -> Result<Box<dyn Exercise>> {
    let (endpoint, ..) = attach_pair(&offer, CRC.node()?)?;
    Ok(Box::new(SendEnd { endpoint, peer: offer.peer, unconfirmed: 0, received: 0 }))
}

/// Messages of an endpoint. An endpoint keeps so many that nobody has taken; so now and then one is confirmed.
struct SendEnd {
    endpoint: Endpoint,
    peer: Peer,
    unconfirmed: usize,
    received: usize,
}

impl SendEnd {
    fn message(&mut self) -> Result<Vec<u8>> {
        let mut spin = self.peer.spin();
        loop {
            match self.endpoint.poll_message()? {
                Some(message) if message.is_empty() => self.unconfirmed -= CONFIRMED,
                Some(message) => return Ok(message),
                None => spin.turn()?,
            }
        }
    }

    fn post(&self, bytes: &[u8]) -> Result<()> {
        let mut spin = self.peer.spin();
        loop {
            match self.endpoint.post(bytes) {
                Err(sidestep_fabric::Error::Full { .. }) => {
                    self.endpoint.node().progress();
                    spin.turn()?;
                }
                outcome => return Ok(outcome?),
            }
        }
    }
}

impl End for SendEnd {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        while self.unconfirmed >= 2 * CONFIRMED {
            let mut spin = self.peer.spin();
            match self.endpoint.poll_message()? {
                Some(message) if message.is_empty() => self.unconfirmed -= CONFIRMED,
                Some(_) => bail!("a message that was not asked for"),
                None => spin.turn()?,
            }
        }
        self.unconfirmed += 1;
        self.post(payload)
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        payload.copy_from_slice(&self.message()?);
        self.received += 1;
        if self.received % CONFIRMED == 0 {
            self.post(b"")?;
        }
        Ok(())
    }
}

fn open_read(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let (endpoint, target, aperture) = open_pair(opening, CRC.node()?, &hosts::iwarp_name())?;
    Ok(Box::new(ReadEnd::new(endpoint, target, aperture, opening.peer())?))
}

fn attach_read(offer: Offer) -> Result<Box<dyn Exercise>> {
    let (endpoint, target, aperture) = attach_pair(&offer, CRC.node()?)?;
    Ok(Box::new(ReadEnd::new(endpoint, target, aperture, offer.peer)?))
}

/// Reads from the other side's region, while the other side looks after its node.
pub struct ReadEnd {
    endpoint: Endpoint,
    queue: RdmaQueue,
    target: Region,
    aperture: Aperture,
    peer: Peer,
}

impl ReadEnd {
    /// An end that reads through `aperture` and offers `target`.
    pub fn new(endpoint: Endpoint, target: Region, aperture: Aperture, peer: Peer) -> Result<ReadEnd> {
        Ok(ReadEnd { queue: RdmaQueue::new(endpoint.node(), 64), endpoint, target, aperture, peer })
    }

    /// Reads so many times, one after the other; nanoseconds of each.
    pub fn time_reads(&self, size: usize, count: usize) -> Result<Vec<u32>> {
        let into = self.target.slice(0, size.max(1))?;
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let before = clock::now();
            let id = self.queue.read(&self.aperture, 0, &into)?;
            let mut spin = self.peer.spin();
            while !self.queue.test(id)? {
                spin.turn()?;
            }
            times.push(u32::try_from(clock::now() - before).unwrap_or(u32::MAX));
        }
        Ok(times)
    }

    /// Tells the other side that it is over: in its memory, and by a message.
    pub fn finish(&self) -> Result<()> {
        self.aperture.store32(TAKEN, 1)?;
        self.aperture.flush(clock::in_seconds(10))?;
        Ok(self.endpoint.post(b"over")?)
    }

    /// Begins to be read from.
    pub fn begin(&self) -> Result<()> {
        self.target.word32(TAKEN)?.store(0, Ordering::Release);
        Ok(self.endpoint.post(b"begin")?)
    }

    /// Waits until the other side has begun.
    pub fn wait_other_side(&self) -> Result<()> {
        self.endpoint.wait_message(clock::in_seconds(10))?;
        Ok(())
    }

    /// Waits until the other side is over.
    pub fn wait_over(&self) -> Result<()> {
        self.endpoint.wait_message(None)?;
        Ok(())
    }

    /// Whether the memory says that it is over; the message that says so too is taken then.
    pub fn has_been_told(&self) -> Result<bool> {
        let told = self.target.word32(TAKEN)?.load(Ordering::Acquire) == 1;
        if told {
            self.wait_over()?;
        }
        Ok(told)
    }

    /// Whether the other side has said that it is over.
    pub fn is_over(&self) -> Result<bool> {
        Ok(self.endpoint.poll_message()?.is_some())
    }

    fn stream(&self, size: usize, count: usize) -> Result<()> {
        let mut under_way = std::collections::VecDeque::new();
        for number in 0..count {
            let slot = number % 8 * (REGION / 8);
            if under_way.len() == 8
                && let Some(id) = under_way.pop_front()
            {
                self.queue.wait(id, None)?;
            }
            under_way.push_back(self.queue.read(&self.aperture, 0, &self.target.slice(slot, size)?)?);
        }
        under_way.into_iter().try_for_each(|id| Ok(self.queue.wait(id, None)?))
    }
}

impl Exercise for ReadEnd {
    fn lead(&mut self, run: &Run) -> Result<Seen> {
        let (count, size) = (run.count, run.size);
        let mut seen = Seen::default();
        match run.operation {
            Operation::Stream => {
                self.stream(size, (count / 10).clamp(2, 100))?;
                let watch = Stopwatch::start();
                self.stream(size, count)?;
                seen.elapsed = watch.elapsed();
            }
            _ => {
                self.time_reads(size, (count / 10).clamp(2, 100))?;
                let watch = Stopwatch::start();
                seen.trips = self.time_reads(size, count)?;
                seen.elapsed = watch.elapsed();
            }
        }
        self.finish()?;
        Ok(seen)
    }

    fn follow(&mut self, _run: &Run) -> Result<Seen> {
        let watch = Stopwatch::start();
        let mut spin = self.peer.spin();
        while !self.is_over()? {
            spin.turn()?;
        }
        Ok(Seen { elapsed: watch.elapsed(), ..Seen::default() })
    }
}

const LATENCY_SIZES: &[usize] = &[64, 1024, 4096, 65536];
const BANDWIDTH_SIZES: &[usize] = &[4 << 10, 64 << 10, 256 << 10, 1 << 20];
const SWEEP_SIZES: &[usize] = &[64 << 10];
/// Messages that one confirmation stands for; two such lots fit into an inbox.
const CONFIRMED: usize = 64;
/// The slots of small messages lie in as much memory as fits the caches of a core.
const USED_LEN: usize = 1 << 20;
const SLOTS_LEN: usize = 8 << 20;
const MAX_SLOTS: usize = 64;
const TAKEN: usize = SLOTS_LEN + 64;
const REGION: usize = SLOTS_LEN + 128;
