//! Channels of the fabric: the same records as over TCP, in rings of shared memory.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use sidestep_fabric::link::LinkOptions;
use sidestep_fabric::queue::{Receiver, Sender};
use sidestep_fabric::{Channel, ChannelOptions, Endpoint, Error as FabricError, Node};
use sidestep_sys::clock;
use sidestep_sys::lock::Lock;

use super::{Take, Transport};
use crate::client::lock;
use crate::record::{self, Assembler};
use crate::xdr::Place;

pub(super) fn connect(
    name: &str,
    identity: u64,
    max_message: usize,
    timeout: Duration,
) -> io::Result<Box<dyn Transport>> {
    let node = node([name])?;
    let clocks = Clocks::new();
    let deadline = Some(clocks.fabric_time(clocks.instant + timeout));
    let channel = Channel::connect(&node, name, ChannelOptions::default(), &identity.to_le_bytes(), deadline);
    let Channel { sender, receiver, endpoint } = channel.map_err(failed)?;
    let inward = Lock::new(Inward::new(receiver, max_message));
    Ok(Box::new(FabricChannel { sender: Mutex::new(sender), inward, endpoint, clocks }))
}

/// A node on the links of the schemes of these names.
pub(crate) fn node<'a>(names: impl IntoIterator<Item = &'a str>) -> io::Result<Node> {
    let schemes: BTreeSet<&str> = names.into_iter().filter_map(|name| Some(name.split_once(':')?.0)).collect();
    Node::open(&Vec::from_iter(schemes), &LinkOptions::default()).map_err(failed)
}

struct FabricChannel {
    sender: Mutex<Sender>,
    /// One thread at a time receives, so nobody ever waits for it.
    inward: Lock<Inward>,
    endpoint: Endpoint,
    clocks: Clocks,
}

/// The same moment by two clocks, so that a call need not read both.
pub(super) struct Clocks {
    instant: Instant,
    fabric: u64,
}

impl Clocks {
    pub fn new() -> Self {
        Self { instant: Instant::now(), fabric: clock::now() }
    }

