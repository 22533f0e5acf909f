//! `sidestep stat --extended`: the extended sockets of running processes, with their regions and operations.

use serde_json::json;
use sidestep_extended::board::{self, Count, Shown};

use crate::census::{memories, process};

/// What is counted: the column of the table, the member of the object, and what it is.
const COUNTS: [(&str, &str, Count); 10] = [
    ("EXPORTS", "exports", Count::Exports),
    ("BYTES", "exported_bytes", Count::ExportedBytes),
    ("IMPORTS", "imports", Count::Imports),
    ("BYTES", "imported_bytes", Count::ImportedBytes),
    ("PUTS", "puts", Count::Puts),
    ("GETS", "gets", Count::Gets),
    ("ATOMICS", "atomics", Count::Atomics),
    ("SENT", "messages_sent", Count::Sends),
    ("RECEIVED", "messages_received", Count::Receives),
    ("NOTICES", "notices", Count::Notices),
];

/// All extended sockets, or those of one process: a table, or one JSON object a line.
pub fn shown(only: Option<u32>, as_json: bool) -> String {
    let boards = memories::named(board::NAME, board::BYTES);
    let of_interest = boards.iter().filter(|(pid, _)| only.is_none_or(|only| only == *pid));
    let sockets: Vec<(u32, Shown)> =
        of_interest.flat_map(|(pid, bytes)| board::read(bytes).into_iter().map(|socket| (*pid, socket))).collect();
    if as_json {
        return sockets.iter().map(|(pid, socket)| format!("{}\n", object(*pid, socket))).collect();
    }
    if sockets.is_empty() {
        let of = only.map_or(String::new(), |pid| format!(" of process {pid}"));
        return format!("no extended sockets{of}: no program has enabled one, see docs/extended.md\n");
    }
    let heads: String = COUNTS.iter().map(|(head, ..)| format!(" {head:>9}")).collect();
    let mut table = format!("{:>7} {:<15} {:<21} {:<21} {:<5}{heads}\n", "PID", "PROGRAM", "LOCAL", "REMOTE", "OVER");
    for (pid, socket) in &sockets {
        let program = process::program(*pid).unwrap_or_default();
        let [local, remote] = socket.ends.map(|end| end.to_string());
        table += &format!("{pid:>7} {program:<15} {local:<21} {remote:<21} {:<5}", over(socket));
        for (head, _, count) in COUNTS {
            let value = socket.count(count);
            let text = if head == "BYTES" { super::table::bytes(value) } else { value.to_string() };
            table += &format!(" {text:>9}");
        }
        table.push('\n');
    }
    table
}

fn object(pid: u32, socket: &Shown) -> serde_json::Value {
    let [local, remote] = socket.ends.map(|end| end.to_string());
    let program = process::program(pid).unwrap_or_default();
    let mut object = json!({ "pid": pid, "program": program, "local": local, "remote": remote, "over": over(socket) });
    for (_, name, count) in COUNTS {
        object[name] = socket.count(count).into();
    }
    object
}

/// What carries its operations.
fn over(socket: &Shown) -> &'static str {
    if socket.is_mapped { "shm" } else { "iwarp" }
}
