//! The send queue: what is posted is sent in order, as far as the connection lets it.

use crate::{
    attributes::{MAX_DESCRIPTORS, Reliability, ViAttributes},
    code::{Status, ViState},
    cq::Queue,
    descriptor::{Completion, Descriptor, Operation},
    entry::{CREDIT, Fault, HEAD, Header, Kind, LINE},
    error::{Error, Result},
    fifo::{Few, Later},
    line::Line,
    memory::Piece,
    vi::{
        item::{Circumstances, SendItem, Stage},
        posted::ReceiveQueue,
        state::{FlowControl, Loss, State, Way},
        tell::cookies,
    },
};

#[derive(Debug)]
#[repr(C)]
pub(crate) struct SendQueue {
    pub(super) done: Few<Completion>,
    pub(super) items: Later<SendItem>,
    /// Answers to reads of the peer.
    responses: Later<Response>,
    /// How many items have been handed over; they wait for an answer, or for their turn to complete.
    started: u32,
    /// RDMA reads without an answer.
    pub(super) reads: u32,
}

/// An answer to a read of the peer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) piece: Option<Piece>,
    pub(crate) fault: Fault,
    pub(crate) sent: usize,
}

/// Reads of the peer that wait for an answer.
const MAX_RESPONSES: usize = 2 * MAX_DESCRIPTORS;
/// The longest message that goes out with its head in one copy.
pub(super) const SMALL: usize = 240;
/// Receives of the peer that are left to others by who leaves room to them.
pub(super) const SPARED_RECEIVES: usize = 4;
/// As long as most: fewer bytes are made ready for it.
const TINY: usize = 48;
/// Cookies that a small message takes with it.
const MAX_BESIDE: usize = 3;
const BESIDE: usize = HEAD + CREDIT * MAX_BESIDE;

impl Default for SendQueue {
    fn default() -> SendQueue {
        // A send waits now and then, however well a program is warmed up.
        let items = Later::with_room();
        SendQueue { done: Few::default(), items, responses: Later::default(), started: 0, reads: 0 }
    }
}

impl SendQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.done.is_empty()
    }

    /// Whether something has not been handed over or answered.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        !self.items.is_empty() || !self.responses.is_empty()
    }

    /// Whether something has not been handed over.
    pub(crate) fn has_waiting(&self) -> bool {
        self.items.len() > self.started as usize
    }

    pub(crate) fn respond(&mut self, response: Response) -> Result<(), Loss> {
        if self.responses.len() >= MAX_RESPONSES {
            return Err("too many reads at once".into());
        }
        self.responses.push(response);
        Ok(())
    }

    /// Whether an answer of this length is expected.
    pub(crate) fn check_read(&self, len: u32, failed: bool) -> Result<(), Loss> {
        let expected = self.oldest_read().is_some_and(|item| failed && len == 0 || !failed && item.total == len);
        if expected { Ok(()) } else { Err("data that nobody asked for".into()) }
    }

    /// Where the data of the oldest read go.
    pub(crate) fn reading(&self) -> Result<&[Piece], Loss> {
        self.oldest_read().map(|item| item.pieces.as_slice()).ok_or("data that nobody asked for".into())
    }

    /// RDMA operations that were begun and have not ended: what they are, and their tokens.
    pub(crate) fn rdma_under_way(&self) -> Vec<(Status, u64)> {
        let begun = |item: &&SendItem| {
            let sending = matches!(item.stage, Stage::Sending(_, _, sent) if sent > 0);
            let moving = sending || matches!(item.stage, Stage::Moving(..) | Stage::Answer | Stage::Reading);
            moving && item.operation != Operation::Send
        };
        self.items.from(0).filter(begun).map(|item| (item.operation.status(), item.token)).collect()
    }

    fn oldest_read(&self) -> Option<&SendItem> {
        self.items.from(0).find(|item| matches!(item.stage, Stage::Reading))
    }

    /// The oldest item the peer has to answer.
    pub(super) fn answered(&mut self) -> Result<&mut SendItem, Loss> {
        let found = self.items.iter_mut().find(|item| matches!(item.stage, Stage::Answer));
        found.ok_or("an answer to nothing".into())
    }
}

