//! Arm, look again, block: no wake-up is lost, and nobody rings without need.

// Not loom's: its count cannot be lowered while a model that failed unwinds.
use std::sync::Arc;

use loom::{
    sync::{Condvar, Mutex, atomic::Ordering::Relaxed},
    thread,
};
use sidestep_shm::{
    Memory, Word64,
    event_ring::{EVENT_CAPACITY, EVENT_RING_LEN, EventPoster, EventTaker, RescanWord},
    sleep_word::SleepWord,
    sync::stored_fence,
    watch::{Watch, WatchedWord},
};

use crate::{First, model, race};

/// A doorbell as the kernel has it: a ring stays until someone wakes by it.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    waiting: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.waiting.notify_one();
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.waiting.wait(rung).unwrap();
        }
        *rung = false;
    }
}

/// The owner's memory: a word, the armed bits of it, and an event ring; and the peer's, with the ring's other end.
struct Side {
    word: Word64,
    watch: Watch,
    watched: WatchedWord,
    events: Memory,
    peer: Memory,
}

impl Side {
    fn new() -> Side {
        let memory = Memory::heap(24).unwrap();
        let watch = Watch::new(&memory, 16, 16).unwrap();
        Side {
            word: memory.word64(0).unwrap(),
            watched: watch.word(0).unwrap(),
            watch,
            events: Memory::heap(EVENT_RING_LEN).unwrap(),
            peer: Memory::heap(EVENT_RING_LEN).unwrap(),
        }
    }

    fn taker(&self) -> EventTaker {
        EventTaker::new(&self.events, 0, &self.peer, 0).unwrap()
    }

    fn poster(&self) -> EventPoster {
        EventPoster::new(&self.events, 0, &self.peer, 0).unwrap()
    }

    /// The writer's part: `true` if the event is now its to deliver.
    fn write(&self) -> bool {
        self.word.store(1, Relaxed);
        stored_fence();
        self.watched.fire()
    }

    fn sleep_word(&self) -> SleepWord {
        EventTaker::sleep_word_of(&self.events, 0).unwrap()
    }
}

/// A receiver that waits for its tail, and a sender: the whole way from the store to the doorbell. `ranged`: the
/// writer looks at the bits of a range, as a write through an aperture does, or at the one bit, as a queue does.
fn arm_look_block(first: First, ranged: bool) {
    let side = Side::new();
    let bell = Arc::new(Bell::default());
    let (mut taker, mut poster, sleep) = (side.taker(), side.poster(), side.sleep_word());
    let wait = {
        let (watched, word, bell) = (side.watched.clone(), side.word.clone(), bell.clone());
        move || {
            while word.load(Relaxed) == 0 {
                watched.arm();
                if word.load(Relaxed) != 0 {
                    break;
                }
                sleep.prepare();
                if !taker.has_news() {
                    bell.wait();
                }
                sleep.cancel();
                assert!(taker.take().unwrap().is_none_or(|event| event == 0));
            }
        }
    };
    let write = move || {
        let mut fired = false;
        if ranged {
            side.word.store(1, Relaxed);
            side.watch.fire(0, 8, |_| fired = true);
        } else {
            fired = side.write();
        }
        if fired && poster.post(0).unwrap() {
            bell.ring();
        }
    };
    race(first, wait, write);
}

#[test]
fn no_wake_up_is_lost_by_a_queue() {
    model(|first| arm_look_block(first, false));
}

#[test]
fn no_wake_up_is_lost_by_a_range() {
    model(|first| arm_look_block(first, true));
}

/// Two writers, one sleeper: at most one rings for each announcement, and nobody's news is slept over.
#[test]
fn one_of_two_writers_rings() {
    model(|first| {
        let memory = Memory::heap(24).unwrap();
        let news = [8, 16].map(|offset| memory.word64(offset).unwrap());
        let sleep = SleepWord::new(memory.word64(0).unwrap());
        let bell = Arc::new(Bell::default());
        let [one, other] = news.clone().map(|word| {
            let (bell, sleep) = (bell.clone(), sleep.clone());
            move || {
                word.store(1, Relaxed);
                let rings = sleep.must_ring();
                if rings {
                    bell.ring();
                }
                usize::from(rings)
            }
        });
        // Sleeps whenever it has not seen both, so that a ring lies between two announcements: loom knows that the
        // swap of a writer precedes a later announcement only by such a ring.
        let wait = move || {
            let all_seen = || news.iter().all(|word| word.load(Relaxed) != 0);
            let mut announcements = 0;
            while !all_seen() {
                announcements += 1;
                sleep.prepare();
                if !all_seen() {
                    bell.wait();
                }
                sleep.cancel();
            }
            announcements
        };
        let one = thread::spawn(one);
        let (announcements, other) = race(first, wait, other);
        let rings = one.join().unwrap() + other;
        assert!(rings <= announcements, "{rings} rings for {announcements} announcements");
    });
}

/// More events than entries: each is taken in order, or a rescan is asked for after it was posted.
#[test]
fn events_arrive_or_a_rescan_does() {
    model(|first| {
        let side = Side::new();
        let (mut taker, mut poster) = (side.taker(), side.poster());
        let posts = EVENT_CAPACITY as u64 + 1;
        let post = move || {
            for event in 1..=posts {
                assert_eq!(poster.post(event), Ok(false), "nobody sleeps");
            }
        };
        let take = move || {
            let mut taken = Vec::new();
            taken.extend(taker.take().unwrap());
            let rescan = taker.take_rescan();
            taken.extend(taker.take().unwrap());
            (taker, taken, rescan)
        };
        let ((mut taker, mut taken, mut rescan), ()) = race(first, take, post);
        rescan |= taker.take_rescan();
        while let Some(event) = taker.take().unwrap() {
            taken.push(event);
        }
        assert!(taken.is_sorted() && taken.len() as u64 + u64::from(rescan) == posts, "{taken:?} {rescan}");
        assert!(!taker.has_news());
    });
}

/// Whoever takes the mark of a writer sees the bit that this writer cleared.
#[test]
fn a_rescan_finds_what_was_cleared() {
    model(|first| {
        let side = Side::new();
        let (taker, watched) = (side.taker(), side.watched.clone());
        let rescan = RescanWord::new(&side.events, 0).unwrap();
        watched.arm();
        let look = move || assert!(!taker.take_rescan() || !watched.is_armed(), "the firing is lost");
        race(first, look, move || {
            assert!(side.write());
            rescan.post()
        });
    });
}

/// A scan that one writer asked for may find a bit that another cleared: then it sees what that one wrote.
#[test]
fn a_cleared_bit_shows_the_word() {
    model(|first| {
        let side = Side::new();
        let (watched, word) = (side.watched.clone(), side.word.clone());
        watched.arm();
        let look = move || {
            if !watched.is_armed() {
                assert_eq!(word.load(Relaxed), 1, "the firing came before its cause");
            }
        };
        race(first, look, move || side.write());
    });
}

/// An owner that finds its bit taken sees what was written; one that takes it back gets no event.
#[test]
fn a_bit_is_taken_once() {
    model(|first| {
        let side = Side::new();
        let (watched, word) = (side.watched.clone(), side.word.clone());
        watched.arm();
        let disarm = move || {
            let kept = watched.disarm();
            assert!(kept || word.load(Relaxed) == 1, "the firing came before its cause");
            kept
        };
        let (kept, fired) = race(first, disarm, move || side.write());
        assert_ne!(kept, fired, "the one event is nobody's or everybody's");
    });
}
