//! Page accesses shaped like those of the thesis's programs: SPLASH-2 over a home-based shared virtual memory.
//!
//! Eight processes on four nodes share an array of pages. Each page has a home, a process whose copy is the one that counts; the
//! others fetch it there when they need it and send what they changed at the next barrier. A page has the same address in every
//! process. What the generators give is who fetches and sends which page, in which order, and how much is computed between.

mod grid;
mod kernels;
mod run;
mod scenes;

pub use grid::{GRID, Misses, grid_point};
pub use run::{Execution, execute};

/// Processes of a run at the size of the thesis.
pub const PROCESSES: usize = 8;
/// Processes of a node.
pub const PER_NODE: usize = 2;

/// One thing that a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Computes for so long, in nanoseconds.
    Compute(u32),
    /// Gets a page from its home, and waits for it.
    Fetch(u32),
    /// Sends so many changed bytes of a page to its home; the next barrier waits for it.
    Send(u32, u32),
    /// Waits for all.
    Barrier,
}

/// What all processes do.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// The shared pages.
    pub pages: u32,
    /// The home of each page, by process.
    pub homes: Vec<u8>,
    /// What each process does.
    pub steps: Vec<Vec<Step>>,
}

/// The names of the eight, in the order of the thesis's Table 4.5.
pub const NAMES: [&str; 8] = ["water-spatial", "water-nsquared", "fft", "ocean", "radix", "raytrace", "lu", "volrend"];

impl Workload {
    /// The workload of a name. A scale of 1 is the size of the thesis; each step up halves what is done, for tests.
    #[must_use]
    pub fn named(name: &str, scale: u32) -> Option<Workload> {
        Some(match name {
            "fft" => Workload::fft(2048 >> scale.min(4), PROCESSES),
            "lu" => Workload::lu(128 >> scale.min(4), PROCESSES),
            "radix" => kernels::radix(1024 >> scale.min(6)),
            "ocean" => scenes::ocean(25 >> scale.min(4)),
            "water-nsquared" => scenes::water_nsquared(6 >> scale.min(1)),
            "water-spatial" => scenes::water_spatial(6 >> scale.min(1)),
            "raytrace" => scenes::raytrace(8192 >> scale.min(5)),
            "volrend" => scenes::volrend(1856 >> scale.min(3)),
            _ => return None,
        })
    }

    /// The FFT of so many rows, by so many processes.
    #[must_use]
    pub fn fft(rows: u32, processes: usize) -> Workload {
        kernels::fft(rows, processes)
    }

    /// The LU of so many blocks on an edge, by an even number of processes.
    #[must_use]
    pub fn lu(blocks: u32, processes: usize) -> Workload {
        kernels::lu(blocks, processes)
    }

    /// Nodes that its processes are on.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.steps.len().div_ceil(PER_NODE)
    }

    /// All eight.
    #[must_use]
    pub fn all(scale: u32) -> Vec<Workload> {
        NAMES.iter().filter_map(|name| Workload::named(name, scale)).collect()
    }

    /// Fetches and sends to other processes.
    #[must_use]
    pub fn transfers(&self) -> usize {
        let is_transfer = |step: &&Step| matches!(step, Step::Fetch(_) | Step::Send(..));
        self.steps.iter().flatten().filter(is_transfer).count()
    }

    fn new(name: &'static str, pages: u32, home: impl Fn(u32) -> usize) -> Workload {
        Workload::of(name, pages, PROCESSES, home)
    }

    fn of(name: &'static str, pages: u32, processes: usize, home: impl Fn(u32) -> usize) -> Workload {
        let homes = (0..pages).map(|page| home(page) as u8).collect();
        Workload { name, pages, homes, steps: vec![Vec::new(); processes] }
    }

    /// A process gets a page, unless it is its own.
    fn fetch(&mut self, process: usize, page: u32) {
        if usize::from(self.homes[page as usize]) != process {
            self.steps[process].push(Step::Fetch(page));
        }
    }

    /// A process tells the home what it changed, unless it is its own.
    fn send(&mut self, process: usize, page: u32, bytes: u32) {
        if usize::from(self.homes[page as usize]) != process {
            self.steps[process].push(Step::Send(page, bytes));
        }
    }

    fn compute(&mut self, process: usize, ns: u32) {
        self.steps[process].push(Step::Compute(ns));
    }

    fn barrier(&mut self) {
        self.steps.iter_mut().for_each(|steps| steps.push(Step::Barrier));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_sound() {
        for workload in Workload::all(2) {
            assert!(workload.transfers() > 100, "{}: {}", workload.name, workload.transfers());
            assert_eq!(workload.homes.len(), workload.pages as usize);
            let barriers = |steps: &Vec<Step>| steps.iter().filter(|step| **step == Step::Barrier).count();
            let first = barriers(&workload.steps[0]);
            for (process, steps) in workload.steps.iter().enumerate() {
                assert_eq!(barriers(steps), first, "{}", workload.name);
                for step in steps {
                    if let Step::Fetch(page) | Step::Send(page, _) = step {
                        let home = workload.homes[*page as usize];
                        assert!(usize::from(home) != process && usize::from(home) < PROCESSES);
                    }
                }
            }
        }
        assert!(Workload::named("nothing", 0).is_none());
    }
}
