//! What a process had taken off its carriers, and not read, when it forked: memory that its whole family reads from, each
//! byte once, before it reads from TCP.

use std::{
    io::IoSliceMut,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use sidestep_shm::{Memory, Span, Word64};

/// Bytes of one stream. They never change; one word says how many of them have been taken, and who moves it has them.
#[derive(Debug)]
pub struct Heirloom {
    taken: Word64,
    bytes: Span,
    _memory: Memory,
}

/// How many streams of this process have one.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether some stream has one.
#[inline]
pub fn are_left() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// A stream has one.
pub fn came() {
    COUNT.fetch_add(1, Ordering::Relaxed);
}

/// A stream has one no more.
pub fn went() {
    COUNT.fetch_sub(1, Ordering::Relaxed);
}

/// In a forked child, whose streams are new.
pub fn after_fork() {
    COUNT.store(0, Ordering::Relaxed);
}

/// Where the bytes begin.
const BYTES: usize = 64;

impl Heirloom {
    /// Puts bytes where the children of this process will see them. `None`: there is no memory.
    pub fn new(bytes: &[u8]) -> Option<Arc<Heirloom>> {
        let memory = Memory::create("sidestep-heirloom", BYTES + bytes.len()).ok()?;
        let heirloom =
            Heirloom { taken: memory.word64(0).ok()?, bytes: memory.span(BYTES, bytes.len()).ok()?, _memory: memory };
        heirloom.bytes.copy_in(0, bytes).ok()?;
        Some(Arc::new(heirloom))
    }

    /// How many are left.
    pub fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.taken.load(Ordering::Acquire) as usize)
    }

    /// Takes bytes, or only shows or drops them, as the flags of `recv` say. Zero: none are left, for good.
    pub fn take(&self, parts: &mut [IoSliceMut<'_>], flags: i32) -> usize {
        loop {
            let taken = self.taken.load(Ordering::Acquire);
            let mut count = 0;
            for part in parts.iter_mut() {
                let at = (taken as usize).saturating_add(count);
                let piece = self.bytes.len().saturating_sub(at).min(part.len());
                if flags & libc::MSG_TRUNC == 0 && self.bytes.copy_out(at, &mut part[..piece]).is_err() {
                    return 0;
                }
                count += piece;
            }
            let moves = count > 0 && flags & libc::MSG_PEEK == 0;
            if !moves || self.taken.compare_swap(taken, taken + count as u64) == taken {
                return count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_taken_once() {
        let heirloom = Heirloom::new(b"every byte once").unwrap();
        let mut bytes = [0; 6];
        assert_eq!(heirloom.take(&mut [IoSliceMut::new(&mut bytes)], libc::MSG_PEEK), 6);
        assert_eq!(heirloom.left(), 15);
        let (first, second) = bytes.split_at_mut(2);
        assert_eq!(heirloom.take(&mut [IoSliceMut::new(first), IoSliceMut::new(second)], 0), 6);
        assert_eq!(&bytes, b"every ");
        let mut rest = [0; 20];
        assert_eq!(heirloom.take(&mut [IoSliceMut::new(&mut rest)], 0), 9);
        assert_eq!(&rest[..9], b"byte once");
        assert_eq!((heirloom.left(), heirloom.take(&mut [IoSliceMut::new(&mut rest)], 0)), (0, 0));
    }
}
