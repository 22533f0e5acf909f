//! The receive queue: posting, and placing what arrives.

use crate::{
    attributes::{MAX_DESCRIPTORS, Reliability},
    code::{ErrorCode, Status, ViState},
    cq::Queue,
    descriptor::{Completion, Descriptor},
    entry::{Fault, Header, Kind},
    error::{Error, Result},
    memory::Piece,
    trunk::Source,
    vi::{
        item::DIRECT_MIN,
        posted::Receive,
        send::Response,
        state::{Loss, State},
    },
};

/// A message of which not all bytes have arrived.
#[derive(Debug)]
pub(super) struct Incoming {
    header: Header,
    target: Target,
    arrived: usize,
    failed: Option<Status>,
}

#[derive(Debug)]
enum Target {
    /// The first posted receive.
    Receive,
    /// Memory, for a remote write.
    Memory(Piece),
    /// The buffers of the oldest read.
    Read,
    /// The bytes are stepped over.
    Nowhere,
}

impl Incoming {
    pub(super) fn is_write(&self) -> bool {
        matches!(self.target, Target::Memory(_))
    }
}

impl State {
    /// Whether a message that comes now is dropped: the VI is unreliable, and has no receive for it.
    #[inline]
    pub(crate) fn drops_messages(&self) -> bool {
        self.attributes.reliability == Reliability::Unreliable && self.receives.posted.is_empty()
    }

    /// Posts a receive.
    #[inline]
    pub(crate) fn post_receive(&mut self, descriptor: &Descriptor) -> Result<()> {
        if self.receives.posted.len() + self.receives.done.len() >= MAX_DESCRIPTORS {
            return Err(Error::Limit { what: "descriptors of a queue", limit: MAX_DESCRIPTORS });
        }
        let (pieces, total, fault) = self.resolve(descriptor, true);
        let turn = pieces.as_slice().first().map_or(0, |piece| piece.registration.turn());
        let place = descriptor.place.filter(|_| fault.is_none()).map(|place| place.handle);
        let receive = Receive { token: descriptor.token, pieces, total, turn, place, fault };
        self.receives.telling_pays |= receive.pays_telling();
        self.receives.posted.push(receive);
        match self.status {
            ViState::Connected => {
                if self.receives.cookies_are_due()
                    && let Err(loss) = self.tell()
                {
                    self.lose(loss);
                }
            }
            ViState::Error => self.flush_receives(),
            _ => {}
        }
        Ok(())
    }

    /// Takes a message, or the first part of one.
    #[inline]
    pub(crate) fn take_message(&mut self, header: &Header, source: &mut Source<'_>) -> Result<(), Loss> {
        self.begin()?;
        self.receives.count();
        let Some(receive) = self.receives.posted.front() else { return self.no_receive(header) };
        if header.total() > receive.total || receive.fault.is_some() {
            return self.unfit(header);
        }
        if header.len == header.total() {
            // All of it is here.
            let failed = source.place(receive.pieces.as_slice(), 0, header.len as usize)?;
            return self.finish_receive(header, failed);
        }
        if header.is_here() {
            // Withdrawn meanwhile: the peer wrote to pages that are not these any more.
            let there = |piece: &Piece| piece.registration.is_alive() && receive.turn == piece.registration.turn();
            let gone = !receive.pieces.as_slice().iter().all(there);
            return self.finish_receive(header, gone.then_some(Status::PROTECTION_ERROR));
        }
        self.take_first(header, Target::Receive, None, source)
    }

    /// Takes an RDMA write, or the first part of one.
    pub(crate) fn take_write(&mut self, header: &Header, source: &mut Source<'_>) -> Result<(), Loss> {
        self.begin()?;
        if header.immediate().is_some() {
            self.receives.count();
        }
        let piece = self.accessible(header, true);
        let failed = piece.is_none().then_some(Status::RDMA_PROT_ERROR);
        if let Some(piece) = &piece {
            self.tell_reach(&piece.registration)?;
        }
        if header.is_here() {
            return self.finish_write(header, failed);
        }
        self.take_first(header, piece.map_or(Target::Nowhere, Target::Memory), failed, source)
    }

    /// A peer wants to read.
    pub(crate) fn take_read(&mut self, header: &Header) -> Result<(), Loss> {
        let piece = self.accessible(header, false);
        let fault = if piece.is_some() { Fault::None } else { Fault::Protection };
        match &piece {
            Some(piece) => self.tell_reach(&piece.registration)?,
            None => self.port.report(ErrorCode::RdmaReadProtection, Status::OP_RDMA_READ),
        }
        self.sends.respond(Response { piece, fault, sent: 0 })?;
        self.pump_sends();
        Ok(())
    }

