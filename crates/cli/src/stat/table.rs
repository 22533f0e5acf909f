//! Sockets and totals as a table for people, and as JSON for programs.

use serde_json::{Value, json};
use sidestep_sockets::registry::{Totals, Traffic};

use crate::census::{Census, Sighting};

/// The sockets, and under them the totals of each process.
pub fn sockets(census: &Census) -> String {
    let mut table = format!(
        "{:>7} {:<15} {:>4}  {:<21} {:<21} {:<9} {:>6} {:>10} {:>10} {:>9} {:>9} {:>7} {:>7} {:>7} {:>9} {:>9} {:>5}  WHY\n",
        "PID",
        "PROGRAM",
        "FD",
        "LOCAL",
        "REMOTE",
        "PATH",
        "AGE",
        "READ",
        "WRITTEN",
        "MSGS IN",
        "MSGS OUT",
        "LOOKS",
        "SLEEPS",
        "BELLS",
        "RING",
        "UNREAD",
        "PROM"
    );
    for socket in &census.sockets {
        let record = &socket.record;
        let counted = |shown: String| if socket.is_counted() { shown } else { "-".to_owned() };
        table += &format!(
            "{:>7} {:<15} {:>4}  {:<21} {:<21} {:<9} {:>6} {:>10} {:>10} {:>9} {:>9} {:>7} {:>7} {:>7} {:>9} {:>9} {:>5}  {}\n",
            record.pid,
            census.program(record.pid),
            record.fd,
            record.key.local.to_string(),
            record.key.remote.to_string(),
            socket.paths(),
            socket.age(census.at).map_or("-".to_owned(), age),
            counted(bytes(record.read.bytes())),
            counted(bytes(record.written.bytes())),
            record.read.messages,
            record.written.messages,
            record.waits.looks,
            record.waits.sleeps,
            record.waits.doorbells,
            if record.capacity == 0 { "-".to_owned() } else { bytes(record.capacity) },
            socket.unread().map_or("-".to_owned(), bytes),
            record.promotions,
            socket.why(),
        );
    }
    table + "\n" + &totals(census)
}

/// What each process has done.
pub fn totals(census: &Census) -> String {
    let mut table = format!(
        "{:>7} {:<15} {:>8} {:>8} {:>8} {:>11} {:>11} {:>12} {:>9} {:>9} {:>9}\n",
        "PID", "PROGRAM", "SOCKETS", "EVER", "PROMOTED", "CARRIED", "OVER TCP", "MESSAGES", "LOOKS", "SLEEPS", "BELLS"
    );
    for (pid, totals) in census.totals() {
        let now = count(census, pid);
        table += &format!(
            "{:>7} {:<15} {:>8} {:>8} {:>8} {:>11} {:>11} {:>12} {:>9} {:>9} {:>9}\n",
            pid,
            census.program(pid),
            now,
            totals.sockets,
            totals.promoted,
            bytes(totals.carried),
            bytes(totals.tcp),
            totals.messages,
            totals.looks,
            totals.sleeps,
            totals.doorbells,
        );
    }
    table
}

fn count(census: &Census, pid: u32) -> usize {
    census.sockets.iter().filter(|socket| socket.record.pid == pid).count()
}

/// One object for each socket.
pub fn sockets_json(census: &Census) -> String {
    census.sockets.iter().map(|socket| format!("{}\n", socket_json(census, socket))).collect()
}

/// One object for each process.
pub fn totals_json(census: &Census) -> String {
    let line = |(pid, totals): (u32, Totals)| {
        let object = json!({
            "pid": pid, "program": census.program(pid), "sockets": count(census, pid),
            "sockets_ever": totals.sockets, "promoted_ever": totals.promoted,
            "carried": totals.carried, "tcp": totals.tcp, "messages": totals.messages, "looks": totals.looks,
            "sleeps": totals.sleeps, "doorbells": totals.doorbells, "promotions": totals.promotions });
        format!("{object}\n")
    };
    census.totals().into_iter().map(line).collect()
}

fn socket_json(census: &Census, socket: &Sighting) -> Value {
    let record = &socket.record;
    let traffic = |traffic: &Traffic, waiting: Option<u64>, capacity: Option<u64>| {
        socket.is_counted().then(|| {
            json!({
                "tcp": traffic.tcp, "ring": traffic.carried, "messages": traffic.messages,
                "tcp_in_first_second": traffic.tcp_young, "waiting": waiting, "capacity": capacity })
        })
    };
    let capacity = |bytes: u64| (bytes != 0).then_some(bytes);
    json!({
        "time_ns": census.at,
        "pid": record.pid,
        "program": census.program(record.pid),
        "fd": record.fd,
        "local": record.key.local.to_string(),
        "remote": record.key.remote.to_string(),
        "peer": socket.peer.map(|peer| json!({ "pid": peer.pid, "fd": peer.fd })),
        "reads_from": socket.reads_from(),
        "writes_to": socket.writes_to(),
        "carrier": record.carrier.map(|carrier| carrier.name()),
        "reason": record.reason.name(),
        "why": socket.why(),
        "remedy": record.reason.remedy(),
        "read": traffic(&record.read, socket.unread(), capacity(record.capacity)),
        "written": traffic(&record.written, socket.unsent(), socket.peer.and_then(|peer| capacity(peer.capacity))),
        "looks": record.waits.looks,
        "sleeps": record.waits.sleeps,
        "doorbells": record.waits.doorbells,
        "promotions": record.promotions,
        "age_ns": socket.age(census.at),
        "since_ns": record.since,
        "promoted_ns": record.promoted_at,
    })
}

/// A size for people.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (0..4).take_while(|power| count >> (10 * (power + 1)) > 0).count();
    match unit {
        0 => format!("{count} B"),
        unit => format!("{:.1} {}", count as f64 / (1u64 << (10 * unit)) as f64, UNITS[unit]),
    }
}

/// A time for people, in at most six letters.
pub fn age(nanoseconds: u64) -> String {
    match nanoseconds / 1_000_000_000 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds @ 3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        seconds => format!("{}d", seconds / 86_400),
    }
}
