//! `sidestep stat --cards`: the cards of VMMC that run, with their hit ratios.

use serde_json::json;
use sidestep_vmmc::board::{self, Kind, Shown};

use super::columns::{self, Column, number, text};
use crate::census::{memories, process};

/// All cards, or those of one process: a table, or one JSON object a line.
pub fn shown(only: Option<u32>, as_json: bool, room: Option<usize>) -> String {
    let boards = memories::named(board::NAME, board::BYTES);
    let of_interest = boards.iter().filter(|(pid, _)| only.is_none_or(|only| only == *pid));
    let cards: Vec<Shown> = of_interest.filter_map(|(pid, bytes)| board::read(*pid, bytes)).collect();
    if as_json {
        return cards.iter().map(|card| format!("{}\n", object(card))).collect();
    }
    if cards.is_empty() {
        let of = only.map_or(String::new(), |pid| format!(" of process {pid}"));
        return format!("no cards{of}: no `sidestep card` runs, and no node has a link `vmmc`\n");
    }
    let row = |card: &Shown| {
        let counters = &card.counters;
        let (page_hits, page_misses) = pages(card);
        vec![
            card.pid.to_string(),
            process::program(card.pid).unwrap_or_default(),
            name(card),
            super::table::bytes(card.memory),
            card.vmh.entries.to_string(),
            card.vmh.line.to_string(),
            card.vmh.ways.to_string(),
            (page_hits + page_misses).to_string(),
            percent(page_hits, page_misses),
            (counters.cbh_hits + counters.cbh_misses).to_string(),
            percent(counters.cbh_hits, counters.cbh_misses),
            counters.dropped.to_string(),
            counters.resent.to_string(),
        ]
    };
    columns::table(&COLUMNS, &cards.iter().map(row).collect::<Vec<_>>(), room)
}

const COLUMNS: [Column; 13] = [
    number("PID", 7, 0),
    text("PROGRAM", 0),
    text("CARD", 0),
    number("MEMORY", 9, 3),
    number("C", 6, 5),
    number("L", 4, 5),
    number("A", 4, 5),
    number("PAGES", 10, 1),
    number("HITS", 6, 1),
    number("BUFFERS", 10, 2),
    number("HITS", 6, 2),
    number("DROPPED", 9, 4),
    number("RESENT", 9, 4),
];

fn object(card: &Shown) -> serde_json::Value {
    let counters = &card.counters;
    json!({
        "pid": card.pid,
        "program": process::program(card.pid).unwrap_or_default(),
        "card": name(card),
        "memory": card.memory,
        "entries": card.vmh.entries,
        "line": card.vmh.line,
        "ways": card.vmh.ways,
        "page_hits": pages(card).0,
        "page_misses": pages(card).1,
        "buffer_hits": counters.cbh_hits,
        "buffer_misses": counters.cbh_misses,
        "dropped": counters.dropped,
        "resent": counters.resent,
    })
}

fn name(card: &Shown) -> String {
    match card.kind {
        Kind::Process => card.name.clone(),
        Kind::Link => format!("vmmc:{}", card.name),
    }
}

/// Pages that were found, and lines that were not.
fn pages(card: &Shown) -> (u64, u64) {
    (card.counters.vmh_hits.iter().sum(), card.counters.vmh_misses.iter().sum())
}

fn percent(hits: u64, misses: u64) -> String {
    match hits + misses {
        0 => "-".to_owned(),
        all => format!("{:.1}%", 100.0 * hits as f64 / all as f64),
    }
}
