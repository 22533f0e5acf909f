//! Every interleaving, and every value a weak machine may return, of the rings and of the steps before a sleep.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p sidestep-shm --test loom --release --target-dir target/loom
//! ```
//!
//! Two or three threads, a few bytes, at most three forced switches of thread (`LOOM_MAX_PREEMPTIONS` says otherwise).
//! The threads take a fixed number of steps instead of waiting for each other; what is left over is taken and counted
//! after they have ended. Payload lies in tracked cells, so two accesses to one byte that nothing orders are
//! reported; a wake-up that is lost is reported as a deadlock. `weakened.rs` shows for each ordering which model misses
//! it.
//!
//! What loom does not show: a load that takes its value from a store later in its own thread's order (load
//! buffering, which relaxed atomics allow); SeqCst *accesses*, which it takes as AcqRel (none are used here;
//! SeqCst fences are modelled); and anything beyond the bound on switches.

#![cfg(loom)]

#[path = "loom/gate.rs"]
mod gate;
#[path = "loom/pending.rs"]
mod pending;
#[path = "loom/rings.rs"]
mod rings;
#[path = "loom/wake.rs"]
mod wake;

/// Runs `scenario` in every way within the bound; once with either side of its [`race`] on the first thread.
///
/// loom tries another order of two steps only if nothing of the same kind lies between them: a look of one thread, then
/// a look and a change by the other, are never turned round. From the other first order they are.
fn model(scenario: impl Fn(First) + Sync + Send + 'static) {
    let scenario = std::sync::Arc::new(scenario);
    for first in [First::Left, First::Right] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
        builder.max_branches = 10_000;
        let scenario = scenario.clone();
        builder.check(move || scenario(first));
    }
}

/// Which side loom runs first, until it waits.
#[derive(Clone, Copy)]
enum First {
    Left,
    Right,
}

/// Two threads.
fn race<L: 'static, R: 'static>(
    first: First,
    left: impl FnOnce() -> L + 'static,
    right: impl FnOnce() -> R + 'static,
) -> (L, R) {
    match first {
        First::Left => {
            let right = loom::thread::spawn(right);
            let left = left();
            (left, right.join().unwrap())
        }
        First::Right => {
            let left = loom::thread::spawn(left);
            let right = right();
            (left.join().unwrap(), right)
        }
    }
}
