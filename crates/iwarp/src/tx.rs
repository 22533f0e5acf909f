//! The sending side: requests of the program above and answers to the peer.
//!
//! Requests go out in the order in which they were posted; a read or an atomic waits, and what is
//! behind it too, while as many are under way as the peer serves. Answers go out in the order in which
//! they were asked for. The two take turns, message by message; a message is never interrupted, except
//! by a terminate message.

mod emit;

use crate::event::WorkId;
use crate::fault::Fault;
use crate::framer::Framer;
use crate::gather::{Source, SourceSlice};
use crate::ledger::Ledger;
use crate::mem::StreamIdentity;
use crate::setup::{Agreement, ReadySignal};
use crate::terminate::Refused;
use sidestep_wire::mpa::fpdu;
use sidestep_wire::rdmap::segment::{self, SendKind};
use sidestep_wire::rdmap::{atomic_request, atomic_response, read_request, terminate};
use sidestep_wire::{MessageOffset, Msn, Stag, TaggedOffset};
use std::collections::VecDeque;

/// What the program above asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    Send { source: SourceSlice, kind: SendKind },
    Write { source: SourceSlice, sink: Stag, offset: TaggedOffset },
    Immediate { data: u64, solicited: bool },
    Read(read_request::Repr),
    Atomic { stag: Stag, offset: TaggedOffset, operation: atomic_request::Operation },
}

/// What the peer asked for. A read request is advanced as its bytes go out, which is also how a
/// terminate message wants it (RFC 5040 §4.8).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Response {
    Read { msn: Msn, request: read_request::Repr },
    Atomic(atomic_response::Repr),
}

/// A read or an atomic that was asked for and not yet answered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unanswered {
    Read { number: Option<u64>, sink: Stag, next: TaggedOffset, remaining: u32 },
    Atomic { number: u64, id: u32 },
}

/// A fault found while sending, and the request of the peer that it concerns.
pub(crate) struct SendFault {
    pub(crate) fault: Fault,
    pub(crate) refused: Box<Refused>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Requests,
    Responses,
}

#[derive(Debug)]
pub(crate) struct Tx {
    framer: Framer,
    identity: StreamIdentity,
    max_ulpdu: usize,
    ord: u16,
    /// FPDUs may be sent: set-up is over, and the initiator has sent one if this is the responder.
    pub(crate) open: bool,
    /// A terminate message that is to go out before anything else, and then nothing more.
    terminate: Option<terminate::Repr>,
    ended: bool,
    pub(crate) waiting: Waiting,
    pub(crate) unanswered: VecDeque<Unanswered>,
    /// How much of the first request's payload is out.
    sent: u32,
    /// Whose message is under way.
    current: Option<Lane>,
    turn: Lane,
    next: Numbers,
    pub(crate) ledger: Ledger,
}

/// What is to go out.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Segments that no program asked for: the ready signal, nudges.
    control: VecDeque<segment::Repr>,
    /// Requests that go out before all others, by their numbers in the ledger.
    first: VecDeque<(u64, Request)>,
    /// Requests by their numbers in the ledger.
    requests: VecDeque<(u64, Request)>,
    pub(crate) responses: VecDeque<Response>,
}

/// The numbers that the next messages of each queue get.
#[derive(Debug)]
struct Numbers {
    send: Msn,
    request: Msn,
    response: Msn,
    atomic: u32,
}

impl Tx {
    pub(crate) fn new(identity: StreamIdentity) -> Self {
        Self {
            framer: Framer { crc: true, interval: None, position: 0 },
            identity,
            max_ulpdu: fpdu::MIN_MULPDU,
            ord: 0,
            open: false,
            terminate: None,
            ended: false,
            waiting: Waiting::default(),
            unanswered: VecDeque::new(),
            sent: 0,
            current: None,
            turn: Lane::Responses,
            next: Numbers { send: Msn::FIRST, request: Msn::FIRST, response: Msn::FIRST, atomic: 1 },
            ledger: Ledger::default(),
        }
    }

    /// Takes over what set-up has agreed.
    pub(crate) fn begin(&mut self, agreement: &Agreement, segment_size: usize) {
        self.framer.crc = agreement.crc;
        self.framer.interval = agreement.markers_sent;
        self.ord = agreement.ord;
        self.set_segment_size(segment_size);
    }

    pub(crate) fn set_segment_size(&mut self, segment_size: usize) {
        // Beyond this size markers could no longer point back to the beginning of an FPDU.
        let size = segment_size.min(usize::from(u16::MAX));
        self.max_ulpdu = fpdu::max_ulpdu(size, self.framer.interval);
    }

