//! The suite `balance`: bursts of requests for sites whose servers move, beside fixed servers and more than enough of them (figures 10.11 and
//! 10.12 of Balaji 2006). Requests and time are simulated; decisions and conversions are those of `sidestep balance`.

use anyhow::Result;
use serde_json::{Map, json};
use sidestep_balance::simulation::{self, Parameters, Scheme};

use super::options;
use super::record::{Metric, Record};
use super::sheet::{self, Benches, Table};
use super::sink::Sink;

/// What `bench list` says of the suite.
pub const ABOUT: &str =
    "servers that move between sites, against fixed ones and more than enough of them, under virtual time";

/// The benches, and what each is.
pub const BENCHES: Benches =
    &[("bursts", "three sites of eight nodes, a burst for one after the other, simulated (figures 10.11 and 10.12)")];

/// Requests a second of a node: a third of what the thesis' site of three had.
const RATE: u64 = 26_000 / 3;
/// Nodes that can serve one site: all of the eight but one for each of the others.
const MOST_NODES: f64 = 6.0;
/// S and T.
const SENSITIVITY_NS: u64 = 1_000_000;
const HISTORY_NS: u64 = 10_000_000;

/// Runs the suite.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    sheet::run("balance", BENCHES, (options, sink), |_| 1.0, |_| Ok(bursts()))
}

fn bursts() -> Table {
    let mut table = Table::new(&["burst (simulated)", "rigid /s", "over /s", "moving /s", "nodes", "moved"]);
    for burst in [512, 1024, 2048, 4096, 8192, 16384] {
        let parameters = Parameters { burst, rate: RATE, sensitivity_ns: SENSITIVITY_NS, history_ns: HISTORY_NS };
        let [rigid, over, moving] =
            [Scheme::Rigid, Scheme::OverProvisioned, Scheme::Moving].map(|scheme| simulation::run(scheme, &parameters));
        let rates = [rigid, over, moving].map(|result| format!("{:.0}", result.throughput));
        let [first, second, third] = rates;
        let (nodes, moved) = (format!("{:.1}", moving.nodes), moving.conversions.to_string());
        table.row(&[burst.to_string(), first, second, third, nodes, moved]);
        for (path, result) in [("rigid", rigid), ("over-provisioned", over), ("moving", moving)] {
            for (metric, value) in
                [(Metric::Requests, result.throughput), (Metric::Utilisation, result.nodes / MOST_NODES)]
            {
                let extra = Map::from_iter([("simulated".to_string(), json!(true))]);
                let (bench, path, unit) = ("balance.bursts".to_string(), path.to_string(), metric.unit());
                table.records.push(Record { bench, path, size: burst as usize, metric, value, unit, extra });
            }
        }
    }
    table
}

/// The records of a run, which are the same each time.
#[cfg(test)]
pub fn records() -> Vec<Record> {
    bursts().records
}

/// Prints the benches of the suite.
pub fn list() {
    sheet::list("balance", ABOUT, BENCHES);
}
