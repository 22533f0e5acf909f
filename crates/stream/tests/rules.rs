//! Shows that each rule of the path machine is needed: without it, the exploration that stands behind it in the table fails.
//!
//! Every rule is one build of `tests/explore.rs`, so this runs only when asked for (`./test explore` does):
//!
//! ```sh
//! SIDESTEP_RULES=1 cargo test -p sidestep-stream --test rules -- --nocapture
//! ```

use std::{collections::BTreeSet, env, fs, path::Path, process::Command};

/// Each rule of `path/mod.rs`, and an exploration that fails without it.
const TABLE: [(&str, &str); 18] = [
    ("limit", "switches"),
    ("look_again", "switches"),
    ("lock_tcp", "reader_fork"),
    ("recover", "reader_fork_and_death"),
    ("commit", "reader_fork"),
    ("publish", "give_back"),
    ("take_over", "writer_fork"),
    ("give_back_first", "give_back"),
    ("await_sent", "give_back_with_two_writers"),
    ("offer", "deep::give_back_with_two_readers"),
    ("arrive", "far"),
    ("reclaim", "give_back_and_death"),
    ("give_way", "refusals"),
    ("sole_enters", "writer_fork"),
    ("ask_end", "asked_to_end"),
    ("follow", "asked_to_end"),
    ("left_before_fork", "asked_to_end_and_fork"),
    ("part_when_read", "parting"),
];

#[test]
fn each_rule_is_needed() {
    if env::var_os("SIDESTEP_RULES").is_none() {
        eprintln!("skipped: set SIDESTEP_RULES=1");
        return;
    }
    for (rule, exploration) in TABLE {
        let built = Command::new(env!("CARGO"))
            .args(["rustc", "--package", "sidestep-stream", "--test", "explore", "--message-format", "json"])
            .arg("--target-dir")
            .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("rules"))
            .args(["--", "--cfg", &format!("without=\"{rule}\"")])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo starts");
        let messages = String::from_utf8_lossy(&built.stdout);
        let path = messages.split("\"executable\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let path = path.unwrap_or_else(|| panic!("{rule}: {}", String::from_utf8_lossy(&built.stderr)));
        let explored = Command::new(path)
            .args(["--exact", exploration])
            .env("RUST_BACKTRACE", "0")
            .output()
            .expect("the exploration starts");
        let text = String::from_utf8_lossy(&explored.stdout);
        let fault = text.lines().find(|line| line.contains(" steps: ["));
        let fault = fault.unwrap_or_else(|| panic!("{exploration} does not notice that {rule} is left out: {text}"));
        eprintln!("{rule:16} {}", fault.split(" steps: [").next().unwrap_or(fault));
    }
}

/// The table has every rule of the machine, and the documentation names each.
#[test]
fn the_table_is_complete() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(folder.join(file)).expect("a source");
    let machines = ["src/path/reader.rs", "src/path/writer.rs", "src/path/give_back.rs"];
    let sources = machines.into_iter().chain(["tests/explore/world.rs", "tests/explore/access.rs"]).map(read);
    let sources: Vec<String> = sources.collect();
    let mut named = BTreeSet::new();
    for source in &sources {
        for mark in ["rule!(\"", "without = \""] {
            named.extend(source.split(mark).skip(1).filter_map(|rest| rest.split('"').next()));
        }
    }
    let listed: BTreeSet<&str> = TABLE.iter().map(|(rule, _)| *rule).collect();
    assert_eq!(named, listed);
    let documented = read("src/path/mod.rs");
    for rule in listed {
        assert!(documented.contains(&format!("//! - `{rule}`: ")), "{rule} is not documented");
    }
}
