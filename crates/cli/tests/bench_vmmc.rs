//! `sidestep bench vmmc --quick --report`: every bench, its promises, and every part of the page.

use std::fs;
use std::process::Command;

use serde_json::Value;
use sidestep_testkit::process::PATIENCE;
use sidestep_testkit::sockets::Bounded;

#[test]
fn a_run_leaves_a_page_with_all_tables_and_figures_of_the_thesis() {
    let folder = std::env::temp_dir().join(format!("sidestep-vmmc-report-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    bench.args(["bench", "vmmc", "--quick", "--report"]).arg(&folder);
    let said = Bounded::start(&mut bench, PATIENCE).wait().expect("sidestep");
    let page = fs::read_to_string(folder.join("index.html")).unwrap();
    let run: Value = serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
    let records = run["records"].as_array().unwrap();
    let of = |bench: &str| records.iter().filter(|record| record["bench"] == bench).collect::<Vec<_>>();

    // Every bench has records, and lines for people.
    let benches = ["memory", "costs", "vmh", "cbh", "grid", "execution", "endpoints", "svm", "histograms", "timing"];
    for bench in benches {
        assert!(!of(&format!("vmmc.{bench}")).is_empty(), "{bench} has no records");
        assert!(said.lines().any(|line| line.starts_with(&format!("{bench}: "))), "{bench} says nothing:\n{said}");
    }

    // What is promised does not depend on the machine: all of it is simulated or counted.
    for (bench, what) in [
        ("memory", "lookup memory"),
        ("memory", "all memory"),
        ("vmh", "R^2"),
        ("vmh", "retransmissions a miss"),
        ("cbh", "R^2"),
        ("cbh", "retransmissions a miss"),
        ("execution", "programs of eight"),
    ] {
        let of_it = |record: &&Value| record["path"].as_str().is_some_and(|path| path.starts_with(what));
        let found = of(&format!("vmmc.{bench}")).into_iter().find(of_it);
        let found = found.unwrap_or_else(|| panic!("no promise of {what} in {bench}"));
        assert!(found["met"] == true, "{found}");
    }
    assert!(page.contains("<h2>Promises</h2>") && page.contains("7 of 7 are kept"), "promises");

    // The grid: 36 points of eight programs, each with its parts, which add up.
    let grid = of("vmmc.grid");
    assert_eq!(grid.len(), 36 * 8);
    for point in grid {
        let [all, cold, send, receive] = ["value", "cold", "send", "receive"].map(|key| point[key].as_f64().unwrap());
        assert!((0.0..=all).contains(&cold), "{point}");
        assert!(all <= send.max(receive) + 1e-9 && all >= send.min(receive) - 1e-9, "{point}");
    }
    for part in ["misses", "cold misses", "misses that are not cold", "misses on the way out", "misses on the way in"] {
        assert!(page.contains(&format!("vmmc.grid: {part} by the length of a line")), "a plot of {part}");
        assert!(page.contains(&format!("<th>{part}</th>")), "a column of {part}");
    }

    // Histograms in the bins of the thesis: of real cards and of the model, delay and processing, each of all misses.
    let names = ["0-10", "10-20", "20-50", "50-100", "100-200", "200-500", "&gt;500"];
    let heads: String = names.iter().map(|name| format!("<th>{name}</th>")).collect();
    assert!(page.contains("<h2>Histograms</h2>") && page.contains(&heads), "bins");
    for (bench, count) in [("vmmc.histograms", 4), ("vmmc.timing", 16)] {
        let records = of(bench);
        assert_eq!(records.len(), count, "{bench}");
        for record in records {
            let shares: Vec<f64> = record["bins"].as_array().unwrap().iter().map(|bin| bin.as_f64().unwrap()).collect();
            assert!(shares.len() == names.len() && (shares.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{record}");
            assert!(page.contains(&format!("{bench}</td><td class=\"t n\">{}</td>", record["path"].as_str().unwrap())));
        }
    }

    // Figures 4.1 and 4.4, and the chart of endpoints.
    for title in ["vmmc.vmh: mean time one way by misses", "vmmc.cbh: mean time one way by misses", "by endpoints"] {
        assert!(page.contains(title), "{title}");
    }
    assert!(!page.contains("NaN") && !page.contains("<script"), "nothing is missing, and nothing runs");
    fs::remove_dir_all(folder).unwrap();
}
