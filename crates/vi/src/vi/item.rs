//! One send on its way: which way it goes, and how far it is.

use sidestep_fabric::rdma::RequestId;

use crate::{
    attributes::Reliability,
    code::Status,
    descriptor::{List, Operation, Remote},
    entry::{Credit, Fault, Header, Kind},
    memory::Piece,
    vi::{
        receive::BOUNCE,
        state::{FlowControl, Loss},
    },
    wires::Wires,
};

#[derive(Debug)]
pub(super) struct SendItem {
    pub(super) token: u64,
    pub(super) operation: Operation,
    pub(super) immediate: Option<u32>,
    pub(super) fence: bool,
    pub(super) pieces: List<Piece>,
    pub(super) total: u32,
    /// Bytes that earlier parts of a split message took.
    pub(super) moved: u32,
    pub(super) flow: FlowControl,
    pub(super) stage: Stage,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
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
pub(super) struct Emission {
    pub(super) header: Header,
    pub(super) sent: usize,
}

/// What follows when an entry is in the ring.
#[derive(Debug, Clone, Copy)]
pub(super) enum Then {
    Done,
    Answer,
    Read,
    /// The rest of a split message.
    Rest,
    /// The connection ends, and the send with this status.
    Break(Status),
}

/// From this size on a message is placed in the receive buffer, where that can be reached, rather than carried in the
/// ring. Chosen by hand so far; no sweep has been measured.
pub(crate) const DIRECT_MIN: u32 = 8 << 10;
/// The most that one request of the RDMA queue moves at once.
const QUANTUM: usize = 256 << 10;
/// Small messages are written with their head in one go.
pub(super) const SMALL: usize = 256;

impl SendItem {
    /// Goes one step on. `false`: it cannot at present.
    pub(super) fn step(
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
        let mut places = Credit { total: 0, places: List::NONE };
        if kind == Kind::Message || kind == Kind::Write && self.immediate.is_some() {
            let Some(credit) = wires.credits.pop_front() else {
                // Before the peer has told of everything, nobody knows whether a receive is posted.
                return if wires.ready { self.no_receive(reliability) } else { Ok(false) };
            };
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
        if header.len < DIRECT_MIN || credit.places.as_slice().is_empty() || header.kind != Kind::Message {
            return None;
        }
        let mut pieces = self.pieces.as_slice().iter();
        let (mut piece, mut at) = (pieces.next()?, self.moved as usize);
        let mut left = header.len as usize;
        let mut last = None;
        for place in credit.places.as_slice() {
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
    pub(super) fn emit(
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
