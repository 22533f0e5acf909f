//! CRC32C of memory that someone else may write at any moment, computed where the bytes lie.
//!
//! A CRC is the remainder of a division, so a block may be replaced by a multiple of it further on: folding turns all whole
//! blocks into one that has the same remainder. Only this one, and what is left behind it, are copied out.
//!
//! # Invariants
//!
//! - **F1** Folding reads within the bounds that were checked, by assembly that assumes nothing about the bytes, and makes
//!   no reference to them. Of bytes that change meanwhile the result is that of some mixture of old and new ones.

#![allow(unsafe_code)]

use crate::{Result, Span};

/// Continues `crc` over `len` bytes of a span. `crc32c` does that for bytes that nobody else writes.
pub fn crc32c(span: &Span, at: usize, len: usize, crc: u32, crc32c: impl Fn(u32, &[u8]) -> u32) -> Result<u32> {
    let whole = len / BLOCK;
    if whole < LEAST_BLOCKS || !fold::is_possible() {
        return copied(span, at, len, crc, crc32c);
    }
    // The bounds of all of it.
    let first = span.part(at, len)?.as_ptr();
    let mut block = [0; BLOCK];
    span.copy_out(at, &mut block)?;
    // The state so far is the same as if it were part of the first bytes, and the state zero.
    for (byte, state) in block.iter_mut().zip((!crc).to_le_bytes()) {
        *byte ^= state;
    }
    // SAFETY: F1: the blocks behind the first lie within the bounds.
    unsafe { fold::fold(first.wrapping_add(BLOCK), whole - 1, &mut block) };
    let crc = crc32c(!0, &block);
    copied(span, at + whole * BLOCK, len % BLOCK, crc, crc32c)
}

fn copied(span: &Span, at: usize, len: usize, mut crc: u32, crc32c: impl Fn(u32, &[u8]) -> u32) -> Result<u32> {
    let mut bytes = [0; PIECE];
    let mut done = 0;
    while done < len {
        let count = PIECE.min(len - done);
        span.copy_out(at + done, &mut bytes[..count])?;
        crc = crc32c(crc, &bytes[..count]);
        done += count;
    }
    Ok(crc)
}

const BLOCK: usize = 256;
/// Fewer blocks are copied out.
const LEAST_BLOCKS: usize = 8;
/// What is copied out at a time.
const PIECE: usize = 1024;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod fold {
    use std::arch::asm;

    /// Powers of x modulo the polynomial, reflected, for a step of 2048 bits: 2048 + 32 and 2048 - 32.
    static POWERS: [u64; 2] = [0xdcb1_7aa4, 0xb9e0_2b86];

    pub(super) fn is_possible() -> bool {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("vpclmulqdq")
    }

    /// Folds `count` blocks into one that stands before them.
    ///
    /// # Safety
    /// F1 for `count` blocks from `from` on, and the processor can do it.
    pub(super) unsafe fn fold(from: *const u8, count: usize, block: &mut [u8; super::BLOCK]) {
        if count == 0 {
            return;
        }
        // SAFETY: F1: every step reads one block of `count`; the other memory is `block` and `POWERS`.
        unsafe {
            asm!(
                "vbroadcasti32x4 zmm8, xmmword ptr [{powers}]",
                "vmovdqu64 zmm0, zmmword ptr [{block}]",
                "vmovdqu64 zmm1, zmmword ptr [{block} + 64]",
                "vmovdqu64 zmm2, zmmword ptr [{block} + 128]",
                "vmovdqu64 zmm3, zmmword ptr [{block} + 192]",
                ".p2align 5",
                "2:",
                "vpclmulqdq zmm4, zmm0, zmm8, 0x00",
                "vpclmulqdq zmm5, zmm1, zmm8, 0x00",
                "vpclmulqdq zmm6, zmm2, zmm8, 0x00",
                "vpclmulqdq zmm7, zmm3, zmm8, 0x00",
                "vpclmulqdq zmm0, zmm0, zmm8, 0x11",
                "vpclmulqdq zmm1, zmm1, zmm8, 0x11",
                "vpclmulqdq zmm2, zmm2, zmm8, 0x11",
                "vpclmulqdq zmm3, zmm3, zmm8, 0x11",
                "vpternlogq zmm0, zmm4, zmmword ptr [rsi], 0x96",
                "vpternlogq zmm1, zmm5, zmmword ptr [rsi + 64], 0x96",
                "vpternlogq zmm2, zmm6, zmmword ptr [rsi + 128], 0x96",
                "vpternlogq zmm3, zmm7, zmmword ptr [rsi + 192], 0x96",
                "add rsi, 256",
                "dec rcx",
                "jnz 2b",
                "vmovdqu64 zmmword ptr [{block}], zmm0",
                "vmovdqu64 zmmword ptr [{block} + 64], zmm1",
                "vmovdqu64 zmmword ptr [{block} + 128], zmm2",
                "vmovdqu64 zmmword ptr [{block} + 192], zmm3",
                "vzeroupper",
                inout("rsi") from => _,
                inout("rcx") count => _,
                block = in(reg) block.as_mut_ptr(),
                powers = in(reg) POWERS.as_ptr(),
                clobber_abi("C"),
                options(nostack),
            )
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod fold {
    pub(super) fn is_possible() -> bool {
        false
    }

    /// # Safety
    /// Not to be called.
    pub(super) unsafe fn fold(_from: *const u8, _count: usize, _block: &mut [u8; super::BLOCK]) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    /// Bit by bit.
    fn simple(crc: u32, bytes: &[u8]) -> u32 {
        let step = |state: u32, byte: &u8| {
            (0..8).fold(state ^ u32::from(*byte), |state, _| (state >> 1) ^ (0x82f6_3b78 & (state & 1).wrapping_neg()))
        };
        !bytes.iter().fold(!crc, step)
    }

    #[test]
    fn folding_changes_nothing() {
        assert_eq!(simple(0, b"123456789"), 0xe306_9283);
        let memory = Memory::heap(20_000).expect("some memory");
        let span = memory.span(0, 20_000).expect("all of it");
        let bytes: Vec<u8> = (0..20_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        span.copy_in(0, &bytes).expect("room");
        for len in [0, 1, 255, 256, 2047, 2048, 2049, 2303, 2304, 4096, 5000, 19_000] {
            for at in [0, 1, 7, 64, 999] {
                for crc in [0, 1, 0xdead_beef, !0] {
                    let found = crc32c(&span, at, len, crc, simple).expect("inside");
                    assert_eq!(found, simple(crc, &bytes[at..at + len]), "{len} bytes at {at}");
                }
            }
        }
        assert!(crc32c(&span, 19_999, 2, 0, simple).is_err() && crc32c(&span, 1, 20_000, 0, simple).is_err());
    }
}
