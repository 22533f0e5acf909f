//! One connection to a server, shared by every thread that calls over it.
//!
//! There is no reading thread. Of the callers that wait for replies, one reads for all, so a call that is alone on its
//! connection is answered without a thread switch.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sidestep_wire::giop::{self, MessageType, Version, header, locate, reply};

use crate::assembler::{Assembler, Broken, Message};
use crate::cdr::CharSet;
use crate::strand::{Look, Strand};

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

/// A reply or a locate reply, whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) header: header::Repr,
    pub(crate) bytes: Vec<u8>,
    /// The code set of its text.
    pub(crate) chars: CharSet,
}

pub(crate) struct Connection {
    strand: Box<dyn Strand>,
    /// Held while a message is sent, so that messages do not mix.
    sending: Mutex<()>,
    next_id: AtomicU32,
    /// Cleared when the connection is lost.
    usable: AtomicBool,
    state: Mutex<State>,
    /// A reply has come, or nobody reads any more.
    changed: Condvar,
    /// Held by the one caller that reads.
    reader: Mutex<Reader>,
    pub(crate) version: Version,
    pub(crate) chars: CharSet,
    code_sets_told: AtomicBool,
}

struct Reader {
    assembler: Assembler,
    /// The beginning of a message that lies in the memory of the transport.
    head: Vec<u8>,
    /// The sizes of messages that are taken from there.
    sizes: std::ops::RangeInclusive<usize>,
}

struct State {
    waiting: HashMap<u32, Slot, BuildHasherDefault<Numbers>>,
    reading: bool,
    lost: Option<Lost>,
}

impl State {
    /// Nothing more comes, for this reason unless there was another before.
    fn lose(&mut self, lost: Lost, usable: &AtomicBool) {
        self.lost.get_or_insert(lost);
        usable.store(false, Ordering::Release);
    }
}

/// Spreads numbers that this side has chosen: they follow each other.
#[derive(Default)]
struct Numbers(u64);

