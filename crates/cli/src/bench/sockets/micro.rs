//! The measurements between our own ends.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;

use super::super::place::Placement;
use super::super::record::Metric;
use super::job::{Report, Span, Waiting, Work};
use super::outcome::{Outcome, Row, placement_name};
use super::pair::{self, End, Place, Server, Via};
use super::round::{Found, PLAIN, USUAL, claim, per_second, rounds, span};
use super::{Bench, Effort};

/// The benches of this file.
pub const BENCHES: &[Bench] = &[
    Bench {
        name: "latency",
        about: "half round trip of 64 bytes, blocking, unpinned and on one core",
        quick: true,
        run: latency,
    },
    Bench {
        name: "sleeping",
        about: "the same with a message per millisecond: recv, poll and epoll",
        quick: true,
        run: sleeping,
    },
    Bench { name: "rate", about: "64-byte messages one way", quick: true, run: rate },
    Bench { name: "bandwidth", about: "writes of one byte to 16 MiB, and odd addresses", quick: true, run: bandwidth },
    Bench { name: "connections", about: "connect, one request, close", quick: true, run: connections },
    Bench { name: "idle", about: "processor time of 100 idle connections", quick: false, run: idle },
    Bench {
        name: "crowd",
        about: "4 and 8 busy pairs on two cores, also beside two busy programs",
        quick: false,
        run: crowd,
    },
    Bench { name: "clients", about: "one server with 200 client processes", quick: false, run: clients },
    Bench { name: "foreign", about: "a program with nothing to accelerate", quick: true, run: foreign },
];

fn exchange(via: Via, place: Place, wait: Waiting, pause_us: u64, span: Span) -> Result<(Report, Report)> {
    let server = Work::Echo { size: 64, wait, connections: 1 };
    let client = Work::Exchange { size: 64, wait, pause_us, span };
    pair::run(via, server, client, place)
}

fn latency(effort: &Effort) -> Result<Vec<Outcome>> {
    let ways = [USUAL, &[(Via::Ring, Placement::Same), (Via::Ring, Placement::Cross)]].concat();
    let rows = rounds(effort, &ways, |via, place| {
        let (client, server) = exchange(via, place, Waiting::Block, 0, span(effort))?;
        Ok(Found::exchange(&client, &server))
    })?;
    let free = Some(Placement::Free);
    Ok(vec![Outcome {
        bench: "latency",
        what: "64-byte request and response, send and recv".into(),
        size: 64,
        rows,
        parameters: Vec::new(),
        ours: Via::Ring,
        claims: vec![
            claim(Via::Tcp, Metric::OneWayP50, 40.0, free),
            claim(Via::Unix, Metric::OneWayP50, 30.0, free),
            claim(Via::Tcp, Metric::OneWayP50, 3.0, Some(Placement::Same)),
        ],
        note: None,
    }])
}

fn sleeping(effort: &Effort) -> Result<Vec<Outcome>> {
    let ways = [(Via::Tcp, Placement::Free), (Via::Ring, Placement::Free)];
    let mut outcomes = Vec::new();
    for wait in Waiting::ALL {
        let span = Span { warm_ms: 60, run_ms: effort.run_ms.max(100) * 2 };
        let rows = rounds(effort, &ways, |via, place| {
            let (client, server) = exchange(via, place, wait, 1000, span)?;
            Ok(Found::exchange(&client, &server))
        })?;
        outcomes.push(Outcome {
            bench: "sleeping",
            what: format!("64 bytes each millisecond, waiting in {}", wait.name()),
            size: 64,
            rows,
            parameters: Vec::new(),
            ours: Via::Ring,
            claims: vec![
                claim(Via::Tcp, Metric::OneWayP50, 0.95, None),
                claim(Via::Tcp, Metric::CpuPerMessage, 0.95, None),
            ],
            note: None,
        });
    }
    Ok(outcomes)
}

fn stream(effort: &Effort, size: usize, shift: usize, ways: &[(Via, Placement)], metric: Metric) -> Result<Vec<Row>> {
    rounds(effort, ways, |via, place| {
        // The receiver's buffer lies elsewhere in its page: equal offsets hide what copies cost.
        let sink = Work::Sink { size, shift: shift * 2 };
        let (client, server) = pair::run(via, sink, Work::Stream { size, shift, span: span(effort) }, place)?;
        let scale = if metric == Metric::Bandwidth { size as f64 } else { 1.0 };
        let used = (client.processor_time + server.processor_time) as f64 / client.messages.max(1) as f64;
        Ok(Found::figures(vec![(metric, per_second(&client) * scale), (Metric::CpuPerMessage, used)]))
    })
}

