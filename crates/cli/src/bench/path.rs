//! What a path is: one way to carry messages, or one operation of a single process.
//!
//! A path is a file that offers one `pub const PATH: Path`, named in the list of its suite. It says
//! how the measuring process opens its end (`open`), how the worker process attaches to the other
//! (`attach`), and in which benches it takes part (`parts`). An end only sends and receives; the
//! loops around it are written once, in [`super::exercise`].

use std::os::fd::{BorrowedFd, OwnedFd};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::clock;
use super::control::{Control, Order, Peer};
use super::exercise::Exercise;
use super::payload::Payload;
use super::place::Placement;
use super::record::Metric;

/// One end of a path between two processes.
///
/// - `send` returns when the payload may be changed again; `receive` when it is complete.
/// - Messages arrive in order. Both ends know the size of each message.
/// - A wait that spins takes its turns from [`Peer::spin`], so that the death of the other process
///   ends it; a wait that sleeps sleeps on a descriptor that tells of that death.
/// - Every path can carry messages of one byte, except one that lists no other size.
pub trait End {
    /// Sends one message.
    fn send(&mut self, payload: &[u8]) -> Result<()>;

    /// Waits for one message of just this size.
    fn receive(&mut self, payload: &mut [u8]) -> Result<()>;

    /// Makes sure that what was sent will arrive without further calls.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Sends the messages of a stream, stamped from zero.
    fn send_stream(&mut self, payload: &mut Payload, count: usize) -> Result<()> {
        for number in 0..count {
            payload.stamp(number);
            self.send(payload)?;
        }
        self.flush()
    }

    /// Receives, and tells when this process ran again.
    fn receive_timed(&mut self, payload: &mut [u8]) -> Result<u64> {
        self.receive(payload)?;
        Ok(clock::now())
    }

    /// Receives the messages of a stream, stamped from zero. A path whose programs would take
    /// several messages with one call does so here.
    fn receive_stream(&mut self, payload: &mut Payload, count: usize) -> Result<()> {
        for number in 0..count {
            self.receive(payload)?;
            payload.verify(number)?;
        }
        Ok(())
    }
}

/// An operation of a single process, measured by repeating it.
pub trait Solo {
    /// Does it `count` times with this parameter (mostly a size) and reports the figures.
    fn measure(&mut self, size: usize, count: usize) -> Result<Vec<(Metric, f64)>>;
}

/// One way to carry messages, or one operation, as the registry knows it.
pub struct Path {
    /// Its name in `--only` and in `bench list`.
    pub name: &'static str,
    /// One line of what it is.
    pub about: &'static str,
    /// How it is done.
    pub work: Work,
    /// Where it takes part.
    pub parts: &'static [Part],
}

/// How a path is measured.
pub enum Work {
    /// Between two processes.
    Pair {
        /// Makes the measuring process's end, and offers the other to the worker.
        open: fn(&mut Opening<'_>) -> Result<Box<dyn Exercise>>,
        /// Makes the worker's end of what was offered.
        attach: fn(Offer) -> Result<Box<dyn Exercise>>,
    },
    /// In the measuring process alone.
    Solo {
        /// Makes what is measured.
        make: fn() -> Result<Box<dyn Solo>>,
    },
}

/// One line of the tables: a path in one bench.
pub struct Part {
    /// The bench.
    pub bench: Bench,
    /// The name of the line, and the `path` of its records.
    pub row: &'static str,
    /// What the two processes do.
    pub operation: Operation,
    /// How an end waits.
    pub wait: Wait,
    /// Where the two run. Of several, the best for the path is reported.
    pub placements: &'static [Placement],
    /// The sizes of its messages.
    pub sizes: &'static [usize],
    /// How far the sender's buffer lies from a page boundary; the receiver's lies twice as far.
    pub shift: usize,
}

/// The benches of a suite; `fabric.latency` is `Latency` of the suite `fabric`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bench {
    /// Time of one message from end to end.
    Latency,
    /// Messages per second, one way.
    Rate,
    /// Bytes per second, one way.
    Bandwidth,
    /// Time until a sleeping end runs, or one that shares the core.
    Wake,
    /// Cost per event by number of sources.
    Events,
    /// Cost of making and reusing things.
    Cost,
    /// Time to get something from a busy process, by number of its computing threads.
    Busy,
    /// How much of a receiver's memory can hold bytes.
    Buffer,
}

