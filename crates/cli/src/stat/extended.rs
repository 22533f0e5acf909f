//! `sidestep stat --extended`: the extended sockets of running processes, with their regions and operations.

use serde_json::json;
use sidestep_extended::board::{self, Count, Shown};

use super::columns::{self, Column, number, text};
use crate::census::{memories, process};

/// What is counted: the column of the table, the member of the object, and what it is.
const COUNTS: [(Column, &str, Count); 10] = [
    (number("EXPORTS", 9, 5), "exports", Count::Exports),
    (number("BYTES", 9, 5), "exported_bytes", Count::ExportedBytes),
    (number("IMPORTS", 9, 6), "imports", Count::Imports),
    (number("BYTES", 9, 6), "imported_bytes", Count::ImportedBytes),
    (number("PUTS", 9, 1), "puts", Count::Puts),
    (number("GETS", 9, 1), "gets", Count::Gets),
    (number("ATOMICS", 9, 2), "atomics", Count::Atomics),
    (number("SENT", 9, 3), "messages_sent", Count::Sends),
    (number("RECEIVED", 9, 3), "messages_received", Count::Receives),
    (number("NOTICES", 9, 7), "notices", Count::Notices),
];

/// All extended sockets, or those of one process: a table, or one JSON object a line.
pub fn shown(only: Option<u32>, as_json: bool, room: Option<usize>) -> String {
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
    let row = |(pid, socket): &(u32, Shown)| {
        let [local, remote] = socket.ends.map(|end| end.to_string());
        let program = process::program(*pid).unwrap_or_default();
        let mut row = vec![pid.to_string(), program, local, remote, over(socket).to_owned()];
        row.extend(COUNTS.iter().map(|(column, _, count)| {
            let value = socket.count(*count);
            if column.head == "BYTES" { super::table::bytes(value) } else { value.to_string() }
        }));
        row
    };
    let ends = [number("PID", 7, 0), text("PROGRAM", 0), text("LOCAL", 4), text("REMOTE", 0), text("OVER", 0)];
    let columns: Vec<Column> = ends.into_iter().chain(COUNTS.map(|(column, ..)| column)).collect();
    columns::table(&columns, &sockets.iter().map(row).collect::<Vec<_>>(), room)
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
