//! Posted operations on mapped memory: the process that posted them carries them out, and waits for nobody.

mod pair;

use pair::{Pair, Provider, soon};
use sidestep_extended::{Kind, Rights};

const SIZE: usize = 1 << 20;
const COUNT: usize = 200;

/// Operations of several turns of the scheduler: none of them sleeps, since all the work is here.
#[test]
fn large_ones_do_not_sleep() {
    let pair = Pair::new(&Provider::OneHost);
    let (_region, remote) = pair.shared(SIZE, Rights::ALL);
    let local = pair.near_stack.register(SIZE, Rights::NONE).unwrap();
    let mut taken = Vec::new();
    while pair.near_queue.poll(&mut taken, 16) > 0 {}
    for kind in [Kind::Get, Kind::Put] {
        let before = pair.near_stack.node().counters().sleeps;
        let mut times = Vec::new();
        for token in 0..COUNT as u64 {
            let began = std::time::Instant::now();
            let pieces = vec![local.piece(0, SIZE).unwrap()];
            match kind {
                Kind::Get => pair.near.post_get(&remote, 0, pieces, token).unwrap(),
                _ => pair.near.post_put(&remote, 0, pieces, token).unwrap(),
            }
            taken.clear();
            pair.near_queue.wait(&mut taken, 1, Some(soon())).unwrap();
            assert_eq!((taken[0].kind, taken[0].token, &taken[0].outcome), (kind, token, &Ok(SIZE)));
            times.push(began.elapsed().as_micros());
        }
        let slept = pair.near_stack.node().counters().sleeps - before;
        times.sort_unstable();
        println!("{kind:?}: {slept} sleeps; median {} us, longest {} us", times[COUNT / 2], times[COUNT - 1]);
        assert_eq!(slept, 0, "{kind:?}");
    }
}
