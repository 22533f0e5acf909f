//! Which cores the two processes run on.

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where the two processes of a measurement run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// Each pinned to its own core.
    Cross,
    /// Both pinned to one core.
    Same,
    /// Wherever the kernel puts them.
    Free,
}

impl Placement {
    /// Every placement.
    pub const ALL: [Placement; 3] = [Placement::Cross, Placement::Same, Placement::Free];

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Cross => "cross",
            Placement::Same => "same",
            Placement::Free => "free",
        }
    }
}

/// The two cores that measurements are pinned to.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    first: usize,
    second: usize,
}

impl Cores {
    /// The cores asked for, or the first two that this process may use.
    pub fn choose(asked: &[usize]) -> Result<Cores> {
        let usable = usable()?;
        let (first, second) = match *asked {
            [] => match *usable {
                [first, second, ..] => (first, second),
                _ => bail!("a measurement needs two cores, and this process may use one"),
            },
            [first, second] => (first, second),
            _ => bail!("--cores takes two cores, as in --cores 0,1"),
        };
        ensure!(first != second, "--cores takes two different cores");
        for core in [first, second] {
            ensure!(usable.contains(&core), "core {core} is not one that this process may use");
        }
        Ok(Cores { first, second })
    }

    /// The cores of the measuring process.
    pub fn leader(&self, placement: Placement) -> Vec<usize> {
        match placement {
            Placement::Cross | Placement::Same => vec![self.first],
            Placement::Free => vec![self.first, self.second],
        }
    }

    /// The cores of the worker.
    pub fn worker(&self, placement: Placement) -> Vec<usize> {
        match placement {
            Placement::Cross => vec![self.second],
            Placement::Same => vec![self.first],
            Placement::Free => vec![self.first, self.second],
        }
    }
}

/// Lets this thread run on these cores only.
pub fn pin(cores: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        ensure!(*core < CpuSet::MAX_CPU, "there is no core {core}");
        set.set(*core);
    }
    sched_setaffinity(None, &set).with_context(|| format!("cannot run on the cores {cores:?}"))
}

/// The cores of this thread, which it gets back in the end: a suite pins it, and others come after.
pub struct Kept(CpuSet);

impl Kept {
    /// Those that it has now.
    pub fn now() -> Result<Kept> {
        Ok(Kept(sched_getaffinity(None).context("cannot ask for the usable cores")?))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // It had them before.
        let _ = sched_setaffinity(None, &self.0);
    }
}

fn usable() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("cannot ask for the usable cores")?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_its_cores_back() {
        let before = usable().unwrap();
        let kept = Kept::now().unwrap();
        pin(&before[..1]).unwrap();
        assert_eq!(usable().unwrap().len(), 1);
        drop(kept);
        assert_eq!(usable().unwrap(), before);
    }
}
