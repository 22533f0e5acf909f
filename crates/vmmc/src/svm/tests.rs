//! Processes that share memory, as threads of one: each has a process of its own on a card of its own name.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::process::{CardOptions, serve};

/// Runs something in every process of a shared memory, two on each card.
fn together<T: Send>(homes: &[u8], count: usize, run: impl Fn(SharedMemory) -> T + Sync) -> Vec<T> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("svm-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    std::thread::scope(|scope| {
        for card in 0..count.div_ceil(2) {
            let name = format!("{name}-{card}");
            scope.spawn(move || serve(&name, CardOptions::default()).unwrap());
        }
        let (name, run) = (&name, &run);
        let process = |rank: usize| {
            move || loop {
                let card = format!("{name}-{}", rank / 2);
                let join = Join { name, rank, count, homes: homes.to_vec(), card: &card, start: None };
                match SharedMemory::join(join) {
                    Ok(memory) => return run(memory),
                    // Its card is about to be there.
                    Err(Error::Memory(sidestep_shm::Error::NobodyListens(_)) | Error::Fabric(_)) => {
                        std::thread::yield_now();
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let handles: Vec<_> = (0..count).map(|rank| scope.spawn(process(rank))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    })
}

/// Several write different words of one page, its home among them; all see all of it after the barrier, time and again.
#[test]
fn words_of_one_page_are_merged() {
    let counts = together(&[0, 1, 2], 3, |mut memory| {
        let rank = memory.rank();
        for round in 1..=6 {
            for page in 0..3 {
                memory.set(page * PAGE_WORDS + rank, (round * 10 + rank) as f64);
                memory.set(page * PAGE_WORDS + 100 + 7 * rank, round as f64);
            }
            memory.barrier().unwrap();
            for page in 0..3 {
                for other in 0..3 {
                    assert_eq!(memory.get(page * PAGE_WORDS + other), (round * 10 + other) as f64);
                    assert_eq!(memory.get(page * PAGE_WORDS + 100 + 7 * other), round as f64);
                }
            }
            memory.barrier().unwrap();
        }
        let steps = memory.leave().unwrap();
        let count = |is: fn(&Step) -> bool| steps.iter().filter(|step| is(step)).count();
        [count(|step| matches!(step, Step::Fetch(_))), count(|step| matches!(step, Step::Send(..)))]
    });
    // Two pages of others: fetched before the first write, and after each of the six barriers; sent six times.
    assert_eq!(counts, [[14, 12]; 3]);
}

/// What nobody else wrote is not fetched again, and what was not changed is not sent.
#[test]
fn pages_that_nobody_writes_stay() {
    let fetches = together(&[0, 0], 2, |mut memory| {
        if memory.rank() == 0 {
            memory.set(5, 5.0);
        }
        memory.barrier().unwrap();
        for _ in 0..5 {
            assert_eq!(memory.get(5), 5.0);
            if memory.rank() == 1 {
                memory.set(5, 5.0);
            }
            memory.barrier().unwrap();
        }
        let steps = memory.leave().unwrap();
        assert!(!steps.iter().any(|step| matches!(step, Step::Send(..))), "nothing changed");
        steps.iter().filter(|step| matches!(step, Step::Fetch(_))).count()
    });
    assert_eq!(fetches, [0, 1]);
}

#[test]
fn a_process_that_is_gone_is_told_of() {
    let outcomes = together(&[0, 1], 2, |mut memory| match memory.rank() {
        0 => memory.barrier().unwrap_err().to_string(),
        _ => String::new(),
    });
    assert!(outcomes[0].contains("process 1 of the shared memory is gone"), "{outcomes:?}");
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let join = |rank, count, homes| {
        SharedMemory::join(Join { name: "no", rank, count, homes, card: "no", start: None }).unwrap_err().to_string()
    };
    for wrong in [join(0, 1, vec![0]), join(2, 2, vec![0]), join(0, 2, vec![]), join(0, 2, vec![2])] {
        assert!(wrong.contains("2 to 16 processes"), "{wrong}");
    }
}
