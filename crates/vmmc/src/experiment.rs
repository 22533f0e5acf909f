//! The thesis's experiments on the simulated cluster: basic costs, and a ping-pong with misses that are forced.

use crate::card::{Event, INLINE, Operation, Post, Source};
use crate::config::Config;
use crate::driver::{Export, Marks};
use crate::error::Result;
use crate::id::{Address, NodeId, PAGE, ProcessId, Rights, Work};
use crate::simulation::{Capability, Cluster, Costs, Weather};

/// Table 4.2, in nanoseconds and bytes a second.
#[derive(Debug, Clone, Copy)]
pub struct BasicCosts {
    /// A word, one way.
    pub send_word: u64,
    /// 4 KiB, one way.
    pub send_page: u64,
    /// A word, until it is there.
    pub fetch_word: u64,
    /// 4 KiB, until they are there.
    pub fetch_page: u64,
    /// Bytes a second of long sends.
    pub send_rate: f64,
    /// Bytes a second of long fetches.
    pub fetch_rate: f64,
}

/// What is made to miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Translations at the receiver.
    Vmh,
    /// Buffer descriptors at the receiver.
    Cbh,
}

/// A ping-pong with misses.
#[derive(Debug, Clone, Copy)]
pub struct PingPong {
    /// Mean time one way.
    pub one_way_ns: f64,
    /// Misses at the receiver for each message to it.
    pub miss_ratio: f64,
    /// Retransmissions for each miss, each of as many packets as were under way.
    pub returns_per_miss: f64,
    /// Packets that were sent again for each miss.
    pub resent_per_miss: f64,
}

/// A straight line through points.
#[derive(Debug, Clone, Copy)]
pub struct Fit {
    /// Where it begins.
    pub base: f64,
    /// How much it rises by one.
    pub slope: f64,
    /// The share of the variance that it explains.
    pub r_squared: f64,
}

struct Pair {
    cluster: Cluster,
    one: (NodeId, ProcessId),
    two: (NodeId, ProcessId),
    work: u64,
}

/// The basic costs of cards of these parameters.
pub fn basic_costs(config: &Config, costs: Costs) -> Result<BasicCosts> {
    let mut pair = Pair::new(config, costs, 512)?;
    let buffers = pair.export(512 * PAGE as u64)?;
    // Everything is there before the first measurement.
    for len in [4, PAGE as u64, 256 * PAGE as u64] {
        pair.send(buffers[1], 0, len)?;
        pair.fetch(buffers[1], 0, len)?;
    }
    let (send_word, send_page) = (pair.send(buffers[1], 0, 4)?, pair.send(buffers[1], 0, PAGE as u64)?);
    let (fetch_word, fetch_page) = (pair.fetch(buffers[1], 0, 4)?, pair.fetch(buffers[1], 0, PAGE as u64)?);
    let long = 256 * PAGE as u64;
    let rate = |ns: u64| long as f64 * 1e9 / ns as f64;
    let (send_rate, fetch_rate) = (rate(pair.send(buffers[1], 0, long)?), rate(pair.fetch(buffers[1], 0, long)?));
    Ok(BasicCosts { send_word, send_page, fetch_word, fetch_page, send_rate, fetch_rate })
}

