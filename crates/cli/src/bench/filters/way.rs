//! The ways to join two processes of a pipeline, and what is measured of each.

use std::time::Instant;

use anyhow::{Context, Result};
use sidestep_filters::model::{Cost, Point};
use sidestep_filters::{Graph, Group, Launcher, Place, Settings, Transport};

use super::kinds::{Found, with_report};
use crate::bench::place::Placement;
use crate::pipe;

/// One way.
pub struct Way {
    /// Its name in records and in `--only`.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What joins processes.
    pub transport: Transport,
    kind: Joined,
}

#[derive(PartialEq)]
enum Joined {
    /// By a stream.
    Stream,
    /// By a stream over sockets that run under Sidestep.
    Accelerated,
    /// By a bare channel, to compare with.
    Message,
}

/// Every way; the first is compared with the second.
pub const WAYS: &[Way] = &[
    Way { name: "channel", about: "streams over channels", transport: Transport::Channel, kind: Joined::Stream },
    Way {
        name: "message",
        about: "bare channels, without streams",
        transport: Transport::Channel,
        kind: Joined::Message,
    },
    Way { name: "via", about: "streams over VIs", transport: Transport::Vi, kind: Joined::Stream },
    Way {
        name: "ring",
        about: "streams over TCP under `sidestep run`",
        transport: Transport::Tcp,
        kind: Joined::Accelerated,
    },
    Way { name: "tcp", about: "streams over TCP", transport: Transport::Tcp, kind: Joined::Stream },
];

impl Way {
    /// Whether it is a stream, and not what one is compared with.
    pub fn is_stream(&self) -> bool {
        self.kind != Joined::Message
    }

    pub fn launcher(&self) -> Result<Launcher> {
        if self.kind != Joined::Accelerated {
            return pipe::launcher();
        }
        let program = std::env::current_exe()?;
        let program = program.to_str().context("the path of this program is not text")?;
        Ok(Launcher::command(&[program, "run", "--", program, "pipe-worker"]))
    }

    /// The cost of buffers of these sizes between two processes.
    pub fn costs(&self, sizes: &[usize], effort: u64) -> Result<Vec<Point>> {
        let found = Found::default();
        let mut points = Vec::new();
        for &bytes in sizes {
            let mut group = Group::start(self.pair(bytes), &with_report(&found), self.launcher()?)?;
            let mut measure =
                |count, pause_us, placement| metered(&mut group, &found, bytes, count, pause_us, placement);
            let stream = (effort * (32 << 20) / bytes as u64).clamp(200, 20_000 * effort);
            measure(stream / 4, 0, Placement::Cross)?;
            // Each way where it is at its best: on cores of their own, or both on one.
            let mut point = Point { bytes, latency_ns: f64::MAX, each_ns: f64::MAX };
            for placement in [Placement::Cross, Placement::Same] {
                // So long a pause lets a consumer fall asleep only after it has looked for a while.
                let [latency_ns, _] = measure(200 * effort, 20, placement)?;
                let [_, each_ns] = measure(stream, 0, placement)?;
                point.latency_ns = point.latency_ns.min(latency_ns);
                point.each_ns = point.each_ns.min(each_ns);
            }
            points.push(point);
        }
        Ok(points)
    }

    /// Nanoseconds of a buffer through an empty filter in a process of its own, between two others.
    pub fn through(&self, bytes: usize, effort: u64) -> Result<f64> {
        let (found, place) = (Found::default(), |name: &str| Place::Shared(name.into()));
        let graph = Graph::new("through")
            .over(self.transport)
            .filter("stamp", "stamp", 1, place("one"))
            .filter("pass", "pass", 1, place("two"))
            .filter("meter", "meter", 1, place("three"))
            .filter("report", "report", 1, Place::Thread)
            .stream("stamp.out", "pass.in", bytes)
            .queued(queue(bytes))
            .stream("pass.out", "meter.in", bytes)
            .queued(queue(bytes))
            .stream("meter.out", "report.in", 64);
        let mut group = Group::start(graph, &with_report(&found), self.launcher()?)?;
        metered(&mut group, &found, bytes, 200, 0, Placement::Cross)?;
        // The two ends where they are at their best, as in `costs`; the filter between them goes where there is room.
        [Placement::Cross, Placement::Same].into_iter().try_fold(f64::MAX, |best, placement| {
            let [latency_ns, _] = metered(&mut group, &found, bytes, 200 * effort, 20, placement)?;
            Ok(best.min(latency_ns))
        })
    }

    fn pair(&self, bytes: usize) -> Graph {
        let (one, two) = (Place::Shared("one".into()), Place::Shared("two".into()));
        let graph = Graph::new("pair").over(self.transport);
        let graph = match self.kind {
            Joined::Message => {
                let name = format!("shm:bench-filters-{}-{bytes}", std::process::id());
                let graph = graph.filter("stamp", "message-stamp", 1, one).set("name", &name);
                graph.filter("meter", "message-meter", 1, two).set("name", &name)
            }
            Joined::Stream | Joined::Accelerated => {
                let graph = graph.filter("stamp", "stamp", 1, one).filter("meter", "meter", 1, two);
                graph.stream("stamp.out", "meter.in", bytes).queued(queue(bytes))
            }
        };
        graph.filter("report", "report", 1, Place::Thread).stream("meter.out", "report.in", 64)
    }

    /// Bytes a second through four stages, each in a process of its own, and the nanoseconds of a unit of work without bytes:
    /// what begins and ends one is the same for any number of bytes.
    pub fn stages(&self, bytes: u64, buffer: usize) -> Result<(f64, f64)> {
        let place = |name: &str| Place::Shared(name.into());
        let graph = Graph::new("stages")
            .over(self.transport)
            .filter("generate", "generate", 1, place("one"))
            .filter("first", "pass", 1, place("two"))
            .filter("second", "pass", 1, place("three"))
            .filter("read", "read", 1, place("four"));
        let graph = [("generate", "first"), ("first", "second"), ("second", "read")]
            .iter()
            .fold(graph, |graph, (from, to)| graph.stream(&format!("{from}.out"), &format!("{to}.in"), buffer));
        let mut group = Group::start(graph, &with_report(&Found::default()), self.launcher()?)?;
        let mut timed = |bytes: u64| -> Result<f64> {
            let began = Instant::now();
            for outcome in group.run([Settings::default().with("bytes", bytes)])? {
                outcome.result?;
            }
            Ok(began.elapsed().as_nanos().max(1) as f64)
        };
        // The first unit warms everything up.
        timed(bytes)?;
        Ok((bytes as f64 * 1e9 / timed(bytes)?, timed(0)?))
    }
}

/// The median time of a buffer, and the time of each, of one unit of work.
fn metered(
    group: &mut Group,
    found: &Found,
    bytes: usize,
    count: u64,
    pause_us: u64,
    placement: Placement,
) -> Result<[f64; 2]> {
    let settings = Settings::default().with("count", count).with("size", bytes).with("pause_us", pause_us);
    for outcome in group.run([settings.with("cores", placement.name())])? {
        outcome.result?;
    }
    let last = found.lock().map_err(|_| anyhow::anyhow!("a panic"))?.pop();
    last.context("the meter said nothing")
}

/// As many buffers as lie in the ring of a channel with its usual size, at least a few.
fn queue(bytes: usize) -> usize {
    ((128 << 10) / bytes.max(1)).clamp(2, 48)
}

/// The costs of one way, for the model.
pub fn cost(points: &[Point]) -> Result<Cost> {
    Cost::new(points.to_vec()).context("no sizes were measured")
}
