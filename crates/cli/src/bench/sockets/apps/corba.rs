//! CORBA, by omniORB.

use std::fs;

use anyhow::Result;

use super::super::super::record::Metric;
use super::super::Effort;
use super::super::outcome::Outcome;
use super::service::{Service, command, free_port, missing};
use super::{Figure, WAYS, kit, measure};

const FIGURES: &[Figure] =
    &[Figure { what: "omniORB null call, half round trip", metric: Metric::OneWayP50, must: 5.0 }];

/// Measures.
pub fn run(effort: &Effort) -> Result<Vec<Outcome>> {
    if let Some(why) = missing(&["omniidl", "c++"]) {
        return Ok(vec![Outcome::skipped("omniorb", "null call", why)]);
    }
    let kit = match kit::corba() {
        Ok(kit) => kit,
        Err(error) => return Ok(vec![Outcome::skipped("omniorb", "null call", format!("left out: {error:#}"))]),
    };
    measure(effort, "omniorb", WAYS, FIGURES, |via, placement| {
        let reference = kit.folder.0.join("reference");
        // That of the server before, if any.
        let _ = fs::remove_file(&reference);
        let port = free_port()?;
        let mut server = command(via, placement, effort.cores, &kit.server)?;
        server.arg(&reference).args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")]);
        let _server = Service::start(&mut server)?.until(|| reference.is_file())?;
        let mut client = command(via, placement, effort.cores, &kit.client)?;
        Ok(vec![kit::half_trip(client.arg(&reference).arg((effort.run_ms * 4).to_string()))?])
    })
}
