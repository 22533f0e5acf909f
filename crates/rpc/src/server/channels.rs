//! Channels of the fabric on the side of a server: a thread waits for them.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use sidestep_fabric::channel::private_of;
use sidestep_fabric::event::SourceId;
use sidestep_fabric::listener::Request;
use sidestep_fabric::queue::Sender;
use sidestep_fabric::{Channel, ChannelOptions, Endpoint, EventQueue, Listener, Node};
use sidestep_sys::clock;

use super::Limits;
use super::dispatch::Dispatcher;
use super::lines::{Inbound, Line, Lines};
use super::service::Peer;
use crate::client::lock;
use crate::transport::Space;
use crate::transport::channel::{self, Inward, failed};

/// Names of the fabric that a server listens on, and the channels that were made. They end with it.
pub(super) struct Channels {
    door: Arc<Door>,
    listening: Option<JoinHandle<()>>,
    stop: SourceId,
}

struct Door {
    node: Node,
    /// Reports requests by the number of their listener, and the end.
    events: EventQueue,
    lines: Arc<Lines>,
}

struct ChannelLine {
    sender: Mutex<Sender>,
    endpoint: Endpoint,
}

/// The token of the end.
const STOP: u64 = u64::MAX;

/// How long a client may take to open its side of a channel.
const OPENING_NS: u64 = 1_000_000_000;

impl Line for ChannelLine {
    fn send(&self, frame: &[u8]) {
        let _ = lock(&self.sender).send(frame, None);
    }

    fn space(&self) -> Option<Space<'_>> {
        Some(Space::new(&self.sender))
    }

    fn close(&self) {
        self.endpoint.close();
        self.endpoint.node().wake();
    }
}

impl Inbound for Inward {
    #[inline]
    fn receive(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        Inward::receive(self, None, &mut take).map(|_| ())
    }
}

impl Channels {
    pub fn start(dispatcher: Arc<Dispatcher>, names: &[String], limits: &Limits) -> io::Result<Option<Self>> {
        if names.is_empty() {
            return Ok(None);
        }
        let node = channel::node(names.iter().map(String::as_str))?;
        let listeners: Vec<Listener> =
            names.iter().map(|name| node.listen(name).map_err(failed)).collect::<io::Result<_>>()?;
        let events = EventQueue::new(&node);
        for (number, listener) in listeners.iter().enumerate() {
            listener.attach(&events, number as u64);
        }
        let stop = events.attach(STOP);
        let door = Arc::new(Door { node, events, lines: Arc::new(Lines::new(dispatcher, limits)) });
        let own = door.clone();
        let thread = std::thread::Builder::new().name("rpc listener".to_owned());
        let listening = Some(thread.spawn(move || own.listen(&listeners))?);
        Ok(Some(Channels { door, listening, stop }))
    }

    pub fn open(&self) -> usize {
        self.door.lines.open()
    }

    pub fn stop(&mut self) {
        let Door { node, events, lines } = &*self.door;
        lines.begin_stop();
        events.deliver(self.stop);
        node.wake();
        if let Some(thread) = self.listening.take() {
            let _ = thread.join();
        }
        lines.stop();
    }
}

impl Door {
    fn listen(&self, listeners: &[Listener]) {
        while let Ok(event) = self.events.wait(None) {
            if self.lines.is_stopping() {
                return;
            }
            let Some(listener) = listeners.get(event.token as usize) else {
                continue;
            };
            while let Some(request) = listener.poll() {
                // A client that cannot be served finds its connection refused or ended.
                let _ = self.accept(request);
            }
        }
    }

    fn accept(&self, request: Request) -> io::Result<()> {
        if self.lines.is_full() {
            return request.refuse(b"too many channels").map_err(failed);
        }
        let client = private_of(&request).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let deadline = Some(clock::now() + OPENING_NS);
        let channel = Channel::accept(request, ChannelOptions::default(), b"", deadline).map_err(failed)?;
        let Channel { sender, receiver, endpoint } = channel;
        let inward = Inward::new(receiver, self.lines.max_message());
        let line = Arc::new(ChannelLine { sender: Mutex::new(sender), endpoint });
        self.lines.serve(line, inward, Peer::Fabric { client })
    }
}
