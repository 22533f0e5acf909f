//! The tools before processes that are stopped, that die, or that write rubbish into what they share.

use std::{
    fs::{self, File},
    os::unix::{fs::FileExt, process::ExitStatusExt},
    process::Child,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use sidestep_testkit::{process::seed, sockets::judge::Random};

use super::{
    metrics::Metrics,
    stage::{Killed, Pair, Stage, Two, wait_until},
    terminal::Terminal,
};

/// Waits for the end of a tool, which may have found nothing, but has not been waiting for anybody, and has not crashed. A tap
/// ends when it is told to.
fn ends(question: &[&str], tool: Child) {
    let (mut tool, is_tap) = (Killed(tool), question[0] == "tap");
    let mut status = None;
    wait_until(&question.join(" "), || {
        status = tool.0.try_wait().expect("a child");
        if is_tap && status.is_none() {
            kill_process(Pid::from_child(&tool.0), Signal::TERM).expect("it has not been waited for");
        }
        status.is_some()
    });
    let status = status.expect("it has ended");
    let is_told = is_tap && status.signal() == Some(Signal::TERM.as_raw());
    assert!(is_told || matches!(status.code(), Some(0 | 1)), "{question:?}: {status}");
}

/// Each tool once, about a process, and the metrics, which are always whole.
fn ask_everything(stage: &Stage, pair: &Pair, metrics: &Metrics) {
    metrics.body();
    let port = format!(":{}", pair.port);
    let questions: [&[&str]; 10] = [
        &["stat", "--json"],
        &["stat", "--sort", "fill"],
        &["stat", "--totals", &pair.pid],
        &["why", &pair.pid],
        &["why", &pair.pid, &pair.fd],
        &["why", &port],
        &["doctor"],
        &["off", &pair.pid],
        &["on", &pair.pid],
        &["tap", "-w", "/dev/null"],
    ];
    for question in questions {
        let mut tool = stage.spawn(question);
        let mut output = tool.stdout.take().expect("a pipe");
        let reading = thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        ends(question, tool);
        reading.join().expect("no panic").expect("readable");
    }
}

/// A process that does not run answers nobody; the tools do not ask it.
#[test]
fn tools_do_not_wait_for_a_process_that_is_stopped() {
    let stage = Stage::new("stopped");
    let pair = stage.pair(&[], &["promoted"]);
    let pid = Pid::from_raw(pair.pid.parse().expect("a number")).expect("not 0");
    kill_process(pid, Signal::STOP).expect("it lives");
    assert_eq!(stage.sockets(&[&pair.pid]).len(), 2);
    ask_everything(&stage, &pair, &Metrics::start(&stage, &[]));
    let said = stage.said(&["off", &pair.pid]);
    assert!(said.contains("2 connections have not moved yet"), "{said}");
    stage.said(&["on", &pair.pid]);
    if let Some(terminal) = Terminal::start(&stage, 80, 24, "top --interval 0.1") {
        terminal.wait_for("2 sockets of 1 processes");
        terminal.press(&["q"]);
        terminal.wait_for_end();
    }
    kill_process(pid, Signal::CONT).expect("it lives");
}

/// Processes that come and are killed at any moment, under the eyes of every tool.
#[test]
fn tools_work_while_processes_die() {
    let stage = Stage::new("dying");
    let stay = stage.pair(&[], &["promoted"]);
    let terminal = Terminal::start(&stage, 80, 24, "top --interval 0.1");
    let mut tap = Killed(stage.spawn(&["tap", "-w", "/dev/null"]));
    let (over, metrics) = (AtomicBool::new(false), Metrics::start(&stage, &[]));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                let mut pair = stage.pair(&[], &["promoted"]);
                pair.child.kill().expect("it lives");
            }
        });
        (0..3).for_each(|_| ask_everything(&stage, &stay, &metrics));
        over.store(true, Relaxed);
    });
    assert_eq!(stage.sockets(&[]).len(), 2, "the dead are not shown");
    assert!(tap.0.try_wait().expect("a child").is_none(), "the tap goes on");
    if let Some(terminal) = terminal {
        terminal.wait_for("2 sockets of 1 processes");
        terminal.press(&["q"]);
        terminal.wait_for_end();
    }
}

