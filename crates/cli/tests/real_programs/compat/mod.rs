//! Programs and their own test suites, compared with how they run without Sidestep: plain, and under `sidestep run` by default, with
//! `--promote eager`, and with connections that move to and fro at random.
//!
//! `SIDESTEP_PROGRAM` picks programs by words of their names, between commas, and `SIDESTEP_SEED` is the seed of the random moves. What a
//! row of the table says lies in `target/compat/rows`, what its failures said in `target/compat/logs`, and all rows that were ever made
//! are in `target/compat/table.md`.

mod report;
mod rows;
mod table;

mod brokers;
mod cpython;
mod front;
mod languages;
mod sql;
mod suites;

use std::{env, path::Path, process::Command};

use sidestep_testkit::{
    process::{full, seed},
    sockets::Promote,
};

use super::{
    tally,
    way::{Way, in_way},
};
use report::Report;
use table::{Cell, Table};

/// A program, or a suite of one, that is compared.
pub struct Row {
    /// What the table calls it.
    pub name: &'static str,
    /// A shell command whose output has the version; it fails if something is missing. Sources of suites are in `$SOURCES`.
    pub version: &'static str,
    /// Runs it in the way of this thread.
    pub run: fn(&mut Report),
}

#[test]
fn compat() {
    let words = env::var("SIDESTEP_PROGRAM").unwrap_or_default().to_lowercase();
    if !full() && words.is_empty() {
        eprintln!("left out: only in ./test compat");
        return;
    }
    let picked = |row: &&Row| words.split(',').any(|word| row.name.to_lowercase().contains(word.trim()));
    let (seed, table) = (seed(), Table::new());
    println!("SIDESTEP_SEED={seed}");
    let mut differing = Vec::new();
    for row in rows::ROWS.iter().filter(picked) {
        println!("== {}", row.name);
        let Some(version) = version(row.version) else {
            table.leave_out(row.name, "not installed");
            continue;
        };
        let differences = compare(row, &version, seed, &table);
        differing.extend(differences.into_iter().map(|name| format!("{}: {name}", row.name)));
    }
    println!("{}", table.assemble());
    assert!(differing.is_empty(), "other than plain:\n{}", differing.join("\n"));
}

/// Runs a program in all ways, adds its row to the table, and returns what differs from plain each time.
fn compare(row: &Row, version: &str, seed: u64, table: &Table) -> Vec<String> {
    let (plain, _) = run(row, None);
    table.log(row.name, "plain", &plain);
    if !plain.panicked().is_empty() {
        let failed = plain.panicked().join(", ");
        table.leave_out(row.name, &format!("does not work here without Sidestep: {failed}"));
        return vec![format!("{failed} without Sidestep")];
    }
    let mut cells = vec![Cell { report: plain, promoted: 0, steady: Vec::new(), once: Vec::new() }];
    for promote in [Promote::Default, Promote::Eager, Promote::Random(seed)] {
        let (report, promoted) = run(row, Some(promote));
        table.log(row.name, &promote.to_string(), &report);
        let first = cells[0].report.differences(&report);
        let mut steady = first.clone();
        // Some suites have tests that fail now and then by themselves, above all on a busy machine.
        for _ in 0..REPEATS {
            if steady.is_empty() {
                break;
            }
            println!("once more, {} differ: {}", steady.len(), steady.join(", "));
            let again = run(row, None).0.differences(&run(row, Some(promote)).0);
            steady.retain(|name| again.contains(name));
        }
        let once = first.into_iter().filter(|name| !steady.contains(name)).collect();
        cells.push(Cell { report, promoted, steady, once });
    }
    table.add(row.name, version, &cells);
    cells.into_iter().flat_map(|cell| cell.steady).collect()
}

/// Runs a program in one way, and counts its promoted connections.
fn run(row: &Row, promote: Option<Promote>) -> (Report, u64) {
    tally::take();
    let mut report = Report::default();
    in_way(Way::Compared(promote), || report.fill(row.run));
    let promoted = tally::take();
    let way = promote.map_or("plain".into(), |promote| promote.to_string());
    println!("{way}: {}, {promoted} connections promoted", report.counts());
    (report, promoted)
}

/// The first number with a point in what a command says, if it ends well.
fn version(command: &str) -> Option<String> {
    let path = env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output =
        Command::new("sh").args(["-c", command]).env("PATH", path).env("SOURCES", suites::sources("")).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let mut numbers = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let found = numbers.find(|part| part.contains('.') && part.starts_with(|first: char| first.is_ascii_digit()));
    found.filter(|_| output.status.success()).map(|number| number.trim_end_matches('.').to_string())
}

/// The folder of the build, in which the table lies.
fn target() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sidestep")).ancestors().nth(2).expect("a folder of the build")
}

/// How often what differs is run again, plain and under Sidestep, before it counts.
const REPEATS: usize = 2;
