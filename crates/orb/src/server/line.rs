//! The side of a connection that replies.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use sidestep_sys::lock::Lock;
use sidestep_wire::giop::{self, MessageType, Version};

use crate::strand::{Close, SendHalf};

/// The sending half of a strand, for whoever serves the connection and for the end of the broker.
pub(crate) struct Line {
    /// Held while a message is sent, so that messages do not mix. Nobody waits for it but the end of the broker, which looks now
    /// and then.
    sender: Lock<Box<dyn SendHalf>>,
    closer: Arc<dyn Close>,
}

/// How long a peer that does not read may hold up the end of its connection.
const PARTING: Duration = Duration::from_millis(100);

/// How long to wait before looking whether a reply has gone out.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

impl Line {
    pub(super) fn new(sender: Box<dyn SendHalf>, closer: Arc<dyn Close>) -> Self {
        Self { sender: Lock::new(sender), closer }
    }

    #[inline]
    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.with_sender(|sender| if sender.try_send(bytes)? { Ok(()) } else { sender.send(bytes, false, None) })
    }

    /// Sends a message in pieces.
    #[inline]
    pub(crate) fn with_sender<T>(&self, send: impl FnOnce(&mut dyn SendHalf) -> io::Result<T>) -> io::Result<T> {
        send(&mut **self.sender.lock())
    }

    /// Says something last, unless a message is stuck on the way, and closes the connection.
    pub(super) fn part(&self, version: Version, message_type: MessageType) {
        let deadline = Instant::now() + PARTING;
        loop {
            if let Some(mut sender) = self.sender.try_lock() {
                let _ = sender.send(&giop::bare(version, message_type), false, Some(deadline));
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
        self.closer.close();
    }
}
