//! The lines of the contract.

use std::{io::IoSlice, thread};

use sidestep_fabric::EventQueue;
use sidestep_stream::carrier::{ENDED, Inbound, Mode, Outbound, Watch};
use sidestep_sys::clock;
use sidestep_testkit::{conformance::nodes::PATIENCE_NS, process::seed_or, sockets::judge::Random};

use super::fixture::{End, Pair};

pub use super::endings::*;

/// Byte number `at` of a stream.
fn byte(at: u64) -> u8 {
    (at ^ at >> 8 ^ at >> 16) as u8
}

pub fn pattern(from: u64, len: usize) -> Vec<u8> {
    (from..from + len as u64).map(byte).collect()
}

/// Sends bytes of the pattern until no more fit; `sent` were sent before. Returns how many were.
fn fill(pair: &mut Pair, mut sent: u64, piece: usize) -> u64 {
    // An acknowledgement may be on its way. And where packets fill a carrier, the way itself may be full: that has room again
    // whenever the peer's node gets to it, though nobody reads. Only a window that is used up lasts until then.
    let mut refusals = 0;
    pair.until("a carrier that takes no more", |pair| {
        let end = &mut pair.ends[0];
        loop {
            let count = end.send(&pattern(sent, piece));
            sent += count as u64;
            if count < piece {
                break;
            }
        }
        let is_full = end.out.space() < piece && (!end.capabilities().packets || end.carrier.watch().is_choked());
        refusals = if is_full { refusals + 1 } else { 0 };
        (refusals == 3).then_some(())
    });
    sent
}

/// Receives so many bytes of the pattern.
pub fn expect(pair: &mut Pair, from: u64, len: u64) {
    let mut got = Vec::new();
    pair.until("bytes that were sent", |pair| {
        got.extend(pair.ends[1].receive(1 + (len as usize - got.len()) / 2));
        (got.len() as u64 >= len).then_some(())
    });
    assert!(got == pattern(from, len as usize), "bytes were lost, added or changed");
}

/// C1.
pub fn bytes_arrive_once_and_in_order(mut pair: Pair) {
    const TOTAL: u64 = 200_000;
    let mut random = Random::new(seed_or(1));
    let (mut sent, mut received) = ([0; 2], [0; 2]);
    pair.until("all bytes", |pair| {
        for side in [0, 1] {
            let end = &mut pair.ends[side];
            let len = random.size(30_000).min(TOTAL - sent[side]) as usize;
            let bytes = pattern(sent[side], len);
            // A call may have several parts.
            let cut = random.below(1 + len as u64) as usize;
            let parts = [IoSlice::new(&bytes[..cut]), IoSlice::new(&bytes[cut..])];
            let parts = if random.one_in(2) { &parts[..] } else { &[IoSlice::new(&bytes)] };
            sent[side] += end.out.send(parts, false).expect("the peer is there") as u64;
            assert_eq!(end.out.position(), sent[side]);
            let other = &mut pair.ends[1 - side];
            let wanted = random.size(30_000) as usize;
            let mut seen = vec![0; wanted];
            let skip = random.below(100) as usize;
            let peeked = other.inward.peek(skip, &mut seen).expect("an honest peer");
            assert!(seen[..peeked] == pattern(received[side] + skip as u64, peeked), "what is shown is not what comes");
            let got = if random.one_in(8) {
                let mut dropped = vec![0; wanted];
                let parts = &mut [std::io::IoSliceMut::new(&mut dropped)];
                let count = other.inward.receive_parts(parts, Mode::Discard).expect("an honest peer");
                pattern(received[side], count)
            } else {
                other.receive(wanted)
            };
            assert!(peeked == 0 || got.len() >= (skip + peeked).min(wanted), "what was shown has gone");
            assert!(got == pattern(received[side], got.len()), "bytes were lost, added or changed");
            received[side] += got.len() as u64;
            assert_eq!(other.inward.position(), received[side]);
        }
        (received == [TOTAL; 2]).then_some(())
    });
    // Who looks for more has told what was read.
    pair.until("the counts", |pair| {
        pair.ends.iter_mut().for_each(|end| assert_eq!(end.receive(1), b""));
        let counts = |end: &End| (end.carrier.watch().read(), end.carrier.watch().written());
        pair.ends.iter().all(|end| counts(end) == (TOTAL, TOTAL)).then_some(())
    });
}

