//! Rings in shared memory: each end writes into memory of the other, and reads its own.

use std::{io::IoSlice, sync::Arc};

use sidestep_fabric::{
    Endpoint, Error, EventQueue,
    channel::{Half, Joining},
    event::SourceId,
    queue::{Heir, Monitor, QueueSpec, Receiver, Sender},
};
use sidestep_shm::{byte_ring::Stopper, cached::CachedFile};

use super::{AnyInbound, AnyOutbound, AnyWatch, Capabilities, Carrier, Fault, Halves, Kind, Result, Written};
use crate::path::End;

/// A ring in memory of the peer.
#[derive(Debug)]
pub struct Outbound {
    ring: Sender,
    line: Arc<Line>,
}

/// A ring in memory of this process.
#[derive(Debug)]
pub struct Inbound {
    ring: Receiver,
    line: Arc<Line>,
    /// Size of the larger ring that was offered; 0: none.
    offered: usize,
}

/// The words of both.
#[derive(Debug)]
pub struct Watch(Arc<Line>);

/// The connection on the fabric, and the words that the peer writes. Dropping it ends the carrier.
#[derive(Debug)]
struct Line {
    endpoint: Endpoint,
    monitor: Monitor,
}

/// A ring that lacks the endpoint which keeps it.
#[derive(Debug)]
pub struct Joined {
    monitor: Monitor,
    sender: Sender,
    receiver: Receiver,
    capacity: u64,
}

impl Joined {
    /// Joins the own half of a channel, which the endpoint keeps, with the peer's. The one place where a carrier comes to its two
    /// queues.
    pub fn new(endpoint: &Endpoint, half: &Half, theirs: &QueueSpec) -> sidestep_fabric::Result<Joined> {
        let joining = Joining::begin(endpoint, theirs)?;
        // The pages were sent ahead; a peer that did not do that is not waited for.
        joining.wait(Some(0))?;
        let (sender, receiver) = half.finish(endpoint, &joining)?;
        let monitor = half.monitor(endpoint.node())?;
        Ok(Joined { monitor, sender, receiver, capacity: theirs.capacity })
    }

    /// The carrier, over that endpoint.
    pub fn with(self, endpoint: Endpoint) -> Halves {
        let node = endpoint.node().clone();
        let line = Arc::new(Line { endpoint, monitor: self.monitor });
        Halves {
            outbound: Some(AnyOutbound::Ring(Outbound { ring: self.sender, line: line.clone() })),
            inbound: Some(AnyInbound::Ring(Inbound { ring: self.receiver, line: line.clone(), offered: 0 })),
            carrier: Arc::new(Carrier::new(&node, AnyWatch::Ring(Watch(line)), self.capacity)),
        }
    }
}

impl super::Outbound for Outbound {
    #[inline]
    fn send(&mut self, parts: &[IoSlice<'_>], _patient: bool) -> Result<usize> {
        match parts {
            [part] => Ok(self.ring.try_send(part)?),
            parts => push_parts(&mut self.ring, parts),
        }
    }

    fn send_file(&mut self, file: &CachedFile, offset: Option<u64>, count: usize) -> Result<usize> {
        let count = self.ring.push_file(file, offset, count)?;
        if count > 0 {
            self.ring.publish()?;
        }
        Ok(count)
    }

    fn recall(&mut self) -> Result<Vec<u8>> {
        Ok(self.ring.recall()?)
    }

    #[inline]
    fn position(&self) -> u64 {
        self.ring.position()
    }

    fn space(&mut self) -> usize {
        self.ring.space().unwrap_or(0)
    }

    fn set_note(&mut self, which: usize, note: u64) -> Result<()> {
        Ok(self.ring.set_note(which, note)?)
    }

    #[inline]
    fn set_count(&mut self, count: u64) {
        // A ring is mapped.
        let _ = self.ring.set_count(count);
    }

    fn take_back(&mut self) -> Result<Vec<u8>> {
        Ok(self.ring.take()?.unwrap_or_default())
    }

    fn is_frozen(&mut self) -> Result<bool> {
        Ok(self.ring.frozen()?.is_some())
    }

    fn end(&mut self) -> Result<End> {
        Ok(match self.ring.frozen()? {
            None => End::Open,
            Some(frozen) if frozen.wanted => End::Wanted,
            Some(_) => End::Frozen,
        })
    }

    fn freeze(&mut self) -> Option<Result<()>> {
        self.ring.can_freeze().then(|| self.ring.freeze().map(|_| ()).map_err(Fault::from))
    }

    fn adopt_larger(&mut self) -> Option<u64> {
        self.line.endpoint.node().progress();
        // A try that found the ring full may have gone on in the larger one by itself.
        self.ring.poll_growth().ok().map(|_| self.ring.capacity() as u64)
    }

    fn release(&mut self) {
        // A ring that is gone, or broken, is told of by the next write.
        let _ = self.ring.release();
    }

    fn stopper(&mut self) -> Option<Stopper> {
        self.ring.stopper()
    }

    fn witness(&self) -> Option<u64> {
        self.ring.witness()
    }

    #[inline]
    fn written(&self) -> Written {
        let Outbound { ring, .. } = self;
        Written { position: ring.position(), next_place: ring.next_place(), alarms: ring.alarms() }
    }
}

impl super::Inbound for Inbound {
    #[inline(always)]
    fn receive(&mut self, bytes: &mut [u8]) -> Result<usize> {
        Ok(self.ring.try_receive(bytes)?)
    }

