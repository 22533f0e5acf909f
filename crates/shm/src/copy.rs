//! The one routine that moves payload bytes into and out of memory that a peer may write at any time.
//!
//! # Why assembly
//!
//! A peer can change a byte while it is copied. For `ptr::copy_nonoverlapping` that is a data race, so
//! undefined: the compiler may read a byte twice and act on both values. An `asm!` block is opaque: the
//! compiler knows only that it reads and writes memory it was given, and must accept whatever it stored.
//! What the processor does in a race is defined: each load yields bytes that were there at some moment.
//! So a racing peer spoils the bytes of its own message and nothing else; whoever needs a value checks the
//! private copy. Some bytes are read twice (the moves overlap), which for the same reason does not matter.
//! Where there is no assembly (other processors, Miri) the moves are volatile, the nearest thing; not
//! relaxed atomics, because `AtomicU8::from_ptr` demands a source that may be written, and the source is
//! often a caller's `&[u8]`. Miri therefore reports a race on payload, which is a bug of the test there.
//!
//! # Invariants
//!
//! - R1. (Caller) `src` is readable and `dst` is writable for `len` bytes, in mapped memory or within one
//!   allocation, and the two ranges do not overlap.
//! - R2. Every block stays within `len` bytes of both pointers: the first move starts at the front, the last
//!   ends at the end, and those between lie between.
//!
//! # Measured
//!
//! `examples/copy_speed.rs`, GB/s here/`copy_nonoverlapping` (glibc 2.36), Ice Lake guest at 2.8 GHz, medians,
//! by how many bytes the destination's page offset is ahead of the source's. Other work ran on the machine:
//! compare within a pair only.
//!
//! | bytes | 0 | 1 | 130 | 300 | 2100 |
//! |---|---|---|---|---|---|
//! | 64 | 28/32 | 22/27 | 27/26 | 35/31 | 24/28 |
//! | 256 | 64/70 | 54/57 | 58/62 | 52/57 | 60/64 |
//! | 1 Ki | 62/72 | 65/69 | 78/85 | 98/52 | 95/92 |
//! | 4 Ki | 154/159 | 70/63 | 98/66 | 119/70 | 119/155 |
//! | 16 Ki | 169/204 | 107/106 | 112/72 | 113/73 | 111/195 |
//! | 256 Ki | 53/47 | 51/46 | 51/45 | 51/46 | 51/46 |
//!
//! Without the downward loop, 130 bytes ahead gave 24 to 29 from 4 to 64 KiB. `rep movsb` (glibc, from 2 KiB)
//! wins in the first-level cache here and collapses to 2 on Zen 3 when 1..31 bytes ahead, so it is not used.
//! Through a ring of 1 MiB between two cores both come to the same (10 to 13 at 4 to 64 KiB).

#![allow(unsafe_code)]

/// Copies `len` bytes from `src` to `dst`. Whatever others write to either range meanwhile, the outcome is
/// only which bytes arrive.
///
/// # Safety
///
/// R1: `src` must be readable and `dst` writable for `len` bytes, and the ranges must not overlap.
#[inline]
pub(crate) unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        if len > 64 {
            // SAFETY: R1 is the caller's promise; `len` > 64.
            unsafe { moves::long(dst, src, len) }
        } else if len > 16 {
            // SAFETY: R1 is the caller's promise; 16 < `len` <= 64.
            unsafe { moves::medium(dst, src, len) }
        } else {
            // SAFETY: R1 is the caller's promise; `len` <= 16.
            unsafe { moves::short(dst, src, len) }
        }
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    // SAFETY: R1 is the caller's promise.
    unsafe {
        volatile(dst, src, len)
    }
}

/// 2, 4, 8 bytes at the front and as many at the end, which overlap; both are read before one is written.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
macro_rules! front_and_end {
    ($dst:ident, $src:ident, $len:ident, $width:literal, $kind:ident, [$($code:literal),*]) => {{
        let last = $len - $width;
        // SAFETY: R1, R2: the caller has checked that `len` is at least the width.
        unsafe {
            asm!(
                $($code),*,
                a = out($kind) _,
                b = out($kind) _,
                d = in(reg) $dst,
                s = in(reg) $src,
                e = in(reg) $dst.wrapping_add(last),
                t = in(reg) $src.wrapping_add(last),
                options(nostack, preserves_flags),
            )
        }
    }};
}

// The paths are spelled out because `examples/copy_speed.rs` includes this file.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[path = "copy/x86_64.rs"]
mod moves;

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[path = "copy/aarch64.rs"]
mod moves;

/// Words where both sides are aligned alike, else bytes.
///
/// # Safety
///
/// R1.
#[cfg(any(test, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
unsafe fn volatile(dst: *mut u8, src: *const u8, len: usize) {
    const WORD: usize = size_of::<usize>();
    let mut at = 0;
    while at < len {
        let (to, from) = (dst.wrapping_add(at), src.wrapping_add(at));
        if len - at >= WORD && to.addr() % WORD == 0 && from.addr() % WORD == 0 {
            // SAFETY: R1, and a whole aligned word is left.
            let word = unsafe { from.cast::<usize>().read_volatile() };
            // SAFETY: as above.
            unsafe { to.cast::<usize>().write_volatile(word) };
            at += WORD;
        } else {
            // SAFETY: R1, and a byte is left.
            let byte = unsafe { from.read_volatile() };
            // SAFETY: as above.
            unsafe { to.write_volatile(byte) };
            at += 1;
        }
    }
}

#[cfg(test)]
#[path = "copy/tests.rs"]
mod tests;
