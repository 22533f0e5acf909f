//! The atomics everything here is built from: the standard library's, or loom's when a model runs; and the
//! orderings that carry weight, each under a name.
//!
//! Where a model runs, `SIDESTEP_WEAKENED=NAME` makes exactly one of them too weak, so that `tests/weakened.rs` can show which
//! model of `tests/loom.rs` notices. An ordering without a name here is relaxed, or beside a fence that does more.

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
#[inline(always)]
pub fn tail_publish() -> Ordering {
    named(Ordering::Release, "tail_publish")
}

/// The step in which a consumer wants what it has not read: its position before it.
#[inline(always)]
pub fn tail_want() -> Ordering {
    named(Ordering::Release, "tail_want")
}

/// The step in which the producer takes that.
#[inline(always)]
pub fn tail_take() -> Ordering {
    named(Ordering::Acquire, "tail_take")
}

/// The consumer's load of the tail.
#[inline(always)]
pub fn tail_observe() -> Ordering {
    named(Ordering::Acquire, "tail_observe")
}

/// The consumer's store of the head: its reads of the bytes before it.
#[inline(always)]
pub fn head_publish() -> Ordering {
    named(Ordering::Release, "head_publish")
}

/// The producer's load of the head.
#[inline(always)]
pub fn head_observe() -> Ordering {
    named(Ordering::Acquire, "head_observe")
}

/// The step that clears an armed bit: whoever finds it cleared sees the word that was written.
#[inline(always)]
pub fn bit_take() -> Ordering {
    named(Ordering::AcqRel, "bit_take")
}

/// A look at an armed bit: its owner, who finds it cleared, sees the word that was written.
#[inline(always)]
pub fn bit_observe() -> Ordering {
    named(Ordering::Acquire, "bit_observe")
}

/// The store of a rescan mark: the cleared bits before it.
#[inline(always)]
pub fn rescan_publish() -> Ordering {
    named(Ordering::Release, "rescan_publish")
}

/// The step that takes a rescan mark.
#[inline(always)]
pub fn rescan_take() -> Ordering {
    named(Ordering::AcqRel, "rescan_take")
}

/// The step that marks a source as pending: its change before it.
#[inline(always)]
pub fn mark_set() -> Ordering {
    named(Ordering::AcqRel, "mark_set")
}

/// The step that clears the mark of a source before it is inspected.
#[inline(always)]
pub fn mark_clear() -> Ordering {
    named(Ordering::AcqRel, "mark_clear")
}

/// The store by which a copy through a gate has ended: its bytes before it.
#[inline(always)]
pub fn gate_leave() -> Ordering {
    named(Ordering::Release, "gate_leave")
}

/// The owner's look whether someone copies.
#[inline(always)]
pub fn gate_seen() -> Ordering {
    named(Ordering::Acquire, "gate_seen")
}

/// Between a writer's store of a word and its look at who wants to know: an armed bit.
#[inline(always)]
pub fn stored_fence() {
    full_fence("stored_fence");
}

/// Between the owner's arming of a word and its second look at it.
#[inline(always)]
pub fn arm_fence() {
    full_fence("arm_fence");
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
    full_fence("sleep_fence");
}

/// Between a writer's news and its look whether the other side sleeps.
#[inline(always)]
pub fn ring_fence() {
    full_fence("ring_fence");
}

/// Between what tells of a copy and the look whether it may begin.
#[inline(always)]
pub fn gate_enter_fence() {
    full_fence("gate_enter_fence");
}

/// Between taking memory back and the look who copies.
#[inline(always)]
pub fn gate_withdraw_fence() {
    full_fence("gate_withdraw_fence");
}

/// SeqCst: a store before it and a load after it stay in that order, and all such fences have one order. That is
/// what two sides need who each store one word and then look at the other's: at least one sees the other.
#[inline(always)]
fn full_fence(name: &str) {
    if !is_weakened(name) {
        fence(Ordering::SeqCst);
    }
}

#[inline(always)]
fn named(order: Ordering, name: &str) -> Ordering {
    if is_weakened(name) { Ordering::Relaxed } else { order }
}

#[cfg(not(loom))]
#[inline(always)]
fn is_weakened(_name: &str) -> bool {
    false
}

#[cfg(loom)]
fn is_weakened(name: &str) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var("SIDESTEP_WEAKENED").ok());
    CHOSEN.as_deref() == Some(name)
}
