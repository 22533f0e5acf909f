//! Byte ring and slot ring: bytes arrive once, in order, and nobody touches a byte while the other does.

use sidestep_shm::{
    Memory,
    byte_ring::{Consumer, Parts, Producer},
    slot_ring::{SlotConsumer, SlotProducer},
};

use crate::{model, race};

const TAIL: usize = 0;
const CORE: usize = 8;
const SWITCH: usize = 16;
const HEAD: usize = 24;
const RING: usize = 32;

#[test]
fn bytes_arrive_in_order_around_the_end() {
    model(|first| {
        let (mut producer, mut consumer) = advanced(4, 3);
        let write = move || {
            let mut sent = producer.copy_in(&[1, 2]).unwrap();
            assert!(producer.publish(0));
            sent += producer.copy_in(&[3, 4, 5][..]).unwrap();
            assert!(producer.publish(0));
            (producer, sent)
        };
        let read = move || {
            let mut received = Vec::new();
            for len in [1, 2, 2] {
                take(&mut consumer, len, &mut received);
                consumer.publish_head();
            }
            (consumer, received)
        };
        let ((mut producer, sent), (mut consumer, mut received)) = race(first, write, read);
        assert!(sent >= 4, "a ring of four takes four");
        take_all(&mut consumer, &mut received);
        consumer.publish_head();
        producer.copy_in(&[1, 2, 3, 4, 5][sent..]).unwrap();
        assert!(producer.publish(0));
        take_all(&mut consumer, &mut received);
        assert_eq!(received, [1, 2, 3, 4, 5]);
    });
}

#[test]
fn space_comes_back_by_the_head() {
    model(|first| {
        let (mut producer, mut consumer) = advanced(2, 1);
        assert_eq!(producer.copy_in(&[1, 2, 9]), Ok(2));
        assert!(producer.publish(0));
        let write = move || {
            let sent = producer.copy_in(&[3, 4]).unwrap();
            assert!(producer.publish(0));
            sent
        };
        let read = move || {
            let mut received = Vec::new();
            for _ in 0..2 {
                take(&mut consumer, 1, &mut received);
                consumer.publish_head();
            }
            (consumer, received)
        };
        let (sent, (mut consumer, mut received)) = race(first, write, read);
        take_all(&mut consumer, &mut received);
        assert_eq!(received, [1, 2, 3, 4][..2 + sent]);
    });
}

#[test]
fn slots_arrive_whole() {
    model(|first| {
        let memory = Memory::heap(RING + 64).unwrap();
        let mut producer = SlotProducer::new(parts(&memory, 64), 16).unwrap();
        let mut consumer = SlotConsumer::new(parts(&memory, 64), 16).unwrap();
        for _ in 0..3 {
            producer.push(b"old").unwrap();
        }
        assert!(producer.bytes().publish(0));
        pop(&mut consumer, 1);
        let write = move || {
            let mut sent = 0;
            for message in [&b"a"[..], b"", b"bcd"] {
                sent += usize::from(producer.push(message).unwrap());
                assert!(producer.bytes().publish(0));
            }
            sent
        };
        let read = move || {
            let received = pop(&mut consumer, 3);
            (consumer, received)
        };
        let (sent, (mut consumer, mut received)) = race(first, write, read);
        received.extend(pop(&mut consumer, 4));
        assert!(sent >= 2, "two slots were free");
        assert_eq!(received, [&b"old"[..], b"old", b"a", b"", b"bcd"][..2 + sent]);
    });
}

/// Bytes are written and looked at where they lie, around the end of the ring: nobody touches one while the other does.
#[test]
fn bytes_are_written_and_viewed_in_place() {
    model(|first| {
        let (mut producer, mut consumer) = advanced(4, 3);
        let write = move || {
            let mut sent = 0;
            for bytes in [&[1, 2, 3][..], &[4, 5]] {
                if producer.space(bytes.len()).unwrap() >= bytes.len() {
                    // In another order than they are read in.
                    producer.copy_ahead(1, &bytes[1..]).unwrap();
                    producer.copy_ahead(0, &bytes[..1]).unwrap();
                    producer.advance(bytes.len()).unwrap();
                    assert!(producer.publish(0));
                    sent += bytes.len();
                }
            }
            sent
        };
        let read = move || {
            let mut received = Vec::new();
            for min in [3, 2] {
                view(&mut consumer, min, &mut received);
                consumer.publish_head();
            }
            (consumer, received)
        };
        let (sent, (mut consumer, mut received)) = race(first, write, read);
        view(&mut consumer, 0, &mut received);
        assert!(sent >= 3, "three bytes fit");
        assert_eq!(received, [1, 2, 3, 4, 5][..sent]);
    });
}