/// C2.
pub fn what_does_not_fit_is_not_taken(mut pair: Pair) {
    let sent = fill(&mut pair, 0, 1000);
    assert!(!pair.ends[0].carrier.watch().has_space(|| sent, sent));
    let before = pair.ends[0].carrier.watch().read();
    expect(&mut pair, 0, sent);
    pair.until("space", |pair| {
        let end = &mut pair.ends[0];
        (end.carrier.watch().read() != before && end.out.space() > 0).then_some(())
    });
    let more = fill(&mut pair, sent, 1000);
    assert!(more > sent);
    expect(&mut pair, sent, more - sent);
}

/// C3.
pub fn notes_come_after_the_bytes_before_them(mut pair: Pair) {
    let sent = fill(&mut pair, 0, 700);
    let held = pair.ends[0].out.holds();
    for note in 1..100u64 {
        let (which, value) = (note as usize % 2, note << 20 | 7);
        pair.until("room for a note", |pair| pair.ends[0].out.may_note().then_some(()));
        pair.ends[0].out.set_note(which, value).expect("the peer is there");
        pair.ends[0].inward.set_note(value + 1).expect("the peer is there");
        pair.until("notes", |pair| {
            let watch = pair.ends[1].carrier.watch();
            (watch.writer_note(which) == value && watch.reader_note() == value + 1).then_some(())
        });
        let there = pair.ends[1].carrier.watch().written();
        assert!(held || there == sent, "{there} of {sent} bytes are there");
    }
    expect(&mut pair, 0, sent);
}

/// C5.
pub fn held_bytes_come_back_or_arrive(mut pair: Pair) {
    let sent = fill(&mut pair, 0, 16);
    let (writer, reader) = pair.both();
    let (holds_back, held) = (writer.capabilities().holds_back, writer.out.holds());
    assert!(holds_back || !held);
    let back = writer.out.take_back().expect("the peer is there");
    assert_eq!(back.is_empty(), !held);
    assert_eq!(writer.out.position() + back.len() as u64, sent);
    assert!(back == pattern(sent - back.len() as u64, back.len()));
    let kept = sent - back.len() as u64;
    assert_eq!(reader.capabilities().holds_back, holds_back);
    expect(&mut pair, 0, kept);
    pair.look();
    assert_eq!(pair.ends[1].receive(100), b"", "what was taken back has come all the same");
    // Small writes arrive without another call of the writer, when the reader has read what came before.
    let writer = &mut pair.ends[0];
    for at in 0..10 {
        assert_eq!(writer.send(&pattern(kept + at * 16, 16)), 16);
    }
    expect(&mut pair, kept, 160);
}

/// C6.
pub fn larger_ones_lose_nothing(mut pair: Pair) {
    let sent = fill(&mut pair, 0, 100);
    let (writer, reader) = pair.both();
    let capacity = reader.inward.capacity();
    if !reader.capabilities().grows {
        assert!(!reader.inward.grow(capacity * 4));
        assert_eq!(writer.out.adopt_larger(), None);
        return;
    }
    assert_eq!(sent, capacity as u64);
    assert!(!reader.inward.grow(capacity), "that is as large as it is");
    assert!(reader.inward.grow(capacity * 4));
    let larger = pair.until("an offer", |pair| pair.ends[0].out.adopt_larger());
    assert_eq!(larger, capacity as u64 * 4);
    let more = fill(&mut pair, sent, 100);
    assert!(more - sent >= capacity as u64 * 3, "{} bytes fit", more - sent);
    expect(&mut pair, 0, more);
    assert_eq!(pair.ends[1].inward.capacity(), capacity * 4);
    let last = fill(&mut pair, more, 100);
    // A reader tells what it has read when that is a part of what fits.
    assert!(last - more >= capacity as u64 * 3, "{} bytes fit", last - more);
    expect(&mut pair, more, last - more);
}

