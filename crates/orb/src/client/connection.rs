//! One connection to a server, shared by every thread that calls over it.
//!
//! There is no reading thread. Of the callers that wait for replies, one reads for all, so a call that is alone on its
//! connection is answered without a thread switch.

use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sidestep_sys::lock::{Condition, Guard, Lock};
use sidestep_wire::giop::{self, MessageType, Version};

use super::pending::{Pending, Slot};
use super::reader::{Fault, Own, Reader, Reply};
use crate::cdr::CharSet;
use crate::strand::{Close, SendHalf, Strand};

/// Why a reply will not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The server said that it serves nothing it has not answered.
    Refused,
    /// The connection broke.
    Broken,
    /// The time is up.
    TimedOut,
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::TimedOut { Lost::TimedOut } else { Lost::Broken }
    }
}

pub(crate) struct Connection {
    /// Held while a message is sent, so that messages do not mix.
    sender: Mutex<Box<dyn SendHalf>>,
    closer: Arc<dyn Close>,
    /// Cleared when the connection is lost.
    usable: AtomicBool,
    state: Lock<State>,
    /// A reply has come, or nobody reads any more.
    changed: Condition,
    pub(crate) version: Version,
    pub(crate) chars: CharSet,
    code_sets_told: AtomicBool,
}

struct State {
    pending: Pending,
    next_id: u32,
    /// `None` while a caller reads.
    reader: Option<Box<Reader>>,
    /// Callers that wait for `changed`.
    sleepers: usize,
    lost: Option<Lost>,
}

