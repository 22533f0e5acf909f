//! The byte ring against a queue of bytes.

use std::collections::VecDeque;

use proptest::{collection::vec, prelude::*};
use sidestep_shm::{
    Memory, Span,
    byte_ring::{Consumer, Frozen, Producer},
};

use super::{Words, cases};

#[derive(Debug, Clone)]
enum Operation {
    Push(usize),
    PushWhole([usize; 2], usize),
    /// Reserves, writes the second half first, and goes on by a part of it.
    Ahead(usize, usize),
    Publish,
    Look,
    Take(usize),
    /// Looks at least at so many bytes where they lie, and consumes some.
    View(usize, usize),
    Peek(usize, usize),
    Consume(usize),
    Tell,
    /// The consumer offers a ring of twice the size.
    Offer,
    /// The producer goes on there.
    Switch,
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let count = 0..70_usize;
    prop_oneof![
        4 => count.clone().prop_map(Push),
        2 => ([0..9_usize, 0..9_usize], 0..9_usize).prop_map(|(parts, gap)| PushWhole(parts, parts[0] + parts[1] + gap)),
        3 => (count.clone(), count.clone()).prop_map(|(len, used)| Ahead(len, used.min(len))),
        3 => (0..40_usize, count.clone()).prop_map(|(min, used)| View(min, used)),
        4 => Just(Publish),
        2 => Just(Look),
        4 => count.clone().prop_map(Take),
        2 => (0..20_usize, count.clone()).prop_map(|(skip, len)| Peek(skip, len)),
        1 => count.prop_map(Consume),
        3 => Just(Tell),
        1 => Just(Offer),
        1 => Just(Switch),
    ]
}

/// What is where; a byte that nobody wrote (a gap) is `None`.
struct Oracle {
    staged: VecDeque<Option<u8>>,
    published: VecDeque<Option<u8>>,
    /// Of the published ones, how many the consumer knows of.
    known: usize,
    read: u64,
    told: u64,
    capacity: usize,
    began: u64,
    /// Where the producer switched, until the consumer has crossed.
    switch: Option<u64>,
    /// How far a view reached.
    viewed: u64,
    next: u8,
}

impl Oracle {
    fn new(capacity: usize, begin: u64) -> Oracle {
        Oracle {
            staged: VecDeque::new(),
            published: VecDeque::new(),
            known: 0,
            read: begin,
            told: begin,
            capacity,
            began: 0,
            switch: None,
            viewed: 0,
            next: 0,
        }
    }

    fn written(&self) -> u64 {
        self.read + (self.published.len() + self.staged.len()) as u64
    }

    fn space(&self) -> usize {
        (self.told.max(self.began) + self.capacity as u64 - self.written()) as usize
    }

    fn fresh(&mut self, len: usize) -> Vec<u8> {
        let first = self.next;
        self.next = first.wrapping_add(len as u8);
        (0..len).map(|index| first.wrapping_add(index as u8)).collect()
    }

    fn look(&mut self) {
        self.known = match self.switch {
            Some(at) if self.read < at => (at - self.read) as usize,
            _ => {
                self.switch = None;
                self.published.len()
            }
        };
    }

    /// What the consumer finds from `skip` on, in a buffer of `len`.
    fn peek(&mut self, skip: usize, len: usize) -> Vec<Option<u8>> {
        if self.known == 0 {
            self.look();
        }
        self.published.iter().take(self.known).skip(skip).take(len).copied().collect()
    }

    fn consume(&mut self, count: usize) {
        let here = self.consume_known(count);
        if here < count && self.viewed > self.read {
            self.look();
            self.consume_known((count - here).min((self.viewed - self.read) as usize));
        }
    }

    fn consume_known(&mut self, count: usize) -> usize {
        let count = count.min(self.known);
        self.published.drain(..count);
        self.known -= count;
        self.read += count as u64;
        count
    }

    /// What a view shows that is to have at least `min` bytes.
    fn view(&mut self, min: usize) -> Option<Vec<Option<u8>>> {
        if self.known < min.max(1) {
            self.look();
        }
        let is_across = self.known < min && self.switch.is_some();
        let len = if is_across { self.published.len() } else { self.known };
        self.viewed = self.read + len as u64;
        (len >= min).then(|| self.published.iter().take(len).copied().collect())
    }
}

