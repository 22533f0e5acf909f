//! The calls that are outstanding, and who reads.
//!
//! Slots, their buffers and their conditions are used again, so that a call allocates nothing once as many were
//! outstanding before.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sidestep_sys::lock::{Condition, Guard};
use sidestep_wire::oncrpc::Xid;

use super::Connection;
use crate::transport::Transport;

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
    /// The connection in use, if there is one, and how many there were.
    pub connection: Option<Arc<Connection>>,
    connections: u64,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// The slot of the call whose xid ends with the bits of the place; as many places as a power of two.
    by_xid: Vec<Option<usize>>,
    next_xid: u32,
    /// The connection in use, for one who reads from it; there unless somebody does.
    reader: Option<Arc<Connection>>,
    /// The slots whose callers sleep until they have a reply or somebody must read.
    parked: Vec<usize>,
}

struct Slot {
    xid: Xid,
    state: State,
    /// A buffer for the next call.
    frame: Vec<u8>,
    reply: Vec<u8>,
    wake: Arc<Condition>,
    connection: u64,
}

/// A buffer that was used for a large message once does not hold its memory for ever.
const KEPT: usize = 256 << 10;

impl Calls {
    pub fn new() -> Self {
        Self {
            connection: None,
            connections: 0,
            slots: Vec::new(),
            free: Vec::new(),
            by_xid: vec![None; 64],
            // Servers that remember calls must not take this client for an earlier one.
            next_xid: RandomState::new().hash_one(std::process::id()) as u32,
            reader: None,
            parked: Vec::new(),
        }
    }

    /// A connection was made.
    pub fn connected(&mut self, transport: Box<dyn Transport>) -> Arc<Connection> {
        self.connections += 1;
        let (number, unsent, lossy) = (self.connections, Mutex::default(), transport.lossy());
        let connection = Arc::new(Connection { number, transport, unsent, lossy });
        self.reader = Some(connection.clone());
        self.connection.insert(connection).clone()
    }

