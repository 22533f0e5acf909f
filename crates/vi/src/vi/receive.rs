//! The receive queue: posting, telling the peer, placing what arrives.

use std::collections::VecDeque;

use crate::{
    attributes::{MAX_DESCRIPTORS, Reliability},
    code::{ErrorCode, Resource, Status, ViState},
    cq::Queue,
    descriptor::{Completion, Descriptor, List},
    entry::{Fault, Header, Kind, LONG},
    error::{Error, Result},
    memory::Piece,
    vi::{
        send::Response,
        state::{Loss, State, completions},
    },
};

#[derive(Debug)]
pub(crate) struct ReceiveQueue {
    pub(super) posted: VecDeque<Receive>,
    pub(crate) done: VecDeque<Completion>,
    incoming: Option<Incoming>,
    /// Messages placed and not told, where the sender waits for that.
    pub(super) answers: u32,
    pub(super) failures: VecDeque<Fault>,
    /// How many of `posted` the peer knows of.
    pub(super) told: usize,
}

#[derive(Debug)]
pub(super) struct Receive {
    token: u64,
    pub(super) pieces: List<Piece>,
    pub(super) total: u32,
    pub(super) fault: Option<Status>,
}

/// A message of which not all bytes have arrived.
#[derive(Debug)]
struct Incoming {
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

/// Bytes that are looked at in one go: the head, and a small message with it.
const LOOK: usize = 256;
/// Bytes of a large message that are taken at a time.
pub(crate) const BOUNCE: usize = 16 << 10;
impl Default for ReceiveQueue {
    fn default() -> ReceiveQueue {
        ReceiveQueue {
            posted: VecDeque::with_capacity(16),
            done: completions(),
            incoming: None,
            answers: 0,
            failures: VecDeque::new(),
            told: 0,
        }
    }
}

impl ReceiveQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.posted.is_empty() && self.done.is_empty()
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.posted.is_empty()
    }
}

