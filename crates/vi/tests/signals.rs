//! The threads that a NIC has of its own get no signal of the program.

use std::{collections::BTreeMap, fs, time::Instant};

use sidestep_testkit::process::PATIENCE;
use sidestep_vi::Nic;

/// As the kernel shortens them.
const NAMES: [&str; 2] = ["sidestep-servic", "via-service"];

#[test]
fn service_threads_get_no_signal_of_the_program() {
    let nic = Nic::open("iwarp").expect("a NIC");
    nic.serve().expect("a thread");
    let end = Instant::now() + PATIENCE;
    // A thread says its name when it begins.
    let masks = std::iter::repeat_with(masks).find(|masks| masks.len() == NAMES.len() || Instant::now() > end);
    let masks = masks.expect("without end");
    assert_eq!(masks.len(), NAMES.len(), "{masks:?}");
    for (name, mask) in masks {
        let blocks = |signal: i32| mask >> (signal - 1) & 1 == 1;
        assert!([1, 2, 10, 12, 14, 15, 17, 34, 64].into_iter().all(blocks), "{name} takes signals: {mask:x}");
        // With these libc stops and changes threads, and waits for their answers.
        assert!(!blocks(32) && !blocks(33), "{name} does not answer libc: {mask:x}");
    }
}

/// The signals that the service threads block, by name.
fn masks() -> BTreeMap<String, u64> {
    let tasks = fs::read_dir("/proc/self/task").expect("threads").flatten();
    let mask = |task: fs::DirEntry| {
        let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let (name, status) = (read("comm").trim().to_string(), read("status"));
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
        Some((name, u64::from_str_radix(mask.trim(), 16).expect("a number")))
    };
    tasks.filter_map(mask).filter(|(name, _)| NAMES.contains(&name.as_str())).collect()
}
