//! Shows that each named ordering is needed: with it weakened, the model that stands behind it in the table fails.
//!
//! The models are built for this, so it runs only when asked for (`./test weakened` does):
//!
//! ```sh
//! SIDESTEP_WEAKEN=1 cargo test -p sidestep-shm --test weakened -- --nocapture
//! ```

#![cfg(not(any(loom, miri)))]

use std::{
    collections::BTreeSet,
    env, fs,
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
    let models = build();
    for (ordering, model) in TABLE {
        assert!(!passes(&models, model, ordering), "{model} does not notice that {ordering} is weaker");
        eprintln!("{ordering:20} is needed by {model}");
    }
}

/// The table has every ordering that can be weakened.
#[test]
fn the_table_is_complete() {
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sync.rs")).unwrap();
    let uses = source.lines().filter(|line| line.contains("named(Ordering::") || line.contains("full_fence(\""));
    let named: BTreeSet<&str> = uses.filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(named, TABLE.iter().map(|(ordering, _)| *ordering).collect());
}

/// Whether a model passes with this ordering weakened. That all pass as they are, `./test loom` shows.
fn passes(models: &Path, model: &str, weakened: &str) -> bool {
    let mut command = Command::new(models);
    command.args(["--exact", model]).env("SIDESTEP_WEAKENED", weakened).env("RUST_BACKTRACE", "0");
    let output = command.output().expect("the models start");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("running 1 test"), "no model {model}: {text}");
    output.status.success()
}

/// Builds the models, and returns the program that runs them.
fn build() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--package", "sidestep-shm", "--test", "loom", "--release", "--no-run"])
        .args(["--message-format", "json", "--target-dir"])
        // Where `./test loom` builds them, too.
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("loom"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUSTFLAGS", "--cfg loom")
        // Build time matters more than speed here.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "none")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let programs = text.split("\"executable\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let program = programs.last().map(PathBuf::from);
    program.unwrap_or_else(|| panic!("the models are not built: {}", String::from_utf8_lossy(&output.stderr)))
}
