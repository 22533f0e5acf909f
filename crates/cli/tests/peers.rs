//! `sidestep bench peers`: what is measured, and what is said of what is not installed.

use std::process::Command;

use serde_json::Value;
use sidestep_testkit::process::{PATIENCE, full};
use sidestep_testkit::sockets::Bounded;

#[test]
fn peers_are_measured_or_named_with_what_installs_them() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.args(["bench", "peers", "--quick", "--rounds", "1", "--json"]);
    // Those that take a compiler alone are quick; the others come with the slow steps.
    if !full() {
        command.args(["--only", "sidestep,tcp-busy-poll,iceoryx2"]);
    }
    let text = Bounded::start(&mut command, PATIENCE).wait().expect("sidestep");
    let records: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect();
    let figures = of(&records, "sidestep");
    assert_eq!(figures.len(), 4, "{text}");
    assert!(figures.iter().all(|record| record["value"].as_f64() > Some(0.0)), "{text}");
    let mut peers: Vec<&str> = records.iter().filter_map(|record| record["path"].as_str()).collect();
    peers.dedup();
    for peer in peers {
        let own = of(&records, peer);
        let notes: Vec<&str> = own.iter().filter_map(|record| record["note"].as_str()).collect();
        assert!(own.len() > notes.len() || notes.iter().all(|note| note.contains("install")), "{peer}: {notes:?}");
    }
}

/// The records of a peer.
fn of<'a>(records: &'a [Value], peer: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["path"] == peer).collect()
}

#[test]
fn wrong_names_are_refused_with_the_right_ones() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    let refused = Bounded::start(command.args(["bench", "peers", "--only", "nothing"]), PATIENCE).wait();
    assert!(!refused.success() && refused.stderr.contains("zeromq"), "{}", refused.stderr);
}
