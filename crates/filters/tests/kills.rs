//! A copy that is killed fails its unit of work, by name, or lets it be repeated. Nothing hangs or is left behind. Alone in its
//! file: it counts what its process holds.

mod kit;

use std::time::Duration;

use kit::{Found, apart, expected, kinds, launcher};
use rustix::process::{Pid, Signal, kill_process};
use sidestep_filters::{Group, OnDeath, Schedule, Settings, Transport};
use sidestep_testkit::process::{Census, PATIENCE, full, seed_or};
use sidestep_testkit::seeded::Seeded;

const TRANSPORTS: [Transport; 3] = [Transport::Channel, Transport::Tcp, Transport::Vi];

#[test]
fn role() {
    kit::role();
}

/// Kills of any process at any moment: twelve, or two hundred in the long form.
#[test]
fn kills_fail_a_unit_or_repeat_it() {
    let word = format!("filters-{}", std::process::id());
    let before = Census::take(&word);
    let kills = if full() { 200 } else { 12 };
    let seed = seed_or(7);
    eprintln!("SIDESTEP_SEED={seed}");
    let mut random = Seeded::new(seed);
    let mut failed = 0;
    for (index, transport) in TRANSPORTS.into_iter().enumerate() {
        let found = Found::default();
        let mut graph = apart(2, 100, Schedule::Demand, transport);
        let repeats = index == 0;
        graph.on_death = if repeats { OnDeath::Repeat } else { OnDeath::Fail };
        let mut group = Group::start(graph, &kinds(&found), launcher()).unwrap();
        for _ in 0..kills / 3 {
            for _ in 0..3 {
                group.submit(Settings::default());
            }
            let pids = group.pids();
            let victim = pids[random.below(pids.len() as u64) as usize].1;
            std::thread::sleep(Duration::from_micros(random.below(20_000)));
            // It may have been killed before, and started again.
            let _ = kill_process(Pid::from_raw(victim as i32).unwrap(), Signal::KILL);
            while let Some(outcome) = group.wait().unwrap() {
                match outcome.result {
                    Ok(()) => {
                        let mut values = kit::all(&found)[&outcome.unit].clone();
                        values.sort_unstable();
                        assert_eq!(values, expected(100), "unit {}", outcome.unit);
                    }
                    Err(error) => {
                        assert!(!repeats, "{error}");
                        assert!(error.copy.contains("mix[") && error.copy.contains("process mix."), "{error}");
                        failed += 1;
                    }
                }
            }
        }
    }
    eprintln!("{kills} kills failed {failed} units");
    // Threads of units that were given up end by themselves.
    let mut after = Census::take(&word);
    for _ in 0..PATIENCE.as_millis() / 10 {
        if after.descriptors <= before.descriptors && after.mappings <= before.mappings {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        after = Census::take(&word);
    }
    assert!(after.descriptors <= before.descriptors, "{before} before, {after} after");
    assert!(after.mappings <= before.mappings, "{before} before, {after} after");
    assert_eq!(after.names, before.names, "{before} before, {after} after");
}
