//! Both ends of a stream under virtual time, over real carriers: the path machines, their driver, the record, and a model
//! of TCP. Scripts of writes, switches, shutdowns, closes, forks and deaths are cut after every single step.
//!
//! Checked: every byte once and in order, ends only by the anchor, nobody waits for ever.
//!
//! A failure names the script; `SIDESTEP_SHOW=1` prints every step of a run, `SIDESTEP_SEED` sets the seed of the scripts.
//!
//! What it does not show: wake-ups (the conformance suite of carriers does), memory order, and processes that really
//! are several: those of one end share the halves of a carrier here.

#[path = "pair/carriers.rs"]
mod carriers;
#[path = "pair/process.rs"]
mod process;
#[path = "pair/script.rs"]
mod script;
#[path = "pair/tcp.rs"]
mod tcp;
#[path = "pair/world.rs"]
mod world;

use carriers::{Kind, RING};
use proptest::{
    prelude::ProptestConfig,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use script::{FAULTS, Fault, Op, Script, scripts};
use sidestep_testkit::process::{full, seed_or};

/// Runs a script, and again with each fault after each of its steps.
fn cut_everywhere(script: &Script, stride: usize) {
    let steps = world::run(script);
    for what in FAULTS {
        for end in [0, 1] {
            for after in (1..=steps).step_by(stride) {
                let fault = Some(Fault { after, end, what });
                world::run(&Script { fault, ..script.clone() });
            }
        }
    }
}

fn script(kind: Kind, seed: u64, ops: [&[Op]; 2]) -> Script {
    let (capacity, room) = if kind == Kind::Ring { (RING, 1500) } else { (3, 4) };
    Script { seed, kind, capacity, room, delay: 3, carriers: 3, ops: ops.map(<[Op]>::to_vec), fault: None }
}

/// Programs that between them do everything.
fn programs(kind: Kind) -> Vec<Script> {
    let size = |bytes: usize| if kind == Kind::Ring { bytes * 900 } else { bytes };
    let (small, large) = (size(1), size(5));
    let cases: [[&[Op]; 2]; 5] = [
        [&[Op::Write(large), Op::Pause(20), Op::Write(small), Op::Write(small)], &[Op::Write(small), Op::Write(large)]],
        [&[Op::Write(large), Op::Overflow(large), Op::Write(small)], &[Op::Pause(9), Op::Overflow(large), Op::Part]],
        [
            &[Op::Pause(60), Op::Write(small), Op::Part, Op::Write(large), Op::Pause(90), Op::Write(small)],
            &[Op::Write(large)],
        ],
        [&[Op::Pause(40), Op::Write(large), Op::Fork, Op::Write(small)], &[Op::Write(small), Op::Shutdown]],
        [
            &[Op::Write(large), Op::Exec, Op::Write(small)],
            &[Op::Pause(50), Op::Write(large), Op::Write(large), Op::Close],
        ],
    ];
    let cases = cases.iter().enumerate();
    cases.map(|(number, ops)| script(kind, number as u64, *ops)).collect()
}

/// So many, and more in runs that may be long.
fn cases(few: u32) -> u32 {
    if full() { few * 50 } else { few }
}

fn any_script(kind: Kind, cases: u32) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&seed_or(16).to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let outcome = runner.run(&scripts(kind), |script| {
        world::run(&script);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

#[test]
fn loopback_is_cut_after_every_step() {
    programs(Kind::Loopback).iter().for_each(|script| cut_everywhere(script, 1));
}

#[test]
fn ring_is_cut_after_many_steps() {
    // A ring costs more to make than to use.
    let stride = if full() { 1 } else { 6 };
    programs(Kind::Ring).iter().for_each(|script| cut_everywhere(script, stride));
}

#[test]
fn any_script_over_loopback() {
    any_script(Kind::Loopback, cases(2000));
}

#[test]
fn any_script_over_a_ring() {
    any_script(Kind::Ring, cases(300));
}
