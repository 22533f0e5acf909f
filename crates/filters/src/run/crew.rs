//! The processes of a group: started, given orders, heard, and started again.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::message::{Order, Report};
use super::pulse::Pulse;
use super::worker::{VARIABLE, Worker};
use crate::error::{Error, Result};
use crate::filter::Kinds;
use crate::graph::{Graph, HERE, HostSpec, MAIN};

/// How worker processes of this host are started.
#[derive(Debug, Clone, Default)]
pub struct Launcher {
    command: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Launcher {
    /// This program again, which must call [`enter`](super::worker::enter) first in `main`.
    pub fn this_program() -> Launcher {
        Launcher::default()
    }

    /// Another command, whose standard input and output are the line to the coordinator.
    pub fn command(words: &[&str]) -> Launcher {
        Launcher { command: words.iter().map(|word| (*word).to_owned()).collect(), variables: Vec::new() }
    }

    /// A variable in the environment of the workers.
    pub fn with_variable(mut self, name: &str, value: &str) -> Launcher {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn start(&self, host: Option<&HostSpec>) -> std::io::Result<Child> {
        let words = host.map_or(&self.command, |host| &host.command);
        let mut command = match words.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
            None => Command::new(std::env::current_exe()?),
        };
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        command.env(VARIABLE, "1").envs(variables).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    }
}

/// What a process of the crew says.
#[derive(Debug)]
pub(super) enum Event {
    Report(Report),
    /// The process is gone.
    Ended,
    /// The user gives a unit of work up.
    Cancel(u64),
}

/// All processes.
pub(super) struct Crew {
    hands: BTreeMap<String, Hand>,
    launcher: Launcher,
    hosts: Vec<HostSpec>,
    pulse: Pulse,
    events: Receiver<(String, u64, Event)>,
    sender: Sender<(String, u64, Event)>,
}

struct Hand {
    host: Option<String>,
    /// How often it was started: what an earlier one said does not count.
    life: u64,
    line: Line,
}

enum Line {
    /// The worker of this process.
    Here(Sender<Order>),
    /// Another process, and what writes its orders: nobody waits for one that does not read.
    Process(Child, Sender<Vec<u8>>),
    Gone,
}

impl Crew {
    pub fn start(graph: &Graph, kinds: &Kinds, launcher: Launcher) -> Result<Crew> {
        let (sender, events) = channel();
        let mut crew = Crew {
            hands: BTreeMap::new(),
            launcher,
            hosts: graph.hosts.clone(),
            pulse: Pulse::default(),
            events,
            sender,
        };
        let (orders, followed) = channel::<Order>();
        let (kinds, reports) = (kinds.clone(), crew.sender.clone());
        let follow = move || {
            // Nobody hears a group that was dropped.
            let reporter = Arc::new(move |report| drop(reports.send((MAIN.into(), 0, Event::Report(report)))));
            let mut worker = Worker::new(kinds, reporter);
            followed.iter().for_each(|order| worker.follow(order));
        };
        thread::Builder::new().name("worker".into()).spawn(follow).map_err(Error::system("a thread"))?;
        crew.hands.insert(MAIN.into(), Hand { host: None, life: 0, line: Line::Here(orders) });
        for (process, host) in graph.processes() {
            crew.hands.insert(process.clone(), Hand { host, life: 0, line: Line::Gone });
            crew.restart(&process)?;
        }
        Ok(crew)
    }

    /// Starts a process that is gone.
    pub fn restart(&mut self, process: &str) -> Result<()> {
        let Some(hand) = self.hands.get_mut(process) else { return Ok(()) };
        if !matches!(hand.line, Line::Gone) {
            return Ok(());
        }
        let host = hand.host.as_ref().and_then(|name| self.hosts.iter().find(|host| host.name == *name));
        let started = self.launcher.start(host);
        let mut child = started.map_err(|error| Error::Start { process: process.into(), what: error.to_string() })?;
        hand.life += 1;
        let (sender, name, life) = (self.sender.clone(), process.to_owned(), hand.life);
        let (orders, reports) = (child.stdin.take(), child.stdout.take());
        let (line, lines) = channel::<Vec<u8>>();
        hand.line = Line::Process(child, line);
        self.pulse.expect(process, Instant::now());
        thread::Builder::new()
            .name("orders".into())
            .spawn(|| write(orders, lines))
            .map_err(Error::system("a thread"))?;
        let listen = move || {
            let mut reports = reports.map(BufReader::new);
            while let Some(line) = reports.as_mut().and_then(next_line) {
                // What is no report was printed by whoever started the process.
                if let Ok(report) = serde_json::from_slice(&line) {
                    let _ = sender.send((name.clone(), life, Event::Report(report)));
                }
            }
            let _ = sender.send((name, life, Event::Ended));
        };
        thread::Builder::new().name("reports".into()).spawn(listen).map_err(Error::system("a thread"))?;
        Ok(())
    }

