//! What was executed already: the duplicate-request cache.
//!
//! A client that has lost its connection, or a datagram, sends the call again with the same xid. A call that was executed
//! gets the same reply again; one that is being executed is replied to when it is done, wherever it came from last.
//!
//! A call is the same if it comes from the same host (over UDP: the same socket; over UNIX sockets: the same process),
//! has the same xid, and every byte behind it is the same, by a keyed hash of 64 bits.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Mutex;

use super::connection::ReplyPath;
use super::service::Peer;
use crate::client::lock;
use crate::record::ROOM;

pub(super) struct Cache {
    entries: usize,
    hash: RandomState,
    memory: Mutex<Memory>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    from: From,
    xid: u32,
    message: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum From {
    Host(IpAddr),
    Other(Peer),
}

#[derive(Default)]
struct Memory {
    calls: HashMap<Key, Entry>,
    /// In the order in which they came.
    order: VecDeque<Key>,
    bytes: usize,
}

enum Entry {
    /// Where to reply, besides to the one who executes it.
    Running(Vec<ReplyPath>),
    /// The frame of the reply; empty if there was none.
    Done(Vec<u8>),
}

/// What a call is to the cache.
pub(super) enum Found {
    /// It must be executed and [`Cache::done`] called, if the cache is in use with this key.
    New(Option<Key>),
    /// It was executed; the frame of the reply was appended, unless there was none.
    Again { replied: bool },
    /// It is being executed. Who executes it replies.
    Running,
}

/// Over how many paths a call is replied to, besides the first.
const MAX_PATHS: usize = 4;

/// What all remembered replies may take.
const MAX_BYTES: usize = 16 << 20;

impl Cache {
    pub fn new(entries: usize) -> Self {
        Self { entries, hash: RandomState::new(), memory: Mutex::default() }
    }

    /// Looks a message up, and takes a note that it is being executed if it is new.
    pub fn find(&self, message: &[u8], xid: u32, peer: &Peer, path: &ReplyPath, reply: &mut Vec<u8>) -> Found {
        if self.entries == 0 {
            return Found::New(None);
        }
        let from = match peer {
            Peer::Tcp(address) | Peer::Rdma(address) => From::Host(address.ip()),
            other => From::Other(*other),
        };
        let key = Key { from, xid, message: self.hash.hash_one(message) };
        let mut memory = lock(&self.memory);
        match memory.calls.get_mut(&key) {
            Some(Entry::Running(paths)) => {
                // Who asks again and again is told over the latest paths.
                if paths.len() == MAX_PATHS {
                    paths.remove(0);
                }
                paths.push(path.clone());
                Found::Running
            }
            Some(Entry::Done(frame)) => {
                reply.clear();
                reply.extend_from_slice(frame);
                Found::Again { replied: !frame.is_empty() }
            }
            None => {
                memory.calls.insert(key, Entry::Running(Vec::new()));
                memory.order.push_back(key);
                Found::New(Some(key))
            }
        }
    }

    /// A call was executed: remembers its reply, and gives those who have asked for it since.
    pub fn done(&self, key: Key, frame: Option<&[u8]>) -> Vec<ReplyPath> {
        let kept = frame.unwrap_or_default().to_vec();
        let mut memory = lock(&self.memory);
        memory.bytes += kept.len();
        let Some(Entry::Running(paths)) = memory.calls.insert(key, Entry::Done(kept)) else {
            return Vec::new();
        };
        memory.shrink(self.entries);
        paths
    }
}

impl Memory {
    /// Forgets the oldest calls that are done, as many as are too many.
    fn shrink(&mut self, entries: usize) {
        for _ in 0..self.order.len() {
            if self.order.len() <= entries && self.bytes <= MAX_BYTES {
                return;
            }
            let Some(key) = self.order.pop_front() else {
                return;
            };
            match self.calls.get(&key) {
                Some(Entry::Running(_)) => self.order.push_back(key),
                Some(Entry::Done(frame)) => {
                    self.bytes -= frame.len();
                    self.calls.remove(&key);
                }
                None => {}
            }
        }
    }
}

/// A frame has room for a mark, so that the frame of a reply is never empty.
const _: () = assert!(ROOM > 0);

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> Peer {
        Peer::Tcp(([127, 0, 0, 1], port).into())
    }

    #[test]
    fn a_call_is_executed_once_and_replied_to_again() {
        let cache = Cache::new(2);
        let mut reply = Vec::new();
        let none = ReplyPath::None;
        let Found::New(Some(key)) = cache.find(b"add 1", 7, &peer(1), &none, &mut reply) else { panic!("it is new") };
        // It comes again, over another connection, while it is executed.
        assert!(matches!(cache.find(b"add 1", 7, &peer(2), &none, &mut reply), Found::Running));
        assert_eq!(cache.done(key, Some(b"reply")).len(), 1);
        assert!(matches!(cache.find(b"add 1", 7, &peer(3), &none, &mut reply), Found::Again { replied: true }));
        assert_eq!(reply, b"reply");
        // Others are other calls.
        let other = Peer::Tcp(([127, 0, 0, 2], 1).into());
        for (message, xid, peer) in [(b"add 2", 7, peer(1)), (b"add 1", 8, peer(1)), (b"add 1", 7, other)] {
            assert!(matches!(cache.find(message, xid, &peer, &none, &mut reply), Found::New(Some(_))));
        }
    }

    #[test]
    fn the_oldest_calls_are_forgotten_but_not_those_that_run() {
        let cache = Cache::new(2);
        let mut reply = Vec::new();
        let find = |xid, reply: &mut Vec<u8>| cache.find(b"call", xid, &peer(1), &ReplyPath::None, reply);
        assert!(matches!(find(0, &mut reply), Found::New(_)));
        for xid in 1..10 {
            let Found::New(Some(key)) = find(xid, &mut reply) else { panic!("it is new") };
            cache.done(key, Some(b"reply"));
        }
        assert!(matches!(find(0, &mut reply), Found::Running));
        assert!(matches!(find(9, &mut reply), Found::Again { .. }));
        assert!(matches!(find(1, &mut reply), Found::New(_)));
    }
}
