//! Channels of the fabric: the same records as over TCP, in rings of shared memory.

use std::cell::Cell;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sidestep_fabric::queue::{Receiver, Sender};
use sidestep_fabric::{Channel, ChannelOptions, Endpoint, Error as FabricError, Node};
use sidestep_sys::clock;

use super::{Take, Transport};
use crate::client::lock;
use crate::record::Assembler;

pub(super) fn connect(
    name: &str,
    identity: u64,
    max_message: usize,
    timeout: Duration,
) -> io::Result<Box<dyn Transport>> {
    let node = Node::new().map_err(failed)?;
    let clocks = Clocks { instant: Instant::now(), fabric: clock::now() };
    let deadline = Some(clocks.fabric_time(clocks.instant + timeout));
    let channel = Channel::connect(&node, name, ChannelOptions::default(), &identity.to_le_bytes(), deadline);
    let Channel { sender, receiver, endpoint } = channel.map_err(failed)?;
    let inward = Mutex::new(Inward::new(receiver, max_message));
    Ok(Box::new(FabricChannel { sender: Mutex::new(sender), inward, endpoint, clocks }))
}

struct FabricChannel {
    sender: Mutex<Sender>,
    inward: Mutex<Inward>,
    endpoint: Endpoint,
    clocks: Clocks,
}

/// The same moment by two clocks, so that a call need not read both.
struct Clocks {
    instant: Instant,
    fabric: u64,
}

impl Clocks {
    fn fabric_time(&self, until: Instant) -> u64 {
        let from_then = until.saturating_duration_since(self.instant);
        self.fabric.saturating_add(u64::try_from(from_then.as_nanos()).unwrap_or(u64::MAX))
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
        lock(&self.inward).receive(Some(self.clocks.fabric_time(until)), take)
    }

    fn wait_sendable(&self, until: Instant, take: Option<&mut Take<'_>>) -> io::Result<()> {
        if let Some(take) = take {
            let mut inward = lock(&self.inward);
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

    fn close(&self) {
        self.endpoint.close();
        // Whoever waits for a reply looks again.
        self.endpoint.node().wake();
    }
}

pub(crate) fn failed(error: FabricError) -> io::Error {
    io::Error::other(error)
}
