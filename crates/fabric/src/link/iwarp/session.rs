//! One connection: a stream, the engine that speaks iWARP over it, and what waits on either side of it.
//!
//! ```text
//!   request, post ──> engine ──> gathered write          (any thread, under the lock of the session)
//!   read ──> input ──> engine ──> place, fetch, atomic   (the thread that polls, under the lock)
//!                         └──> messages, answers, the end (the thread that polls, without it)
//! ```
//!
//! Frames are handled one by one, so everything takes effect in the order in which it was sent.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use sidestep_iwarp::{BufferId, Transport};
use sidestep_shm::doorbell::Sleeper;
use sidestep_sys::{
    clock,
    lock::{Mutex, MutexGuard},
};

use super::{
    hosting::Hosting,
    input::Input,
    lent::Lent,
    socket,
    state::{Delivery, State},
};
use crate::{
    error::{CloseReason, Result},
    link::{PeerNumber, Target},
};

/// A connection with a peer.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: PeerNumber,
    pub(super) origin: Origin,
    pub(super) socket: Arc<OwnedFd>,
    state: Mutex<State>,
    pub(super) input: Mutex<Input>,
}

/// Which side made a connection, and for whom.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The peer did.
    Accepted,
    /// This side, for everybody who means this `HOST:PORT`.
    Named(String),
    /// This side, for one caller.
    Alone,
    /// Somebody else; it was given to this side, which is to be asked.
    Adopted,
}

impl Origin {
    pub(super) fn is_named(&self, name: &str) -> bool {
        matches!(self, Origin::Named(own) if own == name)
    }
}

/// What the link lends a session for a call.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// The set that the session's stream lies in.
    pub(super) ready: &'a Sleeper,
    /// When the link was made, in nanoseconds of the clock.
    pub(super) began: u64,
}

impl Around<'_> {
    /// The time since the link was made, to a few milliseconds: enough for deadlines of seconds, and cheap.
    pub(super) fn now(&self) -> Duration {
        let time = clock_gettime(ClockId::MonotonicCoarse);
        let nanoseconds = (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64;
        Duration::from_nanos(nanoseconds.saturating_sub(self.began))
    }

    /// The same to the nanosecond, for what a timer tells.
    pub(super) fn exact_now(&self) -> Duration {
        Duration::from_nanos(clock::now() - self.began)
    }
}

/// What a look at a session found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Anything at all.
    pub(super) any: bool,
    /// Something is held back for a moment, and the link was told so.
    pub(super) is_held: bool,
    /// Something is held back for a moment, and the link is to be told.
    pub(super) holds: bool,
    /// The session is over.
    pub(super) over: bool,
    /// Nothing of it is left.
    pub(super) gone: bool,
}

/// What is gathered for one write: two of the largest frames, and a question for an answer behind them.
const BUDGET: u64 = 132 * 1024;
/// The engine never stops for so few pieces.
const FEW_PIECES: usize = 128;
/// Polls that an answer without bytes waits for company.
const HELD_POLLS: u32 = 2;
/// Polls after which a write is to be answered though nobody waits for it.
const FLUSHED_POLLS: u32 = 64;
/// A peer that sends this much at a time is not waiting for a word.
const BULK: usize = 4096;

impl Session {
    pub(super) fn new(
        id: PeerNumber,
        origin: Origin,
        socket: Arc<OwnedFd>,
        state: State,
        around: Around<'_>,
    ) -> Result<Session> {
        around.ready.add_level(socket.as_fd(), u64::from(id.0))?;
        let session = Session { id, origin, socket, state: Mutex::new(state), input: Mutex::default() };
        session.transmit(&mut session.lock(), around, None);
        Ok(session)
    }

    /// Sends a message.
    pub(super) fn post(&self, bytes: &[u8], around: Around<'_>) -> Result<()> {
        let mut state = self.lock();
        state.post(bytes)?;
        self.transmit(&mut state, around, None);
        Ok(())
    }

