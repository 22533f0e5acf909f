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
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::super::place::Placement;
use super::super::record::Metric;
use super::job::{Span, Waiting, Work};
use super::outcome::Outcome;
use super::pair::{Server, Via, own_program, serve_end};
use super::round::{Found, claim, rounds};
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
/// The ends exchange for so long before a tool is attached, and then until the measurement begins: it has settled by then.
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
        // It may have ended by itself.
        let _ = self.process.kill();
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

fn beside(effort: &Effort, tool: Tool, must: f64) -> Result<Outcome> {
    let span = Span { warm_ms: WARM_MS, run_ms: effort.run_ms * 4 };
    let ways = [(Via::Ring, Placement::Cross), (Via::Beside(tool), Placement::Cross)];
    let rows = rounds(effort, &ways, |via, place| {
        let server = Server::start(via, Work::Echo { size: 64, wait: Waiting::Block, connections: 1 }, Some(place))?;
        let exchange = Work::Exchange { size: 64, wait: Waiting::Block, pause_us: 0, span };
        let client = server.client(via, exchange, Some(place))?;
        thread::sleep(ALONE);
        let attached = match via {
            Via::Beside(tool) => Some(tool.attach()?),
            _ => None,
        };
        let client = client.report()?;
        drop(attached);
        Ok(Found::exchange(&client, &serve_end(server)?))
    })?;
    Ok(Outcome {
        bench: "tools",
        what: format!("64-byte request and response, alone and as {}", tool.way()),
        size: 64,
        rows,
        parameters: Vec::new(),
        ours: Via::Beside(tool),
        claims: vec![claim(Via::Ring, Metric::OneWayP50, must, None)],
        note: None,
    })
}
