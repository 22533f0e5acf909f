//! The three kernels that reach far: FFT, LU and Radix. They have the many misses.

use sidestep_sys::seeded::Seeded;

use super::{PROCESSES, Workload};

/// A six-step FFT: three transposes of a matrix of `rows` rows, between two arrays. A process owns a band of rows; a transpose reads
/// a square of every other band, which is one page of each of its rows at the size of the thesis.
pub(super) fn fft(rows: u32, processes: usize) -> Workload {
    // So many complex numbers fill a page.
    const NUMBERS: u32 = 256;
    let row_pages = (rows / NUMBERS).max(1);
    let band = rows / processes as u32;
    let array = rows * row_pages;
    let mut work = Workload::of("fft", 2 * array, processes, |page| (page % array / row_pages / band) as usize);
    for transpose in 0..3 {
        let from = if transpose % 2 == 0 { 0 } else { array };
        for process in 0..processes {
            // Each begins with the band after its own, so that not all ask the same process.
            for other in (1..processes).map(|step| (process + step) % processes) {
                for row in 0..band {
                    let row = other as u32 * band + row;
                    let own = process as u32 * band..(process as u32 + 1) * band;
                    for page in own.start / NUMBERS..own.end.div_ceil(NUMBERS) {
                        work.fetch(process, from + row * row_pages + page);
                        work.compute(process, 20_000);
                    }
                }
            }
            // The FFT of the own rows.
            work.compute(process, band * 400_000);
        }
        work.barrier();
    }
    work
}

/// LU of a matrix of `blocks` by `blocks` blocks, two of which fill a page. The blocks of a process lie together.
pub(super) fn lu(blocks: u32, processes: usize) -> Workload {
    // Processes stand in two rows.
    let columns = (processes / 2).max(1) as u32;
    let owner = |row: u32, column: u32| (row % 2 * columns + column % columns) as usize;
    let each = blocks * blocks / processes as u32;
    let pages_each = each.div_ceil(2);
    let page = |row: u32, column: u32| {
        let within = row / 2 * (blocks / columns) + column / columns;
        owner(row, column) as u32 * pages_each + within / 2
    };
    let mut work = Workload::of("lu", pages_each * processes as u32, processes, |page| (page / pages_each) as usize);
    for step in 0..blocks {
        // Whoever owns a block of the edge needs the one on the diagonal.
        for process in 0..processes {
            let mut edge = (step + 1..blocks).flat_map(|at| [(at, step), (step, at)]);
            if edge.any(|(row, column)| owner(row, column) == process) {
                work.fetch(process, page(step, step));
            }
        }
        work.barrier();
        // Whoever owns blocks inside needs those of the edge in the same row and column.
        for process in 0..processes {
            let mut last = None;
            let mut want = |work: &mut Workload, page| {
                if last != Some(page) {
                    work.fetch(process, page);
                    last = Some(page);
                }
            };
            let (own_row, own_column) = (process as u32 / columns, process as u32 % columns);
            for at in step + 1..blocks {
                if at % 2 == own_row {
                    want(&mut work, page(at, step));
                }
            }
            for at in step + 1..blocks {
                if at % columns == own_column {
                    want(&mut work, page(step, at));
                }
            }
            let inside = (blocks - step - 1).pow(2) / processes as u32;
            work.compute(process, inside.saturating_mul(12_000));
        }
        work.barrier();
    }
    work
}

/// Three passes of a radix sort with so many digits between two arrays. In a pass each process moves its keys, which come in any
/// order, to one place for each digit: a page of its own among those of the others.
pub(super) fn radix(digits: u32) -> Workload {
    let array = digits * PROCESSES as u32;
    let each = array / PROCESSES as u32;
    let mut work = Workload::new("radix", 2 * array, |page| (page % array / each) as usize);
    let mut random = Seeded::new(3);
    for pass in 0..3 {
        let to = if pass % 2 == 0 { array } else { 0 };
        for process in 0..PROCESSES {
            // Counting the own keys.
            work.compute(process, digits * 30_000);
            let mut order: Vec<u32> = (0..digits).collect();
            for at in (1..order.len()).rev() {
                order.swap(at, random.below(at as u64 + 1) as usize);
            }
            for digit in &order {
                work.fetch(process, to + digit * PROCESSES as u32 + process as u32);
                work.compute(process, 25_000);
            }
            for digit in &order {
                work.send(process, to + digit * PROCESSES as u32 + process as u32, 4096);
            }
        }
        work.barrier();
    }
    work
}
