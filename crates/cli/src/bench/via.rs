//! Candidates: the VIA provider. Send and receive in memory of the library and of the caller, polling and waiting; a
//! server with one completion queue and many connections; what single calls cost.
//!
//! Each side has four receives posted. A sender waits until its send has completed, and keeps sends back until a receive is
//! posted. As with `rdma`, the first and the last byte of a message are written and looked at, and the rest is not copied
//! by the benchmark itself.

use std::hint::black_box;

use anyhow::{Result, ensure};
use sidestep_vi::{
    Buffer, Completion, Cq, Descriptor, FlowControl, MemAttributes, Memory, NetAddress, Nic, Ptag, Segment, Vi,
    ViAttributes,
};

use super::clock;
use super::control::Peer;
use super::exercise::Exercise;
use super::path::{BANDWIDTH_SIZES, Bench, End, Offer, Opening, Operation, Part, Path, RATE_SIZES, Solo, Wait, Work};
use super::place::Placement;
use super::record::Metric;
use super::{queue, shared, tcp};

/// Memory of the library.
pub const LIBRARY: Path = Path {
    name: "via",
    about: "VIA send and receive, reliable delivery, in memory that the library allocated",
    work: Work::Pair { open: |opening| open(opening, false), attach: |offer| attach(offer, false) },
    parts: &[
        part(Bench::Latency, "via", Operation::PingPong, Wait::Spin, SIZES),
        part(Bench::Rate, "via", Operation::Stream, Wait::Spin, RATE_SIZES),
        part(Bench::Bandwidth, "via", Operation::Stream, Wait::Spin, BANDWIDTH_SIZES),
        part(Bench::Latency, "via-wait", Operation::PingPong, Wait::Block, &[4]),
    ],
};

/// Memory of the caller.
pub const MALLOC: Path = Path {
    name: "via-malloc",
    about: "the same in memory of the caller, which is copied",
    work: Work::Pair { open: |opening| open(opening, true), attach: |offer| attach(offer, true) },
    parts: &[part(Bench::Bandwidth, "via-malloc", Operation::Stream, Wait::Spin, BANDWIDTH_SIZES)],
};

/// A server with one completion queue.
pub const SERVER: Path = Path {
    name: "via-cq",
    about: "a request and its answer over connections in turn, one completion queue; the size is the number of them",
    work: Work::Pair { open: open_many, attach: attach_many },
    parts: &[part(Bench::Events, "via-cq", Operation::PingPong, Wait::Spin, &[1, 10, 100, 1000])],
};

/// The fabric's own queue at the sizes of the seeds.
pub const QUEUE: Path = Path {
    name: "queue",
    about: "a message queue of the fabric, as a stream of bytes",
    work: queue::STREAM.work,
    parts: &[part(Bench::Latency, "queue", Operation::PingPong, Wait::Spin, SIZES.split_at(1).1)],
};

/// Kernel TCP at the same sizes.
pub const TCP: Path = Path {
    name: "tcp",
    about: "kernel TCP over loopback",
    work: tcp::PATH.work,
    parts: &[part(Bench::Latency, "tcp", Operation::PingPong, Wait::Spin, SIZES.split_at(1).1)],
};

/// Calls that find nothing, and one reading of the clock.
pub const EMPTY: Path = Path {
    name: "via-calls",
    about: "RecvDone and SendDone that find nothing (0, 1), a reading of the clock (2), PostRecv (3)",
    work: Work::Solo { make: || Ok(Box::new(Calls::new()?)) },
    parts: &[part(Bench::Cost, "via-calls", Operation::Stream, Wait::Spin, &[0, 1, 2, 3])],
};

/// The sizes of seed 003's table, and some more.
const SIZES: &[usize] = &[0, 4, 40, 400, 4096, 65536];

const fn part(bench: Bench, row: &'static str, operation: Operation, wait: Wait, sizes: &'static [usize]) -> Part {
    Part { bench, row, operation, wait, placements: &[Placement::Cross], sizes, shift: 0 }
}

fn open(opening: &mut Opening<'_>, malloc: bool) -> Result<Box<dyn Exercise>> {
    let name = shared::fabric_name();
    let (nic, vi, memory) = make(malloc)?;
    opening.offer(&name, &[])?;
    nic.connect_wait(&point(&name), clock::in_seconds(10))?.accept(&vi)?;
    let (wait, peer) = (opening.wait == Wait::Block, opening.peer());
    Ok(Box::new(ViaEnd { vi, memory, taken: None, wait, peer, _nic: nic }))
}

fn attach(offer: Offer, malloc: bool) -> Result<Box<dyn Exercise>> {
    let (nic, vi, memory) = make(malloc)?;
    vi.connect(&NetAddress::default(), &point(&offer.note), clock::in_seconds(10))?;
    Ok(Box::new(ViaEnd { vi, memory, taken: None, wait: offer.wait == Wait::Block, peer: offer.peer, _nic: nic }))
}

