//! The suite `sovia`: the mechanisms of links one after the other, beside the VI that they stand on, the ring and TCP; and
//! programs over each of them.
//!
//! Two ladders: that of SOVIA (seed 001, figure 6), and that of the substrate over EMP (seed 004, figures 2.7 to 2.9). Each
//! line has everything that the one before has, and one mechanism more.

pub mod apps;
pub mod buffer;
pub mod ladder;
pub mod plot;

use std::cell::RefCell;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use sidestep_fabric::queue::Kind;
use sidestep_shm::wait::Waiter;
use sidestep_stream::carrier::{
    Host,
    via::{Link, Lost, Options},
};
use sidestep_vi::Nic;

use super::clock;
use super::control::Peer;
use super::exercise::Exercise;
use super::path::{Bench, End, Offer, Opening, Operation, Part, Path, Wait, Work};
use super::place::Placement;
use super::via::{part, point};
use super::{queue, shared, tcp, via};

/// A path of this suite: its name, what it adds, the words that switch its mechanisms, and where it takes part.
macro_rules! variant {
    ($name:literal, $about:literal, $words:expr, $parts:expr) => {
        Path {
            name: $name,
            about: $about,
            work: Work::Pair { open: |opening| open(opening, $words), attach: |offer| attach(offer, $words) },
            parts: $parts,
        }
    };
}

const HANDLER_WORDS: &str = "handler,window=1,acks=1,no-piggyback,no-apart,combine=0,rendezvous=0";
const SINGLE_WORDS: &str = "window=1,acks=1,no-piggyback,no-apart,combine=0,rendezvous=0";
const FLOWCTRL_WORDS: &str = "acks=1,no-piggyback,no-apart,combine=0,rendezvous=0";
const DACKS_WORDS: &str = "acks=16,piggyback,no-apart,combine=0,rendezvous=0";
const COMBINE_WORDS: &str = "acks=16,piggyback,no-apart,rendezvous=0";
const DELAYED_WORDS: &str = "acks=16,no-piggyback,no-apart,combine=0,rendezvous=0";
const APART_WORDS: &str = "acks=16,no-piggyback,apart,combine=0,rendezvous=0";
const DATAGRAM_WORDS: &str = "datagram,acks=16,no-piggyback,apart,combine=0";
/// Static buffers of 8 KiB, one a message.
const CREDIT_WORDS: &str = "chunk=8192,acks=16,no-piggyback,no-apart,combine=0";

/// A thread of its own takes what arrives, and hands it over.
pub const HANDLER: Path = variant!(
    "handler",
    "HANDLER: a thread takes what arrives; one packet under way, acknowledged by another",
    HANDLER_WORDS,
    &[latency("handler", Wait::Block), bandwidth("handler", Wait::Block)]
);
/// The program takes it itself.
pub const SINGLE: Path = variant!(
    "single",
    "SINGLE: the same without the thread",
    SINGLE_WORDS,
    &[latency("single", Wait::Spin), bandwidth("single", Wait::Spin), rate("single")]
);
/// Several packets under way.
pub const FLOWCTRL: Path = variant!(
    "flowctrl",
    "+FLOWCTRL: 32 packets under way",
    FLOWCTRL_WORDS,
    &[latency("flowctrl", Wait::Spin), bandwidth("flowctrl", Wait::Spin), rate("flowctrl")]
);
/// Fewer acknowledgements.
pub const DACKS: Path = variant!(
    "dacks",
    "+DACKS: acknowledged after 16, or along with data",
    DACKS_WORDS,
    &[latency("dacks", Wait::Spin), bandwidth("dacks", Wait::Spin), rate("dacks")]
);
/// Small writes together.
pub const COMBINE: Path = variant!(
    "combine",
    "+COMBINE: small writes in one packet while the reader is busy",
    COMBINE_WORDS,
    &[latency("combine", Wait::Spin), bandwidth("combine", Wait::Spin), rate("combine")]
);
/// As programs get it.
pub const BEST: Path = variant!(
    "sovia",
    "everything that `run --carrier via` has",
    "",
    &[
        latency("sovia", Wait::Spin),
        part(Bench::Latency, "sovia-wait", Operation::PingPong, Wait::Block, &[4]),
        bandwidth("sovia", Wait::Spin),
        rate("sovia"),
    ]
);
/// The substrate: a stream, credits, an acknowledgement for each packet.
pub const DS: Path = variant!(
    "ds",
    "DS: a stream with credits, each packet acknowledged",
    FLOWCTRL_WORDS,
    &[part(Bench::Latency, "ds", Operation::PingPong, Wait::Spin, SUBSTRATE_SIZES)]
);
/// With delayed acknowledgements.
pub const DS_DA: Path = variant!(
    "ds_da",
    "DS_DA: acknowledged when half of the credits are used",
    DELAYED_WORDS,
    &[part(Bench::Latency, "ds_da", Operation::PingPong, Wait::Spin, SUBSTRATE_SIZES)]
);
/// Acknowledgements out of the way of data.
pub const DS_DA_UQ: Path = variant!(
    "ds_da_uq",
    "DS_DA_UQ: acknowledgements written to memory, which takes no receive",
    APART_WORDS,
    &[part(Bench::Latency, "ds_da_uq", Operation::PingPong, Wait::Spin, SUBSTRATE_SIZES)]
);
/// Messages.
pub const DG: Path = variant!(
    "dg",
    "DG: the same with messages instead of a stream",
    DATAGRAM_WORDS,
    &[part(Bench::Latency, "dg", Operation::PingPong, Wait::Spin, SUBSTRATE_SIZES)]
);
/// One buffer a message, as SDP with credits has it.
pub const CREDITS: Path = variant!(
    "credits",
    "credit-based flow control: a buffer of 8 KiB for each message",
    CREDIT_WORDS,
    &[part(Bench::Rate, "credits", Operation::Stream, Wait::Spin, SMALL_SIZES)]
);

