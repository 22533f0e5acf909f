//! What an event costs, by the number of sources attached to the queue: from the store of a watched word to the event.
//!
//! One process plays both sides, so the figure is work and not the distance of two cores. Each source is a repeating
//! tripwire on a cache line of its own; they fire one after the other.

use anyhow::{Context, Result};
use sidestep_fabric::{Access, Aperture, Endpoint, EventQueue, Mode, Region, Rights, Tripwire};

use super::clock;
use super::duo::Duo;
use super::path::{Bench, Operation, Part, Path, Solo, Wait, Work};
use super::place::Placement;
use super::record::Metric;

/// The path.
pub const PATH: Path = Path {
    name: "events",
    about: "a store to a watched word, and its event; the size is the number of sources",
    work: Work::Solo { make: || Ok(Box::new(Events { made: None })) },
    parts: &[Part {
        bench: Bench::Events,
        row: "events",
        operation: Operation::Stream,
        wait: Wait::Spin,
        placements: &[Placement::Cross],
        sizes: &[1, 10, 100, 1_000, 10_000],
        shift: 0,
    }],
};

struct Events {
    made: Option<Sources>,
}

struct Sources {
    queue: EventQueue,
    aperture: Aperture,
    next: usize,
    _tripwires: Vec<Tripwire>,
    _region: Region,
    _ends: (Endpoint, Endpoint),
    _duo: Duo,
}

impl Solo for Events {
    fn measure(&mut self, size: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        if self.made.is_none() {
            self.made = Some(Sources::new(size)?);
        }
        let sources = self.made.as_mut().context("made above")?;
        let before = clock::now();
        for _ in 0..count {
            sources.fire_and_take(size)?;
        }
        let time = clock::now() - before;
        Ok(vec![(Metric::Cost, time as f64 / count as f64)])
    }
}

impl Sources {
    fn new(count: usize) -> Result<Sources> {
        let duo = Duo::new()?;
        let ends = duo.connect()?;
        let region = Region::new(&duo.server, count * LINE)?;
        let aperture = Aperture::begin(&ends.0, &region.cookie(Rights::ALL))?;
        duo.until(|| Ok(aperture.is_open()?.then_some(())))?;
        let queue = EventQueue::new(&duo.server);
        let mut tripwires = Vec::with_capacity(count);
        for index in 0..count {
            let tripwire = Tripwire::new(&region, index * LINE, Access::Write, Mode::Repeating)?;
            queue.attach_tripwire(&tripwire, index as u64);
            tripwires.push(tripwire);
        }
        Ok(Sources { queue, aperture, next: 0, _tripwires: tripwires, _region: region, _ends: ends, _duo: duo })
    }

    fn fire_and_take(&mut self, count: usize) -> Result<()> {
        let index = self.next;
        self.next = if index + 1 == count { 0 } else { index + 1 };
        self.aperture.store32(index * LINE, 1)?;
        let event = self.queue.poll().context("a watched word was stored and no event came")?;
        anyhow::ensure!(event.token == index as u64, "the event of another source came");
        Ok(())
    }
}

const LINE: usize = 64;
