//! Which core this thread runs on, and where it may run.
//!
//! [`current_core`] is asked on data paths (is the peer on my core: then yield instead of spinning), so it
//! must cost about as much as a load. glibc 2.35 and later register a *restartable sequence* area with the
//! kernel for every thread, and the kernel keeps the core's number in it. Measured (Ice Lake guest, release
//! build, best of 5): 0.5 ns by that area, 3.2 ns by the vDSO's `getcpu`, the way that remains without it.
//!
//! # Invariants
//!
//! - R1. `RSEQ_OFFSET`, when it is neither `UNKNOWN` nor `ABSENT`, is the value of glibc's
//!   `__rseq_offset`, and glibc's `__rseq_size` was not 0. Then every thread of the process has a
//!   `struct rseq` at that distance from its thread pointer for as long as it lives.
//! - R2. In `struct rseq` (kernel ABI) the `u32` at offset 4 is `cpu_id`: the core, or a negative number when
//!   this thread's area is not registered (a thread that glibc did not start).

#![allow(unsafe_code)]

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    thread::CpuSet,
};

/// The core this thread runs on now. It may be another one by the time the caller looks at it.
#[inline]
pub fn current_core() -> u32 {
    #[cfg(any(miri, loom))]
    return 0;
    #[cfg(not(any(miri, loom)))]
    rseq::current_core()
}

/// The processor's own counter, for telling a long time from a short one without touching memory.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    // SAFETY: reads a counter; every x86-64 processor has it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
    crate::clock::now()
}

/// Asks for the lines of memory that hold `bytes` bytes from `at` on, all at once, before they are needed one by one. A hint
/// about an address: nothing is read or written, and it may point anywhere.
#[inline]
pub fn prefetch<T>(at: *const T, bytes: usize) {
    const LINE: usize = 64;
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    for line in (0..bytes).step_by(LINE) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which no address makes fault; every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_byte_add(line).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
    let _ = (at, bytes, LINE);
}

/// As [`prefetch`], of the one line that holds `at`, to write to it.
#[inline]
pub fn prefetch_to_write<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    // The compiler makes a hint to read of `_MM_HINT_ET0`, unless it may assume a newer processor than any x86-64 one.
    // SAFETY: a hint, which no address makes fault; processors that do not know it do nothing.
    unsafe {
        std::arch::asm!("prefetchw [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
    let _ = at;
}

/// Whether so many [`ticks`] are as long as a time slice rather than a switch: a quarter of a millisecond or more at any
/// clock rate from 1 to 4 GHz, and a third of one where ticks are nanoseconds.
#[inline]
pub fn is_long(ticks: u64) -> bool {
    ticks > if cfg!(all(target_arch = "x86_64", not(miri), not(loom))) { 1 << 20 } else { 300_000 }
}

/// Whether so many [`ticks`] between two looks at memory are more than an interrupt takes: another thread had the core
/// meanwhile. 8 microseconds or more at any clock rate up to 4 GHz, and 10 where ticks are nanoseconds.
#[inline]
pub fn is_switch(ticks: u64) -> bool {
    ticks > if cfg!(all(target_arch = "x86_64", not(miri), not(loom))) { 1 << 15 } else { 10_000 }
}

/// Lets this thread run on `core` only.
pub fn pin_to(core: u32) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    match usize::try_from(core) {
        Ok(core) if core < CpuSet::MAX_CPU => set.set(core),
        _ => return Err(Errno::INVAL),
    }
    rustix::thread::sched_setaffinity(None, &set)
}

/// The cores this thread may run on, ascending; never empty.
pub fn allowed_cores() -> Vec<u32> {
    let cores: Vec<u32> = match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU as u32).filter(|&core| set.is_set(core as usize)).collect(),
        Err(_) => Vec::new(), // A machine with more cores than the set can hold.
    };
    if cores.is_empty() { vec![current_core()] } else { cores }
}

/// Moves this thread to another core that it may use, if one seems idle; where it may run stays as it was. For two
/// busy ends that the kernel keeps on one core, since each looks too warm there to be moved.
pub fn move_away() -> bool {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return false };
    let mut others = allowed;
    others.unset(current_core() as usize);
    // This thread and its peer are two of those that run.
    if others.count() == 0 || running_threads().is_none_or(|count| count > allowed.count()) {
        return false;
    }
    let moved = rustix::thread::sched_setaffinity(None, &others).is_ok();
    moved && rustix::thread::sched_setaffinity(None, &allowed).is_ok()
}

