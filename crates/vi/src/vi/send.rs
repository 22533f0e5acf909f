//! The send queue: what is posted is sent in order, as far as the connection lets it.

use std::collections::VecDeque;

use sidestep_fabric::{Aperture, rdma::RequestId};

use crate::{
    attributes::{MAX_DESCRIPTORS, Reliability},
    code::{Status, ViState},
    cq::Queue,
    descriptor::{Completion, Descriptor, List, Operation, Remote},
    entry::{Credit, Fault, Header, Kind, MAX_RECORD, Record},
    error::{Error, Result},
    memory::Piece,
    vi::{
        receive::BOUNCE,
        state::{FlowControl, Loss, State, completions},
    },
    wires::Wires,
};

#[derive(Debug)]
pub(crate) struct SendQueue {
    items: VecDeque<SendItem>,
    /// How many of them have been handed over; they wait for an answer, or for their turn to complete.
    started: usize,
    pub(crate) done: VecDeque<Completion>,
    /// Answers to reads of the peer.
    responses: VecDeque<Response>,
    response: Option<(Emission, Option<Piece>)>,
    /// RDMA reads without an answer.
    reads: usize,
}

/// An answer to a read of the peer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) piece: Option<Piece>,
    pub(crate) fault: Fault,
}

#[derive(Debug)]
struct SendItem {
    token: u64,
    operation: Operation,
    immediate: Option<u32>,
    fence: bool,
    pieces: List<Piece>,
    total: u32,
    /// Bytes that earlier parts of a split message took.
    moved: u32,
    flow: FlowControl,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Waiting,
    /// Being written to the transfer queue.
    Emitting(Emission, Then),
    /// Being placed in the peer's memory.
    Placing(RequestId, Header),
    /// Handed over; the peer will say how it went.
    Answer,
    /// The data of a read are to come.
    Reading,
    Ended(Status),
}

/// How much of an entry is in the ring.
#[derive(Debug, Clone, Copy)]
struct Emission {
    header: Header,
    sent: usize,
}

/// What follows when an entry is in the ring.
#[derive(Debug, Clone, Copy)]
enum Then {
    Done,
    Answer,
    Read,
    /// The rest of a split message.
    Rest,
    /// The connection ends, and the send with this status.
    Break(Status),
}

/// From this size on a message is placed in the receive buffer, where that can be reached, rather than carried in the
/// ring. Measured: see docs/via.md.
pub(crate) const DIRECT_MIN: u32 = 8 << 10;
/// The most that one request of the RDMA queue moves at once.
const QUANTUM: usize = 256 << 10;
/// Small messages are written with their head in one go.
const SMALL: usize = 256;
/// Reads of the peer that wait for an answer.
const MAX_RESPONSES: usize = 2 * MAX_DESCRIPTORS;
const MAX_WINDOWS: usize = 1024;

impl Default for SendQueue {
    fn default() -> SendQueue {
        SendQueue {
            items: VecDeque::with_capacity(16),
            started: 0,
            done: completions(),
            responses: VecDeque::new(),
            response: None,
            reads: 0,
        }
    }
}

impl SendQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.done.is_empty()
    }

    /// Whether something has not been handed over or answered.
    pub(crate) fn is_busy(&self) -> bool {
        !self.items.is_empty() || self.response.is_some() || !self.responses.is_empty()
    }

    pub(crate) fn respond(&mut self, response: Response) -> Result<(), Loss> {
        if self.responses.len() >= MAX_RESPONSES {
            return Err("too many reads at once".into());
        }
        self.responses.push_back(response);
        Ok(())
    }

    /// Whether an answer of this length is expected.
    pub(crate) fn check_read(&self, len: u32, fault: Fault) -> Result<(), Loss> {
        let expected = self.oldest_read().is_some_and(|item| fault != Fault::None && len == 0 || item.total == len);
        if expected { Ok(()) } else { Err("data that nobody asked for".into()) }
    }

    /// Where the data of the oldest read go.
    pub(crate) fn reading(&self) -> Result<&[Piece], Loss> {
        self.oldest_read().map(|item| item.pieces.as_slice()).ok_or("data that nobody asked for".into())
    }

    fn oldest_read(&self) -> Option<&SendItem> {
        self.items.iter().find(|item| matches!(item.stage, Stage::Reading))
    }

    /// The oldest item the peer has to answer.
    fn answered(&mut self) -> Result<&mut SendItem, Loss> {
        let found = self.items.iter_mut().find(|item| matches!(item.stage, Stage::Answer));
        found.ok_or("an answer to nothing".into())
    }
}

