//! The send queue: what is posted is sent in order, as far as the connection lets it.

use std::collections::VecDeque;

use sidestep_fabric::Aperture;

use crate::{
    attributes::{MAX_DESCRIPTORS, Reliability},
    code::{Status, ViState},
    cq::Queue,
    descriptor::{Completion, Descriptor, Operation},
    entry::{Fault, Header, Kind, MAX_RECORD, Record, SHORT},
    error::{Error, Result},
    memory::Piece,
    vi::{
        item::{Emission, SMALL, SendItem, Stage, Then},
        state::{FlowControl, Loss, State, completions},
    },
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
    /// The short way of a small message that nothing is in front of: it is in the ring when this returns. `false`: it has
    /// to go the long way.
    #[inline]
    fn send_small(&mut self, descriptor: &Descriptor) -> Result<bool, Loss> {
        let State { wires: Some(wires), sends, recent, port, attributes, .. } = self else { return Ok(false) };
        let Descriptor { token, operation: Operation::Send, immediate, segments, place, fault: None, .. } = descriptor
        else {
            return Ok(false);
        };
        let mut segments = segments.iter();
        let (Some(segment), None) = (segments.next(), segments.next()) else { return Ok(false) };
        let len = segment.len as usize;
        let fits = wires.credits.front().is_some_and(|credit| credit.total >= segment.len);
        let room = len <= SMALL - SHORT && len <= attributes.max_transfer;
        if sends.is_busy() || !fits || !room || attributes.reliability == Reliability::Reception {
            return Ok(false);
        }
        let table = &port.nic.memory;
        if place.is_some_and(|place| recent.check(table, &place, attributes.ptag).is_none()) {
            return Ok(false);
        }
        let Some((region, offset)) = recent.check(table, segment, attributes.ptag) else { return Ok(false) };
        let mut whole = [0; SMALL];
        whole[..SHORT].copy_from_slice(&Header::new(Kind::Message, segment.len, *immediate).emit()[..SHORT]);
        if wires.transfer_out.space()? < SHORT + len || region.read(offset, &mut whole[SHORT..SHORT + len]).is_err() {
            return Ok(false);
        }
        wires.credits.pop_front();
        wires.transfer_out.push(&whole[..SHORT + len])?;
        wires.transfer_out.publish()?;
        let flag = if immediate.is_some() { Status::IMMEDIATE } else { Status(0) };
        let status = Status::DONE.and(Status::OP_SEND).and(flag);
        let completion =
            Completion { token: *token, status, len: segment.len, immediate: *immediate, continues: false };
        sends.done.push_back(completion);
        port.completed(Queue::Send, &completion);
        Ok(true)
    }

    /// Posts a send or an RDMA operation.
    pub(crate) fn post_send(&mut self, descriptor: &Descriptor, flow: FlowControl) -> Result<()> {
        if self.sends.items.len() + self.sends.done.len() >= MAX_DESCRIPTORS {
            return Err(Error::Limit { what: "descriptors of a queue", limit: MAX_DESCRIPTORS });
        }
        match self.send_small(descriptor) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(loss) => self.lose(loss),
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
            let out_of_credits = self.wires.as_ref().is_none_or(|wires| wires.credits.is_empty());
            if out_of_credits && self.sends.started < self.sends.items.len() {
                self.take_cookies()?;
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
            let moved = wires.monitors.cookies.written() != self.seen_cookies;
            if let Some((queue, source)) = port.sources.last().filter(|_| moved) {
                queue.deliver(*source);
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
                Record::Ready => wires.ready = true,
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