/// With this many credits, half of them acknowledged at a time.
pub const CREDITS_1: Path = variant!(
    "credits-1",
    "DS_DA with 1 credit",
    "window=1,acks=1,no-piggyback,no-apart,combine=0",
    &[part(Bench::Latency, "1 credit", Operation::PingPong, Wait::Spin, &[4])]
);
/// With this many credits, half of them acknowledged at a time.
pub const CREDITS_2: Path = variant!(
    "credits-2",
    "DS_DA with 2 credits",
    "window=2,acks=1,no-piggyback,no-apart,combine=0",
    &[part(Bench::Latency, "2 credits", Operation::PingPong, Wait::Spin, &[4])]
);
/// With this many credits, half of them acknowledged at a time.
pub const CREDITS_4: Path = variant!(
    "credits-4",
    "DS_DA with 4 credits",
    "window=4,acks=2,no-piggyback,no-apart,combine=0",
    &[part(Bench::Latency, "4 credits", Operation::PingPong, Wait::Spin, &[4])]
);
/// With this many credits, half of them acknowledged at a time.
pub const CREDITS_8: Path = variant!(
    "credits-8",
    "DS_DA with 8 credits",
    "window=8,acks=4,no-piggyback,no-apart,combine=0",
    &[part(Bench::Latency, "8 credits", Operation::PingPong, Wait::Spin, &[4])]
);
/// With this many credits, half of them acknowledged at a time.
pub const CREDITS_16: Path = variant!(
    "credits-16",
    "DS_DA with 16 credits",
    "window=16,acks=8,no-piggyback,no-apart,combine=0",
    &[part(Bench::Latency, "16 credits", Operation::PingPong, Wait::Spin, &[4])]
);
/// With this many credits, half of them acknowledged at a time.
pub const CREDITS_32: Path = variant!(
    "credits-32",
    "DS_DA with 32 credits",
    "window=32,acks=16,no-piggyback,no-apart,combine=0",
    &[part(Bench::Latency, "32 credits", Operation::PingPong, Wait::Spin, &[4])]
);