/// C7.
pub fn lent_memory_is_the_callers_again(mut pair: Pair) {
    const TOTAL: u64 = 1 << 20;
    const PIECE: usize = 60_000;
    let until = clock::now() + PATIENCE_NS;
    let mut reader = pair.ends.remove(1);
    let writer = pair.ends.remove(0);
    thread::scope(|scope| {
        scope.spawn(move || {
            // The whole of it, which ends with this thread.
            let mut writer = writer;
            let (mut sent, mut memory) = (0, Vec::new());
            while sent < TOTAL {
                assert!(clock::now() < until, "{sent} bytes went out");
                memory.clear();
                memory.extend(pattern(sent, PIECE.min((TOTAL - sent) as usize)));
                let count = writer.out.send(&[IoSlice::new(&memory)], true).expect("the peer is there");
                // Whatever was taken was taken.
                memory.fill(0xee);
                sent += count as u64;
                if count < memory.len() {
                    writer.carrier.node().progress_kernel();
                    writer.carrier.watch().settle();
                    thread::yield_now();
                }
            }
            while writer.carrier.watch().read() < TOTAL {
                assert!(clock::now() < until, "the last bytes were not read");
                writer.carrier.node().progress_kernel();
                writer.carrier.watch().settle();
            }
        });
        let mut received = 0;
        while received < TOTAL {
            assert!(clock::now() < until, "{received} bytes came in");
            let got = reader.receive(PIECE);
            assert!(got == pattern(received, got.len()), "bytes were lost, added or changed");
            received += got.len() as u64;
            if got.is_empty() {
                reader.carrier.node().progress_kernel();
                reader.carrier.watch().settle();
                thread::yield_now();
            }
        }
        // The writer waits for word of the last ones.
        while reader.carrier.check() && clock::now() < until {
            assert_eq!(reader.receive(1), b"");
            reader.carrier.watch().settle();
        }
    });
}

/// C8.
pub fn news_wakes(mut pair: Pair) {
    let mut sent = 0;
    for round in 0..50 {
        let news = EventQueue::new(pair.ends[1].carrier.node());
        let sources = pair.ends[1].carrier.watch().attach(&news, 40);
        let (writer, reader) = pair.both();
        let before = reader.carrier.node().epoch();
        reader.carrier.watch().arm_arrival();
        let rests = reader.carrier.watch().may_rest(true);
        assert!(!reader.inward.has_news_now());
        writer.out.send(&[IoSlice::new(&[byte(sent)])], false).expect("the peer is there");
        // What sleeps is woken by a new epoch of its node, which the kernel or a look brings.
        pair.until("news of the node", |pair| (pair.ends[1].carrier.node().epoch() != before).then_some(()));
        let mut reported = false;
        let mut got = Vec::new();
        pair.until("the byte, and a report of it", |pair| {
            pair.ends[1].carrier.watch().shared_news().iter().for_each(|shared| shared.take_arrivals());
            reported |= news.poll().is_some_and(|event| event.token == 40);
            if got.is_empty() {
                got = pair.ends[1].receive(10);
            }
            (!got.is_empty() && (reported || !rests)).then_some(())
        });
        assert_eq!(got, [byte(sent)], "round {round}");
        sent += 1;
        sources.iter().for_each(|source| pair.ends[1].carrier.watch().detach(&news, *source));
    }
    // Space is news as well.
    let filled = fill(&mut pair, sent, 500);
    let before = pair.ends[0].carrier.node().epoch();
    pair.ends[0].carrier.watch().arm_space();
    expect(&mut pair, sent, filled - sent);
    pair.until("news of the node", |pair| (pair.ends[0].carrier.node().epoch() != before).then_some(()));
    assert!(pair.ends[0].carrier.has_space());
}

/// C9.
pub fn what_has_arrived_outlives_the_peer(mut pair: Pair) {
    let sent = pair.ends[0].send(&pattern(0, 900)) as u64;
    let mut mark = None;
    pair.until("arrival", |pair| pair.ends[0].out.has_arrived(&mut mark).then_some(()));
    drop(pair.ends.remove(0));
    let until = clock::now() + PATIENCE_NS;
    let end = &mut pair.ends[0];
    while end.carrier.check() {
        assert!(clock::now() < until, "the end was not seen");
    }
    assert_eq!(end.receive(2000), pattern(0, sent as usize));
    assert_eq!(end.receive(2000), b"");
    let refused = (0..1000).any(|_| !matches!(end.out.send(&[IoSlice::new(&[1; 900])], true), Ok(1..)));
    assert!(refused, "a peer that is gone takes bytes for ever");
}

/// C10.
pub fn the_end_comes_after_the_last_byte(mut pair: Pair) {
    let (writer, reader) = pair.both();
    assert!(!reader.carrier.has_ended());
    let sent = writer.send(&pattern(0, 900)) as u64;
    writer.out.set_note(0, ENDED).expect("the peer is there");
    let mut mark = None;
    pair.until("arrival", |pair| pair.ends[0].out.has_arrived(&mut mark).then_some(()));
    drop(pair.ends.remove(0));
    let until = clock::now() + PATIENCE_NS;
    let end = &mut pair.ends[0];
    while !end.carrier.has_ended() {
        assert!(clock::now() < until, "the end does not come");
        end.carrier.check();
    }
    assert_eq!(end.inward.available() as u64, sent);
    assert_eq!(end.receive(2000), pattern(0, sent as usize));
}

