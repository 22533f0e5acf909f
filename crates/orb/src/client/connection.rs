//! One connection to a server, shared by every thread that calls over it.
//!
//! There is no reading thread. Of the callers that wait for replies, one reads for all, so a call that is alone on its
//! connection is answered without a thread switch. Such a call takes the lock twice: to send, and to give the reader back.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use sidestep_sys::lock::{Condition, Guard, Lock};
use sidestep_wire::giop::{self, MessageType, Version};

use super::pending::{Pending, Slot};
use super::reader::{Fault, Own, Reader, Reply};
use crate::buffers;
use crate::cdr::CharSet;
use crate::draft::Draft;
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
    /// Cleared when the connection is lost.
    usable: AtomicBool,
    state: Lock<State>,
    /// A reply has come, or nobody reads any more.
    changed: Condition,
    /// Nobody sends any more.
    pub(super) sendable: Condition,
    pub(crate) version: Version,
    pub(crate) chars: CharSet,
    code_sets_told: AtomicBool,
}

/// The parts of the strand are gone once the connection is lost.
pub(super) struct State {
    pending: Pending,
    next_id: u32,
    /// `None` while a caller sends what takes longer.
    pub(super) sender: Option<Box<dyn SendHalf>>,
    /// `None` while a caller reads.
    reader: Option<Box<Reader>>,
    closer: Option<Arc<dyn Close>>,
    /// Callers that wait for `changed`.
    sleepers: usize,
    /// Callers that wait for `sendable`.
    pub(super) senders: usize,
    pub(super) lost: Option<Lost>,
}

/// When the reply to a request is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// There is none.
    Never,
    /// Later, or not at all.
    Later,
    /// As soon as the request is sent.
    Now,
}

/// A request that was sent.
pub(crate) struct Ticket {
    pub(crate) id: u32,
    /// The reader, for a caller that waits as soon as its request is sent. The request is not among those pending then.
    reader: Option<Box<Reader>>,
}

impl Ticket {
    pub(crate) fn of_pending(id: u32) -> Self {
        Self { id, reader: None }
    }
}

impl Connection {
    /// Replies of `sizes` are taken from where they lie; larger ones are not taken at all.
    pub(crate) fn new(strand: Strand, version: Version, chars: CharSet, sizes: RangeInclusive<usize>) -> Self {
        let Strand { sender, receiver, closer } = strand;
        let state = State {
            pending: Pending::default(),
            next_id: 1,
            sender: Some(sender),
            reader: Some(Box::new(Reader::new(receiver, sizes))),
            closer: Some(closer),
            sleepers: 0,
            senders: 0,
            lost: None,
        };
        Self {
            usable: AtomicBool::new(true),
            state: Lock::new(state),
            changed: Condition::new(),
            sendable: Condition::new(),
            version,
            chars,
            code_sets_told: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.usable.load(Ordering::Acquire)
    }

    /// Whether a request has told the server the code sets. Those that are sent at the same time as the first one tell it, too:
    /// any of them may be the first to arrive.
    #[inline]
    pub(crate) fn knows_code_sets(&self) -> bool {
        self.code_sets_told.load(Ordering::Acquire)
    }

    /// Sends a request, which gets its id now. If a reply is wanted, [`Connection::wait`] or [`Connection::abandon`] follows.
    ///
    /// `stream` sends a message that is not all in the draft.
    #[inline]
    pub(crate) fn send(
        &self,
        draft: &mut Draft,
        wanted: Wanted,
        deadline: Option<Instant>,
        stream: &mut dyn FnMut(&mut Draft, &mut dyn SendHalf) -> io::Result<()>,
    ) -> Result<Ticket, Lost> {
        let mut state = self.lock();
        if let Some(lost) = state.lost {
            return Err(lost);
        }
        let id = state.next_id;
        state.next_id = id.wrapping_add(1);
        draft.set_id(id);
        let sent = match &mut state.sender {
            Some(sender) if draft.is_whole() => sender.try_send(draft.bytes()),
            _ => Ok(false),
        };
        let reader = if matches!(sent, Ok(true)) && wanted == Wanted::Now { state.reader.take() } else { None };
        if reader.is_none() && wanted != Wanted::Never {
            state.pending.insert(id);
        }
        if !matches!(sent, Ok(true)) {
            drop(state);
            self.send_slowly(id, draft, sent, deadline, stream)?;
        }
        if !self.knows_code_sets() {
            self.code_sets_told.store(true, Ordering::Release);
        }
        Ok(Ticket { id, reader })
    }

    /// Waits for the reply to a request.
    #[inline]
    pub(crate) fn wait(&self, ticket: Ticket, reply: &mut Reply, deadline: Option<Instant>) -> Result<(), Lost> {
        let mut own = Own { id: Some(ticket.id), reply, has_come: false };
        let Some(reader) = ticket.reader else {
            return self.wait_among_others(self.lock(), ticket.id, own, deadline);
        };
        let mut state = self.read(reader, &mut own, deadline);
        if own.has_come && state.lost.is_none() {
            return Ok(());
        }
        state.pending.insert(ticket.id);
        self.wait_among_others(state, ticket.id, own, deadline)
    }

    #[inline(never)]
    fn wait_among_others<'a>(
        &'a self,
        mut state: Guard<'a, State>,
        id: u32,
        mut own: Own<'_>,
        deadline: Option<Instant>,
    ) -> Result<(), Lost> {
        loop {
            if own.has_come {
                state.pending.remove(id);
                return Ok(());
            }
            if state.lost.is_some() || !state.pending.is_waiting(id) {
                return match state.pending.remove(id) {
                    Some(Slot::Answered(reply)) => {
                        buffers::keep(std::mem::replace(own.reply, reply).bytes);
                        Ok(())
                    }
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
                Some(reader) => {
                    drop(state);
                    self.read_for_all(reader, &mut own, deadline)
                }
                None => self.sleep(state, deadline),
            };
        }
    }

    /// As [`Connection::read`], where it is not the only thing to be done.
    #[inline(never)]
    fn read_for_all<'a>(
        &'a self,
        reader: Box<Reader>,
        own: &mut Own<'_>,
        deadline: Option<Instant>,
    ) -> Guard<'a, State> {
        self.read(reader, own, deadline)
    }

    /// Reads what has come, or waits for it, without holding the lock.
    #[inline(always)]
    fn read<'a>(&'a self, mut reader: Box<Reader>, own: &mut Own<'_>, deadline: Option<Instant>) -> Guard<'a, State> {
        let read = reader.read(self, own, deadline);
        if matches!(read, Err(Fault::Malformed)) {
            self.say(&giop::bare(self.version, MessageType::MessageError));
        }
        let mut state = self.lock();
        // A connection that was lost meanwhile needs no reader.
        if state.lost.is_none() {
            state.reader = Some(reader);
        }
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
            drop(state);
            let mut nobody = Own { id: None, reply: &mut Reply::default(), has_come: false };
            state = self.read_for_all(reader, &mut nobody, Some(Instant::now()));
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
    #[cold]
    fn lose(&self, state: &mut State, lost: Lost) {
        state.lost.get_or_insert(lost);
        self.usable.store(false, Ordering::Release);
        if let Some(closer) = state.closer.take() {
            closer.close();
        }
        (state.sender, state.reader) = (None, None);
        self.sendable.notify_all();
    }

    #[inline]
    pub(super) fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(closer) = self.lock().closer.take() {
            closer.close();
        }
    }
}
