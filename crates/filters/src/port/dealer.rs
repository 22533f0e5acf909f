//! Buffers whose key lies in their bytes: they are filled here, and dealt when it is known where they go.

use crate::error::Result;
use crate::frame::Header;
use crate::graph::Key;
use crate::link::Tx;
use crate::link::bell::Bell;
use crate::link::memory::{self, MemoryRx};
use crate::schedule::Scheduler;

/// A place to fill a buffer, and what of it goes to each copy. Its memory is used again and again.
#[derive(Debug)]
pub(super) struct Dealer {
    key: Key,
    /// Where a buffer is filled: a connection with oneself.
    pub tx: Tx,
    rx: MemoryRx,
    /// What goes to each copy; `None`: nothing, not even an empty buffer.
    pub parts: Vec<Option<Vec<u8>>>,
    spare: Vec<Vec<u8>>,
}

impl Dealer {
    /// Deals buffers of `capacity` bytes to so many copies.
    pub fn new(key: Key, capacity: usize, copies: usize) -> Dealer {
        let bell = Bell::new(Bell::local());
        let (tx, rx) = memory::pair(capacity, 1, bell.clone(), bell);
        let spare = (0..copies).map(|_| Vec::with_capacity(capacity)).collect();
        Dealer { key, tx: Tx::Memory(tx), rx, parts: vec![None; copies], spare }
    }

    /// Divides the buffer that was filled between the copies.
    pub fn divide(&mut self, len: usize, scheduler: &Scheduler) -> Result<()> {
        let Dealer { key, tx, rx, parts, spare } = self;
        if let Tx::Memory(tx) = tx {
            tx.commit(Header::data(0, len))?;
        }
        rx.peek()?;
        for (key, part) in key.parts(rx.bytes()) {
            // A stream by key always has a copy.
            let copy = scheduler.pick(key).unwrap_or(0);
            let own = parts[copy].get_or_insert_with(|| spare.pop().unwrap_or_default());
            own.extend_from_slice(part);
        }
        rx.consume();
        Ok(())
    }

    /// The part of a copy went there.
    pub fn give_back(&mut self, mut part: Vec<u8>) {
        part.clear();
        self.spare.push(part);
    }
}