    /// Starts a request. `true` if its answer was not asked for yet, and the link is to be told.
    pub(super) fn request<'a>(
        &self,
        around: Around<'_>,
        ask: impl FnOnce(&mut State) -> Result<Option<(BufferId, Lent<'a>)>>,
    ) -> Result<bool> {
        let mut state = self.lock();
        let lent = ask(&mut state)?;
        self.transmit(&mut state, around, lent);
        if let Some((id, lent)) = lent {
            state.keep_unsent(id, lent);
        }
        state.held.polls = 0;
        Ok(state.begins_to_hold())
    }

    /// Ends the connection from this side. `true` if there is something to report now.
    pub(super) fn close(&self, reason: CloseReason, around: Around<'_>) -> bool {
        let mut state = self.lock();
        let ended = state.close(reason, around.now());
        self.transmit(&mut state, around, None);
        ended
    }

    /// Takes the stream out of the link's set, so that it ends no sleep. `true` if it was in it.
    pub(super) fn mute(&self, around: Around<'_>) -> bool {
        let mut state = self.lock();
        if state.stream.gone || state.stream.is_muted {
            return false;
        }
        around.ready.remove(self.socket.as_fd());
        state.stream.is_muted = true;
        true
    }

    /// Puts it back. `false` if that is not possible, which is its end.
    pub(super) fn unmute(&self, around: Around<'_>) -> bool {
        let mut state = self.lock();
        if state.stream.gone || !std::mem::take(&mut state.stream.is_muted) {
            return true;
        }
        let (descriptor, token) = (self.socket.as_fd(), u64::from(self.id.0));
        let mut added = around.ready.add_level(descriptor, token);
        if state.stream.wants_writable {
            added = added.and_then(|()| around.ready.want_writable(descriptor, token, true));
        }
        if added.is_err() {
            state.lose(CloseReason::Link("its stream cannot be watched"));
        }
        added.is_ok()
    }

    /// The core on which its packets are received.
    pub(super) fn incoming_core(&self) -> u32 {
        socket::incoming_core(&self.socket)
    }

    /// Whether the peer can still be used.
    pub(super) fn is_live(&self) -> bool {
        self.lock().ended.is_none()
    }

    /// Whether set-up is not over at the side that was reached.
    pub(super) fn is_silent(&self) -> bool {
        self.origin == Origin::Accepted && !self.lock().told.peer
    }

    /// Gives up on a peer that has not finished set-up.
    pub(super) fn drop_silent(&self) {
        self.lock().lose(CloseReason::Link("set-up was crowded out"));
    }

