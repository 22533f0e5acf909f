//! What a trace holds, and how it reads.

use std::fmt;

use crate::{
    cookie::RegionId,
    error::{CloseReason, Error, Refusal},
    link::{Atomic, Outcome, PeerNumber, Request, Ticket},
    tripwire::Access,
};

/// One call of a link, or one delivery to its target.
///
/// Reads like a packet dump: time in seconds, `>` for what this node does and `<` for what arrives, the peer, what, and
/// the ticket; then `=` and an answer, or `!` and what went wrong.
///
/// ```text
///   12.000345 > p3 put r5+0x40 64 B t17
///   12.000391 < t17 done
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceRecord {
    /// Nanoseconds of `sys::clock::now`.
    pub time: u64,
    /// What happened.
    pub event: TraceEvent,
}

/// What happened, without the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEvent {
    /// A call of this node, or something that arrived.
    pub direction: Direction,
    /// With whom, where that is known.
    pub peer: Option<PeerNumber>,
    /// What.
    pub operation: Operation,
    /// Connects a request with its outcome.
    pub ticket: Option<Ticket>,
    /// How it failed, if it did.
    pub failure: Option<Failure>,
}

/// Which way a record goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// A call of this node.
    Out,
    /// A delivery to this node.
    In,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Listens under a name.
    Listen(String),
    /// No longer does.
    Unlisten(String),
    /// Connects to a name.
    Connect(String),
    /// A peer has connected.
    Opened,
    /// A message of so many bytes.
    Post(usize),
    /// Asks for pages; whether they were given, as the owner answers.
    Map(RegionId, Option<bool>),
    /// Gives so many bytes of pages before they are asked for.
    Offer(RegionId, usize),
    /// Writes so many bytes.
    Put(RegionId, u64, usize),
    /// Reads so many bytes.
    Get(RegionId, u64, usize),
    /// An atomic operation; what the word held, as the owner answers.
    Atomic(RegionId, u64, Atomic, Option<u64>),
    /// An armed word was written or read.
    Fire(RegionId, usize, Access),
    /// Armed words may have been.
    FireUnknown,
    /// A request has ended.
    Completed(Ended),
    /// The connection is over.
    Close(CloseReason),
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Done.
    Done,
    /// So many bytes were read.
    Bytes(usize),
    /// What the word held.
    Value(u64),
    /// So many bytes of memory were mapped.
    Mapped(usize),
    /// No pages.
    Proxied,
    /// The owner said no.
    Refused(Refusal),
    /// The peer went away first.
    Closed(CloseReason),
    /// This side could not carry out its part.
    Failed(Error),
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The link did not take the call.
    Link(Error),
    /// This node refused a peer.
    Refusal(Refusal),
}

impl Operation {
    pub(super) fn of_request(region: RegionId, request: &Request<'_>) -> Operation {
        match *request {
            Request::Map => Operation::Map(region, None),
            Request::Put { offset, bytes } => Operation::Put(region, offset, bytes.len()),
            Request::Get { offset, len } => Operation::Get(region, offset, len),
            Request::Atomic { offset, atomic } => Operation::Atomic(region, offset, atomic, None),
        }
    }
}

impl Ended {
    pub(super) fn of(outcome: &Outcome) -> Ended {
        match outcome {
            Outcome::Done => Ended::Done,
            Outcome::Bytes(bytes) => Ended::Bytes(bytes.len()),
            Outcome::Value(value) => Ended::Value(*value),
            Outcome::Mapped(memory) => Ended::Mapped(memory.total_len()),
            Outcome::Proxied => Ended::Proxied,
            Outcome::Refused(refusal) => Ended::Refused(*refusal),
            Outcome::Closed(reason) => Ended::Closed(*reason),
            Outcome::Failed(error) => Ended::Failed(error.clone()),
        }
    }
}

