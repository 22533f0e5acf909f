//! Limit: how fast one core copies from one aligned buffer to another. `memcpy` is the system's
//! routine, `copy` the one that all copies into shared memory go through.

use std::hint::black_box;

use anyhow::Result;
use sidestep_shm::{Memory, Span};

use super::clock;
use super::path::{BANDWIDTH_SIZES, Bench, Operation, Part, Path, Solo, Wait, Work};
use super::payload::Payload;
use super::place::Placement;
use super::record::Metric;

/// The system's routine.
pub const MEMCPY: Path = Path {
    name: "memcpy",
    about: "limit of bandwidth: the system's memcpy between aligned buffers, one core",
    work: Work::Solo { make: || Ok(Box::new(SystemCopy::new())) },
    parts: &[part("memcpy")],
};

/// Our routine.
pub const COPY: Path = Path {
    name: "copy",
    about: "the copy routine of shared memory, from an aligned buffer, one core",
    work: Work::Solo { make: || Ok(Box::new(SharedCopy::new()?)) },
    parts: &[part("copy")],
};

const fn part(row: &'static str) -> Part {
    Part {
        bench: Bench::Bandwidth,
        row,
        operation: Operation::Stream,
        wait: Wait::Spin,
        placements: &[Placement::Cross],
        sizes: BANDWIDTH_SIZES,
        shift: 0,
    }
}

struct SystemCopy {
    from: Payload,
    to: Payload,
}

impl SystemCopy {
    fn new() -> SystemCopy {
        SystemCopy { from: Payload::new(LARGEST), to: Payload::new(LARGEST) }
    }
}

impl Solo for SystemCopy {
    fn measure(&mut self, size: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        bandwidth(size, count, || {
            black_box(&mut self.to)[..size].copy_from_slice(black_box(&self.from[..size]));
            Ok(())
        })
    }
}

struct SharedCopy {
    from: Payload,
    to: Span,
}

impl SharedCopy {
    fn new() -> Result<SharedCopy> {
        let to = Memory::create("sidestep-bench", LARGEST)?.span(0, LARGEST)?;
        Ok(SharedCopy { from: Payload::new(LARGEST), to })
    }
}

impl Solo for SharedCopy {
    fn measure(&mut self, size: usize, count: usize) -> Result<Vec<(Metric, f64)>> {
        bandwidth(size, count, || Ok(self.to.copy_in(0, black_box(&self.from[..size]))?))
    }
}

fn bandwidth(size: usize, count: usize, mut copy: impl FnMut() -> Result<()>) -> Result<Vec<(Metric, f64)>> {
    copy()?;
    let before = clock::now();
    for _ in 0..count {
        copy()?;
    }
    let seconds = (clock::now() - before).max(1) as f64 / 1e9;
    Ok(vec![(Metric::Bandwidth, (size * count) as f64 / seconds)])
}

const LARGEST: usize = BANDWIDTH_SIZES[BANDWIDTH_SIZES.len() - 1];
