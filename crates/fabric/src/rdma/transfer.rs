//! One request of an RDMA queue on its way.

use std::sync::Arc;

use sidestep_shm::last_word::{WORD, first_part};

use super::{operation::Operation, queue::RdmaCore, work::Work};
use crate::{
    cookie::Rights,
    error::{Error, Result},
    link::{Capabilities, MAX_GATHERED, Outcome, Request},
    ticket::Completion,
};

#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) id: u32,
    pub(super) work: Work<'static>,
    /// Bytes of the whole group, for the first request of one.
    pub(super) group: usize,
    /// Bytes moved, or asked of the link.
    begun: usize,
    /// Pieces the link has not answered.
    pub(super) outstanding: usize,
    error: Option<Error>,
}

/// What a queue may do in its turn, and has done.
#[derive(Debug)]
pub(super) struct Turn {
    /// Bytes that may still be moved.
    pub(super) left: usize,
    /// The link took less than it was given.
    pub(super) stalled: bool,
    /// Bytes that went to or from mapped memory, through the kernel, or were asked of the link.
    pub(super) mapped: usize,
    pub(super) reached: usize,
    pub(super) asked: usize,
}

impl Turn {
    pub(super) fn new(left: usize) -> Turn {
        Turn { left, stalled: false, mapped: 0, reached: 0, asked: 0 }
    }
}

impl Transfer {
    pub(super) fn new(id: u32, work: Work<'static>, group: usize) -> Transfer {
        Transfer { id, work, group, begun: 0, outstanding: 0, error: None }
    }

