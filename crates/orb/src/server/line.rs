//! The side of a connection that replies.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sidestep_wire::giop::{self, MessageType, Version};

use crate::strand::Strand;

/// A strand, which whoever serves the connection and the end of the broker send on.
pub(crate) struct Line {
    pub(super) strand: Box<dyn Strand>,
    /// Held while a message is sent, so that messages do not mix.
    sending: Mutex<()>,
}

/// How long a peer that does not read may hold up the end of its connection.
const PARTING: Duration = Duration::from_millis(100);

/// How long to wait before looking whether a reply has gone out.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

impl Line {
    pub(super) fn new(strand: Box<dyn Strand>) -> Self {
        Self { strand, sending: Mutex::new(()) }
    }

    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.with_strand(|strand| strand.send(bytes, false, None))
    }

    /// Sends a message in pieces.
    pub(crate) fn with_strand<T>(&self, send: impl FnOnce(&dyn Strand) -> io::Result<T>) -> io::Result<T> {
        let _sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        send(&*self.strand)
    }

    /// Says something last, unless a message is stuck on the way, and closes the connection.
    pub(super) fn part(&self, version: Version, message_type: MessageType) {
        let deadline = Instant::now() + PARTING;
        loop {
            if let Ok(_sending) = self.sending.try_lock() {
                let _ = self.strand.send(&giop::bare(version, message_type), false, Some(deadline));
                break;
            }
            // A reply that goes out is followed; a peer that does not read its reply is not waited for.
            if Instant::now() >= deadline {
                break;
            }
            thread::sleep(LOOK_AGAIN);
        }
        self.close();
    }

    pub(super) fn close(&self) {
        self.strand.close();
    }
}
