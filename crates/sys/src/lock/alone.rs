//! Whether the process has one thread only, as the C library says: then nobody comes between two steps of a lock.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// The C library's word for it. Null: not asked, or it has none.
static WORD: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Asks the C library where it says how many threads there are (glibc 2.32 and later). Not within a handler, or an allocation.
pub fn learn_threads() {
    #[cfg(not(any(miri, loom)))]
    {
        // SAFETY: the name is NUL-terminated.
        let word = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
        WORD.store(word.cast(), Ordering::Relaxed);
    }
}

/// Whether there is no other thread. Who makes one has been told `false` before it runs.
#[inline]
pub(super) fn is_alone() -> bool {
    let word = WORD.load(Ordering::Relaxed);
    // SAFETY: glibc's ABI: `extern char __libc_single_threaded`, which lives as long as the process. Only a process with one
    // thread changes it, or ends having one.
    !word.is_null() && unsafe { AtomicU8::from_ptr(word) }.load(Ordering::Relaxed) != 0
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::super::Lock;

    #[test]
    fn a_lock_taken_alone_is_held_for_other_threads() {
        super::learn_threads();
        let lock = Lock::new(1);
        let guard = lock.lock();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| (super::is_alone(), lock.try_lock().is_none()));
            assert_eq!(other.join().unwrap(), (false, true));
        });
        drop(guard);
        assert_eq!(*lock.lock(), 1);
    }
}
