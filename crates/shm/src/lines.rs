//! Lines of 64 bytes in registers: how payload in memory that a peer may write is checked or made where it lies.
//!
//! As in [`copy`](crate::copy), the moves are assembly: a peer that changes a byte meanwhile changes which value is loaded,
//! once, and nothing else. What was loaded is in registers of this process, so it stays what it is.

#![allow(unsafe_code)]

/// Bytes of a line.
pub(crate) const LINE: usize = 64;
/// Words of a line.
const WORDS: usize = LINE / 8;

/// Moves the eight words of a line between memory and registers.
///
/// # Safety
///
/// All moves must be within the 64 bytes from `$at` on, which must be readable, or writable.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
macro_rules! move_line {
    ($way:tt [$a:ident, $b:ident, $c:ident, $d:ident, $e:ident, $f:ident, $g:ident, $h:ident], $at:expr,
    [$($instruction:literal),+] $(, $option:ident)?) => {
        std::arch::asm!(
            $($instruction,)+
            a = $way(reg) $a,
            b = $way(reg) $b,
            c = $way(reg) $c,
            d = $way(reg) $d,
            e = $way(reg) $e,
            f = $way(reg) $f,
            g = $way(reg) $g,
            h = $way(reg) $h,
            at = in(reg) $at,
            options(nostack, preserves_flags $(, $option)?),
        )
    };
}

/// The eight words of a line, as they lie in memory. It need not be aligned.
///
/// # Safety
///
/// `src` must be readable for 64 bytes.
#[inline(always)]
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
pub(crate) unsafe fn load(src: *const u8) -> [u64; WORDS] {
    let (a, b, c, d, e, f, g, h);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise: eight loads of eight bytes.
    unsafe {
        move_line!(
            out [a, b, c, d, e, f, g, h],
            src,
            [
                "mov {a}, qword ptr [{at}]",
                "mov {b}, qword ptr [{at} + 8]",
                "mov {c}, qword ptr [{at} + 16]",
                "mov {d}, qword ptr [{at} + 24]",
                "mov {e}, qword ptr [{at} + 32]",
                "mov {f}, qword ptr [{at} + 40]",
                "mov {g}, qword ptr [{at} + 48]",
                "mov {h}, qword ptr [{at} + 56]"
            ],
            readonly
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller's promise: four loads of sixteen bytes.
    unsafe {
        move_line!(
            out [a, b, c, d, e, f, g, h],
            src,
            [
                "ldp {a}, {b}, [{at}]",
                "ldp {c}, {d}, [{at}, #16]",
                "ldp {e}, {f}, [{at}, #32]",
                "ldp {g}, {h}, [{at}, #48]"
            ],
            readonly
        );
    }
    [a, b, c, d, e, f, g, h]
}

/// Stores a line, as its words lie in memory. It need not be aligned.
///
/// # Safety
///
/// `dst` must be writable for 64 bytes.
#[inline(always)]
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
pub(crate) unsafe fn store(dst: *mut u8, words: [u64; WORDS]) {
    let [a, b, c, d, e, f, g, h] = words;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise: eight stores of eight bytes.
    unsafe {
        move_line!(
            in [a, b, c, d, e, f, g, h],
            dst,
            [
                "mov qword ptr [{at}], {a}",
                "mov qword ptr [{at} + 8], {b}",
                "mov qword ptr [{at} + 16], {c}",
                "mov qword ptr [{at} + 24], {d}",
                "mov qword ptr [{at} + 32], {e}",
                "mov qword ptr [{at} + 40], {f}",
                "mov qword ptr [{at} + 48], {g}",
                "mov qword ptr [{at} + 56], {h}"
            ]
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller's promise: four stores of sixteen bytes.
    unsafe {
        move_line!(
            in [a, b, c, d, e, f, g, h],
            dst,
            [
                "stp {a}, {b}, [{at}]",
                "stp {c}, {d}, [{at}, #16]",
                "stp {e}, {f}, [{at}, #32]",
                "stp {g}, {h}, [{at}, #48]"
            ]
        );
    }
}

/// As above.
///
/// # Safety
///
/// As above.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
pub(crate) unsafe fn load(src: *const u8) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    // SAFETY: the caller's promise; the words are ours.
    unsafe { crate::copy::copy(words.as_mut_ptr().cast(), src, LINE) };
    words
}

/// As above.
///
/// # Safety
///
/// As above.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
pub(crate) unsafe fn store(dst: *mut u8, words: [u64; WORDS]) {
    // SAFETY: the caller's promise; the words are ours.
    unsafe { crate::copy::copy(dst, words.as_ptr().cast(), LINE) };
}
