//! How fast the ring's copy routine is against `ptr::copy_nonoverlapping`, by size and by how far the
//! destination's page offset is ahead of the source's: `cargo run --release --example copy_speed`.
//!
//! First table: one core, both buffers in its caches. Second: what a ring does, one thread copies in and
//! another, on the next core if there is one, copies out, through 1 MiB. Medians of interleaved rounds.

#![allow(unsafe_code)]

use std::hint::{black_box, spin_loop};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Acquire, Ordering::Release};
use std::time::Instant;

#[allow(dead_code)]
#[path = "../src/copy.rs"]
mod copy;

type Routine = unsafe fn(*mut u8, *const u8, usize);

/// Out of line, as `memcpy` is, so that the small sizes are compared alike.
#[inline(never)]
unsafe fn ours(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy::copy(dst, src, len) }
}

#[inline(never)]
unsafe fn standard(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, len) }
}

fn main() {
    pin(0);
    let offsets = [0_usize, 1, 16, 31, 130, 300, 2100];
    println!("one core, GB/s ours/std, destination's page offset ahead of the source's by");
    print!("{:>8}", "bytes");
    offsets.iter().for_each(|offset| print!("{offset:>14}"));
    println!();
    for len in [8, 16, 24, 48, 64, 96, 128, 192, 256, 512, 1024, 4096, 16384, 65536, 262_144, 1 << 20, 1 << 22] {
        print!("{len:>8}");
        for &offset in &offsets {
            let (a, b) = one_core(len, offset);
            print!("{:>14}", format!("{a:.1}/{b:.1}"));
        }
        println!();
    }
    println!("through a ring of 1 MiB between two cores, GB/s ours/std, ahead by");
    print!("{:>8}", "chunk");
    [0, 16].iter().for_each(|offset| print!("{offset:>14}"));
    println!();
    for chunk in [1024, 4096, 16384, 65536] {
        print!("{chunk:>8}");
        for offset in [0, 16] {
            let mut rates = [Vec::new(), Vec::new()];
            for _ in 0..7 {
                rates[0].push(ring(ours, chunk, offset));
                rates[1].push(ring(standard, chunk, offset));
            }
            let [a, b] = rates.map(median);
            print!("{:>14}", format!("{a:.1}/{b:.1}"));
        }
        println!();
    }
}

fn one_core(len: usize, offset: usize) -> (f64, f64) {
    let source = Buffer::new(len + 8192);
    let target = Buffer::new(len + 8192);
    let repeats = (4_usize << 20).div_ceil(len).clamp(4, 200_000);
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..9 {
        for (routine, rates) in [ours as Routine, standard].into_iter().zip(&mut rates) {
            let start = Instant::now();
            for _ in 0..repeats {
                let (dst, src) = (black_box(target.at(offset)), black_box(source.at(0)));
                // SAFETY: both buffers hold `len` bytes from there on, and are two allocations.
                unsafe { routine(dst, src, len) };
            }
            rates.push((repeats * len) as f64 / start.elapsed().as_nanos() as f64);
        }
    }
    let [a, b] = rates.map(median);
    (a, b)
}

fn ring(routine: Routine, chunk: usize, offset: usize) -> f64 {
    const RING: usize = 1 << 20;
    const TOTAL: usize = 256 << 20;
    let memory = Buffer::new(RING + 4096);
    let (written, read) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let sink = Buffer::new(chunk + 8192);
            let mut position = 0;
            while position < TOTAL {
                while written.load(Acquire) == position {
                    spin_loop();
                }
                // SAFETY: a whole chunk was published at `position`, and the ring is a multiple of it.
                unsafe { routine(sink.at(offset), memory.at(position % RING), chunk) };
                position += chunk;
                read.store(position, Release);
            }
        });
        pin(0);
        let source = Buffer::new(chunk + 8192);
        let mut position = 0;
        while position < TOTAL {
            while position - read.load(Acquire) > RING - chunk {
                spin_loop();
            }
            // SAFETY: a chunk at `position` is free, and the ring is a multiple of it. The source lies
            // `offset` before a page boundary, so that the ring is ahead of it by that much.
            unsafe { routine(memory.at(position % RING), source.at(4096 - offset), chunk) };
            position += chunk;
            written.store(position, Release);
        }
    });
    TOTAL as f64 / start.elapsed().as_nanos() as f64
}

fn pin(index: usize) {
    let mut set = rustix::thread::CpuSet::new();
    let cores = cores();
    set.set(cores[index % cores.len()]);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// The cores the program was started on.
fn cores() -> &'static [usize] {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(|| {
        let allowed = rustix::thread::sched_getaffinity(None).expect("the affinity of this thread");
        (0..rustix::thread::CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect()
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Page-aligned bytes, all touched. Atomics, because they are written through shared pointers.
struct Buffer {
    bytes: Vec<AtomicU8>,
    start: usize,
}

impl Buffer {
    fn new(len: usize) -> Buffer {
        let bytes: Vec<_> = (0..len + 4096).map(|_| AtomicU8::new(1)).collect();
        let start = bytes.as_ptr().cast::<u8>().align_offset(4096);
        Buffer { bytes, start }
    }

    fn at(&self, offset: usize) -> *mut u8 {
        // From the whole vector, so that the pointer is good for all of it.
        self.bytes.as_ptr().cast::<u8>().cast_mut().wrapping_add(self.start + offset)
    }
}
