//! A peer without a node: it says whatever it likes on a link, and notes what it hears.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard},
};

use sidestep_fabric::{
    Access, CloseReason, Cookie, Node, Refusal,
    cookie::RegionId,
    link::{AnyLink, Atomic, Link, Mapping, Outcome, Pages, PeerNumber, Request, Target, Ticket},
    protocol::{EndpointId, Message},
};
use sidestep_shm::Memory;
use sidestep_sys::clock;

use super::{
    fixture::unique_name,
    nodes::{PATIENCE_NS, drive},
};

/// What was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A peer connected.
    Opened(PeerNumber),
    /// A message.
    Message(PeerNumber, Vec<u8>),
    /// A write was asked for.
    Place(u64, Vec<u8>),
    /// A read was asked for.
    Fetch(u64, usize),
    /// An atomic operation was asked for.
    Atomic(u64, Atomic),
    /// Pages were asked for.
    Grant,
    /// An armed word was written or read.
    Fired(RegionId, usize, Access),
    /// A request has ended.
    Completed(Ticket, Ending),
    /// A peer is gone.
    Closed(PeerNumber, CloseReason),
}

/// How a request ended, in a form that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Done.
    Done,
    /// What was read.
    Bytes(Vec<u8>),
    /// What the word held.
    Value(u64),
    /// Pages came.
    Mapped,
    /// Pages came that can only be read.
    MappedReadOnly,
    /// No pages.
    Proxied,
    /// Refused.
    Refused(Refusal),
    /// The peer went away.
    Closed(CloseReason),
    /// Anything else.
    Other,
}

/// Notes what is delivered. Requests are carried out on a few bytes of its own, if the cookie is [`good_cookie`].
#[derive(Debug)]
pub struct Ear {
    heard: Mutex<VecDeque<Heard>>,
    bytes: Mutex<[u8; EAR_LEN]>,
    pages: Mutex<Option<Memory>>,
}

/// A link without a node, connected to something.
#[derive(Debug)]
pub struct Stranger {
    /// The link.
    pub link: AnyLink,
    /// What it hears.
    pub ear: Ear,
    /// Whom it is connected to.
    pub peer: PeerNumber,
    next_ticket: u64,
}

/// Bytes an [`Ear`] lets peers write and read.
pub const EAR_LEN: usize = 256;

/// The cookie that an [`Ear`] honours.
pub fn good_cookie() -> Cookie {
    cookie_of_region(7)
}

/// A cookie that it does not.
pub fn bad_cookie() -> Cookie {
    cookie_of_region(8)
}

fn cookie_of_region(region: u8) -> Cookie {
    let mut bytes = [0; Cookie::WIRE_LEN];
    bytes[16] = region;
    bytes[24..32].copy_from_slice(&(EAR_LEN as u64).to_le_bytes());
    bytes[32] = 7;
    Cookie::from_bytes(&bytes).expect("a well-formed cookie")
}

impl Default for Ear {
    fn default() -> Self {
        Ear { heard: Mutex::default(), bytes: Mutex::new([0; EAR_LEN]), pages: Mutex::default() }
    }
}

impl Ear {
    /// Everything heard so far, taken out.
    pub fn take(&self) -> Vec<Heard> {
        self.heard().drain(..).collect()
    }

    /// Everything heard so far.
    pub fn all(&self) -> Vec<Heard> {
        self.heard().iter().cloned().collect()
    }

    /// The bytes peers have written.
    pub fn bytes(&self) -> [u8; EAR_LEN] {
        *self.bytes.lock().expect("no panic in an ear")
    }

    /// The pages that came with the last answer that had any.
    pub fn pages(&self) -> Option<Memory> {
        self.pages.lock().expect("no panic in an ear").clone()
    }

    fn heard(&self) -> MutexGuard<'_, VecDeque<Heard>> {
        self.heard.lock().expect("no panic in an ear")
    }

    fn hear(&self, heard: Heard) {
        self.heard().push_back(heard);
    }

    fn range(&self, cookie: &Cookie, offset: u64, len: usize) -> Result<std::ops::Range<usize>, Refusal> {
        if *cookie != good_cookie() {
            return Err(Refusal::Forged);
        }
        let start = offset as usize;
        if start + len > EAR_LEN {
            return Err(Refusal::Range { offset, len: len as u64 });
        }
        Ok(start..start + len)
    }
}

impl Target for Ear {
    fn opened(&self, peer: PeerNumber) {
        self.hear(Heard::Opened(peer));
    }

    fn message(&self, peer: PeerNumber, bytes: &[u8]) {
        self.hear(Heard::Message(peer, bytes.to_vec()));
    }

    fn place(&self, _peer: PeerNumber, cookie: &Cookie, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        self.hear(Heard::Place(offset, bytes.to_vec()));
        let range = self.range(cookie, offset, bytes.len())?;
        self.bytes.lock().expect("no panic in an ear")[range].copy_from_slice(bytes);
        Ok(())
    }

    fn fetch(&self, _peer: PeerNumber, cookie: &Cookie, offset: u64, bytes: &mut [u8]) -> Result<(), Refusal> {
        self.hear(Heard::Fetch(offset, bytes.len()));
        let range = self.range(cookie, offset, bytes.len())?;
        bytes.copy_from_slice(&self.bytes.lock().expect("no panic in an ear")[range]);
        Ok(())
    }

