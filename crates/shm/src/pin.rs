//! Pages that stay in memory: `mlock` of a part of shared memory, for whoever copies while a process does not look.

#![allow(unsafe_code)]

use std::ffi::c_void;

use crate::{Error, Result, memory::Span};

impl Span {
    /// Keeps the pages of a part of the span in memory until [`unpin`](Self::unpin), or until the mapping is gone.
    pub fn pin(&self, at: usize, len: usize) -> Result<()> {
        let place = self.checked(at, len)?;
        // SAFETY: the range is within the span, so within its mapping; locking changes no byte of it.
        let pinned = unsafe { rustix::mm::mlock(place, len) };
        pinned.map_err(|errno| Error::from_errno("lock pages in memory", errno))
    }

    /// Takes that back.
    pub fn unpin(&self, at: usize, len: usize) -> Result<()> {
        let place = self.checked(at, len)?;
        // SAFETY: as in `pin`.
        let unpinned = unsafe { rustix::mm::munlock(place, len) };
        unpinned.map_err(|errno| Error::from_errno("unlock pages", errno))
    }

    fn checked(&self, at: usize, len: usize) -> Result<*mut c_void> {
        if at.checked_add(len).is_none_or(|end| end > self.len()) {
            return Err(Error::Size { what: "the range of pages", must: "within the memory", value: at });
        }
        Ok(self.place(at).cast_mut().cast())
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::Memory;

    fn locked_kb() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").expect("a readable /proc");
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a line");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    #[test]
    fn pages_are_locked_and_given_back() {
        let before = locked_kb();
        let memory = Memory::create("sidestep-pin", 16 * 4096).unwrap();
        let span = memory.span(0, 16 * 4096).unwrap();
        span.pin(4096, 8192).unwrap();
        assert_eq!(locked_kb(), before + 8);
        span.unpin(4096, 4096).unwrap();
        assert_eq!(locked_kb(), before + 4);
        assert!(span.pin(15 * 4096, 8192).is_err());
        drop((span, memory));
        assert_eq!(locked_kb(), before);
    }
}
