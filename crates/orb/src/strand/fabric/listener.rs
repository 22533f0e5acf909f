//! Where channels come in.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use sidestep_fabric::channel::Accepting;
use sidestep_fabric::event::SourceId;
use sidestep_fabric::{Channel, ChannelOptions, Error, EventQueue, Node};
use sidestep_sys::clock;

use super::{io_error, strand};
use crate::strand::{Endpoint, Listener, Strand, Watch};

/// Accepts channels under a name.
pub(crate) struct FabricListener {
    /// `None` once it is closed, so that nothing holds the node of a broker that is shut down.
    door: Mutex<Option<Arc<Door>>>,
    /// What references call it.
    name: String,
}

struct Door {
    listener: sidestep_fabric::Listener,
    node: Node,
    events: EventQueue,
    /// Delivered when the listener is closed.
    closing: SourceId,
    opening: Mutex<Vec<Opening>>,
}

/// A channel that is not ready.
struct Opening {
    accepting: Accepting,
    source: SourceId,
    until: u64,
}

/// What the events are about; everything is looked at whenever one comes.
const REQUEST: u64 = 0;
const CLOSING: u64 = 1;
const OPENING: u64 = 2;

/// How long a client may take to open its side of a channel.
const PATIENCE_NS: u64 = 1_000_000_000;

/// The most channels that are not ready. Each has a ring; others wait before the door.
const MOST: usize = 64;

impl FabricListener {
    pub(crate) fn new(node: &Node, name: &str) -> io::Result<Self> {
        let listener = node.listen(name).map_err(io_error)?;
        let events = EventQueue::new(node);
        listener.attach(&events, REQUEST);
        let closing = events.attach(CLOSING);
        let door = Door { listener, node: node.clone(), events, closing, opening: Mutex::default() };
        Ok(Self { door: Mutex::new(Some(Arc::new(door))), name: name.to_owned() })
    }

    /// The same listener between hosts, of which references name another host.
    pub(crate) fn known_as(mut self, host: &str) -> Self {
        let (address, service) = self.name.split_at(self.name.find('/').unwrap_or(self.name.len()));
        let port = address.rsplit(':').next().unwrap_or_default();
        self.name = format!("iwarp:{host}:{port}{service}");
        self
    }

    fn door(&self) -> io::Result<Arc<Door>> {
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(door.ok_or(io::ErrorKind::NotConnected)?)
    }
}

impl Door {
    /// The next channel that is ready, if there is one.
    fn poll(&self) -> Option<Strand> {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        while opening.len() < MOST
            && let Some(request) = self.listener.poll()
        {
            // What is not a request for a channel is refused.
            let Ok(mut accepting) = Channel::begin_accept(request, ChannelOptions::default(), b"") else { continue };
            let source = accepting.attach(&self.events, OPENING);
            opening.push(Opening { accepting, source, until: clock::now() + PATIENCE_NS });
        }
        let mut at = 0;
        while let Some(each) = opening.get_mut(at) {
            let outcome = each.accepting.poll();
            if matches!(outcome, Ok(None)) && clock::now() < each.until {
                at += 1;
                continue;
            }
            self.events.detach(opening.remove(at).source);
            if let Ok(Some(channel)) = outcome {
                return Some(strand(channel));
            }
        }
        None
    }

    /// Waits for something to happen.
    fn wait(&self) -> io::Result<()> {
        let until = self.opening.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|each| each.until).min();
        match self.events.wait(until) {
            Ok(_) | Err(Error::TimedOut(_)) => Ok(()),
            Err(error) => Err(io_error(error)),
        }
    }
}

impl Listener for FabricListener {
    fn accept(&self) -> io::Result<Strand> {
        loop {
            let door = self.door()?;
            if let Some(strand) = door.poll() {
                return Ok(strand);
            }
            door.wait()?;
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

    fn watch(&self) -> io::Result<Watch> {
        Ok(Watch::fabric(&self.door()?.node))
    }
}
