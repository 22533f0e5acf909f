//! A link as a carrier.

use std::{io::IoSlice, sync::Arc};

use sidestep_fabric::{EventQueue, Node, event::SourceId};

use super::{
    super::{AnyInbound, AnyOutbound, AnyWatch, Capabilities, Carrier, ENDED, Fault, Halves, Kind, Result},
    Link, Lost, SharedNews,
};
use crate::carrier;

/// The sending side of a link.
#[derive(Debug)]
pub struct Outbound(Arc<Link>);

/// The receiving side of a link, and how far it has been read.
#[derive(Debug)]
pub struct Inbound(Arc<Link>, u64);

/// What comes for a link.
#[derive(Debug)]
pub struct Watch(Arc<Link>);

/// Writes of several parts up to this size go as one.
const GATHERED: usize = 4 << 10;

/// A link that is ready, as the carrier of a stream whose waits are at this node.
pub fn carry(node: &Node, link: &Arc<Link>) -> Halves {
    let capacity = u64::from(link.options().window) * link.options().chunk as u64;
    Halves {
        carrier: Arc::new(Carrier::new(node, AnyWatch::Via(Watch(link.clone())), capacity)),
        outbound: Some(AnyOutbound::Via(Outbound(link.clone()))),
        inbound: Some(AnyInbound::Via(Inbound(link.clone(), 0))),
    }
}

impl From<Lost> for Fault {
    fn from(_: Lost) -> Fault {
        Fault::Closed
    }
}

impl carrier::Outbound for Outbound {
    #[inline]
    fn send(&mut self, parts: &[IoSlice<'_>], patient: bool) -> Result<usize> {
        match parts {
            [part] if patient => Ok(self.0.send_or_lend(part)?),
            [part] => Ok(self.0.send(part)?),
            parts => self.send_parts(parts),
        }
    }

    #[inline]
    fn position(&self) -> u64 {
        self.0.accepted()
    }

    fn space(&mut self) -> usize {
        self.0.space()
    }

    fn set_note(&mut self, which: usize, note: u64) -> Result<()> {
        Ok(self.0.set_writer_note(which, note, note & ENDED != 0)?)
    }

    fn may_note(&self) -> bool {
        self.0.may_note() || self.0.is_lost()
    }

    fn may_leave(&mut self) -> bool {
        !self.0.awaits_return() && self.may_note()
    }

    fn refuse(&mut self) -> bool {
        self.0.refuse_return()
    }

    fn has_arrived(&self, mark: &mut Option<u64>) -> bool {
        self.0.has_arrived(mark)
    }

    fn holds(&self) -> bool {
        !self.0.flush()
    }

    fn take_back(&mut self) -> Result<Vec<u8>> {
        let mut bytes = self.0.take_returned();
        if !self.0.flush() {
            bytes.extend(self.0.take_back());
        }
        Ok(bytes)
    }

    fn witness(&self) -> Option<u64> {
        Some(self.0.witnessed())
    }
}

impl Outbound {
    fn send_parts(&self, parts: &[IoSlice<'_>]) -> Result<usize> {
        let (mut gathered, mut total) = (Vec::with_capacity(GATHERED), 0);
        for part in parts {
            if gathered.len() + part.len() <= GATHERED {
                gathered.extend_from_slice(part);
                continue;
            }
            let count = self.0.send(&gathered)?;
            total += count;
            if count < gathered.len() {
                return Ok(total);
            }
            gathered.clear();
            let count = self.0.send(part)?;
            total += count;
            if count < part.len() {
                return Ok(total);
            }
        }
        Ok(total + self.0.send(&gathered)?)
    }
}

impl carrier::Inbound for Inbound {
    #[inline]
    fn receive(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let count = self.0.receive(bytes)?;
        self.1 = self.0.position();
        Ok(count)
    }

    fn peek(&mut self, skip: usize, bytes: &mut [u8]) -> Result<usize> {
        Ok(self.0.peek(skip, bytes)?)
    }

    fn consume(&mut self, count: usize) -> Result<()> {
        self.0.consume(count)?;
        self.1 = self.0.position();
        Ok(())
    }

    fn available(&mut self) -> usize {
        self.0.settle();
        self.0.available()
    }