    pub fn fabric_time(&self, until: Instant) -> u64 {
        let from_then = until.saturating_duration_since(self.instant);
        self.fabric.saturating_add(u64::try_from(from_then.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Space in the ring of a channel, where a frame is put together: its long items are copied once. It is found, and the sender
/// held, from the first of them on.
pub(crate) struct Space<'a> {
    sender: &'a Mutex<Sender>,
    held: Option<MutexGuard<'a, Sender>>,
    taken: usize,
}

impl<'a> Space<'a> {
    #[inline]
    pub fn new(sender: &'a Mutex<Sender>) -> Self {
        Self { sender, held: None, taken: 0 }
    }

    /// Whether a part of a frame is here.
    pub fn is_used(&self) -> bool {
        self.taken > 0
    }

    /// Forgets what is here: it was never sent.
    pub fn clear(&mut self) {
        (self.held, self.taken) = (None, 0);
    }

    /// Sends what is here and the end of the frame. `false`: the end does not fit, and `end` is all of the frame now.
    pub fn finish(&mut self, end: &mut Vec<u8>) -> io::Result<bool> {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        if !self.put([end, &[]]) {
            let rest = std::mem::take(end);
            if !self.take_back(end) {
                return Err(broken());
            }
            end.extend_from_slice(&rest);
            record::mark(end);
            return Ok(false);
        }
        let Some(sender) = &mut self.held else { return Err(broken()) };
        let mut space = sender.reserve(self.taken).map_err(failed)?.ok_or_else(broken)?;
        space.copy_in(0, &record::mark_of(self.taken)).map_err(failed)?;
        space.commit(self.taken).map_err(failed)?;
        self.clear();
        Ok(true)
    }
}

impl Place for Space<'_> {
    fn put(&mut self, parts: [&[u8]; 2]) -> bool {
        if self.held.is_none() {
            // Whoever sends may wait for long.
            self.held = self.sender.try_lock().ok();
        }
        let Some(sender) = &mut self.held else { return false };
        let middle = self.taken + parts[0].len();
        let end = middle + parts[1].len();
        let Ok(Some(mut space)) = sender.reserve(end) else { return false };
        let copied = space.copy_in(self.taken, parts[0]).and_then(|()| space.copy_in(middle, parts[1]));
        if copied.is_ok() {
            self.taken = end;
        }
        copied.is_ok()
    }

    fn take_back(&mut self, into: &mut Vec<u8>) -> bool {
        let taken = std::mem::take(&mut self.taken);
        let Some(mut sender) = self.held.take() else { return taken == 0 };
        let Ok(Some(space)) = sender.reserve(taken) else { return false };
        match space.push(taken).and_then(|()| sender.recall()) {
            Ok(bytes) => into.extend_from_slice(&bytes),
            Err(_) => return false,
        }
        true
    }
}

/// The reading side of a channel.
pub(crate) struct Inward {
    receiver: Receiver,
    assembler: Assembler,
    buffer: Box<[u8]>,
}

/// Messages that fit are taken together and decoded from there; of longer ones the rest is copied from the ring to where
/// they are decoded.
const BUFFER: usize = 4 << 10;

/// How much of a longer message is taken at a time, so that it has no more memory than bytes have come.
const PIECE: usize = 64 << 10;

impl Inward {
    pub fn new(receiver: Receiver, max_message: usize) -> Self {
        Self { receiver, assembler: Assembler::new(max_message), buffer: vec![0; BUFFER].into() }
    }

    /// Waits for messages until a time of the fabric: whether there was one.
    pub fn receive(&mut self, deadline: Option<u64>, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let Self { receiver, assembler, buffer } = self;
        let any = Cell::new(false);
        let mut take = |message: &[u8]| {
            any.set(true);
            take(message);
        };
        loop {
            let count = match assembler.rest(PIECE) {
                Some(rest) => receiver.receive(rest, deadline),
                None => receiver.receive(buffer, deadline),
            };
            let count = match count {
                Err(FabricError::TimedOut(_)) => return Ok(false),
                outcome => outcome.map_err(failed)?,
            };
            if assembler.is_inside() {
                assembler.filled(count, &mut take);
            } else if let Some(message) = assembler.whole(&buffer[..count]) {
                take(message);
            } else {
                let fed = assembler.feed(&buffer[..count], &mut take);
                fed.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a message is too long"))?;
            }
            if any.get() {
                return Ok(true);
            }
        }
    }
}

/// How long to wait for space before looking whether replies must be taken first.
const LOOK: Duration = Duration::from_millis(1);

impl Transport for FabricChannel {
    fn lossy(&self) -> bool {
        false
    }

    fn send(&self, frame: &[u8]) -> io::Result<usize> {
        lock(&self.sender).try_send(frame).map_err(failed)
    }

    fn receive(&self, until: Instant, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        self.inward.lock().receive(Some(self.clocks.fabric_time(until)), take)
    }

    fn wait_sendable(&self, until: Instant, take: Option<&mut Take<'_>>) -> io::Result<()> {
        if let Some(take) = take {
            let mut inward = self.inward.lock();
            if inward.receiver.has_news() {
                inward.receive(Some(clock::now()), take)?;
            }
        }
        let deadline = self.clocks.fabric_time(until.min(Instant::now() + LOOK));
        match lock(&self.sender).wait_space(1, Some(deadline)) {
            Err(FabricError::TimedOut(_)) => Ok(()),
            outcome => outcome.map_err(failed),
        }
    }

    fn space(&self) -> Option<Space<'_>> {
        Some(Space::new(&self.sender))
    }

    fn close(&self) {
        self.endpoint.close();
        // Whoever waits for a reply looks again.
        self.endpoint.node().wake();
    }
}

pub(crate) fn failed(error: FabricError) -> io::Error {
    io::Error::other(error)
}
