//! Filters that measure their own streams.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use sidestep_fabric::{Channel, ChannelOptions, Node};
use sidestep_filters::{ANY, Accepts, Failure, Kind, Kinds, Settings, Work, builtin, function};
use sidestep_sys::clock;

use super::balance;
use crate::bench::place::{Cores, Kept, Placement, pin};

/// What a meter found: the median time from one process to the other, and the time of each buffer.
pub type Found = Arc<Mutex<Vec<[f64; 2]>>>;

/// The kinds of `sidestep pipe`, and those of the benchmarks, which no description needs.
pub fn kinds() -> Kinds {
    with_report(&Found::default())
}

/// The same, with a report that can be read here.
pub fn with_report(found: &Found) -> Kinds {
    let found = found.clone();
    let report = move |_: &Settings| {
        let found = found.clone();
        Ok(function(move |work| {
            while let Some(mut buffer) = work.inputs.take()? {
                let values = [f64::from_le_bytes(buffer.array(0)?), f64::from_le_bytes(buffer.array(8)?)];
                found.lock().map_err(|_| Failure::new("a panic"))?.push(values);
            }
            Ok(())
        }))
    };
    balance::kinds(builtin::kinds())
        .with("read", Kind::new("looks at every byte", |_| Ok(function(read))).input("in", ANY))
        .with("stamp", Kind::new("gives buffers with the time", |_| Ok(function(stamp))).output("out", ANY))
        .with(
            "meter",
            Kind::new("looks at the time in buffers", |_| Ok(function(meter)))
                .input("in", ANY)
                .output("out", "figures"),
        )
        .with("report", Kind::new("keeps figures", report).input("in", "figures"))
        .with(
            "message-stamp",
            Kind::new("the same over a bare channel", |settings| {
                let name = settings.need("name")?.to_owned();
                Ok(function(move |work| told(send_messages(work, &name))))
            })
            .needs("name", Accepts::Text),
        )
        .with(
            "message-meter",
            Kind::new("the same over a bare channel", |settings| {
                let name = settings.need("name")?.to_owned();
                Ok(function(move |work| told(take_messages(work, &name))))
            })
            .output("out", "figures")
            .needs("name", Accepts::Text),
        )
}

fn told(outcome: anyhow::Result<()>) -> Result<(), Failure> {
    outcome.map_err(failure)
}

fn failure(error: anyhow::Error) -> Failure {
    Failure::new(format_args!("{error:#}"))
}

/// What a unit of work asks of a stamp and a meter.
struct Asked {
    count: u64,
    size: usize,
    pause: Duration,
    placement: Placement,
}

impl Asked {
    fn of(work: &Work<'_>) -> Result<Asked, Failure> {
        let settings = &work.unit.settings;
        let name = settings.text("cores").unwrap_or_default();
        let placement = Placement::ALL.into_iter().find(|placement| placement.name() == name);
        Ok(Asked {
            count: settings.number("count", 1000)?,
            size: settings.number("size", 2048)?.max(8),
            pause: Duration::from_micros(settings.number("pause_us", 0)?),
            placement: placement.unwrap_or(Placement::Free),
        })
    }

    /// Moves this thread to its core; it gets its cores back when the result is dropped.
    fn settle(&self, is_producer: bool) -> anyhow::Result<Kept> {
        let (kept, cores) = (Kept::now()?, Cores::choose(&[])?);
        pin(&if is_producer { cores.leader(self.placement) } else { cores.worker(self.placement) })?;
        Ok(kept)
    }

    /// Lets the consumer go idle. Where it has its own core, a short pause is spent awake: a sleep is longer than that.
    fn rest(&self) {
        if self.pause.is_zero() {
            return;
        }
        if self.placement == Placement::Same {
            return std::thread::sleep(self.pause);
        }
        let began = clock::now();
        while u128::from(clock::now() - began) < self.pause.as_nanos() {
            std::hint::spin_loop();
        }
    }
}

fn read(work: &mut Work<'_>) -> Result<(), Failure> {
    while let Some(mut buffer) = work.inputs.take()? {
        let sum = buffer.fold_words(0u64, |sum, word| sum ^ u64::from_le_bytes(word))?;
        std::hint::black_box(sum);
    }
    Ok(())
}