impl State {
    /// Posts a send or an RDMA operation.
    pub(crate) fn post_send(&mut self, descriptor: &Descriptor, flow: FlowControl) -> Result<()> {
        if self.sends.items.len() + self.sends.done.len() >= MAX_DESCRIPTORS {
            return Err(Error::Limit { what: "descriptors of a queue", limit: MAX_DESCRIPTORS });
        }
        let needs_receive = match descriptor.operation {
            Operation::Send => true,
            Operation::RdmaWrite(_) => descriptor.immediate.is_some(),
            Operation::RdmaRead(_) => false,
        };
        let refusing = matches!(flow, FlowControl::NonBlocking | FlowControl::Blocking);
        if self.status == ViState::Connected && needs_receive && refusing && !self.may_send() {
            return Err(Error::NoReceive);
        }
        let (pieces, total, fault) = self.resolve(descriptor, false);
        let Descriptor { token, operation, immediate, fence, .. } = *descriptor;
        let stage = match (self.status, fault) {
            (_, Some(status)) => Stage::Ended(status),
            (ViState::Connected, None) => Stage::Waiting,
            // Sends of a VI that is not connected are flushed at once.
            _ => Stage::Ended(Status::FLUSHED),
        };
        self.sends.items.push_back(SendItem {
            token,
            operation,
            immediate,
            fence,
            pieces,
            total,
            moved: 0,
            flow,
            stage,
        });
        match self.status {
            ViState::Connected => self.pump_sends(),
            _ => self.retire(),
        }
        Ok(())
    }

    /// Whether a receive is posted at the peer that is not spoken for.
    fn may_send(&mut self) -> bool {
        if let Err(loss) = self.take_cookies() {
            self.lose(loss);
            return true;
        }
        let waiting = self.sends.items.len() - self.sends.started;
        self.wires.as_ref().is_none_or(|wires| wires.credits.len() > waiting)
    }

    /// Goes on with what was posted.
    pub(crate) fn pump_sends(&mut self) {
        let outcome = self.advance_sends();
        self.retire();
        if let Err(loss) = outcome {
            self.lose(loss);
        }
    }

    fn advance_sends(&mut self) -> Result<(), Loss> {
        loop {
            let mid_message = matches!(self.sends.items.get(self.sends.started), Some(item)
                if matches!(item.stage, Stage::Emitting(emission, _) if emission.sent > 0));
            if !mid_message && !self.advance_responses()? {
                break;
            }
            let State { wires, sends, scratch, attributes, split, .. } = self;
            let Some(wires) = wires else { break };
            let Some(item) = sends.items.get_mut(sends.started) else { break };
            let going = item.step(wires, scratch, attributes.reliability, *split, sends.reads)?;
            match item.stage {
                Stage::Ended(_) | Stage::Answer => sends.started += 1,
                Stage::Reading => {
                    sends.reads += 1;
                    sends.started += 1;
                }
                _ => {}
            }
            let failed = matches!(item.stage, Stage::Ended(status) if status.is_error());
            if failed && attributes.reliability != Reliability::Unreliable {
                return Err(Loss::TOLD);
            }
            if !going {
                break;
            }
        }
        self.arm_sends();
        Ok(())
    }

    /// With a completion queue: asks to be told when the sends can go on.
    fn arm_sends(&mut self) {
        let State { wires: Some(wires), sends, port, .. } = self else { return };
        if sends.is_busy() && !port.sources.is_empty() {
            wires.monitors.cookies.arrival().arm();
            wires.monitors.transfer.space().arm();
            if wires.monitors.cookies.written() != self.seen_cookies
                && let Some((cq, source)) = port.sources.last()
            {
                cq.events.deliver(*source);
            }
        }
    }