impl Hasher for Numbers {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A request that waits.
enum Slot {
    /// With a buffer that the reply may be put into.
    Waiting(Vec<u8>),
    Answered(Reply),
}

impl Connection {
    /// Replies of `sizes` are taken from where they lie; larger ones are not taken at all.
    pub(crate) fn new(
        strand: Box<dyn Strand>,
        version: Version,
        chars: CharSet,
        sizes: std::ops::RangeInclusive<usize>,
    ) -> Self {
        let assembler = Assembler::new(*sizes.end());
        Self {
            strand,
            sending: Mutex::new(()),
            next_id: AtomicU32::new(1),
            usable: AtomicBool::new(true),
            state: Mutex::new(State { waiting: HashMap::default(), reading: false, lost: None }),
            changed: Condvar::new(),
            reader: Mutex::new(Reader { assembler, head: Vec::new(), sizes }),
            version,
            chars,
            code_sets_told: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.usable.load(Ordering::Acquire)
    }

    /// Whether this is the first request, which tells the server the code sets.
    pub(crate) fn tells_code_sets(&self) -> bool {
        !self.code_sets_told.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn new_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request by `send`, which returns the buffer it used; `expects_reply` if [`Connection::wait`] will be called
    /// for it.
    pub(crate) fn submit(
        &self,
        id: u32,
        expects_reply: bool,
        send: impl FnOnce(&dyn Strand) -> io::Result<Vec<u8>>,
    ) -> Result<Vec<u8>, Lost> {
        if expects_reply {
            let mut state = self.lock();
            if let Some(lost) = state.lost {
                return Err(lost);
            }
            state.waiting.insert(id, Slot::Waiting(Vec::new()));
        } else if !self.is_usable() {
            return Err(self.lock().lost.unwrap_or(Lost::Broken));
        }
        let sent = {
            let _sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
            send(&*self.strand)
        };
        sent.map_err(|error| {
            // A part of the message may have gone out: nothing can follow it.
            let mut state = self.lock();
            state.waiting.remove(&id);
            state.lose(Lost::Broken, &self.usable);
            self.changed.notify_all();
            drop(state);
            self.strand.close();
            lost(error)
        })
    }

    /// Waits for the reply to a request, which may be put into `buffer`.
    pub(crate) fn wait(&self, id: u32, buffer: Vec<u8>, deadline: Option<Instant>) -> Result<Reply, Lost> {
        let mut state = self.lock();
        if let Some(Slot::Waiting(place)) = state.waiting.get_mut(&id) {
            *place = buffer;
        }
        loop {
            match state.waiting.get(&id) {
                Some(Slot::Waiting(_)) if state.lost.is_none() => {}
                _ => {
                    return match state.waiting.remove(&id) {
                        Some(Slot::Answered(reply)) => Ok(reply),
                        _ => Err(state.lost.unwrap_or(Lost::Broken)),
                    };
                }
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                state.waiting.remove(&id);
                drop(state);
                self.cancel(id);
                return Err(Lost::TimedOut);
            }
            if state.reading {
                state = match deadline {
                    None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                    Some(deadline) => {
                        let left = deadline.saturating_duration_since(Instant::now());
                        self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                    }
                };
                continue;
            }
            state.reading = true;
            drop(state);
            let read = self.read(deadline);
            state = self.lock();
            state.reading = false;
            if let Err(lost @ (Lost::Broken | Lost::Refused)) = read {
                state.lose(lost, &self.usable);
                self.strand.close();
            }
            self.changed.notify_all();
        }
    }

    /// Whether the reply is there; reads what has come, without waiting.
    pub(crate) fn is_answered(&self, id: u32) -> bool {
        let mut state = self.lock();
        if !state.reading && state.lost.is_none() && matches!(state.waiting.get(&id), Some(Slot::Waiting(_))) {
            state.reading = true;
            drop(state);
            let read = self.read(Some(Instant::now()));
            state = self.lock();
            state.reading = false;
            if let Err(lost @ (Lost::Broken | Lost::Refused)) = read {
                state.lose(lost, &self.usable);
            }
            self.changed.notify_all();
        }
        !matches!(state.waiting.get(&id), Some(Slot::Waiting(_))) || state.lost.is_some()
    }

    /// Forgets a request whose reply nobody wants.
    pub(crate) fn abandon(&self, id: u32) {
        self.lock().waiting.remove(&id);
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.lose(Lost::Broken, &self.usable);
        self.changed.notify_all();
        drop(state);
        self.strand.close();
    }

    fn cancel(&self, id: u32) {
        let mut encoder = giop::begin(Vec::new(), self.version, self.chars, MessageType::CancelRequest);
        encoder.u32(id);
        let Ok(message) = giop::finish(encoder) else { return };
        // Whoever is sending now may be stuck; a cancellation is only a hint.
        if let Ok(_sending) = self.sending.try_lock()
            && self.strand.send(&message, false, Some(Instant::now())).is_err()
        {
            self.close();
        }
    }

    /// Reads at least one message and hands out all that have come.
    fn read(&self, deadline: Option<Instant>) -> Result<(), Lost> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let Reader { assembler, head, sizes } = &mut *reader;
        let mut delivered = false;
        loop {
            match assembler.next() {
                Ok(Some(message)) => {
                    self.deliver(&message)?;
                    delivered = true;
                    continue;
                }
                Ok(None) if delivered => return Ok(()),
                Ok(None) => {}
                Err(Broken::Giop(_) | Broken::TooLarge { .. } | Broken::StrayFragment | Broken::TooManyPartial) => {
                    let complaint = giop::bare(self.version, MessageType::MessageError);
                    let _ = self.strand.send(&complaint, false, Some(Instant::now()));
                    return Err(Lost::Broken);
                }
            }
            if assembler.is_empty() {
                let mut outcome = Ok(());
                let mut take = |message: &Message<'_>| outcome = self.deliver(message);
                let mut look = Look { sizes: sizes.clone(), head: &mut *head, take: &mut take };
                let shown = self.strand.show(&mut look, deadline).map_err(lost)?;
                outcome?;
                if shown {
                    return Ok(());
                }
            }
            match self.strand.receive(assembler.space(), deadline).map_err(lost)? {
                0 => return Err(Lost::Broken),
                count => assembler.filled(count),
            }
        }
    }

    fn deliver(&self, message: &Message<'_>) -> Result<(), Lost> {
        let mut decoder = message.decoder(self.chars);
        let version = message.header.version;
        let id = match message.header.message_type {
            MessageType::Reply => reply::Repr::parse(version, &mut decoder).map(|reply| reply.request_id),
            MessageType::LocateReply => locate::Reply::parse(version, &mut decoder).map(|reply| reply.request_id),
            MessageType::CloseConnection => return Err(Lost::Refused),
            // A client that does not offer to be called gets no requests.
            _ => return Err(Lost::Broken),
        };
        let id = id.map_err(|_| Lost::Broken)?;
        let mut state = self.lock();
        // A reply that nobody waits for belongs to a request that was given up.
        if let Some(slot) = state.waiting.get_mut(&id)
            && let Slot::Waiting(buffer) = slot
        {
            let mut bytes = std::mem::take(buffer);
            if !message.copy_to(&mut bytes) {
                return Err(Lost::Broken);
            }
            *slot = Slot::Answered(Reply { header: message.header, bytes, chars: self.chars });
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lost(error: io::Error) -> Lost {
    if error.kind() == io::ErrorKind::TimedOut { Lost::TimedOut } else { Lost::Broken }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.strand.close();
    }
}
