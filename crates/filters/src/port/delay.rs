//! How long a thread was ready to run and had no processor: time that says nothing about its filter.
//!
//! The kernel adds it up for each thread (the second number of `schedstat`). What falls into a wait is part of that wait
//! already, so the sum is read where a wait begins and where it ends. A reading takes about a microsecond, and a delay that
//! matters is far longer than [`SHORT_NS`]: the sum is read only where so much time has gone by. Waits that are shorter are added up, and no
//! more counts as a delay than the time between two readings without them.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use sidestep_sys::clock;

/// Time in which no delay worth a reading fits. A thread that loses its processor gets it back after some milliseconds.
const SHORT_NS: u64 = 200_000;

/// The delays of one thread.
#[derive(Debug, Default)]
struct Delay {
    /// The sum at the last reading, and when that was.
    sum_ns: u64,
    read_ns: u64,
    /// Short waits since then.
    waited_ns: u64,
    /// What was added to it outside of waits.
    working_ns: u64,
}

impl Delay {
    fn begin(&mut self, now: u64, sum: impl FnOnce() -> u64) {
        *self = Delay { sum_ns: sum(), read_ns: now, ..Delay::default() };
    }

    fn before_wait(&mut self, now: u64, sum: impl FnOnce() -> u64) {
        if now.saturating_sub(self.read_ns) > SHORT_NS {
            self.working_ns += self.read(now, sum());
        }
    }

    fn after_wait(&mut self, began: u64, now: u64, sum: impl FnOnce() -> u64) {
        let waited = now.saturating_sub(began);
        if waited > SHORT_NS {
            self.read(now, sum());
        } else {
            self.waited_ns += waited;
        }
    }

    fn end(&mut self, now: u64, sum: impl FnOnce() -> u64) -> u64 {
        self.working_ns += self.read(now, sum());
        self.working_ns
    }

    fn read(&mut self, now: u64, sum_ns: u64) -> u64 {
        let most = now.saturating_sub(self.read_ns).saturating_sub(self.waited_ns);
        let more = sum_ns.saturating_sub(self.sum_ns).min(most);
        (self.sum_ns, self.read_ns, self.waited_ns) = (sum_ns, now, 0);
        more
    }
}

thread_local! {
    static DELAY: RefCell<(Delay, Option<File>)> = RefCell::default();
}

/// This thread begins a unit of work.
pub(crate) fn begin(now: u64) {
    DELAY.with_borrow_mut(|(delay, file)| {
        if file.is_none() {
            *file = File::open("/proc/thread-self/schedstat").ok();
        }
        delay.begin(now, || sum(file.as_ref()));
    });
}

/// This thread has ended a unit of work: how long it was delayed outside of waits.
pub(crate) fn end(now: u64) -> u64 {
    DELAY.with_borrow_mut(|(delay, file)| delay.end(now, || sum(file.as_ref())))
}

/// A wait of this thread for a buffer or for space.
#[derive(Debug)]
pub(crate) struct Wait {
    began: u64,
}

impl Wait {
    pub fn begin() -> Wait {
        let began = clock::now();
        DELAY.with_borrow_mut(|(delay, file)| delay.before_wait(began, || sum(file.as_ref())));
        Wait { began }
    }

    /// When it began.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// How long it took.
    pub fn end(self) -> u64 {
        let now = clock::now();
        DELAY.with_borrow_mut(|(delay, file)| delay.after_wait(self.began, now, || sum(file.as_ref())));
        now - self.began
    }
}

/// The kernel's sum for the thread that opened the file; zero from a kernel that keeps none.
fn sum(file: Option<&File>) -> u64 {
    let mut bytes = [0; 64];
    let count = file.and_then(|file| file.read_at(&mut bytes, 0).ok()).unwrap_or(0);
    parse(&bytes[..count]).unwrap_or(0)
}

fn parse(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn only_delays_outside_of_waits_count() {
        let mut delay = Delay::default();
        delay.begin(0, || 7 * MS);
        // Three milliseconds without a processor while it works, then five on the way out of a wait.
        delay.before_wait(10 * MS, || 10 * MS);
        delay.after_wait(10 * MS, 30 * MS, || 15 * MS);
        assert_eq!(delay.end(40 * MS, || 16 * MS), 4 * MS);
    }

    #[test]
    fn short_waits_read_nothing() {
        let mut delay = Delay::default();
        delay.begin(0, || 0);
        for at in (0..MS / 2).step_by(1000) {
            delay.after_wait(at, at + 500, || panic!("half a microsecond is no delay"));
        }
        delay.before_wait(SHORT_NS, || panic!("nothing to be read yet"));
        assert_eq!(delay.end(MS, || 300), 300);
    }

    #[test]
    fn delays_within_short_waits_are_part_of_those() {
        let mut delay = Delay::default();
        delay.begin(0, || 0);
        // A hundred waits of 0.1 ms, in each of which 0.09 ms went by without a processor, and 0.02 ms of work after each.
        for at in (0..12 * MS).step_by(120_000) {
            delay.after_wait(at, at + 100_000, || panic!("a short wait"));
        }
        assert_eq!(delay.end(12 * MS, || 9 * MS), 2 * MS);
    }

    #[test]
    fn the_second_number_is_the_delay() {
        assert_eq!(parse(b"172597 9686360 2\n"), Some(9_686_360));
        assert_eq!(parse(b""), None);
    }
}
