//! Whole programs as filters, which use their two ports from two threads.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sidestep_filters::{ANY, Graph, Group, Kind, Kinds, Launcher, Place, Settings, builtin, function};
use sidestep_testkit::process::PATIENCE;

/// Lines that a program gets, and one it gives back at a time.
const LINES: usize = 3000;

type Found = Arc<Mutex<Vec<u8>>>;

/// `lines` gives short lines, `keep` takes what comes, both with pauses that let the other side wait.
fn kinds(found: &Found) -> Kinds {
    let found = found.clone();
    let lines = Kind::new("gives lines", |_| {
        Ok(function(|work| {
            for number in 0..LINES {
                if number % 200 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                work.outputs.port("out")?.put(format!("{number}\n").as_bytes())?;
            }
            Ok(())
        }))
    });
    let keep = Kind::new("keeps bytes", move |_| {
        let found = found.clone();
        let mut bytes = Vec::new();
        Ok(function(move |work| {
            let mut count = 0;
            while let Some(mut buffer) = work.inputs.take()? {
                buffer.read_into(&mut bytes)?;
                found.lock().unwrap().extend_from_slice(&bytes);
                count += 1;
                if count % 150 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Ok(())
        }))
    });
    builtin::kinds().with("lines-of-test", lines.output("out", ANY)).with("keep", keep.input("in", ANY))
}

fn graph(command: &str) -> Graph {
    Graph::new("programs")
        .filter("lines", "lines-of-test", 1, Place::Thread)
        .filter("program", "program", 1, Place::Thread)
        .set("command", command)
        .filter("keep", "keep", 1, Place::Thread)
        .stream("lines.out", "program.in", 16)
        .queued(1)
        .stream("program.out", "keep.in", 16)
        .queued(1)
}

/// One thread waits for input and the other for space, again and again: news for one must not wake only the other.
#[test]
fn both_ports_wait_at_the_same_time() {
    let found = Found::default();
    let mut group = Group::start(graph("cat"), &kinds(&found), Launcher::this_program()).unwrap();
    for outcome in group.run(vec![Settings::default(); 3]).unwrap() {
        outcome.result.unwrap();
    }
    let expected: String = (0..LINES).map(|number| format!("{number}\n")).collect();
    assert_eq!(String::from_utf8(found.lock().unwrap().clone()).unwrap(), expected.repeat(3));
}

/// Processes with this word among their arguments.
fn running(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())).count()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..PATIENCE.as_millis() / 5 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what}");
}

/// A program that neither reads, writes nor ends: its unit can be given up, the next one begins, and nothing is left.
#[test]
fn a_program_that_does_nothing_ends_with_its_unit() {
    // Seconds that no other program sleeps for.
    let word = format!("99{}", std::process::id());
    let mut group =
        Group::start(graph(&format!("sleep\n{word}")), &kinds(&Found::default()), Launcher::this_program()).unwrap();
    let (canceller, unit) = (group.canceller(), group.submit(Settings::default()));
    wait_until("the program does not start", || running(&word) == 1);
    canceller.cancel(unit);
    assert!(group.wait().unwrap().unwrap().result.unwrap_err().what.contains("given up"));
    wait_until("the program goes on", || running(&word) == 0);
    group.submit(Settings::default());
    wait_until("the program does not start again", || {
        assert_eq!(group.poll(Duration::from_millis(1)).unwrap(), None);
        running(&word) == 1
    });
    drop(group);
    wait_until("the program outlives its group", || running(&word) == 0);
}
