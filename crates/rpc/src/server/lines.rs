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
    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> io::Result<()>;
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
        let (mut reply, mut sense) = (Vec::new(), true);
        while sense && !self.stopping.load(Ordering::Relaxed) {
            let received = inbound.receive(&mut |message| {
                let mut space = line.space();
                match self.dispatcher.handle(message, peer, &path, self.limits.max_message, &mut reply, space.as_mut())
                {
                    Outcome::Reply => {
                        let in_place = space.filter(Space::is_used).map(|mut space| space.finish(&mut reply));
                        match in_place {
                            // Nothing is there, or not all of it fits.
                            None | Some(Ok(false)) => line.send(&reply),
                            Some(Ok(true)) => {}
                            Some(Err(_)) => sense = false,
                        }
                    }
                    Outcome::Silence => {}
                    Outcome::Nonsense => sense = false,
                }
            });
            sense &= received.is_ok();
        }
    }
}