/// A ping-pong of messages of `len` bytes in which a share of those to the second node miss there.
pub fn ping_pong(config: &Config, costs: Costs, force: Force, share: f64, len: u64) -> Result<PingPong> {
    const ROUNDS: u64 = 400;
    // Pages and buffers enough that each is forgotten before it comes again.
    let span = len.div_ceil(PAGE as u64).next_multiple_of(config.vmh.line as u64);
    let places = match force {
        Force::Vmh => (2 * config.vmh.entries as u64).div_ceil(span) + 2,
        Force::Cbh => 1,
    };
    let pages = places * span;
    let mut pair = Pair::new(config, costs, pages)?;
    let hot = pair.export(pages * PAGE as u64)?;
    let mut others = Vec::new();
    if force == Force::Cbh {
        for _ in 0..2 * config.cbh.entries {
            others.push(pair.export_one(pair.two, len)?);
        }
    }
    for buffer in [hot[0], hot[1]] {
        pair.transfer(buffer, 0, len)?;
    }
    // Visit every other place once: what is measured later is not the pinning of the first time, but the refill.
    for round in 0..places.saturating_sub(1) {
        pair.transfer(hot[1], (1 + round) * span * PAGE as u64, len)?;
    }
    pair.transfer(hot[1], 0, len)?;
    let before = (pair.cluster.counters(NodeId(1)), pair.sent_again());
    let (mut time, mut due, mut cold) = (0, 0.0, 0);
    for _ in 0..ROUNDS {
        due += share;
        let forced = due >= 1.0;
        let (buffer, at) = match force {
            _ if !forced => (hot[1], 0),
            Force::Vmh => (hot[1], (1 + cold % (places - 1)) * span * PAGE as u64),
            Force::Cbh => (others[cold as usize % others.len()], 0),
        };
        if forced {
            due -= 1.0;
            cold += 1;
        }
        time += pair.transfer(buffer, at, len)?;
        time += pair.transfer(hot[0], 0, len)?;
    }
    let after = pair.cluster.counters(NodeId(1));
    let misses = match force {
        Force::Vmh => after.vmh_misses.iter().sum::<u64>() - before.0.vmh_misses.iter().sum::<u64>(),
        Force::Cbh => after.cbh_misses - before.0.cbh_misses,
    };
    let again = pair.sent_again();
    let per_miss = |of: usize| (again[of] - before.1[of]) as f64 / misses.max(1) as f64;
    Ok(PingPong {
        one_way_ns: time as f64 / (2 * ROUNDS) as f64,
        miss_ratio: misses as f64 / ROUNDS as f64,
        returns_per_miss: per_miss(0),
        resent_per_miss: per_miss(1),
    })
}

/// The straight line that fits best.
#[must_use]
pub fn fit(points: &[(f64, f64)]) -> Fit {
    let count = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let slope =
        sum(&|point| (point.0 - x) * (point.1 - y)) / sum(&|point| (point.0 - x).powi(2)).max(f64::MIN_POSITIVE);
    let base = y - slope * x;
    let missed = sum(&|point| (point.1 - base - slope * point.0).powi(2));
    let all = sum(&|point| (point.1 - y).powi(2)).max(f64::MIN_POSITIVE);
    Fit { base, slope, r_squared: 1.0 - missed / all }
}

impl Pair {
    fn new(config: &Config, costs: Costs, pages: u64) -> Result<Pair> {
        let mut cluster = Cluster::new(&[*config; 2], Marks::default(), costs, Weather::default())?;
        let [one, two] = [NodeId(0), NodeId(1)].map(|node| (node, cluster.attach(node, pages)));
        Ok(Pair { cluster, one, two, work: 0 })
    }

    /// A buffer of each, with everything that the other needs to use it.
    fn export(&mut self, len: u64) -> Result<[Capability; 2]> {
        let buffers = [self.export_one(self.one, len)?, self.export_one(self.two, len)?];
        for (node, process) in [self.one, self.two] {
            self.cluster.prepare(node, process, len, &buffers)?;
        }
        Ok(buffers)
    }

    fn export_one(&mut self, (node, process): (NodeId, ProcessId), len: u64) -> Result<Capability> {
        let export = Export { address: Address(0), len, rights: Rights::ALL, notify: true };
        self.cluster.export(node, process, export)
    }

    /// Retransmissions, and their packets.
    fn sent_again(&self) -> [u64; 2] {
        let [one, two] = [NodeId(0), NodeId(1)].map(|node| self.cluster.counters(node));
        [one.went_back + two.went_back, one.resent + two.resent]
    }

    /// From the post until the owner is told, with nothing under way before and after.
    fn transfer(&mut self, to: Capability, at: u64, len: u64) -> Result<u64> {
        let from = if to.node == self.one.0 { self.two } else { self.one };
        let source = match len <= INLINE as u64 {
            true => Source::Inline(vec![1; len as usize]),
            false => Source::Memory(Address(0)),
        };
        self.timed(from, to, at, len, Operation::Send { source, notify: true })
    }

