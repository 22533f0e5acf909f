//! Sockets and totals as a table for people, and as JSON for programs.

use serde_json::{Value, json};
use sidestep_sockets::registry::{Totals, Traffic};

use super::columns::{self, Column, number, text};
use crate::census::{Census, Sighting};

/// The columns of sockets. Behind them stands why.
const SOCKETS: [Column; 18] = [
    number("PID", 7, 0),
    text("PROGRAM", 0),
    number("FD", 4, 0),
    text("LOCAL", 2),
    text("REMOTE", 0),
    text("PATH", 0),
    number("AGE", 6, 3),
    number("READ", 10, 1),
    number("WRITTEN", 10, 1),
    number("MSGS IN", 9, 5),
    number("MSGS OUT", 9, 5),
    number("LOOKS", 7, 7),
    number("SLEEPS", 7, 4),
    number("BELLS", 7, 4),
    number("RING", 9, 8),
    number("UNREAD", 9, 6),
    number("PROM", 5, 9),
    text("WHY", 0),
];
/// With columns up to this rank, sentences are worth more than further columns.
const WORTH_MORE: u8 = 1;

/// The sockets, and under them the totals of each process, in lines of so many letters.
pub fn sockets(census: &Census, room: Option<usize>) -> String {
    let row = |socket: &Sighting| {
        let record = &socket.record;
        let counted = |shown: String| if socket.is_counted() { shown } else { "-".to_owned() };
        vec![
            record.pid.to_string(),
            census.program(record.pid).to_owned(),
            record.fd.to_string(),
            record.key.local.to_string(),
            record.key.remote.to_string(),
            socket.paths(),
            socket.age(census.at).map_or("-".to_owned(), age),
            counted(bytes(record.read.bytes())),
            counted(bytes(record.written.bytes())),
            record.read.messages.to_string(),
            record.written.messages.to_string(),
            record.waits.looks.to_string(),
            record.waits.sleeps.to_string(),
            record.waits.doorbells.to_string(),
            if record.capacity == 0 { "-".to_owned() } else { bytes(record.capacity) },
            socket.unread().map_or("-".to_owned(), bytes),
            record.promotions.to_string(),
            socket.why().to_owned(),
        ]
    };
    let mut rows: Vec<Vec<String>> = census.sockets.iter().map(row).collect();
    if room.is_some_and(|room| columns::width(&SOCKETS, &rows, WORTH_MORE) > room) {
        for (row, socket) in rows.iter_mut().zip(&census.sockets) {
            row[SOCKETS.len() - 1] = socket.record.reason.name().to_owned();
        }
    }
    columns::table(&SOCKETS, &rows, room) + "\n" + &totals(census, room)
}

const TOTALS: [Column; 11] = [
    number("PID", 7, 0),
    text("PROGRAM", 0),
    number("SOCKETS", 8, 0),
    number("EVER", 8, 5),
    number("PROMOTED", 8, 2),
    number("CARRIED", 11, 1),
    number("OVER TCP", 11, 1),
    number("MESSAGES", 12, 3),
    number("LOOKS", 9, 6),
    number("SLEEPS", 9, 4),
    number("BELLS", 9, 4),
];

/// What each process has done, in lines of so many letters.
pub fn totals(census: &Census, room: Option<usize>) -> String {
    let row = |(pid, totals): (u32, Totals)| {
        vec![
            pid.to_string(),
            census.program(pid).to_owned(),
            count(census, pid).to_string(),
            totals.sockets.to_string(),
            totals.promoted.to_string(),
            bytes(totals.carried),
            bytes(totals.tcp),
            totals.messages.to_string(),
            totals.looks.to_string(),
            totals.sleeps.to_string(),
            totals.doorbells.to_string(),
        ]
    };
    columns::table(&TOTALS, &census.totals().into_iter().map(row).collect::<Vec<_>>(), room)
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

#[cfg(test)]
mod tests {
    use sidestep_sockets::{address::Key, reason::Reason, registry::SocketRecord};

    use super::*;
    use crate::census::Program;

    fn census(reason: Reason) -> Census {
        let socket = |fd: u32| {
            let (local, remote) = (format!("127.0.0.1:{}", 40_000 + fd), "127.0.0.1:6390");
            let key = Key { namespace: 0, local: local.parse().unwrap(), remote: remote.parse().unwrap() };
            let mut record = SocketRecord::unlisted(4711, fd, key, reason);
            (record.since, record.read.carried) = (1, 1 << 33);
            Sighting { record, peer: None }
        };
        let program = Program { name: "redis-server".to_owned(), ..Default::default() };
        Census { at: 5, sockets: (7..20).map(socket).collect(), processes: [(4711, program)].into() }
    }

    /// Lines fit, what matters is there, and a reason is never cut: it is a sentence or its name.
    #[test]
    fn tables_fit_into_the_terminal() {
        for reason in [Reason::TurnedOff, Reason::PeerUnknown] {
            let census = census(reason);
            let mut before = 0;
            for room in [80, 120, 200] {
                let table = sockets(&census, Some(room));
                assert!(table.lines().all(|line| line.chars().count() <= room), "{table}");
                for word in ["PID", "PROGRAM", "FD", "REMOTE", "PATH", "READ", "WRITTEN", "WHY", "CARRIED", "MESSAGES"]
                {
                    assert!(table.contains(word), "{word} in\n{table}");
                }
                let heads = table.lines().next().unwrap().split_whitespace().count();
                assert!(heads >= before, "{table}");
                before = heads;
                assert!(table.contains(reason.name()) || table.contains(reason.sentence()), "{table}");
            }
            let whole = sockets(&census, None);
            assert!(SOCKETS.iter().chain(&TOTALS).all(|column| whole.contains(column.head)), "{whole}");
            assert!(whole.contains(reason.sentence()));
        }
        assert!(sockets(&census(Reason::TurnedOff), Some(90)).contains(" turned off by hand\n"));
    }
}
