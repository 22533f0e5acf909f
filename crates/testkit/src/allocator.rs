//! An allocator that counts.
//!
//! # Invariants
//!
//! - R1. Every call is passed on to the system's allocator with the arguments it came with.

#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering},
};

/// Counts what it passes on.
#[derive(Debug, Default)]
pub struct Counting {
    calls: AtomicU64,
    taken: AtomicU64,
    given_back: AtomicU64,
}

impl Counting {
    /// For a `#[global_allocator]`.
    pub const fn new() -> Counting {
        Counting { calls: AtomicU64::new(0), taken: AtomicU64::new(0), given_back: AtomicU64::new(0) }
    }

    /// Allocations so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Allocations of the calling thread so far.
    pub fn own_calls(&self) -> u64 {
        OWN.with(Cell::get)
    }

    /// Bytes that were allocated and are not freed.
    pub fn live(&self) -> u64 {
        // In this order: what is freed meanwhile makes it larger, and never less than nothing.
        let given_back = self.given_back.load(Ordering::SeqCst);
        self.taken.load(Ordering::SeqCst) - given_back
    }

    fn count(&self, bytes: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.taken.fetch_add(bytes as u64, Ordering::SeqCst);
        // What a thread allocates when it has ended is not counted as its own.
        let _ = OWN.try_with(|own| own.set(own.get() + 1));
    }
}

thread_local! {
    // Needs no memory, and nothing is done when the thread ends: an allocator may use it.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: R1: the system's allocator keeps the promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size());
        // SAFETY: R1.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.given_back.fetch_add(layout.size() as u64, Ordering::SeqCst);
        // SAFETY: R1.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        self.count(len);
        self.given_back.fetch_add(layout.size() as u64, Ordering::SeqCst);
        // SAFETY: R1.
        unsafe { System.realloc(block, layout, len) }
    }
}
