//! The receiving side: every FPDU is verified as a whole, every segment is checked, and only then is a
//! byte of it placed.
//!
//! The stream is in order, so a message is reassembled by expecting its next segment, and nothing of a
//! message is kept but its place in the receive buffer.

mod one_sided;

use crate::event::{Completion, Outcome, WorkId};
use crate::fault::Fault;
use crate::host::{Host, Target};
use crate::mem::{Access, MemoryTable, StreamIdentity};
use crate::passage::Passage;
use crate::setup::Agreement;
use crate::terminate::Refused;
use crate::tx::Tx;
use sidestep_wire::mpa::fpdu;
use sidestep_wire::mpa::marker::{Interval, Spacing};
use sidestep_wire::rdmap::segment::{self, SendKind};
use sidestep_wire::rdmap::{Opcode, terminate};
use sidestep_wire::{MessageOffset, Msn, QueueNumber};
use std::collections::VecDeque;
use std::ops::Range;

/// A buffer for one message of the peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receive {
    pub(crate) work: WorkId,
    pub(crate) capacity: u32,
}

/// A message of which not all segments have come.
#[derive(Debug, Clone, Copy)]
struct Partial {
    opcode: Opcode,
    received: u32,
}

#[derive(Debug)]
pub(crate) struct Rx {
    crc: bool,
    interval: Option<Interval>,
    /// Bytes of FPDUs and markers so far.
    position: u64,
    ird: u16,
    pub(crate) receives: VecDeque<Receive>,
    partial: Option<Partial>,
    send_msn: Msn,
    request_msn: Msn,
    terminate_msn: Msn,
    response_msn: Msn,
    /// The first FPDU may be a send of length zero that only says "ready".
    pub(crate) expects_ready_send: bool,
}

/// What the receiving side works on besides itself.
pub(crate) struct Around<'a, H> {
    pub(crate) tx: &'a mut Tx,
    pub(crate) table: &'a mut MemoryTable,
    pub(crate) host: &'a mut H,
    pub(crate) identity: StreamIdentity,
    pub(crate) completions: &'a mut VecDeque<Completion>,
}

/// A fault found in a segment, and the segment.
pub(crate) struct ReceiveFault {
    pub(crate) fault: Fault,
    pub(crate) refused: Option<Box<Refused>>,
}

impl Rx {
    pub(crate) fn new() -> Self {
        Self {
            crc: true,
            interval: None,
            position: 0,
            ird: 0,
            receives: VecDeque::new(),
            partial: None,
            send_msn: Msn::FIRST,
            request_msn: Msn::FIRST,
            terminate_msn: Msn::FIRST,
            response_msn: Msn::FIRST,
            expects_ready_send: false,
        }
    }

    /// Takes over what set-up has agreed.
    pub(crate) fn begin(&mut self, agreement: &Agreement) {
        self.crc = agreement.crc;
        self.interval = agreement.markers_received;
        self.ird = agreement.ird;
    }

    /// Whether an FPDU has come.
    pub(crate) fn has_received(&self) -> bool {
        self.position > 0
    }

    /// How many bytes the FPDU takes that begins with `input`; see [`fpdu::needed`].
    pub(crate) fn needed(&self, input: &[u8]) -> usize {
        fpdu::needed(input, Spacing::new(self.interval, self.position))
    }

