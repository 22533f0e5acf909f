//! `select` and `pselect`: lists to poll, and back.

use std::{
    ffi::{c_int, c_ulong},
    time::{Duration, Instant},
};

use libc::{fd_set, pollfd, sigset_t, timespec, timeval};
use sidestep_sockets::{Result, calls, kernel::Errno, signal};

use crate::{engine, errno, real::call, wait};

/// # Safety
/// P1.
pub unsafe fn select(
    count: c_int,
    readable: *mut fd_set,
    writable: *mut fd_set,
    special: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let select = |count: c_int| {
        // SAFETY: P1.
        unsafe { select_once(count, readable, writable, special, timeout) }
    };
    let sets = Sets { count, sets: [readable.cast(), writable.cast(), special.cast()] };
    // SAFETY: P1.
    unsafe { within_table(&sets, select) }
}

/// # Safety
/// P1.
unsafe fn select_once(
    count: c_int,
    readable: *mut fd_set,
    writable: *mut fd_set,
    special: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let sets = Sets { count, sets: [readable.cast(), writable.cast(), special.cast()] };
    // SAFETY: P1.
    let time = unsafe { time_of(timeout) };
    // SAFETY: P1.
    let (true, Some(time)) = (unsafe { sets.is_ours() }, time) else {
        // SAFETY: P1.
        return unsafe { call::select(count, readable, writable, special, timeout) };
    };
    if engine::is_shut_in() {
        let own = |at_once| {
            let mut none = timeval { tv_sec: 0, tv_usec: 0 };
            let timeout = if at_once { &raw mut none } else { timeout };
            // SAFETY: P1.
            unsafe { call::select(count, readable, writable, special, timeout) }
        };
        // SAFETY: P1.
        return unsafe { sets.wait_alone(own) };
    }
    let begin = Instant::now();
    // SAFETY: P1.
    let result = engine::ask(|| unsafe { sets.wait(time, None) }) as c_int;
    if let Some(time) = time {
        let left = time.saturating_sub(begin.elapsed());
        let left = timeval { tv_sec: left.as_secs() as _, tv_usec: left.subsec_micros() as _ };
        // SAFETY: P1; not null, since there is a time.
        unsafe { timeout.write(left) };
    }
    result
}

/// # Safety
/// P1.
pub unsafe fn pselect(
    count: c_int,
    readable: *mut fd_set,
    writable: *mut fd_set,
    special: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let select = |count: c_int| {
        // SAFETY: P1.
        unsafe { pselect_once(count, readable, writable, special, timeout, mask) }
    };
    let sets = Sets { count, sets: [readable.cast(), writable.cast(), special.cast()] };
    // SAFETY: P1.
    unsafe { within_table(&sets, select) }
}

/// # Safety
/// P1.
unsafe fn pselect_once(
    count: c_int,
    readable: *mut fd_set,
    writable: *mut fd_set,
    special: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let sets = Sets { count, sets: [readable.cast(), writable.cast(), special.cast()] };
    // SAFETY: P1.
    let time = unsafe { wait::optional(timeout) };
    // SAFETY: P1.
    let (true, Some(time)) = (unsafe { sets.is_ours() }, time) else {
        // SAFETY: P1.
        return unsafe { call::pselect(count, readable, writable, special, timeout, mask) };
    };
    if engine::is_shut_in() {
        let own = |at_once| {
            let timeout = if at_once { &wait::AT_ONCE } else { timeout };
            // SAFETY: P1.
            unsafe { call::pselect(count, readable, writable, special, timeout, mask) }
        };
        // SAFETY: P1.
        return unsafe { sets.wait_alone(own) };
    }
    // SAFETY: P1.
    let mask = unsafe { mask.as_ref() };
    // SAFETY: P1.
    engine::ask(|| unsafe { sets.wait(time, mask) }) as c_int
}

/// The kernel looks at no number beyond the end of its table of descriptors, which the engine's own have made longer: a
/// closed one there is no error. A call that found one is made again without them. One of the engine's own is closed as far
/// as the program is concerned.
///
/// # Safety
/// P1.
#[inline]
unsafe fn within_table(sets: &Sets, select: impl Fn(c_int) -> c_int) -> c_int {
    let before = errno::get();
    // SAFETY: P1.
    let internal = unsafe { sets.first_internal() };
    let result = if internal.is_some() { -1 } else { select(sets.count) };
    let failed = internal.is_some() || result < 0 && errno::get() == libc::EBADF;
    if failed && !signal::is_inside() {
        let end = c_int::try_from(calls::highest_selected()).unwrap_or(c_int::MAX);
        if end < sets.count && internal.is_none_or(|internal| internal >= end) {
            errno::set(before);
            return select(end);
        }
        errno::set(libc::EBADF);
    }
    result
}