/// Rubbish in the registry, whole pages and single words of it, written while the tools look, and left there.
#[test]
fn tools_stand_rubbish_in_the_registry() {
    let (stage, seed) = (Stage::new("rubbish"), seed());
    println!("SIDESTEP_SEED={seed}");
    let mut random = Random::new(seed);
    let victim = stage.pair(&[], &["promoted"]);
    let Some(segment) = Segment::all(&victim.pid).pop() else {
        return eprintln!("left out: /proc/PID/mem may not be written");
    };
    let metrics = Metrics::start(&stage, &[]);
    let terminal = Terminal::start(&stage, 80, 24, "top --interval 0.1");
    // At last the first page, too, which says that it is a registry at all.
    for first in [1, 1, 0] {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    segment.scribble(first, &mut random);
                }
            });
            ask_everything(&stage, &victim, &metrics);
            over.store(true, Relaxed);
        });
        ask_everything(&stage, &victim, &metrics);
    }
    if let Some(terminal) = terminal {
        assert!(terminal.runs(), "top has ended");
        terminal.press(&["q"]);
        terminal.wait_for_end();
    }
}

/// Rubbish in what a tapped process hands over, while a capture runs, and while latencies are measured.
#[test]
fn taps_stand_rubbish_in_their_buffer() {
    let (stage, seed) = (Stage::new("lanes"), seed());
    println!("SIDESTEP_SEED={seed}");
    let mut random = Random::new(seed);
    let two = Two::start(&stage, &[], "pingpong");
    wait_until("a promotion", || stage.all(2, |socket| socket["reason"] == "Promoted"));
    let before: Vec<u64> = Segment::all(&two.client).iter().map(|segment| segment.begin).collect();
    if before.is_empty() {
        return eprintln!("left out: /proc/PID/mem may not be written");
    }
    // The buffer of a tap is what was not there before.
    let buffer = || Segment::all(&two.client).into_iter().find(|segment| !before.contains(&segment.begin));
    let mut scribble = || {
        wait_until("a tap", || buffer().is_some());
        let buffer = buffer().expect("it is tapped");
        (0..20_000).for_each(|_| buffer.scribble(1, &mut random));
    };
    let tap = stage.spawn(&["tap", "-w", "/dev/null"]);
    scribble();
    ends(&["tap"], tap);
    wait_until("the end of the tap", || buffer().is_none());
    let metrics = Metrics::start(&stage, &["--latency"]);
    scribble();
    assert!(metrics.body().contains("sidestep_response_lost_total"));
}

/// Memory that a process shares with the tools, as one has it mapped that may write it.
struct Segment {
    memory: File,
    begin: u64,
    end: u64,
}

impl Segment {
    fn all(pid: &str) -> Vec<Segment> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("it lives");
        let segment = |line: &str| {
            let (begin, end) = line.split(' ').next()?.split_once('-')?;
            let [begin, end] = [begin, end].map(|word| u64::from_str_radix(word, 16).expect("an address"));
            let memory = File::options().write(true).open(format!("/proc/{pid}/mem")).ok()?;
            Some(Segment { memory, begin, end })
        };
        maps.lines().filter(|line| line.contains(" rw-s ") && line.contains("/SYSV")).filter_map(segment).collect()
    }

    /// One word of any sort, or a page of it, anywhere from this page on.
    fn scribble(&self, first: u64, random: &mut Random) {
        let pages = (self.end - self.begin) / 4096;
        let page = self.begin + 4096 * (first + random.below(pages - first));
        let value = match random.below(4) {
            0 => random.number(),
            1 => random.below(1 << 20),
            2 => random.below(16) << 8 | random.below(16),
            _ => 1 << random.below(64),
        };
        let bytes = value.to_le_bytes();
        let _ = match random.one_in(8) {
            true => self.memory.write_at(&bytes.repeat(512), page),
            false => self.memory.write_at(&bytes, page + 8 * random.below(512)),
        };
    }
}