impl State {
    /// The short way of a small message that nothing is in front of: it has been sent when this returns. `false`: it has to
    /// go the long way.
    #[inline]
    fn send_small(&mut self, descriptor: &Descriptor, flow: FlowControl) -> Result<bool, Loss> {
        let Descriptor { token, operation: Operation::Send, immediate, segments, place, fault: None, .. } = descriptor
        else {
            return Ok(false);
        };
        let mut segments = segments.iter();
        let (Some(segment), None) = (segments.next(), segments.next()) else { return Ok(false) };
        if segment.len as usize > SMALL {
            return Ok(false);
        }
        let State { line: Some(line), sends, receives, recent, port, attributes, way, split, .. } = self else {
            return Ok(false);
        };
        let table = &port.nic.memory;
        if place.is_some_and(|place| recent.check(table, &place, attributes.ptag).is_none()) {
            return Ok(false);
        }
        let Some((region, offset)) = recent.check(table, segment, attributes.ptag) else { return Ok(false) };
        let outlet = Outlet { line, sends, receives, attributes, way: *way, split: *split };
        let fill = |bytes: &mut [u8]| region.read(offset, bytes).is_ok();
        if !outlet.put(segment.len as usize, *immediate, flow, 0, fill)? {
            return Ok(false);
        }
        let flag = if immediate.is_some() { Status::IMMEDIATE } else { Status(0) };
        let status = Status::DONE.and(Status::OP_SEND).and(flag);
        let completion =
            Completion { token: *token, status, len: segment.len, immediate: *immediate, continues: false };
        self.complete(Queue::Send, completion, None);
        Ok(true)
    }

    /// What a small message needs, if there is a connection.
    #[inline]
    pub(super) fn outlet(&mut self) -> Option<Outlet<'_>> {
        let State { line, sends, receives, attributes, way, split, .. } = self;
        Some(Outlet { line: line.as_mut()?, sends, receives, attributes, way: *way, split: *split })
    }
}

/// What a small message needs of its VI.
pub(super) struct Outlet<'a> {
    line: &'a mut Line,
    sends: &'a SendQueue,
    receives: &'a mut ReceiveQueue,
    attributes: &'a ViAttributes,
    way: Way,
    split: bool,
}

impl Outlet<'_> {
    /// Puts a small message on its way, with the cookies that the peer has not been told. `spared` bytes of room are
    /// left, and some receives, if it is not 0.
    #[inline(always)]
    pub(super) fn put(
        self,
        len: usize,
        immediate: Option<u32>,
        flow: FlowControl,
        spared: usize,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> Result<bool, Loss> {
        let Outlet { line, sends, receives, attributes, way, split } = self;
        let fits = match line.credits.front() {
            Some(credit) => credit.total as usize >= len,
            None => flow == FlowControl::Compliant && !split,
        };
        let fits = fits && (spared == 0 || line.credits.len() > SPARED_RECEIVES);
        let room = len <= SMALL && len <= attributes.max_transfer;
        if sends.is_busy() || !fits || !room || attributes.reliability == Reliability::Reception || way == Way::Rdma {
            return Ok(false);
        }
        let mut outward = line.route.trunk.outward();
        // The message, and then cookies, end with a line of memory.
        let (mut tiny, mut small);
        let bytes: &mut [u8] = match len {
            ..=TINY => {
                tiny = [0; HEAD + TINY + BESIDE + LINE];
                &mut tiny
            }
            _ => {
                small = [0; HEAD + SMALL + BESIDE + LINE];
                &mut small
            }
        };
        let header = Header::new(Kind::Message, line.theirs, len as u32).with_immediate(immediate);
        let owing = receives.owes_cookies();
        let header = if owing { header } else { header.padded(outward.position()) };
        let mut whole = header.whole();
        bytes[..HEAD].copy_from_slice(&header.emit()[..HEAD]);
        if !fill(&mut bytes[HEAD..HEAD + len]) {
            return Ok(false);
        }
        if owing {
            let position = outward.position() + whole as u64;
            whole += cookies(line, receives, MAX_BESIDE, position, &mut bytes[whole..]);
        }
        if !outward.has_room(whole + spared)? {
            return Ok(false);
        }
        outward.push(&bytes[..whole])?;
        line.carried = outward.position();
        outward.publish()?;
        drop(outward);
        if owing {
            receives.note_told();
        }
        line.credits.pop();
        line.sent = line.sent.wrapping_add(1);
        Ok(true)
    }
}

