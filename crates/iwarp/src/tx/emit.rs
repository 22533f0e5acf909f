//! From requests and answers to segments.

use super::{Lane, Request, Response, SendFault, Tx, Unanswered, next};
use crate::fault::Fault;
use crate::gather::{Gather, Source, SourceSlice};
use crate::host::Host;
use crate::mem::{Access, MemoryTable};
use crate::terminate::Refused;
use sidestep_wire::ddp::{tagged, untagged};
use sidestep_wire::rdmap::{atomic_request, immediate, read_request, segment};
use sidestep_wire::{MessageOffset, Msn, TaggedOffset};

/// Bytes of the largest word that a program polls.
const WORD: u32 = 8;

impl Tx {
    /// Appends FPDUs until there are `budget` bytes or nothing is left to send.
    pub(crate) fn poll(
        &mut self,
        budget: u64,
        table: &MemoryTable,
        host: &mut impl Host,
        gather: &mut Gather,
    ) -> Result<(), SendFault> {
        while gather.len() < budget && gather.piece_count() < MAX_PIECES {
            if !self.emit_next(table, host, gather)? {
                break;
            }
        }
        Ok(())
    }

    /// Emits one segment, if there is one.
    fn emit_next(&mut self, table: &MemoryTable, host: &mut impl Host, gather: &mut Gather) -> Result<bool, SendFault> {
        if self.ended || !self.open {
            return Ok(false);
        }
        if let Some(terminate) = self.terminate.take() {
            let repr = segment::Repr::Terminate { msn: Msn::FIRST, terminate };
            self.emit(&repr, None, host, gather);
            self.ended = true;
            return Ok(true);
        }
        let lane = match self.current {
            Some(lane) => lane,
            None => {
                if let Some(repr) = self.waiting.control.pop_front() {
                    self.emit(&repr, None, host, gather);
                    return Ok(true);
                }
                let other = self.turn.other();
                if let Some(first) = self.waiting.first.pop_front() {
                    // Nothing is under way, so the first request has not begun.
                    self.waiting.requests.push_front(first);
                    Lane::Requests
                } else if self.is_ready(self.turn) {
                    self.turn
                } else if self.is_ready(other) {
                    other
                } else {
                    return Ok(false);
                }
            }
        };
        let last = match lane {
            Lane::Requests => self.emit_request(host, gather),
            Lane::Responses => self.emit_response(table, host, gather)?,
        };
        self.current = (!last).then_some(lane);
        self.turn = lane.other();
        Ok(true)
    }

    fn is_ready(&self, lane: Lane) -> bool {
        match lane {
            Lane::Responses => !self.waiting.responses.is_empty(),
            Lane::Requests => match self.waiting.requests.front() {
                Some((_, Request::Read(_) | Request::Atomic { .. })) => self.unanswered.len() < usize::from(self.ord),
                Some(_) => true,
                None => false,
            },
        }
    }

    /// Emits the next segment of the first request; returns whether it was the last.
    fn emit_request(&mut self, host: &mut impl Host, gather: &mut Gather) -> bool {
        let Some((number, request)) = self.waiting.requests.front().copied() else {
            return true;
        };
        match request {
            Request::Send { source, kind } => {
                let (slice, last) = self.cut(source, untagged::LEN);
                let offset = MessageOffset(self.sent);
                let repr = segment::Repr::Send { last, msn: self.next.send, offset, kind };
                self.emit(&repr, Some(slice), host, gather);
                self.sent += slice.len;
                if !last {
                    return false;
                }
                next(&mut self.next.send);
            }
            Request::Write { source, sink, offset } => {
                let (slice, last) = self.cut(source, tagged::LEN);
                // The peer refuses an offset that wraps.
                let offset = TaggedOffset(offset.0.wrapping_add(u64::from(self.sent)));
                let repr = segment::Repr::Write { last, sink, offset };
                self.emit(&repr, Some(slice), host, gather);
                self.sent += slice.len;
                if !last {
                    return false;
                }
            }
            Request::Immediate { data, solicited } => {
                let msn = next(&mut self.next.send);
                let immediate = immediate::Repr { data };
                let repr = segment::Repr::Immediate { msn, solicited, immediate };
                self.emit(&repr, None, host, gather);
            }
            Request::Read(request) => {
                let msn = next(&mut self.next.request);
                self.emit(&segment::Repr::ReadRequest { msn, request }, None, host, gather);
                let (sink, next, remaining) = (request.sink, request.sink_offset, request.size);
                let number = Some(number);
                self.unanswered.push_back(Unanswered::Read { number, sink, next, remaining });
            }
            Request::Atomic { stag, offset, operation } => {
                let msn = next(&mut self.next.request);
                let id = self.next.atomic;
                self.next.atomic = self.next.atomic.wrapping_add(1);
                let request = atomic_request::Repr { id, stag, offset, operation };
                self.emit(&segment::Repr::AtomicRequest { msn, request }, None, host, gather);
                self.unanswered.push_back(Unanswered::Atomic { number, id });
            }
        }
        self.sent = 0;
        self.waiting.requests.pop_front();
        if !matches!(request, Request::Read(_) | Request::Atomic { .. }) {
            self.ledger.mark_emitted(number);
        }
        true
    }

