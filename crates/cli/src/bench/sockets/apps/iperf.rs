//! iperf3.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::super::super::record::Metric;
use super::super::Effort;
use super::super::outcome::Outcome;
use super::super::pair::output;
use super::service::{Service, command, free_port, missing};
use super::{Figure, WAYS, measure};

const FIGURES: &[Figure] = &[Figure { what: "iperf3, 64 KiB writes", metric: Metric::Bandwidth, must: 5.0 }];

/// Measures.
pub fn run(effort: &Effort) -> Result<Vec<Outcome>> {
    if let Some(why) = missing(&["iperf3"]) {
        return Ok(vec![Outcome::skipped("iperf3", "bandwidth", why)]);
    }
    measure(effort, "iperf3", WAYS, FIGURES, |via, placement| {
        let port = free_port()?.to_string();
        let mut server = command(via, placement, effort.cores, "iperf3")?;
        server.args(["-s", "-p", &port]);
        let _server = Service::start(&mut server)?;
        let limit = Instant::now() + Duration::from_secs(10);
        // It serves one test at a time, so a look at its port would be in the way.
        loop {
            let mut client = command(via, placement, effort.cores, "iperf3")?;
            client.args(["-c", "127.0.0.1", "-p", &port, "-t", "1", "-l", "64K", "-J"]);
            // Asked for JSON, it ends well also when it could not connect.
            let said = output(&mut client, Duration::from_secs(20));
            match said.and_then(|text| bytes_per_second(&text).with_context(|| format!("no figure in\n{text}"))) {
                Ok(value) => return Ok(vec![value]),
                Err(error) if Instant::now() > limit => bail!("iperf3: {error:#}"),
                Err(_) => sleep(Duration::from_millis(50)),
            }
        }
    })
}

fn bytes_per_second(text: &str) -> Option<f64> {
    let whole: Value = serde_json::from_str(text).ok()?;
    whole["end"]["sum_received"]["bits_per_second"].as_f64().map(|bits| bits / 8.0)
}
