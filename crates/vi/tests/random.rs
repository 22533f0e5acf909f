//! Random programs of receives, sends, RDMA and disconnects, against a model that is a queue of expected bytes; and programs of
//! both sides, with completion queues, unreliable VIs and everything that goes wrong.

#[path = "random/duplex.rs"]
mod duplex;
#[allow(dead_code)]
#[path = "conformance/pair.rs"]
mod pair;

use std::collections::VecDeque;

use sidestep_testkit::seeded::Seeded;
use sidestep_testkit::{
    conformance::fixture::{self, Fixture},
    process::full,
};
use sidestep_vi::{Buffer, Descriptor, Reliability, Status, ViState};

use pair::{Options, Pair, contents, pattern};

const SIZES: [usize; 8] = [0, 1, 100, 239, 4000, 9000, 70_000, 150_000];
const BUFFER: usize = 150_000;

/// One direction, as it should be.
#[derive(Default)]
struct Model {
    /// Posted receives: token and size.
    receives: VecDeque<(u64, usize)>,
    /// Messages that must arrive: token of the receive, length, seed.
    messages: VecDeque<(u64, usize, u8)>,
    sent: VecDeque<(u64, usize)>,
}

fn program(fixture: Fixture, seed: u64, reliability: Reliability) {
    let pair = Pair::new(fixture, Options { reliability, ..Options::default() });
    let mut random = Seeded::new(seed);
    let mut pick = move |count: usize| random.next_u64() as usize % count;
    let rooms: Vec<Buffer> = (0..16).map(|_| pair.b.buffer(BUFFER)).collect();
    let (source, target) = (pair.a.buffer(BUFFER), pair.b.buffer(BUFFER));
    let mut model = Model::default();
    let mut token = 0;
    for step in 0..150 {
        token += 1;
        match pick(10) {
            0..4 if model.receives.len() + model.messages.len() < rooms.len() => {
                let size = SIZES[pick(8)];
                // A buffer that no message under way uses.
                let room = &rooms[token as usize % rooms.len()];
                let busy = |used: u64| used % rooms.len() as u64 == token % rooms.len() as u64;
                if model.receives.iter().any(|entry| busy(entry.0)) || model.messages.iter().any(|entry| busy(entry.0))
                {
                    continue;
                }
                pair.b.vi.post_receive(&Descriptor::new(token, &[room.segment(0, size)])).unwrap();
                model.receives.push_back((token, size));
                pair.settle();
            }
            4..7 if !model.receives.is_empty() => {
                let (receive, room) = model.receives.pop_front().expect("not empty");
                let (len, mark) = (SIZES[pick(8)].min(room), step as u8);
                while !model.sent.is_empty() {
                    drain_sends(&pair, &mut model);
                }
                source.write(0, &pattern(len, mark)).unwrap();
                pair.a.vi.post_send(&Descriptor::new(token, &[source.segment(0, len)])).unwrap();
                model.messages.push_back((receive, len, mark));
                model.sent.push_back((token, len));
                drain_sends(&pair, &mut model);
            }
            7 => {
                let (len, mark) = (SIZES[pick(8)], step as u8);
                drain_sends(&pair, &mut model);
                source.write(0, &pattern(len, mark)).unwrap();
                let write = Descriptor::new(token, &[source.segment(0, len)]);
                pair.a.vi.post_send(&write.write_to(target.address(), target.handle())).unwrap();
                model.sent.push_back((token, len));
                drain_sends(&pair, &mut model);
                let copy = pair.a.buffer(BUFFER);
                let read = Descriptor::new(token, &[copy.segment(0, len)]);
                pair.a.vi.post_send(&read.read_from(target.address(), target.handle())).unwrap();
                model.sent.push_back((token, len));
                drain_sends(&pair, &mut model);
                assert!(contents(&copy, 0, len) == pattern(len, mark));
            }
            8 => {
                while let Some((receive, len, mark)) = model.messages.pop_front() {
                    let got = pair.received(&pair.b.vi);
                    assert_eq!((got.token, got.len as usize, got.status.is_error()), (receive, len, false));
                    assert!(contents(&rooms[receive as usize % rooms.len()], 0, len) == pattern(len, mark));
                }
            }
            9 if pick(4) == 0 => {
                drain_sends(&pair, &mut model);
                pair.a.vi.disconnect().unwrap();
                // What was sent arrives; the rest is flushed, in order.
                for (receive, len, _) in model.messages.drain(..) {
                    let got = pair.received(&pair.b.vi);
                    assert_eq!((got.token, got.len as usize, got.status.is_error()), (receive, len, false));
                }
                for (receive, _) in model.receives.drain(..) {
                    let got = pair.received(&pair.b.vi);
                    assert_eq!((got.token, got.status.has(Status::FLUSHED)), (receive, true));
                }
                pair.until("the end", || (pair.b.vi.state() == ViState::Error).then_some(()));
                pair.b.vi.disconnect().unwrap();
                pair.join(&pair.a.vi, &pair.b.vi);
            }
            _ => {}
        }
    }
}

fn drain_sends(pair: &Pair, model: &mut Model) {
    while let Some((token, len)) = model.sent.pop_front() {
        let sent = pair.sent(&pair.a.vi);
        assert_eq!((sent.token, sent.len as usize, sent.status.is_error()), (token, len, false));
    }
}

#[test]
fn programs_on_shared_memory() {
    for seed in 0..8 {
        program(fixture::shm, seed, if seed % 2 == 0 { Reliability::Delivery } else { Reliability::Reception });
    }
}

#[test]
fn programs_on_a_simulated_link() {
    for seed in 0..3 {
        program(fixture::sim_mapped, seed, Reliability::Delivery);
        program(fixture::sim_proxied, seed, Reliability::Reception);
    }
}

#[test]
fn duplex_programs_on_shared_memory() {
    duplex_programs(fixture::shm, 12);
}

#[test]
fn duplex_programs_over_iwarp() {
    duplex_programs(fixture::iwarp, 6);
}

#[test]
fn duplex_programs_on_a_simulated_link() {
    duplex_programs(fixture::sim_mapped, 3);
    duplex_programs(fixture::sim_proxied, 3);
}

/// Each level, with and without completion queues.
fn duplex_programs(fixture: Fixture, seeds: u64) {
    for seed in 0..if full() { 20 * seeds } else { seeds } {
        let reliability = [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception][seed as usize % 3];
        duplex::program(fixture, seed, reliability, seed / 3 % 2 == 0);
    }
}