/// A view reaches over the switch to a larger ring.
#[test]
fn a_view_reaches_over_a_switch() {
    model(|first| {
        let (mut producer, mut consumer) = advanced(2, 1);
        let larger = Memory::heap(4).unwrap().span(0, 4).unwrap();
        producer.copy_in(&[1]).unwrap();
        assert!(producer.publish(0));
        consumer.offer(larger.clone()).unwrap();
        let write = move || {
            producer.copy_in(&[2]).unwrap();
            producer.switch_to(larger, 0).unwrap();
            assert_eq!(producer.copy_in(&[3, 4]), Ok(2));
            assert!(producer.publish(0));
            assert_eq!(producer.copy_in(&[5]), Ok(1));
            assert!(producer.publish(0));
        };
        let read = move || {
            let mut received = Vec::new();
            for min in [3, 2] {
                view(&mut consumer, min, &mut received);
                consumer.publish_head();
            }
            (consumer, received)
        };
        let ((), (mut consumer, mut received)) = race(first, write, read);
        while consumer.position() < 6 {
            view(&mut consumer, 1, &mut received);
        }
        assert_eq!(received, [1, 2, 3, 4, 5]);
    });
}

/// Whoever freezes the ring: what was published before is read, and what was not comes back to the producer.
#[test]
fn a_freeze_loses_and_doubles_nothing() {
    model(|first| {
        let (mut producer, mut consumer) = advanced(4, 3);
        let write = move || {
            let mut rest = Vec::new();
            for bytes in [&[1, 2][..], &[3]] {
                if rest.is_empty() {
                    producer.copy_in(bytes).unwrap();
                    if !producer.publish(0) {
                        rest = producer.recall().unwrap();
                        assert!(producer.frozen().unwrap().is_some());
                    }
                } else {
                    rest.extend(bytes);
                }
            }
            (producer, rest)
        };
        let read = move || {
            let mut received = Vec::new();
            take(&mut consumer, 1, &mut received);
            let end = consumer.freeze().unwrap();
            take_all(&mut consumer, &mut received);
            assert_eq!(end, 3 + received.len() as u64);
            assert_eq!(consumer.position(), end);
            (end, received)
        };
        let ((mut producer, rest), (end, mut received)) = race(first, write, read);
        assert_eq!(producer.frozen().unwrap().map(|frozen| (frozen.position, frozen.wanted)), Some((end, false)));
        assert_eq!(producer.position(), end);
        assert_eq!(producer.copy_in(&[9]), Ok(0), "a frozen ring takes nothing");
        received.extend(rest);
        assert_eq!(received, [1, 2, 3]);
    });
}

/// The producer's side ends the ring, too: what was published before is read.
#[test]
fn a_freeze_by_the_producer_is_the_end() {
    model(|first| {
        let (mut producer, mut consumer) = advanced(4, 3);
        let write = move || {
            producer.copy_in(&[1, 2]).unwrap();
            assert!(producer.publish(0));
            producer.freeze().unwrap().position
        };
        let read = move || {
            let mut received = Vec::new();
            take(&mut consumer, 1, &mut received);
            take(&mut consumer, 1, &mut received);
            (consumer, received)
        };
        let (end, (mut consumer, mut received)) = race(first, write, read);
        take_all(&mut consumer, &mut received);
        assert_eq!((consumer.freeze(), end), (Ok(5), 5));
        assert_eq!(received, [1, 2]);
    });
}

/// What a consumer wants to get otherwise is taken by the producer, or read after all: each byte once.
#[test]
fn what_is_wanted_is_read_or_taken() {
    model(|first| {
        let (mut producer, mut consumer) = advanced(4, 3);
        producer.copy_in(&[1, 2, 3]).unwrap();
        assert!(producer.publish(0));
        let write = move || {
            let taken = producer.take().unwrap();
            (producer, taken)
        };
        let read = move || {
            let mut received = Vec::new();
            take(&mut consumer, 1, &mut received);
            assert_eq!(consumer.want(), Ok(true));
            assert_eq!(consumer.available_now(), Ok(0), "nothing is read until it is decided");
            let ours = consumer.withdraw().unwrap();
            take_all(&mut consumer, &mut received);
            (consumer, ours, received)
        };
        let ((mut producer, taken), (consumer, ours, mut received)) = race(first, write, read);
        assert_eq!(ours, taken.is_none());
        assert_eq!(Some(consumer.position()), consumer.end_position());
        assert_eq!(producer.frozen().unwrap().unwrap().position, consumer.position());
        received.extend(taken.unwrap_or_default());
        assert_eq!(received, [1, 2, 3]);
    });
}

