//! `sidestep bench seeds`: what it measures, every row of the registry has a line for.

use std::process::Command;

use serde_json::Value;
use sidestep_testkit::process::{PATIENCE, full};
use sidestep_testkit::sockets::Bounded;

/// What is left out where programs are not installed, which the benches say.
const OF_OTHERS: [&str; 7] =
    ["cache.small", "orb.null", "rpc.null", "rpc.sizes", "sockets.ftp", "sockets.nginx", "extended.threaded"];

#[test]
fn every_row_that_is_measured_has_a_figure() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.args(["bench", "seeds", "--quick", "--json"]);
    // The other rows take minutes.
    if !full() {
        command.args(["--only", "Table 1.1,Table 4.2,Table 9.1"]).args(["--rounds", "1"]);
    }
    let said = Bounded::start(&mut command, PATIENCE).wait().expect("seeds");
    let rows: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("an object a line, and no tables")).collect();
    let (mut measured, mut missing) = (0, Vec::new());
    for row in &rows {
        let word = |key: &str| row[key].as_str().unwrap_or_default();
        measured += usize::from(row["ours"].is_f64());
        if word("verdict") == "not measured" && !OF_OTHERS.contains(&word("why")) {
            missing.push(row);
        }
    }
    assert!(missing.is_empty() && measured >= 8, "{missing:#?}");
    let model = rows.iter().find(|row| row["place"] == "Table 9.1").expect("a row");
    assert!(model["verdict"] == "met" && model["noise"].as_f64().is_some_and(|noise| noise < 0.05), "{model}");
}
