//! Connections that have a thread each, which executes their calls in their order: channels of the fabric, and VIs.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::Limits;
use super::connection::ReplyPath;
use super::dispatch::{Dispatcher, Outcome};
use super::service::Peer;
use crate::client::lock;
use crate::transport::Space;
use crate::xdr::Place;

/// The side of such a connection that replies.
pub(super) trait Line: Send + Sync {
    /// Sends a marked frame, and waits while the client does not take it. An end is noticed by the thread that receives.
    fn send(&self, frame: &[u8]);

    /// Where a reply can be put together, if it can be where it is sent from.
    fn space(&self) -> Option<Space<'_>> {
        None
    }

    /// Ends the connection, and the wait of the thread that receives.
    fn close(&self);
}

/// The side that is called.
pub(super) trait Inbound: Send + 'static {
    /// Waits for messages, and gives all that have come to `take`.
    fn receive(&mut self, take: impl FnMut(&[u8])) -> io::Result<()>;
}

/// A reply that is put together where it is sent from, if its line has such a place.
pub(super) struct InPlace<'a> {
    line: &'a dyn Line,
    /// Since the first byte.
    space: Option<Space<'a>>,
}

impl InPlace<'_> {
    /// Forgets what is here: it was never sent.
    pub fn clear(&mut self) {
        self.space = None;
    }

    /// Sends what is here and the end of the frame. `false`: there is nothing here, or not all of it fits, and `end` is all of
    /// the frame. Others may send then.
    #[inline]
    fn finish(&mut self, end: &mut Vec<u8>) -> io::Result<bool> {
        if self.space.is_some() { self.finish_there(end) } else { Ok(false) }
    }

    #[inline(never)]
    fn finish_there(&mut self, end: &mut Vec<u8>) -> io::Result<bool> {
        match self.space.take() {
            Some(mut space) if space.is_used() => space.finish(end),
            _ => Ok(false),
        }
    }
}

impl Place for InPlace<'_> {
    fn put(&mut self, parts: [&[u8]; 2]) -> bool {
        if self.space.is_none() {
            self.space = self.line.space();
        }
        self.space.as_mut().is_some_and(|space| space.put(parts))
    }

    fn take_back(&mut self, into: &mut Vec<u8>) -> bool {
        self.space.as_mut().is_some_and(|space| space.take_back(into))
    }
}

/// The connections of one kind that a server has.
pub(super) struct Lines {
    dispatcher: Arc<Dispatcher>,
    limits: Limits,
    stopping: AtomicBool,
    next: AtomicU64,
    open: Mutex<HashMap<u64, Serving>>,
}

struct Serving {
    line: Arc<dyn Line>,
    thread: JoinHandle<()>,
}

/// Connections are threads here.
const MAX_LINES: usize = 1024;

impl Lines {
    pub fn new(dispatcher: Arc<Dispatcher>, limits: &Limits) -> Self {
        Self {
            dispatcher,
            limits: limits.clone(),
            stopping: AtomicBool::new(false),
            next: AtomicU64::new(0),
            open: Mutex::default(),
        }
    }

    pub fn max_message(&self) -> usize {
        self.limits.max_message
    }

    pub fn open(&self) -> usize {
        lock(&self.open).len()
    }

    pub fn is_full(&self) -> bool {
        self.open() >= self.limits.connections.min(MAX_LINES)
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Whoever waits for connections must see this before [`Lines::stop`].
    pub fn begin_stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Ends all connections. No more are made.
    pub fn stop(&self) {
        let serving: Vec<Serving> = lock(&self.open).drain().map(|(_, serving)| serving).collect();
        serving.iter().for_each(|serving| serving.line.close());
        for serving in serving {
            let _ = serving.thread.join();
        }
    }

    /// Serves a connection from now on.
    pub fn serve(self: &Arc<Self>, line: Arc<dyn Line>, mut inbound: impl Inbound, peer: Peer) -> io::Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (lines, own) = (self.clone(), line.clone());
        // A thread that ends at once finds itself here.
        let mut open = lock(&self.open);
        let thread = std::thread::Builder::new().name("rpc line".to_owned()).spawn(move || {
            lines.execute(&own, &mut inbound, &peer);
            own.close();
            drop(inbound);
            lock(&lines.open).remove(&number);
        })?;
        open.insert(number, Serving { line, thread });
        Ok(())
    }

    fn execute(&self, line: &Arc<dyn Line>, inbound: &mut impl Inbound, peer: &Peer) {
        let path = ReplyPath::Line(line.clone());
        let line = &**line;
        let (mut reply, mut sense) = (Vec::new(), true);
        while sense && !self.stopping.load(Ordering::Relaxed) {
            let received = inbound.receive(|message| {
                let mut place = InPlace { line, space: None };
                let limit = self.limits.max_message;
                match self.dispatcher.handle(message, peer, &path, limit, &mut reply, Some(&mut place)) {
                    Outcome::Reply => match place.finish(&mut reply) {
                        // Nothing is there, or not all of it fits.
                        Ok(false) => line.send(&reply),
                        Ok(true) => {}
                        Err(_) => sense = false,
                    },
                    Outcome::Silence => {}
                    Outcome::Nonsense => sense = false,
                }
            });
            sense &= received.is_ok();
        }
    }
}
