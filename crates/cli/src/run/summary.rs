//! What `sidestep run --verbose` says when the program has ended.

use std::{process::ExitStatus, time::Duration};

use sidestep_sockets::{
    config::config,
    registry::{ProcessRecord, View},
};

/// Prints it. What the program's children did is theirs, and is not counted.
pub fn print(name: &str, process: u32, status: ExitStatus, took: Duration, registry: Option<&View>) {
    eprintln!("sidestep: {name} ended after {:.3} s: {status}", took.as_secs_f64());
    let Some(registry) = registry else {
        let directory = &config().directory;
        eprintln!(
            "sidestep: all connections stayed on TCP: there is no registry in {directory}, and none could be made"
        );
        return;
    };
    match registry.process(process) {
        Some(ProcessRecord { excuse: Some(reason), .. }) => {
            eprintln!("sidestep: all connections stayed on TCP: {}", reason.sentence());
        }
        Some(ProcessRecord { ended, .. }) => eprintln!(
            "sidestep: {} of {} connections left TCP; {} bytes went over rings, {} over TCP",
            ended.promoted, ended.sockets, ended.carried, ended.tcp
        ),
        None => eprintln!("sidestep: no connection of this program had a second exchange"),
    }
}
