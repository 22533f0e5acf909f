//! Channels of the fabric: the same records as over TCP, in rings of shared memory.

use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sidestep_fabric::queue::{Receiver, Sender};
use sidestep_fabric::{Channel, ChannelOptions, Endpoint, Error as FabricError, Node};
use sidestep_sys::clock;

use super::{READ, Transport};
use crate::client::lock;
use crate::record::Assembler;

pub(super) fn connect(
    name: &str,
    identity: u64,
    max_message: usize,
    timeout: Duration,
) -> io::Result<Box<dyn Transport>> {
    let node = Node::new().map_err(failed)?;
    let deadline = Some(fabric_time(Instant::now() + timeout));
    let channel = Channel::connect(&node, name, ChannelOptions::default(), &identity.to_le_bytes(), deadline);
    let Channel { sender, receiver, endpoint } = channel.map_err(failed)?;
    let inward = Mutex::new(Inward::new(receiver, max_message));
    Ok(Box::new(FabricChannel { sender: Mutex::new(sender), inward, endpoint }))
}

struct FabricChannel {
    sender: Mutex<Sender>,
    inward: Mutex<Inward>,
    endpoint: Endpoint,
}

/// The reading side of a channel.
pub(crate) struct Inward {
    receiver: Receiver,
    assembler: Assembler,
    buffer: Box<[u8]>,
}

impl Inward {
    pub fn new(receiver: Receiver, max_message: usize) -> Self {
        Self { receiver, assembler: Assembler::new(max_message), buffer: vec![0; READ].into() }
    }

    /// Waits for messages until a time of the fabric: whether there was one.
    pub fn receive(&mut self, deadline: Option<u64>, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let mut any = false;
        while !any {
            let count = match self.receiver.receive(&mut self.buffer, deadline) {
                Err(FabricError::TimedOut(_)) => return Ok(false),
                outcome => outcome.map_err(failed)?,
            };
            let fed = self.assembler.feed(&self.buffer[..count], |message| {
                any = true;
                take(message);
            });
            fed.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a message is too long"))?;
        }
        Ok(true)
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
        lock(&self.inward).receive(Some(fabric_time(until)), take)
    }

    fn wait_sendable(&self, until: Instant, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        if let Ok(mut inward) = self.inward.try_lock()
            && inward.receiver.has_news()
        {
            inward.receive(Some(clock::now()), take)?;
        }
        let deadline = fabric_time(until.min(Instant::now() + LOOK));
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

fn fabric_time(until: Instant) -> u64 {
    let left = until.saturating_duration_since(Instant::now());
    clock::now().saturating_add(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX))
}