#[test]
fn a_switch_to_a_larger_ring_keeps_the_order() {
    model(|first| {
        let (mut producer, mut consumer) = advanced(2, 1);
        let larger = Memory::heap(4).unwrap().span(0, 4).unwrap();
        producer.copy_in(&[1]).unwrap();
        assert!(producer.publish(0));
        consumer.offer(larger.clone()).unwrap();
        let write = move || {
            producer.copy_in(&[2]).unwrap();
            producer.switch_to(larger, 0).unwrap();
            assert_eq!(producer.copy_in(&[3, 4, 5]), Ok(3));
            assert!(producer.publish(0));
            producer
        };
        let read = move || {
            let mut received = Vec::new();
            for len in [1, 2, 2] {
                take(&mut consumer, len, &mut received);
                consumer.publish_head();
            }
            (consumer, received)
        };
        let (mut producer, (mut consumer, mut received)) = race(first, write, read);
        assert_eq!(producer.copy_in(&[6]), Ok(1));
        assert!(producer.publish(0));
        take_all(&mut consumer, &mut received);
        assert_eq!(received, [1, 2, 3, 4, 5, 6]);
    });
}

/// The consumer ends the ring on either side of a switch: what it has not read comes back from both rings.
#[test]
fn a_freeze_beside_a_switch_loses_nothing() {
    model(|first| {
        let (mut producer, mut consumer) = advanced(2, 1);
        let larger = Memory::heap(4).unwrap().span(0, 4).unwrap();
        producer.copy_in(&[1]).unwrap();
        assert!(producer.publish(0));
        consumer.offer(larger.clone()).unwrap();
        let write = move || {
            if producer.switch_to(larger, 0).is_err() {
                return (producer, vec![2, 3]);
            }
            producer.copy_in(&[2, 3]).unwrap();
            let rest = if producer.publish(0) { Vec::new() } else { producer.recall().unwrap() };
            (producer, rest)
        };
        let read = move || {
            let mut received = Vec::new();
            take(&mut consumer, 1, &mut received);
            let wanted = consumer.want().unwrap();
            (consumer, wanted, received)
        };
        let ((mut producer, rest), (mut consumer, wanted, mut received)) = race(first, write, read);
        let taken = producer.take().unwrap();
        assert_eq!(taken.is_some(), wanted);
        assert_eq!(consumer.is_taken(), Ok(wanted));
        received.extend(taken.unwrap_or_default());
        received.extend(rest);
        assert_eq!(received, [1, 2, 3]);
    });
}

/// A pair of ends over a ring of `capacity` bytes, of which `position` bytes have been used already.
fn advanced(capacity: usize, position: usize) -> (Producer, Consumer) {
    let memory = Memory::heap(RING + capacity).unwrap();
    let mut producer = Producer::new(parts(&memory, capacity)).unwrap();
    let mut consumer = Consumer::new(parts(&memory, capacity)).unwrap();
    producer.copy_in(&vec![0; position]).unwrap();
    assert!(producer.publish(0));
    take(&mut consumer, position, &mut Vec::new());
    consumer.publish_head();
    (producer, consumer)
}

fn parts(memory: &Memory, capacity: usize) -> Parts {
    Parts {
        ring: memory.span(RING, capacity).unwrap(),
        tail: memory.word64(TAIL).unwrap(),
        core: memory.word64(CORE).unwrap(),
        switch: memory.word64(SWITCH).unwrap(),
        head: memory.word64(HEAD).unwrap(),
        begin: 0,
    }
}

/// One look: takes at most `len` bytes.
fn take(consumer: &mut Consumer, len: usize, received: &mut Vec<u8>) {
    let mut bytes = vec![0; len];
    let count = consumer.copy_out(&mut bytes).unwrap();
    received.extend(&bytes[..count]);
}

/// One look: takes all bytes if there are at least `min`.
fn view(consumer: &mut Consumer, min: usize, received: &mut Vec<u8>) {
    let Some(view) = consumer.view(min).unwrap() else { return };
    assert!(view.len() >= min);
    for at in 0..view.len() {
        received.extend(view.array::<1>(at).unwrap());
    }
    let count = view.len();
    consumer.consume(count);
}

fn take_all(consumer: &mut Consumer, received: &mut Vec<u8>) {
    while consumer.available().unwrap() > 0 {
        take(consumer, 4, received);
    }
}

/// Some looks, each of which takes at most one message.
fn pop(consumer: &mut SlotConsumer, looks: usize) -> Vec<Vec<u8>> {
    let mut received = Vec::new();
    let mut buffer = [0; 8];
    for _ in 0..looks {
        if let Some(len) = consumer.pop(&mut buffer).unwrap() {
            received.push(buffer[..len].to_vec());
        }
        consumer.bytes().publish_head();
    }
    received
}