/// The time-out of `select`: microseconds beyond a second are taken as seconds. `None` if the kernel would not take it.
///
/// # Safety
/// P1.
unsafe fn time_of(timeout: *const timeval) -> Option<Option<Duration>> {
    // SAFETY: P1.
    let Some(time) = (unsafe { timeout.as_ref() }) else { return Some(None) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let micros = u64::try_from(time.tv_usec).ok()?;
    Some(Some(Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros))))
}

/// The program's three sets: for reading, for writing, for what is special. Each may be missing.
struct Sets {
    count: c_int,
    sets: [*mut c_ulong; 3],
}

impl Sets {
    /// Whether any stream is in them.
    ///
    /// # Safety
    /// P1.
    unsafe fn is_ours(&self) -> bool {
        // SAFETY: P1.
        !signal::is_inside() && unsafe { self.find(0, engine::has_any) }.is_some()
    }

    /// The lowest number of the engine's own that is in them; while the engine itself waits, they are its own.
    ///
    /// # Safety
    /// P1.
    #[inline]
    unsafe fn first_internal(&self) -> Option<c_int> {
        // Mostly all of them are above what sets have room for.
        let from = calls::first_internal().filter(|first| *first < self.count && !signal::is_inside())?;
        // SAFETY: P1.
        unsafe { self.find(from as usize / BITS, calls::is_internal) }
    }

    /// The lowest number in them that is wanted, from a word on.
    ///
    /// # Safety
    /// P1.
    unsafe fn find(&self, from: usize, is_wanted: impl Fn(c_int) -> bool) -> Option<c_int> {
        (from..self.words()).find_map(|word| {
            // SAFETY: P1.
            let mut bits = unsafe { self.union(word) };
            while bits != 0 {
                let fd = (word * BITS) as c_int + bits.trailing_zeros() as c_int;
                if fd < self.count && is_wanted(fd) {
                    return Some(fd);
                }
                bits &= bits - 1;
            }
            None
        })
    }

    /// Waits, and leaves in the sets what is ready; in case of an error they are as they were.
    ///
    /// # Safety
    /// P1.
    unsafe fn wait(&self, timeout: Option<Duration>, mask: Option<&sigset_t>) -> Result<usize> {
        let mut few = [EMPTY; FEW];
        let mut many = Vec::new();
        // SAFETY: P1.
        let members = unsafe { self.members() };
        let list = if members <= FEW {
            &mut few[..members]
        } else {
            many.resize(members, EMPTY);
            &mut many[..]
        };
        // SAFETY: P1.
        unsafe { self.fill(list) };
        wait_for(list, timeout, mask)?;
        // SAFETY: P1.
        Ok(unsafe { self.store(list) })
    }

