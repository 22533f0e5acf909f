//! The event queue's rule: each source at most once, and no change goes unseen.

use loom::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};
use sidestep_shm::pending::{Mark, Pending};

use crate::model;

/// Two threads change one source and report it; whoever takes the last event of it sees both changes.
#[test]
fn no_event_is_lost_or_doubled() {
    model(|| {
        let pending = Arc::new(Pending::new());
        let changes = Arc::new(AtomicU64::new(0));
        let mark = Mark::new(7);
        let posters = [0, 1].map(|_| {
            let (pending, changes, mark) = (pending.clone(), changes.clone(), mark.clone());
            thread::spawn(move || {
                changes.fetch_add(1, Relaxed);
                usize::from(pending.post(&mark))
            })
        });
        let (mut taken, mut seen) = (0, 0);
        let mut take = || {
            let source = pending.take()?;
            assert_eq!(source, 7);
            taken += 1;
            seen = changes.load(Relaxed);
            Some(())
        };
        take();
        let posted: usize = posters.into_iter().map(|poster| poster.join().unwrap()).sum();
        assert!(pending.len() <= 1, "a source is queued twice");
        while take().is_some() {}
        assert_eq!(taken, posted, "an event appeared or went away");
        assert_eq!(seen, 2, "a change was never looked at");
    });
}

/// Two takers never hand out one event twice.
#[test]
fn an_event_is_handed_out_once() {
    model(|| {
        let pending = Arc::new(Pending::new());
        let mark = Mark::new(7);
        pending.post(&mark);
        let other = {
            let (pending, mark) = (pending.clone(), mark.clone());
            thread::spawn(move || {
                let taken = usize::from(pending.take().is_some());
                (taken, usize::from(pending.post(&mark)))
            })
        };
        let mut taken = usize::from(pending.take().is_some());
        let (there, posted) = other.join().unwrap();
        taken += there;
        while pending.take().is_some() {
            taken += 1;
        }
        assert_eq!(taken, 1 + posted);
    });
}
