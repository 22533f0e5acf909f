use proptest::{collection::vec, prelude::*};

use super::*;

/// A queue that notes when it is served.
#[derive(Debug)]
struct Noted {
    number: usize,
    state: Mutex<Left>,
    log: Arc<Mutex<Vec<Turn>>>,
}

#[derive(Debug, Default)]
struct Left {
    bytes: usize,
    active: bool,
    /// Turns in which the link has no room for it.
    without_room: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    queue: usize,
    bytes: usize,
    /// Whether the queue has been waiting for it since its turn before.
    waited: bool,
}

impl Serve for Noted {
    fn serve(self: &Arc<Self>, quantum: usize) -> Served {
        let mut left = self.state.lock().unwrap();
        if left.without_room > 0 {
            left.without_room -= 1;
            return Served { moved: false, more: true, stalled: true };
        }
        let bytes = left.bytes.min(quantum);
        left.bytes -= bytes;
        left.active = left.bytes > 0;
        self.log.lock().unwrap().push(Turn { queue: self.number, bytes, waited: left.active });
        Served { moved: bytes > 0, more: left.active, stalled: false }
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Post { queue: usize, bytes: usize },
    NoRoom { queue: usize, turns: usize },
    Run,
}

fn steps(queues: usize) -> impl Strategy<Value = Vec<Step>> {
    let post = (0..queues, 1..4 * QUANTUM).prop_map(|(queue, bytes)| Step::Post { queue, bytes });
    let no_room = (0..queues, 1..3_usize).prop_map(|(queue, turns)| Step::NoRoom { queue, turns });
    vec(prop_oneof![4 => post, 1 => no_room, 4 => Just(Step::Run)], 1..100)
}

/// Carries the steps out, and returns the turns in their order.
fn turns(queues: usize, steps: &[Step]) -> Vec<Turn> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let scheduler = Scheduler::default();
    let make = |number| Arc::new(Noted { number, state: Mutex::default(), log: log.clone() });
    let queues: Vec<_> = (0..queues).map(make).collect();
    for step in steps.iter().copied().chain([Step::Run; 450]) {
        match step {
            Step::Post { queue, bytes } => {
                let mut left = queues[queue].state.lock().unwrap();
                left.bytes += bytes;
                if !std::mem::replace(&mut left.active, true) {
                    scheduler.activate(queues[queue].clone());
                }
            }
            Step::NoRoom { queue, turns } => queues[queue].state.lock().unwrap().without_room += turns,
            Step::Run => drop(scheduler.run()),
        }
    }
    assert!(queues.iter().all(|queue| queue.state.lock().unwrap().bytes == 0), "all work is done");
    std::mem::take(&mut *log.lock().unwrap())
}

/// The most turns that another queue had while one waited.
fn longest_wait(queues: usize, turns: &[Turn]) -> usize {
    let mut since: Vec<Option<Vec<usize>>> = vec![None; queues];
    let mut longest = 0;
    for turn in turns {
        if let Some(others) = since[turn.queue].take() {
            longest = longest.max(others.into_iter().max().unwrap_or(0));
        }
        since.iter_mut().flatten().for_each(|others| others[turn.queue] += 1);
        if turn.waited {
            since[turn.queue] = Some(vec![0; queues]);
        }
    }
    longest
}

proptest! {
    #[test]
    fn no_queue_waits_longer_than_one_quantum_of_each_other(
        (queues, steps) in (1..40_usize).prop_flat_map(|queues| (Just(queues), steps(queues)))
    ) {
        let with_room: Vec<_> = steps.into_iter().filter(|step| !matches!(step, Step::NoRoom { .. })).collect();
        let turns = turns(queues, &with_room);
        prop_assert!(turns.iter().all(|turn| turn.bytes <= QUANTUM));
        prop_assert!(longest_wait(queues, &turns) <= 1, "{turns:?}");
    }

    #[test]
    fn queues_without_room_are_served_all_the_same(
        (queues, steps) in (1..12_usize).prop_flat_map(|queues| (Just(queues), steps(queues)))
    ) {
        turns(queues, &steps);
    }
}

#[test]
fn a_queue_that_found_no_room_is_first_when_there_is_some() {
    let post = |queue| Step::Post { queue, bytes: 4 * QUANTUM };
    let steps = [post(0), post(1), post(2), Step::NoRoom { queue: 1, turns: 1 }, Step::Run, Step::Run];
    let order: Vec<_> = turns(3, &steps).iter().take(5).map(|turn| turn.queue).collect();
    assert_eq!(order, [0, 2, 1, 0, 2]);
}
