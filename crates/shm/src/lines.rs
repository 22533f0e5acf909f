//! Lines of 64 bytes in registers: how payload in memory that a peer may write is checked or made where it lies.
//!
//! As in [`copy`](crate::copy), the moves are assembly: a peer that changes a byte meanwhile changes which value is loaded,
//! once, and nothing else. What was loaded is in registers of this process, so it stays what it is.

#![allow(unsafe_code)]

/// Bytes of a line.
pub(crate) const LINE: usize = 64;
/// Words of a line.
const WORDS: usize = LINE / 8;

/// The eight words of a line, as they lie in memory. It need not be aligned.
///
/// # Safety
///
/// `src` must be readable for 64 bytes.
#[inline(always)]
pub(crate) unsafe fn load(src: *const u8) -> [u64; WORDS] {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let (a, b, c, d, e, f, g, h);
        // SAFETY: the caller's promise: eight loads of eight bytes from `src` on.
        unsafe {
            std::arch::asm!(
                "mov {a}, qword ptr [{s}]",
                "mov {b}, qword ptr [{s} + 8]",
                "mov {c}, qword ptr [{s} + 16]",
                "mov {d}, qword ptr [{s} + 24]",
                "mov {e}, qword ptr [{s} + 32]",
                "mov {f}, qword ptr [{s} + 40]",
                "mov {g}, qword ptr [{s} + 48]",
                "mov {h}, qword ptr [{s} + 56]",
                a = out(reg) a,
                b = out(reg) b,
                c = out(reg) c,
                d = out(reg) d,
                e = out(reg) e,
                f = out(reg) f,
                g = out(reg) g,
                h = lateout(reg) h,
                s = in(reg) src,
                options(nostack, preserves_flags, readonly),
            );
        }
        [a, b, c, d, e, f, g, h]
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let (a, b, c, d, e, f, g, h);
        // SAFETY: the caller's promise: four loads of sixteen bytes from `src` on.
        unsafe {
            std::arch::asm!(
                "ldp {a}, {b}, [{s}]",
                "ldp {c}, {d}, [{s}, #16]",
                "ldp {e}, {f}, [{s}, #32]",
                "ldp {g}, {h}, [{s}, #48]",
                a = out(reg) a,
                b = out(reg) b,
                c = out(reg) c,
                d = out(reg) d,
                e = out(reg) e,
                f = out(reg) f,
                g = out(reg) g,
                h = out(reg) h,
                s = in(reg) src,
                options(nostack, preserves_flags, readonly),
            );
        }
        [a, b, c, d, e, f, g, h]
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    {
        let mut words = [0; WORDS];
        // SAFETY: the caller's promise; the words are ours.
        unsafe { crate::copy::copy(words.as_mut_ptr().cast(), src, LINE) };
        words
    }
}

/// Stores a line, as its words lie in memory. It need not be aligned.
///
/// # Safety
///
/// `dst` must be writable for 64 bytes.
#[inline(always)]
pub(crate) unsafe fn store(dst: *mut u8, words: [u64; WORDS]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let [a, b, c, d, e, f, g, h] = words;
        // SAFETY: the caller's promise: eight stores of eight bytes from `dst` on.
        unsafe {
            std::arch::asm!(
                "mov qword ptr [{s}], {a}",
                "mov qword ptr [{s} + 8], {b}",
                "mov qword ptr [{s} + 16], {c}",
                "mov qword ptr [{s} + 24], {d}",
                "mov qword ptr [{s} + 32], {e}",
                "mov qword ptr [{s} + 40], {f}",
                "mov qword ptr [{s} + 48], {g}",
                "mov qword ptr [{s} + 56], {h}",
                a = in(reg) a,
                b = in(reg) b,
                c = in(reg) c,
                d = in(reg) d,
                e = in(reg) e,
                f = in(reg) f,
                g = in(reg) g,
                h = in(reg) h,
                s = in(reg) dst,
                options(nostack, preserves_flags),
            );
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let [a, b, c, d, e, f, g, h] = words;
        // SAFETY: the caller's promise: four stores of sixteen bytes from `dst` on.
        unsafe {
            std::arch::asm!(
                "stp {a}, {b}, [{s}]",
                "stp {c}, {d}, [{s}, #16]",
                "stp {e}, {f}, [{s}, #32]",
                "stp {g}, {h}, [{s}, #48]",
                a = in(reg) a,
                b = in(reg) b,
                c = in(reg) c,
                d = in(reg) d,
                e = in(reg) e,
                f = in(reg) f,
                g = in(reg) g,
                h = in(reg) h,
                s = in(reg) dst,
                options(nostack, preserves_flags),
            );
        }
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    // SAFETY: the caller's promise; the words are ours.
    unsafe {
        crate::copy::copy(dst, words.as_ptr().cast(), LINE)
    };
}
