//! `sidestep stat`: every connection of every process of this user that runs under `sidestep run`; for root, of every user. Those that have had a
//! second exchange are in the registry; the others are the kernel's alone so far, and are read from `/proc`.

use std::{
    collections::{BTreeMap, HashMap},
    io::Write,
};

use anyhow::Result;
use serde_json::json;
use sidestep_sockets::{
    config::config,
    reason::Reason,
    registry::{CarrierName, Registry, SocketRecord, Traffic, View},
};

use crate::options::Stat;

mod unlisted;

/// Prints the table, or one JSON object a line.
pub fn run(options: &Stat) -> Result<()> {
    let sockets = sockets(options.process);
    if options.json {
        let lines: String = sockets.iter().map(|socket| format!("{}\n", to_json(socket))).collect();
        let _ = std::io::stdout().write_all(lines.as_bytes());
        return Ok(());
    }
    if sockets.is_empty() {
        let of = options.process.map_or(String::new(), |process| format!(" of process {process}"));
        println!("no sockets{of}: nothing runs under `sidestep run`, or nothing is connected");
        return Ok(());
    }
    // A reader that has seen enough is no error.
    let _ = std::io::stdout().write_all(table(&sockets).as_bytes());
    Ok(())
}

/// The sockets of one process, or of all.
pub fn sockets(process: Option<u32>) -> Vec<SocketRecord> {
    let registries = Registry::look_at_all(&config().directory);
    let mut sockets: Vec<SocketRecord> = registries.iter().flat_map(View::sockets).collect();
    unlisted::add(&mut sockets);
    explain_by_peers(&mut sockets);
    // The places of a process that was killed stay until another one needs them.
    let lives = |process: u32| std::path::Path::new(&format!("/proc/{process}")).exists();
    sockets.retain(|socket| process.is_none_or(|process| socket.pid == process) && lives(socket.pid));
    sockets.sort_by_key(|socket| (socket.pid, socket.fd));
    sockets
}

/// An end that has not found its peer does not know why. Here both are known.
fn explain_by_peers(sockets: &mut [SocketRecord]) {
    let reasons: HashMap<_, _> =
        sockets.iter().map(|socket| ((socket.key.local, socket.key.remote), socket.reason)).collect();
    for socket in sockets.iter_mut().filter(|socket| socket.reason == Reason::PeerUnknown) {
        match reasons.get(&(socket.key.remote, socket.key.local)) {
            Some(Reason::Young | Reason::PeerUnknown) => socket.reason = Reason::Searching,
            Some(_) => socket.reason = Reason::PeerStays,
            None => {}
        }
    }
}

fn table(sockets: &[SocketRecord]) -> String {
    let mut names = BTreeMap::new();
    let mut table = format!(
        "{:>7} {:<15} {:>4}  {:<21} {:<21} {:<9} {:>10} {:>10} {:>9} {:>9} {:>7}  WHY\n",
        "PID", "PROGRAM", "FD", "LOCAL", "REMOTE", "PATH", "READ", "WRITTEN", "MSGS IN", "MSGS OUT", "SLEEPS"
    );
    for socket in sockets {
        let name = names.entry(socket.pid).or_insert_with(|| program(socket.pid));
        let counted = |bytes: u64| if socket.since != 0 { self::bytes(bytes) } else { "-".to_string() };
        table += &format!(
            "{:>7} {:<15} {:>4}  {:<21} {:<21} {:<9} {:>10} {:>10} {:>9} {:>9} {:>7}  {}\n",
            socket.pid,
            name,
            socket.fd,
            socket.key.local.to_string(),
            socket.key.remote.to_string(),
            path(socket),
            counted(socket.read.bytes()),
            counted(socket.written.bytes()),
            socket.read.messages,
            socket.written.messages,
            socket.sleeps,
            why(socket),
        );
    }
    table
}

fn to_json(socket: &SocketRecord) -> serde_json::Value {
    let traffic = |traffic: &Traffic| {
        (socket.since != 0).then(|| {
            json!({
                "tcp": traffic.tcp, "ring": traffic.carried,
                "tcp_in_first_second": traffic.tcp_young, "messages": traffic.messages })
        })
    };
    json!({
        "pid": socket.pid,
        "program": program(socket.pid),
        "fd": socket.fd,
        "local": socket.key.local.to_string(),
        "remote": socket.key.remote.to_string(),
        "reads_from": path_of(socket, socket.on_carrier.0),
        "writes_to": path_of(socket, socket.on_carrier.1),
        "reason": socket.reason.name(),
        "why": why(socket),
        "read": traffic(&socket.read),
        "written": traffic(&socket.written),
        "sleeps": socket.sleeps,
        "doorbells": socket.doorbells,
        "since_ns": socket.since,
        "promoted_ns": socket.promoted_at,
    })
}

fn path(socket: &SocketRecord) -> String {
    let [reads, writes] = [socket.on_carrier.0, socket.on_carrier.1].map(|on_carrier| path_of(socket, on_carrier));
    if reads == writes { reads.to_owned() } else { format!("{reads}/{writes}") }
}

/// The path of one direction, on the carrier or not.
fn path_of(socket: &SocketRecord, on_carrier: bool) -> &'static str {
    if on_carrier { socket.carrier.map_or("tcp", CarrierName::name) } else { "tcp" }
}

fn why(socket: &SocketRecord) -> &'static str {
    match (socket.reason, socket.on_carrier) {
        (Reason::Promoted, (false, false)) => "agreed, and leaves TCP with the next bytes",
        (Reason::Promoted, (false, true)) => "promoted; nothing was read yet",
        (Reason::Promoted, (true, false)) => "promoted; nothing was written yet",
        (reason, _) => reason.sentence(),
    }
}

fn program(process: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
    name.map_or_else(|_| "(gone)".to_string(), |name| name.trim().to_string())
}

/// A size for people.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (0..4).take_while(|power| count >> (10 * (power + 1)) > 0).count();
    match unit {
        0 => format!("{count} B"),
        unit => format!("{:.1} {}", count as f64 / (1u64 << (10 * unit)) as f64, UNITS[unit]),
    }
}
