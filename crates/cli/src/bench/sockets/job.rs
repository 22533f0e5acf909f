//! What one end of a measurement is told to do, and what it reports: both as one line of JSON.

use serde::{Deserialize, Serialize};

use super::super::rpc::end::Role;
use super::super::stats::SHARES;

/// The work of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// What it does.
    pub work: Work,
    /// Where: `tcp:127.0.0.1:80`, `unix:PATH`. A server that is given port 0 says which one it got.
    pub address: String,
    /// The cores it may run on; none means all.
    pub cores: Vec<usize>,
    /// The process that started it, and with which it ends.
    pub parent: i32,
}

/// What a process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Work {
    /// Sends back what comes on each of so many connections, one process for all of them.
    Echo {
        /// Bytes per message.
        size: usize,
        /// How it waits.
        wait: Waiting,
        /// Connections to accept.
        connections: usize,
    },
    /// Sends a message, waits for the answer, and again.
    Exchange {
        /// Bytes per message.
        size: usize,
        /// How it waits.
        wait: Waiting,
        /// Microseconds of sleep before each message.
        pause_us: u64,
        /// For how long, without and with measuring.
        span: Span,
    },
    /// The same again and again over one connection, with a report after each.
    Windows {
        /// Bytes per message.
        size: usize,
        /// For how long each, without and with measuring.
        span: Span,
        /// How often.
        count: usize,
    },
    /// Receives streams, each announced by its length, and confirms each with a byte.
    Sink {
        /// Bytes per receive.
        size: usize,
        /// How far the buffer lies from a page boundary.
        shift: usize,
    },
    /// Sends a stream.
    Stream {
        /// Bytes per send.
        size: usize,
        /// How far the buffer lies from a page boundary.
        shift: usize,
        /// For how long, without and with measuring.
        span: Span,
    },
    /// Accepts, answers one request and closes, so many times.
    Answer {
        /// How many connections.
        connections: usize,
    },
    /// Connects, sends one request, waits for the answer and closes, so many times.
    Connect {
        /// How many connections.
        connections: usize,
    },
    /// Opens connections, uses each a little, says so, and then waits for the end of its standard input.
    Idle {
        /// How many connections.
        connections: usize,
    },
    /// Has one request under way on each of so many connections, in one process.
    Ask {
        /// Bytes per message.
        size: usize,
        /// How many connections.
        connections: usize,
        /// For how long, without and with measuring.
        span: Span,
    },
    /// Takes and gives bulk on so many connections, as each client says, with a thread for each.
    Hub {
        /// Bytes per call.
        size: usize,
        /// How many connections.
        connections: usize,
    },
    /// Exchanges bulk with a hub.
    Bulk {
        /// Bytes per call.
        size: usize,
        /// Which way.
        flow: Flow,
        /// Connections, each with a thread.
        connections: usize,
        /// For how long, without and with measuring.
        span: Span,
    },
    /// Asks a memcached for a value, again and again.
    Memcached {
        /// For how long, without and with measuring.
        span: Span,
    },
    /// Serves or makes calls of ONC RPC.
    Rpc(Role),
    /// Keeps a core busy.
    Hog,
}

/// Which way bulk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flow {
    /// To the hub.
    In,
    /// From the hub.
    Out,
    /// Both at the same time, on each connection.
    Both,
}

/// How long to work, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Span {
    /// Before the measurement.
    pub warm_ms: u64,
    /// The measurement.
    pub run_ms: u64,
}

/// How an end waits for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Waiting {
    /// In `recv`.
    Block,
    /// In `poll`, then `recv`.
    Poll,
    /// In `epoll_wait`, then `recv`.
    Epoll,
}

/// What a process reports at its end.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// What it did within the measured time: trips, messages or connections.
    pub done: u64,
    /// The measured time in nanoseconds.
    pub time: u64,
    /// Half round trips: the median, and what 99 % and 99.9 % stay within, in nanoseconds.
    pub half_trip: [f64; 3],
    /// The same for the shares of [`SHARES`].
    pub distribution: [f64; SHARES.len()],
    /// Messages in all, with those before the measurement.
    pub messages: u64,
    /// Processor time for them in nanoseconds.
    pub processor_time: u64,
    /// The share of trips with both ends on one core.
    pub same_core: f64,
}

impl Waiting {
    /// Every way.
    pub const ALL: [Waiting; 3] = [Waiting::Block, Waiting::Poll, Waiting::Epoll];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Waiting::Block => "block",
            Waiting::Poll => "poll",
            Waiting::Epoll => "epoll",
        }
    }
}