impl State {
    /// Posts a send or an RDMA operation.
    #[inline]
    pub(crate) fn post_send(&mut self, descriptor: &Descriptor, flow: FlowControl) -> Result<()> {
        if self.sends.items.len() + self.sends.done.len() >= MAX_DESCRIPTORS {
            return Err(Error::Limit { what: "descriptors of a queue", limit: MAX_DESCRIPTORS });
        }
        match self.send_small(descriptor, flow) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(loss) => self.lose(loss),
        }
        self.post_long(descriptor, flow)
    }

    #[inline(never)]
    fn post_long(&mut self, descriptor: &Descriptor, flow: FlowControl) -> Result<()> {
        let needs_receive = match descriptor.operation {
            Operation::Send => true,
            Operation::RdmaWrite(_) => descriptor.immediate.is_some(),
            Operation::RdmaRead(_) => false,
        };
        if (flow != FlowControl::Compliant || self.split)
            && let Err(loss) = self.ask_flow()
        {
            self.lose(loss);
        }
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
        let place = descriptor.place.filter(|_| fault.is_none()).map(|place| place.handle);
        let item = SendItem { token, place, operation, immediate, fence, pieces, total, moved: 0, flow, stage };
        self.sends.items.push(item);
        match self.status {
            ViState::Connected => self.pump_sends(),
            _ => self.retire(),
        }
        Ok(())
    }

    /// Asks the peer, once, to tell of its receives: sends shall wait for them.
    pub(crate) fn ask_flow(&mut self) -> Result<(), Loss> {
        let Some(line) = self.line.as_mut().filter(|line| !line.asked) else { return Ok(()) };
        let mut outward = line.route.trunk.outward();
        line.asked = outward.put(&Header::new(Kind::Flow, line.theirs, 0), &[])?;
        outward.publish()
    }

    /// Whether a receive is posted at the peer that is not spoken for.
    pub(crate) fn may_send(&self) -> bool {
        let waiting = self.sends.items.len() - self.sends.started as usize;
        self.line.as_ref().is_none_or(|line| line.credits.len() > waiting)
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
        // A message that has begun is finished first: nothing of this VI may come between its parts.
        let begun = |item: &SendItem| matches!(item.stage, Stage::Sending(_, _, sent) if sent > 0);
        if !self.sends.items.get(self.sends.started as usize).is_some_and(begun) && !self.advance_responses()? {
            return Ok(());
        }
        loop {
            let State { line, sends, attributes, split, way, .. } = self;
            let Some(line) = line else { break };
            let Some(item) = sends.items.get_mut(sends.started as usize) else { break };
            let around =
                Circumstances { reliability: attributes.reliability, split: *split, way: *way, reads: sends.reads };
            let going = item.step(line, &around)?;
            // Only looking again shows how far the link is, or whether there is room.
            let pollable = matches!(item.stage, Stage::Moving(..) | Stage::Sending(..));
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
                if pollable {
                    self.wait_for_room();
                }
                break;
            }
        }
        if self.sends.responses.is_empty() { Ok(()) } else { self.advance_later() }
    }

    /// Responses that came while a message was being sent.
    fn advance_later(&mut self) -> Result<(), Loss> {
        if !self.waiting {
            self.advance_responses()?;
        }
        Ok(())
    }

    /// Sends answers to reads. `false`: no room.
    fn advance_responses(&mut self) -> Result<bool, Loss> {
        loop {
            let State { line: Some(line), sends, .. } = self else { return Ok(true) };
            let Some(Response { piece, fault, sent }) = sends.responses.front_mut() else { return Ok(true) };
            let alive = piece.as_ref().is_none_or(|piece| piece.registration.is_alive());
            let total = piece.as_ref().map_or(0, |piece| piece.len);
            if !alive && *sent == 0 {
                (*piece, *fault) = (None, Fault::Protection);
                continue;
            }
            if !alive {
                return Err(Loss::BROKEN);
            }
            let header = Header::new(Kind::ReadData, line.theirs, total as u32).with_fault(*fault);
            let put = line.route.trunk.outward().put_part(&header, piece.as_slice(), (0, *sent, total))?;
            let Some(count) = put else {
                self.wait_for_room();
                return Ok(false);
            };
            *sent += count;
            if *sent == total {
                sends.responses.pop();
            }
        }
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
                Stage::Waiting | Stage::Sending(_, _, 0) => Status::FLUSHED,
                // On its way when the connection went.
                Stage::Sending(..) | Stage::Moving(..) | Stage::Answer | Stage::Reading => Status::TRANSPORT_ERROR,
            };
            self.complete_send(status);
        }
        self.sends.started = 0;
        self.sends.reads = 0;
        self.sends.responses.clear();
    }

    fn complete_send(&mut self, outcome: Status) {
        let Some(item) = self.sends.items.pop() else { return };
        self.sends.started = self.sends.started.saturating_sub(1);
        let operation = item.operation.status();
        let immediate = if item.immediate.is_some() { Status::IMMEDIATE } else { Status(0) };
        let completion = Completion {
            token: item.token,
            status: Status::DONE.and(operation).and(immediate).and(outcome),
            len: if outcome.is_error() { 0 } else { item.total },
            immediate: item.immediate,
            continues: false,
        };
        self.complete(Queue::Send, completion, item.place);
    }
}