    /// How far it has come, to be compared.
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.begun, self.outstanding)
    }

    /// Whether nothing of it was begun.
    pub(super) fn is_new(&self) -> bool {
        self.begun == 0
    }

    /// Whether all of it was asked of the link, and nothing is known of its end.
    pub(super) fn is_under_way(&self) -> bool {
        self.begun == self.work.len && self.outstanding > 0 && self.error.is_none()
    }

    /// Whether all of it was moved, or asked of the link, and nothing failed.
    pub(super) fn is_begun(&self) -> bool {
        self.begun == self.work.len && self.error.is_none()
    }

    pub(super) fn is_mapped(&self) -> bool {
        self.work.is_mapped()
    }

    /// Whether this process moves the bytes.
    pub(super) fn is_done_here(&self) -> bool {
        self.is_mapped() || self.work.target.is_reached()
    }

    /// Whether the link has carried out all of it.
    pub(super) fn is_answered(&self) -> bool {
        self.is_begun() && self.outstanding == 0 && !self.is_mapped()
    }

    /// The link has answered the piece that starts at `at`. `false` if that failed.
    pub(super) fn answered(&mut self, at: usize, outcome: Outcome) -> bool {
        let taken = self.work.operation.take(at, outcome);
        if let Err(error) = taken {
            self.fail(error);
            return false;
        }
        true
    }

    /// Its failure is told when its turn has come.
    pub(super) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Goes on, with at most `window` pieces under way. `true` when the request has ended.
    pub(super) fn advance(
        &mut self,
        queue: &Arc<RdmaCore>,
        buffer: &mut Vec<u8>,
        window: usize,
        turn: &mut Turn,
    ) -> Result<bool> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        // Settled again at every step: the owner may have revoked meanwhile.
        self.work.target.check(self.work.offset, self.work.len, Rights::NONE)?;
        if self.is_mapped() {
            return self.advance_mapped(turn);
        }
        if let Some(ended) = self.advance_reached(turn) {
            return Ok(ended);
        }
        self.advance_asked(queue, buffer, window, turn)
    }

    /// Asks the link for it before its turn, while the first request waits for the link.
    pub(super) fn ask_ahead(&mut self, queue: &Arc<RdmaCore>, buffer: &mut Vec<u8>, window: usize, turn: &mut Turn) {
        if self.error.is_some() {
            return;
        }
        let checked = self.work.target.check(self.work.offset, self.work.len, Rights::NONE);
        if let Err(error) = checked.and_then(|()| self.advance_asked(queue, buffer, window, turn)) {
            self.fail(error);
        }
    }

    /// How many bytes are next, of a transfer that this process carries out. A word is moved whole, and so is the last one of
    /// a longer transfer.
    fn next_part(&self, turn: &mut Turn) -> usize {
        let rest = self.work.len - self.begun;
        let count = if rest <= 2 * WORD { rest } else { first_part(rest, turn.left.max(2 * WORD)) };
        turn.left -= count.min(turn.left);
        count
    }

    fn advance_mapped(&mut self, turn: &mut Turn) -> Result<bool> {
        let count = self.next_part(turn);
        let Work { operation, target, offset, len } = &self.work;
        operation.move_bytes(target, *offset, self.begun, count)?;
        self.begun += count;
        turn.mapped += count;
        if self.begun < *len {
            return Ok(false);
        }
        operation.report(target, *offset, *len);
        Ok(true)
    }

    /// Copies through the kernel, if the memory is reached that way. `None` if it is not: the owner has taken something back,
    /// or the link is still to answer what was asked of it before.
    fn advance_reached(&mut self, turn: &mut Turn) -> Option<bool> {
        if self.outstanding > 0 || matches!(self.work.operation, Operation::Atomic(..)) {
            return None;
        }
        let reach = self.work.target.reach()?;
        let count = self.next_part(turn);
        let copied = self.work.operation.copy_through(&reach, self.work.offset, self.begun, count);
        if !copied.unwrap_or(false) {
            reach.lose();
            return None;
        }
        self.begun += count;
        turn.reached += count;
        Some(self.begun == self.work.len)
    }

    fn advance_asked(
        &mut self,
        queue: &Arc<RdmaCore>,
        buffer: &mut Vec<u8>,
        window: usize,
        turn: &mut Turn,
    ) -> Result<bool> {
        while self.begun < self.work.len && self.outstanding < window {
            let completion = Completion::Rdma(Arc::downgrade(queue), self.id, self.begun);
            match self.ask(buffer, completion) {
                Ok(count) => {
                    self.begun += count;
                    turn.asked += count;
                }
                // The link takes no more for now.
                Err(Error::Full { .. }) => {
                    turn.stalled = true;
                    break;
                }
                Err(error) => return Err(error),
            }
            self.outstanding += 1;
        }
        Ok(self.begun == self.work.len && self.outstanding == 0)
    }

    /// Asks the link for the next bytes; how many.
    fn ask(&self, buffer: &mut Vec<u8>, completion: Completion) -> Result<usize> {
        let Work { operation, target, offset, len } = &self.work;
        let (node, peer, cookie) = (target.node(), target.peer(), target.cookie());
        let Capabilities { max_transfer, gathers, .. } = node.peer(peer).capabilities();
        let (offset, rest) = ((offset + self.begun) as u64, len - self.begun);
        let count = first_part(rest, max_transfer);
        let word;
        let request = match operation {
            Operation::Write(source) => {
                // What lies together the link takes from there.
                let most = first_part(rest, MAX_GATHERED);
                if gathers && let Some(part) = source.part(self.begun, most) {
                    node.put(peer, cookie, offset, &part, completion)?;
                    return Ok(most);
                }
                if buffer.len() < count {
                    buffer.resize(count, 0);
                }
                source.copy_out(self.begun, &mut buffer[..count])?;
                Request::Put { offset, bytes: &buffer[..count] }
            }
            Operation::Immediate(value) => {
                word = value.to_le_bytes();
                Request::Put { offset, bytes: &word }
            }
            Operation::Read(_) => Request::Get { offset, len: count },
            Operation::Atomic(atomic, _) => Request::Atomic { offset, atomic: *atomic },
        };
        node.request(peer, cookie, request, completion)?;
        Ok(count)
    }
}
