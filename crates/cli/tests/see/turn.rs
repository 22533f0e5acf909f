//! `sidestep off` and `on`.

use std::{os::unix::process::CommandExt, process::Command};

use serde_json::Value;
use sidestep_sockets::reason::Reason;
use sidestep_testkit::process::full;

use super::stage::{SIDESTEP, Stage, Two, wait_until};

fn is_on_ring(socket: &Value) -> bool {
    is_on(socket, "ring")
}

fn is_on(socket: &Value, carrier: &str) -> bool {
    [&socket["reads_from"], &socket["writes_to"]] == [carrier, carrier]
}

fn is_off(socket: &Value) -> bool {
    is_on(socket, "tcp") && socket["reason"] == Reason::TurnedOff.name()
}

/// Every byte is checked by the program; each turn is seen to have its effect before the next.
fn turns_while_running(work: &str, carrier: &str, by_port: bool) {
    let stage = Stage::new(&format!("{work}-{carrier}"));
    let two = Two::start(&stage, &["--carrier", carrier], work);
    let subject = if by_port { format!(":{}", two.port) } else { two.client.clone() };
    for turn in 0..if full() { 100 } else { 12 } {
        wait_until("a carrier", || stage.all(2, |socket| !is_off(socket) && socket["promotions"].as_u64() > Some(0)));
        if turn % 10 == 0 {
            wait_until("both on the carrier", || stage.sockets(&[]).iter().any(|socket| is_on(socket, carrier)));
        }
        stage.said(&["off", &subject]);
        wait_until("both turned off", || stage.all(2, is_off));
        stage.said(&["on", &subject]);
    }
    wait_until("promoted again", || stage.sockets(&[]).iter().any(|socket| is_on(socket, carrier)));
    let last = two.end();
    assert!(last.starts_with(work), "{last}");
}

#[test]
fn a_transfer_both_ways_is_turned_off_and_on() {
    turns_while_running("duplex", "ring", false);
}

#[test]
fn a_transfer_over_via_is_turned_off_and_on() {
    turns_while_running("duplex", "via", false);
}

#[test]
fn an_exchange_is_turned_off_and_on_by_its_port() {
    turns_while_running("pingpong", "ring", true);
}

#[test]
fn an_exchange_over_via_is_turned_off_and_on_by_its_port() {
    turns_while_running("pingpong", "via", true);
}

/// One end sleeps in `recv` or `epoll_wait`, and leaves its ring without a call of its program; the other end is outside the
/// library, and follows at its next call.
#[test]
fn a_process_that_sleeps_is_turned_off() {
    for work in ["recv", "epoll"] {
        let stage = Stage::new(work);
        let mut two = Two::start(&stage, &[], work);
        assert_eq!(two.line(), "settled");
        wait_until("both on rings", || stage.all(2, is_on_ring));
        let said = stage.said(&["off", &two.server]);
        assert!(said.contains("is off"), "{said}");
        let writes_to = |pid: &str| stage.sockets(&[pid])[0]["writes_to"].clone();
        wait_until("the sleeper has left", || writes_to(&two.server) == "tcp");
        for _ in 0..3 {
            two.say("x");
            assert_eq!(two.line(), "echo");
        }
        wait_until("both turned off", || stage.all(2, is_off));
        let why = stage.said(&["why", &two.client]);
        assert!(why.contains("turned off by hand") && why.contains("sidestep on"), "{why}");
        stage.said(&["on", &two.server]);
        wait_until("both on rings again", || {
            two.say("x");
            assert_eq!(two.line(), "echo");
            stage.all(2, is_on_ring)
        });
        two.end();
    }
}

/// A port that was turned off stays so for connections that begin later, until it is turned on.
#[test]
fn new_connections_of_a_port_stay_on_tcp() {
    let stage = Stage::new("port");
    // The registry lives as long as someone has it.
    let other = Two::start(&stage, &[], "pingpong");
    let first = Two::start(&stage, &[], "pingpong");
    wait_until("both", || stage.all(4, is_on_ring));
    let port = first.port.clone();
    first.end();
    stage.said(&["off", &format!(":{port}")]);
    let second = Two::start_at(&stage, &[], "pingpong", &port);
    let of_port = || stage.sockets(&["--filter", &format!("port={port}")]);
    wait_until("turned off from the start", || of_port().len() == 2 && of_port().iter().all(is_off));
    assert!(of_port().iter().all(|socket| socket["promotions"] == 0), "{:?}", of_port());
    let doctor = stage.said(&["doctor"]);
    assert!(doctor.contains("limited  turned off") && doctor.contains(&format!("port {port}")), "{doctor}");
    stage.said(&["on", &format!(":{port}")]);
    wait_until("all", || stage.all(4, is_on_ring));
    second.end();
    other.end();
}

#[test]
fn wrong_subjects_are_refused() {
    let stage = Stage::new("wrong");
    let two = Two::start(&stage, &[], "pingpong");
    wait_until("promoted", || stage.all(2, is_on_ring));
    let own = std::process::id().to_string();
    for (wrong, status) in [("2147483646", 1), (own.as_str(), 1), ("redis", 2), (":0", 2)] {
        let output = stage.sidestep(&["off", wrong]);
        assert_eq!(output.status.code(), Some(status), "{wrong}: {output:?}");
    }
    // Of another user, who may not.
    if rustix::process::geteuid().is_root() {
        for tool in [&["off", &two.client][..], &["tap", &format!("pid={}", two.client)]] {
            let mut command = Command::new(SIDESTEP);
            let output = command.args(tool).env("SIDESTEP_DIR", &stage.0).uid(65533).gid(65533).output();
            let output = output.expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(1) && said.contains("belongs to another user"), "{tool:?}: {said}");
        }
    }
    assert!(stage.all(2, is_on_ring), "nothing has changed");
    two.end();
}