    fn peek(&mut self, skip: usize, bytes: &mut [u8]) -> Result<usize> {
        Ok(self.ring.peek(skip, bytes)?)
    }

    fn consume(&mut self, count: usize) -> Result<()> {
        Ok(self.ring.consume(count)?)
    }

    fn available(&mut self) -> usize {
        self.ring.available().unwrap_or(0)
    }

    #[inline]
    fn has_news(&mut self) -> bool {
        self.ring.has_news()
    }

    #[inline]
    fn position(&mut self) -> u64 {
        self.ring.position()
    }

    #[inline]
    fn testify(&mut self) -> (u64, *const u8) {
        (self.ring.testify(), self.ring.next_place())
    }

    #[inline]
    fn has_known(&mut self) -> bool {
        self.ring.has_known()
    }

    fn set_note(&mut self, note: u64) -> Result<()> {
        Ok(self.ring.set_note(note)?)
    }

    fn capacity(&mut self) -> usize {
        self.ring.capacity()
    }

    /// One offer at a time: the one before must have been taken up.
    fn grow(&mut self, bytes: usize) -> bool {
        let now = self.ring.capacity();
        if bytes <= now || self.offered != 0 && self.offered != now {
            return false;
        }
        // Without memory for a larger one the ring stays as it is.
        let Ok(block) = self.ring.grow(bytes) else { return false };
        self.offered = bytes;
        let _ = self.line.endpoint.offer_ring(block);
        true
    }

    fn want(&mut self) -> Option<Result<bool>> {
        self.ring.can_freeze().then(|| self.ring.want().map_err(Fault::from))
    }

    fn freeze(&mut self) -> Option<Result<()>> {
        self.ring.can_freeze().then(|| self.ring.freeze().map(|_| ()).map_err(Fault::from))
    }

    fn has_end(&mut self) -> bool {
        // A look that takes the end in, if it has come.
        let _ = self.ring.available();
        self.ring.end_position().is_some()
    }

    fn is_wanted(&mut self) -> bool {
        self.ring.is_wanted()
    }

    fn is_taken(&mut self) -> bool {
        self.ring.is_taken() == Ok(true)
    }

    fn withdraw(&mut self) -> Result<()> {
        if self.ring.can_freeze() {
            self.ring.withdraw()?;
        }
        Ok(())
    }

    #[inline]
    fn is_over(&mut self) -> bool {
        self.ring.end_position().is_some_and(|end| end == self.ring.position())
    }

    fn heir(&mut self) -> Option<Heir> {
        self.ring.heir()
    }

    fn skip_to_end(&mut self, end: u64) {
        self.ring.skip_to_end(end);
    }
}

impl super::Watch for Watch {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: Kind::Ring,
            grows: true,
            freezes: true,
            holds_back: false,
            lends: false,
            packets: false,
            far: false,
        }
    }

    #[inline]
    fn written(&self) -> u64 {
        self.0.monitor.written()
    }

    #[inline]
    fn read(&self) -> u64 {
        self.0.monitor.read()
    }

    #[inline]
    fn is_frozen(&self) -> bool {
        self.0.monitor.is_frozen()
    }

    #[inline]
    fn writer_note(&self, which: usize) -> u64 {
        self.0.monitor.sender_note(which)
    }

    #[inline]
    fn writer_count(&self) -> u64 {
        self.0.monitor.sender_count()
    }

    #[inline]
    fn reader_note(&self) -> u64 {
        self.0.monitor.receiver_note()
    }

    #[inline]
    fn peer_core(&self) -> u32 {
        self.0.monitor.peer_core()
    }

    fn stands(&self) -> bool {
        self.0.endpoint.is_connected().is_ok()
    }

    #[inline]
    fn arm_arrival(&self) {
        self.0.monitor.arrival().arm();
    }

    #[inline]
    fn arm_space(&self) {
        self.0.monitor.space().arm();
    }

    fn attach(&self, news: &EventQueue, token: u64) -> Vec<SourceId> {
        let (arrival, space) = (self.0.monitor.arrival(), self.0.monitor.space());
        vec![news.attach_tripwire(arrival, token), news.attach_tripwire(space, token + 1)]
    }

    fn detach(&self, news: &EventQueue, source: SourceId) {
        news.detach(source);
    }

    fn nudge(&self) {
        let _ = self.0.endpoint.post(&[]);
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        match error {
            Error::Closed(_) => Fault::Closed,
            Error::Frozen => Fault::Frozen,
            _ => Fault::Broken,
        }
    }
}

fn push_parts(ring: &mut Sender, parts: &[IoSlice<'_>]) -> Result<usize> {
    let mut total = 0;
    for part in parts {
        let count = ring.push(part)?;
        total += count;
        if count < part.len() {
            break;
        }
    }
    if total > 0
        && let Err(error) = ring.publish()
    {
        // They are the caller's still.
        ring.recall()?;
        return Err(error.into());
    }
    Ok(total)
}
