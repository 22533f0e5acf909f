//! What the kernels compute on: the shared memory, or an ordinary array of one process, whose results must be the same.

use super::SharedMemory;
use crate::error::Result;

/// An array of numbers that some processes share.
///
/// - After a barrier every process sees what any of them wrote before it.
/// - Between two barriers a number that one process writes is used by no other.
pub trait Array {
    /// Which process this is.
    fn rank(&self) -> usize;
    /// A number.
    fn get(&self, index: usize) -> f64;
    /// Changes it.
    fn set(&mut self, index: usize, value: f64);
    /// Waits for all.
    fn barrier(&mut self) -> Result<()>;
}

/// An array of one process.
#[derive(Debug, Clone, PartialEq)]
pub struct Alone(Vec<f64>);

impl Alone {
    /// So many zeros.
    #[must_use]
    pub fn new(len: usize) -> Alone {
        Alone(vec![0.0; len])
    }
}

impl Array for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn get(&self, index: usize) -> f64 {
        self.0[index]
    }

    fn set(&mut self, index: usize, value: f64) {
        self.0[index] = value;
    }

    fn barrier(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Array for SharedMemory {
    fn rank(&self) -> usize {
        SharedMemory::rank(self)
    }

    fn get(&self, index: usize) -> f64 {
        SharedMemory::get(self, index)
    }

    fn set(&mut self, index: usize, value: f64) {
        SharedMemory::set(self, index, value);
    }

    fn barrier(&mut self) -> Result<()> {
        SharedMemory::barrier(self)
    }
}
