//! What it costs to be looked at: an exchange beside a tool, and the same without, in turn.

use std::{
    io::{BufRead, BufReader, Read, Write, copy, sink},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::super::place::Placement;
use super::super::record::Metric;
use super::job::{Report, Span, Waiting, Work};
use super::outcome::{Outcome, Row};
use super::pair::{Place, Server, Via, own_program, serve_end};
use super::round::{Found, claim};
use super::{Bench, Effort};

/// The bench of this file.
pub const BENCHES: &[Bench] = &[Bench {
    name: "tools",
    about: "half round trip of 64 bytes beside stat, top, metrics and tap, and without them",
    quick: false,
    run,
}];

/// A tool that looks at running programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `stat --watch`.
    Stat,
    /// `top`, in a terminal.
    Top,
    /// `stat --metrics`, and somebody who asks it.
    Metrics,
    /// `tap`, whose capture nobody keeps.
    Tap,
}

/// Every tool, and what its users are promised: how much of the speed is left at least.
const TOOLS: [(Tool, f64); 4] = [(Tool::Stat, 0.98), (Tool::Top, 0.98), (Tool::Metrics, 0.98), (Tool::Tap, 0.5)];

/// Tools look ten times as often as they do by themselves.
const INTERVAL: Duration = Duration::from_millis(100);
/// The ends exchange for so long before a tool is attached, and then until a measurement begins: it has settled by then.
const ALONE: Duration = Duration::from_millis(150);
const WARM_MS: u64 = 600;

impl Tool {
    /// The path of the records of an exchange beside it.
    pub fn way(self) -> &'static str {
        match self {
            Tool::Stat => "ring+stat",
            Tool::Top => "ring+top",
            Tool::Metrics => "ring+metrics",
            Tool::Tap => "ring+tap",
        }
    }

    /// Starts it, and waits until it looks.
    fn attach(self) -> Result<Attached> {
        let mut command = Command::new(own_program()?);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match self {
            Tool::Stat => Attached::start(command.args(["stat", "--watch=0.1"])),
            Tool::Top => top(command.args(["top", "--interval", "0.1"])),
            Tool::Metrics => metrics(command.args(["stat", "--metrics", "127.0.0.1:0"])),
            Tool::Tap => {
                let mut tap = Attached::start(command.args(["tap", "-w", "/dev/null"]).stderr(Stdio::piped()))?;
                let said = tap.first_line()?;
                if !said.contains("capturing") {
                    bail!("the tap says: {said}");
                }
                Ok(tap)
            }
        }
    }
}

/// A tool at work, until it is dropped.
struct Attached {
    process: Child,
    over: Arc<AtomicBool>,
}

impl Attached {
    fn start(command: &mut Command) -> Result<Attached> {
        Ok(Attached { process: command.spawn().context("cannot start a tool")?, over: Arc::default() })
    }

    /// What it says first on its standard error.
    fn first_line(&mut self) -> Result<String> {
        let mut line = String::new();
        BufReader::new(self.process.stderr.as_mut().context("no output")?).read_line(&mut line)?;
        Ok(line)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        // It may have ended by itself. A tap takes its order back.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}

/// `top` in a terminal of the usual size, which somebody reads.
fn top(command: &mut Command) -> Result<Attached> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size)?;
    let path = ptsname(&terminal, Vec::new())?.into_string()?;
    let end = std::fs::File::options().read(true).write(true).open(path)?;
    let attached = Attached::start(command.stdin(end.try_clone()?).stdout(end))?;
    // Ends with the program at the other side.
    thread::spawn(move || copy(&mut std::fs::File::from(terminal), &mut sink()));
    Ok(attached)
}

/// The server of metrics, and a client of it.
fn metrics(command: &mut Command) -> Result<Attached> {
    let mut server = Attached::start(command.stderr(Stdio::piped()))?;
    let line = server.first_line()?;
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let address: SocketAddr = address.with_context(|| format!("no address in {line:?}"))?.parse()?;
    let over = server.over.clone();
    thread::spawn(move || {
        while !over.load(Relaxed) && ask(address).is_ok() {
            thread::sleep(INTERVAL);
        }
    });
    Ok(server)
}

fn ask(address: SocketAddr) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    stream.read_to_end(&mut Vec::new())?;
    Ok(())
}

fn run(effort: &Effort) -> Result<Vec<Outcome>> {
    TOOLS.iter().map(|(tool, must)| beside(effort, *tool, *must)).collect()
}

/// One pair of processes, which a tool comes to and leaves again: other processes have other addresses, and so other times.
fn beside(effort: &Effort, tool: Tool, must: f64) -> Result<Outcome> {
    let place = Place { cores: effort.cores, placement: Placement::Cross, pair: 0 };
    let mut rows = [Via::Ring, Via::Beside(tool)].map(|via| Row::new(via, place.placement));
    let echo = Work::Echo { size: 64, wait: Waiting::Block, connections: 1 };
    let server = Server::start(Via::Ring, echo, Some(place))?;
    let span = Span { warm_ms: WARM_MS, run_ms: effort.run_ms * 4 };
    let windows = Work::Windows { size: 64, span, count: effort.rounds * rows.len() };
    let mut client = server.client(Via::Ring, windows, Some(place))?;
    // A tap is refused before two programs have met.
    thread::sleep(ALONE);
    for _ in 0..effort.rounds {
        for row in &mut rows {
            let attached = match row.via {
                Via::Beside(tool) => Some(tool.attach()?),
                _ => None,
            };
            row.add(Found::exchange(&client.next_report()?, &Report::default()));
            drop(attached);
        }
    }
    drop(client);
    serve_end(server)?;
    Ok(Outcome {
        bench: "tools",
        what: format!("64-byte request and response, alone and as {}; processor time of one end", tool.way()),
        size: 64,
        rows: rows.into(),
        parameters: Vec::new(),
        ours: Via::Beside(tool),
        claims: vec![claim(Via::Ring, Metric::OneWayP50, must, None)],
        note: None,
    })
}
