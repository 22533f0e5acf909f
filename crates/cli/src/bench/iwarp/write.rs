//! RDMA writes.
//!
//! A message that the receiver is to see lies before a word that counts messages, in one of several slots of its region;
//! both travel in one write, and the receiver looks at the word. It stores into the sender's memory how many it has seen,
//! now and then.
//!
//! A stream is one-sided: its messages are written from one place to one place, as the ends of plain TCP send from one
//! buffer and receive into one, and so many are under way that the stream never waits for an answer. The receiver has no
//! part in it but to look for the last one, which is a message that it is to see. With `seen`, each one is.

use std::collections::VecDeque;

use anyhow::Result;
use sidestep_fabric::{Access, Aperture, Endpoint, Mode, RdmaQueue, Region, Tripwire, rdma::RequestId};
use sidestep_shm::sync::Ordering;

use super::super::control::Peer;
use super::super::exercise::Exercise;
use super::super::hosts;
use super::super::path::{End, Offer, Opening, Wait};
use super::super::payload::Payload;
use super::{Connected, Parameters, REGION, TAKEN, attach_pair, open_pair};

/// Opens writes with these parameters of the stream.
pub fn open(opening: &mut Opening<'_>, parameters: Parameters) -> Result<Box<dyn Exercise>> {
    let (endpoint, target, aperture) = open_pair(opening, parameters.node()?, &hosts::iwarp_name())?;
    WriteEnd::boxed((endpoint, target, aperture), parameters.seen, opening.wait, opening.peer())
}

/// Attaches to them.
pub fn attach(offer: Offer, parameters: Parameters) -> Result<Box<dyn Exercise>> {
    let (endpoint, target, aperture) = attach_pair(&offer, parameters.node()?)?;
    WriteEnd::boxed((endpoint, target, aperture), parameters.seen, offer.wait, offer.peer)
}

struct WriteEnd {
    endpoint: Endpoint,
    queue: RdmaQueue,
    target: Region,
    source: Region,
    aperture: Aperture,
    /// The write under way from each slot.
    under_way: Vec<Option<RequestId>>,
    /// What is watched in each slot and, at the end, of the peer's count; and where.
    watches: Vec<Option<(usize, Tripwire)>>,
    sent: u32,
    seen: u32,
    told: u32,
    /// Each message of a stream is to be seen.
    sees_all: bool,
    wait: Wait,
    peer: Peer,
}

impl WriteEnd {
    fn boxed(connected: Connected, seen: bool, wait: Wait, peer: Peer) -> Result<Box<dyn Exercise>> {
        let (endpoint, target, aperture) = connected;
        let source = Region::new(endpoint.node(), REGION)?;
        let pattern: Vec<u8> = (0..REGION).map(|at| at as u8).collect();
        source.write(0, &pattern)?;
        Ok(Box::new(WriteEnd {
            queue: RdmaQueue::new(endpoint.node(), 256),
            endpoint,
            target,
            source,
            aperture,
            under_way: vec![None; MAX_SLOTS],
            watches: (0..=MAX_SLOTS).map(|_| None).collect(),
            sent: 0,
            seen: 0,
            told: 0,
            sees_all: seen,
            wait,
            peer,
        }))
    }

    /// Waits until a word of this side's region is as wanted.
    fn wait_for(&mut self, watch: usize, word: usize, wanted: impl Fn(u32) -> bool) -> Result<()> {
        let arrived = self.target.word32(word)?;
        let here = || wanted(arrived.load(Ordering::Acquire));
        if here() {
            return Ok(());
        }
        if self.wait == Wait::Spin {
            return self.until(|| Ok(here()));
        }
        let watch = &mut self.watches[watch];
        if watch.as_ref().is_none_or(|(at, _)| *at != word) {
            *watch = Some((word, Tripwire::new(&self.target, word, Access::Write, Mode::Once)?));
        }
        if let Some((_, tripwire)) = watch {
            // It may have fired for the message before.
            while !here() {
                tripwire.wait(None, here)?;
            }
        }
        Ok(())
    }

    /// Waits until a write has ended.
    fn wait_end(&self, id: RequestId) -> Result<()> {
        match self.wait {
            Wait::Spin => self.until(|| Ok(self.queue.test(id)?)),
            _ => Ok(self.queue.wait(id, None)?),
        }
    }