impl Connection {
    /// Replies of `sizes` are taken from where they lie; larger ones are not taken at all.
    pub(crate) fn new(strand: Strand, version: Version, chars: CharSet, sizes: RangeInclusive<usize>) -> Self {
        let Strand { sender, receiver, closer } = strand;
        let state = State {
            pending: Pending::default(),
            next_id: 1,
            reader: Some(Box::new(Reader::new(receiver, sizes))),
            sleepers: 0,
            lost: None,
        };
        Self {
            sender: Mutex::new(sender),
            closer,
            usable: AtomicBool::new(true),
            state: Lock::new(state),
            changed: Condition::new(),
            version,
            chars,
            code_sets_told: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.usable.load(Ordering::Acquire)
    }

    /// Whether a request has told the server the code sets. Those that are sent at the same time as the first one tell it, too:
    /// any of them may be the first to arrive.
    pub(crate) fn knows_code_sets(&self) -> bool {
        self.code_sets_told.load(Ordering::Acquire)
    }

    /// Begins a request, which is then submitted or abandoned; `expects_reply` if [`Connection::wait`] will be called for it.
    /// Returns its id.
    pub(crate) fn begin(&self, expects_reply: bool) -> Result<u32, Lost> {
        let mut state = self.lock();
        if let Some(lost) = state.lost {
            return Err(lost);
        }
        let id = state.next_id;
        state.next_id = id.wrapping_add(1);
        if expects_reply {
            state.pending.insert(id);
        }
        Ok(id)
    }

    /// Sends a request by `send`, which returns the buffer it used.
    pub(crate) fn submit(
        &self,
        id: u32,
        send: impl FnOnce(&mut dyn SendHalf) -> io::Result<Vec<u8>>,
    ) -> Result<Vec<u8>, Lost> {
        let sent = send(&mut **self.sender.lock().unwrap_or_else(PoisonError::into_inner));
        if sent.is_ok() && !self.knows_code_sets() {
            self.code_sets_told.store(true, Ordering::Release);
        }
        sent.map_err(|error| {
            // A part of the message may have gone out: nothing can follow it.
            self.abandon(id);
            self.close();
            error.into()
        })
    }

    /// Waits for the reply to a request, which may be put into `buffer`.
    pub(crate) fn wait(&self, id: u32, buffer: Vec<u8>, deadline: Option<Instant>) -> Result<Reply, Lost> {
        let mut own = Own { id: Some(id), buffer, reply: None };
        let mut state = self.lock();
        loop {
            if state.lost.is_some() || !state.pending.is_waiting(id) {
                return match state.pending.remove(id) {
                    Some(Slot::Answered(reply)) => Ok(reply),
                    _ => Err(state.lost.unwrap_or(Lost::Broken)),
                };
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                state.pending.remove(id);
                drop(state);
                self.cancel(id);
                return Err(Lost::TimedOut);
            }
            state = match state.reader.take() {
                Some(reader) => self.read(state, reader, &mut own, deadline),
                None => self.sleep(state, deadline),
            };
            if let Some(reply) = own.reply.take() {
                state.pending.remove(id);
                return Ok(reply);
            }
        }
    }

    /// Reads what has come, or waits for it, without holding the lock.
    fn read<'a>(
        &'a self,
        state: Guard<'a, State>,
        mut reader: Box<Reader>,
        own: &mut Own,
        deadline: Option<Instant>,
    ) -> Guard<'a, State> {
        drop(state);
        let read = reader.read(self, own, deadline);
        if matches!(read, Err(Fault::Malformed)) {
            self.say(&giop::bare(self.version, MessageType::MessageError));
        }
        let mut state = self.lock();
        state.reader = Some(reader);
        match read {
            Ok(()) | Err(Fault::Lost(Lost::TimedOut)) => {}
            Err(Fault::Lost(lost)) => self.lose(&mut state, lost),
            Err(Fault::Malformed) => self.lose(&mut state, Lost::Broken),
        }
        if state.sleepers > 0 {
            self.changed.notify_all();
        }
        state
    }

    /// Waits while another caller reads.
    fn sleep<'a>(&'a self, mut state: Guard<'a, State>, deadline: Option<Instant>) -> Guard<'a, State> {
        state.sleepers += 1;
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let mut state = self.changed.wait(state, left);
        state.sleepers -= 1;
        state
    }

    /// Whether the reply is there; reads what has come, without waiting.
    pub(crate) fn is_answered(&self, id: u32) -> bool {
        let mut state = self.lock();
        if state.lost.is_none()
            && state.pending.is_waiting(id)
            && let Some(reader) = state.reader.take()
        {
            let mut nobody = Own { id: None, buffer: Vec::new(), reply: None };
            state = self.read(state, reader, &mut nobody, Some(Instant::now()));
        }
        !state.pending.is_waiting(id) || state.lost.is_some()
    }

    /// Takes the reply to a request of another caller.
    pub(super) fn answer(&self, id: u32, reply: impl FnOnce() -> Option<Reply>) -> Result<(), Lost> {
        let mut state = self.lock();
        // A reply that nobody waits for belongs to a request that was given up.
        if let Some(slot @ Slot::Waiting) = state.pending.get_mut(id) {
            *slot = Slot::Answered(reply().ok_or(Lost::Broken)?);
        }
        Ok(())
    }

    /// Forgets a request whose reply nobody wants.
    pub(crate) fn abandon(&self, id: u32) {
        self.lock().pending.remove(id);
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
        self.lose(&mut state, Lost::Broken);
        self.changed.notify_all();
    }

    /// Nothing more comes, for this reason unless there was another before.
    fn lose(&self, state: &mut State, lost: Lost) {
        state.lost.get_or_insert(lost);
        self.usable.store(false, Ordering::Release);
        self.closer.close();
    }

    fn cancel(&self, id: u32) {
        let mut encoder = giop::begin(Vec::new(), self.version, self.chars, MessageType::CancelRequest);
        encoder.u32(id);
        if giop::finish(encoder).is_ok_and(|message| !self.say(&message)) {
            self.close();
        }
    }

    /// Sends what is only a hint; false if the connection is of no use. Whoever is sending now may be stuck, and is not waited
    /// for.
    fn say(&self, message: &[u8]) -> bool {
        match self.sender.try_lock() {
            Ok(mut sender) => sender.send(message, false, Some(Instant::now())).is_ok(),
            Err(_) => true,
        }
    }

    #[inline]
    fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.closer.close();
    }
}
