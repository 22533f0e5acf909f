//! What is left of a ring, for the processes that hold its reading end after a `fork`. None of them has the consumer's own
//! state: where the next byte lies is for them to agree on. The invariants are those of the module above.

use crate::{
    Result, Span, Word64,
    sync::{Ordering, head_publish, tail_observe, tail_want},
};

use super::*;
#[cfg(not(loom))]
use crate::Memory;

/// The reading end of a ring without a position of its own.
#[derive(Debug, Clone)]
pub struct Remainder {
    ring: Span,
    mask: u64,
    tail: Word64,
    head: Word64,
}

/// The writing end of a ring, of which nothing is left but to end it.
#[derive(Debug, Clone)]
pub struct Stopper {
    tail: Word64,
}

impl Consumer {
    /// What another holder of this end needs, as long as no larger ring is on offer.
    pub fn remainder(&self) -> Option<Remainder> {
        let Consumer { ring, mask, tail, head, next, .. } = self;
        next.is_none().then(|| Remainder { ring: ring.clone(), mask: *mask, tail: tail.clone(), head: head.clone() })
    }

    /// The ring has ended at this position, and other holders read what is left of it. How far they have come is theirs to tell: one
    /// that wants the rest has told the producer where it begins.
    pub fn skip_to_end(&mut self, end: u64) {
        self.surrendered = true;
        let taken = self.tail.load(Ordering::Relaxed) & TAKEN != 0;
        self.end = if taken { End::Taken } else { End::Frozen };
        (self.read, self.known_tail, self.viewed) = (end, end, end);
    }
}

impl Producer {
    /// What another holder of this end needs.
    pub fn stopper(&self) -> Stopper {
        Stopper { tail: self.tail.clone() }
    }
}

impl Stopper {
    /// The memory it keeps.
    #[cfg(not(loom))]
    pub fn memory(&self) -> &Memory {
        self.tail.memory()
    }

    /// Ends the ring (B5). Returns where: the consumer gets what is before it.
    pub fn stop(&self) -> u64 {
        self.tail.fetch_or(FROZEN, Ordering::Relaxed) & POSITION
    }
}

impl Remainder {
    /// The memory it keeps.
    #[cfg(not(loom))]
    pub fn memories(&self) -> [&Memory; 3] {
        [self.ring.memory(), self.tail.memory(), self.head.memory()]
    }

    /// Ends the ring (B5), of which the holders have read so much. Returns where it ends; that is there if the producer has
    /// taken the rest.
    pub fn freeze(&self, read: u64) -> Result<u64> {
        // Pairs with `Producer::publish`: payload visible.
        let tail = self.tail.fetch_or(FROZEN, tail_observe()) | FROZEN;
        if tail & !POSITION == FROZEN | TAKEN {
            return Ok(read);
        }
        let end = tail & POSITION;
        // Another holder may want them: whether they are read here is for that one to decide.
        if tail & !(POSITION | WANTED) != FROZEN || end < read || end - read > self.mask + 1 {
            return Err(bad_end());
        }
        Ok(end)
    }

    /// Bytes that were not read, if so much was.
    pub fn unread(&self, read: u64) -> u64 {
        let tail = self.tail.load(Ordering::Relaxed);
        if tail & TAKEN != 0 { 0 } else { (tail & POSITION).saturating_sub(read) }
    }

    /// Copies bytes out from a position on. They are whole if this holder finds afterwards that nobody has read them.
    pub fn copy_out(&self, position: u64, bytes: &mut [u8]) -> Result<()> {
        copy_from_ring(&self.ring, self.mask, position, bytes)
    }

    /// Wants what was not read of a frozen ring to come in another way (B6). No holder reads until that is decided.
    pub fn want(&self, read: u64) {
        self.head.store(read, head_publish());
        // Pairs with `Producer::take`: the head before it.
        self.tail.fetch_or(WANTED, tail_want());
    }

    /// Whether the producer has taken it.
    pub fn is_taken(&self) -> bool {
        self.tail.load(Ordering::Relaxed) & TAKEN != 0
    }

    /// Reads on after all. `false`: it was taken.
    pub fn withdraw(&self) -> bool {
        let held = self.tail.load(Ordering::Relaxed);
        let wanted = held & POSITION | FROZEN | WANTED;
        held != wanted && held & TAKEN == 0
            || held == wanted && self.tail.compare_exchange(wanted, wanted & !WANTED, Ordering::Relaxed) == wanted
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The former owner says nothing that changes what another holder wants.
    #[test]
    fn all_that_another_holder_wants_is_taken() {
        let memory = Memory::heap(4096).unwrap();
        let word = |at| memory.word64(at).unwrap();
        let parts = Parts {
            ring: memory.span(1024, 1024).unwrap(),
            tail: word(0),
            core: word(64),
            switch: word(128),
            head: word(192),
            begin: 0,
        };
        let (mut producer, mut owner) = (Producer::new(parts.clone()).unwrap(), Consumer::new(parts).unwrap());
        assert_eq!(producer.copy_in(b"read, and not read").unwrap(), 18);
        assert!(producer.publish(0));
        assert_eq!(owner.copy_out(&mut [0; 4]).unwrap(), 4);
        let rest = owner.remainder().unwrap();
        let end = rest.freeze(4).unwrap();
        rest.want(4);
        owner.skip_to_end(end);
        owner.publish_head();
        assert_eq!(producer.take().unwrap().unwrap(), b", and not read");
        assert!(rest.is_taken() && !rest.withdraw());
    }
}