    /// Emits the next segment of the first answer; returns whether it was the last.
    ///
    /// The source of a read is checked again for every segment: its tag may have been withdrawn.
    fn emit_response(
        &mut self,
        table: &MemoryTable,
        host: &mut impl Host,
        gather: &mut Gather,
    ) -> Result<bool, SendFault> {
        let (msn, request) = match self.waiting.responses.front().copied() {
            Some(Response::Read { msn, request }) => (msn, request),
            Some(Response::Atomic(response)) => {
                let msn = next(&mut self.next.response);
                self.emit(&segment::Repr::AtomicResponse { msn, response }, None, host, gather);
                self.waiting.responses.pop_front();
                return Ok(true);
            }
            None => return Ok(true),
        };
        let read_request::Repr { sink, sink_offset, size, source, source_offset } = request;
        let mut payload = None;
        let len = size.min((self.max_ulpdu - tagged::LEN) as u32);
        if size > 0 {
            let (who, rest) = (self.identity, u64::from(size));
            let offset =
                table.check(Access::RemoteRead, who, source, source_offset, rest).map_err(|fault| SendFault {
                    fault: Fault::Read { fault, stag: source, offset: source_offset, len: rest },
                    refused: Box::new(Refused::read_request(msn, request)),
                })?;
            payload = Some(SourceSlice { source: Source::Region(source), offset, len });
        }
        let last = len == size;
        let repr = segment::Repr::ReadResponse { last, sink, offset: sink_offset };
        self.emit(&repr, payload, host, gather);
        if last {
            self.waiting.responses.pop_front();
            return Ok(true);
        }
        if let Some(Response::Read { request, .. }) = self.waiting.responses.front_mut() {
            request.sink_offset = TaggedOffset(sink_offset.0.wrapping_add(u64::from(len)));
            request.source_offset = TaggedOffset(source_offset.0.wrapping_add(u64::from(len)));
            request.size -= len;
        }
        Ok(false)
    }

    /// What of the source goes into the next segment, and whether it is the rest. The last segment has a whole word: the
    /// other side may poll it.
    fn cut(&self, source: SourceSlice, header_len: usize) -> (SourceSlice, bool) {
        let rest = source.len - self.sent;
        let most = (self.max_ulpdu - header_len) as u32;
        let len = if rest > most && rest - most < WORD { most - WORD } else { rest.min(most) };
        let offset = source.offset + u64::from(self.sent);
        (SourceSlice { source: source.source, offset, len }, len == rest)
    }

    fn emit(&mut self, repr: &segment::Repr, payload: Option<SourceSlice>, host: &mut impl Host, gather: &mut Gather) {
        let mut header = [0; segment::MAX_HEADER_LEN];
        repr.emit(&mut header);
        let before = gather.len();
        self.framer.frame(&header[..repr.buffer_len()], payload, host, gather);
        let region = match payload {
            Some(SourceSlice { source: Source::Region(stag), len: 1.., .. }) => Some(stag),
            _ => None,
        };
        self.ledger.count_emitted(gather.len() - before, region);
    }
}

impl Lane {
    fn other(self) -> Self {
        match self {
            Lane::Requests => Lane::Responses,
            Lane::Responses => Lane::Requests,
        }
    }
}

/// About half of what one gathered write of the system takes; one more FPDU may add as many again.
const MAX_PIECES: usize = 512;
