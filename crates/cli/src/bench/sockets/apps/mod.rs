//! Applications, as they are installed. One that is not there is left out, with a word.

mod corba;
mod database;
mod iperf;
pub mod kit;
mod memcached;
mod proxy;
mod redis;
pub mod rpc;
pub mod service;
mod web;

use anyhow::Result;

use super::super::place::Placement;
use super::super::record::Metric;
use super::outcome::{Claim, Outcome, Row};
use super::pair::Via;
use super::{Bench, Effort};

/// The benches of this folder.
pub const BENCHES: &[Bench] = &[
    Bench {
        name: "redis",
        about: "redis-benchmark: GET and SET, 1 and 50 clients, pipelined",
        quick: true,
        run: redis::run,
    },
    Bench { name: "nginx", about: "wrk against nginx: 1 KiB and 1 MiB files", quick: false, run: web::nginx },
    Bench {
        name: "proxy",
        about: "wrk against nginx as a proxy before nginx, with processor time",
        quick: false,
        run: proxy::nginx,
    },
    Bench {
        name: "php",
        about: "wrk against nginx before php-fpm, with processor time",
        quick: false,
        run: proxy::php,
    },
    Bench { name: "node", about: "wrk against an HTTP server in Node", quick: false, run: web::node },
    Bench { name: "memcached", about: "round trip of a get", quick: false, run: memcached::run },
    Bench {
        name: "postgres",
        about: "pgbench, select only, prepared, 1 and 4 clients",
        quick: false,
        run: database::run,
    },
    Bench { name: "omniorb", about: "round trip of a null call in CORBA", quick: false, run: corba::run },
    Bench { name: "oncrpc", about: "round trip of a null call in ONC RPC", quick: false, run: rpc::run },
    Bench { name: "iperf3", about: "bandwidth by iperf3, 64 KiB writes", quick: false, run: iperf::run },
];

/// One figure that an application gives.
pub struct Figure {
    /// What it is.
    pub what: &'static str,
    /// What its value is.
    pub metric: Metric,
    /// How many times better than TCP it must be.
    pub must: f64,
}

/// TCP as it may be at its best, and Sidestep.
pub const WAYS: &[(Via, Placement)] =
    &[(Via::Tcp, Placement::Free), (Via::Tcp, Placement::Same), (Via::Ring, Placement::Free)];

/// Measures an application each way once per round; the values are in the order of the figures.
pub fn measure(
    effort: &Effort,
    bench: &'static str,
    ways: &[(Via, Placement)],
    figures: &[Figure],
    once: impl FnMut(Via, Placement) -> Result<Vec<f64>>,
) -> Result<Vec<Outcome>> {
    measure_against(effort, bench, ways, figures, Via::Ring, once)
}

/// The same, with promises about another way than the ring.
pub fn measure_against(
    effort: &Effort,
    bench: &'static str,
    ways: &[(Via, Placement)],
    figures: &[Figure],
    ours: Via,
    mut once: impl FnMut(Via, Placement) -> Result<Vec<f64>>,
) -> Result<Vec<Outcome>> {
    let mut values: Vec<Vec<Vec<f64>>> = vec![vec![Vec::new(); figures.len()]; ways.len()];
    for _ in 0..effort.rounds.div_ceil(3) {
        for (number, (via, placement)) in ways.iter().enumerate() {
            for (figure, value) in once(*via, *placement)?.into_iter().enumerate() {
                values[number][figure].push(value);
            }
        }
    }
    let outcomes = figures.iter().enumerate().map(|(number, figure)| {
        let row = |(way, of): (&(Via, Placement), &Vec<Vec<f64>>)| Row {
            figures: vec![(figure.metric, of[number].clone())],
            ..Row::new(way.0, way.1)
        };
        let mut claims = vec![Claim {
            against: Via::Tcp,
            metric: figure.metric,
            must: figure.must,
            placement: Some(Placement::Free),
        }];
        if ways.iter().any(|(via, _)| *via == Via::Unix) {
            claims.push(Claim {
                against: Via::Unix,
                metric: figure.metric,
                must: 1.0,
                placement: Some(Placement::Free),
            });
        }
        Outcome {
            bench,
            what: figure.what.into(),
            size: 0,
            rows: ways.iter().zip(&values).map(row).collect(),
            parameters: Vec::new(),
            ours,
            claims,
            note: None,
        }
    });
    Ok(outcomes.collect())
}
