//! One end of a measurement, in a process of its own: `sidestep socket-end JOB`, plain or under `sidestep run`.

use std::io::{Read, Write, stdin, stdout};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::sched_getcpu;

use super::super::clock::{self, Stopwatch};
use super::super::place;
use super::super::rpc;
use super::super::stats::{OneWay, SHARES};
use super::bulk;
use super::job::{Job, Report, Span, Waiting, Work};
use super::wire::{Door, Waiter, Wire};

/// Does the job and prints its report.
pub fn run(job: &str) -> Result<()> {
    let job: Job = serde_json::from_str(job).context("a job that cannot be read")?;
    set_parent_process_death_signal(Some(Signal::KILL)).context("prctl failed")?;
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(job.parent) {
        return Ok(());
    }
    if !job.cores.is_empty() {
        place::pin(&job.cores)?;
    }
    let report = match job.work.clone() {
        Work::Echo { size, wait, connections } => echo(&open(&job)?, size, wait, connections)?,
        Work::Exchange { size, wait, pause_us, span } => exchange(&job.address, size, wait, pause_us, span)?,
        Work::Windows { size, span, count } => windows(&job.address, size, span, count)?,
        Work::Sink { size, shift } => sink(&open(&job)?, size, shift)?,
        Work::Stream { size, shift, span } => stream(&job.address, size, shift, span)?,
        Work::Answer { connections } => answer(&open(&job)?, connections)?,
        Work::Connect { connections } => connect(&job.address, connections)?,
        Work::Idle { connections } => idle(&job.address, connections)?,
        Work::Ask { size, connections, span } => ask(&job.address, size, connections, span)?,
        Work::Hub { size, connections } => bulk::hub(&open(&job)?, size, connections)?,
        Work::Bulk { size, flow, connections, span } => bulk::exchange(&job.address, size, flow, connections, span)?,
        Work::Memcached { span } => memcached(&job.address, span)?,
        Work::Rpc(role) => return rpc::end::run(&job.address, role),
        Work::Hog => loop {
            clock::spin_for(Duration::from_secs(1));
        },
    };
    say(&serde_json::to_string(&report)?)
}

fn open(job: &Job) -> Result<Door> {
    let door = Door::open(&job.address)?;
    say(&door.address(&job.address)?)?;
    Ok(door)
}

fn say(line: &str) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// The first two bytes of an answer say on which core it was made.
fn stamp(message: &mut [u8]) {
    let core = (sched_getcpu() as u16).to_le_bytes();
    for (byte, value) in message.iter_mut().zip(core) {
        *byte = value;
    }
}

fn echo(door: &Door, size: usize, wait: Waiting, connections: usize) -> Result<Report> {
    if connections > 1 {
        return echo_many(door, size, connections);
    }
    let wire = door.accept()?;
    let waiter = Waiter::new(wait, &wire)?;
    let mut message = vec![0; size];
    let (mut report, mut watch, mut measured) = (Report::default(), Stopwatch::start(), false);
    while waiter.receive_exactly(&wire, &mut message)? {
        if !measured && message.last() == Some(&MEASURED) {
            // What a connection costs once is not what a message costs.
            (report, watch, measured) = (Report::default(), Stopwatch::start(), true);
        }
        stamp(&mut message);
        if wire.send(&message).is_err() {
            break;
        }
        report.messages += 1;
    }
    report.processor_time = watch.elapsed().processor_time;
    Ok(report)
}

