//! The send engine: takes requests from the queues in turns, cuts them into segments, and makes packets of them.
//!
//! ```text
//!   idle ── request of a process with a window ──▶ reading: one piece after the other ──▶ packet ──▶ idle
//!                                                     │ miss: the process waits, others go on
//!                                                     ▼
//!                                                    idle
//! ```

use super::post::{INLINE, Operation, Post, Source};
use super::{Card, Dma, Job, Open, Path};
use crate::config::Mode;
use crate::error::Fault;
use crate::id::{Address, Page, ProcessId, Work, pieces};
use crate::packet::{Body, SEGMENT, Target};
use crate::vmh::Engine;

/// A segment whose bytes are being read.
#[derive(Debug)]
pub(super) struct Sending {
    process: ProcessId,
    pieces: Vec<(Page, usize, usize)>,
    read: usize,
    bytes: Vec<u8>,
    /// A piece is on its way.
    busy: bool,
}

impl Sending {
    pub(super) fn process(&self) -> ProcessId {
        self.process
    }
}

impl Card {
    /// Does a step. `false` if there is none.
    pub(super) fn advance_sending(&mut self, now: u64) -> bool {
        match &self.sending {
            Some(sending) if sending.busy => false,
            Some(_) => {
                self.read_piece(now);
                true
            }
            None => self.posts.ready().into_iter().any(|process| self.begin_segment(process)),
        }
    }

    /// A piece was read.
    pub(super) fn sent_piece(&mut self, bytes: Vec<u8>) {
        if let Some(sending) = &mut self.sending {
            sending.bytes.extend(bytes);
            (sending.read, sending.busy) = (sending.read + 1, false);
        }
    }

    /// Begins the next segment of a process. `false` if it cannot be now.
    fn begin_segment(&mut self, process: ProcessId) -> bool {
        let Some(queued) = self.posts.front(process) else { return false };
        let (serial, done) = (queued.serial, queued.done);
        let post = queued.post.clone();
        if serial.is_some_and(|serial| !self.open.contains_key(&serial)) {
            // It ended early: the rest would be refused, too.
            self.posts.pop(process);
            return true;
        }
        if serial.is_none()
            && let Err(fault) = self.begin_operation(process, &post)
        {
            self.posts.pop(process);
            self.counters.completed += 1;
            let event = super::Event::Completed { process, work: post.work, outcome: Err(fault) };
            self.output.events.push_back(event);
            return true;
        }
        let (window, packets) = (self.config.link.window, self.config.packets);
        let kept: usize = self.links.values().map(|line| line.link.kept()).sum();
        let line = self.line(post.node);
        if line.link.kept() >= window || line.awaiting >= window || (kept >= packets && line.link.kept() > 0) {
            return false;
        }
        self.posts.served(process);
        let amount = (post.len - done).min(SEGMENT as u64) as usize;
        let (pieces, bytes) = match post.operation {
            Operation::Send { source: Source::Inline(bytes), .. } => (Vec::new(), bytes),
            Operation::Send { source: Source::Memory(address), .. } => {
                (pieces(Address(address.0.wrapping_add(done)), amount), Vec::new())
            }
            Operation::Fetch { .. } => (Vec::new(), Vec::new()),
        };
        self.sending = Some(Sending { process, pieces, read: 0, bytes, busy: false });
        true
    }

    fn begin_operation(&mut self, process: ProcessId, post: &Post) -> Result<(), Fault> {
        if self.gone.contains(&post.node) {
            return Err(Fault::Unreachable);
        }
        if self.config.mode == Mode::Static {
            self.imports.check(process, post.node, post.cbh, (post.at, post.len))?;
        }
        if let Operation::Send { source: Source::Inline(bytes), .. } = &post.operation
            && (bytes.len() as u64 != post.len || bytes.len() > INLINE)
        {
            return Err(Fault::BadAddress);
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let (destination, answers) = match post.operation {
            Operation::Send { .. } => (None, 1),
            Operation::Fetch { destination } => (Some(destination), post.len.div_ceil(SEGMENT as u64).max(1)),
        };
        let open = Open { process, work: post.work, node: post.node, len: post.len, destination, answers };
        self.open.insert(serial, open);
        if let Some(queued) = self.posts.front(process) {
            queued.serial = Some(serial);
        }
        Ok(())
    }

    /// Starts to read the next piece, or makes the packet.
    fn read_piece(&mut self, now: u64) {
        let Some(sending) = &self.sending else { return };
        let process = sending.process;
        let Some((page, offset, len)) = sending.pieces.get(sending.read).copied() else { return self.emit_segment() };
        match self.translate(Engine::Send, Path::Send, process, page) {
            Some(Ok(frame)) => {
                let dma = Dma { engine: Engine::Send, frame, offset, job: Job::Read(len) };
                self.output.dmas.push_back(dma);
                if let Some(sending) = &mut self.sending {
                    sending.busy = true;
                }
            }
            Some(Err(entry)) => {
                self.sending = None;
                if let Some(serial) = self.posts.front(process).and_then(|queued| queued.serial) {
                    self.complete(serial, Err(entry.fault(false)));
                }
            }
            None => {
                self.sending = None;
                self.posts.stall(process, now + self.config.link.timer_ns / RETRIES);
            }
        }
    }

    fn emit_segment(&mut self) {
        let Some(Sending { process, bytes, .. }) = self.sending.take() else { return };
        // A process that is gone has no queue.
        let Some(queued) = self.posts.front(process) else { return };
        let Some(serial) = queued.serial else { return };
        let (offset, post) = (queued.done, &queued.post);
        let amount = (post.len - offset).min(SEGMENT as u64);
        let last = offset + amount == post.len;
        let target =
            Target { from: process, work: Work(serial), to: post.cbh, key: post.key, at: post.at, len: post.len };
        let (node, body) = match post.operation {
            Operation::Send { notify, .. } => (post.node, Body::Send { target, offset, last, notify, bytes }),
            Operation::Fetch { .. } => (post.node, Body::Fetch { target, offset, amount: amount as u32 }),
        };
        queued.done += amount;
        if last {
            self.posts.pop(process);
        }
        let is_open = self.open.contains_key(&serial);
        if !is_open {
            // Refused while it was read.
            return;
        }
        let line = self.line(node);
        line.awaiting += usize::from(last || matches!(body, Body::Fetch { .. }));
        line.link.send(&body);
    }
}

/// How often a process that waits for a line tries again in the time of one timer of the link.
const RETRIES: u64 = 8;
