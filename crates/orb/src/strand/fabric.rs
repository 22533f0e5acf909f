//! Channels of the fabric: the bytes of a message are copied once into the peer's ring, and once out of it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sidestep_fabric::event::SourceId;
use sidestep_fabric::queue::{Receiver, Sender};
use sidestep_fabric::{Channel, ChannelOptions, Endpoint as FabricEndpoint, Error, EventQueue, Node};
use sidestep_sys::clock;

use super::{Endpoint, Listener, Strand};

/// A connected channel.
pub(crate) struct FabricStrand {
    sender: Mutex<Sender>,
    receiver: Mutex<Receiver>,
    // Dropped last: nothing is written after the close that it sends.
    endpoint: FabricEndpoint,
}

impl FabricStrand {
    pub(crate) fn connect(node: &Node, name: &str, deadline: Option<Instant>) -> io::Result<Self> {
        let channel = Channel::connect(node, name, ChannelOptions::default(), b"", nanoseconds(deadline));
        channel.map(Self::new).map_err(io_error)
    }

    fn new(channel: Channel) -> Self {
        let Channel { sender, receiver, endpoint } = channel;
        Self { sender: Mutex::new(sender), receiver: Mutex::new(receiver), endpoint }
    }
}

impl Strand for FabricStrand {
    fn send(&self, bytes: &[u8], deadline: Option<Instant>) -> io::Result<()> {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.send(bytes, nanoseconds(deadline)).map_err(io_error)
    }

    fn receive(&self, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        let mut receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        match receiver.receive(into, nanoseconds(deadline)) {
            Ok(count) => Ok(count),
            Err(Error::Closed(_)) => Ok(0),
            Err(error) => Err(io_error(error)),
        }
    }

    fn close(&self) {
        self.endpoint.close();
    }
}

/// Accepts channels under a name.
pub(crate) struct FabricListener {
    /// `None` once it is closed, so that nothing holds the node of a broker that is shut down.
    door: Mutex<Option<Arc<Door>>>,
    name: String,
}

struct Door {
    listener: sidestep_fabric::Listener,
    events: EventQueue,
    /// Delivered when the listener is closed.
    closing: SourceId,
}

/// What the events are about; both are looked at whenever one comes.
const REQUEST: u64 = 0;
const CLOSING: u64 = 1;

impl FabricListener {
    pub(crate) fn new(node: &Node, name: &str) -> io::Result<Self> {
        let listener = node.listen(name).map_err(io_error)?;
        let events = EventQueue::new(node);
        listener.attach(&events, REQUEST);
        let closing = events.attach(CLOSING);
        let door = Mutex::new(Some(Arc::new(Door { listener, events, closing })));
        Ok(Self { door, name: name.to_owned() })
    }
}

impl Listener for FabricListener {
    fn accept(&self) -> io::Result<Box<dyn Strand>> {
        loop {
            let door = self.door.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let door = door.ok_or(io::ErrorKind::NotConnected)?;
            if let Some(request) = door.listener.poll() {
                let channel = Channel::accept(request, ChannelOptions::default(), b"", None).map_err(io_error)?;
                return Ok(Box::new(FabricStrand::new(channel)));
            }
            door.events.wait(None).map_err(io_error)?;
        }
    }

    fn close(&self) {
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(door) = door {
            door.events.deliver(door.closing);
        }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::Fabric { name: self.name.clone() }
    }
}

/// The fabric counts nanoseconds of one clock.
fn nanoseconds(deadline: Option<Instant>) -> Option<u64> {
    let left = deadline?.saturating_duration_since(Instant::now());
    Some(clock::now().saturating_add(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)))
}

pub(crate) fn io_error(error: Error) -> io::Error {
    let kind = match error {
        Error::TimedOut(_) => io::ErrorKind::TimedOut,
        Error::Closed(_) => io::ErrorKind::ConnectionReset,
        Error::NobodyListens(_) | Error::Refused { .. } => io::ErrorKind::ConnectionRefused,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
