//! What a fuzzer calls: packets of another card, words of a process, words of a link.

// Each file that includes this one uses a part of it.
#![allow(dead_code)]

use sidestep_vmmc::{Card, Config, Fill, Miss, NodeId, link, parse_packet, process};

/// A fuzz target: its name, which is also that of its corpus, and its function.
pub struct Target {
    pub name: &'static str,
    pub entry: fn(&[u8]),
}

/// Every target of this crate.
pub const TARGETS: [Target; 2] =
    [Target { name: "vmmc_packet", entry: packet }, Target { name: "vmmc_word", entry: word }];

/// Packets, each behind its length in two bytes, for a card without buffers: nothing of them reaches memory, and what the card keeps
/// is bounded.
pub fn packet(data: &[u8]) {
    let (mut card, mut rest) = (Card::new(Config::default()).expect("a card"), data);
    let node = NodeId(1);
    while let Some((len, behind)) = rest.split_first_chunk() {
        let (packet, next) = behind.split_at(usize::from(u16::from_le_bytes(*len)).min(behind.len()));
        rest = next;
        let _ = parse_packet(packet);
        card.handle_packet(0, node, packet);
        while let Some(miss) = card.poll_miss() {
            let Miss::Cbh { slot, cbh } = miss else { panic!("a translation without a buffer: {miss:?}") };
            card.handle_fill(0, Fill::Cbh { slot, cbh, descriptor: None });
        }
        assert!(card.poll_dma().is_none(), "there is no memory to copy");
        while card.poll_transmit(0).is_some() {}
        while card.poll_event().is_some() {}
        assert!(card.unacknowledged(node) <= card.config().link.most_kept());
    }
}

/// Words in shared memory, and of links.
pub fn word(data: &[u8]) {
    let _ = process::is_word(data);
    let _ = link::is_word(data);
}
