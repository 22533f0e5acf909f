//! Service over iWARP: a program that looks after its node for a moment, and then no more, keeps nobody waiting.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

use sidestep_fabric::{Aperture, Cookie, Endpoint, LinkOptions, Node, RdmaQueue, Region, Rights};
use sidestep_sys::clock;
use sidestep_testkit::{ports::free_address, process::PATIENCE_NS};

const LEN: usize = 4096;

/// The answer to a write is held back, so that it travels with the next word of the program; but there is none.
#[test]
fn an_answer_is_not_held_back_for_long() {
    let Pair { queue, source, aperture, other, other_region, .. } = &pair();
    for round in 1..=200u32 {
        source.word32(0).unwrap().store(round, Ordering::Release);
        let id = queue.write(&source.slice(0, 4).unwrap(), aperture, 0).unwrap();
        let word = other_region.word32(0).unwrap();
        // The other program polls until it has what it wants.
        while word.load(Ordering::Acquire) != round {
            other.node().progress();
        }
        queue.wait(id, soon()).unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
}

/// A word at the end of a write is seen after the bytes before it, whichever thread carries the write out.
#[test]
fn the_last_word_is_seen_last() {
    let Pair { queue, source, aperture, other_region: region, _endpoint, other: _other } = pair();
    let checked = Arc::new(AtomicU32::new(0));
    let watcher = thread::spawn({
        let checked = checked.clone();
        move || {
            let word = region.word32(LEN - 4).unwrap();
            let mut bytes = vec![0; LEN - 4];
            for round in 1..=ROUNDS {
                while word.load(Ordering::Acquire) != round {
                    std::hint::spin_loop();
                }
                region.read(0, &mut bytes).unwrap();
                let stale = bytes.iter().filter(|byte| **byte != round as u8).count();
                assert_eq!(stale, 0, "round {round}: so many bytes are those of before");
                checked.store(round, Ordering::Release);
            }
        }
    });
    for round in 1..=ROUNDS {
        source.write(0, &[round as u8; LEN - 4]).unwrap();
        source.word32(LEN - 4).unwrap().store(round, Ordering::Release);
        let id = queue.write(&source.all(), &aperture, 0).unwrap();
        queue.wait(id, soon()).unwrap();
        while checked.load(Ordering::Acquire) != round && !watcher.is_finished() {
            thread::yield_now();
        }
    }
    watcher.join().unwrap();
}

const ROUNDS: u32 = 2000;

/// Two nodes, of which one writes.
struct Pair {
    queue: RdmaQueue,
    source: Region,
    aperture: Aperture,
    _endpoint: Endpoint,
    other: Endpoint,
    other_region: Region,
}

fn pair() -> Pair {
    let free = free_address();
    let name = format!("iwarp:{free}");
    let (node, other) = (iwarp(), iwarp());
    let listener = other.listen(&name).unwrap();
    let region = Region::new(&other, LEN).unwrap();
    let private = region.cookie(Rights::ALL).to_bytes();
    let accepting = thread::spawn(move || listener.wait(soon()).unwrap().accept(&private).unwrap());
    let endpoint = node.connect(&name, b"", soon()).unwrap();
    let other = accepting.join().unwrap();
    let cookie = Cookie::from_bytes(&endpoint.private()).unwrap();
    let aperture = Aperture::open(&endpoint, &cookie, soon()).unwrap();
    let source = Region::new(&node, LEN).unwrap();
    let queue = RdmaQueue::new(&node, 16);
    Pair { queue, source, aperture, _endpoint: endpoint, other, other_region: region }
}

fn iwarp() -> Node {
    Node::open(&["iwarp"], &LinkOptions::default()).unwrap()
}

fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}