/// How many threads of the machine run or want to, now.
fn running_threads() -> Option<u32> {
    // Without memory of its own, and past the calls of libc: this is asked in the middle of a wait.
    let file = rustix::fs::open(c"/proc/loadavg", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0; 64];
    let count = rustix::io::read(&file, &mut text).ok()?;
    let text = std::str::from_utf8(&text[..count]).ok()?;
    text.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

#[cfg(not(any(miri, loom)))]
mod rseq {
    use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

    #[inline]
    pub(super) fn current_core() -> u32 {
        let offset = RSEQ_OFFSET.load(Relaxed);
        if offset != UNKNOWN && offset != ABSENT {
            // SAFETY: R1, established by `look_up`.
            let core = unsafe { core_in_area(offset) };
            if core <= i32::MAX as u32 {
                return core;
            }
        }
        slow(offset)
    }

    #[cold]
    #[inline(never)]
    fn slow(offset: isize) -> u32 {
        if offset == UNKNOWN {
            // Racing threads find and store the same value.
            let found = look_up().unwrap_or(ABSENT);
            RSEQ_OFFSET.store(found, Relaxed);
            if found != ABSENT {
                // SAFETY: R1, established just above.
                let core = unsafe { core_in_area(found) };
                if core <= i32::MAX as u32 {
                    return core;
                }
            }
        }
        rustix::thread::sched_getcpu() as u32
    }

    /// Reads `cpu_id` (R2). One instruction, so the kernel cannot change it half way.
    ///
    /// # Safety
    /// `offset` is as R1 says.
    #[inline(always)]
    unsafe fn core_in_area(offset: isize) -> u32 {
        #[cfg(target_arch = "x86_64")]
        {
            let core: u32;
            // SAFETY: fs is the thread pointer; R1 and R2 make the address a readable u32.
            unsafe {
                std::arch::asm!(
                    "mov {core:e}, dword ptr fs:[{offset} + 4]",
                    core = out(reg) core,
                    offset = in(reg) offset,
                    options(nostack, preserves_flags, readonly),
                );
            }
            core
        }
        #[cfg(target_arch = "aarch64")]
        {
            let core: u32;
            // SAFETY: tpidr_el0 is the thread pointer; R1 and R2 make the address a readable u32.
            unsafe {
                std::arch::asm!(
                    "mrs {base}, tpidr_el0",
                    "add {base}, {base}, {offset}",
                    "ldr {core:w}, [{base}, #4]",
                    base = out(reg) _,
                    core = lateout(reg) core,
                    offset = in(reg) offset,
                    options(nostack, preserves_flags, readonly),
                );
            }
            core
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            let _ = offset;
            u32::MAX
        }
    }

    /// The offset of R1, if this C library registers the area.
    fn look_up() -> Option<isize> {
        // SAFETY: both names are NUL-terminated.
        let offset = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()) };
        // SAFETY: as above.
        let size = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
        if offset.is_null() || size.is_null() {
            return None;
        }
        // SAFETY: glibc's ABI: `extern const unsigned int __rseq_size`, written before any of our code runs.
        let size = unsafe { size.cast::<u32>().read() };
        // SAFETY: glibc's ABI: `extern const ptrdiff_t __rseq_offset`, likewise.
        let offset = unsafe { offset.cast::<isize>().read() };
        // Size 0: registration is switched off (GLIBC_TUNABLES) or the kernel has none.
        (size != 0 && offset != UNKNOWN && offset != ABSENT).then_some(offset)
    }

    static RSEQ_OFFSET: AtomicIsize = AtomicIsize::new(UNKNOWN);
    /// No real offset: the thread control block itself lies there.
    const UNKNOWN: isize = 0;
    /// No real offset: the area is aligned to 32 bytes.
    const ABSENT: isize = 1;

    #[cfg(test)]
    pub(super) fn by_area() -> bool {
        super::current_core();
        RSEQ_OFFSET.load(Relaxed) != ABSENT
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn pinned_thread_knows_its_core() {
        std::thread::spawn(|| {
            let cores = allowed_cores();
            assert!(!cores.is_empty() && cores.is_sorted());
            for &core in &cores {
                pin_to(core).unwrap();
                assert_eq!(allowed_cores(), [core]);
                for _ in 0..1000 {
                    assert_eq!(current_core(), core);
                }
                assert_eq!(rustix::thread::sched_getcpu() as u32, core);
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn who_moves_away_may_run_where_it_could_before() {
        std::thread::spawn(|| {
            let before = allowed_cores();
            for _ in 0..100 {
                move_away();
                assert_eq!(allowed_cores(), before);
            }
            pin_to(before[0]).unwrap();
            assert!(!move_away(), "there is nowhere to go");
            assert_eq!(allowed_cores(), [before[0]]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn cores_that_do_not_exist_are_errors() {
        assert_eq!(pin_to(1024), Err(Errno::INVAL));
        assert_eq!(pin_to(u32::MAX), Err(Errno::INVAL));
        let highest = (0..1024).rev().find(|core| !allowed_cores().contains(core)).unwrap();
        assert_eq!(pin_to(highest), Err(Errno::INVAL));
    }

    #[test]
    fn cost() {
        const ROUNDS: u32 = 1_000_000;
        let mut best = f64::MAX;
        let mut best_call = f64::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                std::hint::black_box(current_core());
            }
            best = best.min(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
            let start = Instant::now();
            for _ in 0..ROUNDS / 10 {
                std::hint::black_box(rustix::thread::sched_getcpu());
            }
            best_call = best_call.min(start.elapsed().as_nanos() as f64 * 10.0 / f64::from(ROUNDS));
        }
        println!("current_core {best:.1} ns (by area: {}), sched_getcpu {best_call:.1} ns", rseq::by_area());
    }
}
