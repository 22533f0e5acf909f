//! The line between a test and its child: short messages, with descriptors where needed.

use std::{
    io::stdin,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sidestep_shm::passing::{Lifeline, Received};

/// How long anything may take before it counts as never happening. No test measures speed by it: it is a hundred times what
/// the slowest step takes on an idle machine, so that a busy one does not fail a test. The runner's own limit is longer.
pub const PATIENCE: Duration = Duration::from_secs(600);
/// [`PATIENCE`] for the clock of deadlines.
pub const PATIENCE_NS: u64 = PATIENCE.as_nanos() as u64;

/// One end of the line.
#[derive(Debug)]
pub struct Control {
    line: Lifeline,
}

impl Control {
    pub(super) fn new(line: Lifeline) -> Control {
        Control { line }
    }

    /// The end that a child has as its standard input.
    pub(super) fn inherited() -> Control {
        Control::new(Lifeline::from_fd(stdin().as_fd().try_clone_to_owned().expect("a descriptor")))
    }

    /// Says something. A listener that is gone hears nothing.
    pub fn say(&self, what: &str) {
        self.send(what.as_bytes(), &[]);
    }

    /// Says something, with descriptors.
    pub fn send(&self, what: &[u8], descriptors: &[BorrowedFd<'_>]) {
        match self.line.send(what, descriptors) {
            Ok(true) => {}
            Ok(false) => panic!("the other side does not listen"),
            Err(error) => eprintln!("a control message was lost: {error}"),
        }
    }

    /// The next message; `None` once the other side is gone.
    pub fn hear(&self) -> Option<String> {
        let bytes = self.receive(&mut Vec::new())?;
        Some(String::from_utf8(bytes).expect("text"))
    }

    /// The next message, however long it takes; `None` once the other side is gone.
    pub fn hear_any_time(&self) -> Option<String> {
        while !self.wait(PATIENCE_NS) {}
        self.hear()
    }

    /// The next message as numbers.
    pub fn hear_numbers(&self) -> Vec<u64> {
        let line = self.hear().expect("the other side is there");
        line.split(' ').map(|word| word.parse().expect("a number")).collect()
    }

    /// The next message with its descriptors; `None` once the other side is gone.
    pub fn receive(&self, descriptors: &mut Vec<OwnedFd>) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match self.line.receive(&mut buffer, descriptors).expect("a control message") {
                Received::Message(len) => {
                    buffer.truncate(len);
                    return Some(buffer);
                }
                Received::Closed => return None,
                Received::Stripped(_) => panic!("no room for the descriptors of a control message"),
                Received::Empty => assert!(self.wait(PATIENCE_NS), "nothing was said in time"),
            }
        }
    }

    /// Waits for exactly this message.
    pub fn expect(&self, what: &str) {
        assert_eq!(self.hear().as_deref(), Some(what));
    }

    /// Whether something was said, or the other side is gone.
    pub fn has_news(&self) -> bool {
        self.wait(0)
    }

    /// Waits at most this long for something to be said.
    pub fn wait(&self, limit_ns: u64) -> bool {
        let limit = Timespec { tv_sec: (limit_ns / 1_000_000_000) as i64, tv_nsec: (limit_ns % 1_000_000_000) as i64 };
        loop {
            match poll(&mut [PollFd::new(&self.line, PollFlags::IN)], Some(&limit)) {
                Ok(count) => return count > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => panic!("poll: {errno}"),
            }
        }
    }
}
