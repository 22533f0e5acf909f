//! `sidestep bench sockets` and `sidestep demo` as programs: what they print, and that they end.

use std::process::Command;

use serde_json::Value;
use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

#[test]
fn json_lines_have_the_stated_keys() {
    let text = sidestep(&["bench", "sockets", "--quick", "--only", "latency,rate", "--rounds", "1", "--json"]);
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect();
    for line in &lines {
        for key in ["bench", "path", "metric", "unit"] {
            assert!(line[key].is_string(), "{key} in {line}");
        }
        assert!(line["size"].is_u64() && line["value"].as_f64().is_some(), "{line}");
    }
    for (bench, path, metric) in [
        ("sockets.latency", "tcp", "one_way_p50"),
        ("sockets.latency", "unix", "one_way_p999"),
        ("sockets.latency", "ring", "one_way_p50"),
        ("sockets.latency", "ring", "cpu_per_message"),
        ("sockets.latency", "ring", "ratio"),
        ("sockets.rate", "ring", "rate"),
        ("sockets.rate", "tcp", "rate"),
    ] {
        let found = lines.iter().any(|line| line["bench"] == bench && line["path"] == path && line["metric"] == metric);
        assert!(found, "{bench} {path} {metric}");
    }
    assert!(!lines.iter().any(|line| line["bench"] == "sockets.idle"), "--only is obeyed");
}

#[test]
fn the_suite_is_listed_and_wrong_names_are_refused() {
    let list = sidestep(&["bench", "list"]);
    for bench in ["sockets:", "latency", "crowd", "redis", "postgres", "oncrpc"] {
        assert!(list.contains(bench), "{bench} in\n{list}");
    }
    let refused = Bounded::start(program().args(["bench", "sockets", "--only", "nothing"]), PATIENCE).wait();
    assert!(!refused.success() && refused.stderr.contains("bench list"), "{}", refused.stderr);
}

#[test]
fn the_demonstration_shows_both() {
    let text = sidestep(&["demo"]);
    assert!(text.contains("kernel TCP") && text.contains("Sidestep"), "{text}");
    let ratios = text.lines().filter(|line| line.trim_end().ends_with('x')).count();
    assert_eq!(ratios, 4, "{text}");
}

fn sidestep(arguments: &[&str]) -> String {
    Bounded::start(program().args(arguments), PATIENCE).wait().expect("sidestep")
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
}
