//! The atomics everything here is built from: the standard library's, or loom's when a model runs; and the
//! orderings that carry weight, each under a name.
//!
//! `--cfg weaken="<name>"` makes exactly one of them too weak, so that `tests/weakened.rs` can show which model of
//! `tests/loom.rs` notices. An ordering without a name here is relaxed, or beside a fence that does more.

#[cfg(loom)]
pub use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU64, Ordering, fence},
    sync::{Arc, Mutex, MutexGuard},
};
#[cfg(not(loom))]
pub use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU64, Ordering, fence},
    sync::{Arc, Mutex, MutexGuard},
};

/// The producer's store of the tail: payload and switch mark before it.
pub const TAIL_PUBLISH: Ordering = named(Ordering::Release, cfg!(weaken = "tail_publish"));
/// The step in which a consumer wants what it has not read: its position before it.
pub const TAIL_WANT: Ordering = named(Ordering::Release, cfg!(weaken = "tail_want"));
/// The step in which the producer takes that.
pub const TAIL_TAKE: Ordering = named(Ordering::Acquire, cfg!(weaken = "tail_take"));
/// The consumer's load of the tail.
pub const TAIL_OBSERVE: Ordering = named(Ordering::Acquire, cfg!(weaken = "tail_observe"));
/// The consumer's store of the head: its reads of the bytes before it.
pub const HEAD_PUBLISH: Ordering = named(Ordering::Release, cfg!(weaken = "head_publish"));
/// The producer's load of the head.
pub const HEAD_OBSERVE: Ordering = named(Ordering::Acquire, cfg!(weaken = "head_observe"));
/// The step that clears an armed bit: whoever finds it cleared sees the word that was written.
pub const BIT_TAKE: Ordering = named(Ordering::AcqRel, cfg!(weaken = "bit_take"));
/// A look at an armed bit: its owner, who finds it cleared, sees the word that was written.
pub const BIT_OBSERVE: Ordering = named(Ordering::Acquire, cfg!(weaken = "bit_observe"));
/// The store of a rescan mark: the cleared bits before it.
pub const RESCAN_PUBLISH: Ordering = named(Ordering::Release, cfg!(weaken = "rescan_publish"));
/// The step that takes a rescan mark.
pub const RESCAN_TAKE: Ordering = named(Ordering::AcqRel, cfg!(weaken = "rescan_take"));
/// The step that marks a source as pending: its change before it.
pub const MARK_SET: Ordering = named(Ordering::AcqRel, cfg!(weaken = "mark_set"));
/// The step that clears the mark of a source before it is inspected.
pub const MARK_CLEAR: Ordering = named(Ordering::AcqRel, cfg!(weaken = "mark_clear"));
/// The store by which a copy through a gate has ended: its bytes before it.
pub const GATE_LEAVE: Ordering = named(Ordering::Release, cfg!(weaken = "gate_leave"));
/// The owner's look whether someone copies.
pub const GATE_SEEN: Ordering = named(Ordering::Acquire, cfg!(weaken = "gate_seen"));

/// Between a writer's store of a word and its look at who wants to know: an armed bit.
#[inline(always)]
pub fn stored_fence() {
    full_fence(cfg!(weaken = "stored_fence"));
}

/// Between the owner's arming of a word and its second look at it.
#[inline(always)]
pub fn arm_fence() {
    full_fence(cfg!(weaken = "arm_fence"));
}

/// As [`stored_fence`], right behind a compare-and-swap.
#[inline(always)]
pub fn swapped_fence() {
    if cfg!(all(target_arch = "x86_64", not(loom))) {
        // The swap is a locked instruction, which is a full fence on this machine: only the compiler must be held back.
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    } else {
        stored_fence();
    }
}

/// Between a sleeper's announcement and its last look for news.
#[inline(always)]
pub fn sleep_fence() {
    full_fence(cfg!(weaken = "sleep_fence"));
}

/// Between a writer's news and its look whether the other side sleeps.
#[inline(always)]
pub fn ring_fence() {
    full_fence(cfg!(weaken = "ring_fence"));
}

/// Between what tells of a copy and the look whether it may begin.
#[inline(always)]
pub fn gate_enter_fence() {
    full_fence(cfg!(weaken = "gate_enter_fence"));
}

/// Between taking memory back and the look who copies.
#[inline(always)]
pub fn gate_withdraw_fence() {
    full_fence(cfg!(weaken = "gate_withdraw_fence"));
}

/// SeqCst: a store before it and a load after it stay in that order, and all such fences have one order. That is
/// what two sides need who each store one word and then look at the other's: at least one sees the other.
#[inline(always)]
fn full_fence(weakened: bool) {
    if !weakened {
        fence(Ordering::SeqCst);
    }
}

const fn named(order: Ordering, weakened: bool) -> Ordering {
    if weakened { Ordering::Relaxed } else { order }
}