    /// Handles the FPDU at the beginning of `input`, all of which is here. Returns how many bytes it
    /// takes, and the terminate message if it is one.
    pub(crate) fn handle<H: Host>(
        &mut self,
        input: &[u8],
        around: &mut Around<'_, H>,
    ) -> Result<(usize, Option<terminate::Repr>), ReceiveFault> {
        let spacing = Spacing::new(self.interval, self.position);
        let packet =
            self.verify(input, spacing).map_err(|error| ReceiveFault { fault: Fault::Wire(error), refused: None })?;
        self.expects_ready_send &= !self.has_received();
        self.position += packet.wire_len() as u64;

        if self.expects_ready_send && packet.ulpdu_len() == 0 {
            // RFC 6581 §9.2 calls the signal a zero-length FULPDU: some may take that literally.
            self.expects_ready_send = false;
            return Ok((packet.wire_len(), None));
        }

        let mut header = [0; segment::MAX_HEADER_LEN];
        let len = packet.copy_ulpdu(&mut header);
        let header = &header[..len];
        let ulpdu_len = packet.ulpdu_len();
        let parsed = segment::Header::new_checked(header, ulpdu_len).and_then(|header| segment::Repr::parse(&header));
        let request = match parsed {
            Ok(segment::Repr::ReadRequest { request, .. }) => Some(request),
            _ => None,
        };
        parsed
            .map_err(Fault::Wire)
            .and_then(|repr| self.handle_segment(&repr, &packet, around))
            .map(|terminate| (packet.wire_len(), terminate))
            .map_err(|fault| ReceiveFault { fault, refused: Some(Box::new(Refused::new(header, ulpdu_len, request))) })
    }

    /// What the FPDU at the beginning of `input` is if it is a write that is allowed, and that nothing behind its headers
    /// can make invalid.
    pub(crate) fn passage(&self, input: &[u8], identity: StreamIdentity, table: &MemoryTable) -> Option<Passage> {
        if self.crc || self.interval.is_some() {
            return None;
        }
        let (length, segment) = input.split_first_chunk::<{ fpdu::HEADER_LEN }>()?;
        let ulpdu_len = usize::from(u16::from_be_bytes(*length));
        let header = segment::Header::new_checked(segment, ulpdu_len).ok()?;
        let repr = segment::Repr::parse(&header).ok()?;
        let segment::Repr::Write { sink: stag, offset, .. } = repr else { return None };
        let (headers, payload) = (fpdu::HEADER_LEN + repr.buffer_len(), ulpdu_len - repr.buffer_len());
        let offset = table.check(Access::RemoteWrite, identity, stag, offset, payload as u64).ok()?;
        Some(Passage { stag, offset, headers, payload, trailer: fpdu::bare_len(ulpdu_len) - headers - payload })
    }

    /// So many bytes of the stream were one FPDU that the driver took by itself.
    pub(crate) fn count_passed(&mut self, len: usize) {
        self.expects_ready_send &= !self.has_received();
        self.position += len as u64;
    }

