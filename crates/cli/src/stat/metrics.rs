//! `sidestep stat --metrics`: the same for monitoring, in the OpenMetrics text format. Counters are those of processes, with
//! sockets that have ended, so that they never go back while a process lives.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use sidestep_sockets::registry::Totals;

use super::latency::Latencies;
use crate::census::Census;

/// Answers until the process is ended.
pub fn serve(address: SocketAddr, latency: bool) -> Result<()> {
    let latencies = if latency { Some(Latencies::start()?) } else { None };
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen at {address}"))?;
    eprintln!("sidestep: serving http://{}/metrics", listener.local_addr()?);
    let (served, latencies) = (AtomicUsize::new(0), latencies.as_ref());
    thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            // Beyond the limit a client is turned away: it has no thread, and no other waits for it.
            if served.fetch_add(1, Relaxed) >= MOST_CLIENTS {
                served.fetch_sub(1, Relaxed);
                continue;
            }
            let served = &served;
            let serve = move || {
                // One that breaks, or is too slow, is its own affair.
                let _ = answer(stream, latencies);
                served.fetch_sub(1, Relaxed);
            };
            if thread::Builder::new().spawn_scoped(scope, serve).is_err() {
                served.fetch_sub(1, Relaxed);
            }
        }
    });
    Ok(())
}

/// More than any number of collectors.
const MOST_CLIENTS: usize = 64;
/// For one request: a client that is slower is left.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longer than any head that a collector sends.
const MOST_HEAD: usize = 8 << 10;

fn answer(mut stream: TcpStream, latencies: Option<&Latencies>) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let (end, mut head) = (Instant::now() + PATIENCE, Vec::new());
    while !head.windows(4).any(|part| part == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > MOST_HEAD {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut part = [0; 1024];
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => head.extend_from_slice(&part[..count]),
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let (status, body) = match line.split(|byte| *byte == b' ').collect::<Vec<_>>()[..] {
        [b"GET", b"/metrics" | b"/", _] => ("200 OK", text(&Census::take(), latencies)),
        [b"GET", ..] => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET is answered\n".to_owned()),
    };
    let kind = if status.starts_with("200") {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        "text/plain"
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The whole answer.
fn text(census: &Census, latencies: Option<&Latencies>) -> String {
    let mut text = String::new();
    let mut sockets: BTreeMap<(u32, String), u64> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    let mut waiting: BTreeMap<u32, u64> = BTreeMap::new();
    for socket in &census.sockets {
        *sockets.entry((socket.record.pid, socket.paths())).or_default() += 1;
        *reasons.entry(socket.record.reason.name()).or_default() += 1;
        let sum = waiting.entry(socket.record.pid).or_default();
        *sum = sum.saturating_add(socket.unread().unwrap_or(0));
    }
    head(&mut text, "sidestep_sockets", "gauge", "", "Open connections by path.");
    for ((pid, path), count) in &sockets {
        let _ = writeln!(text, "sidestep_sockets{{{},path=\"{path}\"}} {count}", labels(census, *pid));
    }
    head(&mut text, "sidestep_socket_reasons", "gauge", "", "Open connections by the reason for their path.");
    for (reason, count) in &reasons {
        let _ = writeln!(text, "sidestep_socket_reasons{{reason=\"{reason}\"}} {count}");
    }
    head(&mut text, "sidestep_unread_bytes", "gauge", "bytes", "Bytes in carriers that their readers have not taken.");
    for (pid, bytes) in &waiting {
        let _ = writeln!(text, "sidestep_unread_bytes{{{}}} {bytes}", labels(census, *pid));
    }
    let name = "sidestep_transferred_bytes";
    head(&mut text, name, "counter", "bytes", "Bytes moved both ways, over carriers and over TCP.");
    let totals = census.totals();
    for (pid, totals) in &totals {
        for (path, bytes) in [("carrier", totals.carried), ("tcp", totals.tcp)] {
            let _ = writeln!(text, "{name}_total{{{},path=\"{path}\"}} {bytes}", labels(census, *pid));
        }
    }
    for Counter { name, help, value } in COUNTERS {
        head(&mut text, name, "counter", "", help);
        for (pid, totals) in &totals {
            let _ = writeln!(text, "{name}_total{{{}}} {}", labels(census, *pid), value(totals));
        }
    }
    text + &latencies.map_or(String::new(), |latencies| latencies.text(census)) + "# EOF\n"
}

/// A counter of processes.
struct Counter {
    name: &'static str,
    help: &'static str,
    value: fn(&Totals) -> u64,
}

const COUNTERS: [Counter; 7] = [
    Counter {
        name: "sidestep_connections",
        help: "Connections that had a second exchange.",
        value: |totals| totals.sockets,
    },
    Counter {
        name: "sidestep_promoted_connections",
        help: "Those of them that were promoted.",
        value: |totals| totals.promoted,
    },
    Counter {
        name: "sidestep_messages",
        help: "Calls that moved something over a carrier.",
        value: |totals| totals.messages,
    },
    Counter {
        name: "sidestep_looks",
        help: "Waits that looked for a while before they found something or slept.",
        value: |totals| totals.looks,
    },
    Counter { name: "sidestep_sleeps", help: "Sleeps while waiting for a carrier.", value: |totals| totals.sleeps },
    Counter {
        name: "sidestep_doorbells",
        help: "Doorbells rung for peers that slept.",
        value: |totals| totals.doorbells,
    },
    Counter {
        name: "sidestep_promotions",
        help: "Directions that moved from TCP to a carrier.",
        value: |totals| totals.promotions,
    },
];

fn head(text: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {help}");
}

/// The labels of a process.
pub fn labels(census: &Census, pid: u32) -> String {
    let name = census.program(pid).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("pid=\"{pid}\",program=\"{name}\"")
}
