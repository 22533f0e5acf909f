//! What an event costs, by the number of sources attached to the queue: from the store of a watched word in one process
//! until the other has taken its event, both looking.
//!
//! Each source is a repeating tripwire on a cache line of its own, and they fire one after the other. The size of a
//! message is the number of sources; what travels is the number of the message, in the watched word.
//!
//! As requests and answers, with a body of eight bytes beside the word, the same is a server on the bare fabric, to compare
//! with one on a completion queue: a connection is a line of memory at each side.

use anyhow::{Context, Result};
use sidestep_fabric::{
    Access, Aperture, Cookie, Endpoint, EventQueue, Mode, Node, Region, Rights, Tripwire, event::Event,
};
use sidestep_shm::sync::Ordering;

use super::clock;
use super::control::Peer;
use super::exercise::Exercise;
use super::path::{Bench, End, Offer, Opening, Operation, Part, Path, Wait, Work};
use super::place::Placement;
use super::shared;

/// The path.
pub const PATH: Path = Path {
    name: "events",
    about: "a store to a watched word of the other process, and its event; the size is the number of sources",
    work: Work::Pair { open: |opening| open(opening, Kind::Word), attach: |offer| attach(offer, Kind::Word) },
    parts: &[part("events", &[1, 10, 100, 1_000, MOST])],
};

/// A server of many connections.
pub const REQUESTS: Path = Path {
    name: "fabric-cq",
    about: "a request and its answer over connections in turn, on the bare fabric: stores, tripwires, an event queue",
    work: Work::Pair { open: |opening| open(opening, Kind::Request), attach: |offer| attach(offer, Kind::Request) },
    parts: &[part("fabric-cq", CONNECTIONS)],
};

/// And with one that is active.
pub const REQUESTS_IDLE: Path = Path {
    name: "fabric-cq-idle",
    about: "the same with all connections idle but one",
    work: Work::Pair { open: |opening| open(opening, Kind::One), attach: |offer| attach(offer, Kind::One) },
    parts: &[part("fabric-cq-idle", CONNECTIONS)],
};

const fn part(row: &'static str, sizes: &'static [usize]) -> Part {
    let (bench, operation, wait) = (Bench::Events, Operation::PingPong, Wait::Spin);
    Part { bench, row, operation, wait, placements: &[Placement::Cross], sizes, shift: 0 }
}

/// What travels, and over which sources.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The word alone, over all in turn.
    Word,
    /// A body too.
    Request,
    /// A body, always over the first.
    One,
}

fn open(opening: &mut Opening<'_>, kind: Kind) -> Result<Box<dyn Exercise>> {
    let node = Node::new()?;
    let name = shared::fabric_name();
    let listener = node.listen(&name)?;
    opening.offer(&name, &[])?;
    let region = Region::new(&node, MOST * LINE)?;
    let request = listener.wait(clock::in_seconds(10))?;
    let theirs = Cookie::from_bytes(request.private())?;
    let endpoint = request.accept_with(|endpoint| Ok(endpoint.share(&region, Rights::ALL)?.to_bytes().to_vec()))?;
    EventsEnd::boxed(endpoint, region, &theirs, (opening.peer(), kind))
}

fn attach(offer: Offer, kind: Kind) -> Result<Box<dyn Exercise>> {
    let node = Node::new()?;
    let region = Region::new(&node, MOST * LINE)?;
    let private = region.cookie(Rights::ALL).to_bytes();
    let endpoint = node.connect(&offer.note, &private, clock::in_seconds(10)).context("cannot connect")?;
    let theirs = Cookie::from_bytes(&endpoint.private())?;
    EventsEnd::boxed(endpoint, region, &theirs, (offer.peer, kind))
}

struct EventsEnd {
    queue: EventQueue,
    aperture: Aperture,
    region: Region,
    tripwires: Vec<Tripwire>,
    sent: usize,
    received: usize,
    peer: Peer,
    kind: Kind,
    _endpoint: Endpoint,
}

impl EventsEnd {
    fn boxed(
        endpoint: Endpoint,
        region: Region,
        theirs: &Cookie,
        (peer, kind): (Peer, Kind),
    ) -> Result<Box<dyn Exercise>> {
        let aperture = Aperture::open(&endpoint, theirs, clock::in_seconds(10))?;
        // Whoever opens last asks the other, who must still be there to answer.
        endpoint.post(b"open")?;
        endpoint.wait_message(clock::in_seconds(10))?;
        let queue = EventQueue::polled(endpoint.node());
        let (tripwires, sent, received) = (Vec::new(), 0, 0);
        let end = EventsEnd { queue, aperture, region, tripwires, sent, received, peer, kind, _endpoint: endpoint };
        Ok(Box::new(end))
    }

    /// The source of a message.
    fn source(&self, message: usize, sources: usize) -> usize {
        if self.kind == Kind::One { 0 } else { message % sources }
    }

    /// Attaches the sources. The first message may be there before its tripwire is armed.
    #[cold]
    fn attach_sources(&mut self, count: usize) -> Result<()> {
        for index in 0..count {
            let tripwire = Tripwire::new(&self.region, index * LINE, Access::Write, Mode::Repeating)?;
            self.queue.attach_tripwire(&tripwire, index as u64);
            self.tripwires.push(tripwire);
        }
        Ok(())
    }
}

impl End for EventsEnd {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        let offset = self.source(self.sent, payload.len()) * LINE;
        self.sent += 1;
        if self.kind != Kind::Word {
            self.aperture.write(offset + BODY, &[payload[0]; 8])?;
        }
        // The stamp of the payload, and a count so that every store is of another value.
        let value = (self.sent as u32) << 8 | u32::from(payload[0]);
        Ok(self.aperture.store32(offset, value)?)
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        let index = self.source(self.received, payload.len());
        self.received += 1;
        let word = self.region.word32(index * LINE)?;
        let number = self.received as u32 & 0xff_ffff;
        let fresh = self.tripwires.is_empty();
        if fresh {
            self.attach_sources(payload.len())?;
        }
        let mut spin = self.peer.spin();
        loop {
            let event = self.queue.poll();
            let value = word.load(Ordering::Acquire);
            let told = matches!(event, Some(Event { token, .. }) if token == index as u64);
            if (told || fresh) && value >> 8 == number {
                let mut body = [value as u8; 8];
                if self.kind != Kind::Word {
                    self.region.read(index * LINE + BODY, &mut body)?;
                }
                payload[0] = body[0];
                payload[payload.len() - 1] = body[7];
                return Ok(());
            }
            if event.is_none() {
                spin.turn()?;
            }
        }
    }
}

const MOST: usize = 10_000;
const LINE: usize = 64;
/// Where the body of a request lies, behind the watched word.
const BODY: usize = 8;
const CONNECTIONS: &[usize] = &[1, 10, 100, 1000];
