use serde_json::json;

use super::super::record::{Metric, Record};
use super::*;

fn record(bench: &str, path: &str, size: usize, metric: Metric, value: f64, extra: serde_json::Value) -> Record {
    let extra = extra.as_object().cloned().unwrap_or_default();
    Record { bench: bench.into(), path: path.into(), size, metric, value, unit: metric.unit(), extra }
}

fn run() -> Saved {
    let mut records = Vec::new();
    for (path, factor) in [("ring", 1.0), ("tcp", 40.0)] {
        for size in [1, 64, 4096] {
            let times = json!([[0.0, 80.0 * factor], [0.5, 100.0 * factor], [0.99, 300.0 * factor]]);
            let extra =
                json!({"what": format!("{size} bytes"), "placement": "free", "spread": 0.01, "distribution": times});
            records.push(record("sockets.pingpong", path, size, Metric::OneWayP50, 100.0 * factor, extra));
        }
        for connections in [1, 4, 16] {
            let extra = json!({"what": "many", "connections": connections});
            records.push(record("sockets.requests", path, 64, Metric::Requests, 1e6 / factor, extra));
        }
    }
    let extra = json!({"what": "<64> bytes", "against": "tcp", "of": "one_way_p50", "noise": 0.02, "differs": true});
    records.push(record("sockets.pingpong", "ring", 64, Metric::Ratio, 40.0, extra));
    let extra = json!({"what": "heterogeneity 8", "at_least": 0.9, "met": false});
    records.push(record("filters.split", "channel", 0, Metric::Ratio, 0.87, extra));
    for (path, factor) in [("via", 1.0), ("tcp", 5.0)] {
        for at in [100.0, 200.0] {
            let extra = json!({"what": format!("{at} updates a second"), "at": at, "simulated": true});
            records.push(record("filters.update", path, 0, Metric::Cost, at * 1e3 * factor, extra));
        }
    }
    Saved { commands: vec!["sidestep bench all --quick".into()], seconds: 100.0, records, ..Saved::default() }
}

#[test]
fn a_page_needs_nothing_from_outside() {
    let page = html(&run());
    for expected in [
        "prefers-color-scheme: dark",
        "sidestep bench all --quick",
        "distribution of the latency",
        "by size",
        "by connections",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    for refused in ["<script", "http://", "https://", "@import", "url(", "<link", "<img"] {
        assert!(!page.contains(refused), "{refused}");
    }
    assert!(page.contains("&lt;64&gt; bytes") && !page.contains("<64>"));
    assert_eq!(page.matches("<figure>").count(), 4, "one of each kind");
    for expected in
        ["channel, heterogeneity 8", ">0.870<", "at least 0.9", "0 of 1 are kept", "figure 3.8", "simulated"]
    {
        assert!(page.contains(expected), "{expected}");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
}

#[test]
fn a_saved_run_is_read_as_it_was() {
    let folder = std::env::temp_dir().join(format!("sidestep-page-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    write(&folder, &run()).expect("it is written");
    let read = Saved::read(&folder).expect("it is read");
    let text = |run: &Saved| run.records.iter().map(Record::json).collect::<Vec<String>>();
    assert_eq!(text(&read), text(&run()));
    let lines = folder.join("lines.json");
    std::fs::write(&lines, text(&run()).join("\n")).expect("it is written");
    assert_eq!(text(&Saved::read(&lines).expect("lines are read, too")), text(&run()));
    std::fs::write(&lines, "nothing").expect("it is written");
    assert!(Saved::read(&lines).is_err());
    std::fs::remove_dir_all(folder).expect("it is removed");
}