/// The VI itself.
pub const RAW: Path = Path {
    name: "vi",
    about: "the VI underneath, from and to registered memory, which nobody reads",
    work: via::LIBRARY.work,
    parts: &[
        latency("vi", Wait::Spin),
        part(Bench::Latency, "vi-wait", Operation::PingPong, Wait::Block, &[4]),
        bandwidth("vi", Wait::Spin),
        rate("vi"),
    ],
};
/// The same in memory of the program.
pub const RAW_MALLOC: Path = Path {
    name: "vi-malloc",
    about: "the same from and to memory of the program, into which bytes are copied",
    work: via::MALLOC.work,
    parts: &[bandwidth("vi-malloc", Wait::Spin)],
};
/// Packetised flow control: the ring of the other carrier.
pub const PACKETISED: Path = Path {
    name: "packetised",
    about: "packetised flow control: one buffer of bytes that the sender manages (the ring)",
    work: queue::STREAM.work,
    parts: &[
        part(Bench::Rate, "packetised", Operation::Stream, Wait::Spin, SMALL_SIZES),
        latency("ring", Wait::Spin),
        bandwidth("ring", Wait::Spin),
    ],
};
/// Credits on the transport of the ring.
pub const SLOT_CREDITS: Path = Path {
    name: "slot-credits",
    about: "credit-based flow control over a message queue: 32 slots of 8 KiB, one for each message",
    work: Work::Pair {
        open: |opening| queue::open_with(opening, SLOTS, WINDOW),
        attach: |offer| queue::attach_with(offer, SLOTS, WINDOW),
    },
    parts: &[
        part(Bench::Rate, "slot credits", Operation::Stream, Wait::Spin, SMALL_SIZES),
        part(Bench::Latency, "slot credits", Operation::PingPong, Wait::Spin, &[4]),
    ],
};
/// Packetised flow control on the same transport, with as much memory.
pub const BYTE_RING: Path = Path {
    name: "byte-ring",
    about: "packetised flow control over a message queue: 256 KiB that the sender manages",
    work: Work::Pair {
        open: |opening| queue::open_with(opening, Kind::Stream, WINDOW),
        attach: |offer| queue::attach_with(offer, Kind::Stream, WINDOW),
    },
    parts: &[
        part(Bench::Rate, "byte ring", Operation::Stream, Wait::Spin, SMALL_SIZES),
        part(Bench::Latency, "byte ring", Operation::PingPong, Wait::Spin, &[4]),
    ],
};
/// A slot of 8 KiB for each message, and memory for 32 of them: the buffers and the window of the links with credits.
const SLOTS: Kind = Kind::Slots(8 << 10);
const WINDOW: usize = 32 * (8 << 10);
/// Kernel TCP.
pub const TCP: Path = Path {
    name: "tcp",
    about: "kernel TCP over loopback",
    work: tcp::PATH.work,
    parts: &[
        latency("tcp-spin", Wait::Spin),
        Part { placements: BEST_PLACE, ..part(Bench::Latency, "tcp", Operation::PingPong, Wait::Block, &[4]) },
        Part { placements: BEST_PLACE, ..bandwidth("tcp", Wait::Block) },
        rate("tcp"),
    ],
};

const BEST_PLACE: &[Placement] = &[Placement::Free, Placement::Same];
const LADDER_SIZES: &[usize] = &[4, 64, 256, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10];
const SUBSTRATE_SIZES: &[usize] = &[4, 1 << 10, 4 << 10];
const BULK_SIZES: &[usize] = &[16, 256, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10];
/// Messages for which credits waste most of a buffer.
pub const SMALL_SIZES: &[usize] = &[1, 16, 64, 256, 1 << 10, 4 << 10];

const fn latency(row: &'static str, wait: Wait) -> Part {
    part(Bench::Latency, row, Operation::PingPong, wait, LADDER_SIZES)
}

const fn bandwidth(row: &'static str, wait: Wait) -> Part {
    part(Bench::Bandwidth, row, Operation::Stream, wait, BULK_SIZES)
}

const fn rate(row: &'static str) -> Part {
    part(Bench::Rate, row, Operation::Stream, Wait::Spin, &[16])
}

fn open(opening: &mut Opening<'_>, words: &str) -> Result<Box<dyn Exercise>> {
    let (nic, link) = make(words)?;
    let name = shared::fabric_name();
    opening.offer(&name, &[])?;
    nic.connect_wait(&point(&name), clock::in_seconds(10))?.accept(link.vi())?;
    LinkEnd { link, wait: opening.wait, waiter: RefCell::default(), peer: opening.peer() }.settled(true)
}