/// C11.
pub fn what_was_said_leaves_room(mut pair: Pair) {
    let (writer, reader) = pair.both();
    for _ in 0..500 {
        writer.carrier.watch().nudge();
        writer.out.set_note(0, 7 << 20).expect("the peer is there");
        writer.inward.set_note(8 << 20).expect("the peer is there");
    }
    // The peer does not look.
    let until = clock::now() + PATIENCE_NS;
    for (note, value) in [(1, 9 << 20), (0, 10 << 20)] {
        writer.out.set_note(note, value).expect("the peer is there");
        let mut mark = None;
        while !writer.out.has_arrived(&mut mark) {
            assert!(clock::now() < until, "a note finds no room");
            writer.carrier.node().progress_kernel();
        }
    }
    reader.carrier.watch().settle();
    pair.until("the last notes", |pair| {
        let watch = pair.ends[1].carrier.watch();
        let notes = [watch.writer_note(0), watch.writer_note(1), watch.reader_note()];
        (notes == [10 << 20, 9 << 20, 8 << 20]).then_some(())
    });
    assert_eq!(pair.ends[0].send(&pattern(0, 100)), 100);
    let got = pair.until("bytes", |pair| Some(pair.ends[1].receive(100)).filter(|got| !got.is_empty()));
    assert_eq!(got, pattern(0, 100));
}

/// C13.
pub fn a_read_gives_one_write(mut pair: Pair) {
    let mut random = Random::new(seed_or(13));
    let (mut sent, mut dropped) = (0, 0);
    for _ in 0..500 {
        let lens: Vec<usize> = (0..1 + random.below(4)).map(|_| 1 + random.below(900) as usize).collect();
        for len in &lens {
            let bytes = pattern(sent, *len);
            let cut = random.below(*len as u64) as usize;
            let parts = [IoSlice::new(&bytes[..cut]), IoSlice::new(&bytes[cut..])];
            let count = pair.until("room", |pair| {
                let taken = pair.ends[0].out.send(&parts, false).expect("the peer is there");
                (taken > 0).then_some(taken)
            });
            assert_eq!(count, *len, "a write is taken whole or not at all");
            sent += *len as u64;
        }
        let mut at = sent - lens.iter().sum::<usize>() as u64;
        for len in lens {
            let room = 1 + random.below(1200) as usize;
            let got = pair.until("a write", |pair| Some(pair.ends[1].receive(room)).filter(|got| !got.is_empty()));
            assert_eq!(got, pattern(at, len.min(room)));
            dropped += len.saturating_sub(room);
            at += len as u64;
            assert_eq!(pair.ends[1].inward.position(), at, "what is left of a write is dropped");
        }
    }
    assert!(dropped > 0);
}

/// C12.
pub fn a_hostile_peer_harms_itself_only(mut pair: Pair) {
    let mut random = Random::new(seed_or(11));
    let mut bytes = vec![0; 70_000];
    for _ in 0..3000 {
        let Pair { ends, attack, .. } = &mut pair;
        attack(&mut ends[1], &mut random);
        let end = &mut ends[0];
        let before = end.inward.position();
        let len = random.size(70_000) as usize;
        match random.below(8) {
            0 => _ = end.out.send(&[IoSlice::new(&bytes[..len])], random.one_in(4)),
            1 => {
                _ = end
                    .inward
                    .peek(random.below(100_000) as usize, &mut bytes[..len])
                    .map(|count| assert!(count <= len))
            }
            2 => _ = end.inward.consume(random.below(100) as usize),
            3 => _ = (end.out.take_back(), end.out.is_frozen(), end.out.witness(), end.out.adopt_larger()),
            4 => _ = (end.out.set_note(1, random.number()), end.inward.set_note(random.number())),
            5 => {
                end.carrier.check();
                end.carrier.watch().settle();
                _ = (
                    end.carrier.has_space(),
                    end.carrier.peer_reading(),
                    end.carrier.is_switching(),
                    end.carrier.filled(),
                );
                end.carrier.watch().arm_arrival();
                end.carrier.watch().arm_space();
            }
            6 => _ = (end.inward.is_over(), end.inward.is_taken(), end.inward.withdraw(), end.inward.available()),
            _ => _ = end.inward.receive(&mut bytes[..len]).map(|count| assert!(count <= len)),
        }
        assert!(end.inward.position() >= before, "the position went back");
        if random.one_in(4) {
            // The peer's own calls go on, too.
            let _ = ends[1].out.send(&[IoSlice::new(&bytes[..len.min(300)])], false);
            let _ = ends[1].inward.receive(&mut bytes);
        }
    }
}
