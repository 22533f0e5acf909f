//! The event queue's rule: each source at most once, and no change goes unseen.

use loom::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};
use sidestep_shm::pending::{Mark, Pending};

use crate::{model, race};

/// Two threads change one source and report it; whoever takes the last event of it sees both changes.
#[test]
fn no_event_is_lost_or_doubled() {
    model(|first| {
        let pending = Arc::new(Pending::new());
        let changes = Arc::new(AtomicU64::new(0));
        let mark = Mark::new(7);
        let [one, other] = [0, 1].map(|_| {
            let (pending, changes, mark) = (pending.clone(), changes.clone(), mark.clone());
            move || {
                changes.fetch_add(1, Relaxed);
                usize::from(pending.post(&mark))
            }
        });
        let take = {
            let pending = pending.clone();
            move || {
                assert_eq!(pending.take()?, 7);
                Some(changes.load(Relaxed))
            }
        };
        let one = thread::spawn(one);
        let (mut seen, other) = race(first, take.clone(), other);
        let posted = one.join().unwrap() + other;
        let mut taken = usize::from(seen.is_some());
        assert!(pending.len() <= 1, "a source is queued twice");
        while let Some(now) = take() {
            taken += 1;
            seen = Some(now);
        }
        assert_eq!(taken, posted, "an event appeared or went away");
        assert_eq!(seen, Some(2), "a change was never looked at");
    });
}

/// Two takers never hand out one event twice.
#[test]
fn an_event_is_handed_out_once() {
    model(|first| {
        let pending = Arc::new(Pending::new());
        let mark = Mark::new(7);
        pending.post(&mark);
        let take = {
            let pending = pending.clone();
            move || usize::from(pending.take().is_some())
        };
        let take_and_post = {
            let (pending, mark) = (pending.clone(), mark.clone());
            move || (usize::from(pending.take().is_some()), usize::from(pending.post(&mark)))
        };
        let (mut taken, (there, posted)) = race(first, take, take_and_post);
        taken += there;
        while pending.take().is_some() {
            taken += 1;
        }
        assert_eq!(taken, 1 + posted);
    });
}
