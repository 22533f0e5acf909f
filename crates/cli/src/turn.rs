//! `sidestep off` and `sidestep on`: connections go back to TCP while their programs run, and may leave it again.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use sidestep_sockets::{
    config::config,
    registry::{Registry, SocketRecord, Subject, Turned, View},
};

use crate::census::{owner, process};

/// How long the processes may take before they are said to be late, and between two looks.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(5);

/// Reads `PID` or `:PORT`.
pub fn subject(text: &str) -> Result<Subject, String> {
    let wrong = |_| "it is a process id, or a port as :PORT".to_owned();
    match text.strip_prefix(':') {
        Some(port) => match port.parse().map_err(wrong)? {
            0 => Err("there is no port 0".to_owned()),
            port => Ok(Subject::Port(port)),
        },
        None => text.parse().map(Subject::Process).map_err(wrong),
    }
}

/// Gives the order, waits until the processes have carried it out, and says what has become of it.
pub fn run(subject: &Subject, off: bool) -> Result<()> {
    let users = match *subject {
        Subject::Process(pid) => vec![owner::of_process(pid)?],
        Subject::Port(_) => owner::with_registries(),
    };
    let mut done = Done::default();
    for user in users {
        owner::become_user(user)?;
        let Some(registry) = Registry::attach(&config().directory) else { continue };
        done.look_before(subject);
        match registry.turn(*subject, off) {
            Turned::Ordered(processes) => {
                done.orders += 1;
                done.told += processes;
            }
            Turned::TooMany => bail!("as many ports are turned off as can be: turn one on again first"),
            Turned::Unknown => {}
        }
        if off {
            done.left.extend(stragglers(subject));
        }
    }
    owner::become_self()?;
    println!("{}", done.said(subject, off)?);
    if !done.left.is_empty() {
        println!("{} connections have not moved yet; each does with the next call of its process:", done.left.len());
        done.left.iter().take(MOST).for_each(|socket| {
            println!("  {} {}, {} to {}", socket.pid, socket.fd, socket.key.local, socket.key.remote);
        });
    }
    Ok(())
}

/// What has become of an order.
#[derive(Debug, Default)]
struct Done {
    /// In how many registries it stands.
    orders: usize,
    /// Processes that were rung.
    told: usize,
    /// Connections that it is about, of living processes, when it was given.
    connections: usize,
    /// Whether the same was turned off before.
    was_off: bool,
    /// Connections that are on a carrier after a while.
    left: Vec<SocketRecord>,
}

impl Done {
    fn look_before(&mut self, subject: &Subject) {
        let Some(view) = Registry::look(&config().directory) else { return };
        self.connections += concerned(&view, subject).len();
        self.was_off |= match *subject {
            Subject::Process(pid) => view.processes_off().contains(&pid),
            Subject::Port(port) => view.ports_off().contains(&port),
        };
    }

    /// The sentence for the user; an error if nothing was turned off.
    fn said(&self, subject: &Subject, off: bool) -> Result<String> {
        let told = match self.told {
            0 => String::new(),
            1 => "; 1 process was told".to_owned(),
            told => format!("; {told} processes were told"),
        };
        match (*subject, off) {
            // A record without a process that hears is one of an older process, or of one that has no engine.
            (Subject::Process(pid), _) if self.told == 0 => {
                let name = process::program(pid).unwrap_or_default();
                match process::has_library(pid) {
                    Some(true) => bail!(
                        "process {pid} ({name}) has no connection that could be turned: one comes into question with its \
                         second exchange (`sidestep why {pid}`)"
                    ),
                    _ => bail!("process {pid} ({name}) does not run under Sidestep (a port is written :{pid})"),
                }
            }
            (Subject::Port(port), true) if self.orders == 0 => {
                bail!(
                    "nothing was turned off: no program {} has a connection under Sidestep, at port {port} or another",
                    of_whom()
                )
            }
            (Subject::Port(port), false) if !self.was_off => Ok(format!("port {port} was not turned off")),
            (Subject::Process(pid), false) if !self.was_off => Ok(format!("process {pid} was not turned off")),
            (Subject::Port(port), true) if self.connections == 0 => Ok(format!(
                "port {port} is off for connections to come; no program {} has one there under Sidestep now",
                of_whom()
            )),
            (Subject::Process(pid), true) => {
                Ok(format!("process {pid} is off: its connections go over TCP, and new ones stay there{told}"))
            }
            (Subject::Port(port), true) => {
                Ok(format!("port {port} is off: its connections go over TCP, and new ones stay there{told}"))
            }
            (Subject::Process(pid), false) => {
                Ok(format!("process {pid} is on: its connections may be accelerated again{told}"))
            }
            (Subject::Port(port), false) => {
                Ok(format!("port {port} is on: its connections may be accelerated again{told}"))
            }
        }
    }
}

/// Whose connections an order is about.
fn of_whom() -> &'static str {
    if rustix::process::getuid().is_root() { "of any user" } else { "of this user" }
}

/// More than this nobody reads.
const MOST: usize = 20;

/// The connections that are on a carrier after a while.
fn stragglers(subject: &Subject) -> Vec<SocketRecord> {
    let Some(view) = Registry::look(&config().directory) else { return Vec::new() };
    let end = Instant::now() + PATIENCE;
    loop {
        let mut sockets = concerned(&view, subject);
        sockets.retain(|socket| socket.on_carrier != (false, false));
        if sockets.is_empty() || Instant::now() >= end {
            return sockets;
        }
        thread::sleep(LOOK);
    }
}

/// The connections that an order is about, of processes that live.
fn concerned(view: &View, subject: &Subject) -> Vec<SocketRecord> {
    let mut sockets = view.sockets();
    sockets.retain(|socket| {
        let fits = match *subject {
            Subject::Process(pid) => socket.pid == pid,
            Subject::Port(port) => [socket.key.local.port(), socket.key.remote.port()].contains(&port),
        };
        fits && process::program(socket.pid).is_some()
    });
    sockets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_processes_or_ports() {
        assert_eq!((subject("4711"), subject(":80")), (Ok(Subject::Process(4711)), Ok(Subject::Port(80))));
        for wrong in ["", ":", ":0", ":65536", "redis", "-1", "127.0.0.1:80"] {
            assert!(subject(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_said_is_what_was_done() {
        let port = Subject::Port(80);
        let said = |done: Done, off| done.said(&port, off).map_err(|error| error.to_string());
        let ordered = |connections| Done { orders: 1, connections, told: connections, ..Done::default() };
        assert!(said(Done::default(), true).is_err_and(|said| said.contains("nothing was turned off")));
        assert!(said(ordered(0), true).is_ok_and(|said| said.contains("connections to come")));
        assert!(
            said(ordered(1), true).is_ok_and(|said| said.contains("go over TCP") && said.contains("1 process was"))
        );
        assert!(said(ordered(1), false).is_ok_and(|said| said.contains("was not turned off")));
        let on = Done { was_off: true, ..ordered(2) };
        assert!(said(on, false).is_ok_and(|said| said.contains("is on") && said.contains("2 processes were")));
        let own = Subject::Process(std::process::id());
        assert!(Done::default().said(&own, true).is_err_and(|error| error.to_string().contains("does not run under")));
    }
}
