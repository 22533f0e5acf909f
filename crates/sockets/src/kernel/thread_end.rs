//! The end of a thread: what it has kept for its next call is given back.
//!
//! A variable with a destructor registers it when it is first used, in memory that libc allocates: calls that may come from a
//! handler must not do that. So the variables of the engine have none. A key of libc's has one for all of them; a thread notes
//! it without memory, if it is among the first that a process makes.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    ffi::c_void,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::kernel::signal::Inside;

thread_local! {
    static KEEPS: [Keeps; 4] = const { [const { Cell::new(None) }; 4] };
}

/// The function that gives something back, if the thread keeps it.
type Keeps = Cell<Option<fn()>>;

/// What a thread may keep, in the order in which it is given back.
#[derive(Debug, Clone, Copy)]
pub enum Kept {
    /// Notes of what its calls have counted.
    Notes,
    /// The berth that it sleeps in.
    Berth,
    /// Lists of its last wait.
    Lists,
    /// Memory for bytes of files.
    Buffer,
}

/// The key plus 1; 0: there is none yet.
static KEY: AtomicU32 = AtomicU32::new(0);
/// Keys below this one have their place in the thread itself.
const EARLY: u32 = 32;
/// In place of a key: there was none to be had.
const NONE: u32 = u32::MAX;

/// Makes the key: early, so that it is one of the first.
pub fn start() {
    key();
}

/// This thread keeps something from now on, which `give_back` gives back.
#[inline]
pub fn note(kept: Kept, give_back: fn()) {
    KEEPS.with(|keeps| {
        if keeps[kept as usize].replace(Some(give_back)).is_none() {
            note_first();
        }
    });
}

#[cold]
fn note_first() {
    let key = key();
    if key < EARLY {
        // SAFETY: a key of this file, and a value that is never followed.
        unsafe { libc::pthread_setspecific(key, std::ptr::dangling()) };
    }
}

fn key() -> u32 {
    let known = KEY.load(Ordering::Acquire);
    if known != 0 {
        return known.wrapping_sub(1);
    }
    let mut key = 0;
    // SAFETY: the place is our own, and the function lives as long as the library, which is never unloaded.
    let made = unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0;
    let word = if made { key + 1 } else { NONE };
    match KEY.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => word.wrapping_sub(1),
        Err(other) => {
            if made {
                // SAFETY: made here, and used by nobody.
                unsafe { libc::pthread_key_delete(key) };
            }
            other.wrapping_sub(1)
        }
    }
}

extern "C" fn ended(_: *mut c_void) {
    let _inside = Inside::enter();
    KEEPS.with(|keeps| {
        // A destructor that comes later may make calls, and so note it again.
        for give_back in keeps.iter().filter_map(Cell::take) {
            give_back();
        }
    });
}