impl Bench {
    /// Every bench, in the order of the tables.
    pub const ALL: [Bench; 8] = [
        Bench::Latency,
        Bench::Rate,
        Bench::Bandwidth,
        Bench::Wake,
        Bench::Events,
        Bench::Cost,
        Bench::Busy,
        Bench::Buffer,
    ];

    /// Its name without the suite.
    pub fn name(self) -> &'static str {
        match self {
            Bench::Latency => "latency",
            Bench::Rate => "rate",
            Bench::Bandwidth => "bandwidth",
            Bench::Wake => "wake",
            Bench::Events => "events",
            Bench::Cost => "cost",
            Bench::Busy => "busy",
            Bench::Buffer => "buffer",
        }
    }

    /// The metrics of its tables; the first decides which placement is the better one.
    pub fn metrics(self) -> &'static [Metric] {
        const ONE_WAY: &[Metric] = &[Metric::OneWayP50, Metric::OneWayP99, Metric::OneWayP999, Metric::CpuPerMessage];
        match self {
            Bench::Latency | Bench::Wake | Bench::Events | Bench::Busy => ONE_WAY,
            Bench::Rate => &[Metric::Rate, Metric::CpuPerMessage],
            Bench::Bandwidth => &[Metric::Bandwidth, Metric::CpuPerMessage],
            Bench::Cost => &[Metric::Cost, Metric::Cycles],
            Bench::Buffer => &[Metric::Utilisation],
        }
    }

    /// The lines that the others are compared with.
    pub fn references(self) -> &'static [&'static str] {
        match self {
            Bench::Latency => &["cacheline", "vi", "ring", "tcp", "tcp-spin"],
            Bench::Rate => &["ring", "vi", "credits", "tcp"],
            Bench::Bandwidth => &["vi", "ring", "memcpy", "tcp", "tcp-spin"],
            Bench::Wake => &["eventfd", "yield"],
            Bench::Busy => &["tcp"],
            Bench::Events | Bench::Cost | Bench::Buffer => &[],
        }
    }
}

/// What the two processes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// One message goes and comes back.
    PingPong,
    /// Messages go one way.
    Stream,
    /// A message of eight bytes, the time of sending, goes to a sleeping end, after a pause.
    Wake,
}

/// How an end waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Looks again and again.
    Spin,
    /// Sleeps in the kernel.
    Block,
    /// Gives the core away between looks.
    Yield,
}

/// The measuring process's side of opening a path.
pub struct Opening<'a> {
    pub(super) control: &'a mut Control,
    pub(super) path: &'static str,
    /// How the ends shall wait.
    pub wait: Wait,
}

impl Opening<'_> {
    /// Gives the worker what it needs to attach: a note, and descriptors. To be called once; what
    /// must happen on both sides at a time (listen, then accept) can go on after it.
    pub fn offer(&mut self, note: &str, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let order = Order::Open { path: self.path.into(), wait: self.wait, note: note.into() };
        self.control.send(&order, descriptors)
    }

    /// The worker, as a waiting end knows it.
    pub fn peer(&self) -> Peer {
        self.control.peer()
    }
}

/// What a worker gets to attach to a path.
pub struct Offer {
    /// How the ends shall wait.
    pub wait: Wait,
    /// The note of [`Opening::offer`].
    pub note: String,
    /// Its descriptors, in order.
    pub descriptors: Vec<OwnedFd>,
    /// The measuring process, as a waiting end knows it.
    pub peer: Peer,
}

/// Message sizes of latency; a path that cannot carry empty messages leaves out the first.
pub const LATENCY_SIZES: &[usize] = &[0, 1, 64, 1024, 4096, 65536];

/// Message sizes of rate.
pub const RATE_SIZES: &[usize] = &[64];

/// Message sizes of bandwidth from buffers at odd addresses.
pub const SHIFTED_SIZES: &[usize] = &[64 << 10, 1 << 20];

/// Message sizes of bandwidth.
pub const BANDWIDTH_SIZES: &[usize] = &[64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