    /// Takes the answer to a read, or its first part.
    pub(crate) fn take_read_data(&mut self, header: &Header, source: &mut Source<'_>) -> Result<(), Loss> {
        self.begin()?;
        self.sends.check_read(header.total(), header.extra != 0)?;
        self.take_first(header, Target::Read, None, source)
    }

    /// Takes a further part.
    pub(crate) fn take_more(&mut self, header: &Header, source: &mut Source<'_>) -> Result<(), Loss> {
        let Some(incoming) = self.receives.incoming.take() else { return Err("a part of nothing".into()) };
        self.take_part(incoming, header.len as usize, source)
    }

    /// The peer wants to be told of posted receives.
    pub(crate) fn take_flow(&mut self) -> Result<(), Loss> {
        self.receives.telling_pays = true;
        self.receives.asked = true;
        self.tell()
    }

    /// The last message must be complete.
    #[inline]
    fn begin(&mut self) -> Result<(), Loss> {
        match self.receives.incoming {
            None => Ok(()),
            Some(_) => Err("a message within another".into()),
        }
    }

    fn take_first(
        &mut self,
        header: &Header,
        target: Target,
        failed: Option<Status>,
        source: &mut Source<'_>,
    ) -> Result<(), Loss> {
        let incoming = Box::new(Incoming { header: *header, target, arrived: 0, failed });
        self.take_part(incoming, header.len as usize, source)
    }

    fn take_part(&mut self, mut incoming: Box<Incoming>, len: usize, source: &mut Source<'_>) -> Result<(), Loss> {
        let total = incoming.header.total() as usize;
        if len > total - incoming.arrived {
            return Err("more bytes than were announced".into());
        }
        let ends = incoming.arrived + len == total;
        let pieces = match &incoming.target {
            _ if incoming.failed.is_some() => &[],
            Target::Memory(piece) if ends => {
                incoming.failed = source.place_end(piece, incoming.arrived, len)?;
                &[]
            }
            Target::Receive => match self.receives.posted.front() {
                Some(receive) => receive.pieces.as_slice(),
                None => return Err("a message without its receive".into()),
            },
            Target::Memory(piece) => std::slice::from_ref(piece),
            Target::Read => self.sends.reading()?,
            Target::Nowhere => &[],
        };
        if !pieces.is_empty() {
            incoming.failed = source.place(pieces, incoming.arrived, len)?;
        }
        incoming.arrived += len;
        if incoming.arrived < total {
            self.receives.incoming = Some(incoming);
            return Ok(());
        }
        let Incoming { header, target, failed, .. } = *incoming;
        match (header.kind, target) {
            (Kind::Message, Target::Nowhere) => Ok(()),
            (Kind::Message, _) => self.finish_receive(&header, failed),
            (Kind::ReadData, _) => self.finish_read(&header, failed),
            _ => self.finish_write(&header, failed),
        }
    }

    fn finish_write(&mut self, header: &Header, failed: Option<Status>) -> Result<(), Loss> {
        if failed.is_some() {
            self.port.report(ErrorCode::RdmaWriteProtection, Status::OP_REMOTE_RDMA_WRITE);
            return match self.is_answered(header) {
                // The initiator ends the connection.
                true => self.answer(Fault::Protection),
                false if self.is_reliable() => Err(Loss::TOLD),
                false => Ok(()),
            };
        }
        if header.immediate().is_some() {
            return match self.receives.posted.front() {
                None => self.no_receive(header),
                Some(Receive { fault: Some(_), .. }) => self.unfit(header),
                Some(_) => self.finish_receive(header, None),
            };
        }
        self.answer(Fault::None)
    }

    /// Whether the sender of a message, or the initiator of a write, waits for an answer.
    #[inline]
    fn is_answered(&self, header: &Header) -> bool {
        match (self.attributes.reliability, header.kind) {
            (Reliability::Unreliable, _) => false,
            (Reliability::Delivery, Kind::Write) => !header.is_here(),
            (Reliability::Delivery, _) => false,
            (Reliability::Reception, _) => !header.continues(),
        }
    }

    /// The first receive has got its message.
    #[inline]
    fn finish_receive(&mut self, header: &Header, failed: Option<Status>) -> Result<(), Loss> {
        let operation = operation_of(header);
        let immediate = header.immediate();
        let flag = if immediate.is_some() { Status::IMMEDIATE } else { Status(0) };
        let Some(receive) = self.receives.pop() else { return Err("a message without a receive".into()) };
        self.receives.eager = header.total() >= DIRECT_MIN;
        self.recent.keep(receive.pieces);
        let completion = Completion {
            token: receive.token,
            status: Status::DONE.and(operation).and(flag).and(failed.unwrap_or(Status(0))),
            len: header.total(),
            immediate,
            continues: header.continues(),
        };
        self.complete(Queue::Receive, completion, receive.place);
        if self.is_answered(header) {
            self.answer(if failed.is_some() { Fault::Descriptor } else { Fault::None })?;
        }
        if failed.is_some() && self.is_reliable() {
            return Err(Loss::TOLD);
        }
        if self.receives.cookies_are_due() { self.tell() } else { Ok(()) }
    }

