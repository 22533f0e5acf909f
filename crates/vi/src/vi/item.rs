//! One send on its way: which way it goes, and how far it is.

use sidestep_fabric::{Aperture, rdma::RequestId};
use sidestep_shm::{
    Span,
    last_word::{WORD, first_part},
};

use crate::{
    attributes::Reliability,
    code::Status,
    descriptor::{List, Operation, Remote},
    entry::{Credit, Header, Kind, ReachWay},
    line::Line,
    memory::{MemHandle, Piece},
    trunk::Window,
    vi::state::{FlowControl, Loss, Way},
};

#[derive(Debug)]
pub(super) struct SendItem {
    pub(super) token: u64,
    /// The registration that the descriptor itself lies in.
    pub(super) place: Option<MemHandle>,
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
    /// Being put on the trunk; so many bytes are.
    Sending(Header, Then, usize),
    /// Being moved to or from the peer's memory; then the entry follows, if there is one.
    Moving(RequestId, Option<Header>),
    /// Handed over; the peer will say how it went.
    Answer,
    /// The data of a read are to come.
    Reading,
    Ended(Status),
}

/// What follows when an entry is on the trunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Done,
    Answer,
    Read,
    /// The rest of a split message.
    Rest,
}

/// What a step needs to know of its VI.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances {
    pub(super) reliability: Reliability,
    pub(super) split: bool,
    pub(super) way: Way,
    /// RDMA reads without an answer.
    pub(super) reads: u32,
}

/// From this size on a message is placed in the receive buffer, where that can be reached, rather than carried in the
/// ring: where the two cross in `sidestep bench via` (lines `via-pio` and `via-rdma`).
pub(crate) const DIRECT_MIN: u32 = 4 << 10;
/// The same for memory of the program, which is reached through the kernel.
pub(crate) const ATTACHED_MIN: u32 = 16 << 10;
/// The most that one request of the RDMA queue moves at once.
const QUANTUM: usize = 256 << 10;
const DONE: Stage = Stage::Ended(Status(0));

/// Bytes of registered memory: from where on, and how many.
type Bytes<'a> = (&'a Span, usize, usize);

impl SendItem {
    /// Goes one step on. `false`: it cannot at present.
    pub(super) fn step(&mut self, line: &mut Line, around: &Circumstances) -> Result<bool, Loss> {
        match &mut self.stage {
            Stage::Waiting if self.fence && around.reads > 0 => return Ok(false),
            Stage::Waiting => return self.begin(line, around),
            Stage::Moving(id, header) => {
                let (id, header) = (*id, *header);
                let moved = match &line.rdma {
                    Some(rdma) => rdma.test(id),
                    None => Ok(true),
                };
                self.stage = match (moved, header) {
                    (Ok(false), _) => return Ok(false),
                    (Ok(true), None) => DONE,
                    (Ok(true), Some(header)) => Stage::Sending(header, self.afterwards(&header, around), 0),
                    (Err(_), _) => {
                        // The memory is out of reach; the peer finds out why.
                        line.rdma().reset();
                        self.by_ring(line, header, around)
                    }
                };
            }
            Stage::Sending(header, then, sent) => {
                let (header, then) = (*header, *then);
                // The bytes that this entry and its parts carry: none for what is there, too long, or asked for.
                let carried = if header.is_here() || header.kind == Kind::Read { 0 } else { header.total() as usize };
                let from = if header.kind == Kind::Message { self.moved as usize } else { 0 };
                let part = (from, *sent, carried);
                let mut outward = line.route.trunk.outward();
                let Some(count) = outward.put_part(&header, self.pieces.as_slice(), part)? else { return Ok(false) };
                if carried > 0 {
                    line.carried = outward.position();
                }
                drop(outward);
                *sent += count;
                if *sent < carried {
                    return Ok(true);
                }
                self.stage = match then {
                    Then::Done => DONE,
                    Then::Answer => Stage::Answer,
                    Then::Read => Stage::Reading,
                    Then::Rest => {
                        self.moved += header.total();
                        Stage::Waiting
                    }
                };
            }
            Stage::Answer | Stage::Reading | Stage::Ended(_) => {}
        }
        Ok(true)
    }

    /// What to do with it, now that it is its turn.
    fn begin(&mut self, line: &mut Line, around: &Circumstances) -> Result<bool, Loss> {
        if self.pieces.as_slice().iter().any(|piece| !piece.registration.is_alive()) {
            self.stage = Stage::Ended(Status::PROTECTION_ERROR);
            return Ok(true);
        }
        match self.operation {
            Operation::Send => self.begin_send(line, around),
            Operation::RdmaWrite(remote) => {
                if self.immediate.is_some() && self.credit(line, around)?.is_none() {
                    return Ok(self.is_ended());
                }
                self.stage = match self.write_directly(line, &remote, around) {
                    Some(stage) => stage,
                    None => self.by_ring(line, None, around),
                };
                Ok(true)
            }
            Operation::RdmaRead(remote) => {
                self.stage = match self.read_directly(line, &remote) {
                    Some(stage) => stage,
                    None => self.by_ring(line, None, around),
                };
                Ok(true)
            }
        }
    }