    /// Sends answers to reads. `false`: no room.
    fn advance_responses(&mut self) -> Result<bool, Loss> {
        let State { wires: Some(wires), sends, scratch, .. } = self else { return Ok(true) };
        loop {
            if sends.response.is_none() {
                let Some(Response { piece, fault }) = sends.responses.pop_front() else { return Ok(true) };
                let len = piece.as_ref().map_or(0, |piece| piece.len as u32);
                let header = Header { fault, ..Header::new(Kind::ReadData, len, None) };
                sends.response = Some((Emission { header, sent: 0 }, piece));
            }
            if let Some((emission, piece)) = &mut sends.response
                && !emission.emit(wires, scratch, piece.as_slice(), 0)?
            {
                return Ok(false);
            }
            sends.response = None;
        }
    }

    /// Takes what the peer says about its receives and our sends.
    pub(crate) fn take_cookies(&mut self) -> Result<(), Loss> {
        let Some(wires) = &self.wires else { return Ok(()) };
        self.seen_cookies = wires.monitors.cookies.written();
        loop {
            let Some(wires) = &mut self.wires else { return Ok(()) };
            let mut look = [0; MAX_RECORD];
            let here = wires.cookies_in.peek(0, &mut look)?;
            let Some((record, len)) = Record::parse(&look[..here])? else { return Ok(()) };
            wires.cookies_in.consume(len)?;
            match record {
                Record::Posted(credit) => {
                    if wires.credits.len() >= MAX_DESCRIPTORS {
                        return Err("more receives than a queue has".into());
                    }
                    wires.credits.push_back(credit);
                }
                Record::Window(number, cookie) => {
                    if number as usize != wires.windows.len() || wires.windows.len() >= MAX_WINDOWS {
                        return Err("a region out of turn".into());
                    }
                    let window = Aperture::begin(&wires.endpoint, &cookie).ok();
                    wires.windows.push(window);
                }
                Record::Placed(count) => {
                    for _ in 0..count {
                        self.sends.answered()?.stage = Stage::Ended(Status(0));
                    }
                }
                Record::Failed(fault) => {
                    let status = match fault {
                        Fault::Protection => Status::RDMA_PROT_ERROR,
                        _ => Status::REMOTE_DESC_ERROR,
                    };
                    self.sends.answered()?.stage = Stage::Ended(status);
                    return Err(Loss::TOLD);
                }
            }
        }
    }

    /// The answer to a read is complete.
    pub(crate) fn finish_read(&mut self, header: &Header, failed: Option<Status>) -> Result<(), Loss> {
        let found = self.sends.items.iter_mut().find(|item| matches!(item.stage, Stage::Reading));
        let item = found.ok_or("data that nobody asked for")?;
        self.sends.reads -= 1;
        let status = match (header.fault, failed) {
            (Fault::None, failed) => failed.unwrap_or(Status(0)),
            _ => Status::RDMA_PROT_ERROR,
        };
        item.stage = Stage::Ended(status);
        if status.is_error() {
            return Err(Loss::TOLD);
        }
        self.retire();
        Ok(())
    }

    /// Completes what has ended, in the order of posting.
    pub(crate) fn retire(&mut self) {
        while let Some(SendItem { stage: Stage::Ended(status), .. }) = self.sends.items.front() {
            let status = *status;
            self.complete_send(status);
        }
    }

    pub(crate) fn flush_sends(&mut self) {
        while let Some(item) = self.sends.items.front() {
            let status = match item.stage {
                Stage::Ended(status) => status,
                Stage::Waiting => Status::FLUSHED,
                Stage::Emitting(_, Then::Break(status)) => status,
                // On its way when the connection went.
                Stage::Emitting(..) | Stage::Placing(..) | Stage::Answer | Stage::Reading => Status::TRANSPORT_ERROR,
            };
            self.complete_send(status);
        }
        self.sends.started = 0;
        self.sends.reads = 0;
        self.sends.responses.clear();
        self.sends.response = None;
    }

    fn complete_send(&mut self, outcome: Status) {
        let Some(item) = self.sends.items.pop_front() else { return };
        self.sends.started = self.sends.started.saturating_sub(1);
        let operation = match item.operation {
            Operation::Send => Status::OP_SEND,
            Operation::RdmaWrite(_) => Status::OP_RDMA_WRITE,
            Operation::RdmaRead(_) => Status::OP_RDMA_READ,
        };
        let immediate = if item.immediate.is_some() { Status::IMMEDIATE } else { Status(0) };
        let completion = Completion {
            token: item.token,
            status: Status::DONE.and(operation).and(immediate).and(outcome),
            len: if outcome.is_error() { 0 } else { item.total },
            immediate: item.immediate,
            continues: false,
        };
        self.sends.done.push_back(completion);
        self.port.completed(Queue::Send, &completion);
    }
}