    /// A message, or a write with immediate data, found no receive.
    #[cold]
    fn no_receive(&mut self, header: &Header) -> Result<(), Loss> {
        if !self.is_reliable() {
            return self.step_over(header);
        }
        self.port.report(ErrorCode::ReceiveQueueEmpty, operation_of(header));
        self.refuse(Fault::NoReceive, header)
    }

    /// A message, or a write with immediate data, met a receive that was bad from the start, or is too short for it.
    #[cold]
    fn unfit(&mut self, header: &Header) -> Result<(), Loss> {
        let mut fault = Fault::Length;
        if let Some(receive) = self.receives.pop() {
            if receive.fault.is_some() {
                fault = Fault::Descriptor;
            }
            let outcome = receive.fault.unwrap_or(Status::LENGTH_ERROR);
            self.complete_receive(&receive, operation_of(header).and(outcome));
        }
        if self.is_reliable() { self.refuse(fault, header) } else { self.step_over(header) }
    }

    /// Tells a sender that waits for an answer, and ends the connection. With reliable delivery what is wrong with a receive
    /// is no concern of the sender, whichever way the bytes of its write went.
    fn refuse(&mut self, fault: Fault, header: &Header) -> Result<(), Loss> {
        if self.is_answered(header) {
            self.answer(if self.attributes.reliability == Reliability::Reception { fault } else { Fault::None })?;
        }
        Err(Loss::TOLD)
    }

    /// What follows of a message that nobody takes goes nowhere.
    fn step_over(&mut self, header: &Header) -> Result<(), Loss> {
        if header.kind == Kind::Message && header.len < header.total() && !header.is_here() {
            let arrived = header.len as usize;
            self.receives.incoming =
                Some(Box::new(Incoming { header: *header, target: Target::Nowhere, arrived, failed: None }));
        }
        Ok(())
    }

    /// The memory of this side that a remote operation names, if it may.
    fn accessible(&mut self, header: &Header, write: bool) -> Option<Piece> {
        let remote = header.remote;
        let State { recent, port, attributes, .. } = self;
        let entry = recent.find(&port.nic.memory, remote.handle)?;
        let allowed = match write {
            true => attributes.rdma_write && entry.allows_write(),
            false => attributes.rdma_read && entry.allows_read(),
        };
        let len = header.total() as usize;
        if !allowed || entry.ptag() != attributes.ptag || !entry.contains(remote.address, len as u64) {
            return None;
        }
        Some(Piece { registration: entry.clone(), offset: (remote.address - entry.base) as usize, len })
    }

    fn answer(&mut self, fault: Fault) -> Result<(), Loss> {
        if !self.is_reliable() {
            return Ok(());
        }
        match fault {
            Fault::None if self.receives.failures.is_empty() => self.receives.answers += 1,
            fault => self.receives.failures.push(fault),
        }
        self.tell()
    }

    pub(crate) fn flush_receives(&mut self) {
        let partial = self.receives.incoming.take().is_some_and(|incoming| matches!(incoming.target, Target::Receive));
        let mut status = if partial { Status::PARTIAL_ERROR } else { Status::FLUSHED };
        while let Some(receive) = self.receives.pop() {
            self.complete_receive(&receive, Status::OP_RECEIVE.and(status));
            status = Status::FLUSHED;
        }
        let receives = &mut self.receives;
        (receives.told, receives.taken, receives.next, receives.telling) = (0, 0, 0, 0);
        (receives.eager, receives.telling_pays, receives.asked) = (false, false, false);
        receives.answers = 0;
        receives.failures.clear();
    }

    fn complete_receive(&mut self, receive: &Receive, outcome: Status) {
        let (token, status) = (receive.token, Status::DONE.and(outcome));
        let completion = Completion { token, status, len: 0, immediate: None, continues: false };
        self.complete(Queue::Receive, completion, receive.place);
    }
}

/// What a receive was used by.
#[inline]
fn operation_of(header: &Header) -> Status {
    match header.kind {
        Kind::Write => Status::OP_REMOTE_RDMA_WRITE,
        _ => Status::OP_RECEIVE,
    }
}
