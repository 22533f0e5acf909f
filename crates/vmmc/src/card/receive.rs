//! The receive engine: handles one packet after the other. A packet is handled whole, or dropped as if it had never come.
//!
//! ```text
//!   idle ── the expected packet ──▶ buffer, key, range, right ──▶ piece after piece: translate, copy ──▶ accepted ──▶ idle
//!                                        │ refused: an answer, accepted     │ miss: dropped, not acknowledged
//!                                        ▼                                  ▼
//!                                       idle                               idle, and the sender sends it again
//! ```

use std::collections::VecDeque;

use super::{Card, Counters, Dma, Event, Job, MAX_NOTICES, Path};
use crate::cbh::{Descriptor, Want};
use crate::data_link::Arrival;
use crate::error::Fault;
use crate::id::{Address, Cbh, NodeId, Page, ProcessId, Work, pieces};
use crate::packet::{self, Body, Packet, Target};
use crate::vmh::Engine;

#[derive(Debug, Default)]
pub(super) struct Receiving {
    arrived: VecDeque<(NodeId, Vec<u8>)>,
    current: Option<Handling>,
}

/// A packet that is being handled.
#[derive(Debug)]
struct Handling {
    node: NodeId,
    /// Whose pages.
    process: ProcessId,
    pieces: Vec<(Page, usize, usize)>,
    done: usize,
    busy: bool,
    what: What,
    /// What is written, or was read.
    bytes: Vec<u8>,
}

#[derive(Debug)]
enum What {
    Send { target: Target, last: bool, notify: bool },
    Fetch { target: Target, offset: u64 },
    Reply { serial: u64 },
}

impl What {
    fn path(&self) -> Path {
        match self {
            What::Fetch { .. } => Path::Send,
            What::Send { .. } | What::Reply { .. } => Path::Receive,
        }
    }

    fn target(&self) -> Option<&Target> {
        match self {
            What::Send { target, .. } | What::Fetch { target, .. } => Some(target),
            What::Reply { .. } => None,
        }
    }
}

impl Receiving {
    pub(super) fn arrive(&mut self, node: NodeId, bytes: &[u8], room: usize, counters: &mut Counters) {
        if self.arrived.len() >= room {
            counters.overflowed += 1;
            return;
        }
        self.arrived.push_back((node, bytes.to_vec()));
    }

    /// The process whose pages are in use.
    pub(super) fn process(&self) -> Option<ProcessId> {
        self.current.as_ref().map(|handling| handling.process)
    }

    /// The buffer that is in use.
    pub(super) fn buffer(&self) -> Option<Cbh> {
        Some(self.current.as_ref()?.what.target()?.to)
    }

    /// The way to a node has ended: what came from there is not answered. What is being copied is copied to its end.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.arrived.retain(|(from, _)| *from != node);
        if let Some(handling) = self.current.as_mut().filter(|handling| handling.node == node) {
            handling.pieces.truncate(handling.done + usize::from(handling.busy));
            handling.what = What::Reply { serial: 0 };
        }
    }
}

impl Card {
    /// Does a step. `false` if there is none.
    pub(super) fn advance_receiving(&mut self, now: u64) -> bool {
        match &self.receiving.current {
            Some(handling) if handling.busy => false,
            Some(_) => {
                self.handle_piece();
                true
            }
            None => match self.receiving.arrived.pop_front() {
                Some((node, bytes)) => {
                    self.take_packet(now, node, &bytes);
                    true
                }
                None => false,
            },
        }
    }

    /// A piece was copied.
    pub(super) fn received_piece(&mut self, bytes: Option<Vec<u8>>) {
        if let Some(handling) = &mut self.receiving.current {
            handling.bytes.extend(bytes.unwrap_or_default());
            (handling.done, handling.busy) = (handling.done + 1, false);
        }
    }

