//! Endpoints: ports that receive small out-of-band messages, and own what a connection needs.
//!
//! ```text
//!   connecting ──accept──> connected ──close by either side, or death of the peer──> closed
//!        └─────refuse────> closed
//! ```
//!
//! A side that sends *close* writes nothing into the other's memory afterwards. What an endpoint owns is given back when
//! both sides have sent it, or the peer is gone; then its slot is used again under the next session number, so that a
//! late message of the former connection is recognised and dropped. A side that has asked and gives up before the answer waits
//! for that: the other one may have accepted already, and write into what was lent to it until it hears of the close.

mod table;

pub(crate) use self::table::Endpoints;

use std::{
    any::Any,
    collections::VecDeque,
    net::IpAddr,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sidestep_shm::wait::Waiter;
use sidestep_sys::lock::{Mutex, MutexGuard};

use crate::{
    arena::ArenaBlock,
    cookie::{Cookie, Rights},
    error::{CloseReason, Error, Result},
    event::Subscription,
    node::Node,
    peer::PeerId,
    protocol::{EndpointId, MAX_PRIVATE, Message},
    queue::QueueSpec,
    region::Region,
};

/// One end of a connection. Dropping it closes the connection.
#[derive(Debug)]
pub struct Endpoint {
    core: Arc<EndpointCore>,
    node: Node,
}

#[derive(Debug)]
pub(crate) struct EndpointCore {
    id: EndpointId,
    peer: PeerId,
    over: AtomicBool,
    /// Whether the peer has offered a larger ring.
    has_larger_ring: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What the peer calls it: known to who accepts, and to who has asked since the answer came.
    remote: Option<EndpointId>,
    /// The peer does not know of it: the answer to the request was not sent, or the request itself.
    unannounced: bool,
    private: Vec<u8>,
    inbox: VecDeque<Vec<u8>>,
    dropped: u64,
    /// What the peer wants delivered should it vanish.
    deposit: Vec<u8>,
    on_close: Vec<u8>,
    closed: Option<Closed>,
    close_sent: bool,
    subscription: Option<Subscription>,
    /// Queues of this connection that are event sources: they report its end, too.
    queues: Vec<Subscription>,
    /// A larger ring that the peer has offered to the sender.
    larger_ring: Option<QueueSpec>,
    resources: Vec<Box<dyn Any + Send>>,
}

#[derive(Debug, Clone)]
struct Closed {
    error: Error,
    message: Vec<u8>,
}

/// Messages an endpoint keeps that nobody has taken; later ones are dropped and counted.
pub const INBOX: usize = 256;

impl Node {
    /// Connects to whoever listens under a name such as `shm:echo`, whose scheme picks the link, with private data for the
    /// listener.
    pub fn connect(&self, name: &str, private: &[u8], deadline: Option<u64>) -> Result<Endpoint> {
        let endpoint = self.begin_connect(name, private)?;
        endpoint.wait_connected(deadline)?;
        Ok(endpoint)
    }

    /// Begins to connect, without waiting for the answer.
    pub fn begin_connect(&self, name: &str, private: &[u8]) -> Result<Endpoint> {
        self.begin_connect_with(name, |_| Ok(private.to_vec()))
    }

    /// As `begin_connect`, for private data that depends on the peer, such as blocks lent for it.
    pub fn begin_connect_with(&self, name: &str, private: impl FnOnce(PeerId) -> Result<Vec<u8>>) -> Result<Endpoint> {
        let (attached, name) = self.core().links.named(name)?;
        let peer = PeerId::new(attached.index, attached.as_link().connect(name)?);
        self.ask_peer(peer, name, private)
    }

    /// As `begin_connect_with`, over a line of its own that comes from this address, and that is made before the deadline: see
    /// [`Link::connect_from`](crate::link::Link::connect_from).
    pub fn begin_connect_from(
        &self,
        name: &str,
        (from, deadline): (IpAddr, u64),
        private: impl FnOnce(PeerId) -> Result<Vec<u8>>,
    ) -> Result<Endpoint> {
        let (attached, name) = self.core().links.named(name)?;
        let peer = PeerId::new(attached.index, attached.as_link().connect_from(name, from, deadline)?);
        self.ask_peer(peer, name, private)
    }

    /// Makes a line of the link with this scheme out of a stream that is connected already: see
    /// [`Link::adopt`](crate::link::Link::adopt).
    pub fn adopt(&self, scheme: &str, stream: OwnedFd, begins: bool) -> Result<PeerId> {
        let attached = self.core().links.of_scheme(scheme)?;
        Ok(PeerId::new(attached.index, attached.as_link().adopt(stream, begins)?))
    }

    /// As `begin_connect_with`, to whoever listens under a name at this peer.
    pub fn begin_connect_to(
        &self,
        peer: PeerId,
        name: &str,
        private: impl FnOnce(PeerId) -> Result<Vec<u8>>,
    ) -> Result<Endpoint> {
        let (_, name) = self.core().links.named(name)?;
        self.ask_peer(peer, name, private)
    }

    fn ask_peer(&self, peer: PeerId, name: &str, private: impl FnOnce(PeerId) -> Result<Vec<u8>>) -> Result<Endpoint> {
        let private = private(peer)?;
        check_private(&private)?;
        let core = self.core().endpoints.insert(peer);
        let endpoint = Endpoint { core, node: self.clone() };
        let posted = self.post(peer, Message::Connect { from: endpoint.core.id, name, private: &private });
        posted.inspect_err(|_| endpoint.core.lock().unannounced = true)?;
        Ok(endpoint)
    }
}

impl Endpoint {
    /// One for a request with these private data. The peer hears of it when it is [announced](Self::announce).
    pub(crate) fn accepted(node: &Node, peer: PeerId, remote: EndpointId, private: &[u8]) -> Endpoint {
        let core = node.core().endpoints.insert(peer);
        {
            let mut state = core.lock();
            state.remote = Some(remote);
            state.unannounced = true;
            state.private = private.to_vec();
        }
        Endpoint { core, node: node.clone() }
    }

    /// Says yes to the request that it was made for.
    pub(crate) fn announce(&self, to: EndpointId, private: &[u8]) -> Result<()> {
        self.core.lock().unannounced = false;
        let posted = self.node.post(self.core.peer, Message::Accept { to, from: self.core.id, private });
        posted.inspect_err(|_| self.core.lock().unannounced = true)
    }

    /// The node it belongs to.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Its name at this node: slot and session.
    pub fn id(&self) -> EndpointId {
        self.core.id
    }

    /// The process at the other end, as this node numbers it.
    pub fn peer(&self) -> PeerId {
        self.core.peer
    }

    /// What the other side said when the connection was made.
    pub fn private(&self) -> Vec<u8> {
        self.core.lock().private.clone()
    }

    /// Whether the other side has accepted; an error if the connection is over.
    pub fn is_connected(&self) -> Result<bool> {
        self.core.check_open()?;
        Ok(self.core.lock().remote.is_some())
    }

    /// Waits for the other side's answer.
    pub fn wait_connected(&self, deadline: Option<u64>) -> Result<()> {
        let mut waiter = Waiter::default();
        self.node.wait_until(&mut waiter, deadline, "a connection", &mut || Ok(self.is_connected()?.then_some(())))
    }

    /// A cookie of a region for the other side, with the pages sent ahead: it can open them while this process is busy.
    pub fn share(&self, region: &Region, rights: Rights) -> Result<Cookie> {
        let cookie = region.cookie(rights);
        self.node.offer(self.core.peer, region.core(), &cookie)?;
        Ok(cookie)
    }

    /// Sends an out-of-band message: whole, in order, or an error.
    pub fn post(&self, bytes: &[u8]) -> Result<()> {
        check_private(bytes)?;
        let to = self.remote()?;
        self.node.try_post(self.core.peer, Message::Message { to, bytes })
    }

    /// Offers the peer's sender a larger ring ([`Receiver::grow`](crate::queue::Receiver::grow)), and keeps its block as long as
    /// the peer may write there. The sender takes the last one that was offered.
    pub fn offer_ring(&self, block: ArenaBlock) -> Result<()> {
        let to = self.remote()?;
        let spec = block.block().spec().to_bytes();
        self.own(block);
        self.node.post(self.core.peer, Message::Ring { to, spec: &spec })
    }

    /// The next message, if there is one. An error once the connection is over and all messages are taken.
    pub fn poll_message(&self) -> Result<Option<Vec<u8>>> {
        if let Some(message) = self.core.lock().inbox.pop_front() {
            return Ok(Some(message));
        }
        self.node.progress();
        self.core.take_message()
    }

    /// The next message; waits for it.
    pub fn wait_message(&self, deadline: Option<u64>) -> Result<Vec<u8>> {
        let mut waiter = Waiter::default();
        self.node.wait_until(&mut waiter, deadline, "a message", &mut || self.core.take_message())
    }

    /// How many messages were dropped because nobody took the ones before.
    pub fn dropped_messages(&self) -> u64 {
        self.core.lock().dropped
    }

    /// Deposits a message with the peer, delivered when this side closes or its process dies, however that happens.
    pub fn set_on_close(&self, bytes: &[u8]) -> Result<()> {
        check_private(bytes)?;
        let to = self.remote()?;
        self.node.try_post(self.core.peer, Message::OnClose { to, bytes })?;
        self.core.lock().on_close = bytes.to_vec();
        Ok(())
    }

    /// How the connection ended, and the peer's on-close message; `None` while it stands.
    pub fn closed(&self) -> Option<(Error, Vec<u8>)> {
        self.core.lock().closed.clone().map(|closed| (closed.error, closed.message))
    }

    /// Waits until the connection is over.
    pub fn wait_closed(&self, deadline: Option<u64>) -> Result<(Error, Vec<u8>)> {
        let mut waiter = Waiter::default();
        self.node.wait_until(&mut waiter, deadline, "the end of a connection", &mut || Ok(self.closed()))
    }

    /// Closes the connection. The same happens when the endpoint is dropped.
    pub fn close(&self) {
        let (remote, unannounced, bytes) = {
            let mut state = self.core.lock();
            let bytes = std::mem::take(&mut state.on_close);
            if state.closed.is_none() {
                state.closed = Some(Closed { error: Error::Closed(CloseReason::Here), message: Vec::new() });
            }
            if std::mem::replace(&mut state.close_sent, true) {
                return;
            }
            (state.remote, state.unannounced, bytes)
        };
        self.core.over.store(true, Ordering::Release);
        // Who has asked hears from the peer: that it refuses, or that it accepts and is told then.
        let hears = !unannounced
            && remote.is_none_or(|to| self.node.post(self.core.peer, Message::Close { to, bytes: &bytes }).is_ok());
        self.node.core().endpoints.side_closed(&self.core, !hears);
        self.node.notify();
    }

    /// Keeps `resource` until both sides have closed or the peer is gone.
    pub fn own(&self, resource: impl Any + Send) {
        self.core.lock().resources.push(Box::new(resource));
    }

    pub(crate) fn subscribe(&self, subscription: Subscription) {
        let mut state = self.core.lock();
        if !state.inbox.is_empty() || state.closed.is_some() {
            subscription.post();
        }
        state.subscription = Some(subscription);
    }

    pub(crate) fn core(&self) -> &Arc<EndpointCore> {
        &self.core
    }

    fn remote(&self) -> Result<EndpointId> {
        self.core.check_open()?;
        self.core.lock().remote.ok_or(Error::TimedOut("the other side to accept"))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.close();
    }
}

impl EndpointCore {
    pub(crate) fn peer(&self) -> PeerId {
        self.peer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in an endpoint")
    }

    /// Whether the connection is over, without a lock.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if !self.is_over() {
            return Ok(());
        }
        self.lock().closed.as_ref().map_or(Ok(()), |closed| Err(closed.error.clone()))
    }

    fn take_message(&self) -> Result<Option<Vec<u8>>> {
        let mut state = self.lock();
        match (state.inbox.pop_front(), &state.closed) {
            (Some(message), _) => Ok(Some(message)),
            (None, Some(closed)) => Err(closed.error.clone()),
            (None, None) => Ok(None),
        }
    }

    /// Ends the connection, unless it has ended; the first reason stays.
    fn end(&self, error: Error, message: Option<&[u8]>) {
        let mut state = self.lock();
        if state.closed.is_none() {
            let message = message.map_or_else(|| std::mem::take(&mut state.deposit), <[u8]>::to_vec);
            state.closed = Some(Closed { error, message });
        }
        self.over.store(true, Ordering::Release);
        state.subscription.iter().chain(&state.queues).for_each(|subscription| _ = subscription.post());
    }

    fn offer_larger_ring(&self, spec: QueueSpec) {
        let mut state = self.lock();
        state.larger_ring = Some(spec);
        self.has_larger_ring.store(true, Ordering::Release);
        state.queues.iter().for_each(|subscription| _ = subscription.post());
    }

    /// Whether the peer has offered the sender a larger ring.
    #[inline]
    pub(crate) fn has_larger_ring(&self) -> bool {
        self.has_larger_ring.load(Ordering::Acquire)
    }

    pub(crate) fn take_larger_ring(&self) -> Option<QueueSpec> {
        let mut state = self.lock();
        self.has_larger_ring.store(false, Ordering::Relaxed);
        state.larger_ring.take()
    }

    /// Reports the end of the connection, now if it has come.
    pub(crate) fn subscribe_end(&self, subscription: Subscription) {
        let mut state = self.lock();
        if state.closed.is_some() {
            subscription.post();
        }
        state.queues.push(subscription);
    }

    pub(crate) fn unsubscribe_end(&self, subscription: &Subscription) {
        self.lock().queues.retain(|known| !known.is(subscription));
    }
}

pub(crate) fn check_private(bytes: &[u8]) -> Result<()> {
    if bytes.len() > MAX_PRIVATE {
        return Err(Error::Size { what: "message", must: "at most 4096 bytes", value: bytes.len() });
    }
    Ok(())
}
