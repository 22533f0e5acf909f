//! How many endpoints a card of so much memory serves: each endpoint is a buffer of one page, and every message goes to another of
//! them. The caches are those of the card; the time is that of the simulated ping-pong, which is linear in the miss ratio.

use sidestep_sys::seeded::Seeded;

use crate::cbh::{CbhCache, CbhLookup, Descriptor};
use crate::config::{CacheShape, Config};
use crate::error::Result;
use crate::experiment::{self, Fit, Force};
use crate::id::{Address, BufferId, Cbh, Frame, Key, Page, ProcessId, Rights};
use crate::simulation::Costs;
use crate::vmh::{Engine, Entry, Lookup, VmhCache};

/// What a message of so many bytes takes, by the ratios of misses.
#[derive(Debug, Clone, Copy)]
pub struct MessageCost {
    vmh: Fit,
    cbh: Fit,
}

/// A point of the chart.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// The card.
    pub config: Config,
    /// Lines of translations missed for each message.
    pub vmh_misses: f64,
    /// Descriptors missed for each message.
    pub cbh_misses: f64,
    /// Messages a second, one after the other.
    pub rate: f64,
}

impl MessageCost {
    /// Of the simulated card, for messages of a size.
    pub fn new(size: u64) -> Result<MessageCost> {
        // Small caches, so that misses are forced soon; what a miss costs does not depend on them.
        let vmh = CacheShape { entries: 256, line: 8, ways: 4 };
        let config = Config { vmh, cbh: CacheShape { entries: 32, line: 1, ways: 4 }, ..Config::default() };
        let fit = |force| -> Result<Fit> {
            let run = |share| experiment::ping_pong(&config, Costs::default(), force, share, size);
            let runs = [run(0.0)?, run(0.25)?, run(0.5)?];
            // A ratio is of the messages one way, and the time is the mean of both ways.
            Ok(experiment::fit(&runs.map(|run| (run.miss_ratio, run.one_way_ns))))
        };
        Ok(MessageCost { vmh: fit(Force::Vmh)?, cbh: fit(Force::Cbh)? })
    }
}

/// Messages to so many endpoints, chosen at random, with a card of so many bytes.
pub fn serve(memory: usize, endpoints: u32, cost: &MessageCost) -> Result<Point> {
    let (vmh, cbh) =
        (CacheShape { entries: 1 << 17, line: 1, ways: 4 }, CacheShape { entries: 1 << 16, line: 1, ways: 4 });
    let config = Config { vmh, cbh, ..Config::default() }.within(memory)?;
    let (mut pages, mut buffers) = (VmhCache::new(config.vmh), CbhCache::new(config.cbh));
    let (mut random, mut missed) = (Seeded::new(7), [0_u64; 2]);
    let descriptor = Descriptor { address: Address(0), len: 4096, key: Key(0), rights: Rights::ALL, notify: false };
    for message in 0..2 * MESSAGES {
        let endpoint = random.below(endpoints.into()) as u32;
        let cbh = Cbh { process: OWNER, buffer: BufferId(endpoint) };
        // The first half fills the caches.
        let counts = u64::from(message >= MESSAGES);
        while let CbhLookup::Miss(_) | CbhLookup::Pending = match buffers.lookup(cbh) {
            CbhLookup::Miss(slot) => {
                missed[0] += counts;
                buffers.fill(slot, cbh, Some(descriptor));
                CbhLookup::Pending
            }
            found => found,
        } {}
        loop {
            match pages.lock(Engine::Receive, OWNER, Page(endpoint.into())) {
                Lookup::Miss { slot, tag } => {
                    missed[1] += counts;
                    pages.fill(slot, tag, vec![Entry::Frame(Frame(0)); config.vmh.line]);
                }
                Lookup::Pending => {}
                Lookup::Hit { .. } | Lookup::Invalid(_) => break,
            }
        }
        pages.unlock(Engine::Receive);
    }
    let [cbh_misses, vmh_misses] = missed.map(|count| count as f64 / MESSAGES as f64);
    // The slopes are for the mean of two ways, of which one missed.
    let time_ns = cost.vmh.base + 2.0 * (cost.vmh.slope * vmh_misses + cost.cbh.slope * cbh_misses);
    Ok(Point { config, vmh_misses, cbh_misses, rate: 1e9 / time_ns })
}

const OWNER: ProcessId = ProcessId(1);
/// Messages that are counted, and so many before them that are not.
const MESSAGES: u64 = 200_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// A larger card serves more endpoints, and one that has them all in its caches misses nothing.
    #[test]
    fn memory_buys_endpoints() {
        let cost = MessageCost::new(4096).unwrap();
        for memory in [330, 400, 512, 1024, 4096] {
            let points = [1, 100, 1000, 10_000, 100_000].map(|count| serve(memory * 1024, count, &cost).unwrap());
            println!("{memory} KiB: {:?}", points.map(|point| point.rate.round()));
            assert!(points[0].vmh_misses + points[0].cbh_misses < 1e-4);
            assert!(points.windows(2).all(|two| two[1].rate <= two[0].rate * 1.01), "{memory}");
        }
        let at = |memory: usize| serve(memory * 1024, 10_000, &cost).unwrap().rate;
        assert!(at(4096) > 2.0 * at(400));
    }
}