fn point(name: &str) -> NetAddress {
    NetAddress::new(&[127, 0, 0, 1], name.as_bytes())
}

/// A VI with its receives posted.
fn make(malloc: bool) -> Result<(Nic, Vi, Place)> {
    let nic = Nic::open("nic0")?;
    let ptag = nic.create_ptag()?;
    let vi = nic.create_vi(&ViAttributes::new(ptag), None, None)?;
    vi.set_flow_control(FlowControl::Asynchronous);
    let memory = Place::new(&nic, ptag, malloc)?;
    for slot in 0..RECEIVES {
        vi.post_receive(&Descriptor::new(slot, &[memory.segment(slot as usize, BUFFER)]))?;
    }
    Ok((nic, vi, memory))
}

/// Five buffers: four to receive, one to send.
enum Place {
    Library(Buffer),
    Caller(Memory, Segment),
}

impl Place {
    fn new(nic: &Nic, ptag: Ptag, malloc: bool) -> Result<Place> {
        let (len, attributes) = (BUFFER * (RECEIVES as usize + 1), MemAttributes::new(ptag));
        if !malloc {
            return Ok(Place::Library(nic.allocate(len, &attributes)?));
        }
        let memory = Memory::heap(len)?;
        let handle = nic.register(memory.clone(), &attributes)?;
        let address = memory.base().as_ptr() as u64;
        Ok(Place::Caller(memory, Segment { address, handle, len: len as u32 }))
    }

    fn segment(&self, slot: usize, len: usize) -> Segment {
        match self {
            Place::Library(buffer) => buffer.segment(slot * BUFFER, len),
            Place::Caller(_, all) => Segment { address: all.address + (slot * BUFFER) as u64, len: len as u32, ..*all },
        }
    }

    fn write(&self, slot: usize, at: usize, byte: u8) -> Result<()> {
        match self {
            Place::Library(buffer) => buffer.write(slot * BUFFER + at, &[byte])?,
            Place::Caller(memory, _) => memory.span(slot * BUFFER + at, 1)?.copy_in(0, &[byte])?,
        }
        Ok(())
    }

    fn read(&self, slot: usize, at: usize, byte: &mut [u8]) -> Result<()> {
        match self {
            Place::Library(buffer) => buffer.read(slot * BUFFER + at, byte)?,
            Place::Caller(memory, _) => memory.span(slot * BUFFER + at, byte.len())?.copy_out(0, byte)?,
        }
        Ok(())
    }
}

struct ViaEnd {
    vi: Vi,
    memory: Place,
    /// A receive to be posted again, once the answer is on its way: three others are posted meanwhile.
    taken: Option<u64>,
    wait: bool,
    peer: Peer,
    _nic: Nic,
}

impl End for ViaEnd {
    #[inline]
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        if let (Some(first), Some(last)) = (payload.first(), payload.last()) {
            self.memory.write(SOURCE, 0, *first)?;
            self.memory.write(SOURCE, payload.len() - 1, *last)?;
        }
        self.vi.post_send(&Descriptor::new(0, &[self.memory.segment(SOURCE, payload.len())]))?;
        self.post_again()?;
        let mut spin = self.peer.spin();
        loop {
            match self.vi.poll_send() {
                Some(sent) => return check(&sent),
                None => spin.turn()?,
            }
        }
    }

    #[inline]
    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        self.post_again()?;
        let received = if self.wait {
            self.vi.wait_receive(None)?
        } else {
            let mut spin = self.peer.spin();
            loop {
                match self.vi.poll_receive() {
                    Some(received) => break received,
                    None => spin.turn()?,
                }
            }
        };
        check(&received)?;
        let slot = received.token as usize;
        if let Some(last) = payload.len().checked_sub(1) {
            self.memory.read(slot, 0, &mut payload[..1])?;
            self.memory.read(slot, last, &mut payload[last..])?;
        }
        self.taken = Some(received.token);
        Ok(())
    }
}

impl ViaEnd {
    #[inline]
    fn post_again(&mut self) -> Result<()> {
        if let Some(slot) = self.taken.take() {
            let segment = self.memory.segment(slot as usize, BUFFER);
            self.vi.post_receive(&Descriptor::new(slot, &[segment]))?;
        }
        Ok(())
    }
}

fn check(completion: &Completion) -> Result<()> {
    ensure!(!completion.status.is_error(), "a descriptor completed with status {:x}", completion.status.0);
    Ok(())
}

fn open_many(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let name = shared::fabric_name();
    opening.offer(&name, &[])?;
    Many::boxed(name, opening.peer(), true)
}

fn attach_many(offer: Offer) -> Result<Box<dyn Exercise>> {
    Many::boxed(offer.note, offer.peer, false)
}

/// As many connections as the size of the messages says, used in turn; made when they are first needed.
struct Many {
    nic: Nic,
    ptag: Ptag,
    cq: Cq,
    buffer: Buffer,
    vis: Vec<Vi>,
    point: NetAddress,
    client: bool,
    next: usize,
    peer: Peer,
}

