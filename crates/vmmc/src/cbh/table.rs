//! The host's table of buffers: a hash table for each process, with descriptors from one pool that all of them share.

use std::collections::HashMap;

use super::Descriptor;
use crate::error::{Error, Result};
use crate::id::{BufferId, Cbh, ProcessId};

/// Buckets of one process.
const BUCKETS: usize = 256;
/// The end of a chain.
const END: u32 = u32::MAX;

/// Every buffer of every process.
#[derive(Debug)]
pub struct BufferTable {
    pool: Vec<Cell>,
    free: Vec<u32>,
    limit: usize,
    heads: HashMap<ProcessId, Box<[u32; BUCKETS]>>,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    buffer: BufferId,
    descriptor: Descriptor,
    next: u32,
}

impl BufferTable {
    /// An empty table, for so many buffers.
    #[must_use]
    pub fn new(limit: usize) -> BufferTable {
        BufferTable { pool: Vec::new(), free: Vec::new(), limit, heads: HashMap::new() }
    }

    /// Adds a buffer, whose id is not in use.
    pub fn insert(&mut self, cbh: Cbh, descriptor: Descriptor) -> Result<()> {
        if self.count() >= self.limit {
            let (what, remedy) = ("the table of buffers", "deregister buffers, or give the driver a larger pool");
            return Err(Error::Full { what, limit: self.limit, remedy });
        }
        let head = &mut self.heads.entry(cbh.process).or_insert_with(|| Box::new([END; BUCKETS]))[bucket(cbh.buffer)];
        let cell = Cell { buffer: cbh.buffer, descriptor, next: *head };
        *head = match self.free.pop() {
            Some(at) => {
                self.pool[at as usize] = cell;
                at
            }
            None => {
                self.pool.push(cell);
                self.pool.len() as u32 - 1
            }
        };
        Ok(())
    }

    /// The descriptor of a buffer.
    #[must_use]
    pub fn find(&self, cbh: Cbh) -> Option<Descriptor> {
        let mut at = self.heads.get(&cbh.process)?[bucket(cbh.buffer)];
        while at != END {
            let cell = &self.pool[at as usize];
            if cell.buffer == cbh.buffer {
                return Some(cell.descriptor);
            }
            at = cell.next;
        }
        None
    }

    /// Takes a buffer out.
    pub fn remove(&mut self, cbh: Cbh) -> Option<Descriptor> {
        let head = &mut self.heads.get_mut(&cbh.process)?[bucket(cbh.buffer)];
        let (mut before, mut at) = (END, *head);
        while at != END {
            let cell = self.pool[at as usize];
            if cell.buffer == cbh.buffer {
                match before {
                    END => *head = cell.next,
                    before => self.pool[before as usize].next = cell.next,
                }
                self.free.push(at);
                return Some(cell.descriptor);
            }
            (before, at) = (at, cell.next);
        }
        None
    }

    /// Takes out all buffers of a process.
    pub fn purge(&mut self, process: ProcessId) {
        let Some(heads) = self.heads.remove(&process) else { return };
        for mut at in *heads {
            while at != END {
                self.free.push(at);
                at = self.pool[at as usize].next;
            }
        }
    }

    /// Buffers that are registered.
    #[must_use]
    pub fn count(&self) -> usize {
        self.pool.len() - self.free.len()
    }
}

fn bucket(buffer: BufferId) -> usize {
    // Multiplied first, so that ids of a stride spread, too (Knuth, volume 3, 6.4).
    (buffer.0.wrapping_mul(0x9e37_79b1) >> 24) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Address, Key, Rights};

    #[test]
    fn buffers_come_and_go() {
        let mut table = BufferTable::new(1000);
        let cbh = |process: u32, buffer: u32| Cbh { process: ProcessId(process), buffer: BufferId(buffer) };
        let of = |at: u64| Descriptor { address: Address(at), len: 1, key: Key(1), rights: Rights::ALL, notify: false };
        for buffer in 0..500 {
            table.insert(cbh(1, buffer), of(u64::from(buffer))).unwrap();
            table.insert(cbh(2, buffer * 256), of(0)).unwrap();
        }
        assert!(matches!(table.insert(cbh(3, 0), of(0)), Err(Error::Full { .. })));
        for buffer in (0..500).step_by(2) {
            assert_eq!(table.remove(cbh(1, buffer)), Some(of(u64::from(buffer))));
            assert_eq!(table.remove(cbh(1, buffer)), None);
        }
        for buffer in 0..500 {
            let there = (buffer % 2 == 1).then(|| of(u64::from(buffer)));
            assert_eq!(table.find(cbh(1, buffer)), there);
        }
        table.purge(ProcessId(2));
        assert_eq!((table.count(), table.find(cbh(2, 256))), (250, None));
        table.purge(ProcessId(1));
        assert_eq!(table.count(), 0);
    }
}
