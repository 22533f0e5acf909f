//! Whether a run has the lines that the registry names.

use std::collections::HashMap;

use super::super::record::Record;
use super::super::sockets::pair::Via;
use super::super::{SUITES, balance, cache, extended, filters, orb, rpc, sockets, sovia, vmmc};
use super::registry::{ANY, ENTRIES};
use super::{Lines, Metric, Of, Source, WHOLE};

/// The records of what is simulated, by bench.
#[derive(Default)]
struct Simulated(HashMap<&'static str, Vec<Record>>);

impl Simulated {
    fn of(&mut self, bench: &'static str) -> &[Record] {
        let (suite, name) = bench.split_once('.').expect("SUITE.BENCH");
        let key = if suite == "vmmc" { bench } else { suite };
        self.0.entry(key).or_insert_with(|| match suite {
            "vmmc" => vmmc::records(name),
            "filters" => filters::records(),
            _ => balance::records(),
        })
    }
}

impl Lines {
    fn is_recorded(&self, path: &str, simulated: &mut Simulated) -> bool {
        let (suite, bench) = self.bench.split_once('.').expect("SUITE.BENCH");
        match suite {
            "vmmc" | "filters" | "balance" => {
                simulated.of(self.bench).iter().any(|record| record.path == path && self.fits(record))
            }
            "orb" => orb::has(bench, path, self.size, self.metric),
            "rpc" => rpc::has(bench, path, self.size, self.metric),
            "extended" => extended::has(bench, path, self.size, self.metric),
            "cache" => cache::has(bench, path, self.size, self.metric),
            // What an application gives is known when it has run: the long form of `tests/seeds.rs` runs them.
            "sockets" => {
                let ways = [Via::Tcp, Via::Unix, Via::Ring, Via::Link, Via::UnixUnder];
                let mut benches = sockets::benches().chain(sovia::apps::BENCHES);
                benches.any(|own| own.name == bench) && ways.iter().any(|via| via.name() == path)
            }
            _ => {
                let paths = SUITES.iter().filter(|own| own.name == suite).flat_map(|own| own.paths);
                paths.flat_map(|path| path.parts).any(|part| {
                    part.bench.name() == bench
                        && part.row == path
                        && (self.size == ANY || part.sizes.contains(&self.size))
                        && part.bench.metrics().contains(&self.metric)
                })
            }
        }
    }
}

#[test]
fn every_row_names_lines_that_a_run_has() {
    let mut simulated = Simulated::default();
    for entry in ENTRIES {
        let Source::Lines(lines, _) = &entry.source else { continue };
        for path in lines.paths.into_iter().filter(|path| *path != WHOLE) {
            let Lines { bench, size, .. } = lines;
            assert!(lines.is_recorded(path, &mut simulated), "{}: {bench} has no line {path} of {size}", entry.what);
        }
    }
    for (bench, path) in [
        ("fabric.latency", "wire"),
        ("fabric.mood", "tcp"),
        ("orb.null", "wire"),
        ("sockets.mood", "tcp"),
        ("vmmc.vmh", "7 %"),
    ] {
        let lines = Lines { bench, metric: Metric::OneWayP50, size: 64, paths: [path, path], of: Of::All };
        assert!(!lines.is_recorded(path, &mut simulated), "{bench} {path}");
    }
}
