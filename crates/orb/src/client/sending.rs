//! What is sent beside the usual way: what takes longer, and hints.

use std::io;
use std::time::Instant;

use sidestep_wire::giop::{self, MessageType};

use super::{Connection, Lost};
use crate::draft::Draft;
use crate::strand::SendHalf;

impl Connection {
    /// Sends what could not be sent at once.
    #[inline(never)]
    pub(super) fn send_slowly(
        &self,
        id: u32,
        draft: &mut Draft,
        tried: io::Result<bool>,
        deadline: Option<Instant>,
        stream: &mut dyn FnMut(&mut Draft, &mut dyn SendHalf) -> io::Result<()>,
    ) -> Result<(), Lost> {
        let sent = match tried {
            Err(error) => {
                self.close();
                Err(error.into())
            }
            Ok(_) => self.take_sender(deadline).and_then(|mut taken| {
                let sender = taken.sender.as_deref_mut().ok_or(Lost::Broken)?;
                let sent =
                    if draft.is_whole() { sender.send(draft.bytes(), false, deadline) } else { stream(draft, sender) };
                // A part of a message that failed may have gone out: nothing can follow it.
                taken.is_intact = sent.is_ok();
                sent.map_err(Lost::from)
            }),
        };
        sent.inspect_err(|_| self.abandon(id))
    }

    /// Takes the sender, as soon as nobody else has it.
    fn take_sender(&self, deadline: Option<Instant>) -> Result<TakenSender<'_>, Lost> {
        let mut state = self.lock();
        loop {
            if let Some(lost) = state.lost {
                return Err(lost);
            }
            if let Some(sender) = state.sender.take() {
                return Ok(TakenSender { connection: self, sender: Some(sender), is_intact: false });
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Lost::TimedOut);
            }
            state.senders += 1;
            state = self.sendable.wait(state, left);
            state.senders -= 1;
        }
    }

    /// Tells the server that nobody waits for a reply any more.
    pub(super) fn cancel(&self, id: u32) {
        let mut encoder = giop::begin(Vec::new(), self.version, self.chars, MessageType::CancelRequest);
        encoder.u32(id);
        if giop::finish(encoder).is_ok_and(|message| !self.say(&message)) {
            self.close();
        }
    }

    /// Sends what is only a hint; false if the connection is of no use. Whoever is sending now may be stuck, and is not waited
    /// for.
    pub(super) fn say(&self, message: &[u8]) -> bool {
        match self.lock().sender.as_mut() {
            Some(sender) => sender.send(message, false, Some(Instant::now())).is_ok(),
            None => true,
        }
    }
}

/// The sender, while a caller has it.
struct TakenSender<'a> {
    connection: &'a Connection,
    sender: Option<Box<dyn SendHalf>>,
    /// Whether another message may follow. Not so if a value panics while it is encoded.
    is_intact: bool,
}

impl Drop for TakenSender<'_> {
    fn drop(&mut self) {
        if !self.is_intact {
            return self.connection.close();
        }
        let mut state = self.connection.lock();
        if state.lost.is_none() {
            state.sender = self.sender.take();
        }
        if state.senders > 0 {
            self.connection.sendable.notify_one();
        }
    }
}