    pub(crate) fn post(&mut self, work: WorkId, request: Request) {
        let number = self.ledger.open(work);
        self.waiting.requests.push_back((number, request));
    }

    pub(crate) fn post_first(&mut self, work: WorkId, request: Request) {
        let number = self.ledger.open(work);
        self.waiting.first.push_back((number, request));
    }

    /// How many reads and atomics may be under way.
    pub(crate) fn read_depth(&self) -> u16 {
        self.ord
    }

    /// Queues the signal that this end is ready to receive (RFC 6581 §9.2).
    pub(crate) fn signal_ready(&mut self, signal: ReadySignal) {
        let repr = match signal {
            ReadySignal::Write => zero_length_write(),
            ReadySignal::Send => {
                let msn = next(&mut self.next.send);
                let kind = SendKind::default();
                segment::Repr::Send { last: true, msn, offset: MessageOffset(0), kind }
            }
            ReadySignal::Read => {
                let (sink, sink_offset) = (Stag(0), TaggedOffset(0));
                self.unanswered.push_back(Unanswered::Read { number: None, sink, next: sink_offset, remaining: 0 });
                segment::Repr::ReadRequest {
                    msn: next(&mut self.next.request),
                    request: read_request::Repr {
                        sink,
                        sink_offset,
                        size: 0,
                        source: Stag(0),
                        source_offset: TaggedOffset(0),
                    },
                }
            }
        };
        self.waiting.control.push_back(repr);
    }

    /// Queues a segment that does nothing but arrive.
    pub(crate) fn nudge(&mut self) {
        self.waiting.control.push_back(zero_length_write());
    }

    /// Ends the stream with this message. What was not sent never will be.
    pub(crate) fn end_with(&mut self, terminate: terminate::Repr) {
        self.stop();
        self.terminate = Some(terminate);
    }

    /// Sends nothing more.
    pub(crate) fn stop(&mut self) {
        self.terminate = None;
        self.waiting.control.clear();
        self.waiting.first.clear();
        self.waiting.requests.clear();
        self.waiting.responses.clear();
        self.unanswered.clear();
    }

    /// Whether everything was emitted and answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.terminate.is_none()
            && self.waiting.control.is_empty()
            && self.waiting.first.is_empty()
            && self.waiting.requests.is_empty()
            && self.waiting.responses.is_empty()
            && self.unanswered.is_empty()
    }

    /// Whether a message is under way.
    pub(crate) fn is_amid_message(&self) -> bool {
        self.current.is_some()
    }

    /// Whether something is to be emitted, now or when the peer has answered.
    pub(crate) fn has_output(&self) -> bool {
        self.terminate.is_some()
            || !self.waiting.control.is_empty()
            || !self.waiting.responses.is_empty()
            || !self.has_gathered_all()
    }

    /// Whether every request was emitted.
    pub(crate) fn has_gathered_all(&self) -> bool {
        self.waiting.first.is_empty() && self.waiting.requests.is_empty()
    }

    /// How many reads and atomics want an answer, those not yet sent included.
    pub(crate) fn awaited_count(&self) -> usize {
        let queued = self
            .waiting
            .requests
            .iter()
            .filter(|(_, request)| matches!(request, Request::Read(_) | Request::Atomic { .. }));
        self.unanswered.len() + queued.count()
    }

    /// Whether an FPDU was sent and the stream has taken it.
    pub(crate) fn has_sent(&self) -> bool {
        self.framer.position > 0 && self.ledger.is_drained()
    }

    /// Whether the region may still be read from, or written by an answer.
    pub(crate) fn holds(&self, stag: Stag) -> bool {
        let queued = self.waiting.first.iter().chain(&self.waiting.requests).any(|(_, request)| match request {
            Request::Send { source, .. } | Request::Write { source, .. } => source.source == Source::Region(stag),
            Request::Read(request) => request.sink == stag,
            Request::Immediate { .. } | Request::Atomic { .. } => false,
        });
        let asked = self.waiting.responses.iter().any(|response| {
            matches!(response, Response::Read { request, .. }
                if request.source == stag && request.size > 0)
        });
        let awaited = self
            .unanswered
            .iter()
            .any(|unanswered| matches!(unanswered, Unanswered::Read { sink, .. } if *sink == stag));
        queued || asked || awaited || self.ledger.holds(stag)
    }
}

fn zero_length_write() -> segment::Repr {
    segment::Repr::Write { last: true, sink: Stag(0), offset: TaggedOffset(0) }
}

/// The number that is due, which is then counted up.
fn next(msn: &mut Msn) -> Msn {
    let due = *msn;
    *msn = due.next();
    due
}