    fn send(&mut self, to: Capability, at: u64, len: u64) -> Result<u64> {
        self.transfer(to, at, len)
    }

    fn fetch(&mut self, from: Capability, at: u64, len: u64) -> Result<u64> {
        self.timed(self.one, from, at, len, Operation::Fetch { destination: Address(0) })
    }

    fn timed(
        &mut self,
        (node, process): (NodeId, ProcessId),
        to: Capability,
        at: u64,
        len: u64,
        operation: Operation,
    ) -> Result<u64> {
        self.work += 1;
        let begin = self.cluster.now();
        let work = Work(self.work);
        let is_fetch = matches!(operation, Operation::Fetch { .. });
        self.cluster.post(node, process, Post { work, node: to.node, cbh: to.cbh, key: to.key, at, len, operation });
        let mut end = None;
        loop {
            for node in [NodeId(0), NodeId(1)] {
                for (time, event) in self.cluster.take_events(node) {
                    match event {
                        Event::Completed { outcome, .. } => {
                            outcome?;
                            if is_fetch {
                                end = Some(time);
                            }
                        }
                        Event::Notified { .. } => end = Some(time),
                        _ => {}
                    }
                }
            }
            if let (Some(end), true) = (end, self.cluster.is_idle()) {
                return Ok(end - begin);
            }
            self.cluster.step();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CacheShape;

    #[test]
    fn a_line_fits_a_line() {
        let fit = fit(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]);
        assert!((fit.base - 1.0).abs() < 1e-9 && (fit.slope - 2.0).abs() < 1e-9 && fit.r_squared > 0.999_999);
    }

    /// Figures 4.1 and 4.4: the latency is linear in the miss ratio, and a miss costs about one retransmission.
    #[test]
    fn latency_is_linear_in_the_miss_ratio() {
        let vmh = CacheShape { entries: 256, line: 8, ways: 4 };
        let config = Config { vmh, cbh: CacheShape { entries: 32, line: 1, ways: 4 }, ..Config::default() };
        for force in [Force::Vmh, Force::Cbh] {
            for (len, packets) in [(4, 1.0), (4096, 1.0), (16384, 4.0)] {
                let run = |share| ping_pong(&config, Costs::default(), force, share, len).unwrap();
                let runs: Vec<PingPong> = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5].map(run).to_vec();
                let points: Vec<_> = runs.iter().map(|run| (run.miss_ratio, run.one_way_ns)).collect();
                let fit = fit(&points);
                println!("{force:?} {len}: {fit:?} {points:?}");
                assert!((runs[5].miss_ratio - 0.5).abs() < 0.02, "{force:?}: {}", runs[5].miss_ratio);
                assert!(fit.r_squared > 0.99 && fit.slope > 0.0, "{force:?} {len}: {fit:?}");
                // Of a message all packets are under way, and all are dropped behind the one that misses.
                let PingPong { returns_per_miss, resent_per_miss, .. } = runs[5];
                assert!((0.9..1.1).contains(&returns_per_miss), "{force:?} {len}: {returns_per_miss} a miss");
                let each = resent_per_miss / packets;
                assert!((0.9..1.1).contains(&each), "{force:?} {len}: {resent_per_miss} packets again for a miss");
            }
        }
    }

    /// Table 4.2 has 2.75 for a word and 1.56 for a page; a round trip is two ways here, and the long one is that of the bytes.
    #[test]
    fn a_fetch_takes_longer_than_a_send() {
        let costs = basic_costs(&Config::baseline(), Costs::default()).unwrap();
        println!("{costs:?}");
        let word = costs.fetch_word as f64 / costs.send_word as f64;
        let page = costs.fetch_page as f64 / costs.send_page as f64;
        assert!((1.5..3.2).contains(&word) && (1.0..2.0).contains(&page), "{word} {page}");
    }
}