impl SendItem {
    /// Goes one step on. `false`: it cannot at present.
    fn step(
        &mut self,
        wires: &mut Wires,
        scratch: &mut Vec<u8>,
        reliability: Reliability,
        split: bool,
        reads: usize,
    ) -> Result<bool, Loss> {
        match &mut self.stage {
            Stage::Waiting if self.fence && reads > 0 => return Ok(false),
            Stage::Waiting => return self.begin(wires, reliability, split),
            Stage::Placing(id, header) => {
                let header = *header;
                match wires.rdma.test(*id) {
                    Ok(false) => return Ok(false),
                    Ok(true) => {
                        let then = self.afterwards(&header, reliability);
                        self.stage = Stage::Emitting(Emission { header, sent: 0 }, then);
                    }
                    Err(_) => {
                        // The receive buffer is gone; the receiver finds that out from the message itself.
                        wires.rdma.reset();
                        let header = Header { kind: Kind::Message, ..header };
                        let then = self.afterwards(&header, reliability);
                        self.stage = Stage::Emitting(Emission { header, sent: 0 }, then);
                    }
                }
            }
            Stage::Emitting(emission, then) => {
                let from = if emission.header.kind == Kind::Message { self.moved as usize } else { 0 };
                if !emission.emit(wires, scratch, self.pieces.as_slice(), from)? {
                    return Ok(false);
                }
                let len = emission.header.len;
                self.stage = match *then {
                    Then::Done => Stage::Ended(Status(0)),
                    Then::Answer => Stage::Answer,
                    Then::Read => Stage::Reading,
                    Then::Rest => {
                        self.moved += len;
                        Stage::Waiting
                    }
                    Then::Break(status) => {
                        self.stage = Stage::Ended(status);
                        return Err(Loss::TOLD);
                    }
                };
            }
            Stage::Answer | Stage::Reading | Stage::Ended(_) => {}
        }
        Ok(true)
    }

    /// What to do with it, now that it is its turn.
    fn begin(&mut self, wires: &mut Wires, reliability: Reliability, split: bool) -> Result<bool, Loss> {
        if self.pieces.as_slice().iter().any(|piece| !piece.registration.is_alive()) {
            self.stage = Stage::Ended(Status::PROTECTION_ERROR);
            return Ok(true);
        }
        let (kind, remote): (_, Option<Remote>) = match self.operation {
            Operation::Send => (Kind::Message, None),
            Operation::RdmaWrite(remote) => (Kind::Write, Some(remote)),
            Operation::RdmaRead(remote) => (Kind::Read, Some(remote)),
        };
        let mut header = Header { remote, ..Header::new(kind, self.total - self.moved, self.immediate) };
        let mut places = Credit { total: 0, places: Vec::new() };
        if kind == Kind::Message || kind == Kind::Write && self.immediate.is_some() {
            let Some(credit) = wires.credits.pop_front() else { return self.no_receive(reliability) };
            if kind == Kind::Message && header.len > credit.total {
                if !split || credit.total == 0 {
                    return Ok(self.too_long(reliability));
                }
                header = Header { len: credit.total, continues: true, immediate: None, ..header };
            }
            places = credit;
        }
        self.stage = match self.place(wires, &header, &places) {
            Some(id) => Stage::Placing(id, Header { kind: Kind::Placed, ..header }),
            None => Stage::Emitting(Emission { header, sent: 0 }, self.afterwards(&header, reliability)),
        };
        Ok(true)
    }

    fn afterwards(&self, header: &Header, reliability: Reliability) -> Then {
        match (header.kind, reliability) {
            (Kind::Read, _) => Then::Read,
            _ if header.continues => Then::Rest,
            (Kind::Write, Reliability::Delivery) | (_, Reliability::Reception) => Then::Answer,
            _ => Then::Done,
        }
    }

