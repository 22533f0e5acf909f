//! Channels of the fabric on the side of a server: a thread waits for them, and each has a thread of its own, which
//! executes its calls in their order.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use sidestep_fabric::channel::private_of;
use sidestep_fabric::event::SourceId;
use sidestep_fabric::listener::Request;
use sidestep_fabric::queue::Sender;
use sidestep_fabric::{Channel, ChannelOptions, Endpoint, EventQueue, Listener, Node};
use sidestep_sys::clock;

use super::Limits;
use super::connection::ReplyPath;
use super::dispatch::{Dispatcher, Outcome};
use super::service::Peer;
use crate::client::lock;
use crate::transport::channel::{Inward, failed};

/// Names of the fabric that a server listens on, and the channels that were made. They end with it.
pub(super) struct Channels {
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
    stop: SourceId,
}

struct Shared {
    node: Node,
    /// Reports requests by the number of their listener, and the end.
    events: EventQueue,
    dispatcher: Arc<Dispatcher>,
    limits: Limits,
    stopping: AtomicBool,
    next: AtomicU64,
    open: Mutex<HashMap<u64, Serving>>,
}

struct Serving {
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
}

/// The side of a channel that replies.
pub(super) struct Line {
    sender: Mutex<Sender>,
    endpoint: Endpoint,
}

/// The token of the end.
const STOP: u64 = u64::MAX;

/// Channels are threads here.
const MAX_CHANNELS: usize = 1024;

/// How long a client may take to open its side of a channel.
const OPENING_NS: u64 = 1_000_000_000;

impl Line {
    /// Sends a marked frame, and waits while the client does not take it.
    pub fn send(&self, frame: &[u8]) {
        // A channel that has ended is noticed by its thread.
        let _ = lock(&self.sender).send(frame, None);
    }
}

impl Channels {
    pub fn start(dispatcher: Arc<Dispatcher>, names: &[String], limits: &Limits) -> io::Result<Option<Self>> {
        if names.is_empty() {
            return Ok(None);
        }
        let node = Node::new().map_err(failed)?;
        let listeners: Vec<Listener> =
            names.iter().map(|name| node.listen(name).map_err(failed)).collect::<io::Result<_>>()?;
        let events = EventQueue::new(&node);
        for (number, listener) in listeners.iter().enumerate() {
            listener.attach(&events, number as u64);
        }
        let stop = events.attach(STOP);
        let shared = Arc::new(Shared {
            node,
            events,
            dispatcher,
            limits: limits.clone(),
            stopping: AtomicBool::new(false),
            next: AtomicU64::new(0),
            open: Mutex::default(),
        });
        let serving = shared.clone();
        let thread = std::thread::Builder::new().name("rpc listener".to_owned());
        let listening = Some(thread.spawn(move || serving.listen(&listeners))?);
        Ok(Some(Channels { shared, listening, stop }))
    }

    pub fn open(&self) -> usize {
        lock(&self.shared.open).len()
    }

    pub fn stop(&mut self) {
        let shared = &self.shared;
        shared.stopping.store(true, Ordering::Release);
        shared.events.deliver(self.stop);
        if let Some(thread) = self.listening.take() {
            let _ = thread.join();
        }
        let serving: Vec<Serving> = lock(&shared.open).drain().map(|(_, serving)| serving).collect();
        for Serving { line, .. } in &serving {
            line.endpoint.close();
        }
        shared.node.wake();
        for thread in serving.into_iter().filter_map(|serving| serving.thread) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn listen(self: &Arc<Self>, listeners: &[Listener]) {
        while let Ok(event) = self.events.wait(None) {
            if self.stopping.load(Ordering::Acquire) {
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

    fn accept(self: &Arc<Self>, request: Request) -> io::Result<()> {
        let most = self.limits.connections.min(MAX_CHANNELS);
        if lock(&self.open).len() >= most {
            return request.refuse(b"too many channels").map_err(failed);
        }
        let identity = private_of(&request).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let deadline = Some(clock::now() + OPENING_NS);
        let channel = Channel::accept(request, ChannelOptions::default(), b"", deadline).map_err(failed)?;
        let Channel { sender, receiver, endpoint } = channel;
        let line = Arc::new(Line { sender: Mutex::new(sender), endpoint });
        let inward = Inward::new(receiver, self.limits.max_message);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (shared, served) = (self.clone(), line.clone());
        let mut open = lock(&self.open);
        let thread = std::thread::Builder::new()
            .name("rpc channel".to_owned())
            .spawn(move || shared.serve(number, &served, inward, &Peer::Fabric { client: identity }))?;
        open.insert(number, Serving { line, thread: Some(thread) });
        Ok(())
    }

    fn serve(&self, number: u64, line: &Arc<Line>, mut inward: Inward, peer: &Peer) {
        let path = ReplyPath::Channel(line.clone());
        let mut reply = Vec::new();
        let mut sense = true;
        while sense && !self.stopping.load(Ordering::Relaxed) {
            let received = inward.receive(None, &mut |message| match self.dispatcher.handle(
                message,
                peer,
                &path,
                self.limits.max_message,
                &mut reply,
            ) {
                Outcome::Reply => line.send(&reply),
                Outcome::Silence => {}
                Outcome::Nonsense => sense = false,
            });
            sense &= received.is_ok();
        }
        line.endpoint.close();
        lock(&self.open).remove(&number);
    }
}
