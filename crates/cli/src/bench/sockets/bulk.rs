//! Bulk in either way, or both at once, on any number of connections: the ends of the patterns of many streams.
//!
//! A client tells its hub before each burst how many bytes it will send and how many it wants, so one hub serves all flows. A
//! burst is over when both have arrived and the hub has said so.

use std::thread;

use anyhow::{Result, anyhow, ensure};

use super::super::clock::{self, Stopwatch};
use super::job::{Flow, Report, Span};
use super::wire::{Door, Wire};

/// Serves so many connections until they close.
pub fn hub(door: &Door, size: usize, connections: usize) -> Result<Report> {
    let watch = Stopwatch::start();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..connections {
            let wire = door.accept()?;
            threads.push(scope.spawn(move || serve(&wire, size)));
        }
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread of the hub failed"))?)
    })?;
    Ok(Report { processor_time: watch.elapsed().processor_time, ..Report::default() })
}

fn serve(wire: &Wire, size: usize) -> Result<()> {
    let mut buffers = Buffers::new(size);
    let mut order = [0; 16];
    while fill(wire, &mut order)? {
        let word = |at: usize| u64::from_le_bytes(order[at..at + 8].try_into().expect("eight bytes"));
        buffers.move_both(wire, word(8), word(0))?;
        wire.send(&[1])?;
    }
    Ok(())
}

/// Exchanges bulk with a hub on so many connections at the same time, and reports all of them together.
pub fn exchange(address: &str, size: usize, flow: Flow, connections: usize, span: Span) -> Result<Report> {
    let watch = Stopwatch::start();
    let mut wires = Vec::new();
    for _ in 0..connections {
        wires.push(Wire::connect(address)?);
    }
    let reports: Result<Vec<Report>> = thread::scope(|scope| {
        let threads: Vec<_> = wires.iter().map(|wire| scope.spawn(move || bursts(wire, size, flow, span))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a thread of the client failed"))?).collect()
    });
    let mut whole = Report { processor_time: watch.elapsed().processor_time, ..Report::default() };
    for report in reports? {
        // Of connections that took unequal times, each counts with its own rate.
        let scaled = report.done as f64 * SECOND / report.time.max(1) as f64;
        whole.done += scaled as u64;
        whole.messages += report.messages;
    }
    whole.time = SECOND as u64;
    Ok(whole)
}

/// Bursts until the time is over; what is done after the warming up counts.
fn bursts(wire: &Wire, size: usize, flow: Flow, span: Span) -> Result<Report> {
    let mut buffers = Buffers::new(size);
    let mut burst = |count: u64| -> Result<u64> {
        let bytes = count * size as u64;
        let (sent, wanted) = match flow {
            Flow::In => (bytes, 0),
            Flow::Out => (0, bytes),
            Flow::Both => (bytes, bytes),
        };
        let begin = clock::now();
        wire.send(&[sent.to_le_bytes(), wanted.to_le_bytes()].concat())?;
        buffers.move_both(wire, sent, wanted)?;
        ensure!(fill(wire, &mut [0])?, "the hub has closed");
        Ok(clock::now() - begin)
    };
    let both = if flow == Flow::Both { 2 } else { 1 };
    let begin = clock::now();
    let (warm_until, mut report, mut count) = (begin + span.warm_ms * 1_000_000, Report::default(), 1);
    loop {
        let now = clock::now();
        if now >= warm_until + span.run_ms * 1_000_000 {
            return Ok(report);
        }
        let time = burst(count)?;
        report.messages += count * both;
        if now >= warm_until {
            report.done += count * both;
            report.time += time;
        }
        // A burst takes some milliseconds, so that its end costs little.
        count = (count * BURST_NS / time.max(1)).clamp(count / 2, count * 2).max(1);
    }
}

/// What one connection sends from and receives into.
struct Buffers {
    out: Vec<u8>,
    into: Vec<u8>,
}

impl Buffers {
    fn new(size: usize) -> Buffers {
        Buffers { out: vec![7; size], into: vec![0; size.clamp(64 << 10, 1 << 20)] }
    }

    /// Sends and receives so many bytes; both at the same time if there are both.
    fn move_both(&mut self, wire: &Wire, sent: u64, received: u64) -> Result<()> {
        let (out, into) = (&self.out, &mut self.into);
        if sent == 0 || received == 0 {
            send(wire, out, sent)?;
            return receive(wire, into, received);
        }
        thread::scope(|scope| {
            let sending = scope.spawn(|| send(wire, out, sent));
            receive(wire, into, received)?;
            sending.join().map_err(|_| anyhow!("a sending thread failed"))?
        })
    }
}

fn send(wire: &Wire, bytes: &[u8], mut left: u64) -> Result<()> {
    while left > 0 {
        let count = bytes.len().min(left as usize);
        wire.send(&bytes[..count])?;
        left -= count as u64;
    }
    Ok(())
}

fn receive(wire: &Wire, bytes: &mut [u8], mut left: u64) -> Result<()> {
    while left > 0 {
        let room = bytes.len().min(left as usize);
        let got = wire.receive(&mut bytes[..room])?;
        ensure!(got > 0, "the stream ends early");
        left -= got as u64;
    }
    Ok(())
}

/// Receives just so many bytes; false at the end of the stream.
fn fill(wire: &Wire, bytes: &mut [u8]) -> Result<bool> {
    let mut done = 0;
    while done < bytes.len() {
        match wire.receive(&mut bytes[done..])? {
            0 => return Ok(false),
            count => done += count,
        }
    }
    Ok(true)
}

const SECOND: f64 = 1e9;
const BURST_NS: u64 = 4_000_000;