    fn no_receive(&mut self, reliability: Reliability) -> Result<bool, Loss> {
        if self.flow != FlowControl::Compliant || self.moved > 0 {
            return Ok(false);
        }
        let header = Header { fault: Fault::NoReceive, ..Header::new(Kind::Fault, 0, None) };
        self.stage = match reliability {
            Reliability::Unreliable => Stage::Ended(Status(0)),
            Reliability::Delivery => Stage::Emitting(Emission { header, sent: 0 }, Then::Break(Status(0))),
            Reliability::Reception => {
                Stage::Emitting(Emission { header, sent: 0 }, Then::Break(Status::REMOTE_DESC_ERROR))
            }
        };
        Ok(true)
    }

    fn too_long(&mut self, reliability: Reliability) -> bool {
        let header = Header { fault: Fault::Length, ..Header::new(Kind::Fault, 0, None) };
        let then = match reliability {
            Reliability::Unreliable => Then::Done,
            Reliability::Delivery => Then::Break(Status(0)),
            Reliability::Reception => Then::Break(Status::REMOTE_DESC_ERROR),
        };
        self.stage = Stage::Emitting(Emission { header, sent: 0 }, then);
        true
    }

    /// Begins to place the bytes in the receive buffer, if that pays and can be.
    fn place(&self, wires: &mut Wires, header: &Header, credit: &Credit) -> Option<RequestId> {
        if header.len < DIRECT_MIN || credit.places.is_empty() || header.kind != Kind::Message {
            return None;
        }
        let mut pieces = self.pieces.as_slice().iter();
        let (mut piece, mut at) = (pieces.next()?, self.moved as usize);
        let mut left = header.len as usize;
        let mut last = None;
        for place in &credit.places {
            let window = wires.windows.get(place.window as usize)?.as_ref()?;
            if window.is_open() != Ok(true) {
                return None;
            }
            let mut done = 0;
            while done < place.len as usize && left > 0 {
                if at >= piece.len {
                    at -= piece.len;
                    piece = pieces.next()?;
                    continue;
                }
                let count = (piece.len - at).min(place.len as usize - done).min(left).min(QUANTUM);
                let source = piece.registration.region.slice(piece.offset + at, count).ok()?;
                let target = usize::try_from(place.offset).ok()?.checked_add(done)?;
                last = wires.rdma.write(&source, window, target).map_err(|_| wires.rdma.reset()).ok();
                last?;
                (at, done, left) = (at + count, done + count, left - count);
            }
        }
        if left == 0 { last } else { None }
    }
}

impl Emission {
    /// Writes as much of the entry as fits. `true`: all of it is in the ring.
    fn emit(
        &mut self,
        wires: &mut Wires,
        scratch: &mut Vec<u8>,
        pieces: &[Piece],
        from: usize,
    ) -> Result<bool, Loss> {
        let out = &mut wires.transfer_out;
        let (head, body) = (self.header.size(), self.header.body());
        let bytes = self.header.emit();
        if head + body <= SMALL {
            let mut whole = [0; SMALL];
            whole[..head].copy_from_slice(&bytes[..head]);
            gather(pieces, from, &mut whole[head..head + body])?;
            self.sent += out.push(&whole[self.sent..head + body])?;
            out.publish()?;
            return Ok(self.sent == head + body);
        }
        if self.sent < head {
            self.sent += out.push(&bytes[self.sent..head])?;
        }
        scratch.resize(BOUNCE, 0);
        while self.sent >= head && self.sent < head + body {
            let at = self.sent - head;
            let part = &mut scratch[..(body - at).min(BOUNCE)];
            let space = out.space()?;
            if space == 0 {
                break;
            }
            let count = part.len().min(space);
            gather(pieces, from + at, &mut part[..count])?;
            self.sent += out.push(&part[..count])?;
            out.publish()?;
        }
        out.publish()?;
        Ok(self.sent == head + body)
    }
}

/// Copies bytes out of the pieces, from `at` on.
#[inline]
fn gather(pieces: &[Piece], at: usize, bytes: &mut [u8]) -> Result<(), Loss> {
    let gone = |_| Loss::BROKEN;
    if let [piece] = pieces {
        return piece.read(at, bytes).map_err(gone);
    }
    let (mut skip, mut filled) = (at, 0);
    for piece in pieces {
        if skip >= piece.len {
            skip -= piece.len;
            continue;
        }
        let count = (bytes.len() - filled).min(piece.len - skip);
        piece.read(skip, &mut bytes[filled..filled + count]).map_err(gone)?;
        (skip, filled) = (0, filled + count);
        if filled == bytes.len() {
            break;
        }
    }
    Ok(())
}
