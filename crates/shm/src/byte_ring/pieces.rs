//! Bytes that are moved through a small piece of this process's own memory, where no buffer of their length is wanted.

/// Bytes that are at hand at a time: few enough for the first-level cache, enough for vector instructions.
pub const PIECE: usize = 1024;

/// Stores `len` bytes that `make` gives, with the offset of each piece: `make` writes a piece, and `store` gets it.
#[inline]
pub fn fill<E>(
    len: usize,
    mut make: impl FnMut(usize, &mut [u8]),
    mut store: impl FnMut(usize, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut piece = [0; PIECE];
    let mut at = 0;
    while at < len {
        let count = PIECE.min(len - at);
        make(at, &mut piece[..count]);
        store(at, &piece[..count])?;
        at += count;
    }
    Ok(())
}

/// Goes through `len` bytes that `load` gets, with the offset of each piece. Each is loaded once.
#[inline]
pub fn fold<T, E>(
    len: usize,
    begin: T,
    mut load: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    mut each: impl FnMut(T, &[u8]) -> T,
) -> Result<T, E> {
    let mut piece = [0; PIECE];
    let (mut value, mut at) = (begin, 0);
    while at < len {
        let count = PIECE.min(len - at);
        load(at, &mut piece[..count])?;
        value = each(value, &piece[..count]);
        at += count;
    }
    Ok(value)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn every_byte_goes_through_once() {
        for len in [0, 1, PIECE, 2 * PIECE + 7] {
            let mut stored = Vec::new();
            let make = |at: usize, piece: &mut [u8]| {
                piece.iter_mut().enumerate().for_each(|(i, byte)| *byte = ((at + i) % 251) as u8);
            };
            let _: Result<(), Infallible> = fill(len, make, |at, piece| {
                assert_eq!(at, stored.len());
                stored.extend_from_slice(piece);
                Ok(())
            });
            let wanted: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            assert_eq!(stored, wanted);
            let load = |at: usize, piece: &mut [u8]| {
                piece.copy_from_slice(&stored[at..at + piece.len()]);
                Ok::<_, Infallible>(())
            };
            let Ok(seen) = fold(len, Vec::new(), load, |seen: Vec<u8>, piece| [&seen[..], piece].concat());
            assert_eq!(seen, wanted);
        }
    }
}
