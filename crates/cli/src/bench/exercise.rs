//! The loops of the measurements, written once for every kind of end.
//!
//! [`Exercise`] is implemented for each [`End`], so each loop is compiled with the calls of its own
//! path inside, and choosing the path at run time costs one indirect call per loop.

use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::clock::{self, Elapsed, Stopwatch};
use super::path::{End, Operation};
use super::payload::Payload;

/// One measurement, as both processes are told of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Run {
    /// What to do.
    pub operation: Operation,
    /// Bytes per message.
    pub size: usize,
    /// How many trips or messages.
    pub count: usize,
    /// How far the leader's buffer lies from a page boundary; the worker's lies twice as far.
    pub shift: usize,
}

impl Run {
    /// Trips or messages before the counted ones: they wake the worker and warm the caches.
    fn warm_up(&self) -> usize {
        (self.count / 10).clamp(2, 100)
    }
}

/// What one side saw of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Nanoseconds of each counted round trip.
    pub trips: Vec<u32>,
    /// Nanoseconds of each counted single message.
    pub messages: Vec<u64>,
    /// What passed from the first counted message to the last, or its acknowledgement.
    pub elapsed: Elapsed,
}

/// What the two sides of a measurement do with their ends.
pub trait Exercise {
    /// The side of the measuring process.
    fn lead(&mut self, run: &Run) -> Result<Seen>;

    /// The side of the worker.
    fn follow(&mut self, run: &Run) -> Result<Seen>;
}

impl<E: End> Exercise for E {
    fn lead(&mut self, run: &Run) -> Result<Seen> {
        match run.operation {
            Operation::PingPong => ping(self, run),
            Operation::Stream => stream_out(self, run),
            Operation::Wake => wake(self, run),
        }
    }

    fn follow(&mut self, run: &Run) -> Result<Seen> {
        match run.operation {
            Operation::PingPong => pong(self, run),
            Operation::Stream => stream_in(self, run),
            Operation::Wake => sleep(self, run),
        }
    }
}

fn ping(end: &mut impl End, run: &Run) -> Result<Seen> {
    let mut sent = Payload::shifted(run.size, run.shift);
    let mut received = Payload::shifted(run.size, run.shift);
    let mut trip = |number| {
        sent.stamp(number);
        end.send(&sent)?;
        end.receive(&mut received)?;
        received.verify(number)
    };
    for number in 0..run.warm_up() {
        trip(number)?;
    }
    let cost = clock::reading_cost();
    let mut trips = vec![0; run.count];
    let watch = Stopwatch::start();
    let mut before = clock::now();
    for (number, time) in trips.iter_mut().enumerate() {
        trip(number)?;
        let after = clock::now();
        *time = u32::try_from((after - before).saturating_sub(cost)).unwrap_or(u32::MAX);
        before = after;
    }
    let elapsed = watch.elapsed();
    Ok(Seen { trips, elapsed, ..Seen::default() })
}

fn pong(end: &mut impl End, run: &Run) -> Result<Seen> {
    let mut payload = Payload::shifted(run.size, 2 * run.shift);
    let mut answer = |count| {
        for number in 0..count {
            end.receive(&mut payload)?;
            payload.verify(number)?;
            end.send(&payload)?;
        }
        end.flush()
    };
    answer(run.warm_up())?;
    counted(|| answer(run.count))
}

fn stream_out(end: &mut impl End, run: &Run) -> Result<Seen> {
    let mut payload = Payload::shifted(run.size, run.shift);
    let mut stream = |count| {
        end.send_stream(&mut payload, count)?;
        end.receive(&mut [0])
    };
    stream(run.warm_up())?;
    counted(|| stream(run.count))
}

fn stream_in(end: &mut impl End, run: &Run) -> Result<Seen> {
    let mut payload = Payload::shifted(run.size, 2 * run.shift);
    let mut sink = |count| {
        end.receive_stream(&mut payload, count)?;
        end.send(&[0])?;
        end.flush()
    };
    sink(run.warm_up())?;
    counted(|| sink(run.count))
}

/// Sends the time of sending, after a pause that lets the other end fall asleep. The own core stays
/// busy meanwhile: only the other one is to be woken.
fn wake(end: &mut impl End, run: &Run) -> Result<Seen> {
    counted(|| {
        for _ in 0..run.count {
            clock::spin_for(PAUSE);
            end.send(&clock::now().to_ne_bytes())?;
            end.flush()?;
            end.receive(&mut [0; TIME_BYTES])?;
        }
        Ok(())
    })
}

fn sleep(end: &mut impl End, run: &Run) -> Result<Seen> {
    let mut messages = Vec::with_capacity(run.count);
    let mut sent = [0; TIME_BYTES];
    let seen = counted(|| {
        for _ in 0..run.count {
            let running = end.receive_timed(&mut sent)?;
            let Some(time) = running.checked_sub(u64::from_ne_bytes(sent)) else {
                bail!("a message arrived before it was sent");
            };
            messages.push(time);
            end.send(&sent)?;
            end.flush()?;
        }
        Ok(())
    })?;
    Ok(Seen { messages, ..seen })
}

/// Does what counts, under a stopwatch.
fn counted(work: impl FnOnce() -> Result<()>) -> Result<Seen> {
    let watch = Stopwatch::start();
    work()?;
    let elapsed = watch.elapsed();
    Ok(Seen { elapsed, ..Seen::default() })
}

const TIME_BYTES: usize = size_of::<u64>();

const PAUSE: Duration = Duration::from_micros(100);
