//! Candidates: the VIA provider. Send and receive in memory of the library and of the caller, small messages by PIO and all
//! messages by RDMA, polling and waiting.
//!
//! Each side has four receives posted; the lines that end in `-two` have two, as many buffers as `rdma` uses, so that both
//! touch as much memory. A sender waits until its send has completed, and keeps sends back until a receive is posted. As
//! with `rdma`, the first and the last byte of a message are written and looked at, and the rest is not copied by the
//! benchmark itself.

use anyhow::{Result, ensure};
use sidestep_vi::{
    Buffer, Completion, Descriptor, FlowControl, MemAttributes, Memory, NetAddress, Nic, Ptag, Segment, Vi,
    ViAttributes, Way,
};

use super::clock;
use super::control::Peer;
use super::exercise::Exercise;
use super::path::{BANDWIDTH_SIZES, Bench, End, Offer, Opening, Operation, Part, Path, RATE_SIZES, Wait, Work};
use super::place::Placement;
use super::{queue, shared, tcp};

/// Memory of the library, as programs use it.
pub const LIBRARY: Path = Path {
    name: "via",
    about: "VIA send and receive, reliable delivery, in memory that the library allocated",
    work: Work::Pair { open: |opening| open(opening, Kind::Library), attach: |offer| attach(offer, Kind::Library) },
    parts: &[
        part(Bench::Latency, "via", Operation::PingPong, Wait::Spin, SIZES),
        part(Bench::Latency, "via-wait", Operation::PingPong, Wait::Block, WAIT_SIZES),
        part(Bench::Rate, "via", Operation::Stream, Wait::Spin, RATE_SIZES),
        part(Bench::Bandwidth, "via", Operation::Stream, Wait::Spin, BANDWIDTH_SIZES),
    ],
};

/// With as many buffers as `rdma`.
pub const TWO: Path = Path {
    name: "via-two",
    about: "the same with two receive buffers, as many as rdma uses in turn",
    work: Work::Pair { open: |opening| open(opening, Kind::Two), attach: |offer| attach(offer, Kind::Two) },
    parts: &[part(Bench::Bandwidth, "via-two", Operation::Stream, Wait::Spin, LARGE_SIZES)],
};

/// On NICs that belong to one thread.
pub const SINGLE: Path = Path {
    name: "via-single",
    about: "the same without thread safety: each NIC belongs to the thread that opened it",
    work: Work::Pair { open: |opening| open(opening, Kind::Single), attach: |offer| attach(offer, Kind::Single) },
    parts: &[part(Bench::Latency, "via-single", Operation::PingPong, Wait::Spin, &[4])],
};

/// All messages in the ring.
pub const PIO: Path = Path {
    name: "via-pio",
    about: "the same with all messages in the ring",
    work: Work::Pair { open: |opening| open(opening, Kind::Pio), attach: |offer| attach(offer, Kind::Pio) },
    parts: &[
        part(Bench::Latency, "via-pio", Operation::PingPong, Wait::Spin, WAY_SIZES),
        part(Bench::Latency, "via-pio-wait", Operation::PingPong, Wait::Block, WAIT_SIZES),
        part(Bench::Bandwidth, "via-pio", Operation::Stream, Wait::Spin, SWITCH_SIZES),
    ],
};

/// All messages straight into the receive buffer.
pub const RDMA: Path = Path {
    name: "via-rdma",
    about: "the same with all messages placed in the receive buffer",
    work: Work::Pair { open: |opening| open(opening, Kind::Rdma), attach: |offer| attach(offer, Kind::Rdma) },
    parts: &[
        part(Bench::Latency, "via-rdma", Operation::PingPong, Wait::Spin, WAY_SIZES),
        part(Bench::Latency, "via-rdma-wait", Operation::PingPong, Wait::Block, WAIT_SIZES),
        part(Bench::Bandwidth, "via-rdma", Operation::Stream, Wait::Spin, SWITCH_SIZES),
    ],
};

/// Memory of the caller.
pub const MALLOC: Path = Path {
    name: "via-malloc",
    about: "the same in memory of the caller, which is copied in and out",
    work: Work::Pair { open: |opening| open(opening, Kind::Malloc), attach: |offer| attach(offer, Kind::Malloc) },
    parts: &[
        part(Bench::Latency, "via-malloc", Operation::PingPong, Wait::Spin, SIZES),
        part(Bench::Bandwidth, "via-malloc", Operation::Stream, Wait::Spin, BANDWIDTH_SIZES),
    ],
};

/// Memory of the caller, with fewer buffers.
pub const MALLOC_TWO: Path = Path {
    name: "via-malloc-two",
    about: "the same with two receive buffers",
    work: Work::Pair { open: |opening| open(opening, Kind::MallocTwo), attach: |offer| attach(offer, Kind::MallocTwo) },
    parts: &[part(Bench::Bandwidth, "via-malloc-two", Operation::Stream, Wait::Spin, LARGE_SIZES)],
};

/// The fabric's own queue at the sizes of the seeds.
pub const QUEUE: Path = Path {
    name: "queue",
    about: "a message queue of the fabric, as a stream of bytes",
    work: queue::STREAM.work,
    parts: &[
        part(Bench::Latency, "queue", Operation::PingPong, Wait::Spin, SIZES.split_at(1).1),
        part(Bench::Rate, "queue", Operation::Stream, Wait::Spin, RATE_SIZES),
        part(Bench::Bandwidth, "queue", Operation::Stream, Wait::Spin, BANDWIDTH_SIZES),
    ],
};

