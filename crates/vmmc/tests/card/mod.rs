//! The card process of tests: the test program itself, since `sidestep` is of a crate above this one.

use std::process::Command;

use sidestep_vmmc::process::{CardOptions, be_card};

const CARD: &str = "SIDESTEP_TEST_CARD";

/// What starts a card of this name, and at an address of the fabric.
pub fn command(name: &str, place: Option<&str>) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.args(["role", "--exact", "--nocapture", "--test-threads=1"]);
    command.env_remove("SIDESTEP_ROLE").env(CARD, [name, place.unwrap_or_default()].join(" "));
    command
}

/// In a card: is it, and ends the process. Elsewhere: nothing.
pub fn enter() {
    let Ok(line) = std::env::var(CARD) else { return };
    let (name, place) = line.split_once(' ').expect("two words");
    let place = Some(place).filter(|place| !place.is_empty());
    std::process::exit(be_card(name, place, CardOptions::default()).into());
}
