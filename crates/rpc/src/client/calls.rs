//! The calls that are outstanding, and who reads.
//!
//! Slots, calls, their buffers and their conditions are used again, so that a call allocates nothing once as many were
//! outstanding before.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use sidestep_sys::lock::{Condition, Guard};
use sidestep_wire::oncrpc::Xid;

use super::{Connection, Outstanding};
use crate::transport::{Transport, left};

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
    /// The calls whose replies somebody else may read, and places that are free.
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// The slot of the call whose xid ends with the bits of the place; as many places as a power of two.
    by_xid: Vec<Option<usize>>,
    /// The slots of calls that were listed late, when another one may have had the place of their xid.
    late: Vec<usize>,
    /// Calls that are over.
    #[allow(clippy::vec_box)] // A call goes from hand to hand, and a box is one word to move.
    spare: Vec<Box<Outstanding>>,
    next_xid: u32,
    /// The connection in use, for one who reads from it; there unless somebody does.
    reader: Option<Arc<Connection>>,
    /// The slots whose callers sleep until they have a reply or somebody must read.
    parked: Vec<usize>,
}

struct Slot {
    xid: Xid,
    state: State,
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
            late: Vec::new(),
            spare: Vec::new(),
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
        let has_unsent = AtomicBool::new(false);
        let connection = Arc::new(Connection { number, transport, unsent, has_unsent, lossy });
        self.reader = Some(connection.clone());
        self.connection.insert(connection).clone()
    }

    /// A new call of one who reads, which nobody else has to know as long as that is so. It is given back by [`Calls::end`].
    #[inline]
    pub fn begin(&mut self) -> Box<Outstanding> {
        let xid = Xid(self.next_xid);
        self.next_xid = self.next_xid.wrapping_add(1);
        let mut call = self.spare.pop().unwrap_or_else(|| Box::new(Outstanding::new()));
        call.begin(xid);
        call
    }

    /// A new call of somebody else. It will be sent over the connection in use.
    pub fn begin_listed(&mut self) -> Box<Outstanding> {
        if (self.slots.len() - self.free.len() + 1) * 2 > self.by_xid.len() {
            self.add_places();
        }
        // A call that waits long is passed by.
        while self.by_xid[self.place(Xid(self.next_xid))].is_some() {
            self.next_xid = self.next_xid.wrapping_add(1);
        }
        let mut call = self.begin();
        let number = self.connection.as_ref().map_or(0, |connection| connection.number);
        let slot = self.list(&mut call, number, State::Waiting);
        let place = self.place(call.xid);
        self.by_xid[place] = Some(slot);
        call
    }

    /// A call that is sent over a connection, whose caller does not read any more.
    pub fn list_late(&mut self, call: &mut Outstanding, connection: u64) {
        if call.slot.is_none() {
            let state = if self.is_current(connection) { State::Waiting } else { State::Lost };
            let slot = self.list(call, connection, state);
            self.late.push(slot);
        }
    }

    fn list(&mut self, call: &mut Outstanding, connection: u64, state: State) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::new());
            self.slots.len() - 1
        });
        let listed = &mut self.slots[slot];
        (listed.xid, listed.state, listed.connection) = (call.xid, state, connection);
        call.slot = Some(slot);
        slot
    }

    fn add_places(&mut self) {
        // Numbers that differ in their last bits differ in more of them, too.
        let before = std::mem::take(&mut self.by_xid);
        self.by_xid = vec![None; before.len() * 2];
        for slot in before.into_iter().flatten() {
            let place = self.place(self.slots[slot].xid);
            self.by_xid[place] = Some(slot);
        }
    }

    fn place(&self, xid: Xid) -> usize {
        xid.0 as usize & (self.by_xid.len() - 1)
    }

    /// The slot of the call with a number.
    fn find(&self, xid: Xid) -> Option<usize> {
        let is_its = |slot: &usize| self.slots[*slot].xid == xid;
        let here = self.by_xid[self.place(xid)].filter(is_its);
        here.or_else(|| self.late.iter().copied().find(is_its))
    }

    /// The call is over, or given up.
    #[inline]
    pub fn end(&mut self, mut call: Box<Outstanding>) {
        if let Some(slot) = call.slot.take() {
            self.take_off(slot);
        }
        call.frame.shrink(KEPT);
        self.spare.push(call);
    }

    fn take_off(&mut self, slot: usize) {
        let place = self.place(self.slots[slot].xid);
        self.by_xid[place].take_if(|listed| *listed == slot);
        self.late.retain(|late| *late != slot);
        self.slots[slot].state = State::Free;
        self.free.push(slot);
    }

    pub fn state(&self, slot: usize) -> State {
        self.slots[slot].state
    }

    /// A call is sent again, over the connection in use.
    pub fn resume(&mut self, call: &mut Outstanding) -> Option<Arc<Connection>> {
        let connection = self.connection.clone()?;
        self.list_late(call, connection.number);
        let listed = &mut self.slots[call.slot?];
        (listed.state, listed.connection) = (State::Waiting, connection.number);
        Some(connection)
    }

    pub fn deliver(&mut self, xid: Xid, message: &[u8]) {
        let Some(slot) = self.find(xid) else {
            return;
        };
        let call = &mut self.slots[slot];
        if matches!(call.state, State::Waiting | State::Lost) {
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
    pub fn park(mut calls: Guard<'_, Calls>, slot: usize, until: u64) -> Guard<'_, Calls> {
        calls.parked.push(slot);
        let wake = calls.slots[slot].wake.clone();
        let mut calls = wake.wait(calls, Some(left(until)));
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
        Self { xid: Xid(0), state: State::Free, reply: Vec::new(), wake: Arc::new(Condition::new()), connection: 0 }
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
        // Of three calls the second is listed when others have the place of its number.
        let mut begun: Vec<Box<Outstanding>> =
            (0..999).map(|index| if index % 3 == 1 { calls.begin() } else { calls.begin_listed() }).collect();
        for call in &mut begun {
            calls.list_late(call, 1);
        }
        let numbers: Vec<(usize, Xid)> = begun.iter().map(|call| (call.slot.unwrap(), call.xid)).collect();
        for (_, call) in begun.into_iter().enumerate().filter(|(index, _)| index % 2 == 0) {
            calls.end(call);
        }
        for (index, (slot, xid)) in numbers.iter().enumerate() {
            calls.deliver(*xid, &xid.0.to_be_bytes());
            let expected = if index % 2 == 0 { State::Free } else { State::Replied };
            assert_eq!(calls.state(*slot), expected);
            assert!(index % 2 == 0 || calls.take_reply(*slot) == xid.0.to_be_bytes());
        }
        // Nobody has this number, although somebody has its place.
        let call = calls.begin_listed();
        calls.deliver(Xid(call.xid.0 ^ 0x8000_0000), b"reply");
        assert_eq!(calls.state(call.slot.unwrap()), State::Waiting);
    }

    #[test]
    fn a_call_is_lost_if_its_connection_was_before_it_was_listed() {
        let mut calls = Calls::new();
        let mut call = calls.begin();
        calls.list_late(&mut call, 1);
        assert_eq!(calls.state(call.slot.unwrap()), State::Lost);
        calls.end(call);
        assert!(calls.late.is_empty() && calls.begin().slot.is_none());
    }
}
