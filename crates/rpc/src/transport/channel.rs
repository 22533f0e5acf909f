//! Channels of the fabric: the same records as over TCP, in rings of shared memory.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use sidestep_fabric::link::LinkOptions;
use sidestep_fabric::queue::{Receiver, Sender};
use sidestep_fabric::{Channel, ChannelOptions, Endpoint, Error as FabricError, Node};
use sidestep_sys::clock;
use sidestep_sys::lock::Lock;

use super::{Take, Transport, after};
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
    let deadline = Some(after(timeout));
    let channel = Channel::connect(&node, name, ChannelOptions::default(), &identity.to_le_bytes(), deadline);
    let Channel { sender, receiver, endpoint } = channel.map_err(failed)?;
    let inward = Lock::new(Inward::new(receiver, max_message));
    let (sender, in_frame) = (Mutex::new(sender), AtomicBool::new(false));
    Ok(Box::new(FabricChannel { sender, in_frame, inward, endpoint }))
}

/// A node on the links of the schemes of these names.
pub(crate) fn node<'a>(names: impl IntoIterator<Item = &'a str>) -> io::Result<Node> {
    let schemes: BTreeSet<&str> = names.into_iter().filter_map(|name| Some(name.split_once(':')?.0)).collect();
    Node::open(&Vec::from_iter(schemes), &LinkOptions::default()).map_err(failed)
}

struct FabricChannel {
    sender: Mutex<Sender>,
    /// A frame was sent in part. Whoever has the sender says so, and looks.
    in_frame: AtomicBool,
    /// One thread at a time receives, so nobody ever waits for it.
    inward: Lock<Inward>,
    endpoint: Endpoint,
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

    /// Waits for messages until a time: whether there was one.
    #[inline(always)]
    pub fn receive(&mut self, deadline: Option<u64>, take: &mut (impl FnMut(&[u8]) + ?Sized)) -> io::Result<bool> {
        let Self { receiver, assembler, buffer } = self;
        let mut known = receiver.known();
        if known == 0 {
            if let Err(error) = receiver.wait(deadline) {
                return timed_out(error);
            }
            known = receiver.known();
        }
        // Most messages come whole and alone. What is wrong with the others is found the general way.
        let bytes = buffer.get_mut(..known).unwrap_or_default();
        if assembler.is_between()
            && receiver.peek_known(0, bytes)
            && let Some(message) = assembler.whole(bytes)
        {
            receiver.consume(bytes.len()).map_err(failed)?;
            take(message);
            return Ok(true);
        }
        self.receive_any(deadline, &mut |message| take(message))
    }

    /// The same for any messages.
    #[inline(never)]
    fn receive_any(&mut self, deadline: Option<u64>, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let Self { receiver, assembler, buffer } = self;
        loop {
            let count = match assembler.rest(PIECE) {
                Some(rest) => receiver.receive(rest, deadline),
                None => receiver.receive(buffer, deadline),
            };
            let count = match count {
                Ok(count) => count,
                Err(error) => return timed_out(error),
            };
            let any = if assembler.is_inside() {
                let mut any = false;
                assembler.filled(count, |message| {
                    any = true;
                    take(message);
                });
                any
            } else {
                assembler.feed_any(&buffer[..count], take)?
            };
            if any {
                return Ok(true);
            }
        }
    }
}

/// What a wait without a message comes to.
#[cold]
fn timed_out(error: FabricError) -> io::Result<bool> {
    match error {
        FabricError::TimedOut(_) => Ok(false),
        error => Err(failed(error)),
    }
}

/// How long to wait for space before looking whether replies must be taken first.
const LOOK: Duration = Duration::from_millis(1);

impl Transport for FabricChannel {
    fn lossy(&self) -> bool {
        false
    }

    fn send(&self, frame: &[u8]) -> io::Result<usize> {
        let mut sender = lock(&self.sender);
        let count = sender.try_send(frame).map_err(failed)?;
        if count > 0 {
            self.in_frame.store(count < frame.len(), Ordering::Relaxed);
        }
        Ok(count)
    }

    fn send_whole(&self, frame: &[u8]) -> io::Result<bool> {
        let Ok(mut sender) = self.sender.try_lock() else { return Ok(false) };
        if self.in_frame.load(Ordering::Relaxed) || sender.space_for(frame.len()).map_err(failed)? < frame.len() {
            return Ok(false);
        }
        let count = sender.try_send(frame).map_err(failed)?;
        // There was space for all of it.
        Ok(count == frame.len())
    }

    fn receive(&self, until: u64, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        self.inward.lock().receive(Some(until), take)
    }

    fn wait_sendable(&self, until: u64, take: Option<&mut Take<'_>>) -> io::Result<()> {
        if let Some(take) = take {
            let mut inward = self.inward.lock();
            if inward.receiver.has_news() {
                inward.receive(Some(clock::now()), take)?;
            }
        }
        let deadline = until.min(after(LOOK));
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