    /// In a process that has shut itself in: the program's own call, which is told not to wait if bytes lie here. A list of
    /// more descriptors than `fd_set` holds is left to the kernel.
    ///
    /// # Safety
    /// P1.
    #[cold]
    unsafe fn wait_alone(&self, own: impl FnOnce(bool) -> c_int) -> c_int {
        let mut due = [0; libc::FD_SETSIZE / BITS];
        for (word, due) in due.iter_mut().enumerate().take(self.words()) {
            // SAFETY: P1.
            let mut bits = unsafe { self.word(0, word) };
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                *due |= c_ulong::from(calls::has_bytes_alone((word * BITS) as c_int + bit as c_int)) << bit;
            }
        }
        let at_once = due.iter().any(|due| *due != 0);
        let mut result = own(at_once);
        if result < 0 || !at_once {
            return result;
        }
        for (word, due) in due.iter().enumerate().take(self.words()) {
            // SAFETY: P1: a set has room for `count` descriptors, and this one is there, since something in it is due.
            let place = unsafe { self.sets[0].add(word) };
            // SAFETY: as above.
            let told = unsafe { *place };
            result += (due & !told).count_ones() as c_int;
            // SAFETY: as above.
            unsafe { *place = told | due };
        }
        result
    }

    fn words(&self) -> usize {
        (self.count.max(0) as usize).div_ceil(BITS)
    }

    /// One word of all sets together, without what is beyond the count.
    ///
    /// # Safety
    /// P1; `word` is below the number of words.
    unsafe fn union(&self, word: usize) -> c_ulong {
        let mut bits = 0;
        for set in 0..3 {
            // SAFETY: as for this function.
            bits |= unsafe { self.word(set, word) };
        }
        bits
    }

    /// # Safety
    /// As [`Sets::union`].
    unsafe fn word(&self, set: usize, word: usize) -> c_ulong {
        let set = self.sets[set];
        if set.is_null() {
            return 0;
        }
        // SAFETY: P1: a set has room for `count` descriptors.
        let place = unsafe { set.add(word) };
        // SAFETY: as above.
        let bits = unsafe { *place };
        let beyond = ((word + 1) * BITS).saturating_sub(self.count as usize);
        if beyond == 0 { bits } else { bits & (c_ulong::MAX >> beyond) }
    }

    /// # Safety
    /// P1.
    unsafe fn members(&self) -> usize {
        // SAFETY: P1.
        (0..self.words()).map(|word| unsafe { self.union(word) }.count_ones() as usize).sum()
    }

    /// # Safety
    /// P1; the list has as many entries as there are members.
    unsafe fn fill(&self, list: &mut [pollfd]) {
        let mut entries = list.iter_mut();
        for word in 0..self.words() {
            // SAFETY: P1.
            let mut bits = unsafe { self.union(word) };
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let Some(entry) = entries.next() else { return };
                entry.fd = (word * BITS) as c_int + bit as c_int;
                for (set, asked) in ASKED.iter().enumerate() {
                    // SAFETY: P1.
                    if unsafe { self.word(set, word) } >> bit & 1 != 0 {
                        entry.events |= asked;
                    }
                }
            }
        }
    }

    /// # Safety
    /// P1.
    unsafe fn store(&self, list: &[pollfd]) -> usize {
        for set in self.sets {
            for word in 0..self.words() {
                if !set.is_null() {
                    // SAFETY: P1: a set has room for `count` descriptors.
                    let place = unsafe { set.add(word) };
                    // SAFETY: as above.
                    unsafe { *place = 0 };
                }
            }
        }
        let mut ready = 0;
        for entry in list {
            for (set, (asked, meant)) in self.sets.iter().zip(ASKED.iter().zip(MEANT)) {
                if entry.events & asked != 0 && entry.revents & meant != 0 {
                    let fd = entry.fd.unsigned_abs() as usize;
                    // SAFETY: P1: the set is there, since it was asked for.
                    let place = unsafe { set.add(fd / BITS) };
                    // SAFETY: as above.
                    unsafe { *place |= 1 << (fd % BITS) };
                    ready += 1;
                }
            }
        }
        ready
    }
}

/// Polls until something is ready that `select` would tell of.
fn wait_for(list: &mut [pollfd], timeout: Option<Duration>, mask: Option<&sigset_t>) -> Result<()> {
    let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut left = timeout;
    loop {
        let ready = calls::select(list, left, mask)?;
        if list.iter().any(|entry| entry.revents & libc::POLLNVAL != 0) {
            return Err(Errno(libc::EBADF));
        }
        if ready == 0 || list.iter().any(is_told) {
            return Ok(());
        }
        // `poll` tells of an end that nobody asked for here, and would at once tell of it again.
        for entry in list.iter_mut().filter(|entry| entry.revents != 0) {
            entry.fd = -1;
        }
        left = end.map(|end| end.saturating_duration_since(Instant::now()));
    }
}

fn is_told(entry: &pollfd) -> bool {
    ASKED.iter().zip(MEANT).any(|(asked, meant)| entry.events & asked != 0 && entry.revents & meant != 0)
}

/// What to ask `poll` for each set. The three have no bit in common.
const ASKED: [i16; 3] = [
    libc::POLLIN | libc::POLLRDNORM | libc::POLLRDBAND,
    libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND,
    libc::POLLPRI,
];

/// What `select` takes for ready.
const MEANT: [i16; 3] = [ASKED[0] | libc::POLLHUP | libc::POLLERR, ASKED[1] | libc::POLLERR, ASKED[2]];

const EMPTY: pollfd = pollfd { fd: -1, events: 0, revents: 0 };

const BITS: usize = c_ulong::BITS as usize;

/// So many descriptors need no allocation.
const FEW: usize = 64;