impl State {
    /// Posts a receive.
    pub(crate) fn post_receive(&mut self, descriptor: &Descriptor) -> Result<()> {
        if self.receives.posted.len() + self.receives.done.len() >= MAX_DESCRIPTORS {
            return Err(Error::Limit { what: "descriptors of a queue", limit: MAX_DESCRIPTORS });
        }
        let (pieces, total, fault) = self.resolve(descriptor, true);
        self.receives.posted.push_back(Receive { token: descriptor.token, pieces, total, fault });
        match (self.status, fault) {
            (ViState::Error, _) => self.flush_receives(),
            (ViState::Connected, Some(_)) if self.is_reliable() => self.lose(Loss::TOLD),
            (_, Some(_)) => self.settle_faults(),
            (ViState::Connected, None) => {
                if let Err(loss) = self.tell_receives() {
                    self.lose(loss);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes everything that has arrived.
    pub(crate) fn take_transfers(&mut self) -> Result<(), Loss> {
        let Some(wires) = &self.wires else { return Ok(()) };
        self.seen = wires.monitors.transfer.written();
        while self.take_transfer()? {}
        self.tell_answers()
    }

    /// Takes one entry, or a part of one. `false`: nothing more is here.
    fn take_transfer(&mut self) -> Result<bool, Loss> {
        if self.receives.incoming.is_some() {
            return self.take_more();
        }
        let Some(wires) = &mut self.wires else { return Ok(false) };
        let mut look = [0; LOOK];
        let here = wires.transfer_in.peek(0, &mut look)?;
        let Some(header) = Header::parse(&look[..here])? else { return Ok(false) };
        let (size, body) = (header.size(), header.body());
        if header.kind == Kind::Message && here >= size + body && self.receives.head_takes(body) {
            // A small message: all of it has been copied out.
            wires.transfer_in.consume(size + body)?;
            let receive = self.receives.posted.front().expect("looked at above");
            let failed = place(receive.pieces.as_slice(), 0, &look[size..size + body]).err();
            self.finish_receive(&header, failed)?;
            return Ok(true);
        }
        wires.transfer_in.consume(size)?;
        self.begin_incoming(header)
    }

    fn begin_incoming(&mut self, header: Header) -> Result<bool, Loss> {
        let mut incoming = Incoming { header, target: Target::Nowhere, arrived: 0, failed: None };
        match header.kind {
            Kind::Message | Kind::Placed => {
                let fits = self.receives.head().is_some_and(|receive| header.len <= receive.total);
                if !fits {
                    return Err("a message without a receive that fits".into());
                }
                incoming.target = Target::Receive;
            }
            Kind::Fault => return self.take_fault(header.fault).map(|()| true),
            Kind::Write => match self.accessible(&header, true) {
                Some(piece) => incoming.target = Target::Memory(piece),
                None => incoming.failed = Some(Status::RDMA_PROT_ERROR),
            },
            Kind::Read => {
                let (piece, fault) = match self.accessible(&header, false) {
                    Some(piece) => (Some(piece), Fault::None),
                    None => (None, Fault::Protection),
                };
                if fault != Fault::None {
                    self.port.report(ErrorCode::RdmaReadProtection, Resource::Vi, 0);
                }
                self.sends.respond(Response { piece, fault })?;
                return Ok(true);
            }
            Kind::ReadData => {
                incoming.target = Target::Read;
                self.sends.check_read(header.len, header.fault)?;
            }
        }
        self.receives.incoming = Some(incoming);
        if header.body() == 0 { self.finish_incoming().map(|()| true) } else { Ok(true) }
    }

    /// Takes more bytes of a message that has begun.
    fn take_more(&mut self) -> Result<bool, Loss> {
        let State { wires, receives, sends, scratch, .. } = self;
        let (Some(wires), Some(incoming)) = (wires, &mut receives.incoming) else { return Ok(false) };
        scratch.resize(BOUNCE, 0);
        let left = incoming.header.body() - incoming.arrived;
        let count = wires.transfer_in.try_receive(&mut scratch[..left.min(BOUNCE)])?;
        if count == 0 {
            return Ok(false);
        }
        let bytes = &scratch[..count];
        let placed = match (&incoming.target, incoming.failed) {
            (_, Some(_)) | (Target::Nowhere, _) => Ok(()),
            (Target::Receive, _) => match receives.posted.front() {
                Some(receive) => place(receive.pieces.as_slice(), incoming.arrived, bytes),
                None => return Err("a message without a receive".into()),
            },
            (Target::Memory(piece), _) => piece.write(incoming.arrived, bytes),
            (Target::Read, _) => place(sends.reading()?, incoming.arrived, bytes),
        };
        if let Err(status) = placed {
            incoming.failed = Some(status);
        }
        incoming.arrived += count;
        if incoming.arrived == incoming.header.body() {
            self.finish_incoming()?;
        }
        Ok(true)
    }

    fn finish_incoming(&mut self) -> Result<(), Loss> {
        let Some(Incoming { header, failed, .. }) = self.receives.incoming.take() else { return Ok(()) };
        match header.kind {
            Kind::Message | Kind::Placed => self.finish_receive(&header, failed),
            Kind::ReadData => self.finish_read(&header, failed),
            Kind::Write => {
                if failed.is_some() {
                    self.port.report(ErrorCode::RdmaWriteProtection, Resource::Vi, 0);
                    self.answer(Fault::Protection);
                    return Ok(());
                }
                if header.immediate.is_some() {
                    return self.finish_receive(&header, None);
                }
                self.answer(Fault::None);
                Ok(())
            }
            Kind::Fault | Kind::Read => Ok(()),
        }
    }

    /// The first receive has got its message.
    fn finish_receive(&mut self, header: &Header, failed: Option<Status>) -> Result<(), Loss> {
        let operation = match header.kind {
            Kind::Write => Status::OP_REMOTE_RDMA_WRITE,
            _ => Status::OP_RECEIVE,
        };
        let immediate = if header.immediate.is_some() { Status::IMMEDIATE } else { Status(0) };
        let Some(receive) = self.receives.pop() else { return Err("a message without a receive".into()) };
        let completion = Completion {
            token: receive.token,
            status: Status::DONE.and(operation).and(immediate).and(failed.unwrap_or(Status(0))),
            len: header.len,
            immediate: header.immediate,
            continues: header.continues,
        };
        self.receives.done.push_back(completion);
        self.port.completed(Queue::Receive, &completion);
        let whole = self.attributes.reliability == Reliability::Reception && !header.continues;
        if header.kind == Kind::Write || whole {
            self.answer(if failed.is_some() { Fault::Descriptor } else { Fault::None });
        }
        if failed.is_some() && self.is_reliable() {
            let _ = self.tell_answers();
            return Err(Loss::TOLD);
        }
        self.settle_faults();
        Ok(())
    }

    /// The peer could not send.
    fn take_fault(&mut self, fault: Fault) -> Result<(), Loss> {
        match fault {
            Fault::NoReceive => {
                self.port.report(ErrorCode::ReceiveQueueEmpty, Resource::Vi, 0);
                Err(Loss::TOLD)
            }
            Fault::Length => {
                let Some(receive) = self.receives.pop() else { return Err("a fault without a receive".into()) };
                self.complete_receive(receive.token, Status::LENGTH_ERROR);
                if self.is_reliable() { Err(Loss::TOLD) } else { Ok(()) }
            }
            _ => Err("an unexpected fault".into()),
        }
    }

    /// The memory of this side that a remote operation names, if it may.
    fn accessible(&mut self, header: &Header, write: bool) -> Option<Piece> {
        let remote = header.remote?;
        let State { recent, port, attributes, .. } = self;
        let entry = recent.find(&port.nic.memory, remote.handle)?;
        let allowed = match write {
            true => attributes.rdma_write && entry.allows_write(),
            false => attributes.rdma_read && entry.allows_read(),
        };
        let len = header.len as usize;
        if !allowed || entry.ptag() != attributes.ptag || !entry.contains(remote.address, len as u64) {
            return None;
        }
        Some(Piece { registration: entry.clone(), offset: (remote.address - entry.base) as usize, len })
    }

    fn answer(&mut self, fault: Fault) {
        if !self.is_reliable() {
            return;
        }
        match fault {
            Fault::None if self.receives.failures.is_empty() => self.receives.answers += 1,
            fault => self.receives.failures.push_back(fault),
        }
    }

    /// Completes receives that were bad from the start, once they are first.
    fn settle_faults(&mut self) {
        while let Some(Receive { token, fault: Some(status), .. }) = self.receives.posted.front() {
            let (token, status) = (*token, *status);
            self.receives.pop();
            self.complete_receive(token, status);
        }
    }

    pub(crate) fn flush_receives(&mut self) {
        let partial = self.receives.incoming.take().is_some_and(|incoming| matches!(incoming.target, Target::Receive));
        let mut status = if partial { Status::PARTIAL_ERROR } else { Status::FLUSHED };
        while let Some(receive) = self.receives.pop() {
            self.complete_receive(receive.token, receive.fault.unwrap_or(status));
            status = Status::FLUSHED;
        }
        self.receives.told = 0;
        self.receives.answers = 0;
        self.receives.failures.clear();
    }

    fn complete_receive(&mut self, token: u64, error: Status) {
        let status = Status::DONE.and(Status::OP_RECEIVE).and(error);
        let completion = Completion { token, status, len: 0, immediate: None, continues: false };
        self.receives.done.push_back(completion);
        self.port.completed(Queue::Receive, &completion);
    }
}

impl ReceiveQueue {
    /// The first receive, which the peer must know of.
    fn head(&self) -> Option<&Receive> {
        self.posted.front().filter(|receive| self.told > 0 && receive.fault.is_none())
    }

    #[inline]
    fn head_takes(&self, len: usize) -> bool {
        self.head().is_some_and(|receive| len <= receive.total as usize)
    }

    #[inline]
    fn pop(&mut self) -> Option<Receive> {
        self.told = self.told.saturating_sub(1);
        self.posted.pop_front()
    }
}

/// Copies bytes into the pieces, from `at` on.
#[inline]
pub(crate) fn place(pieces: &[Piece], at: usize, bytes: &[u8]) -> Result<(), Status> {
    if let [piece] = pieces {
        return piece.write(at, bytes);
    }
    let (mut skip, mut bytes) = (at, bytes);
    for piece in pieces {
        if skip >= piece.len {
            skip -= piece.len;
            continue;
        }
        let count = bytes.len().min(piece.len - skip);
        piece.write(skip, &bytes[..count])?;
        (skip, bytes) = (0, &bytes[count..]);
        if bytes.is_empty() {
            break;
        }
    }
    Ok(())
}

const _: () = assert!(LOOK > LONG);
