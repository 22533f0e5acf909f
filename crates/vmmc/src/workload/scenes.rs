//! The five programs that stay near: Ocean, the two Waters, Raytrace and Volrend. They have few misses.

use sidestep_sys::seeded::Seeded;

use super::{PROCESSES, Workload};

/// A stencil on so many grids of 514 by 514, each cut into two rows of four parts. A part is 128 rows of 1 KiB; its columns at the
/// edges lie in all of its pages, its rows at the edges in one.
pub(super) fn ocean(grids: u32) -> Workload {
    const PART: u32 = 66;
    let of = |grid: u32, process: usize, at: u32| (grid * PROCESSES as u32 + process as u32) * PART + at;
    let pages = grids * PROCESSES as u32 * PART;
    let mut work = Workload::new("ocean", pages, |page| (page / PART) as usize % PROCESSES);
    for _sweep in 0..6 {
        for grid in 0..grids {
            for process in 0..PROCESSES {
                let (row, column) = (process / 4, process % 4);
                // The neighbour above or below: a row.
                let other = (1 - row) * 4 + column;
                work.fetch(process, of(grid, other, if row == 0 { 0 } else { PART - 1 }));
                // Those beside: columns.
                for side in [column.checked_sub(1), Some(column + 1).filter(|side| *side < 4)].into_iter().flatten() {
                    (0..PART).for_each(|at| work.fetch(process, of(grid, row * 4 + side, at)));
                }
                work.compute(process, 12_000_000);
            }
            work.barrier();
        }
    }
    work
}

/// 4096 molecules in 680 pages. In each step a process needs the molecules of the half that follows its own, and adds forces to them.
pub(super) fn water_nsquared(steps: u32) -> Workload {
    const PAGES: u32 = 680;
    let each = PAGES / PROCESSES as u32;
    let mut work = Workload::new("water-nsquared", PAGES, |page| (page / each) as usize);
    for _ in 0..steps {
        for phase in 0..2 {
            for process in 0..PROCESSES {
                for at in each..each + PAGES / 2 {
                    let page = (process as u32 * each + at) % PAGES;
                    work.fetch(process, page);
                    work.compute(process, 600_000);
                    if phase == 1 {
                        work.send(process, page, 1500);
                    }
                }
            }
            work.barrier();
        }
    }
    work
}

/// The same molecules in cells: a process needs only the cells at its borders.
pub(super) fn water_spatial(steps: u32) -> Workload {
    const EACH: u32 = 85;
    let mut work = Workload::new("water-spatial", EACH * PROCESSES as u32, |page| (page / EACH) as usize);
    for _ in 0..steps {
        for phase in 0..3 {
            for process in 0..PROCESSES as u32 {
                for other in [process ^ 1, process ^ 2, process ^ 4] {
                    for at in 0..EACH / 2 {
                        let page = other * EACH + (at * 2 + phase) % EACH;
                        work.fetch(process as usize, page);
                        work.compute(process as usize, 500_000);
                        if phase == 2 && at % 4 == 0 {
                            work.send(process as usize, page, 700);
                        }
                    }
                }
            }
            work.barrier();
        }
    }
    work
}

/// A scene of so many pages that is only read. Rays that lie near each other meet the same objects; each page is fetched once. Then
/// the picture is sent, and tasks are taken from others.
pub(super) fn raytrace(pages: u32) -> Workload {
    let picture = 1024;
    let tasks = PROCESSES as u32;
    let all = pages + picture + tasks;
    let mut work = Workload::new("raytrace", all, |page| match page {
        page if page < pages => (page / 16) as usize % PROCESSES,
        page if page < pages + picture => ((page - pages) / (picture / PROCESSES as u32)) as usize,
        page => (page - pages - picture) as usize,
    });
    let mut random = Seeded::new(5);
    for process in 0..PROCESSES {
        let mut known = vec![false; pages as usize];
        let mut at = random.below(u64::from(pages)) as u32;
        for ray in 0..pages / 2 {
            // Most rays go on near the last one; some meet something else.
            at = match random.below(10) {
                0 => random.below(u64::from(pages)) as u32,
                _ => (at + random.below(5) as u32) % pages,
            };
            if !std::mem::replace(&mut known[at as usize], true) {
                work.fetch(process, at);
            }
            work.compute(process, 900_000);
            if ray % 64 == 0 {
                work.fetch(process, pages + picture + random.below(tasks.into()) as u32);
            }
            if ray % 32 == 0 {
                work.send(process, pages + random.below(picture.into()) as u32, 256);
            }
        }
    }
    work.barrier();
    work
}

/// A volume of so many pages, read slice by slice from where each process stands, for some frames; then the picture.
pub(super) fn volrend(pages: u32) -> Workload {
    let picture = 64;
    let all = pages + picture;
    let mut work = Workload::new("volrend", all, |page| match page {
        page if page < pages => (page * PROCESSES as u32 / pages) as usize,
        page => (page - pages) as usize % PROCESSES,
    });
    let mut random = Seeded::new(9);
    for frame in 0..3 {
        for process in 0..PROCESSES {
            for slice in 0..pages / 4 {
                let page = (process as u32 * pages / PROCESSES as u32 + slice * 3 + frame) % pages;
                // The volume does not change: it is fetched in the first frame, and what was not met then.
                if frame == 0 || random.chance(100) {
                    work.fetch(process, page);
                }
                work.compute(process, 900_000);
                if slice % 16 == 0 {
                    work.send(process, pages + random.below(picture.into()) as u32, 512);
                }
            }
        }
        work.barrier();
    }
    work
}
