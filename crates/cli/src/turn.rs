//! `sidestep off` and `sidestep on`: connections go back to TCP while their programs run, and may leave it again.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use sidestep_sockets::{
    config::config,
    registry::{Registry, SocketRecord, Subject, Turned},
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
    let (mut rung, mut left) = (0, Vec::new());
    for user in users {
        owner::become_user(user)?;
        let Some(registry) = Registry::attach(&config().directory) else { continue };
        match registry.turn(*subject, off) {
            Turned::Ordered(processes) => rung += processes,
            Turned::TooMany => bail!("as many ports are turned off as can be: turn one on again first"),
            Turned::Unknown => {}
        }
        if off {
            left.extend(stragglers(subject));
        }
    }
    owner::become_self()?;
    if let Subject::Process(pid) = *subject
        && rung == 0
    {
        let name = process::program(pid).unwrap_or_default();
        bail!("process {pid} ({name}) is not under Sidestep, or has had no connection with a second exchange yet");
    }
    let what = match subject {
        Subject::Process(pid) => format!("process {pid}"),
        Subject::Port(port) => format!("port {port}"),
    };
    match off {
        true => {
            println!("{what} is off: its connections go over TCP, and new ones stay there; {rung} processes were told")
        }
        false => println!("{what} is on: its connections may be accelerated again; {rung} processes were told"),
    }
    if !left.is_empty() {
        println!("{} connections have not moved yet; each does with the next call of its process:", left.len());
        left.iter().take(MOST).for_each(|socket| {
            println!("  {} {}, {} to {}", socket.pid, socket.fd, socket.key.local, socket.key.remote);
        });
    }
    Ok(())
}

/// More than this nobody reads.
const MOST: usize = 20;

/// The connections that are on a carrier after a while.
fn stragglers(subject: &Subject) -> Vec<SocketRecord> {
    let Some(view) = Registry::look(&config().directory) else { return Vec::new() };
    let end = Instant::now() + PATIENCE;
    loop {
        let mut sockets = view.sockets();
        sockets.retain(|socket| {
            let fits = match *subject {
                Subject::Process(pid) => socket.pid == pid,
                Subject::Port(port) => [socket.key.local.port(), socket.key.remote.port()].contains(&port),
            };
            fits && socket.on_carrier != (false, false) && process::program(socket.pid).is_some()
        });
        if sockets.is_empty() || Instant::now() >= end {
            return sockets;
        }
        thread::sleep(LOOK);
    }
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
}