struct Ends {
    producer: Producer,
    consumer: Consumer,
    offered: Option<Span>,
    grown: bool,
}

/// Eight bytes from `at` on; zeros behind the last.
fn word_at(bytes: &[u8], at: usize) -> [u8; 8] {
    std::array::from_fn(|index| bytes.get(at + index).copied().unwrap_or(0))
}

impl Ends {
    fn new(capacity: usize, begin: u64) -> Ends {
        let words = Words::new(capacity, begin);
        let producer = Producer::new(words.parts()).unwrap();
        let consumer = Consumer::new(words.parts()).unwrap();
        Ends { producer, consumer, offered: None, grown: false }
    }

    fn step(&mut self, oracle: &mut Oracle, operation: Operation) {
        match operation {
            Operation::Push(len) => {
                let bytes = oracle.fresh(len);
                let count = self.producer.copy_in(&bytes).unwrap();
                assert_eq!(count, len.min(oracle.space()));
                oracle.staged.extend(bytes[..count].iter().copied().map(Some));
            }
            Operation::PushWhole(lens, stride) => {
                let parts = lens.map(|len| oracle.fresh(len));
                let fits = self.producer.copy_in_whole([&parts[0], &parts[1]], stride).unwrap();
                assert_eq!(fits, stride <= oracle.space());
                if fits {
                    let end = oracle.staged.len() + stride;
                    oracle.staged.extend(parts.concat().into_iter().map(Some));
                    oracle.staged.resize(end, None);
                }
            }
            Operation::Ahead(len, used) => {
                let fits = self.producer.space(len).unwrap() >= len;
                assert_eq!(fits, len <= oracle.space());
                if fits {
                    let bytes = oracle.fresh(len);
                    let (first, second) = bytes.split_at(len / 2);
                    self.producer.fill_ahead(first.len(), second.len(), |at| word_at(second, at)).unwrap();
                    self.producer.copy_ahead(0, first).unwrap();
                    self.producer.advance(used).unwrap();
                    oracle.staged.extend(bytes[..used].iter().copied().map(Some));
                }
                let free = self.producer.space(0).unwrap();
                assert!(self.producer.copy_ahead(free, &[0]).is_err() && self.producer.advance(free + 1).is_err());
                assert!(self.producer.fill_ahead(free, 1, |_| [0; 8]).is_err());
            }
            Operation::View(min, used) => {
                let expected = oracle.view(min);
                let view = self.consumer.view(min).unwrap();
                assert_eq!(view.map(|view| view.len()), expected.as_ref().map(Vec::len));
                if let (Some(view), Some(expected)) = (view, expected) {
                    let mut bytes = vec![0; view.len()];
                    view.copy_out(0, &mut bytes).unwrap();
                    check(&bytes, &expected);
                    let at = used.min(view.len());
                    let rest = view.part(at, view.len() - at).unwrap();
                    let folded = rest.fold(Vec::new(), |all, piece| [&all[..], piece].concat()).unwrap();
                    check(&folded, &expected[at..]);
                    let words = rest.fold_words(Vec::new(), |all, word| [&all[..], &word].concat()).unwrap();
                    let (words, padding) = words.split_at(rest.len());
                    check(words, &expected[at..]);
                    assert!(padding.len() < 8 && padding.iter().all(|byte| *byte == 0));
                    assert!(view.array::<1>(view.len()).is_err() && view.part(at, view.len() - at + 1).is_err());
                    self.consumer.consume(used);
                    oracle.consume(used);
                }
            }
            Operation::Publish => {
                assert!(self.producer.publish(3));
                oracle.published.append(&mut oracle.staged);
                assert_eq!(self.consumer.producer_core(), 3);
            }
            Operation::Look => {
                oracle.look();
                let all: Vec<_> = oracle.published.iter().copied().collect();
                assert_eq!(self.consumer.available_now(), Ok(all.len()));
                let mut bytes = vec![0; all.len() + 1];
                assert_eq!(self.consumer.peek_now(all.len() / 3, &mut bytes), Ok(all.len() - all.len() / 3));
                check(&bytes[..all.len() - all.len() / 3], &all[all.len() / 3..]);
                if self.consumer.has_offer() {
                    oracle.viewed = oracle.read + all.len() as u64;
                }
            }
            Operation::Take(len) => {
                let mut bytes = vec![0; len];
                let count = self.consumer.copy_out(&mut bytes).unwrap();
                let expected = oracle.peek(0, len);
                check(&bytes[..count], &expected);
                oracle.consume(count);
            }
            Operation::Peek(skip, len) => {
                let mut bytes = vec![0; len];
                let count = self.consumer.peek(skip, &mut bytes).unwrap();
                check(&bytes[..count], &oracle.peek(skip, len));
            }
            Operation::Consume(count) => {
                self.consumer.consume(count);
                oracle.consume(count);
            }
            Operation::Tell => {
                self.consumer.publish_head();
                assert!(!self.consumer.owes_head());
                oracle.told = oracle.read;
            }
            Operation::Offer if !self.grown && self.offered.is_none() => {
                let ring = Memory::heap(oracle.capacity * 2).unwrap().span(0, oracle.capacity * 2).unwrap();
                self.consumer.offer(ring.clone()).unwrap();
                self.offered = Some(ring);
            }
            Operation::Switch => {
                let Some(ring) = self.offered.take() else { return };
                self.grown = true;
                oracle.capacity *= 2;
                oracle.published.append(&mut oracle.staged);
                oracle.began = oracle.written();
                oracle.switch = Some(oracle.began);
                self.producer.switch_to(ring, 3).unwrap();
            }
            Operation::Offer => {}
        }
        assert_eq!(self.producer.position(), oracle.written());
        assert_eq!(self.producer.has_unpublished(), !oracle.staged.is_empty());
        assert_eq!(self.consumer.position(), oracle.read);
        assert_eq!(self.consumer.has_news(), !oracle.published.is_empty());
        assert_eq!(self.producer.frozen(), Ok(None));
    }

