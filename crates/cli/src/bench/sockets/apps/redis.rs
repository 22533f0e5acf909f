//! Redis, with its own benchmark.

use std::time::Duration;

use anyhow::{Context, Result};

use super::super::super::record::Metric;
use super::super::Effort;
use super::super::outcome::Outcome;
use super::super::pair::output;
use super::service::{Folder, Service, command, free_port, missing};
use super::{Figure, WAYS, measure};

const FIGURES: &[Figure] = &[
    Figure { what: "redis SET, one client", metric: Metric::Requests, must: 8.0 },
    Figure { what: "redis GET, one client", metric: Metric::Requests, must: 8.0 },
    Figure { what: "redis SET, 50 clients", metric: Metric::Requests, must: 6.0 },
    Figure { what: "redis GET, 50 clients", metric: Metric::Requests, must: 6.0 },
    Figure { what: "redis SET, 50 clients, 16 at a time", metric: Metric::Requests, must: 1.5 },
    Figure { what: "redis GET, 50 clients, 16 at a time", metric: Metric::Requests, must: 1.5 },
];

/// Measures.
pub fn run(effort: &Effort) -> Result<Vec<Outcome>> {
    if let Some(why) = missing(&["redis-server", "redis-benchmark"]) {
        return Ok(vec![Outcome::skipped("redis", "redis-benchmark", why)]);
    }
    let folder = Folder::new("redis")?;
    // Sidestep is several times faster, and its runs would be too short with the same numbers.
    let scale = if effort.quick { 1 } else { 3 };
    measure(effort, "redis", WAYS, FIGURES, |via, placement| {
        let port = free_port()?.to_string();
        let mut server = command(via, placement, effort.cores, "redis-server")?;
        server
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .current_dir(&folder.0);
        let _server = Service::start(&mut server)?.listening(port.parse()?)?;
        let mut values = Vec::new();
        for (arguments, count) in
            [(["-c", "1", "-P", "1"], 10_000), (["-c", "50", "-P", "1"], 40_000), (["-c", "50", "-P", "16"], 200_000)]
        {
            let mut client = command(via, placement, effort.cores, "redis-benchmark")?;
            client.args(["-p", &port, "-t", "set,get", "-n", &(count * scale).to_string(), "--csv"]).args(arguments);
            let text = output(&mut client, Duration::from_secs(40))?;
            for test in ["SET", "GET"] {
                values.push(requests(&text, test).with_context(|| format!("no {test} in\n{text}"))?);
            }
        }
        Ok(values)
    })
}

/// The requests per second of a test, from lines like `"GET","33333.33",...`.
fn requests(text: &str, test: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(&format!("\"{test}\"")))?;
    line.split(',').nth(1)?.trim_matches('"').parse().ok()
}