    fn begin_send(&mut self, line: &mut Line, around: &Circumstances) -> Result<bool, Loss> {
        let Some(credit) = self.credit(line, around)? else { return Ok(self.is_ended()) };
        let left = self.total - self.moved;
        let header = Header::new(Kind::Message, line.theirs, left).with_immediate(self.immediate);
        let header = match credit {
            Some(credit) if left > credit.total => match around.split && credit.total > 0 {
                true => Header::new(Kind::Message, line.theirs, credit.total).continuing(),
                // The receiver finds out by the length alone.
                false => header.here(left),
            },
            _ => header,
        };
        let least = match around.way {
            Way::BySize => DIRECT_MIN,
            Way::Pio => u32::MAX,
            Way::Rdma => 1,
        };
        let place = credit.and_then(|credit| credit.place).filter(|_| !header.is_here() && header.total() >= least);
        let placed = place.and_then(|(window, offset)| self.place(line, &header, (window, offset), around));
        self.stage = placed.unwrap_or(Stage::Sending(header, self.afterwards(&header, around), 0));
        Ok(true)
    }

    fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended(_))
    }

    /// Takes the receive that this is for. `None`: it has to wait, or it is dropped. `Some(None)`: nobody has told of one;
    /// the receiver knows better.
    #[inline]
    fn credit(&mut self, line: &mut Line, around: &Circumstances) -> Result<Option<Option<Credit>>, Loss> {
        let credit = line.credits.pop();
        if credit.is_none() {
            // How a message is split depends on what is posted.
            let unknown = around.split && line.asked && !line.told;
            if self.flow != FlowControl::Compliant || self.moved > 0 || unknown {
                return Ok(None);
            }
            let unreliable = around.reliability == Reliability::Unreliable;
            if unreliable && line.route.trunk.outward().room()? < self.total as usize + 64 {
                // Nobody may be taking anything.
                self.stage = DONE;
                return Ok(None);
            }
        }
        line.sent = line.sent.wrapping_add(1);
        Ok(Some(credit))
    }

    /// The entry of an operation that cannot be done directly.
    fn by_ring(&self, line: &mut Line, placed: Option<Header>, around: &Circumstances) -> Stage {
        let theirs = line.theirs;
        let header = match (self.operation, placed) {
            (Operation::Send, placed) => {
                let len = placed.map_or(self.total - self.moved, |header| header.total());
                let header = Header::new(Kind::Message, theirs, len);
                match placed.is_some_and(|placed| placed.continues()) {
                    true => header.continuing(),
                    false => header.with_immediate(self.immediate),
                }
            }
            (Operation::RdmaWrite(remote), _) => {
                line.writes = line.writes.saturating_add(1);
                Header::new(Kind::Write, theirs, self.total).to(remote, self.total).with_immediate(self.immediate)
            }
            (Operation::RdmaRead(remote), _) => Header::new(Kind::Read, theirs, 0).to(remote, self.total),
        };
        Stage::Sending(header, self.afterwards(&header, around), 0)
    }

    fn afterwards(&self, header: &Header, around: &Circumstances) -> Then {
        match (header.kind, around.reliability) {
            (Kind::Read, _) => Then::Read,
            _ if header.continues() => Then::Rest,
            (Kind::Write, Reliability::Delivery) if !header.is_here() => Then::Answer,
            (_, Reliability::Reception) => Then::Answer,
            _ => Then::Done,
        }
    }

    /// Places the bytes in the receive buffer, or begins to, if that can be.
    fn place(
        &self,
        line: &mut Line,
        header: &Header,
        (window, offset): (u32, u64),
        around: &Circumstances,
    ) -> Option<Stage> {
        let (here, total) = (header.here(header.total()), header.total());
        let attached = match line.route.trunk.window(window)? {
            Window::Mapped(aperture) => {
                let id = self.write_to(line, &aperture, usize::try_from(offset).ok()?, total as usize)?;
                return Some(Stage::Moving(id, Some(here)));
            }
            // Smaller ones are sooner in the ring.
            Window::Attached(_) if around.way == Way::BySize && total < ATTACHED_MIN => return None,
            // Programs post one buffer twice: what is in the ring must be there first.
            Window::Attached(_) if !line.route.trunk.outward().has_been_read(line.carried).ok()? => return None,
            Window::Attached(attached) => attached,
        };
        let (address, attachment) = (attached.address(offset, total)?, line.route.trunk.attachment()?);
        self.copy_attached((self.moved, total), address, |source, at, may| {
            attachment.write(source, at, attached.turn, may)
        })?;
        Some(Stage::Sending(here, self.afterwards(&here, around), 0))
    }

    /// Begins to write the peer's memory, if this side can.
    fn write_directly(&self, line: &mut Line, remote: &Remote, around: &Circumstances) -> Option<Stage> {
        let (way, offset) = reach(line, remote, self.total)?;
        let total = self.total;
        if !self.ends_whole() {
            return None;
        }
        let header = self.immediate.map(|_| {
            let header = Header::new(Kind::Write, line.theirs, total).to(*remote, total);
            header.here(total).with_immediate(self.immediate)
        });
        match way {
            ReachWay::Attached { write: false, .. } => return None,
            _ if total == 0 => {}
            ReachWay::Window(number) => {
                let Window::Mapped(window) = line.route.trunk.window(number)? else { return None };
                return Some(Stage::Moving(self.write_to(line, &window, offset, total as usize)?, header));
            }
            ReachWay::Attached { turn, .. } => {
                let attachment = line.route.trunk.attachment()?;
                let copy = |source: Bytes<'_>, at, may: &dyn Fn() -> bool| attachment.write(source, at, turn, may);
                self.copy_attached((0, total), remote.address, copy)?;
            }
        }
        Some(header.map_or(DONE, |header| Stage::Sending(header, self.afterwards(&header, around), 0)))
    }

    /// Whether the last word comes from one segment, so that it can be stored as one.
    fn ends_whole(&self) -> bool {
        let last = self.pieces.as_slice().iter().rev().find(|piece| piece.len > 0);
        last.is_none_or(|piece| piece.len >= WORD || piece.len == self.total as usize)
    }

    /// Copies `count` bytes from `from` on by `copy`, piece by piece, to or from where they are at the peer. `None`: it goes
    /// another way.
    fn copy_attached(
        &self,
        (from, count): (u32, u32),
        address: u64,
        copy: impl Fn(Bytes<'_>, u64, &dyn Fn() -> bool) -> bool,
    ) -> Option<()> {
        for (piece, at, done, count) in parts(self.pieces.as_slice(), from as usize, count as usize) {
            let bytes = (piece.registration.region.span(), piece.offset + at, count);
            let whole = copy(bytes, address.wrapping_add(done as u64), &|| piece.registration.is_alive());
            whole.then_some(())?;
        }
        Some(())
    }

    /// Begins to write bytes of the message to a window.
    fn write_to(&self, line: &mut Line, window: &Aperture, offset: usize, count: usize) -> Option<RequestId> {
        let mut last = None;
        for (piece, at, done, count) in parts(self.pieces.as_slice(), self.moved as usize, count) {
            let source = piece.registration.region.slice(piece.offset + at, count).ok()?;
            last = line.rdma().write(&source, window, offset.checked_add(done)?).map_err(|_| line.rdma().reset()).ok();
            last?;
        }
        last
    }

    /// Begins to read the peer's memory, if this side can.
    fn read_directly(&self, line: &mut Line, remote: &Remote) -> Option<Stage> {
        let (way, offset) = reach(line, remote, self.total)?;
        let window = match way {
            ReachWay::Window(number) => match line.route.trunk.window(number)? {
                Window::Mapped(window) => window,
                Window::Attached(_) => return None,
            },
            ReachWay::Attached { turn, read, .. } => {
                let attachment = line.route.trunk.attachment().filter(|_| read)?;
                let copy = |into: Bytes<'_>, at, may: &dyn Fn() -> bool| attachment.read(into, at, turn, may);
                self.copy_attached((0, self.total), remote.address, copy)?;
                return Some(DONE);
            }
        };
        let mut last = None;
        for (piece, at, done, count) in parts(self.pieces.as_slice(), 0, self.total as usize) {
            let into = piece.registration.region.slice(piece.offset + at, count).ok()?;
            last = line.rdma().read(&window, offset.checked_add(done)?, &into).map_err(|_| line.rdma().reset()).ok();
            last?;
        }
        Some(Stage::Moving(last?, None))
    }
}

