//! What a hostile process does to a victim. Each attack goes on until its time is over.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use sidestep_fabric::{
    Channel, ChannelOptions, Cookie, Node, Region, Rights,
    link::shm::{
        PAIR_EVENTS,
        frame::{Answer, Ask, Frame},
    },
    protocol::{EndpointId, Message},
    queue::Kind,
};
use sidestep_shm::{Memory, event_ring::EventPoster, pair_bell::PairBell, passing::Lifeline};
use sidestep_sys::clock;
use sidestep_testkit::seeded::Seeded;
use sidestep_testkit::shared::shared_memories;

use crate::raw::{Raw, any_descriptor, cookie};

/// Uses the library as any program, while a thread writes random values into every shared word the process can reach.
pub fn scribble_beside_traffic(name: &str, seed: u64, until: u64) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Seeded::new(seed);
            while !stop.load(Ordering::Relaxed) {
                for memory in shared_memories() {
                    scribble(&memory, random.below(40), &mut random);
                }
            }
        });
        let mut random = Seeded::new(!seed);
        while clock::now() < until {
            let Ok(node) = Node::new() else { continue };
            // Ends by an error sooner or later: whatever the library says is fine, as long as it says something.
            let _ = talk(&node, &format!("shm:{name}"), &mut random, until);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

fn talk(node: &Node, name: &str, random: &mut Seeded, until: u64) -> sidestep_fabric::Result<()> {
    let kind = if random.chance(500) { Kind::Stream } else { Kind::Slots(128) };
    let options = ChannelOptions { capacity: 4096, kind };
    let region = Region::new(node, 64 * 1024)?;
    let private = region.cookie(Rights::ALL).to_bytes();
    let mut channel = Channel::connect(node, name, options, &private, Some(clock::now() + 200_000_000))?;
    let mut buffer = [0; 256];
    while clock::now() < until {
        let deadline = Some(clock::now() + 2_000_000);
        match kind {
            Kind::Stream => {
                channel.sender.send(&buffer[..64], deadline)?;
                channel.receiver.receive(&mut buffer, deadline)?;
            }
            Kind::Slots(_) => {
                channel.sender.send_message(&buffer[..64], deadline)?;
                channel.receiver.receive_message(&mut buffer, deadline)?;
            }
        }
    }
    Ok(())
}

/// A channel by hand, then random values in the victim's memory only: its own state stays sound.
pub fn scribble_by_hand(name: &str, seed: u64, until: u64) {
    let mut random = Seeded::new(seed);
    while clock::now() < until {
        let bell = PairBell::new().unwrap();
        let Some(raw) = Raw::connect(name, bell.for_peer()) else { continue };
        let Some(queue) = raw.channel(name, random.chance(500)) else { continue };
        for _ in 0..random.below(200) {
            let memory = [&raw.theirs, &queue.victim, &queue.own, &raw.ours][random.below(4) as usize];
            scribble(memory, random.below(30), &mut random);
            raw.their_bell.ring();
            if random.chance(100) {
                let _ = raw.send(Frame::Post(&[4, 0, 0, 0, 0]), &[]);
            }
        }
    }
}

/// Garbled, cut and misplaced frames with any descriptors; nothing is ever read.
pub fn babble(name: &str, seed: u64, until: u64) {
    let mut random = Seeded::new(seed);
    while clock::now() < until {
        let bell = PairBell::new().unwrap();
        let line = if random.chance(300) {
            let Ok(line) = Lifeline::connect(name, |_| true) else { continue };
            line
        } else {
            let Some(raw) = Raw::connect(name, bell.for_peer()) else { continue };
            raw.line
        };
        for _ in 0..random.below(60) {
            let mut bytes = any_frame(name, &mut random);
            garble(&mut bytes, &mut random);
            let descriptors: Vec<OwnedFd> = (0..random.below(4)).map(|_| any_descriptor(&mut random)).collect();
            let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
            if bytes.is_empty() || line.send(&bytes, &descriptors).is_err() {
                break;
            }
        }
    }
}

/// Correct in every word, and far too much of it.
pub fn flood(name: &str, seed: u64, until: u64) {
    let mut random = Seeded::new(seed);
    while clock::now() < until {
        let bell = PairBell::new().unwrap();
        match random.below(4) {
            0 => {
                let lines: Vec<_> = (0..60).filter_map(|_| Lifeline::connect(name, |_| true).ok()).collect();
                drop(lines);
            }
            1 => {
                let lines: Vec<_> = (0..20).filter_map(|_| Raw::connect(name, bell.for_peer())).collect();
                drop(lines);
            }
            2 => {
                let Some(raw) = Raw::connect(name, bell.for_peer()) else { continue };
                let Some(queue) = raw.channel(name, true) else { continue };
                flood_frames(&raw, &queue.victim_spec.cookie, name, &mut random, until);
            }
            _ => {
                let Some(raw) = Raw::connect(name, bell.for_peer()) else { continue };
                flood_events(&raw, &mut random);
            }
        }
    }
}

/// Questions whose answers are never taken, requests for connections, pages: until the victim cuts the line.
fn flood_frames(raw: &Raw, victim: &Cookie, name: &str, random: &mut Seeded, until: u64) {
    for count in 0..30_000u32 {
        let from = EndpointId { slot: count, session: 0 };
        let sent = match random.below(3) {
            0 => raw.post(Message::Connect { from, name, private: b"nothing" }),
            1 => {
                let ask = Ask::Get { offset: 0, len: 32 * 1024 };
                raw.send(Frame::Ask { ticket: u64::from(count), cookie: *victim, ask }, &[])
            }
            _ => {
                let page = any_descriptor(random);
                raw.send(Frame::Pages { cookie: cookie(count as u8), len: 4096 }, &[page.as_fd()])
            }
        };
        if sent.is_none() || clock::now() > until {
            return;
        }
    }
}

fn flood_events(raw: &Raw, random: &mut Seeded) {
    let Ok(mut poster) = EventPoster::new(&raw.theirs, PAIR_EVENTS, &raw.ours, PAIR_EVENTS) else { return };
    for _ in 0..100_000 {
        let event = random.below(8) << 63 | random.below(40) << 32 | random.below(1 << 16);
        match poster.post(event) {
            Ok(true) => raw.their_bell.ring(),
            Ok(false) => {}
            Err(_) => return,
        }
    }
}

/// Writes some random values to words of a memory that are likely to matter.
fn scribble(memory: &Memory, count: u64, random: &mut Seeded) {
    for _ in 0..count {
        let words = memory.len() as u64 / 8;
        let word = match random.below(10) {
            0..4 => random.below(words.min(64)),
            4..6 => random.below(words / 16) * 16 + [0, 1, 2, 16, 17][random.below(5) as usize],
            6..8 => words - 1 - random.below(words / 16 + 1),
            _ => random.below(words),
        };
        let Ok(word) = memory.word64(word.min(words - 1) as usize * 8) else { continue };
        let now = word.load(Ordering::Relaxed);
        let value = match random.below(9) {
            0..3 => now
                .wrapping_add((random.below(129).wrapping_sub(64)).wrapping_mul([1, 8, 64][random.below(3) as usize])),
            3 => random.next_u64(),
            4 => 0,
            5 => u64::MAX,
            6 => now ^ 1 << 63,
            7 => now ^ 1 << random.below(64),
            _ => random.below(1 << 20),
        };
        word.store(value, Ordering::Relaxed);
    }
}

fn any_frame(name: &str, random: &mut Seeded) -> Vec<u8> {
    let mut bytes = Vec::new();
    let id = EndpointId { slot: random.below(4) as u32, session: random.below(4) as u32 };
    let ticket = random.below(4);
    let mut message = Vec::new();
    match random.below(6) {
        0 => Message::Connect { from: id, name, private: &[7; 80] }.emit(&mut message),
        1 => Message::Accept { to: id, from: id, private: b"x" }.emit(&mut message),
        2 => Message::Message { to: id, bytes: &[1; 100] }.emit(&mut message),
        3 => Message::OnClose { to: id, bytes: b"bye" }.emit(&mut message),
        4 => Message::Close { to: id, bytes: b"" }.emit(&mut message),
        _ => Message::Refuse { to: id, nobody_listens: true, private: b"" }.emit(&mut message),
    }
    let frame = match random.below(8) {
        0..3 => Frame::Post(&message),
        3 => Frame::Ask { ticket, cookie: cookie(1), ask: Ask::Map },
        4 => Frame::Ask { ticket, cookie: cookie(1), ask: Ask::Put { offset: random.next_u64(), bytes: &[1; 64] } },
        5 => Frame::Reply { ticket, answer: Answer::Bytes(&[1; 64]) },
        6 => Frame::Pages { cookie: cookie(1), len: random.next_u64() >> random.below(64) },
        _ => Frame::Hello { version: 1, pair_len: 4096 },
    };
    frame.emit(&mut bytes);
    bytes
}

fn garble(bytes: &mut Vec<u8>, random: &mut Seeded) {
    match random.below(5) {
        0 => bytes.truncate(random.below(bytes.len() as u64 + 1) as usize),
        1 => bytes.resize(bytes.len() + random.below(40_000) as usize, 0xa5),
        2 => bytes.iter_mut().for_each(|byte| *byte = random.next_u64() as u8),
        3 => {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        _ => {}
    }
}
