//! The tools before a process with ten thousand sockets. How long they take depends on the machine, so what is limited here is
//! what they ask the kernel for, and the processor time that they use. A build that is not optimised takes three times as much of
//! it as one that is, and more.

use std::{fs, io::Write, os::unix::fs::symlink, path::PathBuf, process::Command, time::Duration};

use rustix::process::{Resource, getrlimit};

use super::{
    stage::{Killed, Pair, SIDESTEP, Stage, Work, many_program, processor_time, wait_until},
    terminal::Terminal,
};

/// Ten thousand sockets, and some descriptors beside them.
const CONNECTIONS: &str = "5000";
const SOCKETS: usize = 10_000;
const DESCRIPTORS: u64 = 12_000;
const LIMIT: Duration = Duration::from_secs(2);

/// The process, each connection of which has had so many exchanges; `None` where no process may have that many descriptors.
fn crowd(stage: &Stage, options: &[&str], exchanges: &str) -> Option<Pair> {
    if getrlimit(Resource::Nofile).maximum.is_some_and(|most| most < DESCRIPTORS) {
        eprintln!("left out: a process may not have {DESCRIPTORS} descriptors here");
        return None;
    }
    Some(stage.program(options, &named(stage), &[CONNECTIONS, exchanges]))
}

/// The program under a name of its own: others run it at the same time.
fn named(stage: &Stage) -> PathBuf {
    let folder = stage.0.file_name().and_then(|name| name.to_str()).expect("a name");
    let name = stage.0.join(folder.trim_start_matches("sidestep-see-"));
    if !name.exists() {
        symlink(many_program(), &name).expect("a name");
    }
    name
}

/// What the tool prints, within the limit.
fn said(stage: &Stage, arguments: &[&str]) -> String {
    let Work { output, used } = stage.work(arguments);
    assert!(used < LIMIT, "{arguments:?} took {used:?} of processor time");
    eprintln!("{arguments:?}: {used:?}");
    output
}

/// What a tool asks of the kernel: each descriptor of the process once, and the connections of the host in a few long answers,
/// not in lines of text, which also list connections that have ended.
fn asks_little(stage: &Stage, crowd: &Pair, arguments: &[&str]) {
    let log = stage.0.join("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-y", "-e", "trace=readlink,readlinkat,read,recvfrom", "-o"]).arg(&log);
    let traced = strace.arg(SIDESTEP).args(arguments).env("SIDESTEP_DIR", &stage.0).output();
    let calls = fs::read_to_string(&log).unwrap_or_default();
    if !traced.is_ok_and(|output| output.status.success()) || calls.is_empty() {
        return eprintln!("left out: strace is not here or may not trace");
    }
    let count = |words: &[&str]| calls.lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
    let own = format!("/proc/{}/", crowd.pid);
    let links = count(&["readlink", &format!("{own}fd/")]);
    let (answers, texts, own) = (count(&["recvfrom("]), count(&["read(", "/net/tcp"]), count(&["read(", &own]));
    eprintln!(
        "{arguments:?}: {links} links, {answers} answers, {texts} pieces of text, {own} pieces of text of the process"
    );
    assert!(links < DESCRIPTORS as usize, "{arguments:?} looks at {links} descriptors");
    assert!(answers < SOCKETS / 50, "{arguments:?} takes {answers} answers of the kernel");
    assert!(texts == 0 && own < SOCKETS / 50, "{arguments:?} reads {texts} and {own} pieces of text");
}

#[test]
fn tools_answer_for_ten_thousand_promoted_sockets() {
    let stage = Stage::new("many");
    let Some(mut crowd) = crowd(&stage, &[], "12") else { return };
    let json = said(&stage, &["stat", "--json"]);
    assert_eq!(json.lines().count(), SOCKETS);
    let promoted = json.matches("\"reason\":\"Promoted\"").count();
    assert!(promoted > SOCKETS / 2, "{promoted} were promoted");
    assert!(said(&stage, &["stat", "--sort", "bytes"]).lines().count() > SOCKETS);
    assert!(said(&stage, &["stat", "--totals"]).contains(" 10000 "));
    assert!(said(&stage, &["why", &crowd.pid, &crowd.fd]).contains("promoted"));
    for several in [crowd.pid.clone(), format!(":{}", crowd.port), named(&stage).display().to_string()] {
        assert!(said(&stage, &["why", &several]).contains("... and 9980 more"), "{several}");
    }
    for question in [&["stat", "--totals"][..], &["why", &crowd.pid], &["why", &crowd.pid, &crowd.fd]] {
        asks_little(&stage, &crowd, question);
    }
    top_answers(&stage, &crowd);

    // The process waits for its standard input, outside the library: it finds the tap when it moves something.
    let capture = stage.0.join("capture.pcapng");
    let filter = format!("pid={}", crowd.pid);
    let tap = stage.spawn(&["tap", "-c", "20", "-w", capture.to_str().expect("letters"), &filter]);
    let mut tap = Killed(tap);
    wait_until("packets", || {
        crowd.input.as_mut().expect("a pipe").write_all(b"x").expect("it reads");
        tap.0.try_wait().expect("a child").is_some_and(|status| status.success())
    });
    assert!(capture.metadata().expect("a capture").len() > 1000);
}

/// What a look of `top` costs, and that it is shown.
fn top_answers(stage: &Stage, crowd: &Pair) {
    let Some(terminal) = Terminal::start(stage, 80, 24, "top --interval 600") else { return };
    let shown = terminal.wait_for("10000 sockets of 1 processes");
    let used = processor_time(terminal.pid());
    assert!(used < LIMIT, "`top` took {used:?} of processor time for its first look, and to show it");
    assert!(shown.contains(&crowd.pid) && shown.contains("Promoted"), "{shown}");
    eprintln!("top: {used:?}");
    terminal.press(&["End"]);
    terminal.press(&["p"]);
    terminal.wait_for("BY CARRIER");
    terminal.press(&["q"]);
    terminal.wait_for_end();
}

/// Connections that are the kernel's alone so far: most of what is said of them comes from the kernel's tables.
#[test]
fn tools_answer_for_ten_thousand_young_sockets() {
    let stage = Stage::new("young");
    for (options, reason) in [(&[][..], "Young"), (&["--promote", "never"], "Rule")] {
        let Some(crowd) = crowd(&stage, options, "0") else { return };
        let json = said(&stage, &["stat", "--json"]);
        assert_eq!(json.matches(&format!("\"reason\":\"{reason}\"")).count(), SOCKETS);
        assert!(said(&stage, &["why", &crowd.pid, &crowd.fd]).contains(reason));
        let port = format!(":{}", crowd.port);
        assert!(said(&stage, &["why", &port]).contains("... and 9980 more"));
        for question in [&["stat", "--totals"][..], &["why", &port], &["why", &crowd.pid, &crowd.fd]] {
            asks_little(&stage, &crowd, question);
        }
    }
    // Without Sidestep.
    let mut command = Command::new(many_program());
    command.args([CONNECTIONS, "0"]);
    let crowd = stage.start(command);
    assert!(said(&stage, &["stat"]).contains("no sockets"));
    let port = format!(":{}", crowd.port);
    assert!(said(&stage, &["why", &port]).contains("NotLoaded"));
    asks_little(&stage, &crowd, &["why", &port]);
}
