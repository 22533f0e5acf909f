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
    registry::{Field, Registry, Snapshot},
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
pub fn sockets(process: Option<u32>) -> Vec<Snapshot> {
    let registries = Registry::look_at_all(&config().directory);
    let mut sockets: Vec<Snapshot> = registries.iter().flat_map(Registry::snapshot).collect();
    unlisted::add(&mut sockets);
    explain_by_peers(&mut sockets);
    // The places of a process that was killed stay until another one needs them.
    let lives = |process: u32| std::path::Path::new(&format!("/proc/{process}")).exists();
    sockets.retain(|socket| process.is_none_or(|process| socket.process == process) && lives(socket.process));
    sockets.sort_by_key(|socket| (socket.process, socket.field(Field::Descriptor)));
    sockets
}

/// An end that has not found its peer does not know why. Here both are known.
fn explain_by_peers(sockets: &mut [Snapshot]) {
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

fn table(sockets: &[Snapshot]) -> String {
    let mut names = BTreeMap::new();
    let mut table = format!(
        "{:>7} {:<15} {:>4}  {:<21} {:<21} {:<9} {:>10} {:>10} {:>9} {:>9} {:>7}  WHY\n",
        "PID", "PROGRAM", "FD", "LOCAL", "REMOTE", "PATH", "READ", "WRITTEN", "MSGS IN", "MSGS OUT", "SLEEPS"
    );
    for socket in sockets {
        let name = names.entry(socket.process).or_insert_with(|| program(socket.process));
        let field = |field| socket.field(field);
        table += &format!(
            "{:>7} {:<15} {:>4}  {:<21} {:<21} {:<9} {:>10} {:>10} {:>9} {:>9} {:>7}  {}\n",
            socket.process,
            name,
            field(Field::Descriptor),
            socket.key.local.to_string(),
            socket.key.remote.to_string(),
            path(socket),
            counted(socket, [Field::ReadTcp, Field::ReadRing]).map_or("-".to_string(), bytes),
            counted(socket, [Field::WrittenTcp, Field::WrittenRing]).map_or("-".to_string(), bytes),
            field(Field::ReadMessages),
            field(Field::WrittenMessages),
            field(Field::Sleeps),
            why(socket),
        );
    }
    table
}

fn to_json(socket: &Snapshot) -> serde_json::Value {
    let field = |field| socket.field(field);
    let is_counted = field(Field::Since) != 0;
    json!({
        "pid": socket.process,
        "program": program(socket.process),
        "fd": field(Field::Descriptor),
        "local": socket.key.local.to_string(),
        "remote": socket.key.remote.to_string(),
        "reads_from": path_of(socket, socket.on_ring.0),
        "writes_to": path_of(socket, socket.on_ring.1),
        "reason": format!("{:?}", socket.reason),
        "why": why(socket),
        "read": is_counted.then(|| json!({
            "tcp": field(Field::ReadTcp), "ring": field(Field::ReadRing),
            "tcp_in_first_second": field(Field::ReadTcpYoung), "messages": field(Field::ReadMessages) })),
        "written": is_counted.then(|| json!({
            "tcp": field(Field::WrittenTcp), "ring": field(Field::WrittenRing),
            "tcp_in_first_second": field(Field::WrittenTcpYoung), "messages": field(Field::WrittenMessages) })),
        "sleeps": field(Field::Sleeps),
        "doorbells": field(Field::Doorbells),
        "since_ns": field(Field::Since),
        "promoted_ns": field(Field::Promoted),
    })
}

/// The sum of two counters. Of a connection that is not in the registry nothing is counted.
fn counted(socket: &Snapshot, fields: [Field; 2]) -> Option<u64> {
    (socket.field(Field::Since) != 0).then(|| fields.into_iter().map(|field| socket.field(field)).sum())
}

fn path(socket: &Snapshot) -> String {
    let [reads, writes] = [socket.on_ring.0, socket.on_ring.1].map(|on_ring| path_of(socket, on_ring));
    if reads == writes { reads.to_owned() } else { format!("{reads}/{writes}") }
}

/// The path of one direction, on the ring or not.
fn path_of(socket: &Snapshot, on_ring: bool) -> &'static str {
    match (on_ring, socket.via, socket.wire) {
        (false, _, _) => "tcp",
        (true, false, _) => "ring",
        (true, true, false) => "via",
        (true, true, true) => "via-iwarp",
    }
}

fn why(socket: &Snapshot) -> &'static str {
    match (socket.reason, socket.on_ring) {
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
