//! Dealing by demand against the best split that could have been made beforehand, as the runtime really does it.
//!
//! Three nodes, each a process, take a fixed time for a block: they sleep through it, so that there can be more nodes than
//! cores. The first takes a factor longer. The best split gives every node its share by its speed, one block at a time, which
//! takes someone who knows the speeds; it is dealt by key.

use std::time::{Duration, Instant};

use anyhow::Result;
use sidestep_filters::{ANY, ANY_WHOLE, Failure, Graph, Group, Kind, Kinds, Place, Schedule, Settings, Work, function};

use super::kinds::{Found, with_report};
use super::way::Way;

/// The heterogeneity factors that are measured.
pub const FACTORS: [u32; 4] = [1, 2, 4, 8];
const NODES: usize = 3;
const BLOCK: usize = 2048;
/// So many that what waits at the slowest node in the end, three blocks, is a small part of the time.
const BLOCKS: u64 = 900;
/// What a fast node takes for a block.
const TIME: Duration = Duration::from_millis(1);
/// A sleep may end so much later than it should.
const SLACK: Duration = Duration::from_micros(150);

/// The kinds that take part.
pub fn kinds(kinds: Kinds) -> Kinds {
    let deal = Kind::new("deals blocks to nodes", |_| Ok(function(deal)));
    let node = Kind::new("takes its time for each block", |settings| {
        let factor: u32 = settings.number("factor", 1)?;
        Ok(function(move |work| {
            let time = if work.copy.0 == 0 { TIME * factor } else { TIME };
            while let Some(buffer) = work.inputs.take()? {
                drop(buffer);
                spend(time);
            }
            Ok(())
        }))
    });
    kinds.with("deal", deal.keyed_output("out", ANY)).with("node", node.input("in", ANY).setting("factor", ANY_WHOLE))
}

fn spend(time: Duration) {
    let began = Instant::now();
    std::thread::sleep(time.saturating_sub(SLACK));
    while began.elapsed() < time {
        std::thread::yield_now();
    }
}

fn deal(work: &mut Work<'_>) -> Result<(), Failure> {
    let settings = &work.unit.settings;
    let (blocks, factor): (u64, u32) = (settings.number("blocks", 100)?, settings.number("factor", 1)?);
    let is_split = settings.text("split").is_some();
    let output = work.outputs.port("out")?;
    let mut keys = [0; NODES];
    if is_split {
        // Nothing waits anywhere yet, so space is there for every key, whichever node has it.
        for key in 0..1000 {
            keys[output.reserve_for(key)?.copy()] = key;
        }
    }
    let speeds: [f64; NODES] = std::array::from_fn(|node| if node == 0 { 1.0 / f64::from(factor) } else { 1.0 });
    let all: f64 = speeds.iter().sum();
    let mut due = [0.0; NODES];
    for _ in 0..blocks {
        let mut node = 0;
        for (other, speed) in speeds.iter().enumerate() {
            due[other] += speed / all;
            node = if due[other] > due[node] { other } else { node };
        }
        due[node] -= 1.0;
        let buffer = if is_split { output.reserve_for(keys[node])? } else { output.reserve()? };
        buffer.commit(BLOCK)?;
    }
    Ok(())
}

fn graph(factor: u32, schedule: Schedule) -> Graph {
    Graph::new("balance")
        .filter("deal", "deal", 1, Place::Shared("dealer".into()))
        .filter("node", "node", NODES, Place::Process)
        .set("factor", factor)
        .stream("deal.out", "node.in", BLOCK)
        .dealt(schedule)
        .queued(2)
}

impl Way {
    /// How many times as fast dealing by demand is as the best split, with the first node so much slower.
    pub fn balance(&self, factor: u32) -> Result<f64> {
        let time = |schedule: Schedule| -> Result<f64> {
            let mut group = Group::start(
                graph(factor, schedule).over(self.transport),
                &with_report(&Found::default()),
                self.launcher()?,
            )?;
            let settings = Settings::default().with("blocks", BLOCKS).with("factor", factor);
            let settings = if schedule == Schedule::Keyed { settings.with("split", "yes") } else { settings };
            let began = Instant::now();
            for outcome in group.run([settings])? {
                outcome.result?;
            }
            Ok(began.elapsed().as_secs_f64())
        };
        Ok(time(Schedule::Keyed)? / time(Schedule::Demand)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wrong_with_the_graphs() {
        for schedule in [Schedule::Keyed, Schedule::Demand] {
            let problems = sidestep_filters::check(&graph(8, schedule), &with_report(&Found::default()));
            assert!(problems.is_empty(), "{schedule:?}: {problems:?}");
        }
    }
}
