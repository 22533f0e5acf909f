//! LU without pivots of a matrix in blocks of 16 by 16, as SPLASH-2 has it (contiguous blocks): the processes stand in rows and
//! columns and own the blocks in turns; the blocks of a process lie together.

use super::{Array, PAGE_WORDS};
use crate::error::{Error, Result};

/// Numbers on the edge of a block.
const EDGE: usize = 16;
const BLOCK: usize = EDGE * EDGE;

type Block = [f64; BLOCK];

/// A factorisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lu {
    /// Blocks on the edge of the matrix.
    pub blocks: usize,
    /// Processes: one, or an even number.
    pub count: usize,
}

impl Lu {
    /// Words of the matrix.
    #[must_use]
    pub fn words(&self) -> usize {
        self.blocks * self.blocks * BLOCK
    }

    /// The home of each page: the process of the blocks in it.
    pub fn homes(&self) -> Result<Vec<u8>> {
        let (rows, columns) = self.grid();
        let own = self.words() / self.count;
        if self.blocks % rows != 0
            || self.blocks % columns != 0
            || own % PAGE_WORDS != 0
            || rows * columns != self.count
        {
            let (what, must) = ("an LU", "as many blocks as the processes share evenly, in whole pages");
            return Err(Error::Parameter { what, must, value: format!("{self:?}") });
        }
        Ok((0..self.words() / PAGE_WORDS).map(|page| (page * PAGE_WORDS / own) as u8).collect())
    }

    /// Fills the own blocks, and factors the matrix in place.
    pub fn run(&self, array: &mut impl Array) -> Result<()> {
        let own: Vec<(usize, usize)> = self.all().filter(|at| self.owner(*at) == array.rank()).collect();
        for &at in &own {
            let fill = |within| self.input(at.0 * EDGE + within / EDGE, at.1 * EDGE + within % EDGE);
            self.store(array, at, &std::array::from_fn(fill));
        }
        array.barrier()?;
        for step in 0..self.blocks {
            if self.owner((step, step)) == array.rank() {
                let mut corner = self.load(array, (step, step));
                factor(&mut corner);
                self.store(array, (step, step), &corner);
            }
            array.barrier()?;
            let edge = |at: &&(usize, usize)| at.0.min(at.1) == step && at.0 != at.1;
            for at in own.iter().filter(edge) {
                let (corner, mut block) = (self.load(array, (step, step)), self.load(array, *at));
                match at.0 == step {
                    true => solve_lower(&corner, &mut block),
                    false => solve_upper(&corner, &mut block),
                }
                self.store(array, *at, &block);
            }
            array.barrier()?;
            for at in own.iter().filter(|at| at.0 > step && at.1 > step) {
                let (left, above) = (self.load(array, (at.0, step)), self.load(array, (step, at.1)));
                let mut block = self.load(array, *at);
                subtract_product(&mut block, &left, &above);
                self.store(array, *at, &block);
            }
        }
        array.barrier()
    }

    /// A number of the result: below the diagonal of L, else of U.
    #[must_use]
    pub fn result(&self, array: &impl Array, row: usize, column: usize) -> f64 {
        array.get(self.place((row / EDGE, column / EDGE)) + row % EDGE * EDGE + column % EDGE)
    }

    /// What is factored: large on the diagonal, so that no pivots are needed.
    #[must_use]
    pub fn input(&self, row: usize, column: usize) -> f64 {
        let noise = ((row * 131 + column * 57) % 97) as f64 / 97.0;
        if row == column { (self.blocks * EDGE) as f64 + noise } else { noise - 0.5 }
    }

    /// The numbers of the result that a process computes.
    pub(super) fn elements(&self, rank: usize) -> impl Iterator<Item = (usize, usize)> {
        let inside = |(row, column): (usize, usize)| {
            (0..BLOCK).map(move |within| (row * EDGE + within / EDGE, column * EDGE + within % EDGE))
        };
        self.all().filter(move |at| self.owner(*at) == rank).flat_map(inside)
    }

    fn grid(&self) -> (usize, usize) {
        let rows = if self.count > 1 { 2 } else { 1 };
        (rows, self.count / rows)
    }

    fn all(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let blocks = self.blocks;
        (0..blocks * blocks).map(move |at| (at / blocks, at % blocks))
    }

    fn owner(&self, (row, column): (usize, usize)) -> usize {
        let (rows, columns) = self.grid();
        row % rows * columns + column % columns
    }

    fn place(&self, (row, column): (usize, usize)) -> usize {
        let (rows, columns) = self.grid();
        let within = row / rows * (self.blocks / columns) + column / columns;
        self.owner((row, column)) * (self.words() / self.count) + within * BLOCK
    }

    fn load(&self, array: &impl Array, at: (usize, usize)) -> Block {
        let first = self.place(at);
        std::array::from_fn(|within| array.get(first + within))
    }

    fn store(&self, array: &mut impl Array, at: (usize, usize), block: &Block) {
        let first = self.place(at);
        block.iter().enumerate().for_each(|(within, value)| array.set(first + within, *value));
    }
}

/// L and U of one block, in place.
fn factor(block: &mut Block) {
    for step in 0..EDGE {
        for row in step + 1..EDGE {
            let factor = block[row * EDGE + step] / block[step * EDGE + step];
            block[row * EDGE + step] = factor;
            for column in step + 1..EDGE {
                block[row * EDGE + column] -= factor * block[step * EDGE + column];
            }
        }
    }
}

/// A block right of the corner: divided by its L.
fn solve_lower(corner: &Block, block: &mut Block) {
    for step in 0..EDGE {
        for row in step + 1..EDGE {
            for column in 0..EDGE {
                block[row * EDGE + column] -= corner[row * EDGE + step] * block[step * EDGE + column];
            }
        }
    }
}

/// A block below the corner: divided by its U.
fn solve_upper(corner: &Block, block: &mut Block) {
    for row in 0..EDGE {
        for step in 0..EDGE {
            block[row * EDGE + step] /= corner[step * EDGE + step];
            for column in step + 1..EDGE {
                block[row * EDGE + column] -= block[row * EDGE + step] * corner[step * EDGE + column];
            }
        }
    }
}

fn subtract_product(block: &mut Block, left: &Block, above: &Block) {
    for row in 0..EDGE {
        for step in 0..EDGE {
            let factor = left[row * EDGE + step];
            for column in 0..EDGE {
                block[row * EDGE + column] -= factor * above[step * EDGE + column];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svm::Alone;

    /// The product of the factors is the matrix.
    #[test]
    fn the_factors_multiply_to_the_matrix() {
        let lu = Lu { blocks: 4, count: 1 };
        let mut array = Alone::new(lu.words());
        lu.run(&mut array).unwrap();
        let numbers = lu.blocks * EDGE;
        for row in 0..numbers {
            for column in 0..numbers {
                let lower = |step| if step == row { 1.0 } else { lu.result(&array, row, step) };
                let product: f64 =
                    (0..=row.min(column)).map(|step| lower(step) * lu.result(&array, step, column)).sum();
                assert!((product - lu.input(row, column)).abs() < 1e-9, "{row} {column}");
            }
        }
    }

    #[test]
    fn every_block_has_one_place() {
        let lu = Lu { blocks: 8, count: 4 };
        let mut places: Vec<usize> = lu.all().map(|at| lu.place(at)).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq((0..64).map(|at| at * BLOCK)));
        assert_eq!(lu.homes().unwrap().len(), 32);
        assert!(Lu { blocks: 3, count: 4 }.homes().is_err());
    }
}