    /// A slot for a new call that will be sent over the connection in use, its number, and a buffer for its frame.
    pub fn begin(&mut self) -> (usize, Xid, Vec<u8>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::new());
            self.slots.len() - 1
        });
        let xid = self.new_xid();
        let place = self.place(xid);
        self.by_xid[place] = Some(slot);
        let number = self.connection.as_ref().map_or(0, |connection| connection.number);
        let call = &mut self.slots[slot];
        (call.xid, call.state, call.connection) = (xid, State::Waiting, number);
        (slot, xid, std::mem::take(&mut call.frame))
    }

    /// The next number whose place is free. A call that waits long is passed by.
    fn new_xid(&mut self) -> Xid {
        if (self.slots.len() - self.free.len()) * 2 > self.by_xid.len() {
            // Numbers that differ in their last bits differ in more of them, too.
            self.by_xid = vec![None; self.by_xid.len() * 2];
            for slot in 0..self.slots.len() {
                let place = self.place(self.slots[slot].xid);
                if self.slots[slot].state != State::Free {
                    self.by_xid[place] = Some(slot);
                }
            }
        }
        loop {
            let xid = Xid(self.next_xid);
            self.next_xid = self.next_xid.wrapping_add(1);
            if self.by_xid[self.place(xid)].is_none() {
                return xid;
            }
        }
    }

    fn place(&self, xid: Xid) -> usize {
        xid.0 as usize & (self.by_xid.len() - 1)
    }

    /// The call is over, or given up.
    pub fn end(&mut self, slot: usize, frame: Vec<u8>) {
        let place = self.place(self.slots[slot].xid);
        self.by_xid[place] = None;
        let call = &mut self.slots[slot];
        call.state = State::Free;
        if frame.capacity() <= KEPT {
            call.frame = frame;
        }
        self.free.push(slot);
    }

    pub fn state(&self, slot: usize) -> State {
        self.slots[slot].state
    }

    /// A call is sent again, over the connection in use.
    pub fn resume(&mut self, slot: usize) -> Option<Arc<Connection>> {
        let connection = self.connection.clone()?;
        let call = &mut self.slots[slot];
        (call.state, call.connection) = (State::Waiting, connection.number);
        Some(connection)
    }

    pub fn deliver(&mut self, xid: Xid, message: &[u8]) {
        let Some(slot) = self.by_xid[self.place(xid)] else {
            return;
        };
        let call = &mut self.slots[slot];
        if call.xid == xid && matches!(call.state, State::Waiting | State::Lost) {
            call.reply.clear();
            call.reply.extend_from_slice(message);
            call.state = State::Replied;
            call.wake.notify_one();
        }
    }

    /// Every call that was sent over a connection has lost it.
    pub fn lost(&mut self, connection: u64) {
        if self.is_current(connection) {
            (self.connection, self.reader) = (None, None);
        }
        for call in &mut self.slots {
            if call.state == State::Waiting && call.connection == connection {
                call.state = State::Lost;
                call.wake.notify_one();
            }
        }
    }

    /// The connection that the caller reads from until [`Calls::read_end`]; `None` if somebody else does.
    #[inline]
    pub fn read_begin(&mut self) -> Option<Arc<Connection>> {
        self.reader.take()
    }

    /// The same for one connection, which may not be in use any more.
    pub fn read_begin_of(&mut self, connection: &Connection) -> Option<Arc<Connection>> {
        self.reader.take_if(|reader| reader.number == connection.number)
    }

    #[inline]
    pub fn read_end(&mut self, connection: Arc<Connection>) {
        if self.is_current(connection.number) {
            self.reader = Some(connection);
        }
    }

    /// A caller leaves: if nobody reads, one who sleeps must.
    #[inline]
    pub fn hand_over(&self) {
        if let (Some(_), Some(slot)) = (&self.reader, self.parked.last()) {
            self.slots[*slot].wake.notify_one();
        }
    }

    fn is_current(&self, connection: u64) -> bool {
        self.connection.as_ref().is_some_and(|current| current.number == connection)
    }

    /// Sleeps until there is news for a call, or somebody must read, or a time.
    pub fn park(mut calls: Guard<'_, Calls>, slot: usize, until: Instant) -> Guard<'_, Calls> {
        calls.parked.push(slot);
        let wake = calls.slots[slot].wake.clone();
        let most = until.saturating_duration_since(Instant::now());
        let mut calls = wake.wait(calls, Some(most));
        calls.parked.retain(|parked| *parked != slot);
        calls
    }

    pub fn take_reply(&mut self, slot: usize) -> Vec<u8> {
        std::mem::take(&mut self.slots[slot].reply)
    }

    pub fn keep_reply(&mut self, slot: usize, reply: Vec<u8>) {
        if reply.capacity() <= KEPT {
            self.slots[slot].reply = reply;
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
            wake: Arc::new(Condition::new()),
            connection: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_find_their_calls_however_many_are_outstanding() {
        let mut calls = Calls::new();
        // The numbers begin anew in between.
        calls.next_xid = u32::MAX - 100;
        let begun: Vec<(usize, Xid)> = (0..1000).map(|_| calls.begin()).map(|(slot, xid, _)| (slot, xid)).collect();
        for (slot, _) in begun.iter().step_by(2) {
            calls.end(*slot, Vec::new());
        }
        for (index, (slot, xid)) in begun.iter().enumerate() {
            calls.deliver(*xid, &xid.0.to_be_bytes());
            let expected = if index % 2 == 0 { State::Free } else { State::Replied };
            assert_eq!(calls.state(*slot), expected);
            assert!(index % 2 == 0 || calls.take_reply(*slot) == xid.0.to_be_bytes());
        }
        // Nobody has this number, although somebody has its place.
        let (slot, xid, _) = calls.begin();
        calls.deliver(Xid(xid.0 ^ 0x8000_0000), b"reply");
        assert_eq!(calls.state(slot), State::Waiting);
    }
}
