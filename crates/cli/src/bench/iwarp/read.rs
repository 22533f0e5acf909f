//! RDMA reads from the other side's region, while the other side looks after its node.

use std::collections::VecDeque;

use anyhow::Result;
use sidestep_fabric::{Aperture, Endpoint, RdmaQueue, Region};
use sidestep_shm::sync::Ordering;

use super::super::clock::{self, Stopwatch};
use super::super::control::Peer;
use super::super::exercise::{Exercise, Run, Seen};
use super::super::hosts;
use super::super::path::{Offer, Opening, Operation};
use super::{CRC, REGION, TAKEN, attach_pair, open_pair};

/// Opens reads.
pub fn open(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let (endpoint, target, aperture) = open_pair(opening, CRC.node()?, &hosts::iwarp_name())?;
    Ok(Box::new(ReadEnd::new(endpoint, target, aperture, opening.peer())?))
}

/// Attaches to them.
pub fn attach(offer: Offer) -> Result<Box<dyn Exercise>> {
    let (endpoint, target, aperture) = attach_pair(&offer, CRC.node()?)?;
    Ok(Box::new(ReadEnd::new(endpoint, target, aperture, offer.peer)?))
}

/// Reads from the other side's region, while the other side looks after its node.
pub struct ReadEnd {
    endpoint: Endpoint,
    queue: RdmaQueue,
    target: Region,
    aperture: Aperture,
    peer: Peer,
}

impl ReadEnd {
    /// An end that reads through `aperture` and offers `target`.
    pub fn new(endpoint: Endpoint, target: Region, aperture: Aperture, peer: Peer) -> Result<ReadEnd> {
        Ok(ReadEnd { queue: RdmaQueue::new(endpoint.node(), 64), endpoint, target, aperture, peer })
    }

    /// Reads so many times, one after the other; nanoseconds of each.
    pub fn time_reads(&self, size: usize, count: usize) -> Result<Vec<u32>> {
        let into = self.target.slice(0, size.max(1))?;
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let before = clock::now();
            let id = self.queue.read(&self.aperture, 0, &into)?;
            let mut spin = self.peer.spin();
            while !self.queue.test(id)? {
                spin.turn()?;
            }
            times.push(u32::try_from(clock::now() - before).unwrap_or(u32::MAX));
        }
        Ok(times)
    }

    /// Tells the other side that it is over: in its memory, and by a message.
    pub fn finish(&self) -> Result<()> {
        self.aperture.store32(TAKEN, 1)?;
        self.aperture.flush(clock::in_seconds(10))?;
        Ok(self.endpoint.post(b"over")?)
    }

    /// Begins to be read from.
    pub fn begin(&self) -> Result<()> {
        self.target.word32(TAKEN)?.store(0, Ordering::Release);
        Ok(self.endpoint.post(b"begin")?)
    }

    /// Waits until the other side has begun.
    pub fn wait_other_side(&self) -> Result<()> {
        self.endpoint.wait_message(clock::in_seconds(10))?;
        Ok(())
    }

    /// Waits until the other side is over.
    pub fn wait_over(&self) -> Result<()> {
        self.endpoint.wait_message(None)?;
        Ok(())
    }

    /// Whether the memory says that it is over; the message that says so too is taken then.
    pub fn has_been_told(&self) -> Result<bool> {
        let told = self.target.word32(TAKEN)?.load(Ordering::Acquire) == 1;
        if told {
            self.wait_over()?;
        }
        Ok(told)
    }

    /// Whether the other side has said that it is over.
    pub fn is_over(&self) -> Result<bool> {
        Ok(self.endpoint.poll_message()?.is_some())
    }

    fn stream(&self, size: usize, count: usize) -> Result<()> {
        let mut under_way = VecDeque::new();
        for number in 0..count {
            let slot = number % 8 * (REGION / 8);
            if under_way.len() == 8
                && let Some(id) = under_way.pop_front()
            {
                self.queue.wait(id, None)?;
            }
            under_way.push_back(self.queue.read(&self.aperture, 0, &self.target.slice(slot, size)?)?);
        }
        under_way.into_iter().try_for_each(|id| Ok(self.queue.wait(id, None)?))
    }
}

impl Exercise for ReadEnd {
    fn lead(&mut self, run: &Run) -> Result<Seen> {
        let (count, size) = (run.count, run.size);
        let mut seen = Seen::default();
        match run.operation {
            Operation::Stream => {
                self.stream(size, (count / 10).clamp(2, 100))?;
                let watch = Stopwatch::start();
                self.stream(size, count)?;
                seen.elapsed = watch.elapsed();
            }
            _ => {
                self.time_reads(size, (count / 10).clamp(2, 100))?;
                let watch = Stopwatch::start();
                seen.trips = self.time_reads(size, count)?;
                seen.elapsed = watch.elapsed();
            }
        }
        self.finish()?;
        Ok(seen)
    }

    fn follow(&mut self, _run: &Run) -> Result<Seen> {
        let watch = Stopwatch::start();
        let mut spin = self.peer.spin();
        while !self.is_over()? {
            spin.turn()?;
        }
        Ok(Seen { elapsed: watch.elapsed(), ..Seen::default() })
    }
}