/// Kernel TCP at the same sizes: blocking, where the kernel puts it or on one core, whichever is better; and spinning.
pub const TCP: Path = Path {
    name: "tcp",
    about: "kernel TCP over loopback, blocking; tcp-spin: non-blocking in a loop",
    work: tcp::PATH.work,
    parts: &[
        Part { placements: FREE_OR_SAME, ..part(Bench::Latency, "tcp", Operation::PingPong, Wait::Block, STREAMED) },
        part(Bench::Latency, "tcp-spin", Operation::PingPong, Wait::Spin, STREAMED),
        Part { placements: FREE_OR_SAME, ..part(Bench::Rate, "tcp", Operation::Stream, Wait::Block, RATE_SIZES) },
        Part {
            placements: FREE_OR_SAME,
            ..part(Bench::Bandwidth, "tcp", Operation::Stream, Wait::Block, BANDWIDTH_SIZES)
        },
    ],
};

/// The sizes of seed 003's table, and some more.
const SIZES: &[usize] = &[0, 4, 40, 400, 4096, 65536];
/// A stream has no empty messages.
const STREAMED: &[usize] = SIZES.split_at(1).1;
const WAY_SIZES: &[usize] = &[0, 4, 40, 400, 1024, 2048, 4096, 8192, 16384, 65536];
const WAIT_SIZES: &[usize] = &[0, 4, 40, 400, 4096];
/// Where the switch from one way to the other may lie.
const SWITCH_SIZES: &[usize] = &[256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10];
const LARGE_SIZES: &[usize] = &[64 << 10, 256 << 10, 1 << 20];
const FREE_OR_SAME: &[Placement] = &[Placement::Free, Placement::Same];

pub(super) const fn part(
    bench: Bench,
    row: &'static str,
    operation: Operation,
    wait: Wait,
    sizes: &'static [usize],
) -> Part {
    Part { bench, row, operation, wait, placements: &[Placement::Cross], sizes, shift: 0 }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Library,
    Two,
    Single,
    Pio,
    Rdma,
    Malloc,
    MallocTwo,
}

fn open(opening: &mut Opening<'_>, kind: Kind) -> Result<Box<dyn Exercise>> {
    let name = shared::fabric_name();
    let (nic, vi, memory) = make(kind)?;
    opening.offer(&name, &[])?;
    nic.connect_wait(&point(&name), clock::in_seconds(10))?.accept(&vi)?;
    let (wait, peer) = (opening.wait == Wait::Block, opening.peer());
    ViaEnd { vi, memory, taken: None, wait, peer, _nic: nic }.settled(true)
}

fn attach(offer: Offer, kind: Kind) -> Result<Box<dyn Exercise>> {
    let (nic, vi, memory) = make(kind)?;
    vi.connect(&NetAddress::default(), &point(&offer.note), clock::in_seconds(10))?;
    ViaEnd { vi, memory, taken: None, wait: offer.wait == Wait::Block, peer: offer.peer, _nic: nic }.settled(false)
}

pub(super) fn point(name: &str) -> NetAddress {
    NetAddress::new(&[127, 0, 0, 1], name.as_bytes())
}

/// A VI with its receives posted.
fn make(kind: Kind) -> Result<(Nic, Vi, Place)> {
    let nic = Nic::open(if kind == Kind::Single { "nic0,single" } else { "nic0" })?;
    let ptag = nic.create_ptag()?;
    let vi = nic.create_vi(&ViAttributes::new(ptag), None, None)?;
    vi.set_flow_control(FlowControl::Asynchronous);
    vi.set_way(match kind {
        Kind::Pio => Way::Pio,
        Kind::Rdma => Way::Rdma,
        _ => Way::BySize,
    });
    let receives = if matches!(kind, Kind::Two | Kind::MallocTwo) { 2 } else { 4 };
    let memory = Place::new(&nic, ptag, receives, matches!(kind, Kind::Malloc | Kind::MallocTwo))?;
    for slot in SOURCE as u64 + 1..=receives {
        vi.post_receive(&Descriptor::new(slot, &[memory.segment(slot as usize, BUFFER)]))?;
    }
    Ok((nic, vi, memory))
}

/// One buffer to send, and the others to receive.
enum Place {
    Library(Buffer),
    Caller(Memory, Segment),
}

impl Place {
    fn new(nic: &Nic, ptag: Ptag, receives: u64, malloc: bool) -> Result<Place> {
        let (len, attributes) = (BUFFER * (receives as usize + 1), MemAttributes::new(ptag));
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
    /// A receive to be posted again, once the answer is on its way: others are posted meanwhile.
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
    /// Before anything is measured, every buffer is filled in each direction, some times: the windows are open then and the
    /// pages there. How many messages a measurement takes is found out by the first, and would be few if that were slow.
    fn settled(mut self, first: bool) -> Result<Box<dyn Exercise>> {
        let mut payload = vec![0; BUFFER];
        for turn in 0..SETTLING {
            for _ in 0..4 {
                if (turn % 2 == 0) == first { self.send(&payload)? } else { self.receive(&mut payload)? }
            }
        }
        Ok(Box::new(self))
    }

    #[inline]
    fn post_again(&mut self) -> Result<()> {
        if let Some(slot) = self.taken.take() {
            let segment = self.memory.segment(slot as usize, BUFFER);
            self.vi.post_receive(&Descriptor::new(slot, &[segment]))?;
        }
        Ok(())
    }
}

pub(super) fn check(completion: &Completion) -> Result<()> {
    ensure!(!completion.status.is_error(), "a descriptor completed with status {:x}", completion.status.0);
    Ok(())
}

const BUFFER: usize = 4 << 20;
const SOURCE: usize = 0;
/// Turns of four messages before the first measurement.
const SETTLING: usize = 6;
