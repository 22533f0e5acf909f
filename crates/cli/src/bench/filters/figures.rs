//! Figures 3.8 to 3.12 and 8.7 of Balaji 2006 in virtual time, from what was measured between two processes here.
//!
//! What a node computes keeps the proportion of the document, where a block of 16 KiB over TCP takes as long as computing on it
//! (18 ns a byte there): the same bytes are computed on for as long as they take over TCP here.

use sidestep_filters::Schedule;
#[cfg(test)]
use sidestep_filters::model::Point;
use sidestep_filters::model::{Balancer, Cost, Pipeline, Query};

use super::curves::demand;

/// A figure, simulated: how many times better each way is than TCP.
pub struct Figure {
    /// The bench in records.
    pub bench: &'static str,
    /// What of it.
    pub what: String,
    /// The ways and their ratios.
    pub ratios: Vec<(&'static str, f64)>,
}

pub const IMAGE: usize = 16 << 20;
const STAGES: usize = 4;
pub const COPIES: usize = 3;
/// The block of perfect pipelining over TCP in the document.
pub const TCP_BLOCK: usize = 16 << 10;
/// Blocks that are tried.
pub const BLOCKS: [usize; 13] = [
    256,
    512,
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
];

/// Every figure, for these ways; one of them is `tcp`.
pub fn figures(costs: &[(&'static str, Cost)]) -> Vec<Figure> {
    let Some((_, tcp)) = costs.iter().find(|(name, _)| *name == "tcp") else { return Vec::new() };
    let compute = tcp.latency(TCP_BLOCK) / TCP_BLOCK as f64;
    let each = |bench: &'static str, what: &str, of: &dyn Fn(&Cost) -> f64| {
        let ratios = costs.iter().map(|(name, cost)| (*name, of(cost))).collect();
        Figure { bench, what: what.to_owned(), ratios }
    };
    let mut found = Vec::new();
    for (ns_per_byte, with) in [(0.0, "without computing"), (compute, "with computing")] {
        let wanted = 0.8 * BLOCKS.iter().map(|block| rate(tcp, *block, ns_per_byte)).fold(0.0, f64::max);
        let coarse = finest(tcp, ns_per_byte, wanted);
        let base = partial(tcp, coarse, ns_per_byte, wanted);
        found.push(each("filters.update", &format!("same blocks, {with}, {} KiB", coarse >> 10), &|cost| {
            base / partial(cost, coarse, ns_per_byte, wanted)
        }));
        found.push(each("filters.update", &format!("own blocks, {with}"), &|cost| {
            base / partial(cost, finest(cost, ns_per_byte, wanted), ns_per_byte, wanted)
        }));
        // Twice the least that TCP can promise.
        let promise = 2.0 * least_latency(tcp, ns_per_byte);
        let updates = |cost: &Cost| limited(cost, ns_per_byte, promise);
        found.push(each("filters.rate", with, &|cost| updates(cost) / updates(tcp)));
    }
    // Mixes of complete updates and zooms of 64 partitions, in the mean time in which TCP answers 60 % of complete ones.
    let limit = 0.6 * query(tcp, 64) + 0.4 * query(tcp, 4);
    let share = |cost: &Cost| {
        let (full, zoom) = (query(cost, 64), query(cost, 4));
        ((limit - zoom) / (full - zoom)).clamp(0.0, 1.0)
    };
    found.push(each("filters.mix", "share of complete updates", &|cost| share(cost) / share(tcp)));
    let block = |cost: &Cost| perfect(cost, compute);
    found.push(each("filters.block", "block of perfect pipelining", &|cost| block(tcp) as f64 / block(cost) as f64));
    for factor in [2.0, 4.0, 8.0] {
        let time = |cost: &Cost| reaction(cost, compute, factor);
        let what = format!("heterogeneity {factor}");
        found.push(each("filters.reaction", &what, &|cost| time(tcp) / time(cost)));
    }
    let half = |cost: &Cost| demand(cost, compute, 0.5);
    found.push(each("filters.demand", "half of the blocks slow", &|cost| half(tcp) / half(cost)));
    for application in &APPLICATIONS {
        let what = format!("{}, {} MB", application.name, application.bytes >> 20);
        found.push(each("filters.application", &what, &|cost| {
            application.time(tcp, compute) / application.time(cost, compute)
        }));
    }
    found
}

/// An application of section 8.4: a data set goes through stages once, in blocks.
struct Application {
    name: &'static str,
    bytes: usize,
    block: usize,
    stages: usize,
}

/// With the blocks of the pipelines in `examples/`.
const APPLICATIONS: [Application; 2] = [
    Application { name: "virtual microscope", bytes: 16 << 20, block: 8 << 10, stages: 4 },
    Application { name: "isosurface", bytes: 64 << 20, block: 64 << 10, stages: 3 },
];

impl Application {
    fn time(&self, cost: &Cost, ns_per_byte: f64) -> f64 {
        let pipeline = Pipeline { stages: self.stages, copies: COPIES, cost: cost.clone(), ns_per_byte };
        pipeline.answer(&[Query { at_ns: 0.0, blocks: self.bytes / self.block, block: self.block }])[0]
    }
}

/// How long a partial update of one block takes through an idle pipeline.
fn idle_latency(cost: &Cost, block: usize, ns_per_byte: f64) -> f64 {
    STAGES as f64 * (cost.each(block) + cost.latency(block) + ns_per_byte * block as f64)
}

/// The least that can be promised of it.
pub fn least_latency(cost: &Cost, ns_per_byte: f64) -> f64 {
    BLOCKS.iter().map(|block| idle_latency(cost, *block, ns_per_byte)).fold(f64::MAX, f64::min)
}

/// Complete updates a second, with blocks that keep a latency; none, if no block does.
pub fn limited(cost: &Cost, ns_per_byte: f64, latency: f64) -> f64 {
    let kept = BLOCKS.iter().filter(|block| idle_latency(cost, **block, ns_per_byte) <= latency);
    kept.map(|block| rate(cost, *block, ns_per_byte)).fold(0.0, f64::max)
}

/// How long a balancer that takes turns needs until a node that has become slower is noticed.
pub fn reaction(cost: &Cost, compute: f64, factor: f64) -> f64 {
    let block = perfect(cost, compute);
    cost.latency(block) + factor * compute * block as f64
}

/// Complete updates a second that the pipeline can take.
pub fn rate(cost: &Cost, block: usize, ns_per_byte: f64) -> f64 {
    let blocks = IMAGE.div_ceil(block).div_ceil(COPIES) as f64;
    1e9 / (blocks * (cost.each(block) + ns_per_byte * block as f64))
}

/// The smallest block with which so many updates a second can be had; the largest, if none does.
pub fn finest(cost: &Cost, ns_per_byte: f64, wanted: f64) -> usize {
    let fits = BLOCKS.iter().find(|block| rate(cost, **block, ns_per_byte) >= wanted);
    *fits.unwrap_or(&BLOCKS[BLOCKS.len() - 1])
}

/// How long a partial update of one block takes, in the mean, while complete ones come at this rate.
pub fn partial(cost: &Cost, block: usize, ns_per_byte: f64, updates: f64) -> f64 {
    let (blocks, period) = (IMAGE.div_ceil(block), 1e9 / updates);
    let apart = period / blocks as f64;
    // A part of the blocks of an update is enough for a steady state.
    let shown = blocks.min(3000);
    let one = |at_ns: f64| Query { at_ns, blocks: 1, block };
    let mut queries: Vec<Query> = (0..shown).map(|number| one(number as f64 * apart)).collect();
    let few = 50;
    let among = |number: usize| (number as f64 + 0.37) * apart * shown as f64 / few as f64;
    queries.extend((0..few).map(|number| one(among(number))));
    let pipeline = Pipeline { stages: STAGES, copies: COPIES, cost: cost.clone(), ns_per_byte };
    let times = pipeline.answer(&queries);
    times[shown..].iter().sum::<f64>() / few as f64
}

/// How long a query of so many of 64 partitions takes.
pub fn query(cost: &Cost, blocks: usize) -> f64 {
    let pipeline = Pipeline { stages: STAGES, copies: COPIES, cost: cost.clone(), ns_per_byte: 0.0 };
    pipeline.answer(&[Query { at_ns: 0.0, blocks, block: IMAGE / 64 }])[0]
}

/// The smallest block that takes no longer on the way than it is computed on.
pub fn perfect(cost: &Cost, ns_per_byte: f64) -> usize {
    let fits = BLOCKS.iter().find(|block| cost.latency(**block) <= ns_per_byte * **block as f64 * (1.0 + 1e-9));
    *fits.unwrap_or(&BLOCKS[BLOCKS.len() - 1])
}

/// A load balancer with a node for each time of a byte.
pub fn balancer(cost: &Cost, block: usize, ns_per_byte: Vec<f64>, schedule: Schedule) -> Balancer {
    Balancer { ns_per_byte, cost: cost.clone(), block, window: 2, schedule }
}

/// The document's own figures: 9.5 us and 763 Mbit/s against 47 us and 510.
#[cfg(test)]
pub fn of_the_document() -> [(&'static str, Cost); 2] {
    let cost = |latency: f64, ns_per_byte: f64| {
        let point = |bytes: usize| Point {
            bytes,
            latency_ns: latency + ns_per_byte * bytes as f64,
            each_ns: 0.2 * latency + ns_per_byte * bytes as f64,
        };
        Cost::new(BLOCKS.map(point).to_vec()).expect("sizes")
    };
    [("via", cost(9_500.0, 10.5)), ("tcp", cost(47_000.0, 15.7))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_the_document_follow_from_its_latencies() {
        let found = figures(&of_the_document());
        let of = |bench: &str, what: &str| {
            let figure = found.iter().find(|figure| figure.bench == bench && figure.what.contains(what)).unwrap();
            figure.ratios[0].1
        };
        assert!(of("filters.block", "") >= 4.0);
        assert!(of("filters.update", "own blocks, without") > of("filters.update", "same blocks, without"));
        assert!(of("filters.rate", "without") > 1.0);
        assert!((0.8..2.0).contains(&of("filters.demand", "")), "{}", of("filters.demand", ""));
        // Most of the time of an application is spent computing.
        for name in ["microscope", "isosurface"] {
            let ratio = of("filters.application", name);
            assert!((1.0..2.0).contains(&ratio), "{name}: {ratio}");
        }
    }
}
