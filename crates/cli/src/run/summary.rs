//! What `sidestep run --verbose` says when the program has ended.

use std::{process::ExitStatus, time::Duration};

use sidestep_sockets::{config::config, registry::Registry};

/// Prints it, from a registry that was opened before the program began: it lives as long as someone has it. What the program's
/// children did is theirs, and is not counted.
pub fn print(name: &str, process: u32, status: ExitStatus, took: Duration, registry: Option<&Registry>) {
    eprintln!("sidestep: {name} ended after {:.3} s: {status}", took.as_secs_f64());
    let Some(registry) = registry else {
        let directory = &config().directory;
        eprintln!(
            "sidestep: all connections stayed on TCP: there is no registry in {directory}, and none could be made"
        );
        return;
    };
    if let Some(reason) = registry.excuse_of(process) {
        eprintln!("sidestep: all connections stayed on TCP: {}", reason.sentence());
        return;
    }
    match registry.totals(process) {
        Some(totals) => eprintln!(
            "sidestep: {} of {} connections left TCP; {} bytes went over rings, {} over TCP",
            totals.promoted, totals.sockets, totals.ring, totals.tcp
        ),
        None => eprintln!("sidestep: no connection of this program had a second exchange"),
    }
}
