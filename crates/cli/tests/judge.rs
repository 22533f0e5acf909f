//! Random programs of socket calls, judged: on kernel TCP, and under `sidestep run` with every way of promoting.
//!
//! The same programs in every run, and others each time in `./test full`. `SIDESTEP_SEED` repeats a run,
//! `SIDESTEP_PROGRAMS` sets how many programs there are; a failure says both.

use std::{
    env,
    path::{Path, PathBuf},
};

use sidestep_testkit::{
    process::{full, seed_or},
    sockets::{
        Launch, Promote, compile,
        judge::{Driver, Failure, Tally, play, play_storms},
    },
};

#[test]
fn kernel_tcp_passes() {
    judged("kernel TCP", |_| Launch::Plain);
}

#[test]
fn promoted_by_default_passes() {
    judged("default", |_| under(Promote::Default));
}

#[test]
fn promoted_from_the_first_byte_passes() {
    judged("eager", |_| under(Promote::Eager));
}

#[test]
fn promoted_to_and_fro_passes() {
    judged("random", |seed| under(Promote::Random(seed)));
}

#[test]
fn promoted_to_via_by_default_passes() {
    judged("via, default", |_| over_via(Promote::Default));
}

#[test]
fn promoted_to_via_from_the_first_byte_passes() {
    judged("via, eager", |_| over_via(Promote::Eager));
}

#[test]
fn promoted_to_via_to_and_fro_passes() {
    judged("via, random", |seed| over_via(Promote::Random(seed)));
}

#[test]
fn promoted_to_iwarp_by_default_passes() {
    judged("iwarp, default", |_| over_iwarp(Promote::Default));
}

#[test]
fn promoted_to_iwarp_to_and_fro_passes() {
    judged("iwarp, random", |seed| over_iwarp(Promote::Random(seed)));
}

#[test]
fn promoted_to_via_and_rings_in_turn_passes() {
    judged("both, random", over_both_at_random);
}

#[test]
fn storms_over_via_and_rings_in_turn_pass() {
    judged_by("storms, both, random", programs() / 5, over_both_at_random, |drivers, seed, tally| {
        play_storms(drivers, seed, STORMS, tally)
    });
}

fn over_both_at_random(seed: u64) -> Launch {
    over_both(Promote::Random(seed))
}

fn judged(name: &str, launch: impl Fn(u64) -> Launch) {
    judged_by(name, programs(), launch, play);
}

fn judged_by(
    name: &str,
    count: u64,
    launch: impl Fn(u64) -> Launch,
    play: impl Fn(&mut [Driver; 2], u64, &mut Tally) -> Result<(), Failure>,
) {
    let program = driver();
    let first = seed_or(FIRST);
    let mut tally = Tally::default();
    for batch in 0..count.div_ceil(BATCH) {
        let launch = launch(first.wrapping_add(batch));
        let start = || Driver::start(&launch, &program).unwrap_or_else(|Failure(text)| panic!("{name}: {text}"));
        let mut drivers = [start(), start()];
        for number in 0..BATCH.min(count - batch * BATCH) {
            let seed = first.wrapping_add((batch * BATCH + number).wrapping_mul(0x9E37_79B9));
            if let Err(Failure(text)) = play(&mut drivers, seed, &mut tally) {
                panic!("{name}: SIDESTEP_SEED={seed} SIDESTEP_PROGRAMS=1 (number {number} of its batch)\n{text}");
            }
        }
    }
    eprintln!("{name}: {tally:?}");
    assert!(tally.programs == count && (count < BATCH || tally.bytes > 0));
}

fn under(promote: Promote) -> Launch {
    Launch::Sidestep(PathBuf::from(env!("CARGO_BIN_EXE_sidestep")), promote)
}

fn over_via(promote: Promote) -> Launch {
    Launch::Via(PathBuf::from(env!("CARGO_BIN_EXE_sidestep")), promote)
}

fn over_both(promote: Promote) -> Launch {
    Launch::Both(PathBuf::from(env!("CARGO_BIN_EXE_sidestep")), promote)
}

fn over_iwarp(promote: Promote) -> Launch {
    Launch::Iwarp(PathBuf::from(env!("CARGO_BIN_EXE_sidestep")), promote)
}

fn driver() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli");
    let built = env::current_exe().expect("a path").ancestors().nth(2).expect("a profile").join("judge");
    compile(&root.join("tests/judge/driver.c"), &built, &[])
}

fn programs() -> u64 {
    let asked = env::var("SIDESTEP_PROGRAMS").ok().and_then(|count| count.parse().ok());
    asked.unwrap_or(if full() { 1000 } else { 150 })
}

/// The seed of the first program.
const FIRST: u64 = 1;
/// Programs played by one pair of processes, one after the other.
const BATCH: u64 = 25;
/// Storms on one connection.
const STORMS: usize = 20;
