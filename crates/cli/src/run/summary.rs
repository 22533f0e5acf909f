//! What `sidestep run --verbose` says when the program has ended.

use sidestep_sockets::registry::{ProcessRecord, View};

/// In a sentence. What the program's children did is theirs, and is not counted.
pub fn of(process: u32, registry: Option<&View>, directory: &str) -> String {
    let Some(registry) = registry else {
        return format!(
            "all connections stayed on TCP: there is no registry in {directory}, and none could be made (sidestep doctor says why)"
        );
    };
    match registry.process(process) {
        Some(ProcessRecord { excuse: Some(reason), .. }) => {
            format!("all connections stayed on TCP: {}", reason.sentence())
        }
        Some(ProcessRecord { ended, .. }) => format!(
            "{} of {} connections left TCP; {} bytes went over rings, {} over TCP",
            ended.promoted, ended.sockets, ended.carried, ended.tcp
        ),
        None => "no connection of this program had a second exchange".to_owned(),
    }
}
