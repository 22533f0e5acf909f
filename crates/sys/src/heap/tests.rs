use std::{
    collections::BTreeMap,
    sync::atomic::AtomicBool,
    thread,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use rustix::process::{Pid, WaitOptions};

use super::*;

/// The blocks that a caller has: none lies in another, and each holds what was written there.
struct Model {
    heap: &'static Heap,
    live: BTreeMap<usize, (Layout, u8)>,
    written: u8,
}

impl Model {
    fn new(heap: &'static Heap) -> Model {
        Model { heap, live: BTreeMap::new(), written: 1 }
    }

    fn alloc(&mut self, layout: Layout, zeroed: bool) {
        let make = if zeroed { Heap::alloc_zeroed } else { Heap::alloc };
        // SAFETY: no size is zero.
        let block = unsafe { make(self.heap, layout) };
        assert!(!block.is_null());
        if zeroed {
            // SAFETY: it is that long, and written.
            assert!(unsafe { std::slice::from_raw_parts(block, layout.size()) }.iter().all(|byte| *byte == 0));
        }
        self.enter(block, layout);
    }

    fn enter(&mut self, block: *mut u8, layout: Layout) {
        let at = block as usize;
        assert_eq!(at % layout.align(), 0);
        let before = self.live.range(..at).next_back();
        assert!(before.is_none_or(|(other, (size, _))| other + size.size() <= at), "it lies in another");
        let after = self.live.range(at..).next();
        assert!(after.is_none_or(|(other, _)| at + layout.size() <= *other), "another lies in it");
        self.written = self.written.wrapping_add(1);
        // SAFETY: it is that long.
        unsafe { block.write_bytes(self.written, layout.size()) };
        self.live.insert(at, (layout, self.written));
    }

    /// Takes one of the blocks out, and looks whether it is as it was written.
    fn leave(&mut self, which: usize) -> Option<(*mut u8, Layout, u8)> {
        let at = *self.live.keys().nth(which % self.live.len().max(1))?;
        let (layout, written) = self.live.remove(&at)?;
        let block = at as *mut u8;
        // SAFETY: it is that long, and written.
        assert!(unsafe { std::slice::from_raw_parts(block, layout.size()) }.iter().all(|byte| *byte == written));
        Some((block, layout, written))
    }

    fn dealloc(&mut self, which: usize) {
        if let Some((block, layout, _)) = self.leave(which) {
            // SAFETY: of this heap, with this layout.
            unsafe { self.heap.dealloc(block, layout) };
        }
    }

    fn realloc(&mut self, which: usize, size: usize) {
        let Some((block, layout, written)) = self.leave(which) else { return };
        // SAFETY: of this heap, with this layout.
        let moved = unsafe { self.heap.realloc(block, layout, size) };
        assert!(!moved.is_null());
        let kept = layout.size().min(size);
        // SAFETY: it is that long, and written.
        assert!(unsafe { std::slice::from_raw_parts(moved, kept) }.iter().all(|byte| *byte == written));
        self.enter(moved, Layout::from_size_align(size, layout.align()).unwrap());
    }

    fn dealloc_all(&mut self) {
        while !self.live.is_empty() {
            self.dealloc(0);
        }
    }
}

fn heap() -> &'static Heap {
    // On the heap of the test, and never moved.
    // SAFETY: zeros are an empty heap: it has nothing but atomic numbers and pointers that may be null.
    Box::leak(unsafe { Box::<Heap>::new_zeroed().assume_init() })
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![1usize..200, 1usize..5000, 1usize..40_000, 30_000usize..300_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn blocks_are_apart_and_keep_what_is_written(
        steps in prop::collection::vec((0u8..5, sizes(), 0u32..14, any::<usize>()), 1..400)
    ) {
        let mut model = Model::new(heap());
        for (step, size, align, which) in steps {
            let layout = Layout::from_size_align(size, 1 << align).unwrap();
            match step {
                0 | 1 => model.alloc(layout, step == 1),
                2 => model.realloc(which, size),
                _ => model.dealloc(which),
            }
        }
        model.dealloc_all();
    }
}

#[test]
fn a_size_has_a_class_that_is_little_larger() {
    for bytes in 1..=LARGEST {
        let class = class_of(Layout::from_size_align(bytes, 16).unwrap()).unwrap();
        assert!(size(class) >= bytes, "{bytes}");
        assert!(class == 0 || size(class - 1) < bytes, "{bytes}");
        assert!(size(class) <= 128 || size(class) * 4 <= bytes * 5 + 4, "{bytes}");
    }
    assert_eq!(class_of(Layout::from_size_align(LARGEST + 1, 1).unwrap()), None);
}

#[test]
fn blocks_are_used_again() {
    let heap = heap();
    for round in 0..100 {
        let mut model = Model::new(heap);
        (1..2000).for_each(|size| model.alloc(Layout::from_size_align(size, 8).unwrap(), false));
        model.dealloc_all();
        if round == 0 {
            continue;
        }
        // As many as at first.
        assert!(heap.made.load(Ordering::Relaxed) <= CLASSES as u32 * 4, "round {round}");
    }
}

#[test]
fn too_much_is_no_block() {
    let heap = heap();
    let layout = Layout::from_size_align(isize::MAX as usize - 8192, 8).unwrap();
    // SAFETY: the size is not zero.
    assert!(unsafe { heap.alloc(layout) }.is_null());
    let small = Layout::from_size_align(100_000, 8).unwrap();
    // SAFETY: as above.
    let block = unsafe { heap.alloc(small) };
    // SAFETY: of this heap, with this layout.
    assert!(unsafe { heap.realloc(block, small, layout.size()) }.is_null());
    // SAFETY: it is as it was.
    unsafe { heap.dealloc(block, small) };
}

/// A process that has shut itself in takes what it needs from memory that was mapped before, and gives nothing back.
#[test]
fn a_sealed_one_maps_nothing() {
    let heap = heap();
    let mut model = Model::new(heap);
    model.alloc(Layout::from_size_align(100_000, 8).unwrap(), true);
    heap.seal();
    heap.seal();
    let first = heap.reserve.load(Ordering::Relaxed).addr();
    for size in [40, 100, 1000, 20_000, 8000, 100_000] {
        model.alloc(Layout::from_size_align(size, 8).unwrap(), true);
        let newest = model.live.range(first..first + RESERVE).count();
        assert!(newest > 0, "from the reserve");
    }
    model.realloc(0, 200_000);
    assert!(model.live.range(first..first + RESERVE).count() >= 6);
    // More than there is comes from the kernel.
    (0..20).for_each(|_| model.alloc(Layout::from_size_align(300_000, 8).unwrap(), true));
    model.dealloc_all();
}

/// One thread's random work.
fn work(model: &mut Model, seed: u64, steps: usize) {
    let mut random = seed | 1;
    for _ in 0..steps {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let size = 1 + (random >> 20) as usize % if random & 7 == 0 { 40_000 } else { 300 };
        let layout = Layout::from_size_align(size, 8).unwrap();
        match random >> 3 & 3 {
            0 => model.realloc(random as usize, size),
            1 if model.live.len() < 200 => model.alloc(layout, false),
            2 if model.live.len() < 200 => model.alloc(layout, true),
            _ => model.dealloc(random as usize),
        }
    }
}

#[test]
fn threads_share_it() {
    let heap = heap();
    thread::scope(|scope| {
        for seed in 1..5 {
            scope.spawn(move || {
                let mut model = Model::new(heap);
                work(&mut model, seed * 77, 20_000);
                model.dealloc_all();
            });
        }
    });
    // Blocks of one thread are given back by another, and taken by all.
    let (sender, receiver) = std::sync::mpsc::channel::<(usize, Layout)>();
    thread::scope(|scope| {
        scope.spawn(move || {
            for size in (1..400).cycle().take(40_000) {
                let layout = Layout::from_size_align(size, 8).unwrap();
                // SAFETY: the size is not zero.
                let block = unsafe { heap.alloc(layout) };
                // SAFETY: it is that long.
                unsafe { block.write_bytes(size as u8, size) };
                sender.send((block as usize, layout)).unwrap();
            }
        });
        for (block, layout) in receiver {
            // SAFETY: it is that long, and written.
            let bytes = unsafe { std::slice::from_raw_parts(block as *const u8, layout.size()) };
            assert!(bytes.iter().all(|byte| *byte == layout.size() as u8));
            // SAFETY: of this heap, with this layout.
            unsafe { heap.dealloc(block as *mut u8, layout) };
        }
    });
}

/// A child of a process whose other threads are anywhere in the heap goes on with it.
#[test]
fn a_forked_child_goes_on() {
    let (heap, stop) = (heap(), AtomicBool::new(false));
    thread::scope(|scope| {
        for seed in 1..3 {
            let stop = &stop;
            scope.spawn(move || {
                let mut model = Model::new(heap);
                let mut round = seed;
                while !stop.load(Ordering::Relaxed) {
                    round += 1;
                    work(&mut model, round * 977, 100);
                }
                model.dealloc_all();
            });
        }
        let mut ends = Vec::new();
        for _ in 0..20 {
            // SAFETY: the child uses this heap, and no other, and ends.
            match unsafe { libc::fork() } {
                0 => {
                    let used = use_in_child(heap);
                    // SAFETY: has no precondition.
                    unsafe { libc::_exit(if used { 0 } else { 1 }) };
                }
                child => ends.push(ended(child)),
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(ends.iter().all(|end| *end), "{ends:?}");
    });
}

/// Takes and gives back without any other memory.
fn use_in_child(heap: &Heap) -> bool {
    let mut blocks = [(ptr::null_mut(), Layout::new::<u8>()); 64];
    for round in 0..40 {
        for (at, place) in blocks.iter_mut().enumerate() {
            let Ok(layout) = Layout::from_size_align(1 + (round * 37 + at * 53) % 2000, 8) else { return false };
            // SAFETY: the size is not zero.
            *place = (unsafe { heap.alloc(layout) }, layout);
            if place.0.is_null() {
                return false;
            }
            // SAFETY: it is that long.
            unsafe { place.0.write_bytes(at as u8, layout.size()) };
        }
        for (at, (block, layout)) in blocks.into_iter().enumerate() {
            // SAFETY: it is that long, and written.
            let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
            if bytes.iter().any(|byte| *byte != at as u8) {
                return false;
            }
            // SAFETY: of this heap, with this layout.
            unsafe { heap.dealloc(block, layout) };
        }
    }
    true
}

fn ended(child: i32) -> bool {
    let pid = Pid::from_raw(child);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        if let Ok(Some((_, status))) = rustix::process::waitpid(pid, WaitOptions::NOHANG) {
            return status.exit_status() == Some(0);
        }
        thread::sleep(Duration::from_millis(1));
    }
    let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
    false
}