fn rate(effort: &Effort) -> Result<Vec<Outcome>> {
    Ok(vec![Outcome {
        bench: "rate",
        what: "64-byte messages one way".into(),
        size: 64,
        rows: stream(effort, 64, 0, USUAL, Metric::Rate)?,
        parameters: Vec::new(),
        ours: Via::Ring,
        claims: vec![claim(Via::Tcp, Metric::Rate, 40.0, None)],
        note: None,
    }])
}

fn bandwidth(effort: &Effort) -> Result<Vec<Outcome>> {
    let sizes: &[(usize, usize)] = match effort.quick {
        true => &[(64 << 10, 0), (1 << 20, 0)],
        false => &[
            (1, 0),
            (64, 0),
            (512, 0),
            (1 << 10, 0),
            (4 << 10, 0),
            (16 << 10, 0),
            (64 << 10, 0),
            (64 << 10, 1),
            (64 << 10, 16),
            (256 << 10, 0),
            (1 << 20, 0),
            (1 << 20, 1),
            (1 << 20, 16),
            (4 << 20, 0),
            (16 << 20, 0),
        ],
    };
    let mut outcomes = Vec::new();
    for (size, shift) in sizes {
        let must = if *size == 64 << 10 && *shift == 0 { 5.0 } else { 1.0 };
        outcomes.push(Outcome {
            bench: "bandwidth",
            what: format!("writes of {size} bytes, {shift} after a page boundary"),
            size: *size,
            rows: stream(effort, *size, *shift, PLAIN, Metric::Bandwidth)?,
            parameters: vec![("shift", *shift)],
            ours: Via::Ring,
            claims: vec![claim(Via::Tcp, Metric::Bandwidth, must, None)],
            note: None,
        });
    }
    Ok(outcomes)
}

fn connections(effort: &Effort) -> Result<Vec<Outcome>> {
    let connections = if effort.quick { 500 } else { 1500 };
    let ways = [
        (Via::Tcp, Placement::Free),
        (Via::Tcp, Placement::Same),
        (Via::Ring, Placement::Free),
        (Via::Ring, Placement::Same),
    ];
    let rows = rounds(effort, &ways, |via, place| {
        let (client, server) = pair::run(via, Work::Answer { connections }, Work::Connect { connections }, place)?;
        let used = (client.processor_time + server.processor_time) as f64 / connections as f64;
        Ok(Found::figures(vec![(Metric::Connections, per_second(&client)), (Metric::CpuPerCall, used)]))
    })?;
    Ok(vec![Outcome {
        bench: "connections",
        what: "connect, one request, close".into(),
        size: 64,
        rows,
        parameters: Vec::new(),
        ours: Via::Ring,
        claims: vec![claim(Via::Tcp, Metric::Connections, 0.9, None)],
        note: None,
    }])
}

fn idle(effort: &Effort) -> Result<Vec<Outcome>> {
    let (connections, seconds) = (100, if effort.quick { 2 } else { 10 });
    let once = Effort { rounds: 1, ..*effort };
    let ways = [(Via::Tcp, Placement::Free), (Via::Ring, Placement::Free)];
    let rows = rounds(&once, &ways, |via, place| {
        let echo = Work::Echo { size: 64, wait: Waiting::Epoll, connections };
        let server = Server::start(via, echo, Some(place))?;
        let mut client = server.client(via, Work::Idle { connections }, Some(place))?;
        client.line()?;
        // What is still going on after the last exchange ends within this.
        sleep(Duration::from_millis(200));
        let used = |client: &End| -> Result<u64> { Ok(client.processor_time()? + server.end.processor_time()?) };
        let before = used(&client)?;
        sleep(Duration::from_secs(seconds));
        let used = used(&client)? - before;
        client.report()?;
        Ok(Found::figures(vec![(Metric::Cost, used as f64)]))
    })?;
    let used = rows.iter().find(|row| row.via == Via::Ring).and_then(|row| row.value(Metric::Cost));
    let none = used.is_some_and(|used| used < NO_TIME_NS);
    Ok(vec![Outcome {
        bench: "idle",
        what: format!("processor time of both ends of {connections} idle connections in {seconds} s"),
        size: 64,
        rows,
        parameters: Vec::new(),
        ours: Via::Ring,
        claims: Vec::new(),
        note: Some(format!("none is promised: {}", if none { "met" } else { "MISSED" })),
    }])
}

