//! The moves of x86-64.

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