fn stamp(work: &mut Work<'_>) -> Result<(), Failure> {
    let asked = Asked::of(work)?;
    let _kept = asked.settle(true).map_err(failure)?;
    let mut body = vec![7; asked.size];
    for _ in 0..asked.count {
        asked.rest();
        let mut buffer = work.outputs.reserve()?;
        // As with a message, the time begins before the bytes are put where they go.
        body[..8].copy_from_slice(&clock::now().to_le_bytes());
        buffer.copy_in(0, &body)?;
        buffer.commit(asked.size)?;
    }
    Ok(())
}

/// What a meter has seen.
struct Seen {
    times: Vec<f64>,
    began: u64,
    last: u64,
}

impl Seen {
    fn new(count: u64) -> Seen {
        Seen { times: Vec::with_capacity(count as usize), began: 0, last: 0 }
    }

    fn note(&mut self, stamp: u64) {
        self.last = clock::now();
        if self.began == 0 {
            self.began = self.last;
        }
        self.times.push(self.last.saturating_sub(stamp) as f64);
    }

    fn report(mut self, work: &mut Work<'_>) -> Result<(), Failure> {
        let each = (self.last - self.began) as f64 / (self.times.len().max(2) - 1) as f64;
        self.times.sort_by(f64::total_cmp);
        let median = self.times.get(self.times.len() / 2).copied().unwrap_or(0.0);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&median.to_le_bytes());
        bytes[8..].copy_from_slice(&each.to_le_bytes());
        work.outputs.port("out")?.put(&bytes)?;
        Ok(())
    }
}

fn meter(work: &mut Work<'_>) -> Result<(), Failure> {
    let asked = Asked::of(work)?;
    let kept = asked.settle(false).map_err(failure)?;
    let (mut seen, mut bytes) = (Seen::new(asked.count), vec![0; asked.size]);
    while let Some(mut buffer) = work.inputs.take()? {
        // Taken out, as the receiver of a message does.
        buffer.copy_out(0, &mut bytes)?;
        let stamp = bytes.first_chunk().map_or(0, |stamp| u64::from_le_bytes(*stamp));
        seen.note(stamp);
    }
    drop(kept);
    seen.report(work)
}

fn send_messages(work: &mut Work<'_>, name: &str) -> anyhow::Result<()> {
    let asked = Asked::of(work).map_err(|failure| anyhow::anyhow!("{failure}"))?;
    let _kept = asked.settle(true)?;
    let node = Node::new()?;
    let until = clock::now() + 10_000_000_000;
    let mut channel = loop {
        // The other side may not listen yet.
        match Channel::connect(&node, name, ChannelOptions::default(), b"", Some(until)) {
            Err(error) if clock::now() > until => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
            Ok(channel) => break channel,
        }
    };
    let mut message = vec![7; asked.size];
    for _ in 0..asked.count {
        asked.rest();
        message[..8].copy_from_slice(&clock::now().to_le_bytes());
        channel.sender.send(&message, None)?;
    }
    // The end of the connection follows what was sent, once it was taken.
    channel.receiver.receive_exact(&mut [0], None).context("the receiver is gone")
}

fn take_messages(work: &mut Work<'_>, name: &str) -> anyhow::Result<()> {
    let failed = |failure: Failure| anyhow::anyhow!("{failure}");
    let asked = Asked::of(work).map_err(failed)?;
    let kept = asked.settle(false)?;
    let node = Node::new()?;
    let listener = node.listen(name)?;
    let mut channel = Channel::accept(listener.wait(None)?, ChannelOptions::default(), b"", None)?;
    let (mut seen, mut message) = (Seen::new(asked.count), vec![0; asked.size]);
    for _ in 0..asked.count {
        channel.receiver.receive_exact(&mut message, None)?;
        seen.note(message.first_chunk().map_or(0, |stamp| u64::from_le_bytes(*stamp)));
    }
    channel.sender.send(&[1], None)?;
    drop(kept);
    seen.report(work).map_err(failed)
}
