//! Either kernel, with what shows that its result is right: a digest of each process's part, equal to that of a run of one process.

use super::fft::Fft;
use super::lu::Lu;
use super::{Alone, Array, Join, SharedMemory};
use crate::error::{Error, Result};
use crate::process::Standing;
use crate::workload::{Step, Workload};

/// A program that shares memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Six steps.
    Fft(Fft),
    /// Blocks.
    Lu(Lu),
}

/// What a process of a kernel reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Of its part of the result.
    pub digest: u64,
    /// From the first barrier to the last.
    pub time_ns: u64,
    /// What it fetched and sent.
    pub steps: Vec<Step>,
    /// Its card, at the end.
    pub standing: Standing,
}

impl Kernel {
    /// The kernel of a name: `fft` with so many rows, `lu` with so many blocks on an edge.
    pub fn named(name: &str, size: usize, count: usize) -> Result<Kernel> {
        match name {
            "fft" => Ok(Kernel::Fft(Fft { side: size, count })),
            "lu" => Ok(Kernel::Lu(Lu { blocks: size, count })),
            _ => Err(Error::Parameter { what: "a kernel", must: "fft or lu", value: name.into() }),
        }
    }

    /// The home of each of its pages.
    pub fn homes(&self) -> Result<Vec<u8>> {
        match self {
            Kernel::Fft(fft) => fft.homes(),
            Kernel::Lu(lu) => lu.homes(),
        }
    }

    /// Runs it as one of its processes; `join` says the name, the rank and the card.
    pub fn run(&self, join: Join<'_>) -> Result<Report> {
        let rank = join.rank;
        let mut memory = SharedMemory::join(Join { homes: self.homes()?, ..join })?;
        let begin = sidestep_sys::clock::now();
        self.compute(&mut memory)?;
        let time_ns = sidestep_sys::clock::now() - begin;
        let digest = self.digest(&memory, rank);
        let standing = memory.standing()?;
        Ok(Report { digest, time_ns, steps: memory.leave()?, standing })
    }

    /// Runs it in this process alone; the digests that each of its processes must have, and how long it took.
    pub fn run_alone(&self) -> Result<(Vec<u64>, u64)> {
        let (alone, words, count) = match *self {
            Kernel::Fft(fft) => (Kernel::Fft(Fft { count: 1, ..fft }), fft.words(), fft.count),
            Kernel::Lu(lu) => (Kernel::Lu(Lu { count: 1, ..lu }), lu.words(), lu.count),
        };
        let mut array = Alone::new(words);
        let begin = sidestep_sys::clock::now();
        alone.compute(&mut array)?;
        let time_ns = sidestep_sys::clock::now() - begin;
        let digest = |rank| match (self, &alone) {
            (Kernel::Lu(parts), Kernel::Lu(own)) => {
                fold(parts.elements(rank).map(|(row, column)| own.result(&array, row, column)))
            }
            _ => self.digest(&array, rank),
        };
        Ok(((0..count).map(digest).collect(), time_ns))
    }

    /// What its processes did, as a workload of the simulations.
    pub fn workload(&self, steps: Vec<Vec<Step>>) -> Result<Workload> {
        let name = match self {
            Kernel::Fft(_) => "fft, traced",
            Kernel::Lu(_) => "lu, traced",
        };
        let homes = self.homes()?;
        Ok(Workload { name, pages: homes.len() as u32, homes, steps })
    }

    /// The generator of the same size and as many processes.
    #[must_use]
    pub fn generated(&self) -> Workload {
        match *self {
            Kernel::Fft(fft) => Workload::fft(fft.side as u32, fft.count),
            Kernel::Lu(lu) => Workload::lu(lu.blocks as u32, lu.count),
        }
    }

    fn compute(&self, array: &mut impl Array) -> Result<()> {
        match self {
            Kernel::Fft(fft) => fft.run(array),
            Kernel::Lu(lu) => lu.run(array),
        }
    }

    fn digest(&self, array: &impl Array, rank: usize) -> u64 {
        match self {
            Kernel::Fft(fft) => fold(fft.elements(rank).flat_map(|at| {
                let (re, im) = fft.result(array, at);
                [re, im]
            })),
            Kernel::Lu(lu) => fold(lu.elements(rank).map(|(row, column)| lu.result(array, row, column))),
        }
    }
}

/// FNV-1a over the bits of numbers.
fn fold(numbers: impl Iterator<Item = f64>) -> u64 {
    numbers.fold(0xCBF2_9CE4_8422_2325, |hash, number| (hash ^ number.to_bits()).wrapping_mul(0x0100_0000_01B3))
}
