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

#[path = "loom/pending.rs"]
mod pending;
#[path = "loom/rings.rs"]
mod rings;
#[path = "loom/wake.rs"]
mod wake;

/// Runs `scenario` in every way within the bound.
fn model(scenario: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.max_branches = 10_000;
    builder.check(scenario);
}