fn crowd(effort: &Effort) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for pairs in [4, 8] {
        for hogs in [0, 2] {
            for placement in [Placement::Free, Placement::Same, Placement::Cross] {
                for wait in Waiting::ALL {
                    outcomes.push(crowded(effort, pairs, hogs, placement, wait)?);
                }
            }
        }
    }
    Ok(outcomes)
}

fn crowded(effort: &Effort, pairs: usize, hogs: usize, placement: Placement, wait: Waiting) -> Result<Outcome> {
    let few = Effort { rounds: effort.rounds.div_ceil(3), ..*effort };
    let span = Span { warm_ms: 50, run_ms: effort.run_ms * 2 };
    let rows = rounds(&few, &[(Via::Tcp, placement), (Via::Ring, placement)], |via, place| {
        let mut busy = Vec::new();
        for _ in 0..hogs {
            busy.push(End::start(Via::Tcp, Work::Hog, "", Vec::new())?);
        }
        let mut running = Vec::new();
        for pair in 0..pairs {
            let place = Place { pair, ..place };
            let server = Server::start(via, Work::Echo { size: 64, wait, connections: 1 }, Some(place))?;
            let client = server.client(via, Work::Exchange { size: 64, wait, pause_us: 0, span }, Some(place))?;
            running.push((server, client));
        }
        let mut total = 0.0;
        let mut shares = Vec::new();
        for (server, client) in running {
            let report = client.report()?;
            total += per_second(&report);
            shares.push(report.same_core);
            pair::serve_end(server)?;
        }
        let share = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        Ok(Found { same_core: Some(share), ..Found::figures(vec![(Metric::Requests, total)]) })
    })?;
    let beside = if hogs > 0 { format!(" beside {hogs} busy programs") } else { String::new() };
    let (place, wait) = (placement_name(placement), wait.name());
    Ok(Outcome {
        bench: "crowd",
        what: format!("{pairs} pairs, {place}, waiting in {wait}{beside}"),
        size: 64,
        rows,
        parameters: Vec::new(),
        ours: Via::Ring,
        claims: vec![claim(Via::Tcp, Metric::Requests, 1.0, None)],
        note: None,
    })
}

fn clients(effort: &Effort) -> Result<Vec<Outcome>> {
    let connections = 200;
    let few = Effort { rounds: effort.rounds.div_ceil(3), ..*effort };
    let ways = [(Via::Tcp, Placement::Free), (Via::Ring, Placement::Free)];
    let rows = rounds(&few, &ways, |via, place| {
        let span = Span { warm_ms: 2500, run_ms: 1000 };
        let server = Server::start(via, Work::Echo { size: 64, wait: Waiting::Epoll, connections }, Some(place))?;
        let work = Work::Exchange { size: 64, wait: Waiting::Block, pause_us: 0, span };
        let ends: Result<Vec<End>> = (0..connections).map(|_| server.client(via, work.clone(), Some(place))).collect();
        let mut total = 0.0;
        for end in ends? {
            let report = end.report()?;
            total += per_second(&report);
        }
        pair::serve_end(server)?;
        Ok(Found::figures(vec![(Metric::Requests, total)]))
    })?;
    Ok(vec![Outcome {
        bench: "clients",
        what: format!("one server with epoll, {connections} client processes"),
        size: 64,
        rows,
        parameters: Vec::new(),
        ours: Via::Ring,
        claims: vec![claim(Via::Tcp, Metric::Requests, 1.0, None)],
        note: None,
    }])
}

fn foreign(effort: &Effort) -> Result<Vec<Outcome>> {
    let ways = [(Via::Unix, Placement::Same), (Via::UnixUnder, Placement::Same)];
    let rows = rounds(effort, &ways, |via, place| {
        let (client, server) = exchange(via, place, Waiting::Block, 0, span(effort))?;
        Ok(Found { same_core: None, ..Found::exchange(&client, &server) })
    })?;
    Ok(vec![Outcome {
        bench: "foreign",
        what: "64 bytes over a UNIX socket on one core, plain and under run".into(),
        size: 64,
        rows,
        parameters: Vec::new(),
        ours: Via::Ring,
        claims: vec![claim(Via::Unix, Metric::OneWayP50, 0.98, Some(Placement::Same))],
        note: None,
    }])
}

/// Less than a timer tick of processor time is none.
const NO_TIME_NS: f64 = 1e6;
