//! A cluster in virtual time: pipelines and load balancers on more nodes than this machine has cores.
//!
//! What a connection costs comes from measurements ([`Cost`]); what nodes compute is given. The schedules are those of the
//! runtime. Whatever is computed here is a simulation, and is called so wherever it is shown.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::schedule::{Schedule, Scheduler};

/// What a block costs on a connection, by its size: measured points, and lines between them.
#[derive(Debug, Clone)]
pub struct Cost(Vec<Point>);

/// One measured size.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// Bytes of a block.
    pub bytes: usize,
    /// From one node to the other, on an idle connection.
    pub latency_ns: f64,
    /// A block after the other.
    pub each_ns: f64,
}

impl Cost {
    /// From points in the order of their sizes; at least one.
    pub fn new(points: Vec<Point>) -> Option<Cost> {
        let sorted = points.is_sorted_by(|one, two| one.bytes < two.bytes);
        (sorted && !points.is_empty()).then_some(Cost(points))
    }

    /// Nanoseconds from one node to the other.
    pub fn latency(&self, bytes: usize) -> f64 {
        self.at(bytes, |point| point.latency_ns)
    }

    /// Nanoseconds for each block of many.
    pub fn each(&self, bytes: usize) -> f64 {
        self.at(bytes, |point| point.each_ns)
    }

    fn at(&self, bytes: usize, of: impl Fn(&Point) -> f64) -> f64 {
        let after = self.0.partition_point(|point| point.bytes < bytes);
        match (self.0.get(after.wrapping_sub(1)), self.0.get(after)) {
            (Some(one), Some(two)) => {
                let share = (bytes - one.bytes) as f64 / (two.bytes - one.bytes) as f64;
                of(one) + share * (of(two) - of(one))
            }
            (None, Some(first)) => of(first),
            // Beyond the last, in proportion.
            (Some(last), None) => of(last) * bytes as f64 / last.bytes as f64,
            (None, None) => 0.0,
        }
    }
}

/// A pipeline of stages, each with copies on nodes of their own.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// Stages one behind the other.
    pub stages: usize,
    /// Copies of each.
    pub copies: usize,
    /// What joins them.
    pub cost: Cost,
    /// What a node computes.
    pub ns_per_byte: f64,
}

/// A query: when it comes, and the blocks that it needs.
#[derive(Debug, Clone, Copy)]
pub struct Query {
    /// Nanoseconds from the beginning.
    pub at_ns: f64,
    /// How many blocks.
    pub blocks: usize,
    /// Of how many bytes.
    pub block: usize,
}

impl Pipeline {
    /// How long each query takes, from its coming until its last block has gone through.
    pub fn answer(&self, queries: &[Query]) -> Vec<f64> {
        let mut free = vec![vec![0.0f64; self.copies]; self.stages];
        let mut turn = vec![0; self.stages];
        let mut done = vec![0.0f64; queries.len()];
        let mut events = BinaryHeap::new();
        let mut sequence = 0u64;
        for (query, asked) in queries.iter().enumerate() {
            for _ in 0..asked.blocks {
                events.push(Reverse((Time(asked.at_ns), sequence, 0, query)));
                sequence += 1;
            }
        }
        while let Some(Reverse((Time(now), _, stage, query))) = events.pop() {
            let block = queries[query].block;
            let copy = turn[stage] % self.copies;
            turn[stage] += 1;
            let end = free[stage][copy].max(now) + self.cost.each(block) + self.ns_per_byte * block as f64;
            free[stage][copy] = end;
            let arrived = end + self.cost.latency(block);
            if stage + 1 < self.stages {
                events.push(Reverse((Time(arrived), sequence, stage + 1, query)));
                sequence += 1;
            } else {
                done[query] = done[query].max(arrived);
            }
        }
        done.iter().zip(queries).map(|(done, query)| (done - query.at_ns).max(0.0)).collect()
    }
}

/// A producer that deals blocks to nodes of different speeds.
#[derive(Debug, Clone)]
pub struct Balancer {
    /// Nanoseconds a byte takes on each node.
    pub ns_per_byte: Vec<f64>,
    /// What joins them.
    pub cost: Cost,
    /// Bytes of a block.
    pub block: usize,
    /// Blocks that may wait at a node.
    pub window: usize,
    /// How they are dealt.
    pub schedule: Schedule,
}

