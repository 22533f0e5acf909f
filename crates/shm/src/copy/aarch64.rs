//! The moves of AArch64.

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