    /// The consumer ends the ring: what was published is read, or taken back by the producer, wherever it lies.
    fn freeze(mut self, oracle: Oracle, taken: bool) {
        let staged: Vec<_> = oracle.staged.into_iter().collect();
        let published: Vec<_> = oracle.published.into_iter().collect();
        let end = oracle.read + published.len() as u64;
        assert_eq!(self.consumer.freeze(), Ok(end));
        assert_eq!(self.consumer.end_position(), Some(end));
        if !staged.is_empty() {
            assert!(!self.producer.publish(3));
        }
        check(&self.producer.recall().unwrap(), &staged);
        assert_eq!(self.producer.frozen(), Ok(Some(Frozen { position: end, wanted: false })));
        assert_eq!(self.producer.take(), Ok(None), "nobody wants it");
        assert_eq!(self.consumer.want(), Ok(!published.is_empty()));
        if taken && !published.is_empty() {
            assert_eq!(self.producer.frozen(), Ok(Some(Frozen { position: end, wanted: true })));
            check(&self.producer.take().unwrap().unwrap(), &published);
            assert_eq!(self.producer.position(), oracle.read);
            assert_eq!(self.consumer.withdraw(), Ok(false));
            assert_eq!(self.consumer.available_now(), Ok(0));
            assert_eq!(self.consumer.end_position(), Some(oracle.read));
            return;
        }
        assert_eq!(self.consumer.withdraw(), Ok(true));
        let mut bytes = Vec::new();
        while self.consumer.position() < end {
            let mut some = vec![0; 7];
            let count = self.consumer.copy_out(&mut some).unwrap();
            bytes.extend(&some[..count]);
        }
        check(&bytes, &published);
        assert_eq!(self.producer.take(), Ok(None));
    }
}

fn check(bytes: &[u8], expected: &[Option<u8>]) {
    assert_eq!(bytes.len(), expected.len());
    for (byte, expected) in bytes.iter().zip(expected) {
        assert!(expected.is_none_or(|expected| expected == *byte), "{bytes:?} instead of {expected:?}");
    }
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn a_ring_is_a_queue(
        capacity in (0..9_u32).prop_map(|bits| 1_usize << bits),
        begin in prop_oneof![Just(0), 0..200_u64, (1 << 60)..(1_u64 << 60) + 200],
        operations in vec(operation(), 1..80),
        taken in any::<bool>(),
    ) {
        let mut oracle = Oracle::new(capacity, begin);
        let mut ends = Ends::new(capacity, begin);
        for operation in operations {
            ends.step(&mut oracle, operation);
        }
        ends.freeze(oracle, taken);
    }
}
