//! Files whose bytes the kernel has in memory, read straight into memory that others see.

#![allow(unsafe_code)]

use std::{mem::MaybeUninit, os::fd::RawFd};

use crate::Span;

/// A file of which only what the kernel has in memory is read: no read of it waits for a disk.
#[derive(Debug, Clone, Copy)]
pub struct CachedFile {
    descriptor: RawFd,
    flags: i32,
}

/// Its files are nowhere else, and it does not know `RWF_NOWAIT`.
const TMPFS: u64 = libc::TMPFS_MAGIC as u64;

impl CachedFile {
    /// The file behind a number, which may be no file or nothing at all: then nothing is read.
    pub fn new(descriptor: RawFd) -> CachedFile {
        let mut system = MaybeUninit::<libc::statfs>::zeroed();
        // SAFETY: the kernel fills `system`, or leaves it as it is.
        let found = unsafe { libc::fstatfs(descriptor, system.as_mut_ptr()) } == 0;
        // SAFETY: a C struct of integers, for which zeros are valid.
        let in_memory = found && unsafe { system.assume_init() }.f_type as u64 == TMPFS;
        CachedFile { descriptor, flags: if in_memory { 0 } else { libc::RWF_NOWAIT } }
    }

    /// Reads at an offset, or where the descriptor stands, to `at .. at + len` of the target. Returns how many bytes came; 0
    /// also at the end of the file, if they are not in memory, or if this is no file: an ordinary read knows more.
    pub fn read_into(&self, target: &Span, at: usize, len: usize, offset: Option<u64>) -> usize {
        // The position is one register on 64-bit machines; -1 is the descriptor's own.
        let Ok(offset) = offset.map_or(Ok(-1), i64::try_from) else { return 0 };
        let Ok(start) = target.part(at, len) else { return 0 };
        let part = libc::iovec { iov_base: start.as_ptr().cast(), iov_len: len };
        // SAFETY: M1: the range is in bounds; the kernel writes there as a peer does, and M2 allows for that.
        let read =
            unsafe { libc::syscall(libc::SYS_preadv2, self.descriptor, &part, 1_usize, offset, 0_usize, self.flags) };
        usize::try_from(read).unwrap_or(0).min(len)
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, os::fd::AsRawFd};

    use super::*;
    use crate::Memory;

    fn bytes_of(span: &Span) -> Vec<u8> {
        let mut bytes = vec![0; span.len()];
        span.copy_out(0, &mut bytes).expect("in range");
        bytes
    }

    #[test]
    fn what_is_in_memory_is_read() {
        for folder in [std::env::temp_dir(), "/dev/shm".into()] {
            let path = folder.join(format!("sidestep-cached-{}", std::process::id()));
            let mut file = std::fs::File::create_new(&path).expect("a new file");
            file.write_all(b"0123456789").expect("space");
            let file = std::fs::File::open(&path).expect("it is there");
            std::fs::remove_file(&path).expect("it is there");
            let memory = Memory::heap(8).expect("memory");
            let target = memory.span(0, 8).expect("in range");
            let cached = CachedFile::new(file.as_raw_fd());
            assert_eq!(cached.read_into(&target, 2, 4, Some(3)), 4);
            assert_eq!(bytes_of(&target), b"\0\x003456\0\0");
            assert_eq!(cached.read_into(&target, 0, 8, None), 8);
            assert_eq!(cached.read_into(&target, 0, 8, None), 2);
            assert_eq!(bytes_of(&target), b"89234567");
            assert_eq!(cached.read_into(&target, 0, 8, None), 0, "the end");
            assert_eq!(cached.read_into(&target, 4, 8, Some(0)), 0, "out of range");
            assert_eq!(cached.read_into(&target, 0, 8, Some(u64::MAX)), 0, "no position");
        }
    }

    #[test]
    fn what_is_no_file_gives_nothing() {
        let (here, mut there) = std::os::unix::net::UnixStream::pair().expect("a pair");
        there.write_all(b"0123").expect("space");
        let memory = Memory::heap(8).expect("memory");
        let target = memory.span(0, 8).expect("in range");
        assert_eq!(CachedFile::new(here.as_raw_fd()).read_into(&target, 0, 8, Some(0)), 0);
    }
}
