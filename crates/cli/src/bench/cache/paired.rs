//! Two ways that are asked in turns of half a second, by clients that stay connected: what changes in the machine meanwhile changes both,
//! and connections have long been made, and promoted, when they are measured.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::process::CommandExt,
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use super::site::Site;
use crate::bench::stats::median;

/// A client that asks in one way, and only while it is let.
struct Client<'a> {
    process: Child,
    /// Where the proxies of this way tell their counts.
    counts: &'a [String],
}

/// How long a way is asked at a time, and how long before that is not counted: until what lay in connections has gone.
const PIECE: Duration = Duration::from_millis(500);
const BEFORE: Duration = Duration::from_millis(50);
/// How long wrk may take until it has asked for the first time.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many times as many requests the second way answers as the first: the median of so many pairs of pieces. Documents are changed
/// meanwhile as in all measurements.
pub fn ratio(site: &Site, ways: [&str; 2], pairs: usize) -> Result<f64> {
    let seconds = (PIECE + 2 * BEFORE).as_secs_f64() * (2 * pairs + 2) as f64;
    let seconds = seconds.ceil() as u64 + 10;
    let [first, second] = ways.map(|way| Client::start(site, way, seconds));
    let (clients, over) = ([first?, second?], AtomicBool::new(false));
    let ratios = thread::scope(|scope| {
        scope.spawn(|| site.change_documents(&over));
        let ratios = (0..=pairs).map(|pair| {
            let mut rates = [0.0; 2];
            // Neither is always the first.
            for at in [pair % 2, 1 - pair % 2] {
                rates[at] = clients[at].piece()?;
            }
            Ok(rates[1] / rates[0])
        });
        let ratios: Result<Vec<f64>> = ratios.collect();
        over.store(true, Ordering::Relaxed);
        ratios
    });
    // The first pair fills the caches and makes the connections.
    median(ratios?.into_iter().skip(1)).context("no pair was measured")
}

impl Client<'_> {
    fn start<'a>(site: &'a Site, way: &str, seconds: u64) -> Result<Client<'a>> {
        let mut command = site.client(way, seconds)?;
        let process = command.process_group(0).stdout(Stdio::null()).spawn().context("wrk is not installed")?;
        let client = Client { process, counts: site.counts(way)? };
        let (before, began) = (client.count()?, Instant::now());
        while client.count()? == before {
            ensure!(began.elapsed() < PATIENCE, "wrk asks for nothing");
            thread::sleep(BEFORE);
        }
        client.signal(Signal::STOP)?;
        Ok(client)
    }

    /// Requests a second that are answered while this client alone may ask.
    fn piece(&self) -> Result<f64> {
        self.signal(Signal::CONT)?;
        thread::sleep(BEFORE);
        let (before, began) = (self.count()?, Instant::now());
        thread::sleep(PIECE);
        let (after, took) = (self.count()?, began.elapsed());
        self.signal(Signal::STOP)?;
        ensure!(after > before, "wrk asks for nothing any more");
        Ok((after - before) as f64 / took.as_secs_f64())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process_group(Pid::from_child(&self.process), signal)?)
    }

    /// Requests that the proxies have answered.
    fn count(&self) -> Result<u64> {
        self.counts.iter().map(|address| answered(address)).sum()
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        // A program that is stopped ends, too.
        let _ = self.signal(Signal::KILL);
        let _ = self.process.wait();
    }
}

fn answered(address: &str) -> Result<u64> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("sidestep_cache_{name}_total ")));
        line.and_then(|value| value.trim().parse::<u64>().ok()).with_context(|| format!("no count of {name}"))
    };
    Ok(count("hits")? + count("misses")? + count("passed")?)
}
