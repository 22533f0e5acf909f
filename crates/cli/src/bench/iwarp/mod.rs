//! Candidates: iWARP over TCP. One-sided writes, one-sided reads and messages, by parameters of the stream.

mod read;
mod send;
mod write;

pub use read::ReadEnd;

use anyhow::{Context, Result};
use sidestep_fabric::{Aperture, Cookie, Endpoint, LinkOptions, Node, Region, Rights};

use super::clock;
use super::path::{Bench, Offer, Opening, Operation, Part, Path, Wait, Work};
use super::place::Placement;
use super::tcp;

/// RDMA writes with markers at one interval.
macro_rules! marked {
    ($name:literal, $interval:literal, $crc:literal) => {{
        const OPTIONS: Parameters = Parameters { crc: $crc, markers: $interval, seen: false };
        Path {
            name: $name,
            about: "RDMA write over iWARP, with markers",
            work: Work::Pair {
                open: |opening| write::open(opening, OPTIONS),
                attach: |offer| write::attach(offer, OPTIONS),
            },
            parts: &[bandwidth($name, SWEEP_SIZES, Wait::Block)],
        }
    }};
}

/// Plain TCP at the sizes of the others.
pub const TCP: Path = Path {
    name: "tcp",
    about: "baseline: kernel TCP over the same path, blocking; tcp-spin: non-blocking in a loop",
    work: tcp::WHOLE,
    parts: &[
        latency("tcp", LATENCY_SIZES, Wait::Block),
        latency("tcp-spin", LATENCY_SIZES, Wait::Spin),
        bandwidth("tcp", BANDWIDTH_SIZES, Wait::Block),
        bandwidth("tcp-spin", BANDWIDTH_SIZES, Wait::Spin),
    ],
};

/// Plain TCP that is not paced: the system may have a congestion control that is.
pub const RENO: Path = Path {
    name: "tcp-reno",
    about: "baseline: the same with Reno, which iWARP uses within a host",
    work: tcp::RENO,
    parts: &[bandwidth("tcp-reno", LARGE_SIZES, Wait::Block), bandwidth("reno-spin", LARGE_SIZES, Wait::Spin)],
};

/// RDMA writes with CRC, as the standard prescribes.
pub const WRITE: Path = Path {
    name: "write",
    about: "RDMA write over iWARP, with CRC",
    work: Work::Pair { open: |opening| write::open(opening, CRC), attach: |offer| write::attach(offer, CRC) },
    parts: &[
        latency("write", LATENCY_SIZES, Wait::Spin),
        latency("write-block", &[64], Wait::Block),
        bandwidth("write", BANDWIDTH_SIZES, Wait::Block),
        bandwidth("write-spin", BANDWIDTH_SIZES, Wait::Spin),
    ],
};

/// RDMA writes with CRC, each of which its receiver waits for.
pub const SEEN: Path = Path {
    name: "write-seen",
    about: "RDMA write over iWARP, with CRC; the receiver waits for each message and says so",
    work: Work::Pair { open: |opening| write::open(opening, SEEN_CRC), attach: |offer| write::attach(offer, SEEN_CRC) },
    parts: &[bandwidth("write-seen", &[64 << 10, 1 << 20], Wait::Block)],
};

/// RDMA writes without CRC.
pub const PLAIN: Path = Path {
    name: "write-plain",
    about: "RDMA write over iWARP, without CRC and markers",
    work: Work::Pair { open: |opening| write::open(opening, NO_CRC), attach: |offer| write::attach(offer, NO_CRC) },
    parts: &[
        latency("write-plain", &[64], Wait::Spin),
        bandwidth("write-plain", LARGE_SIZES, Wait::Block),
        bandwidth("plain-spin", LARGE_SIZES, Wait::Spin),
    ],
};

/// RDMA reads.
pub const READ: Path = Path {
    name: "read",
    about: "RDMA read over iWARP, with CRC; one way is half of the read",
    work: Work::Pair { open: read::open, attach: read::attach },
    parts: &[latency("read", LATENCY_SIZES, Wait::Spin), bandwidth("read", &[64 << 10, 1 << 20], Wait::Spin)],
};

/// Messages.
pub const SEND: Path = Path {
    name: "send",
    about: "send over iWARP, with CRC",
    work: Work::Pair { open: send::open, attach: send::attach },
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
    /// The receiver looks at each message of a stream.
    seen: bool,
}

const CRC: Parameters = Parameters { crc: true, markers: 0, seen: false };
const SEEN_CRC: Parameters = Parameters { seen: true, ..CRC };
const NO_CRC: Parameters = Parameters { crc: false, markers: 0, seen: false };

impl Parameters {
    fn node(self) -> Result<Node> {
        let markers = (self.markers != 0).then_some(self.markers);
        Ok(Node::open(&["iwarp"], &LinkOptions { crc: self.crc, markers, ..LinkOptions::default() })?)
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

const LATENCY_SIZES: &[usize] = &[64, 1024, 4096, 65536];
const BANDWIDTH_SIZES: &[usize] = &[4 << 10, 64 << 10, 256 << 10, 1 << 20];
const LARGE_SIZES: &[usize] = &[64 << 10, 256 << 10, 1 << 20];
const SWEEP_SIZES: &[usize] = &[64 << 10];
const SLOTS_LEN: usize = 8 << 20;
/// Where the other side says how many it has taken.
const TAKEN: usize = SLOTS_LEN + 64;
const REGION: usize = SLOTS_LEN + 128;
