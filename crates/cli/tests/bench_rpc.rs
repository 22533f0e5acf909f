//! `sidestep bench rpc` as a program: what it prints, and that it ends.

use std::process::Command;

use serde_json::Value;
use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

#[test]
fn json_lines_have_the_stated_keys() {
    let ways = "null,threads,chunks,channel,shm,vi,unix,tcp,udp,rdma,rdma-read";
    let text = sidestep(&["bench", "rpc", "--quick", "--only", ways, "--rounds", "1", "--json"]);
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect();
    let found = |bench: &str, path: &str, metric: &str| {
        let same = |line: &&Value| line["bench"] == bench && line["path"] == path && line["metric"] == metric;
        lines.iter().find(same).and_then(|line| line["value"].as_f64()).is_some_and(|value| value > 0.0)
    };
    for path in ["channel", "shm", "vi", "unix", "tcp", "udp"] {
        for metric in ["call_p50", "call_p99", "call_p999", "cpu_per_call"] {
            assert!(found("rpc.null", path, metric), "{path} {metric} in {text}");
        }
        assert!(found("rpc.threads", path, "requests"), "{path} in {text}");
    }
    for path in ["rdma", "rdma-read"] {
        assert!(found("rpc.chunks", path, "bandwidth"), "{path} in {text}");
    }
    assert!(found("rpc.chunks", "rdma", "ratio"), "{text}");
    assert!(found("rpc.null", "shm", "ratio"), "{text}");
    assert!(!lines.iter().any(|line| line["bench"] == "rpc.sizes"), "--only is obeyed");
}

#[test]
fn the_suite_is_listed_and_wrong_names_are_refused() {
    let list = sidestep(&["bench", "list"]);
    for word in ["rpc:", "null", "sizes", "threads", "chunks", "rdma-read", "tirpc-via"] {
        assert!(list.contains(word), "{word} in\n{list}");
    }
    let refused = Bounded::start(program().args(["bench", "rpc", "--only", "nothing"]), PATIENCE).wait();
    assert!(!refused.success() && refused.stderr.contains("bench list"), "{}", refused.stderr);
}

fn sidestep(arguments: &[&str]) -> String {
    Bounded::start(program().args(arguments), PATIENCE).wait().expect("sidestep")
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
}
