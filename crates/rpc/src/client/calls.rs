//! The calls that are outstanding, and who reads.
//!
//! Slots, their buffers and their condition variables are used again, so that a call allocates nothing once as many were
//! outstanding before.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Condvar, MutexGuard};
use std::time::{Duration, Instant};

use sidestep_wire::oncrpc::Xid;

/// How a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Free,
    Waiting,
    Replied,
    /// The connection over which it was sent has ended.
    Lost,
}

pub(super) struct Calls {
    slots: Vec<Slot>,
    free: Vec<usize>,
    by_xid: HashMap<Xid, usize>,
    next_xid: u32,
    /// Somebody reads from the transport.
    reading: bool,
    /// The slots whose callers sleep until they have a reply or somebody must read.
    parked: Vec<usize>,
}

struct Slot {
    xid: Xid,
    state: State,
    frame: Vec<u8>,
    reply: Vec<u8>,
    wake: Arc<Condvar>,
    connection: u64,
    resend_at: Instant,
    resend_pause: Duration,
}

/// A buffer that was used for a large message once does not hold its memory for ever.
const KEPT: usize = 256 << 10;

impl Calls {
    pub fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_xid: HashMap::new(),
            // Servers that remember calls must not take this client for an earlier one.
            next_xid: RandomState::new().hash_one(std::process::id()) as u32,
            reading: false,
            parked: Vec::new(),
        }
    }

    /// A slot for a new call, its number, and a buffer for its frame.
    pub fn begin(&mut self) -> (usize, Xid, Vec<u8>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::new());
            self.slots.len() - 1
        });
        // A number that a call still has after four thousand million others is skipped.
        let mut xid = Xid(self.next_xid);
        while self.by_xid.contains_key(&xid) {
            xid = Xid(xid.0.wrapping_add(1));
        }
        self.next_xid = xid.0.wrapping_add(1);
        self.by_xid.insert(xid, slot);
        let call = &mut self.slots[slot];
        (call.xid, call.state, call.connection) = (xid, State::Waiting, 0);
        (slot, xid, std::mem::take(&mut call.frame))
    }

    /// The call is over, or given up.
    pub fn end(&mut self, slot: usize) {
        let call = &mut self.slots[slot];
        self.by_xid.remove(&call.xid);
        call.state = State::Free;
        self.free.push(slot);
    }

    pub fn state(&self, slot: usize) -> State {
        self.slots[slot].state
    }

    pub fn sent_over(&mut self, slot: usize, connection: u64, resend_at: Instant) {
        let call = &mut self.slots[slot];
        call.connection = connection;
        call.resend_pause = resend_at.saturating_duration_since(Instant::now());
        call.resend_at = resend_at;
    }

    pub fn connection_of(&self, slot: usize) -> u64 {
        self.slots[slot].connection
    }

    pub fn resend_at(&self, slot: usize) -> (Instant, Duration) {
        (self.slots[slot].resend_at, self.slots[slot].resend_pause)
    }

    pub fn set_resend(&mut self, slot: usize, at: Instant, pause: Duration) {
        (self.slots[slot].resend_at, self.slots[slot].resend_pause) = (at, pause);
    }

    /// A call that was lost is sent again.
    pub fn wait_again(&mut self, slot: usize) {
        self.slots[slot].state = State::Waiting;
    }

    pub fn deliver(&mut self, xid: Xid, message: &[u8]) {
        let Some(slot) = self.by_xid.get(&xid) else {
            return;
        };
        let call = &mut self.slots[*slot];
        if matches!(call.state, State::Waiting | State::Lost) {
            call.reply.clear();
            call.reply.extend_from_slice(message);
            call.state = State::Replied;
            call.wake.notify_one();
        }
    }

    /// Every call that was sent over a connection has lost it.
    pub fn lost(&mut self, connection: u64) {
        for call in &mut self.slots {
            if call.state == State::Waiting && call.connection == connection {
                call.state = State::Lost;
                call.wake.notify_one();
            }
        }
    }

    /// Whether the caller is the one who reads from now on.
    pub fn read_begin(&mut self) -> bool {
        !std::mem::replace(&mut self.reading, true)
    }

    pub fn read_end(&mut self) {
        self.reading = false;
    }

    /// A caller leaves: if nobody reads, one who sleeps must.
    pub fn hand_over(&self) {
        if let (false, Some(slot)) = (self.reading, self.parked.last()) {
            self.slots[*slot].wake.notify_one();
        }
    }

    /// Sleeps until there is news for a call, or somebody must read.
    pub fn park(mut calls: MutexGuard<'_, Calls>, slot: usize, most: Duration) -> MutexGuard<'_, Calls> {
        calls.parked.push(slot);
        let wake = calls.slots[slot].wake.clone();
        let (mut calls, _) = wake.wait_timeout(calls, most).unwrap_or_else(|poison| poison.into_inner());
        calls.parked.retain(|parked| *parked != slot);
        calls
    }

    pub fn take_frame(&mut self, slot: usize) -> Vec<u8> {
        std::mem::take(&mut self.slots[slot].frame)
    }

    pub fn keep_frame(&mut self, slot: usize, frame: Vec<u8>) {
        if frame.capacity() <= KEPT || self.slots[slot].state != State::Free {
            self.slots[slot].frame = frame;
        }
    }

    pub fn take_reply(&mut self, slot: usize) -> Vec<u8> {
        std::mem::take(&mut self.slots[slot].reply)
    }

    pub fn keep_reply(&mut self, slot: usize, reply: Vec<u8>) {
        let call = &mut self.slots[slot];
        if reply.capacity() <= KEPT {
            call.reply = reply;
        }
        if call.frame.capacity() > KEPT {
            call.frame = Vec::new();
        }
    }
}

impl Slot {
    fn new() -> Self {
        Self {
            xid: Xid(0),
            state: State::Free,
            frame: Vec::new(),
            reply: Vec::new(),
            wake: Arc::new(Condvar::new()),
            connection: 0,
            resend_at: Instant::now(),
            resend_pause: Duration::ZERO,
        }
    }
}
