//! ONC RPC, by libtirpc.

use anyhow::Result;

use super::super::super::place::Placement;
use super::super::super::record::Metric;
use super::super::Effort;
use super::super::outcome::Outcome;
use super::super::pair::Via;
use super::service::{Service, command, free_port, missing};
use super::{Figure, WAYS, kit, measure};

const FIGURES: &[Figure] =
    &[Figure { what: "ONC RPC null call, half round trip", metric: Metric::OneWayP50, must: 5.0 }];

/// Measures.
pub fn run(effort: &Effort) -> Result<Vec<Outcome>> {
    if let Some(why) = missing(&["rpcgen", "cc"]) {
        return Ok(vec![Outcome::skipped("oncrpc", "null call", why)]);
    }
    let kit = match kit::rpc() {
        Ok(kit) => kit,
        Err(error) => return Ok(vec![Outcome::skipped("oncrpc", "null call", format!("left out: {error:#}"))]),
    };
    measure(effort, "oncrpc", WAYS, FIGURES, |via, placement| null_call(effort, &kit, via, placement))
}

/// Half a round trip of an empty call, one way.
pub fn null_call(effort: &Effort, kit: &kit::Kit, via: Via, placement: Placement) -> Result<Vec<f64>> {
    let port = free_port()?;
    let mut server = command(via, placement, effort.cores, &kit.server)?;
    let _server = Service::start(server.arg(port.to_string()))?.listening(port)?;
    let mut client = command(via, placement, effort.cores, &kit.client)?;
    Ok(vec![kit::half_trip(client.args([port.to_string(), (effort.run_ms * 4).to_string()]))?])
}
