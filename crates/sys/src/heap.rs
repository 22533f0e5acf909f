//! Memory of one's own, for a library inside somebody else's process: an allocator that shares nothing with the program's.
//!
//! The program's `malloc` may be under way in this very thread (a handler has interrupted it), may be locked for a `fork`, or
//! may be written by someone who calls us from within it. This one maps its memory itself and has no lock at all, so that a
//! handler, another thread and a child of `fork` find it usable at every instruction.
//!
//! Blocks of up to [`LARGEST`] bytes are of one of `CLASSES` sizes, at most a quarter larger than asked for above 128 bytes. A
//! *slab* is memory for blocks of one size. Blocks that were given back lie on a stack per size and are used again first. A
//! slab is never given back, so that what lies in one is bounded by the most that was ever used of that size. Larger blocks are
//! mapped one by one, and unmapped when they are given back.
//!
//! # Invariants
//!
//! - **H1** A slab is mapped for ever, and its number leads to it. Its head is written before its number is published.
//! - **H2** A block is in one place: with a caller, on its stack, or beyond the mark of fresh blocks in the present slab of its
//!   size. Each way from one to another is one atomic step.
//! - **H3** The word that links a free block to the next lies in the head of its slab, not in the block: nobody but its owner
//!   touches a block. A word that is read of a block which is no longer free is thrown away, since the count of steps beside
//!   the top of the stack has changed.

#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout},
    fmt,
    ptr::{self, NonNull},
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering},
};

use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};

/// An allocator. Made to be a `static`: what it has mapped stays.
pub struct Heap {
    classes: [Class; CLASSES],
    slabs: [AtomicPtr<Slab>; SLABS],
    /// Slabs made so far.
    made: AtomicU32,
    /// What is left of the memory for a process that may not map any; null as long as it may.
    reserve: AtomicPtr<u8>,
}

/// Blocks of one size.
struct Class {
    /// The top of the stack of free blocks: its [`Number`] in the low half, a count of steps in the high half.
    free: AtomicU64,
    /// The number of the present slab plus 1 in the high half, and how many of its blocks were ever used in the low half.
    fresh: AtomicU64,
}

/// The head of a slab: its number, and a word per block.
#[repr(C)]
struct Slab {
    number: u32,
    next: [AtomicU32; 0],
}

/// The number of a slab and that of a block in it, plus 1; 0: no block.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Number(u32);

/// Blocks above this size are mapped one by one.
pub const LARGEST: usize = 8 << 10;
/// Sizes of blocks: eight up to 128 bytes, then four for each doubling.
const CLASSES: usize = 8 + 4 * 6;
/// Bytes of a slab, which begins at a multiple of it.
const SLAB: usize = 64 << 10;
/// With as many, 4 GiB are in blocks.
const SLABS: usize = 1 << 16;
/// Bytes for a process that may not map any.
const RESERVE: usize = 1 << 20;
/// Blocks of a slab begin at a multiple of their size's largest power of two, up to this.
const PAGE: usize = 4096;

