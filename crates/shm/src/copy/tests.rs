use super::*;

const GUARD: usize = 64;

type Routine = unsafe fn(*mut u8, *const u8, usize);

/// Copies with `routine` between the given distances from a 64-byte boundary; every byte of the
/// destination's surroundings is compared.
fn check(routine: Routine, len: usize, dst_offset: usize, src_offset: usize) {
    let pattern = |at: usize| (at.wrapping_mul(167) >> 3) as u8 ^ 0x5a;
    let mut source = vec![0_u8; len + src_offset + 2 * GUARD];
    let mut target = vec![0xee_u8; len + dst_offset + 3 * GUARD];
    let src_start = source.as_ptr().align_offset(64) + src_offset;
    let dst_start = GUARD + target.as_ptr().align_offset(64) + dst_offset;
    for at in 0..len {
        source[src_start + at] = pattern(at);
    }
    let (src, dst) = (source[src_start..].as_ptr(), target[dst_start..].as_mut_ptr());
    // SAFETY: R1: both vectors hold `len` bytes from there on.
    unsafe { routine(dst, src, len) };
    for (at, &byte) in target.iter().enumerate() {
        let expected = match at.checked_sub(dst_start) {
            Some(at) if at < len => pattern(at),
            _ => 0xee,
        };
        assert_eq!(byte, expected, "len {len} dst +{dst_offset} src +{src_offset} at {at}");
    }
}

fn check_sizes(routine: Routine, from: usize) {
    let step = if cfg!(miri) { 37 } else { 1 };
    for len in (from..=1024).step_by(step) {
        // Each size with several pairs; over all sizes every pair of 0..64 comes up.
        for sample in 0..if cfg!(miri) { 2 } else { 12 } {
            let mix = (len * 12 + sample) * 2_654_435_761;
            check(routine, len, (mix >> 4) % 64, (mix >> 12) % 64);
        }
        check(routine, len, 0, 0);
    }
    for len in [4095, 4096, 4097, 65_536, 100_003] {
        if cfg!(miri) && len > 4097 {
            break;
        }
        for (dst_offset, src_offset) in [(0, 0), (16, 0), (1, 0), (0, 31), (33, 7)] {
            check(routine, len, dst_offset, src_offset);
        }
    }
}

#[test]
fn every_size_and_alignment() {
    check_sizes(copy, 0);
}

#[test]
fn without_assembly() {
    check_sizes(volatile, 0);
}

#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn without_avx2() {
    check_sizes(moves::sse2, 65);
}

#[test]
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
fn every_misalignment_of_the_loop() {
    for len in [65, 127, 128, 129, 160, 161, 256, 257, 288, 289, 511] {
        for dst_offset in 0..64 {
            for src_offset in 0..64 {
                check(copy, len, dst_offset, src_offset);
            }
        }
    }
}

#[test]
#[cfg(not(miri))]
fn does_not_touch_the_next_page() {
    // Source and target end where an unmapped page begins, then begin where one ends.
    let page = 4096;
    let map = |prot| {
        // SAFETY: a new anonymous mapping harms nobody.
        unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), 3 * page, prot, rustix::mm::MapFlags::PRIVATE) }
            .unwrap()
            .cast::<u8>()
    };
    let open = |base: *mut u8| {
        let flags = rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE;
        // SAFETY: the middle page of the mapping just made.
        unsafe { rustix::mm::mprotect(base.wrapping_add(page).cast(), page, flags) }.unwrap();
    };
    let (source, target) = (map(rustix::mm::ProtFlags::empty()), map(rustix::mm::ProtFlags::empty()));
    open(source);
    open(target);
    for len in 0..=1024 {
        let last = 2 * page - len;
        // SAFETY: R1: within the middle pages.
        unsafe { copy(target.wrapping_add(last), source.wrapping_add(last), len) };
        // SAFETY: R1: within the middle pages.
        unsafe { copy(target.wrapping_add(page), source.wrapping_add(page), len) };
    }
    for base in [source, target] {
        // SAFETY: made above, and nothing refers to it any more.
        unsafe { rustix::mm::munmap(base.cast(), 3 * page) }.unwrap();
    }
}