    fn atomic(&self, _peer: PeerNumber, cookie: &Cookie, offset: u64, atomic: Atomic) -> Result<u64, Refusal> {
        self.hear(Heard::Atomic(offset, atomic));
        let range = self.range(cookie, offset, 8)?;
        let word = &mut self.bytes.lock().expect("no panic in an ear")[range];
        let held = word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let new = match atomic {
            Atomic::CompareSwap { expected, new } if held == expected => new,
            Atomic::CompareSwap { .. } => held,
            Atomic::FetchAdd(value) => held.wrapping_add(value),
        };
        word.copy_from_slice(&new.to_le_bytes());
        Ok(held)
    }

    fn grant(&self, _peer: PeerNumber, cookie: &Cookie) -> Result<Option<Pages>, Refusal> {
        self.hear(Heard::Grant);
        self.range(cookie, 0, 0).map(|_| None)
    }

    fn offered(&self, _peer: PeerNumber, _cookie: &Cookie, _pages: Mapping) {}

    fn fired(&self, region: RegionId, offset: usize, access: Access) {
        self.hear(Heard::Fired(region, offset, access));
    }

    fn fired_unknown(&self) {}

    fn completed(&self, ticket: Ticket, outcome: Outcome) {
        let ending = match outcome {
            Outcome::Done => Ending::Done,
            Outcome::Bytes(bytes) => Ending::Bytes(bytes),
            Outcome::Value(value) => Ending::Value(value),
            Outcome::Mapped(Mapping::ReadWrite(memory)) => {
                *self.pages.lock().expect("no panic in an ear") = Some(memory);
                Ending::Mapped
            }
            Outcome::Mapped(Mapping::ReadOnly(_)) => Ending::MappedReadOnly,
            Outcome::Proxied => Ending::Proxied,
            Outcome::Refused(refusal) => Ending::Refused(refusal),
            Outcome::Closed(reason) => Ending::Closed(reason),
            _ => Ending::Other,
        };
        self.hear(Heard::Completed(ticket, ending));
    }

    fn closed(&self, peer: PeerNumber, reason: CloseReason) {
        self.hear(Heard::Closed(peer, reason));
    }
}

impl Stranger {
    /// Two strangers that have met: the one that connected, and the one that listened.
    pub fn meet(mut links: Vec<AnyLink>) -> (Stranger, Stranger) {
        let there = links.remove(1);
        let name = unique_name();
        there.as_link().listen(&name).expect("a name that is free");
        let a = Stranger::reach(links.remove(0), &name);
        let mut b = Stranger { link: there, ear: Ear::default(), peer: a.peer, next_ticket: 0 };
        // Over some links the other side is heard of when it speaks.
        a.link.as_link().post(a.peer, b"hello").expect("a new connection");
        b.peer = until(&a, &b, "a greeting", || match b.ear.take().last() {
            Some(Heard::Message(peer, bytes)) if bytes == b"hello" => Some(*peer),
            _ => None,
        });
        b.link.as_link().post(b.peer, b"hello").expect("a new connection");
        let greeting = Heard::Message(a.peer, b"hello".to_vec());
        until(&a, &b, "a greeting", || a.ear.take().contains(&greeting).then_some(()));
        (a, b)
    }

    /// A stranger that connects to a node, which listens under a local name.
    pub fn reach(link: AnyLink, name: &str) -> Stranger {
        let peer = link.as_link().connect(name).expect("someone who listens");
        Stranger { link, ear: Ear::default(), peer, next_ticket: 0 }
    }

    /// Takes in what has arrived.
    pub fn poll(&self) -> bool {
        self.link.as_link().poll(&self.ear, true)
    }

    /// The link.
    pub fn link(&self) -> &dyn Link {
        self.link.as_link()
    }

    /// Starts a request.
    pub fn ask(&mut self, cookie: &Cookie, request: Request<'_>) -> sidestep_fabric::Result<Ticket> {
        let ticket = Ticket(self.next_ticket);
        self.link.as_link().request(self.peer, ticket, cookie, request)?;
        self.next_ticket += 1;
        Ok(ticket)
    }

    /// Asks a node and waits for its answer.
    pub fn ask_node(&mut self, node: &Node, cookie: &Cookie, request: Request<'_>) -> Ending {
        let ticket = self.ask(cookie, request).expect("an open connection");
        drive(&[node], "an answer", || {
            self.poll();
            self.ear.take().into_iter().find_map(|heard| match heard {
                Heard::Completed(ended, ending) if ended == ticket => Some(ending),
                _ => None,
            })
        })
    }

    /// Says something to a node in the words of the protocol.
    pub fn say(&self, message: Message<'_>) {
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        self.link().post(self.peer, &bytes).expect("an open connection");
    }

    /// What a node says, once it says something.
    pub fn hear_from(&self, node: &Node) -> Vec<u8> {
        drive(&[node], "a message", || {
            self.poll();
            self.ear.take().into_iter().find_map(|heard| match heard {
                Heard::Message(_, bytes) => Some(bytes),
                _ => None,
            })
        })
    }
}

/// Polls two strangers until `found` has an answer.
pub fn until<T>(a: &Stranger, b: &Stranger, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = clock::now() + PATIENCE_NS;
    loop {
        a.poll();
        b.poll();
        if let Some(found) = found() {
            return found;
        }
        assert!(clock::now() < deadline, "this never happened: {what}");
    }
}

/// An endpoint id that a stranger makes up.
pub fn made_up(slot: u32, session: u32) -> EndpointId {
    EndpointId { slot, session }
}
