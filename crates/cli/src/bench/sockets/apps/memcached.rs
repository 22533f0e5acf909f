//! memcached, asked by an end of ours.

use anyhow::Result;

use super::super::super::place::Placement;
use super::super::super::record::Metric;
use super::super::Effort;
use super::super::job::{Span, Work};
use super::super::outcome::Outcome;
use super::super::pair::End;
use super::service::{Service, command, free_port, missing};
use super::{Figure, WAYS, measure};

const FIGURES: &[Figure] = &[Figure { what: "memcached get, half round trip", metric: Metric::OneWayP50, must: 15.0 }];

/// Measures.
pub fn run(effort: &Effort) -> Result<Vec<Outcome>> {
    if let Some(why) = missing(&["memcached"]) {
        return Ok(vec![Outcome::skipped("memcached", "round trip of a get", why)]);
    }
    measure(effort, "memcached", WAYS, FIGURES, |via, placement| {
        let port = free_port()?;
        let mut server = command(via, placement, effort.cores, "memcached")?;
        server.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0", "-t", "1"]);
        if rustix::process::geteuid().is_root() {
            // It would change its user, and processes of one user find each other.
            server.args(["-u", "root"]);
        }
        let _server = Service::start(&mut server)?.listening(port)?;
        let cores = if placement == Placement::Same { effort.cores.leader(placement) } else { Vec::new() };
        let span = Span { warm_ms: 100, run_ms: effort.run_ms * 4 };
        let report = End::start(via, Work::Memcached { span }, &format!("tcp:127.0.0.1:{port}"), cores)?.report()?;
        Ok(vec![report.half_trip[0]])
    })
}