impl Balancer {
    /// How long so many blocks take. `slow` says by how much a node is slower for a block.
    pub fn run(&self, blocks: usize, mut slow: impl FnMut(usize, usize) -> f64) -> f64 {
        let nodes = self.ns_per_byte.len();
        let mut scheduler = Scheduler::new(self.schedule, nodes, self.window);
        let (latency, each) = (self.cost.latency(self.block), self.cost.each(self.block));
        // For each node when it is free, and words of blocks that it has begun with, on their way to the producer.
        let (mut free, mut begun) = (vec![0.0f64; nodes], vec![0u64; nodes]);
        let mut words: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
        let mut waiting: Vec<std::collections::VecDeque<f64>> = vec![Default::default(); nodes];
        let mut now = 0.0f64;
        for block in 0..blocks {
            let node = loop {
                while let Some(Reverse((_, node))) = words.peek().copied().filter(|word| word.0.0.0 <= now) {
                    words.pop();
                    begun[node] += 1;
                    scheduler.begun(node, begun[node]);
                }
                match scheduler.pick(0) {
                    Some(node) if waiting[node].len() < self.window.max(1) + 1 => break node,
                    // Room on the node that is due, or word from any.
                    Some(node) => now = now.max(waiting[node].pop_front().unwrap_or(now)),
                    None => match words.peek() {
                        Some(Reverse((Time(at), _))) => now = *at,
                        None => break 0,
                    },
                }
                waiting.iter_mut().for_each(|begins| {
                    while begins.front().is_some_and(|begin| *begin <= now) {
                        begins.pop_front();
                    }
                });
            };
            now += each;
            scheduler.sent(node);
            let begin = free[node].max(now + latency);
            free[node] = begin + self.ns_per_byte[node] * self.block as f64 * slow(node, block);
            waiting[node].push_back(begin);
            words.push(Reverse((Time(begin + latency), node)));
        }
        free.into_iter().fold(0.0, f64::max)
    }

    /// How long it takes if every node gets its share by its speed, which nobody knows before, and the producer takes no time.
    pub fn best_split(&self, blocks: usize) -> f64 {
        let speed: f64 = self.ns_per_byte.iter().map(|ns| 1.0 / ns).sum();
        self.cost.latency(self.block) + (blocks * self.block) as f64 / speed
    }
}

/// A time that can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Time(f64);

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Time) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Time) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost() -> Cost {
        let point = |bytes, latency_ns, each_ns| Point { bytes, latency_ns, each_ns };
        Cost::new(vec![point(1000, 1000.0, 100.0), point(2000, 1500.0, 200.0)]).unwrap()
    }

    #[test]
    fn costs_lie_on_lines_between_the_points() {
        let cost = cost();
        assert_eq!((cost.latency(500), cost.latency(1500), cost.latency(4000)), (1000.0, 1250.0, 3000.0));
        assert!(Cost::new(Vec::new()).is_none());
    }

    #[test]
    fn a_block_alone_takes_its_way_and_no_more() {
        let pipeline = Pipeline { stages: 3, copies: 2, cost: cost(), ns_per_byte: 1.0 };
        let answers = pipeline.answer(&[Query { at_ns: 7.0, blocks: 1, block: 1000 }]);
        assert_eq!(answers, [3.0 * (100.0 + 1000.0 + 1000.0)]);
    }

    #[test]
    fn demand_is_close_to_the_best_split_and_turns_are_not() {
        for factor in [1.0, 2.0, 4.0, 8.0] {
            let ns_per_byte = vec![18.0 * factor, 18.0, 18.0];
            let balancer = Balancer { ns_per_byte, cost: cost(), block: 2000, window: 2, schedule: Schedule::Demand };
            let (time, best) = (balancer.run(8000, |_, _| 1.0), balancer.best_split(8000));
            assert!(time < 1.1 * best, "{factor}: {time} against {best}");
            let turns = Balancer { schedule: Schedule::RoundRobin, ..balancer };
            assert!(factor < 4.0 || turns.run(8000, |_, _| 1.0) > 1.5 * best);
        }
    }
}