    fn take_packet(&mut self, now: u64, node: NodeId, bytes: &[u8]) {
        let Some(packet) = packet::parse(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let line = self.line(node);
        match packet {
            Packet::Ack(ack) => line.link.handle_ack(now, ack),
            Packet::Nack(ack) => line.link.handle_nack(now, ack),
            Packet::Numbered { number, ack, body } => {
                line.link.handle_ack(now, ack);
                if line.link.handle_number(number) == Arrival::Next {
                    self.take_body(node, body);
                }
            }
        }
    }

    fn take_body(&mut self, node: NodeId, body: Body) {
        match body {
            Body::Send { target, offset, last, notify, bytes } => {
                let what = What::Send { target, last, notify };
                self.take_request(node, what, Want::Send, (offset, bytes.len() as u64), bytes);
            }
            Body::Fetch { target, offset, amount } => {
                let what = What::Fetch { target, offset };
                self.take_request(node, what, Want::Fetch, (offset, u64::from(amount)), Vec::new());
            }
            Body::Reply { work: Work(serial), offset, bytes, .. } => self.take_reply(node, serial, offset, bytes),
            Body::Done { work: Work(serial), fault, last, .. } => {
                let line = self.line(node);
                line.awaiting -= usize::from(last && line.awaiting > 0);
                line.link.accept();
                if self.open.get(&serial).is_some_and(|open| open.node == node) {
                    self.complete(serial, fault.map_or(Ok(()), Err));
                }
            }
            Body::Message(bytes) => {
                self.line(node).link.accept();
                self.output.events.push_back(Event::Message(node, bytes));
            }
        }
    }

    /// A request for a buffer of this card.
    fn take_request(&mut self, node: NodeId, what: What, want: Want, (offset, amount): (u64, u64), bytes: Vec<u8>) {
        let Some(target) = what.target().copied() else { return };
        if self.line(node).link.kept() >= self.config.link.most_kept() {
            // A card that asks and acknowledges no answer is not answered any more; one that is well never comes here.
            return self.drop_packet(node);
        }
        let Some(descriptor) = self.describe(target.to) else { return self.drop_packet(node) };
        let within = offset.checked_add(amount).is_some_and(|end| end <= target.len);
        let descriptor = match descriptor {
            None => return self.refuse(node, &what, Fault::UnknownBuffer),
            Some(descriptor) => match descriptor.check(target.key, want, target.at, target.len) {
                Err(fault) => return self.refuse(node, &what, fault),
                Ok(()) if !within => return self.refuse(node, &what, Fault::OutOfRange),
                Ok(()) => descriptor,
            },
        };
        if self.must_wait_to_notify(&what, &descriptor) {
            return self.drop_packet(node);
        }
        let address = Address(descriptor.address.0.wrapping_add(target.at).wrapping_add(offset));
        let (process, pieces) = (target.to.process, pieces(address, amount as usize));
        let what = match what {
            // The owner is told only if it wants to be.
            What::Send { target, last, notify } => What::Send { target, last, notify: notify && descriptor.notify },
            what => what,
        };
        self.receiving.current = Some(Handling { node, process, pieces, done: 0, busy: false, what, bytes });
    }

    fn must_wait_to_notify(&self, what: &What, descriptor: &Descriptor) -> bool {
        let What::Send { target, last: true, notify: true } = what else { return false };
        descriptor.notify && self.notices.get(&target.to.process).is_some_and(|count| *count >= MAX_NOTICES)
    }

    /// Bytes that a process of this card has asked for.
    fn take_reply(&mut self, node: NodeId, serial: u64, offset: u64, bytes: Vec<u8>) {
        let open = self.open.get(&serial).filter(|open| open.node == node);
        let within = |len: u64| offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= len);
        let Some((process, destination)) =
            open.filter(|open| within(open.len)).and_then(|open| Some((open.process, open.destination?)))
        else {
            return self.accept_reply(node);
        };
        let pieces = pieces(Address(destination.0.wrapping_add(offset)), bytes.len());
        let what = What::Reply { serial };
        self.receiving.current = Some(Handling { node, process, pieces, done: 0, busy: false, what, bytes });
    }

    /// Starts to copy the next piece, or ends.
    fn handle_piece(&mut self) {
        let Some(handling) = &self.receiving.current else { return };
        let (node, process, path) = (handling.node, handling.process, handling.what.path());
        let Some((page, offset, len)) = handling.pieces.get(handling.done).copied() else { return self.finish() };
        match self.translate(Engine::Receive, path, process, page) {
            Some(Ok(frame)) => {
                let Some(handling) = &mut self.receiving.current else { return };
                handling.busy = true;
                let before: usize = handling.pieces[..handling.done].iter().map(|piece| piece.2).sum();
                let job = match path {
                    Path::Send => Job::Read(len),
                    Path::Receive => Job::Write(handling.bytes[before..before + len].to_vec()),
                };
                self.output.dmas.push_back(Dma { engine: Engine::Receive, frame, offset, job });
            }
            Some(Err(entry)) => {
                let Some(Handling { what, .. }) = self.receiving.current.take() else { return };
                match what {
                    What::Reply { serial } => {
                        self.accept_reply(node);
                        self.complete(serial, Err(entry.fault(false)));
                    }
                    what => self.refuse(node, &what, entry.fault(true)),
                }
            }
            None => {
                self.receiving.current = None;
                self.drop_packet(node);
            }
        }
    }

    /// Everything of the packet is copied.
    fn finish(&mut self) {
        let Some(Handling { node, what, bytes, .. }) = self.receiving.current.take() else { return };
        match what {
            What::Send { target, last, notify } => {
                if last {
                    self.answer(node, &target, None, true);
                }
                if last && notify {
                    *self.notices.entry(target.to.process).or_default() += 1;
                    let event = Event::Notified { cbh: target.to, at: target.at, len: target.len };
                    self.output.events.push_back(event);
                }
                self.line(node).link.accept();
            }
            What::Fetch { target, offset } => {
                let line = self.line(node);
                line.link.accept();
                line.link.send(&Body::Reply { process: target.from, work: target.work, offset, bytes });
            }
            // The way there ended meanwhile.
            What::Reply { serial: 0 } => {}
            What::Reply { serial } => {
                self.accept_reply(node);
                let Some(open) = self.open.get_mut(&serial) else { return };
                open.answers = open.answers.saturating_sub(1);
                if open.answers == 0 {
                    self.complete(serial, Ok(()));
                }
            }
        }
    }

    fn accept_reply(&mut self, node: NodeId) {
        let line = self.line(node);
        line.awaiting = line.awaiting.saturating_sub(1);
        line.link.accept();
    }

    /// As if it had never come.
    fn drop_packet(&mut self, node: NodeId) {
        self.counters.dropped += 1;
        self.line(node).dropped = true;
    }

    fn refuse(&mut self, node: NodeId, what: &What, fault: Fault) {
        self.counters.refused += 1;
        let last = match what {
            What::Send { last, .. } => *last,
            What::Fetch { .. } | What::Reply { .. } => true,
        };
        if let Some(target) = what.target() {
            self.answer(node, target, Some(fault), last);
        }
        self.line(node).link.accept();
    }

    fn answer(&mut self, node: NodeId, target: &Target, fault: Option<Fault>, last: bool) {
        let (process, work) = (target.from, target.work);
        self.line(node).link.send(&Body::Done { process, work, fault, last });
    }
}