    /// Waits until `found`, driving the node.
    fn until(&self, mut found: impl FnMut() -> Result<bool>) -> Result<()> {
        let node = self.endpoint.node();
        let mut spin = self.peer.spin();
        while !found()? {
            if !node.progress() {
                spin.turn()?;
            }
        }
        Ok(())
    }
}

/// Where a message of this size lies, and its word: the word is aligned, and the message ends at it.
fn place(size: usize, number: u32) -> (usize, usize, usize) {
    let stride = (size + 4).next_multiple_of(64) + 64;
    let slots = (USED_LEN / stride).clamp(2, MAX_SLOTS);
    let slot = number as usize % slots;
    let word = slot * stride + stride - 64;
    (slot, word, slots)
}

impl End for WriteEnd {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        let (slot, word, slots) = place(payload.len(), self.sent);
        if let Some(before) = self.under_way[slot].take() {
            self.wait_end(before)?;
        }
        let sent = self.sent;
        self.wait_for(MAX_SLOTS, TAKEN, |taken| sent.wrapping_sub(taken) < slots as u32)?;
        self.sent = self.sent.wrapping_add(1);
        let start = word - payload.len();
        if let (Some(first), Some(last)) = (payload.first(), payload.last()) {
            self.source.write(start, &[*first])?;
            self.source.write(word - 1, &[*last])?;
        }
        self.source.word32(word)?.store(self.sent, Ordering::Release);
        let id = self.queue.write(&self.source.slice(start, payload.len() + 4)?, &self.aperture, start)?;
        self.under_way[slot] = Some(id);
        Ok(())
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        let (slot, word, slots) = place(payload.len(), self.seen);
        let expected = self.seen.wrapping_add(1);
        self.wait_for(slot, word, |arrived| arrived == expected)?;
        if let Some(last) = payload.len().checked_sub(1) {
            self.target.read(word - payload.len(), &mut payload[..1])?;
            self.target.read(word - 1, &mut payload[last..])?;
        }
        self.seen = expected;
        if self.seen.wrapping_sub(self.told) as usize >= slots.div_ceil(2) {
            self.told = self.seen;
            self.aperture.store32(TAKEN, self.seen)?;
        }
        Ok(())
    }

    fn send_stream(&mut self, payload: &mut Payload, count: usize) -> Result<()> {
        let size = payload.len();
        if self.sees_all {
            for number in 0..count {
                payload.stamp(number);
                self.send(payload)?;
            }
            return self.flush();
        }
        payload.stamp(count);
        self.source.write(STREAM, payload)?;
        let source = self.source.slice(STREAM, size)?;
        let depth = (UNDER_WAY / size).clamp(2, MAX_SLOTS);
        let mut under_way = VecDeque::with_capacity(depth);
        for _ in 1..count {
            if under_way.len() == depth
                && let Some(first) = under_way.pop_front()
            {
                self.wait_end(first)?;
            }
            under_way.push_back(self.queue.write(&source, &self.aperture, STREAM)?);
        }
        payload.stamp(count - 1);
        self.send(payload)?;
        under_way.into_iter().try_for_each(|id| self.wait_end(id))?;
        self.flush()
    }

    fn receive_stream(&mut self, payload: &mut Payload, count: usize) -> Result<()> {
        if self.sees_all {
            for number in 0..count {
                self.receive(payload)?;
                payload.verify(number)?;
            }
            return Ok(());
        }
        self.receive(payload)?;
        payload.verify(count - 1)?;
        // All that came before it is there, too.
        if count > 1 {
            self.target.read(STREAM, payload)?;
            payload.verify(count)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let under_way: Vec<_> = self.under_way.iter_mut().filter_map(Option::take).collect();
        under_way.into_iter().try_for_each(|id| self.wait_end(id))
    }
}

/// The slots of small messages lie in so much memory that those of both directions fit the caches of a core.
const USED_LEN: usize = 512 << 10;
const MAX_SLOTS: usize = 64;
/// Where the messages of a stream lie, behind all slots, and how many bytes of them are under way.
const STREAM: usize = 4 << 20;
const UNDER_WAY: usize = 2 << 20;
