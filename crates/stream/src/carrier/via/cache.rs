//! Memory of the program that large writes were sent from, registered and remembered: most programs use few buffers.
//!
//! A registration allows nothing to the peer, pins nothing, and its bytes are read only by a send from memory that the
//! program has given to the call in progress. So one that outlives its memory does no harm: it is used again only when the
//! program gives the same addresses to another call, and then there is memory.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use sidestep_shm::Memory;
use sidestep_vi::{MemAttributes, MemHandle, Nic, Ptag, Segment};

/// Registrations, the last used first.
#[derive(Debug, Default)]
pub struct Cache {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    base: u64,
    len: u64,
    handle: MemHandle,
}

/// Registrations that are remembered.
const MOST: usize = 16;

impl Cache {
    /// The registered form of bytes that the program has given to a call.
    pub fn segment(&mut self, nic: &Nic, ptag: Ptag, bytes: &[u8]) -> Option<Segment> {
        let (base, len) = (bytes.as_ptr() as u64, bytes.len() as u64);
        let covers = |entry: &Entry| entry.base <= base && base + len <= entry.base + entry.len;
        let handle = match self.entries.iter().position(covers) {
            Some(0) => self.entries[0].handle,
            Some(at) => {
                self.entries[..=at].rotate_right(1);
                self.entries[0].handle
            }
            None => self.register(nic, ptag, bytes)?,
        };
        Some(Segment { address: base, handle, len: bytes.len() as u32 })
    }

    #[cold]
    fn register(&mut self, nic: &Nic, ptag: Ptag, bytes: &[u8]) -> Option<MemHandle> {
        if self.entries.len() >= MOST
            && let Some(oldest) = self.entries.pop()
        {
            let _ = nic.deregister(oldest.base, oldest.handle);
        }
        let base = NonNull::new(bytes.as_ptr().cast_mut())?;
        // SAFETY: read only, by sends from bytes that a call of the program has lent (see above); nobody else may use it,
        // since it has no remote rights, and no receive is ever posted in it.
        let memory = unsafe { Memory::from_raw(base, bytes.len()) };
        let handle = nic.register(memory, &MemAttributes::new(ptag)).ok()?;
        self.entries.insert(0, Entry { base: base.as_ptr() as u64, len: bytes.len() as u64, handle });
        Some(handle)
    }

    /// Forgets everything.
    pub fn clear(&mut self, nic: &Nic) {
        for entry in self.entries.drain(..) {
            let _ = nic.deregister(entry.base, entry.handle);
        }
    }
}
