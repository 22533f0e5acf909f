//! The slot ring against a queue of messages.

use std::collections::VecDeque;

use proptest::{collection::vec, prelude::*};
use sidestep_shm::{
    Error,
    slot_ring::{SLOT_HEADER, SlotConsumer, SlotProducer},
};

use super::{Words, cases};

#[derive(Debug, Clone)]
enum Operation {
    Push(usize),
    Publish,
    Pop(usize),
    Tell,
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    prop_oneof![
        4 => (0..60_usize).prop_map(Push),
        3 => Just(Publish),
        4 => (0..60_usize).prop_map(Pop),
        2 => Just(Tell),
    ]
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn a_slot_ring_is_a_queue_of_messages(
        (stride, slots) in (4..7_u32, 2..5_u32).prop_map(|(stride, slots)| (1_usize << stride, 1_usize << slots)),
        laps in 0..5_u64,
        operations in vec(operation(), 1..80),
    ) {
        let words = Words::new(stride * slots, laps * stride as u64);
        let mut producer = SlotProducer::new(words.parts(), stride).unwrap();
        let mut consumer = SlotConsumer::new(words.parts(), stride).unwrap();
        prop_assert_eq!(producer.max_message(), stride - SLOT_HEADER);
        let (mut staged, mut published) = (Vec::new(), VecDeque::new());
        // Slots the consumer has taken and not told of; messages of the published that it knows of.
        let (mut untold, mut known) = (0, 0);
        for (number, operation) in operations.into_iter().enumerate() {
            match operation {
                Operation::Push(len) => {
                    let message = vec![number as u8; len];
                    let pushed = producer.push(&message);
                    if len > stride - SLOT_HEADER {
                        let refused = matches!(pushed, Err(Error::Size { .. }));
                        prop_assert!(refused);
                        continue;
                    }
                    let free = staged.len() + published.len() + untold < slots;
                    prop_assert_eq!(pushed, Ok(free));
                    if free {
                        staged.push(message);
                    }
                }
                Operation::Publish => {
                    assert!(producer.bytes().publish(0));
                    published.extend(staged.drain(..));
                }
                Operation::Pop(len) => {
                    let mut buffer = vec![0; len];
                    let popped = consumer.pop(&mut buffer);
                    if known == 0 {
                        known = published.len();
                    }
                    match published.front() {
                        Some(message) if message.len() > len => {
                            let refused = matches!(popped, Err(Error::Size { .. }));
                            prop_assert!(refused);
                        }
                        Some(message) => {
                            prop_assert_eq!(popped, Ok(Some(message.len())));
                            prop_assert_eq!(&buffer[..message.len()], &message[..]);
                            published.pop_front();
                            known -= 1;
                            untold += 1;
                        }
                        None => prop_assert_eq!(popped, Ok(None)),
                    }
                }
                Operation::Tell => {
                    consumer.bytes().publish_head();
                    untold = 0;
                }
            }
        }
    }
}