impl Heap {
    /// One that has mapped nothing yet.
    pub const fn new() -> Heap {
        Heap {
            classes: [const { Class { free: AtomicU64::new(0), fresh: AtomicU64::new(0) } }; CLASSES],
            slabs: [const { AtomicPtr::new(ptr::null_mut()) }; SLABS],
            made: AtomicU32::new(0),
            reserve: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The process is about to shut itself in, where a call to the kernel may end it. What is mapped from now on comes from
    /// `RESERVE` bytes that are mapped here, as long as they last, and nothing is unmapped.
    pub fn seal(&self) {
        // At a multiple of twice its size: so the address of what is left says how much that is.
        let memory = map_aligned(RESERVE, RESERVE * 2).map_or(ptr::null_mut(), NonNull::as_ptr);
        let _ = self.reserve.compare_exchange(ptr::null_mut(), memory, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Memory at a multiple of `align`, as mapped.
    fn obtain(&self, len: usize, align: usize) -> Option<NonNull<u8>> {
        let mut next = self.reserve.load(Ordering::Acquire);
        while !next.is_null() {
            let block = next.wrapping_add(next.align_offset(align.max(PAGE)));
            let used = block.addr() % (RESERVE * 2);
            if used + len > RESERVE || block.addr() - used != next.addr() - next.addr() % (RESERVE * 2) {
                break;
            }
            let rest = block.wrapping_add(len);
            match self.reserve.compare_exchange_weak(next, rest, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return NonNull::new(block),
                Err(now) => next = now,
            }
        }
        map_aligned(len, align)
    }

    /// Gives such memory back.
    fn release(&self, memory: *mut u8, len: usize) {
        if !self.is_sealed() {
            unmap(memory, len);
        }
    }

    fn is_sealed(&self) -> bool {
        !self.reserve.load(Ordering::Relaxed).is_null()
    }

    /// A block of a class; `None`: there is no memory.
    fn take(&self, class: usize) -> Option<NonNull<u8>> {
        self.pop(class).or_else(|| self.take_fresh(class))
    }

    /// The block on top of a stack.
    fn pop(&self, class: usize) -> Option<NonNull<u8>> {
        let free = &self.classes[class].free;
        let mut top = free.load(Ordering::Acquire);
        loop {
            let number = Number(top as u32);
            let (slab, block) = number.parts()?;
            let slab = self.slab(slab)?;
            // H3: if the block is someone's by now, the step fails.
            let next = slab.link(block).load(Ordering::Relaxed);
            let steps = (top >> 32).wrapping_add(1) << 32;
            // Acquire pairs with `push`: the link of the next block is visible to whoever takes that.
            match free.compare_exchange_weak(top, steps | u64::from(next), Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(slab.block(class, block)),
                Err(now) => top = now,
            }
        }
    }

    /// Gives a block back.
    fn push(&self, class: usize, block: NonNull<u8>) {
        let (slab, number) = Slab::of(class, block);
        let free = &self.classes[class].free;
        let mut top = free.load(Ordering::Relaxed);
        loop {
            slab.link(number).store(top as u32, Ordering::Relaxed);
            let steps = (top >> 32).wrapping_add(1) << 32;
            let own = Number::of(slab.number, number).0;
            // Pairs with `pop`.
            match free.compare_exchange_weak(top, steps | u64::from(own), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// A block that was never used.
    fn take_fresh(&self, class: usize) -> Option<NonNull<u8>> {
        let fresh = &self.classes[class].fresh;
        let mut now = fresh.load(Ordering::Acquire);
        loop {
            let (slab, used) = ((now >> 32) as u32, now as u32);
            if slab != 0 && (used as usize) < blocks(class) {
                match fresh.compare_exchange_weak(now, now + 1, Ordering::Acquire, Ordering::Acquire) {
                    Ok(_) => return Some(self.slab(slab - 1)?.block(class, used)),
                    Err(other) => now = other,
                }
                continue;
            }
            let (new, made) = self.new_slab()?;
            // Release: H1.
            match fresh.compare_exchange(now, (u64::from(new) + 1) << 32 | 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(made.block(class, 0)),
                // Another thread, or a handler in this one, was faster. No block of this slab is anyone's.
                Err(other) => {
                    self.slabs[new as usize].store(ptr::null_mut(), Ordering::Relaxed);
                    self.release(ptr::from_ref(made).cast_mut().cast(), SLAB);
                    now = other;
                }
            }
        }
    }

    fn new_slab(&self) -> Option<(u32, &'static Slab)> {
        let number = self
            .made
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |made| (made < SLABS as u32).then_some(made + 1));
        let number = number.ok()?;
        let memory = self.obtain(SLAB, SLAB)?.cast::<Slab>();
        // SAFETY: fresh memory, longer than a head and aligned; a head begins with its number.
        unsafe { memory.cast::<u32>().write(number) };
        self.slabs[number as usize].store(memory.as_ptr(), Ordering::Release);
        // SAFETY: H1. It has just been written, and nothing but its atomic words changes.
        Some((number, unsafe { memory.as_ref() }))
    }

    /// A slab by its number.
    fn slab(&self, number: u32) -> Option<&'static Slab> {
        let slab = self.slabs[number as usize].load(Ordering::Acquire);
        // SAFETY: H1.
        unsafe { slab.as_ref() }
    }
}

impl Slab {
    /// The word of a block.
    fn link(&self, block: u32) -> &AtomicU32 {
        let first = (&raw const self.next).cast::<AtomicU32>();
        // SAFETY: a slab has a word for each of its blocks.
        let place = unsafe { first.add(block as usize) };
        // SAFETY: it lies in the slab (H1), and zeros are valid.
        unsafe { &*place }
    }

    fn block(&self, class: usize, block: u32) -> NonNull<u8> {
        let slab = ptr::from_ref(self).cast_mut().cast::<u8>();
        let at = first_block(class) + block as usize * size(class);
        // SAFETY: `blocks` says how many lie in the slab.
        let block = unsafe { slab.add(at) };
        NonNull::new(block).expect("within a mapping")
    }

    /// The slab of a block, and its place there.
    fn of(class: usize, block: NonNull<u8>) -> (&'static Slab, u32) {
        let at = block.as_ptr() as usize % SLAB;
        // SAFETY: it is a block of ours, so that its slab begins at the multiple of `SLAB` before it.
        let slab = unsafe { block.as_ptr().sub(at) }.cast::<Slab>();
        // SAFETY: H1.
        (unsafe { &*slab }, ((at - first_block(class)) / size(class)) as u32)
    }
}

impl Number {
    fn of(slab: u32, block: u32) -> Number {
        Number((slab << 16 | block) + 1)
    }

    fn parts(self) -> Option<(u32, u32)> {
        let number = self.0.checked_sub(1)?;
        Some((number >> 16, number & 0xffff))
    }
}

// SAFETY: blocks are the caller's alone (H2), as long and as aligned as asked for.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = match class_of(layout) {
            Some(class) => self.take(class),
            None => self.obtain(pages(layout.size()), layout.align()),
        };
        block.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for this function.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() && class_of(layout).is_some() {
            // SAFETY: it is that long. What has just been mapped is zero.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match (class_of(layout), NonNull::new(block)) {
            (Some(class), Some(block)) => self.push(class, block),
            (None, Some(block)) => self.release(block.as_ptr(), pages(layout.size())),
            (_, None) => {}
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(size, layout.align()) else { return ptr::null_mut() };
        match (class_of(layout), class_of(wanted)) {
            (Some(now), Some(then)) if now == then => return block,
            (None, None) if layout.align() <= PAGE && !self.is_sealed() => {
                return remap(block, pages(layout.size()), pages(size));
            }
            _ => {}
        }
        // SAFETY: the size is not zero, by the contract of this function.
        let new = unsafe { self.alloc(wanted) };
        if !new.is_null() {
            // SAFETY: both are at least that long, and they are different blocks.
            unsafe { new.copy_from_nonoverlapping(block, layout.size().min(size)) };
            // SAFETY: as for this function.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}

/// The class of a block; `None`: it is mapped by itself.
fn class_of(layout: Layout) -> Option<usize> {
    let size = if layout.align() <= 16 { layout.size() } else { layout.size().max(layout.align()).next_power_of_two() };
    match size {
        ..=128 => Some(size.max(1).div_ceil(16) - 1),
        ..=LARGEST if layout.align() <= PAGE => {
            // Which doubling, and which quarter of it.
            let doubling = (size - 1).ilog2();
            let quarter = (size - 1) >> (doubling - 2) & 3;
            Some(8 + (doubling as usize - 7) * 4 + quarter)
        }
        _ => None,
    }
}

/// Bytes of the blocks of a class.
const fn size(class: usize) -> usize {
    match class {
        0..8 => (class + 1) * 16,
        _ => {
            let (doubling, quarter) = ((class - 8) / 4 + 7, (class - 8) % 4);
            (1 << doubling) + ((quarter + 1) << (doubling - 2))
        }
    }
}

/// Where the blocks of a slab begin, behind its head.
const fn first_block(class: usize) -> usize {
    let size = size(class);
    let words = 4 + SLAB / (size + 4) * 4;
    let alignment = 1 << size.trailing_zeros();
    words.next_multiple_of(if alignment > PAGE { PAGE } else { alignment })
}

/// How many of them there are.
const fn blocks(class: usize) -> usize {
    (SLAB - first_block(class)) / size(class)
}

const _: () = {
    let mut class = 0;
    while class < CLASSES {
        assert!(blocks(class) > 0 && blocks(class) < 1 << 16);
        assert!(4 + blocks(class) * 4 <= first_block(class));
        class += 1;
    }
    assert!(size(CLASSES - 1) == LARGEST);
};

/// Bytes of whole pages; 0 if there are not so many.
fn pages(size: usize) -> usize {
    size.checked_next_multiple_of(PAGE).unwrap_or(0)
}

/// Maps memory at a multiple of `align`.
fn map_aligned(len: usize, align: usize) -> Option<NonNull<u8>> {
    if align <= PAGE {
        return map(len);
    }
    let whole = len.checked_add(align)?;
    let memory = map(whole)?.as_ptr();
    let before = memory.align_offset(align);
    let block = memory.wrapping_add(before);
    if before > 0 {
        unmap(memory, before);
    }
    if align > before {
        unmap(block.wrapping_add(len), align - before);
    }
    NonNull::new(block)
}

fn map(len: usize) -> Option<NonNull<u8>> {
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: new memory, wherever the kernel has room.
    let memory = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, access, flags) }.ok()?;
    NonNull::new(memory.cast())
}

/// Unmaps memory that nobody uses.
fn unmap(memory: *mut u8, len: usize) {
    // SAFETY: mapped by this file, whole pages, and nobody has a reference into it.
    if unsafe { rustix::mm::munmap(memory.cast(), len) }.is_err() {
        // The kernel has no room for two mappings in place of one. The memory itself goes back.
        // SAFETY: as above.
        let _ = unsafe { rustix::mm::madvise(memory.cast(), len, Advice::LinuxDontNeed) };
    }
}

fn remap(memory: *mut u8, len: usize, new: usize) -> *mut u8 {
    // SAFETY: mapped by this file for one caller, who asks for it.
    let moved = unsafe { rustix::mm::mremap(memory.cast(), len, new, MremapFlags::MAYMOVE) };
    moved.map_or(ptr::null_mut(), |memory| memory.cast())
}

impl Default for Heap {
    fn default() -> Heap {
        Heap::new()
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Heap").field("slabs", &self.made).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