fn echo_many(door: &Door, size: usize, connections: usize) -> Result<Report> {
    let set = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let mut wires = Vec::new();
    for number in 0..connections {
        let wire = door.accept()?;
        set.add(&wire, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
        wires.push(Some(wire));
    }
    let mut message = vec![0; size];
    let mut events = vec![EpollEvent::empty(); 64];
    let (mut report, watch, mut open) = (Report::default(), Stopwatch::start(), connections);
    while open > 0 {
        let count = set.wait(&mut events, EpollTimeout::NONE)?;
        for event in &events[..count] {
            let slot = &mut wires[event.data() as usize];
            let Some(wire) = slot else { continue };
            // Messages are small: what begins to arrive is there.
            let mut done = 0;
            while done < size {
                match wire.receive(&mut message[done..])? {
                    0 => break,
                    got => done += got,
                }
            }
            stamp(&mut message);
            if done < size || wire.send(&message).is_err() {
                *slot = None;
                open -= 1;
            } else {
                report.messages += 1;
            }
        }
    }
    report.processor_time = watch.elapsed().processor_time;
    Ok(report)
}

fn exchange(address: &str, size: usize, wait: Waiting, pause_us: u64, span: Span) -> Result<Report> {
    let wire = Wire::connect(address)?;
    exchange_over(&wire, &Waiter::new(wait, &wire)?, size, pause_us, span)
}

/// Several measurements over one connection, each reported when it is done.
fn windows(address: &str, size: usize, span: Span, count: usize) -> Result<Report> {
    let wire = Wire::connect(address)?;
    let waiter = Waiter::new(Waiting::Block, &wire)?;
    for _ in 1..count {
        say(&serde_json::to_string(&exchange_over(&wire, &waiter, size, 0, span)?)?)?;
    }
    exchange_over(&wire, &waiter, size, 0, span)
}

fn exchange_over(wire: &Wire, waiter: &Waiter, size: usize, pause_us: u64, span: Span) -> Result<Report> {
    let mut message = vec![0; size];
    let mut together = 0;
    let mut report = measure(span, pause_us, |measured| {
        if let [_, .., last] = &mut message[..] {
            *last = if measured { MEASURED } else { 0 };
        }
        wire.send(&message)?;
        ensure!(waiter.receive_exactly(wire, &mut message)?, "the server has closed");
        let same = message[0] == sched_getcpu() as u8;
        together += u64::from(measured && same);
        Ok(())
    })?;
    report.same_core = together as f64 / report.done.max(1) as f64;
    report.messages *= 2;
    Ok(report)
}

/// Repeats a trip for a while; each one of the measured time is timed.
fn measure(span: Span, pause_us: u64, mut trip: impl FnMut(bool) -> Result<()>) -> Result<Report> {
    let reading = clock::reading_cost();
    let mut trips: Vec<u32> = Vec::with_capacity(1 << 20);
    let mut watch = Stopwatch::start();
    let begin = clock::now();
    let warm_until = begin + span.warm_ms * 1_000_000;
    let (mut report, mut now, mut started, mut end) = (Report::default(), begin, 0, u64::MAX);
    while now < end {
        let measured = started != 0;
        if pause_us > 0 {
            sleep(Duration::from_micros(pause_us));
            now = clock::now();
        }
        trip(measured)?;
        let after = clock::now();
        if measured {
            report.done += 1;
            if trips.len() < MOST_TIMED {
                trips.push((after - now).saturating_sub(reading).min(u64::from(u32::MAX)) as u32);
            }
        } else if after >= warm_until {
            (started, end) = (after, after + span.run_ms * 1_000_000);
            watch = Stopwatch::start();
        }
        now = after;
    }
    report.time = now - started;
    report.messages = report.done;
    report.processor_time = watch.elapsed().processor_time;
    let one_way = OneWay::from_trips(&trips);
    report.half_trip = [0.5, 0.99, 0.999].map(|share| one_way.quantile(share));
    report.distribution = SHARES.map(|share| one_way.quantile(share));
    Ok(report)
}

/// A buffer that begins so many bytes after a page boundary.
fn shifted(size: usize, shift: usize) -> (Vec<u8>, usize) {
    let bytes = vec![7; size + shift + 8192];
    let start = bytes.as_ptr().align_offset(4096) + shift;
    (bytes, start)
}

fn sink(door: &Door, size: usize, shift: usize) -> Result<Report> {
    let wire = door.accept()?;
    let room = size.clamp(64 << 10, 1 << 20);
    let (mut memory, start) = shifted(room, shift);
    let bytes = &mut memory[start..start + room];
    let waiter = Waiter::new(Waiting::Block, &wire)?;
    let (mut report, watch) = (Report::default(), Stopwatch::start());
    let mut header = [0; 8];
    while waiter.receive_exactly(&wire, &mut header)? {
        let mut left = u64::from_le_bytes(header) as usize;
        while left > 0 {
            let want = left.min(room);
            let got = wire.receive(&mut bytes[..want])?;
            ensure!(got > 0, "the stream ends early");
            left -= got;
        }
        wire.send(&[1])?;
        report.messages += 1;
    }
    report.processor_time = watch.elapsed().processor_time;
    Ok(report)
}

fn stream(address: &str, size: usize, shift: usize, span: Span) -> Result<Report> {
    let wire = Wire::connect(address)?;
    let waiter = Waiter::new(Waiting::Block, &wire)?;
    let (memory, start) = shifted(size, shift);
    let bytes = &memory[start..start + size];
    let burst = |count: u64| -> Result<u64> {
        let begin = clock::now();
        wire.send(&(count * size as u64).to_le_bytes())?;
        for _ in 0..count {
            wire.send(bytes)?;
        }
        let mut done = [0];
        ensure!(waiter.receive_exactly(&wire, &mut done)?, "the server has closed");
        Ok(clock::now() - begin)
    };
    let watch = Stopwatch::start();
    let (mut count, mut time, mut messages, begin) = (1, 0, 0, clock::now());
    // Bursts grow until they take a few milliseconds, and go on until the time is over.
    while clock::now() - begin < span.warm_ms * 1_000_000 || time < 2_000_000 {
        if time < 2_000_000 {
            count *= 2;
        }
        time = burst(count)?;
        messages += count;
    }
    let count = (count * span.run_ms * 1_000_000 / time.max(1)).max(2);
    let time = burst(count)?;
    Ok(Report {
        done: count,
        time,
        messages: messages + count,
        processor_time: watch.elapsed().processor_time,
        ..Report::default()
    })
}

fn answer(door: &Door, connections: usize) -> Result<Report> {
    let (mut message, watch) = ([0; 64], Stopwatch::start());
    for _ in 0..connections {
        let wire = door.accept()?;
        let waiter = Waiter::new(Waiting::Block, &wire)?;
        if waiter.receive_exactly(&wire, &mut message)? {
            wire.send(&message)?;
            // The client closes first, and keeps the port.
            wire.receive(&mut message)?;
        }
    }
    Ok(Report { processor_time: watch.elapsed().processor_time, ..Report::default() })
}

fn connect(address: &str, connections: usize) -> Result<Report> {
    let (mut message, watch) = ([0; 64], Stopwatch::start());
    for _ in 0..connections {
        let wire = Wire::connect(address)?;
        wire.send(&message)?;
        let waiter = Waiter::new(Waiting::Block, &wire)?;
        ensure!(waiter.receive_exactly(&wire, &mut message)?, "the server has closed");
    }
    let passed = watch.elapsed();
    let (time, processor_time) = (passed.time, passed.processor_time);
    Ok(Report { done: connections as u64, time, processor_time, ..Report::default() })
}

/// Every connection has a request under way; an answer is followed by the next request at once.
fn ask(address: &str, size: usize, connections: usize, span: Span) -> Result<Report> {
    let set = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let mut wires = Vec::new();
    for number in 0..connections {
        let wire = Wire::connect(address)?;
        set.add(&wire, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
        wires.push(wire);
    }
    let (mut message, mut asked, mut trips) = (vec![0; size], vec![0; connections], Vec::with_capacity(1 << 20));
    for (wire, asked) in wires.iter().zip(&mut asked) {
        *asked = clock::now();
        wire.send(&message)?;
    }
    let (mut report, mut watch, mut events) = (Report::default(), Stopwatch::start(), vec![EpollEvent::empty(); 64]);
    let begin = clock::now() + span.warm_ms * 1_000_000;
    let (mut measured, end) = (false, begin + span.run_ms * 1_000_000);
    while asked[0] < end {
        let count = set.wait(&mut events, EpollTimeout::NONE)?;
        for event in &events[..count] {
            let number = event.data() as usize;
            let mut done = 0;
            while done < size {
                let got = wires[number].receive(&mut message[done..])?;
                ensure!(got > 0, "the server has closed");
                done += got;
            }
            let now = clock::now();
            if measured {
                report.done += 1;
                trips.push((now - asked[number]).min(u64::from(u32::MAX)) as u32);
            } else if now >= begin {
                (measured, watch) = (true, Stopwatch::start());
            }
            asked[number] = now;
            wires[number].send(&message)?;
        }
    }
    let passed = watch.elapsed();
    let one_way = OneWay::from_trips(&trips);
    Ok(Report {
        time: passed.time,
        messages: 2 * report.done,
        processor_time: passed.processor_time,
        half_trip: [0.5, 0.99, 0.999].map(|share| one_way.quantile(share)),
        distribution: SHARES.map(|share| one_way.quantile(share)),
        ..report
    })
}

fn idle(address: &str, connections: usize) -> Result<Report> {
    let mut message = [0; 64];
    let mut wires = Vec::new();
    for _ in 0..connections {
        wires.push(Wire::connect(address)?);
    }
    for wire in &wires {
        let waiter = Waiter::new(Waiting::Block, wire)?;
        for _ in 0..30 {
            wire.send(&message)?;
            ensure!(waiter.receive_exactly(wire, &mut message)?, "the server has closed");
        }
    }
    say("idle")?;
    stdin().read_to_end(&mut Vec::new())?;
    Ok(Report { done: connections as u64, ..Report::default() })
}

fn memcached(address: &str, span: Span) -> Result<Report> {
    let wire = Wire::connect(address)?;
    let waiter = Waiter::new(Waiting::Block, &wire)?;
    let value = [b'v'; 64];
    wire.send(&[b"set key 0 0 64\r\n".as_slice(), &value, b"\r\n"].concat())?;
    let mut stored = [0; 8];
    ensure!(waiter.receive_exactly(&wire, &mut stored)? && &stored == b"STORED\r\n", "nothing was stored");
    let expected = [b"VALUE key 0 64\r\n".as_slice(), &value, b"\r\nEND\r\n"].concat();
    let mut got = vec![0; expected.len()];
    let report = measure(span, 0, |_| {
        wire.send(b"get key\r\n")?;
        ensure!(waiter.receive_exactly(&wire, &mut got)? && got == expected, "a wrong answer");
        Ok(())
    })?;
    Ok(report)
}

/// The last byte of a message of the measured time.
const MEASURED: u8 = 1;

/// Trips kept for the percentiles of one measurement.
const MOST_TIMED: usize = 4 << 20;
