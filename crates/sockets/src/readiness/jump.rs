//! Calls that are left by a jump: a handler that has come in the middle of one need not return to it (`siglongjmp`).
//!
//! The kernel forgets a call that is left so. Here calls have counted themselves where others look: at the stream that they
//! use, in the kernel, in a set, in a berth. So each thread keeps a list of what it has counted, in order, with the handlers
//! that run in between; what a jump leaves is taken back ([`leave_to`]).
//!
//! **Why it is right.** A handler runs only where handlers are not put off. There the thread has no lock, and all it has
//! counted is in the list, since counting and noting are one step for handlers: both happen inside. Memory that a call needs
//! where it may be left is kept by its thread (`poll/list.rs`), and noted, too. The engine itself never runs a function of the program but handlers, and never jumps:
//! a jump that leaves a call therefore comes from a handler in the middle of it, or from one that came in the middle of a
//! call which that one has made. From the newest handler on backwards the question is whether the jump ends in it, that is,
//! between where the thread is and where the handler began, on one stack; if not, it leaves the handler and the call that the
//! handler has interrupted, whichever stack it goes to. A jump inside a handler leaves nothing. A change of stacks that is no
//! jump (`swapcontext`) is not looked at: both sides may go on. One that is made by a jump, in a handler and over a call that
//! waits, is taken for a leaving; if the call goes on after all, it finds its notes struck and counts nothing back.
//!
//! A thread that ends takes everything back.

use std::{
    cell::{Cell, RefCell},
    mem::ManuallyDrop,
};

use crate::{
    kernel::{
        signal::{self, Inside},
        thread_end::{self, Kept},
    },
    readiness::{poll, set::Set, sleep},
    streams::Stream,
};

/// What a thread has counted, or is in.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// A handler of the program's, which began at this address of its stack and has interrupted the thread at that one.
    Handler {
        /// Where the handler's frames begin.
        frame: usize,
        /// Where the thread was.
        interrupted: usize,
    },
    /// A call that uses a stream.
    Use(&'static Stream),
    /// A call that sits in the kernel for a direction of a stream.
    InKernel(&'static Stream, usize),
    /// A sleep in the thread's berth.
    Berth,
    /// A sleep in a set.
    Set(&'static Set),
    /// A list of descriptors, by the number under which its thread keeps it.
    List(u64),
}

/// The place of something in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note(u64);

thread_local! {
    static NOTES: ManuallyDrop<RefCell<Vec<(Note, What)>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// Notes what has been counted, or is about to be. Handlers are put off from before the one until after the other.
pub fn note(what: What) -> Note {
    note_each([what].into_iter())
}

/// The same for several things, of which one note is taken.
pub fn note_each(whats: impl Iterator<Item = What>) -> Note {
    debug_assert!(signal::puts_off(), "a handler could come between");
    thread_end::note(Kept::Notes, give_back);
    let note = Note(LAST.get() + 1);
    LAST.set(note.0);
    NOTES.with(|notes| notes.borrow_mut().extend(whats.map(|what| (note, what))));
    note
}

/// Takes a note out. `false`: it was taken back meanwhile, and what it says is no longer counted.
pub fn strike(note: Note) -> bool {
    debug_assert!(signal::puts_off(), "a handler could come between");
    NOTES.with(|notes| {
        let mut notes = notes.borrow_mut();
        // Mostly the last. Notes above it, if any, are of calls that the program has gone on with later.
        let Some(last) = notes.iter().rposition(|(other, _)| *other == note) else { return false };
        let first = notes[..last].iter().rposition(|(other, _)| *other != note).map_or(0, |at| at + 1);
        notes.drain(first..=last);
        true
    })
}

/// A handler of the program's is about to run.
pub fn begin_handler(frame: usize, interrupted: usize) -> Note {
    let _inside = Inside::enter();
    note(What::Handler { frame, interrupted })
}

/// It has returned.
pub fn end_handler(note: Note) {
    let _inside = Inside::enter();
    strike(note);
}

/// Whether a handler of the program's runs in this thread: it may have interrupted the program's `malloc`.
pub fn is_in_handler() -> bool {
    let _inside = Inside::enter();
    newest_handler().is_some()
}

/// This thread, which is at the address `here` of its stack, is about to jump to a frame at `target`.
pub fn leave_to(mut here: usize, target: usize) {
    if NOTES.with(|notes| notes.borrow().is_empty()) {
        return;
    }
    let _inside = Inside::enter();
    while let Some((at, frame, interrupted)) = newest_handler() {
        if here < target && target <= frame {
            return;
        }
        // The handler, and the call beneath it.
        take_back(at);
        take_back(newest_handler().map_or(0, |(at, ..)| at + 1));
        here = interrupted;
    }
}

/// The thread ends. Inside.
fn give_back() {
    take_back(0);
    NOTES.with(|notes| notes.take());
}

/// In a forked child: the streams are the parent's.
pub fn after_fork() {
    NOTES.with(|notes| notes.borrow_mut().retain(|(_, what)| matches!(what, What::Handler { .. })));
}

/// The place of the newest handler in the list, and its addresses.
fn newest_handler() -> Option<(usize, usize, usize)> {
    NOTES.with(|notes| {
        notes.borrow().iter().enumerate().rev().find_map(|(at, (_, what))| match what {
            What::Handler { frame, interrupted } => Some((at, *frame, *interrupted)),
            _ => None,
        })
    })
}

/// Takes everything back from a place of the list on.
fn take_back(from: usize) {
    loop {
        let last = NOTES.with(|notes| {
            let mut notes = notes.borrow_mut();
            if notes.len() > from { notes.pop() } else { None }
        });
        match last {
            Some((_, What::Use(stream))) => stream.drop_user(),
            Some((_, What::InKernel(stream, direction))) => stream.left_kernel(direction),
            Some((_, What::Berth)) => sleep::leave_berth(),
            Some((_, What::Set(set))) => set.wakes(),
            Some((_, What::List(number))) => poll::forget(number),
            Some((_, What::Handler { .. })) => {}
            None => return,
        }
    }
}
