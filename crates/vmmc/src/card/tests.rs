//! What another card may do to this one, beside what the model of two good cards shows.

use super::*;
use crate::id::{BufferId, Key};
use crate::packet::Target;

/// A card that asks for ever and acknowledges nothing costs so many packets and no more.
#[test]
fn a_card_that_acknowledges_nothing_is_answered_so_often() {
    let config = Config::default();
    let mut card = Card::new(config).unwrap();
    let node = NodeId(1);
    let to = Cbh { process: ProcessId(1), buffer: BufferId(1) };
    let target = Target { from: ProcessId(1), work: Work(1), to, key: Key(1), at: 0, len: 4096 };
    let mut number = 0;
    for _ in 0..10_000 {
        card.handle_packet(0, node, &Body::Fetch { target, offset: 0, amount: 4096 }.emit(number));
        if let Some(Miss::Cbh { slot, cbh }) = card.poll_miss() {
            card.handle_fill(0, Fill::Cbh { slot, cbh, descriptor: None });
            continue;
        }
        number += 1;
    }
    assert_eq!(card.unacknowledged(node), config.link.most_kept());
    assert!(card.counters().dropped > 0);
}
