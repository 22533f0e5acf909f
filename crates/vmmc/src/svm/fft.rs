//! A six-step FFT of `side * side` complex numbers (Bailey 1990), as SPLASH-2 has it: rows of a square matrix in bands, one band for
//! each process, and three transposes between two arrays, in which every process reads a piece of every row.

use std::f64::consts::TAU;

use super::{Array, PAGE_WORDS};
use crate::error::{Error, Result};

/// An FFT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fft {
    /// Rows of the matrix, a power of two.
    pub side: usize,
    /// Processes.
    pub count: usize,
}

impl Fft {
    /// Words of both arrays.
    #[must_use]
    pub fn words(&self) -> usize {
        4 * self.side * self.side
    }

    /// The home of each page: the process of the rows in it.
    pub fn homes(&self) -> Result<Vec<u8>> {
        let band = 2 * self.side * self.side / self.count;
        if !self.side.is_power_of_two() || self.side % self.count != 0 || band % PAGE_WORDS != 0 {
            let (what, must) = ("an FFT", "a power of two of rows, in bands of whole pages");
            return Err(Error::Parameter { what, must, value: format!("{self:?}") });
        }
        let array = 2 * self.side * self.side;
        Ok((0..self.words() / PAGE_WORDS).map(|page| (page * PAGE_WORDS % array / band) as u8).collect())
    }

    /// Fills the own rows, computes, and leaves the result in the second array.
    pub fn run(&self, array: &mut impl Array) -> Result<()> {
        let rows = self.band(array.rank());
        for at in self.elements(array.rank()) {
            let (re, im) = input(at);
            array.set(2 * at, re);
            array.set(2 * at + 1, im);
        }
        array.barrier()?;
        let second = 2 * self.side * self.side;
        for (step, (from, to)) in [(0, second), (second, 0), (0, second)].into_iter().enumerate() {
            self.transpose(array, from, to);
            if step < 2 {
                rows.clone().for_each(|row| self.transform_row(array, to, row, step == 0));
            }
            array.barrier()?;
        }
        Ok(())
    }

    /// A number of the result, after [`run`](Self::run).
    #[must_use]
    pub fn result(&self, array: &impl Array, at: usize) -> (f64, f64) {
        let first = 2 * self.side * self.side + 2 * at;
        (array.get(first), array.get(first + 1))
    }

    /// The numbers of the result that a process computes.
    pub(super) fn elements(&self, rank: usize) -> std::ops::Range<usize> {
        let rows = self.band(rank);
        rows.start * self.side..rows.end * self.side
    }

    fn band(&self, rank: usize) -> std::ops::Range<usize> {
        let rows = self.side / self.count;
        rank * rows..(rank + 1) * rows
    }

    /// Writes the own rows of one array from the columns of the other, band after band, beginning with the next one.
    fn transpose(&self, array: &mut impl Array, from: usize, to: usize) {
        let (rank, own) = (array.rank(), self.band(array.rank()));
        for other in (1..=self.count).map(|step| (rank + step) % self.count) {
            for column in self.band(other) {
                for row in own.clone() {
                    let (source, target) = (from + 2 * (column * self.side + row), to + 2 * (row * self.side + column));
                    array.set(target, array.get(source));
                    array.set(target + 1, array.get(source + 1));
                }
            }
        }
    }

    fn transform_row(&self, array: &mut impl Array, base: usize, row: usize, twiddle: bool) {
        let first = base + 2 * row * self.side;
        let mut line: Vec<(f64, f64)> =
            (0..self.side).map(|at| (array.get(first + 2 * at), array.get(first + 2 * at + 1))).collect();
        transform(&mut line);
        for (at, value) in line.into_iter().enumerate() {
            let angle = -TAU * (row * at) as f64 / (self.side * self.side) as f64;
            let (re, im) = if twiddle { times(value, (angle.cos(), angle.sin())) } else { value };
            array.set(first + 2 * at, re);
            array.set(first + 2 * at + 1, im);
        }
    }
}

/// What is transformed: a wave with some noise, the same in every process.
#[must_use]
pub fn input(at: usize) -> (f64, f64) {
    let noise = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    ((at as f64 * 0.01).sin() + noise as f64 * 1e-9, (at % 7) as f64 * 0.25)
}

fn times((a, b): (f64, f64), (c, d): (f64, f64)) -> (f64, f64) {
    (a * c - b * d, a * d + b * c)
}

/// An FFT of a power of two of numbers, in place.
fn transform(line: &mut [(f64, f64)]) {
    let bits = line.len().trailing_zeros();
    for at in 0..line.len() {
        let other = at.reverse_bits() >> (usize::BITS - bits).min(usize::BITS - 1);
        if bits > 0 && at < other {
            line.swap(at, other);
        }
    }
    let mut half = 1;
    while half < line.len() {
        for begin in (0..line.len()).step_by(2 * half) {
            for at in 0..half {
                let angle = -TAU * at as f64 / (2 * half) as f64;
                let (one, two) = (line[begin + at], times(line[begin + at + half], (angle.cos(), angle.sin())));
                line[begin + at] = (one.0 + two.0, one.1 + two.1);
                line[begin + at + half] = (one.0 - two.0, one.1 - two.1);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svm::Alone;

    /// Against the definition.
    #[test]
    fn it_is_a_fourier_transform() {
        let fft = Fft { side: 16, count: 1 };
        let mut array = Alone::new(fft.words());
        fft.run(&mut array).unwrap();
        let numbers = fft.side * fft.side;
        for at in 0..numbers {
            let mut sum = (0.0, 0.0);
            for from in 0..numbers {
                let angle = -TAU * (at * from % numbers) as f64 / numbers as f64;
                let part = times(input(from), (angle.cos(), angle.sin()));
                sum = (sum.0 + part.0, sum.1 + part.1);
            }
            let (re, im) = fft.result(&array, at);
            assert!((re - sum.0).abs() < 1e-8 && (im - sum.1).abs() < 1e-8, "{at}: {re} {im}, and not {sum:?}");
        }
    }

    #[test]
    fn bands_are_whole_pages() {
        assert!(Fft { side: 16, count: 4 }.homes().is_err());
        let homes = Fft { side: 64, count: 4 }.homes().unwrap();
        assert_eq!(homes.len(), 32);
        assert_eq!(homes[..16], [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
    }
}