impl Many {
    fn boxed(name: String, peer: Peer, client: bool) -> Result<Box<dyn Exercise>> {
        let nic = Nic::open("nic0")?;
        let ptag = nic.create_ptag()?;
        let buffer = nic.allocate(4096, &MemAttributes::new(ptag))?;
        let cq = nic.create_cq(4096)?;
        Ok(Box::new(Many { ptag, cq, buffer, vis: Vec::new(), point: point(&name), client, next: 0, peer, nic }))
    }

    fn connect(&mut self, count: usize) -> Result<()> {
        while self.vis.len() < count {
            let vi = self.nic.create_vi(&ViAttributes::new(self.ptag), None, Some(&self.cq))?;
            vi.set_flow_control(FlowControl::Asynchronous);
            vi.post_receive(&Descriptor::new(0, &[self.buffer.segment(0, 64)]))?;
            match self.client {
                true => {
                    vi.connect(&NetAddress::default(), &self.point, clock::in_seconds(20))?;
                }
                false => self.nic.connect_wait(&self.point, clock::in_seconds(20))?.accept(&vi)?,
            }
            vi.set_user_word(self.vis.len() as u64);
            self.vis.push(vi);
        }
        Ok(())
    }
}

impl End for Many {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        self.connect(payload.len())?;
        let vi = &self.vis[self.next];
        if self.client {
            self.next = (self.next + 1) % payload.len();
        }
        let ends = [payload[0], payload[payload.len() - 1]];
        self.buffer.write(64, &ends)?;
        vi.post_send(&Descriptor::new(0, &[self.buffer.segment(64, 8)]))?;
        let mut spin = self.peer.spin();
        while vi.poll_send().is_none() {
            spin.turn()?;
        }
        Ok(())
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        self.connect(payload.len())?;
        let mut spin = self.peer.spin();
        let (vi, _) = loop {
            match self.cq.poll() {
                Some(found) => break found,
                None => spin.turn()?,
            }
        };
        if let Some(received) = vi.poll_receive() {
            check(&received)?;
        }
        if !self.client {
            self.next = vi.user_word() as usize;
        }
        let (mut ends, last) = ([0; 2], payload.len() - 1);
        self.buffer.read(0, &mut ends)?;
        (payload[0], payload[last]) = (ends[0], ends[1]);
        Ok(vi.post_receive(&Descriptor::new(0, &[self.buffer.segment(0, 64)]))?)
    }
}

/// Two VIs of one process, and calls on one of them.
struct Calls {
    vi: Vi,
    idle: Vi,
    buffer: Buffer,
    _nics: [Nic; 2],
}

impl Calls {
    fn new() -> Result<Calls> {
        let nics = [Nic::open("nic0")?, Nic::open("nic1")?];
        let tags = [nics[0].create_ptag()?, nics[1].create_ptag()?];
        let vis = [
            nics[0].create_vi(&ViAttributes::new(tags[0]), None, None)?,
            nics[1].create_vi(&ViAttributes::new(tags[1]), None, None)?,
        ];
        let at = point(&shared::fabric_name());
        std::thread::scope(|scope| -> Result<()> {
            let accept = scope.spawn(|| nics[0].connect_wait(&at, clock::in_seconds(10))?.accept(&vis[0]));
            vis[1].connect(&NetAddress::default(), &at, clock::in_seconds(10))?;
            Ok(accept.join().expect("no panic while accepting")?)
        })?;
        let buffer = nics[0].allocate(4096, &MemAttributes::new(tags[0]))?;
        let [vi, idle] = vis;
        Ok(Calls { vi, idle, buffer, _nics: nics })
    }
}

impl Solo for Calls {
    fn measure(&mut self, size: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        let begin = clock::now();
        match size {
            0 => (0..count).for_each(|_| assert!(black_box(self.idle.poll_receive()).is_none())),
            1 => (0..count).for_each(|_| assert!(black_box(self.idle.poll_send()).is_none())),
            2 => (0..count).for_each(|_| assert!(black_box(clock::now()) > 0)),
            _ => return self.posts(count),
        }
        Ok(vec![(Metric::Cost, (clock::now() - begin) as f64 / count as f64)])
    }
}

impl Calls {
    /// Posts receives, with a connection each time they are flushed.
    fn posts(&mut self, count: usize) -> Result<Vec<(Metric, f64)>> {
        let mut time = 0;
        let descriptor = Descriptor::new(0, &[self.buffer.segment(0, 64)]);
        for _ in 0..count.div_ceil(512) {
            let unconnected = self._nics[0].create_vi(&self.vi.attributes(), None, None)?;
            let begin = clock::now();
            for _ in 0..512 {
                unconnected.post_receive(&descriptor)?;
            }
            time += clock::now() - begin;
        }
        Ok(vec![(Metric::Cost, time as f64 / (count.div_ceil(512) * 512) as f64)])
    }
}

const BUFFER: usize = 4 << 20;
const RECEIVES: u64 = 4;
const SOURCE: usize = RECEIVES as usize;
