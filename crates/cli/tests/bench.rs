//! `sidestep bench` as a program: what it prints, and that no process outlives it.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sidestep_testkit::process::PATIENCE;

/// What is counted of memory traffic is exact, however busy the machine is; times are somebody else's matter.
#[test]
fn memory_traffic_is_counted() {
    let output = sidestep(&["bench", "extended", "--quick", "--only", "traffic", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (path, copies, model) in [
        ("tcp", 2.0, [json!([[1, 1], [2, 2]]), json!([[2, 4], [4, 4]])]),
        ("ring", 2.0, [json!(null), json!(null)]),
        ("rdma-write", 1.0, [json!([[1, 1], [1, 1]]), json!([[1, 1], [1, 1]])]),
        ("rdma-read", 1.0, [json!([[1, 1], [1, 1]]), json!([[1, 1], [1, 1]])]),
    ] {
        for (size, model) in [16 << 10, 10 << 20].into_iter().zip(model) {
            for metric in ["bandwidth", "cpu_per_message"] {
                let is_it = |line: &&Value| {
                    line["bench"] == "extended.traffic"
                        && line["path"] == path
                        && line["size"] == size
                        && line["metric"] == metric
                };
                let found: Vec<&Value> = lines.iter().filter(is_it).collect();
                let [line] = found[..] else { panic!("{path} {size} {metric}: {found:?}") };
                assert_eq!((&line["copies"], &line["bus_model"]), (&json!(copies), &model), "{path} {size}");
                assert!(line["value"].as_f64().is_some_and(|value| value > 0.0), "{line}");
            }
        }
    }
}

#[test]
fn json_lines_have_the_stated_keys() {
    if !has_two_cores() {
        return;
    }
    let output = sidestep(&["bench", "fabric", "--quick", "--only", "tcp,cacheline", "--rounds", "1", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect();
    for line in &lines {
        for key in ["bench", "path", "metric", "unit"] {
            assert!(line[key].is_string(), "{key} in {line}");
        }
        assert!(line["size"].is_u64(), "size in {line}");
        assert!(line["value"].as_f64().is_some_and(|value| value > 0.0), "{line}");
    }
    for (bench, path, size, metric, unit) in [
        ("fabric.latency", "cacheline", 64, "one_way_p50", "ns"),
        ("fabric.latency", "tcp", 64, "one_way_p50", "ns"),
        ("fabric.latency", "tcp", 65536, "one_way_p99", "ns"),
        ("fabric.latency", "tcp-spin", 1, "one_way_p999", "ns"),
        ("fabric.latency", "tcp", 1024, "cpu_per_message", "ns"),
        ("fabric.rate", "tcp", 64, "rate", "messages/s"),
        ("fabric.bandwidth", "tcp", 4 << 20, "bandwidth", "bytes/s"),
    ] {
        let found = lines.iter().filter(|line| {
            line["bench"] == bench
                && line["path"] == path
                && line["size"] == size
                && line["metric"] == metric
                && line["unit"] == unit
        });
        assert_eq!(found.count(), 1, "{bench} {path} {size} {metric}");
    }
    assert!(!lines.iter().any(|line| line["path"] == "pipe"), "--only is obeyed");
}

/// Which of the two is faster, noise decides here; that both were measured and stand beside each other is what counts.
#[test]
fn two_builds_are_compared_line_by_line() {
    if !has_two_cores() {
        return;
    }
    let own = env!("CARGO_BIN_EXE_sidestep");
    let output =
        sidestep(&["bench", "compare", own, own, "--suites", "fabric", "--only", "cacheline", "--rounds", "1"]);
    let table = text(&output.stdout);
    for expected in ["new/old", "noise", "cacheline", "fabric.latency", "one_way_p50"] {
        assert!(table.contains(expected), "{expected} in\n{table}\n{}", text(&output.stderr));
    }
    for (arguments, complaint) in [
        (&["bench", "compare", own][..], "compare takes two programs"),
        (&["bench", "compare", own, "no-such-program"], "not a program"),
        (&["bench", "fabric", own], "only `compare` and `seeds` take files"),
    ] {
        let output = sidestep(arguments);
        assert!(!output.status.success());
        assert!(text(&output.stderr).contains(complaint), "{complaint} in {}", text(&output.stderr));
    }
}

#[test]
fn tables_show_ratios_and_the_floor() {
    if !has_two_cores() {
        return;
    }
    let output = sidestep(&["bench", "fabric", "--quick", "--only", "ring,cacheline,latency", "--rounds", "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for expected in ["fabric.latency", "/cacheline", "64 KiB", "floor", "dropped"] {
        assert!(table.contains(expected), "{expected} in\n{table}");
    }
}

#[test]
fn help_lists_every_option_with_its_variable() {
    let whole = text(&sidestep(&["--help"]).stdout);
    assert!(whole.contains("bench"));
    assert!(!whole.contains("bench-worker"), "the worker is hidden");
    let help = text(&sidestep(&["bench", "--help"]).stdout);
    for option in ["json", "quick", "rounds", "only", "cores", "report"] {
        assert!(help.contains(&format!("--{option}")), "{option} in\n{help}");
        let variable = format!("SIDESTEP_BENCH_{}", option.to_uppercase());
        assert!(help.contains(&variable), "{variable} in\n{help}");
    }
    let list = text(&sidestep(&["bench", "list"]).stdout);
    for path in ["cacheline", "ring", "memcpy", "tcp", "unix", "pipe"] {
        assert!(list.contains(path), "{path} in\n{list}");
    }
}

#[test]
fn wrong_names_are_refused_with_the_right_ones() {
    let output = sidestep(&["bench", "nothing"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("fabric"));
    let output = sidestep(&["bench", "fabric", "--only", "nothing"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("bench list"));
}

#[test]
fn a_killed_parent_leaves_no_worker() {
    if !has_two_cores() {
        return;
    }
    let mut parent = long_run();
    let workers = wait_for_workers(parent.id());
    parent.kill().expect("it runs");
    parent.wait().expect("it ended");
    let limit = Instant::now() + PATIENCE;
    while workers.iter().any(|worker| is_alive(*worker)) {
        assert!(Instant::now() < limit, "a worker outlives its parent");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_worker_ends_the_run_with_a_reason() {
    if !has_two_cores() {
        return;
    }
    let parent = long_run();
    let workers = wait_for_workers(parent.id());
    let worker = Pid::from_raw(workers[0] as i32).expect("a process");
    kill_process(worker, Signal::KILL).expect("it runs");
    let output = parent.wait_with_output().expect("it ends");
    assert!(!output.status.success());
    let reason = text(&output.stderr);
    assert!(reason.contains("the worker process ended"), "{reason}");
    assert!(reason.contains("signal: 9"), "{reason}");
}

fn sidestep(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("it runs")
}

fn long_run() -> Child {
    program()
        .args(["bench", "fabric", "--only", "cacheline,tcp"])
        .args(["--rounds", "1000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
}

fn wait_for_workers(parent: u32) -> Vec<u32> {
    let limit = Instant::now() + PATIENCE;
    loop {
        let workers = children(parent);
        if workers.len() >= 3 {
            // Let them begin to measure.
            sleep(Duration::from_millis(300));
            return workers;
        }
        assert!(Instant::now() < limit, "no workers came up");
        sleep(Duration::from_millis(10));
    }
}

fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("procfs");
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|process| state_and_parent(*process).is_some_and(|(_, of)| of == parent))
        .collect()
}

/// A zombie is not alive: it waits for whoever adopted it.
fn is_alive(process: u32) -> bool {
    state_and_parent(process).is_some_and(|(state, _)| state != "Z" && state != "X")
}

fn state_and_parent(process: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it may contain anything, also parentheses.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.into(), fields.next()?.parse().ok()?))
}

fn has_two_cores() -> bool {
    let two = std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 2);
    if !two {
        eprintln!("skipped: a measurement needs two cores");
    }
    two
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