    /// When `handle_timeout` is wanted.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.lock().connection.poll_timeout()
    }

    /// The time has come.
    pub(super) fn handle_timeout(&self, around: Around<'_>) {
        let mut state = self.lock();
        state.connection.handle_timeout(around.exact_now());
        self.transmit(&mut state, around, None);
        state.has_timed_out = true;
    }

    /// Takes in what has come, and sends what is due.
    pub(super) fn poll(&self, around: Around<'_>, target: &dyn Target) -> Found {
        let mut deliveries = Vec::new();
        let (mut any, state) = self.receive(around, target, &mut deliveries);
        let mut state = state.unwrap_or_else(|| self.lock());
        if !any && !state.wants_look() {
            self.grow_old(&mut state, around);
            return Found { is_held: state.held.is_known, ..Found::default() };
        }
        let quiet = state.memory.patient == 1 && !state.memory.urgent && state.memory.placed < BULK;
        state.memory.placed = 0;
        state.has_timed_out = false;
        let holds = quiet && any && state.ended.is_none();
        if holds {
            state.held.polls = 0;
        } else if state.has_output() {
            // Room on a stream that had none lets requests go on.
            any |= self.transmit(&mut state, around, None);
            state.collect(around, target, &mut deliveries);
        }
        state.report(&mut deliveries);
        let (over, gone) = (state.ended.is_some(), state.stream.gone && state.is_reported());
        let holds = state.begins_to_hold();
        let is_held = state.held.is_known;
        drop(state);
        any |= !deliveries.is_empty();
        self.deliver(&mut deliveries, target);
        Found { any, is_held, holds, over, gone }
    }

    /// A poll that had nothing of this session. `true` while something is still held back.
    pub(super) fn idle(&self, around: Around<'_>) -> bool {
        let mut state = self.lock();
        self.grow_old(&mut state, around);
        state.still_holds()
    }

    /// Sends what is held back, and with `now` asks for answers too. `true` while something is still held back.
    pub(super) fn release(&self, around: Around<'_>, now: bool) -> bool {
        let mut state = self.lock();
        self.send_held(&mut state, around, now);
        state.still_holds()
    }

    /// A poll that had nothing of this session: sends what has been held for long enough.
    fn grow_old(&self, state: &mut State, around: Around<'_>) {
        if !state.holds_back() {
            return;
        }
        state.held.polls += 1;
        let now = state.held.polls >= FLUSHED_POLLS;
        if now || (state.memory.patient > 0 && state.held.polls >= HELD_POLLS) {
            self.send_held(state, around, now);
        }
    }

    fn send_held(&self, state: &mut State, around: Around<'_>, now: bool) {
        if !state.holds_back() {
            return;
        }
        state.held.polls = 0;
        let asks = now && state.owes_flush();
        if asks {
            // A connection that ends needs no answers.
            let _ = state.flush(true);
        }
        if asks || state.memory.patient > 0 {
            self.transmit(state, around, None);
        }
    }

    /// Takes the stream out of the link's set, before it is closed.
    pub(super) fn leave(&self, ready: &Sleeper) {
        ready.remove(self.socket.as_fd());
        if self.lock().connection.transport() == Transport::Reset {
            socket::make_reset(&self.socket);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in a session")
    }

    /// Tells the target, without the lock: it may post.
    pub(super) fn deliver(&self, deliveries: &mut Vec<Delivery>, target: &dyn Target) {
        for delivery in deliveries.drain(..) {
            match delivery {
                Delivery::Opened => target.opened(self.id),
                Delivery::Message(bytes) => target.message(self.id, &bytes),
                Delivery::Completed(ticket, outcome) => target.completed(ticket, outcome),
                Delivery::Closed(reason) => target.closed(self.id, reason),
            }
        }
    }

    /// Writes what is to go out, as much as the stream takes. `true` if that was anything.
    fn transmit(&self, state: &mut State, around: Around<'_>, lent: Option<(BufferId, Lent<'_>)>) -> bool {
        state.memory.patient = 0;
        state.memory.urgent = false;
        let (mut blocked, mut moved) = (false, false);
        let now = around.now();
        while state.stream.cannot_send.is_none() {
            let State { connection, table, gather, memory, .. } = &mut *state;
            let mut host = Hosting { memory, target: None, caller: lent };
            connection.poll_transmit(now, BUDGET, table, &mut host, gather);
            if gather.is_empty() {
                break;
            }
            let (total, pieces) = (gather.len() as usize, gather.piece_count());
            match host.send(&self.socket, gather, connection.is_amid_message()) {
                Ok(count) => {
                    state.transmitted(now, count);
                    moved |= count > 0;
                    if count < total {
                        blocked = true;
                        break;
                    }
                    // Less than was asked for: that was all.
                    if (total as u64) < BUDGET && pieces < FEW_PIECES {
                        break;
                    }
                }
                // What the peer said before it left may still be unread; the end is found there.
                Err(errno) => state.stream.cannot_send = Some(errno),
            }
        }
        if state.stream.wants_writable != blocked
            && (state.stream.is_muted
                || around.ready.want_writable(self.socket.as_fd(), u64::from(self.id.0), blocked).is_ok())
        {
            state.stream.wants_writable = blocked;
        }
        match state.connection.transport() {
            Transport::Open => {}
            Transport::Finish => {
                if !std::mem::replace(&mut state.stream.finished, true) {
                    socket::finish(&self.socket);
                }
            }
            Transport::Close | Transport::Reset => state.stream.gone = true,
        }
        moved
    }
}

#[cfg(test)]
mod tests;