    fn verify<'a>(&self, input: &'a [u8], spacing: Spacing) -> Result<fpdu::Packet<&'a [u8]>, sidestep_wire::Error> {
        let packet = fpdu::Packet::new_checked(input, spacing)?;
        if self.crc {
            packet.check_crc()?;
        }
        packet.check_markers()?;
        Ok(packet)
    }

    fn handle_segment<H: Host>(
        &mut self,
        repr: &segment::Repr,
        packet: &fpdu::Packet<&[u8]>,
        around: &mut Around<'_, H>,
    ) -> Result<Option<terminate::Repr>, Fault> {
        let payload = repr.buffer_len()..packet.ulpdu_len();
        match *repr {
            segment::Repr::Write { sink, offset, .. } => {
                one_sided::write(packet, payload, sink, offset, around)?;
            }
            segment::Repr::ReadResponse { last, sink, offset } => {
                one_sided::read_response(packet, payload, last, sink, offset, around)?;
            }
            segment::Repr::Send { last, msn, offset, kind } => {
                let message = Message { last, msn, offset, kind, opcode: repr.opcode() };
                self.send(packet, payload, message, around)?;
            }
            segment::Repr::Immediate { msn, solicited, immediate } => {
                if let Some(Partial { opcode: expected, .. }) = self.partial {
                    return Err(Fault::OpcodeChanged { expected, found: repr.opcode() });
                }
                expect(QueueNumber::SEND, &mut self.send_msn, msn)?;
                let receive = self.receives.pop_front().ok_or(Fault::NoReceive { msn })?;
                let outcome = Outcome::ReceivedImmediate { data: immediate.data, solicited };
                around.completions.push_back(Completion { work: receive.work, outcome });
            }
            segment::Repr::ReadRequest { msn, request } => {
                expect(QueueNumber::READ_REQUEST, &mut self.request_msn, msn)?;
                self.check_depth(msn, around.tx)?;
                one_sided::read_request(msn, request, around)?;
            }
            segment::Repr::AtomicRequest { msn, request } => {
                expect(QueueNumber::READ_REQUEST, &mut self.request_msn, msn)?;
                self.check_depth(msn, around.tx)?;
                one_sided::atomic_request(request, around)?;
            }
            segment::Repr::AtomicResponse { msn, response } => {
                expect(QueueNumber::ATOMIC_RESPONSE, &mut self.response_msn, msn)?;
                one_sided::atomic_response(response, around)?;
            }
            segment::Repr::Terminate { msn, terminate } => {
                expect(QueueNumber::TERMINATE, &mut self.terminate_msn, msn)?;
                return Ok(Some(terminate));
            }
        }
        Ok(None)
    }

    fn send<H: Host>(
        &mut self,
        packet: &fpdu::Packet<&[u8]>,
        payload: Range<usize>,
        message: Message,
        around: &mut Around<'_, H>,
    ) -> Result<(), Fault> {
        let Message { last, msn, offset, kind, opcode } = message;
        let expects_ready = std::mem::take(&mut self.expects_ready_send);
        let received = match self.partial {
            Some(Partial { opcode: expected, .. }) if expected != opcode => {
                return Err(Fault::OpcodeChanged { expected, found: opcode });
            }
            Some(partial) => partial.received,
            None => 0,
        };
        let mut due = self.send_msn;
        expect(QueueNumber::SEND, &mut due, msn)?;
        if offset != MessageOffset(received) {
            return Err(Fault::MessageOffset { expected: MessageOffset(received), found: offset });
        }
        if expects_ready && opcode == Opcode::Send && last && payload.is_empty() {
            self.send_msn = due;
            return Ok(());
        }
        let Receive { work, capacity } = *self.receives.front().ok_or(Fault::NoReceive { msn })?;
        let len = u64::from(received) + payload.len() as u64;
        if len > u64::from(capacity) {
            return Err(Fault::TooLong { len, capacity });
        }
        let len = len as u32;
        if let Some(stag) = kind.invalidate.filter(|_| last) {
            around.table.check_invalidate(around.identity, stag).map_err(|fault| Fault::Invalidate { fault, stag })?;
        }
        one_sided::place(packet, payload, around.host, |at| Target::Receive { work, offset: received + at as u32 });
        if !last {
            self.partial = Some(Partial { opcode, received: len });
            return Ok(());
        }
        self.partial = None;
        self.send_msn = due;
        self.receives.pop_front();
        if let Some(stag) = kind.invalidate {
            around.table.invalidate(stag);
        }
        let outcome = Outcome::Received { len, solicited: kind.solicited, invalidated: kind.invalidate };
        around.completions.push_back(Completion { work, outcome });
        Ok(())
    }

    /// Fails if as many requests of the peer wait for their answers as were agreed.
    fn check_depth(&self, msn: Msn, tx: &Tx) -> Result<(), Fault> {
        if tx.waiting.responses.len() >= usize::from(self.ird) {
            return Err(Fault::ReadQueueFull { msn, ird: self.ird });
        }
        Ok(())
    }
}

/// What the header of a send says.
struct Message {
    last: bool,
    msn: Msn,
    offset: MessageOffset,
    kind: SendKind,
    opcode: Opcode,
}

/// Fails unless `found` is the number that is due, which is then counted up.
fn expect(queue: QueueNumber, due: &mut Msn, found: Msn) -> Result<(), Fault> {
    if found != *due {
        return Err(Fault::MessageNumber { queue, expected: *due, found });
    }
    *due = due.next();
    Ok(())
}