impl fmt::Display for TraceRecord {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.time / 1000;
        write!(out, "{}.{:06} {}", micros / 1_000_000, micros % 1_000_000, self.event)
    }
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.direction {
            Direction::Out => ">",
            Direction::In => "<",
        })?;
        if let Some(PeerNumber(peer)) = self.peer {
            write!(out, " p{peer}")?;
        }
        match (&self.operation, self.ticket) {
            // The ticket is what a completion is about, so it comes first.
            (Operation::Completed(ended), Some(Ticket(ticket))) => write!(out, " t{ticket} {ended}")?,
            (operation, Some(Ticket(ticket))) => write!(out, " {operation} t{ticket}")?,
            (operation, None) => write!(out, " {operation}")?,
        }
        match &self.failure {
            Some(Failure::Link(error)) => write!(out, " ! {error}"),
            Some(Failure::Refusal(refusal)) => write!(out, " ! {refusal}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Listen(name) => write!(out, "listen {name}"),
            Operation::Unlisten(name) => write!(out, "unlisten {name}"),
            Operation::Connect(name) => write!(out, "connect {name}"),
            Operation::Opened => out.write_str("opened"),
            Operation::Post(len) => write!(out, "post {len} B"),
            Operation::Map(RegionId(region), None) => write!(out, "map r{region}"),
            Operation::Map(RegionId(region), Some(true)) => write!(out, "map r{region} = pages"),
            Operation::Map(RegionId(region), Some(false)) => write!(out, "map r{region} = no pages"),
            Operation::Offer(RegionId(region), len) => write!(out, "offer r{region} {len} B"),
            Operation::Put(RegionId(region), offset, len) => write!(out, "put r{region}+{offset:#x} {len} B"),
            Operation::Get(RegionId(region), offset, len) => write!(out, "get r{region}+{offset:#x} {len} B"),
            Operation::Atomic(RegionId(region), offset, atomic, held) => {
                match atomic {
                    Atomic::CompareSwap { expected, new } => {
                        write!(out, "swap r{region}+{offset:#x} {expected} for {new}")?
                    }
                    Atomic::FetchAdd(value) => write!(out, "add r{region}+{offset:#x} {value}")?,
                }
                held.map_or(Ok(()), |held| write!(out, " = {held}"))
            }
            Operation::Fire(RegionId(region), offset, Access::Write) => write!(out, "fire r{region}+{offset:#x} write"),
            Operation::Fire(RegionId(region), offset, Access::Read) => write!(out, "fire r{region}+{offset:#x} read"),
            Operation::FireUnknown => out.write_str("fire anywhere"),
            Operation::Completed(ended) => ended.fmt(out),
            Operation::Close(reason) => write!(out, "close: {reason}"),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Done => out.write_str("done"),
            Ended::Bytes(len) => write!(out, "{len} B"),
            Ended::Value(value) => write!(out, "= {value}"),
            Ended::Mapped(len) => write!(out, "mapped {len} B"),
            Ended::Proxied => out.write_str("not mapped"),
            Ended::Refused(refusal) => write!(out, "! {refusal}"),
            Ended::Closed(reason) => write!(out, "! {reason}"),
            Ended::Failed(error) => write!(out, "! {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(direction: Direction, peer: u32, operation: Operation, ticket: Option<u64>) -> String {
        let event = TraceEvent {
            direction,
            peer: Some(PeerNumber(peer)),
            operation,
            ticket: ticket.map(Ticket),
            failure: None,
        };
        event.to_string()
    }

    #[test]
    fn records_read_like_a_packet_dump() {
        let region = RegionId(5);
        let put = Operation::Put(region, 0x40, 64);
        assert_eq!(text(Direction::Out, 3, put.clone(), Some(17)), "> p3 put r5+0x40 64 B t17");
        let swap = Atomic::CompareSwap { expected: 1, new: 2 };
        let swap = Operation::Atomic(region, 8, swap, Some(1));
        assert_eq!(text(Direction::In, 3, swap, None), "< p3 swap r5+0x8 1 for 2 = 1");
        let done = Operation::Completed(Ended::Value(9));
        assert_eq!(text(Direction::In, 3, done, Some(4)), "< p3 t4 = 9");
        let event = TraceEvent {
            direction: Direction::In,
            peer: Some(PeerNumber(2)),
            operation: put,
            ticket: None,
            failure: Some(Failure::Refusal(Refusal::Expired)),
        };
        let record = TraceRecord { time: 12_000_345_678, event };
        assert_eq!(record.to_string(), "12.000345 < p2 put r5+0x40 64 B ! it has expired");
    }
}