    pub fn names(&self) -> Vec<String> {
        self.hands.keys().cloned().collect()
    }

    pub fn pids(&self) -> Vec<(String, u32)> {
        let pid = |(name, hand): (&String, &Hand)| match &hand.line {
            Line::Process(child, _) => Some((name.clone(), child.id())),
            Line::Here(_) | Line::Gone => None,
        };
        self.hands.iter().filter_map(pid).collect()
    }

    /// Where other hosts reach a process, if there are any.
    pub fn address_of(&self, process: &str) -> Option<IpAddr> {
        if self.hands.values().all(|hand| hand.host.is_none()) {
            return None;
        }
        let host = self.hands.get(process)?.host.as_deref().unwrap_or(HERE);
        self.hosts.iter().find(|known| known.name == host).map(|host| host.address)
    }

    /// Gives an order. One that is gone does not hear it; that it is gone is another event.
    pub fn order(&mut self, process: &str, order: &Order) {
        match self.hands.get_mut(process).map(|hand| &mut hand.line) {
            Some(Line::Here(orders)) => drop(orders.send(order.clone())),
            Some(Line::Process(_, orders)) => {
                let Ok(mut line) = serde_json::to_vec(order) else { return };
                line.push(b'\n');
                let _ = orders.send(line);
            }
            Some(Line::Gone) | None => {}
        }
    }

    pub fn order_all(&mut self, order: &Order) {
        self.names().iter().for_each(|process| self.order(process, order));
    }

    /// The next event, of processes as they are now.
    pub fn next(&mut self, limit: Option<Duration>) -> Option<(String, Event)> {
        loop {
            let next = match limit {
                Some(limit) => self.events.recv_timeout(limit),
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let (process, life, event) = next.ok()?;
            if matches!(event, Event::Cancel(_)) {
                return Some((process, event));
            }
            let Some(hand) = self.hands.get_mut(&process) else { continue };
            if hand.life != life {
                continue;
            }
            match event {
                // Its line is closed, so it has ended or is of no use.
                Event::Ended => self.dismiss(&process),
                Event::Report(_) | Event::Cancel(_) => self.pulse.heard(&process, Instant::now()),
            }
            return Some((process, event));
        }
    }

    /// Ends a process.
    pub fn dismiss(&mut self, process: &str) {
        self.pulse.forget(process);
        let Some(hand) = self.hands.get_mut(process) else { return };
        if let Line::Process(mut child, _) = std::mem::replace(&mut hand.line, Line::Gone) {
            let _ = child.kill();
            let _ = child.wait();
        }
        // What it said before does not count any more.
        hand.life += 1;
    }

    /// Asks those that have not been heard of for a while; how long until the next look.
    pub fn ask(&mut self, patience: Duration) -> Option<Duration> {
        let now = Instant::now();
        for process in self.pulse.due(now, patience) {
            self.order(&process, &Order::Answer);
        }
        self.pulse.next(now, patience)
    }

    /// A process that has not answered for so long. To be asked when no event waits: it may be an answer.
    pub fn silent(&mut self, patience: Duration) -> Option<String> {
        self.pulse.silent(Instant::now(), patience)
    }

    pub fn sender(&self) -> Sender<(String, u64, Event)> {
        self.sender.clone()
    }
}

/// Writes the orders of a process until there are no more, or it reads no more.
fn write(to: Option<ChildStdin>, lines: Receiver<Vec<u8>>) {
    let Some(mut to) = to else { return };
    for line in lines {
        if to.write_all(&line).is_err() {
            return;
        }
    }
}

/// The next line of a process; `None` at the end, and for one that does not end.
fn next_line(reports: &mut BufReader<ChildStdout>) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let count = reports.take(LINE).read_until(b'\n', &mut line).ok()?;
    (count > 0 && line.ends_with(b"\n")).then_some(line)
}

impl Drop for Crew {
    fn drop(&mut self) {
        let mut children = Vec::new();
        for hand in self.hands.values_mut() {
            if let Line::Process(child, orders) = std::mem::replace(&mut hand.line, Line::Gone) {
                // A worker ends when its orders do.
                drop(orders);
                children.push(child);
            }
        }
        for mut child in children {
            for _ in 0..FAREWELL {
                if !matches!(child.try_wait(), Ok(None)) {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
            // A filter may compute for ever.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Bytes of a report, at most: counts of some hundred copies take a part of it.
const LINE: u64 = 1 << 20;

/// Milliseconds that a worker gets to end by itself.
const FAREWELL: u32 = 2000;
