//! `sidestep stat`: every connection of every process of this user that runs under `sidestep run`; for root, of every user.

mod cards;
mod columns;
mod extended;
mod latency;
mod metrics;
pub mod select;
pub mod table;

use std::{
    io::{self, IsTerminal, Write},
    thread,
};

use anyhow::Result;
use rustix::termios::tcgetwinsize;

use crate::{census::Census, options::Stat};

/// Prints the table, or one JSON object a line; once or again and again.
pub fn run(options: &Stat) -> Result<()> {
    if let Some(address) = options.metrics {
        return metrics::serve(address, options.latency);
    }
    let times = if options.watch.is_some() { options.count.unwrap_or(u64::MAX) } else { 1 };
    for time in 0..times {
        if let Some(pause) = options.watch.filter(|_| time > 0) {
            thread::sleep(pause);
        }
        let mut text = shown(options);
        if options.watch.is_some() && !options.json && io::stdout().is_terminal() {
            // To the corner, and clear.
            text.insert_str(0, "\x1b[H\x1b[2J");
        }
        let mut out = io::stdout().lock();
        // A reader that has seen enough is no error.
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    Ok(())
}

/// How many letters a line may have. Without a terminal there is room for everything.
fn room(options: &Stat) -> Option<usize> {
    if options.wide {
        return None;
    }
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

fn shown(options: &Stat) -> String {
    let room = room(options);
    if options.cards {
        return cards::shown(options.process, options.json, room);
    }
    if options.extended {
        return extended::shown(options.process, options.json, room);
    }
    let mut census = Census::take();
    if let Some(process) = options.process {
        census.sockets.retain(|socket| socket.record.pid == process);
    }
    select::select(&mut census, &options.filter, options.sort, select::bytes);
    match (options.json, options.totals) {
        (true, false) => table::sockets_json(&census),
        (true, true) => table::totals_json(&census),
        _ if census.sockets.is_empty() => {
            let of = options.process.map_or(String::new(), |process| format!(" of process {process}"));
            let that = if options.filter.is_empty() { "" } else { " that fit the filter" };
            format!("no sockets{of}{that}: nothing runs under `sidestep run`, or nothing is connected\n")
        }
        (false, true) => table::totals(&census, room),
        (false, false) => table::sockets(&census, room),
    }
}
