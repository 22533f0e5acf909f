//! Shows that each named ordering is needed: with it weakened, the model that stands behind it in the table fails.
//!
//! Every ordering is one build of this crate, so this runs only when asked for (`./test loom` does):
//!
//! ```sh
//! SIDESTEP_WEAKEN=1 cargo test -p sidestep-shm --test weakened -- --nocapture
//! ```

#![cfg(not(any(loom, miri)))]

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Each ordering of `sync.rs`, and a model that fails without it.
const TABLE: [(&str, &str); 20] = [
    ("tail_publish", "rings::bytes_arrive_in_order_around_the_end"),
    ("tail_observe", "rings::bytes_arrive_in_order_around_the_end"),
    ("tail_want", "rings::what_is_wanted_is_read_or_taken"),
    ("tail_take", "rings::what_is_wanted_is_read_or_taken"),
    ("head_publish", "rings::space_comes_back_by_the_head"),
    ("head_observe", "rings::space_comes_back_by_the_head"),
    ("bit_take", "wake::a_bit_is_taken_once"),
    ("bit_observe", "wake::a_cleared_bit_shows_the_word"),
    ("rescan_publish", "wake::a_rescan_finds_what_was_cleared"),
    ("rescan_take", "wake::a_rescan_finds_what_was_cleared"),
    ("mark_set", "pending::no_event_is_lost_or_doubled"),
    ("mark_clear", "pending::no_event_is_lost_or_doubled"),
    ("stored_fence", "wake::no_wake_up_is_lost_by_a_queue"),
    ("arm_fence", "wake::no_wake_up_is_lost_by_a_queue"),
    ("sleep_fence", "wake::one_of_two_writers_rings"),
    ("ring_fence", "wake::one_of_two_writers_rings"),
    ("gate_leave", "gate::nothing_is_copied_once_memory_is_taken_back"),
    ("gate_seen", "gate::nothing_is_copied_once_memory_is_taken_back"),
    ("gate_enter_fence", "gate::nothing_is_copied_once_memory_is_taken_back"),
    ("gate_withdraw_fence", "gate::nothing_is_copied_once_memory_is_taken_back"),
];

#[test]
fn each_ordering_is_needed() {
    if env::var_os("SIDESTEP_WEAKEN").is_none() && env::var_os("SIDESTEP_FULL").is_none() {
        eprintln!("skipped: set SIDESTEP_WEAKEN=1");
        return;
    }
    assert_eq!(failures_with(None), BTreeSet::new(), "as it is, every model passes");
    for (ordering, model) in TABLE {
        let failures = failures_with(Some(ordering));
        eprintln!("{ordering:16} {}", failures.iter().cloned().collect::<Vec<_>>().join(" "));
        assert!(failures.contains(model), "{model} does not notice that {ordering} is weaker");
    }
}

/// The table has every ordering that can be weakened.
#[test]
fn the_table_is_complete() {
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sync.rs")).unwrap();
    let named: BTreeSet<&str> =
        source.split("cfg!(weaken = \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(named, TABLE.iter().map(|(ordering, _)| *ordering).collect());
}

/// Runs all models, with one ordering weakened, and returns the names of those that failed.
fn failures_with(weakened: Option<&str>) -> BTreeSet<String> {
    let target = target_dir();
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["test", "--package", "sidestep-shm", "--test", "loom", "--release", "--target-dir"])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUSTFLAGS", "--cfg loom")
        .env("RUST_BACKTRACE", "0")
        // Build time matters more than speed here.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "none")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    if let Some(name) = weakened {
        command.env("RUSTC_WORKSPACE_WRAPPER", wrapper(&target, name));
    }
    let output = command.output().expect("cargo starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let names = |verdict: &str| -> BTreeSet<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(verdict));
        lines.map(str::to_owned).collect()
    };
    let failures = names(" ... FAILED");
    let ran = failures.len() + names(" ... ok").len();
    assert!(ran > 10, "the models did not run: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.success(), failures.is_empty());
    failures
}

/// A compiler that weakens one ordering in the crates of this workspace, so that what they depend on is built once.
fn wrapper(target: &Path, name: &str) -> PathBuf {
    let path = target.join(format!("weaken-{name}"));
    fs::create_dir_all(target).unwrap();
    fs::write(&path, format!("#!/bin/sh\nexec \"$@\" --cfg 'weaken=\"{name}\"'\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Where `./test loom` builds the models, too.
fn target_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("loom")
}
