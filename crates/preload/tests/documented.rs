//! The list, the exports of the library and the tables of the manual are one and the same.

mod list;
mod programs;

use std::{collections::BTreeSet, fmt::Write, fs, path::Path, process::Command};

use list::{CALLS, OPTIONS};

#[test]
fn the_library_exports_the_list_and_nothing_else() {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(programs::library()).output().expect("nm runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let exported: BTreeSet<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let listed: BTreeSet<&str> =
        CALLS.iter().flat_map(|call| [call.name].into_iter().chain(call.aliases.iter().copied())).collect();
    let header = header();
    let listed: BTreeSet<&str> = listed.into_iter().chain(header.iter().map(String::as_str)).collect();
    let missing: Vec<_> = listed.difference(&exported).collect();
    let surplus: Vec<_> = exported.difference(&listed).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "not exported: {missing:?}; not in the list: {surplus:?}");
}

/// The calls that `sidestep.h` declares.
fn header() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/sidestep.h");
    let text = fs::read_to_string(path).expect("sidestep.h");
    let declared = text.lines().filter(|line| line.ends_with(");") && !line.starts_with(' '));
    let names = declared.filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next().map(str::to_owned));
    names.filter(|name| name.starts_with("ss_")).collect()
}

#[test]
fn every_name_is_one_of_libc() {
    let output = Command::new("cc").args(["-print-file-name=libc.so.6"]).output().expect("a C compiler");
    let path = String::from_utf8(output.stdout).expect("text");
    let output = Command::new("nm").args(["-D", "--defined-only", path.trim()]).output().expect("nm runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let names: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter_map(|symbol| symbol.split('@').next())
        .collect();
    for call in CALLS {
        for name in [call.name].iter().chain(call.aliases) {
            assert!(names.contains(name), "{name} is not a function of libc");
        }
    }
}

#[test]
fn the_manual_has_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the root").join("docs/preload.md");
    let manual = fs::read_to_string(&path).expect("docs/preload.md");
    let mut wanted = manual.clone();
    for (name, table) in [("calls", calls()), ("options", options())] {
        wanted = with_table(&wanted, name, &table);
    }
    if std::env::var_os("SIDESTEP_BLESS").is_some() {
        fs::write(&path, &wanted).expect("writable");
    } else {
        assert!(
            manual == wanted,
            "docs/preload.md is out of date: run SIDESTEP_BLESS=1 cargo test -p sidestep-preload --test documented"
        );
    }
}

fn calls() -> String {
    let mut text = String::new();
    let mut section = "";
    for call in CALLS {
        if call.section != section {
            section = call.section;
            write!(text, "\n### {section}\n\n| call | | how, and why |\n|---|---|---|\n").expect("a string grows");
        }
        let names: Vec<String> = [call.name].iter().chain(call.aliases).map(|name| format!("`{name}`")).collect();
        writeln!(text, "| {} | {} | {} |", names.join(" "), call.verdict, call.why).expect("a string grows");
    }
    text
}

fn options() -> String {
    let mut text = "\n| level | option | | |\n|---|---|---|---|\n".to_owned();
    for (level, name, verdict, why) in OPTIONS {
        writeln!(text, "| {level} | {name} | {verdict} | {why} |").expect("a string grows");
    }
    text
}

fn with_table(manual: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name}: made from the list -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = manual.split_once(&begin).unwrap_or_else(|| panic!("no mark for {name}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no end of {name}"));
    format!("{before}{begin}{table}\n{end}{after}")
}