    #[inline]
    fn has_news(&mut self) -> bool {
        let news = self.0.written() != self.1;
        if !news {
            self.0.found_nothing();
        }
        news
    }

    #[inline]
    fn settle(&self) {
        self.0.settle();
    }

    #[inline]
    fn position(&mut self) -> u64 {
        self.1
    }

    #[inline]
    fn testify(&mut self) -> (u64, *const u8) {
        self.0.testify();
        (self.1, std::ptr::null())
    }

    fn set_note(&mut self, note: u64) -> Result<()> {
        Ok(self.0.set_reader_note(note)?)
    }

    fn capacity(&mut self) -> usize {
        self.0.options().window as usize * self.0.options().chunk
    }

    fn give(&mut self) -> Option<u64> {
        self.0.give()
    }

    fn keep(&mut self) {
        self.0.keep();
    }
}

impl carrier::Watch for Watch {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: Kind::Via(self.0.nic().scheme()),
            grows: false,
            freezes: false,
            holds_back: true,
            lends: true,
            packets: true,
            far: self.0.is_distant(),
        }
    }

    #[inline]
    fn written(&self) -> u64 {
        self.0.written()
    }

    #[inline]
    fn read(&self) -> u64 {
        self.0.read()
    }

    #[inline]
    fn writer_note(&self, which: usize) -> u64 {
        self.0.writer_note(which)
    }

    #[inline]
    fn reader_note(&self) -> u64 {
        self.0.absorb();
        self.0.reader_note()
    }

    fn returns(&self) -> u64 {
        self.0.returns()
    }

    #[inline]
    fn peer_core(&self) -> u32 {
        self.0.peer_core()
    }

    fn stands(&self) -> bool {
        self.0.check()
    }

    #[inline]
    fn arm_arrival(&self) {
        self.0.arm();
    }

    #[inline]
    fn arm_space(&self) {
        self.0.arm();
    }

    fn settle(&self) {
        self.0.settle();
    }

    fn take_in(&self) {
        self.0.take_in();
    }

    fn attach(&self, news: &EventQueue, token: u64) -> Vec<SourceId> {
        let source = news.attach(token);
        self.0.reports().tell(news, source);
        vec![source]
    }

    fn detach(&self, news: &EventQueue, source: SourceId) {
        news.detach(source);
        self.0.reports().forget(news, source);
    }

    fn may_rest(&self, many: bool) -> bool {
        self.0.reports().arm();
        // One that holds something is looked at until it does not.
        many && self.0.go_on()
    }

    fn shared_news(&self) -> Option<SharedNews> {
        Some(SharedNews::new(self.0.nic()))
    }

    fn nudge(&self) {
        self.0.nudge();
    }

    fn set_prompt(&self, prompt: bool) {
        self.0.set_prompt(prompt);
    }

    fn found_nothing(&self) {
        self.0.found_nothing();
    }

    fn has_arrived(&self, mark: &mut Option<u64>) -> bool {
        self.0.has_arrived(mark)
    }

    #[inline]
    fn said(&self) -> (u64, u64) {
        (self.0.read(), self.0.reader_note())
    }

    /// The reader of a link tells each half of a window; fewer packets may be told late by a timer, long after they were read.
    #[inline]
    fn progress(&self, _said: (u64, u64)) -> (u64, u64) {
        (u64::from(self.0.acknowledged()), u64::from(self.0.options().window / 2))
    }

    fn filled(&self, _pushed: u64) -> u64 {
        u64::from(self.0.packets())
    }

    /// The reader tells what it took when that is half of the window; one that has told nothing of three quarters takes nothing.
    /// What the window has room for, and the way to the peer has not, says nothing.
    fn much(&self, _capacity: u64) -> u64 {
        if self.0.has_credit() { 0 } else { u64::from(self.0.options().window) * 3 / 4 }
    }

    #[inline]
    fn has_space(&self, _in_flight: impl FnOnce() -> u64, _capacity: u64) -> bool {
        self.0.has_space()
    }

    fn has_other_space(&self) -> bool {
        self.0.has_space()
    }

    fn is_choked(&self) -> bool {
        !self.0.has_credit()
    }
}