/// Memory of the peer that this side can reach by itself, how, and where in it. Not while writes are under way that the peer
/// carries out: they would be overtaken.
pub(super) fn reach(line: &mut Line, remote: &Remote, len: u32) -> Option<(ReachWay, usize)> {
    let note = line.route.trunk.peer_note();
    if line.reach.notes[1] != note {
        // Some of it was withdrawn; the peer tells again of what was not.
        line.reach.notes[1] = note;
        line.reach.theirs.clear();
    }
    if line.writes > 0 {
        return None;
    }
    line.reach.theirs.iter().rev().find_map(|reach| Some((reach.way, reach.offset(remote, len)?)))
}

/// Cuts `count` bytes from `at` on of the pieces into what one request moves: piece, where in it, bytes before, bytes.
fn parts(pieces: &[Piece], at: usize, count: usize) -> impl Iterator<Item = (&Piece, usize, usize, usize)> {
    let (mut skip, mut done) = (at, 0);
    let mut pieces = pieces.iter();
    let mut piece = pieces.next();
    std::iter::from_fn(move || {
        while done < count {
            let current = piece?;
            if skip >= current.len {
                skip -= current.len;
                piece = pieces.next();
                continue;
            }
            let part = first_part((current.len - skip).min(count - done), QUANTUM);
            let found = (current, skip, done, part);
            (skip, done) = (skip + part, done + part);
            return Some(found);
        }
        None
    })
}
