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

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod moves {
    use std::arch::asm;

    /// A load waits for an older store to an address that differs from its own in whole pages only. In an
    /// upward copy that happens when the destination's page offset is ahead of the source's by less than
    /// what the store buffer holds; such copies run downwards.
    const ALIAS: usize = 2048;

    /// # Safety
    /// R1, and `len` <= 16.
    #[inline(always)]
    pub(super) unsafe fn short(dst: *mut u8, src: *const u8, len: usize) {
        if len >= 8 {
            front_and_end!(
                dst,
                src,
                len,
                8,
                reg,
                [
                    "mov {a}, qword ptr [{s}]",
                    "mov {b}, qword ptr [{t}]",
                    "mov qword ptr [{d}], {a}",
                    "mov qword ptr [{e}], {b}"
                ]
            );
        } else if len >= 4 {
            front_and_end!(
                dst,
                src,
                len,
                4,
                reg,
                [
                    "mov {a:e}, dword ptr [{s}]",
                    "mov {b:e}, dword ptr [{t}]",
                    "mov dword ptr [{d}], {a:e}",
                    "mov dword ptr [{e}], {b:e}"
                ]
            );
        } else if len >= 2 {
            front_and_end!(
                dst,
                src,
                len,
                2,
                reg,
                [
                    "movzx {a:e}, word ptr [{s}]",
                    "movzx {b:e}, word ptr [{t}]",
                    "mov word ptr [{d}], {a:x}",
                    "mov word ptr [{e}], {b:x}"
                ]
            );
        } else if len == 1 {
            // SAFETY: R1; one byte.
            unsafe {
                asm!(
                    "movzx {a:e}, byte ptr [{s}]",
                    "mov byte ptr [{d}], {a:l}",
                    a = out(reg) _,
                    d = in(reg) dst,
                    s = in(reg) src,
                    options(nostack, preserves_flags),
                )
            }
        }
    }

    /// # Safety
    /// R1, and 16 < `len` <= 64.
    #[inline(always)]
    pub(super) unsafe fn medium(dst: *mut u8, src: *const u8, len: usize) {
        if len <= 32 {
            front_and_end!(
                dst,
                src,
                len,
                16,
                xmm_reg,
                [
                    "movups {a}, xmmword ptr [{s}]",
                    "movups {b}, xmmword ptr [{t}]",
                    "movups xmmword ptr [{d}], {a}",
                    "movups xmmword ptr [{e}], {b}"
                ]
            );
        } else {
            // SAFETY: R1, R2: two moves of 16 at the front, two at the end, `len` >= 32.
            unsafe {
                asm!(
                    "movups {a}, xmmword ptr [{s}]",
                    "movups {b}, xmmword ptr [{s} + 16]",
                    "movups {x}, xmmword ptr [{s} + {n} - 32]",
                    "movups {y}, xmmword ptr [{s} + {n} - 16]",
                    "movups xmmword ptr [{d}], {a}",
                    "movups xmmword ptr [{d} + 16], {b}",
                    "movups xmmword ptr [{d} + {n} - 32], {x}",
                    "movups xmmword ptr [{d} + {n} - 16], {y}",
                    a = out(xmm_reg) _,
                    b = out(xmm_reg) _,
                    x = out(xmm_reg) _,
                    y = out(xmm_reg) _,
                    d = in(reg) dst,
                    s = in(reg) src,
                    n = in(reg) len,
                    options(nostack, preserves_flags),
                )
            }
        }
    }

    /// # Safety
    /// R1, and `len` > 64.
    #[inline(never)]
    pub(super) unsafe fn long(dst: *mut u8, src: *const u8, len: usize) {
        // The standard library keeps the answer in a static: one load and one test.
        if std::arch::is_x86_feature_detected!("avx2") {
            if len <= 128 {
                // SAFETY: R1 by the caller; 64 < `len` <= 128; the processor has AVX2.
                unsafe { four(dst, src, len) }
            } else if len <= 256 {
                // SAFETY: R1 by the caller; 128 < `len` <= 256; the processor has AVX2.
                unsafe { eight(dst, src, len) }
            } else if dst.addr().wrapping_sub(src.addr()).wrapping_sub(1) % 4096 < ALIAS {
                // SAFETY: R1 by the caller; `len` > 128; the processor has AVX2.
                unsafe { avx2_backward(dst, src, len) }
            } else {
                // SAFETY: R1 by the caller; `len` > 128; the processor has AVX2.
                unsafe { avx2(dst, src, len) }
            }
        } else {
            // SAFETY: R1 by the caller; `len` > 64.
            unsafe { sse2(dst, src, len) }
        }
    }

    /// # Safety
    /// R1, 64 <= `len` <= 128, and the processor has AVX2.
    #[inline(always)]
    unsafe fn four(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: R1, R2: two moves of 32 at the front, two at the end, `len` >= 64. All vector registers
        // are given up, since `vzeroupper` touches them all.
        unsafe {
            asm!(
                "vmovdqu ymm0, ymmword ptr [rsi]",
                "vmovdqu ymm1, ymmword ptr [rsi + 32]",
                "vmovdqu ymm2, ymmword ptr [rsi + rdx - 64]",
                "vmovdqu ymm3, ymmword ptr [rsi + rdx - 32]",
                "vmovdqu ymmword ptr [rdi], ymm0",
                "vmovdqu ymmword ptr [rdi + 32], ymm1",
                "vmovdqu ymmword ptr [rdi + rdx - 64], ymm2",
                "vmovdqu ymmword ptr [rdi + rdx - 32], ymm3",
                "vzeroupper",
                in("rdi") dst,
                in("rsi") src,
                in("rdx") len,
                clobber_abi("C"),
                options(nostack, preserves_flags),
            )
        }
    }

    /// # Safety
    /// R1, 128 <= `len` <= 256, and the processor has AVX2.
    #[inline(always)]
    unsafe fn eight(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: R1, R2: four moves of 32 at the front, four at the end, `len` >= 128. All vector registers
        // are given up, since `vzeroupper` touches them all.
        unsafe {
            asm!(
                "vmovdqu ymm0, ymmword ptr [rsi]",
                "vmovdqu ymm1, ymmword ptr [rsi + 32]",
                "vmovdqu ymm2, ymmword ptr [rsi + 64]",
                "vmovdqu ymm3, ymmword ptr [rsi + 96]",
                "vmovdqu ymm4, ymmword ptr [rsi + rdx - 128]",
                "vmovdqu ymm5, ymmword ptr [rsi + rdx - 96]",
                "vmovdqu ymm6, ymmword ptr [rsi + rdx - 64]",
                "vmovdqu ymm7, ymmword ptr [rsi + rdx - 32]",
                "vmovdqu ymmword ptr [rdi], ymm0",
                "vmovdqu ymmword ptr [rdi + 32], ymm1",
                "vmovdqu ymmword ptr [rdi + 64], ymm2",
                "vmovdqu ymmword ptr [rdi + 96], ymm3",
                "vmovdqu ymmword ptr [rdi + rdx - 128], ymm4",
                "vmovdqu ymmword ptr [rdi + rdx - 96], ymm5",
                "vmovdqu ymmword ptr [rdi + rdx - 64], ymm6",
                "vmovdqu ymmword ptr [rdi + rdx - 32], ymm7",
                "vzeroupper",
                in("rdi") dst,
                in("rsi") src,
                in("rdx") len,
                clobber_abi("C"),
                options(nostack, preserves_flags),
            )
        }
    }

    /// 32 bytes at the front, then 128 at a time to an aligned destination, then the last 128.
    ///
    /// # Safety
    /// R1, `len` > 128, and the processor has AVX2.
    #[inline(always)]
    pub(super) unsafe fn avx2(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: R1, R2: the step to the aligned destination is 1..=32, covered by the first move; `n` then
        // counts what is left beyond 128, so the loop ends with 1..=128 bytes left, and the last four moves
        // end at the end. All vector registers are given up, since `vzeroupper` touches them all.
        unsafe {
            asm!(
                "vmovdqu ymm0, ymmword ptr [rsi]",
                "mov rcx, rdi",
                "and rcx, 31",
                "sub rcx, 32",
                "vmovdqu ymmword ptr [rdi], ymm0",
                "sub rsi, rcx",
                "sub rdi, rcx",
                "lea rdx, [rdx + rcx - 128]",
                "test rdx, rdx",
                "jle 3f",
                ".p2align 5",
                "2:",
                "vmovdqu ymm0, ymmword ptr [rsi]",
                "vmovdqu ymm1, ymmword ptr [rsi + 32]",
                "vmovdqu ymm2, ymmword ptr [rsi + 64]",
                "vmovdqu ymm3, ymmword ptr [rsi + 96]",
                "sub rsi, -128",
                "vmovdqa ymmword ptr [rdi], ymm0",
                "vmovdqa ymmword ptr [rdi + 32], ymm1",
                "vmovdqa ymmword ptr [rdi + 64], ymm2",
                "vmovdqa ymmword ptr [rdi + 96], ymm3",
                "sub rdi, -128",
                "add rdx, -128",
                "jg 2b",
                "3:",
                "vmovdqu ymm0, ymmword ptr [rsi + rdx]",
                "vmovdqu ymm1, ymmword ptr [rsi + rdx + 32]",
                "vmovdqu ymm2, ymmword ptr [rsi + rdx + 64]",
                "vmovdqu ymm3, ymmword ptr [rsi + rdx + 96]",
                "vmovdqu ymmword ptr [rdi + rdx], ymm0",
                "vmovdqu ymmword ptr [rdi + rdx + 32], ymm1",
                "vmovdqu ymmword ptr [rdi + rdx + 64], ymm2",
                "vmovdqu ymmword ptr [rdi + rdx + 96], ymm3",
                "vzeroupper",
                inout("rdi") dst => _,
                inout("rsi") src => _,
                inout("rdx") len => _,
                out("rcx") _,
                clobber_abi("C"),
                options(nostack),
            )
        }
    }

    /// 32 bytes at the end, then 128 at a time downwards to an aligned destination, then the first 128.
    ///
    /// # Safety
    /// R1, `len` > 128, and the processor has AVX2.
    #[inline(always)]
    unsafe fn avx2_backward(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: R1, R2: as in `avx2`, mirrored: the step down to the aligned destination is 1..=32, the
        // loop ends with 1..=128 bytes left at the front, and the last four moves start at the front.
        unsafe {
            asm!(
                "vmovdqu ymm0, ymmword ptr [rsi + rdx - 32]",
                "lea r8, [rdi + rdx]",
                "lea r9, [rsi + rdx]",
                "vmovdqu ymmword ptr [r8 - 32], ymm0",
                "lea rcx, [r8 - 1]",
                "and rcx, 31",
                "inc rcx",
                "sub r8, rcx",
                "sub r9, rcx",
                "sub rdx, rcx",
                "sub rdx, 128",
                "jle 3f",
                ".p2align 5",
                "2:",
                "vmovdqu ymm0, ymmword ptr [r9 - 32]",
                "vmovdqu ymm1, ymmword ptr [r9 - 64]",
                "vmovdqu ymm2, ymmword ptr [r9 - 96]",
                "vmovdqu ymm3, ymmword ptr [r9 - 128]",
                "add r9, -128",
                "vmovdqa ymmword ptr [r8 - 32], ymm0",
                "vmovdqa ymmword ptr [r8 - 64], ymm1",
                "vmovdqa ymmword ptr [r8 - 96], ymm2",
                "vmovdqa ymmword ptr [r8 - 128], ymm3",
                "add r8, -128",
                "add rdx, -128",
                "jg 2b",
                "3:",
                "vmovdqu ymm0, ymmword ptr [rsi + 96]",
                "vmovdqu ymm1, ymmword ptr [rsi + 64]",
                "vmovdqu ymm2, ymmword ptr [rsi + 32]",
                "vmovdqu ymm3, ymmword ptr [rsi]",
                "vmovdqu ymmword ptr [rdi + 96], ymm0",
                "vmovdqu ymmword ptr [rdi + 64], ymm1",
                "vmovdqu ymmword ptr [rdi + 32], ymm2",
                "vmovdqu ymmword ptr [rdi], ymm3",
                "vzeroupper",
                in("rdi") dst,
                in("rsi") src,
                inout("rdx") len => _,
                out("rcx") _,
                out("r8") _,
                out("r9") _,
                clobber_abi("C"),
                options(nostack),
            )
        }
    }

    /// The same with half as wide moves, 64 at a time.
    ///
    /// # Safety
    /// R1, and `len` > 64.
    #[inline(never)]
    pub(super) unsafe fn sse2(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: R1, R2: as in `avx2`, with steps of 16 and 64.
        unsafe {
            asm!(
                "movups xmm0, xmmword ptr [{s}]",
                "mov {t}, {d}",
                "and {t}, 15",
                "sub {t}, 16",
                "movups xmmword ptr [{d}], xmm0",
                "sub {s}, {t}",
                "sub {d}, {t}",
                "lea {n}, [{n} + {t} - 64]",
                "test {n}, {n}",
                "jle 3f",
                ".p2align 5",
                "2:",
                "movups xmm0, xmmword ptr [{s}]",
                "movups xmm1, xmmword ptr [{s} + 16]",
                "movups xmm2, xmmword ptr [{s} + 32]",
                "movups xmm3, xmmword ptr [{s} + 48]",
                "add {s}, 64",
                "movaps xmmword ptr [{d}], xmm0",
                "movaps xmmword ptr [{d} + 16], xmm1",
                "movaps xmmword ptr [{d} + 32], xmm2",
                "movaps xmmword ptr [{d} + 48], xmm3",
                "add {d}, 64",
                "add {n}, -64",
                "jg 2b",
                "3:",
                "movups xmm0, xmmword ptr [{s} + {n}]",
                "movups xmm1, xmmword ptr [{s} + {n} + 16]",
                "movups xmm2, xmmword ptr [{s} + {n} + 32]",
                "movups xmm3, xmmword ptr [{s} + {n} + 48]",
                "movups xmmword ptr [{d} + {n}], xmm0",
                "movups xmmword ptr [{d} + {n} + 16], xmm1",
                "movups xmmword ptr [{d} + {n} + 32], xmm2",
                "movups xmmword ptr [{d} + {n} + 48], xmm3",
                d = inout(reg) dst => _,
                s = inout(reg) src => _,
                n = inout(reg) len => _,
                t = out(reg) _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                options(nostack),
            )
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod moves {
    use std::arch::asm;

    /// # Safety
    /// R1, and `len` <= 16.
    #[inline(always)]
    pub(super) unsafe fn short(dst: *mut u8, src: *const u8, len: usize) {
        if len >= 8 {
            front_and_end!(
                dst,
                src,
                len,
                8,
                reg,
                ["ldr {a:x}, [{s}]", "ldr {b:x}, [{t}]", "str {a:x}, [{d}]", "str {b:x}, [{e}]"]
            );
        } else if len >= 4 {
            front_and_end!(
                dst,
                src,
                len,
                4,
                reg,
                ["ldr {a:w}, [{s}]", "ldr {b:w}, [{t}]", "str {a:w}, [{d}]", "str {b:w}, [{e}]"]
            );
        } else if len >= 2 {
            front_and_end!(
                dst,
                src,
                len,
                2,
                reg,
                ["ldrh {a:w}, [{s}]", "ldrh {b:w}, [{t}]", "strh {a:w}, [{d}]", "strh {b:w}, [{e}]"]
            );
        } else if len == 1 {
            // SAFETY: R1; one byte.
            unsafe {
                asm!(
                    "ldrb {a:w}, [{s}]",
                    "strb {a:w}, [{d}]",
                    a = out(reg) _,
                    d = in(reg) dst,
                    s = in(reg) src,
                    options(nostack, preserves_flags),
                )
            }
        }
    }

    /// # Safety
    /// R1, and 16 < `len` <= 64.
    #[inline(always)]
    pub(super) unsafe fn medium(dst: *mut u8, src: *const u8, len: usize) {
        if len <= 32 {
            front_and_end!(
                dst,
                src,
                len,
                16,
                vreg,
                ["ldr {a:q}, [{s}]", "ldr {b:q}, [{t}]", "str {a:q}, [{d}]", "str {b:q}, [{e}]"]
            );
        } else {
            // SAFETY: R1, R2: two moves of 16 at the front, two at the end, `len` >= 32.
            unsafe {
                asm!(
                    "ldp {a:q}, {b:q}, [{s}]",
                    "ldp {x:q}, {y:q}, [{t}, #-32]",
                    "stp {a:q}, {b:q}, [{d}]",
                    "stp {x:q}, {y:q}, [{e}, #-32]",
                    a = out(vreg) _,
                    b = out(vreg) _,
                    x = out(vreg) _,
                    y = out(vreg) _,
                    d = in(reg) dst,
                    s = in(reg) src,
                    e = in(reg) dst.wrapping_add(len),
                    t = in(reg) src.wrapping_add(len),
                    options(nostack, preserves_flags),
                )
            }
        }
    }

    /// 64 bytes at the front, then 64 at a time to an aligned destination, then the last 64.
    ///
    /// # Safety
    /// R1, and `len` > 64.
    #[inline(never)]
    pub(super) unsafe fn long(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: R1, R2: the step to the aligned destination is 1..=16, covered by the first move; `n` then
        // counts what is left beyond 64, so the loop ends with 1..=64 bytes left, and the last four moves end
        // at the end (`e`, `t`).
        unsafe {
            asm!(
                "ldr q0, [{s}]",
                "and {k}, {d}, #15",
                "sub {k}, {k}, #16",
                "str q0, [{d}]",
                "sub {s}, {s}, {k}",
                "sub {d}, {d}, {k}",
                "add {n}, {n}, {k}",
                "subs {n}, {n}, #64",
                "b.le 3f",
                ".p2align 5",
                "2:",
                "ldp q0, q1, [{s}]",
                "ldp q2, q3, [{s}, #32]",
                "add {s}, {s}, #64",
                "stp q0, q1, [{d}]",
                "stp q2, q3, [{d}, #32]",
                "add {d}, {d}, #64",
                "subs {n}, {n}, #64",
                "b.gt 2b",
                "3:",
                "ldp q0, q1, [{t}, #-64]",
                "ldp q2, q3, [{t}, #-32]",
                "stp q0, q1, [{e}, #-64]",
                "stp q2, q3, [{e}, #-32]",
                d = inout(reg) dst => _,
                s = inout(reg) src => _,
                n = inout(reg) len => _,
                e = in(reg) dst.wrapping_add(len),
                t = in(reg) src.wrapping_add(len),
                k = out(reg) _,
                out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                options(nostack),
            )
        }
    }
}

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

// The path is spelled out because `examples/copy_speed.rs` includes this file.
#[cfg(test)]
#[path = "copy/tests.rs"]
mod tests;
