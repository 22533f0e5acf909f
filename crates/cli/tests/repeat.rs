//! The behaviours that strangers, signals, forks and limits once broke, again and again: over kernel TCP, and in every way of
//! promoting, on rings and over VIA. What one run in a hundred does wrong shows here, and nowhere else.
//!
//! `SIDESTEP_REPEAT` says how often, `SIDESTEP_BEHAVIOUR` which (names between commas, or `all`), and `SIDESTEP_SEED` where the
//! seeds of random promotion begin. Rounds are interleaved, and several programs run at a time. The table of results lies in
//! `repeat.txt` beside the build, and is renewed while the test runs.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use sidestep_testkit::{
    process::{full, seed},
    sockets::{Behaviour, Ended, Launch, Promote},
};

/// By what they are about.
const BEHAVIOURS: &[(&str, &[&str])] = &[
    (
        "known before it is connected",
        &["connect_nonblocking", "epoll_before_connect", "epoll_dup", "epoll_nested", "inherited_set"],
    ),
    ("users and roots", &["change_user", "changed_root"]),
    ("the program's own lists", &["const_vectors", "low_water", "waitall"]),
    (
        "jumps, signals and cancellation",
        &["cancel", "cancel_in_kernel", "jump_lists", "jump_out", "signal_storm", "signals_pending"],
    ),
    ("other readers in the process", &["dup_anywhere", "pass_unread", "stdio", "stdio_silent", "stdio_unread"]),
    ("locks and allocators", &["fork_handlers", "linger_others", "own_malloc"]),
    ("numbers", &["lost_number", "lowest_number", "poll", "raw_syscalls", "select_closed"]),
    ("stacks", &["small_stacks"]),
    ("readiness and order", &["order_across", "readable_means_readable"]),
    (
        "forks",
        &[
            "exec_again",
            "exec_silent",
            "exit_with_data",
            "fork_accept",
            "fork_after_end",
            "fork_and_want",
            "fork_daemon",
            "fork_exec",
            "fork_exec_silent",
            "fork_holds",
            "fork_idle",
            "fork_low_water",
            "fork_reads",
            "fork_shares",
            "fork_shutdown",
            "fork_tells",
            "fork_twice",
            "fork_waits",
            "pid_namespace",
            "prefork",
            "prefork_epoll",
            "short_lives",
            "spawn",
        ],
    ),
    ("options", &["options", "unread_counts"]),
    ("sandboxes", &["sandbox_leaves", "sandbox_stopped", "sandbox_strict", "sandbox_waits"]),
];

/// How often in `./test full`, unless told otherwise.
const USUAL: usize = 3;
/// Columns of the table: kernel TCP, and the ways of promoting on each carrier.
const COLUMNS: [&str; 7] = ["plain", "default", "eager", "random", "via default", "via eager", "via random"];
/// The most failures that are told in full.
const MOST_TOLD: usize = 12;

/// One behaviour with its ends in one process or in two.
struct Case {
    behaviour: Behaviour,
    mode: &'static str,
    expected: Ended,
}

/// What became of the runs of one case in one column.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    passed: usize,
    runs: usize,
}

#[derive(Default)]
struct Results {
    cells: BTreeMap<usize, [Cell; COLUMNS.len()]>,
    failures: Vec<String>,
}

#[test]
fn every_time() {
    let given = env::var("SIDESTEP_REPEAT").ok().map(|count| count.parse().expect("SIDESTEP_REPEAT is a number"));
    let Some(rounds) = given.or(full().then_some(USUAL)) else {
        eprintln!("left out: only in ./test full, or with SIDESTEP_REPEAT");
        return;
    };
    let (seed, cases) = (seed(), cases());
    println!("{rounds} rounds of {} cases, SIDESTEP_SEED={seed}", cases.len());
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Results::default()));
    let of_round = cases.len() * COLUMNS.len();
    thread::scope(|scope| {
        // More than there are processors, so that each is now and then without one.
        for _ in 0..2 * thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= rounds * of_round {
                        return;
                    }
                    let (round, column, case) = (run / of_round, run % of_round / cases.len(), run % cases.len());
                    let launch = launch(column, seed.wrapping_add(round as u64));
                    let outcome = cases[case].run(&launch);
                    let mut results = results.lock().expect("no panic");
                    results.add(case, column, outcome);
                    if (run + 1) % of_round == 0 {
                        results.write(&cases);
                    }
                }
            });
        }
    });
    let results = results.into_inner().expect("no panic");
    println!("{}", results.write(&cases));
    assert!(results.failures.is_empty(), "{} runs failed", results.failures.len());
}

/// The cases, with how each ends over kernel TCP.
fn cases() -> Vec<Case> {
    let listed = || BEHAVIOURS.iter().flat_map(|(_, names)| names.iter().map(|name| (*name).to_string())).collect();
    let names: Vec<String> = match env::var("SIDESTEP_BEHAVIOUR") {
        Ok(all) if all == "all" => Behaviour::all(),
        Ok(some) => some.split(',').map(str::to_string).collect(),
        Err(_) => listed(),
    };
    let of_name = |name: &String| {
        let modes = Behaviour::new(name).modes.iter();
        let case = |mode: &&'static str| {
            let behaviour = Behaviour::new(name);
            let expected = behaviour.over_kernel(mode, "", &mut behaviour.command(&Launch::Plain, mode));
            Case { behaviour, mode, expected }
        };
        modes.map(case).collect::<Vec<_>>()
    };
    names.iter().flat_map(of_name).collect()
}

fn launch(column: usize, seed: u64) -> Launch {
    let sidestep = PathBuf::from(env!("CARGO_BIN_EXE_sidestep"));
    let promote = |way| [Promote::Default, Promote::Eager, Promote::Random(seed)][way];
    match column {
        0 => Launch::Plain,
        1..=3 => Launch::Sidestep(sidestep, promote(column - 1)),
        _ => Launch::Via(sidestep, promote(column - 4)),
    }
}

impl Case {
    fn run(&self, launch: &Launch) -> Result<(), String> {
        let Case { behaviour, mode, expected } = self;
        behaviour.compare(mode, launch, "", expected, &mut behaviour.command(launch, mode))
    }
}

impl Results {
    fn add(&mut self, case: usize, column: usize, outcome: Result<(), String>) {
        let cell = &mut self.cells.entry(case).or_default()[column];
        match outcome {
            Ok(()) => (cell.passed, cell.runs) = (cell.passed + 1, cell.runs + 1),
            Err(told) => {
                cell.runs += 1;
                self.failures.push(told);
            }
        }
    }

    /// Writes the table, and what failed, to `repeat.txt`, and gives the table.
    fn write(&self, cases: &[Case]) -> String {
        let mut table = format!("{:28}", "");
        COLUMNS.iter().for_each(|name| table += &format!("{name:>13}"));
        for (index, cells) in &self.cells {
            let case = &cases[*index];
            table += &format!("\n{:28}", format!("{} {}", case.behaviour.name, case.mode));
            for Cell { passed, runs } in cells {
                table += &format!("{:>13}", if *runs == 0 { "-".to_string() } else { format!("{passed}/{runs}") });
            }
        }
        table += &format!("\n{} failures\n", self.failures.len());
        let told: String = self.failures.iter().take(MOST_TOLD).map(|told| format!("\n{told}\n")).collect();
        let beside = Path::new(env!("CARGO_BIN_EXE_sidestep")).with_file_name("repeat.txt");
        fs::write(beside, format!("{table}{told}")).expect("a file beside the build");
        table
    }
}