fn attach(offer: Offer, words: &str) -> Result<Box<dyn Exercise>> {
    let (_nic, link) = make(words)?;
    link.vi().connect(&point("asks"), &point(&offer.note), clock::in_seconds(10))?;
    LinkEnd { link, wait: offer.wait, waiter: RefCell::default(), peer: offer.peer }.settled(false)
}

fn make(words: &str) -> Result<(Nic, Arc<Link>)> {
    // The line of the best is as the programs of this environment would have it.
    let chosen = std::env::var("SIDESTEP_SOVIA").ok().filter(|_| words.is_empty());
    let options = Options::parse(chosen.as_deref().unwrap_or(words)).map_err(anyhow::Error::msg)?;
    let nic = Nic::open("nic0")?;
    let link = Link::new(&nic, options, &Host::PLAIN)?;
    Ok((nic, link))
}

struct LinkEnd {
    link: Arc<Link>,
    wait: Wait,
    waiter: RefCell<Waiter>,
    peer: Peer,
}

impl LinkEnd {
    /// Waits for the greeting, and fills every buffer once, so that the pages are there and the windows open.
    fn settled(mut self, first: bool) -> Result<Box<dyn Exercise>> {
        let mut spin = self.peer.spin();
        while !self.link.is_ready() {
            self.link.nic().node().progress_kernel();
            spin.turn()?;
        }
        let mut payload = vec![0; 8 << 10];
        for turn in 0..4 {
            for _ in 0..100 {
                if (turn % 2 == 0) == first { self.send(&payload)? } else { self.receive(&mut payload)? }
            }
            self.flush()?;
        }
        Ok(Box::new(self))
    }

    /// Waits a moment for something to change.
    #[inline]
    fn pause(&self, spin: &mut super::control::Spin<'_>, mut ready: impl FnMut() -> bool) -> Result<()> {
        if self.wait == Wait::Spin {
            return spin.turn();
        }
        let mut waiter = self.waiter.borrow_mut();
        if waiter.look(None, || self.link.peer_core(), &mut ready) {
            return Ok(());
        }
        let deadline = clock::in_seconds(1);
        let waited = self.link.nic().node().wait_for(&mut waiter, deadline, &mut || {
            self.link.arm();
            self.link.settle();
            ready().then_some(())
        });
        if waited.is_err() { spin.turn() } else { Ok(()) }
    }
}

impl End for LinkEnd {
    #[inline]
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        let mut spin = self.peer.spin();
        let mut done = 0;
        loop {
            done += self.link.send_or_lend(&payload[done..]).map_err(over)?;
            if done == payload.len() {
                return Ok(());
            }
            self.pause(&mut spin, || self.link.has_space())?;
        }
    }

    #[inline]
    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        let mut spin = self.peer.spin();
        let mut done = 0;
        loop {
            let count = self.link.receive(&mut payload[done..]).map_err(over)?;
            done += count;
            if done == payload.len() {
                return Ok(());
            }
            if count == 0 {
                self.link.found_nothing();
                self.pause(&mut spin, || {
                    let news = self.link.written() != self.link.position();
                    if !news {
                        self.link.found_nothing();
                    }
                    news
                })?;
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        let mut spin = self.peer.spin();
        while !self.link.flush() {
            self.link.absorb();
            spin.turn()?;
        }
        ensure!(!self.link.is_lost(), "the link is over");
        Ok(())
    }
}

fn over(_: Lost) -> anyhow::Error {
    anyhow::anyhow!("the link is over")
}

/// Two links of this process that are connected.
pub(super) fn pair(words: &str) -> Result<[Arc<Link>; 2]> {
    let [(one, first), (two, second)] = [make(words)?, make(words)?];
    let address = point(&shared::fabric_name());
    two.listen(&address)?;
    let mut connecting = first.vi().begin_connect(&point("asks"), &address)?;
    let deadline = clock::in_seconds(10).context("a deadline")?;
    let mut stands = false;
    loop {
        ensure!(sidestep_sys::clock::now() < deadline, "two links of one process do not meet");
        [&one, &two].iter().for_each(|nic| _ = nic.node().progress_kernel());
        if let Some(mut request) = two.poll_request(&address)? {
            request.accept(second.vi())?;
        }
        stands = stands || connecting.poll()?;
        let ready = [&first, &second].map(|link| link.is_ready());
        if stands && ready == [true; 2] {
            return Ok([first, second]);
        }
    }
}
