//! Endpoints: ports that receive small out-of-band messages, and own what a connection needs.
//!
//! ```text
//!   connecting ──accept──> connected ──close by either side, or death of the peer──> closed
//!        └─────refuse────> closed
//! ```
//!
//! A side that sends *close* writes nothing into the other's memory afterwards. What an endpoint owns is given back when
//! both sides have sent it, or the peer is gone; then its slot is used again under the next session number, so that a
//! late message of the former connection is recognised and dropped.

use std::{
    any::Any,
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sidestep_shm::wait::Waiter;
use sidestep_sys::lock::{Mutex, MutexGuard};

use crate::{
    cookie::{Cookie, Rights},
    error::{CloseReason, Error, Result},
    event::Subscription,
    listener::{ConnectRequest, ListenerCore},
    node::{LinkIndex, Node, NodeCore},
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
    remote: Option<EndpointId>,
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
        let private = private(peer)?;
        check_private(&private)?;
        let core = self.core().endpoints.insert(peer);
        let endpoint = Endpoint { core, node: self.clone() };
        self.post(peer, Message::Connect { from: endpoint.core.id, name, private: &private })?;
        Ok(endpoint)
    }
}

impl Endpoint {
    pub(crate) fn accepted(node: &Node, peer: PeerId, remote: EndpointId, private: &[u8]) -> Endpoint {
        let core = node.core().endpoints.insert(peer);
        {
            let mut state = core.lock();
            state.remote = Some(remote);
            state.private = private.to_vec();
        }
        Endpoint { core, node: node.clone() }
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

    /// Offers the peer's sender a larger ring. It takes the last one that was offered.
    pub(crate) fn post_ring(&self, spec: &[u8]) -> Result<()> {
        let to = self.remote()?;
        self.node.post(self.core.peer, Message::Ring { to, spec })
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
        let (remote, bytes) = {
            let mut state = self.core.lock();
            let bytes = std::mem::take(&mut state.on_close);
            if state.closed.is_none() {
                state.closed = Some(Closed { error: Error::Closed(CloseReason::Here), message: Vec::new() });
            }
            if std::mem::replace(&mut state.close_sent, true) {
                return;
            }
            (state.remote, bytes)
        };
        self.core.over.store(true, Ordering::Release);
        let told = match remote {
            Some(to) => self.node.post(self.core.peer, Message::Close { to, bytes: &bytes }).is_ok(),
            None => false,
        };
        self.node.core().endpoints.side_closed(&self.core, !told);
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

/// The endpoints and listeners of a node.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    table: Mutex<Table>,
    listeners: Mutex<Listeners>,
}

/// By link, and by the name there.
type Listeners = HashMap<(LinkIndex, String), Arc<ListenerCore>>;

#[derive(Debug, Default)]
struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Slot {
    session: u32,
    core: Option<Arc<EndpointCore>>,
    peer_has_closed: bool,
    here_has_closed: bool,
}

impl Endpoints {
    fn insert(&self, peer: PeerId) -> Arc<EndpointCore> {
        let mut table = self.table();
        let slot = match table.free.pop() {
            Some(slot) => slot,
            None => {
                table.slots.push(Slot::default());
                table.slots.len() as u32 - 1
            }
        };
        let entry = &mut table.slots[slot as usize];
        let id = EndpointId { slot, session: entry.session };
        let [over, has_larger_ring] = [AtomicBool::new(false), AtomicBool::new(false)];
        let core = EndpointCore { id, peer, over, has_larger_ring, state: Mutex::default() };
        let core = Arc::new(core);
        entry.core = Some(core.clone());
        (entry.peer_has_closed, entry.here_has_closed) = (false, false);
        core
    }

    pub(crate) fn listen(&self, at: &(LinkIndex, String), listener: &Arc<ListenerCore>) {
        self.listeners().insert(at.clone(), listener.clone());
    }

    pub(crate) fn unlisten(&self, at: &(LinkIndex, String)) {
        self.listeners().remove(at);
    }

    /// A message about endpoints has arrived.
    pub(crate) fn handle(&self, node: &NodeCore, peer: PeerId, message: Message<'_>) {
        match message {
            Message::Connect { from, name, private } => self.handle_connect(node, peer, from, name, private),
            Message::Accept { to, from, private } => {
                if let Some(core) = self.find(peer, to) {
                    let mut state = core.lock();
                    if state.remote.is_none() && state.closed.is_none() {
                        state.remote = Some(from);
                        state.private = private.to_vec();
                        state.subscription.iter().for_each(|subscription| _ = subscription.post());
                    } else if state.closed.is_some() {
                        // Given up meanwhile: the other side must not wait for us.
                        drop(state);
                        let _ = node.post(peer, Message::Close { to: from, bytes: &[] });
                    }
                } else {
                    let _ = node.post(peer, Message::Close { to: from, bytes: &[] });
                }
            }
            Message::Refuse { to, nobody_listens, private } => {
                if let Some(core) = self.find(peer, to) {
                    let error = if nobody_listens {
                        Error::NobodyListens(String::from_utf8_lossy(private).into_owned())
                    } else {
                        Error::Refused { private: private.to_vec() }
                    };
                    core.end(error, Some(&[]));
                    self.peer_side_closed(&core);
                }
            }
            Message::Message { to, bytes } => {
                if let Some(core) = self.find(peer, to) {
                    let mut state = core.lock();
                    if state.inbox.len() < INBOX {
                        state.inbox.push_back(bytes.to_vec());
                    } else {
                        state.dropped += 1;
                    }
                    if let Some(subscription) = &state.subscription {
                        subscription.post();
                    }
                }
            }
            Message::OnClose { to, bytes } => {
                if let Some(core) = self.find(peer, to) {
                    core.lock().deposit = bytes.to_vec();
                }
            }
            Message::Close { to, bytes } => {
                if let Some(core) = self.find(peer, to) {
                    core.end(Error::Closed(CloseReason::Peer), Some(bytes));
                    self.peer_side_closed(&core);
                }
            }
            Message::Ring { to, spec } => {
                if let (Some(core), Ok(spec)) = (self.find(peer, to), QueueSpec::from_bytes(spec)) {
                    core.offer_larger_ring(spec);
                }
            }
            Message::Revoked { .. } | Message::Locate { .. } | Message::Located { .. } => {}
        }
    }

    fn handle_connect(&self, node: &NodeCore, peer: PeerId, from: EndpointId, name: &str, private: &[u8]) {
        let find = |name: String| self.listeners().get(&(peer.link(), name)).cloned();
        // A name of the network is not always the one that was listened under.
        let other = || node.links.peer(peer).local_name(name).and_then(find);
        let listener = find(name.to_string()).or_else(other);
        let taken = listener.is_some_and(|listener| listener.offer(ConnectRequest::new(peer, from, private)));
        if !taken {
            let refusal = Message::Refuse { to: from, nobody_listens: true, private: name.as_bytes() };
            let _ = node.post(peer, refusal);
        }
    }

    /// The peer is gone: every endpoint to it ends.
    pub(crate) fn peer_closed(&self, peer: PeerId, reason: CloseReason) {
        let cores: Vec<_> =
            self.table().slots.iter().flat_map(|slot| &slot.core).filter(|core| core.peer == peer).cloned().collect();
        for core in cores {
            core.end(Error::Closed(reason), None);
            self.peer_side_closed(&core);
        }
        self.listeners().values().for_each(|listener| listener.forget(peer));
    }

    /// This side has closed; with `alone` the other side does not know of the endpoint, or is gone.
    fn side_closed(&self, core: &Arc<EndpointCore>, alone: bool) {
        self.mark(core, |slot| {
            slot.here_has_closed = true;
            slot.peer_has_closed |= alone;
        });
    }

    fn peer_side_closed(&self, core: &Arc<EndpointCore>) {
        self.mark(core, |slot| slot.peer_has_closed = true);
    }

    /// Notes that a side has closed, and frees the slot when both have.
    fn mark(&self, core: &Arc<EndpointCore>, note: impl FnOnce(&mut Slot)) {
        let mut table = self.table();
        let slot = &mut table.slots[core.id.slot as usize];
        if slot.session != core.id.session {
            return;
        }
        note(slot);
        if slot.here_has_closed && slot.peer_has_closed {
            slot.session = slot.session.wrapping_add(1);
            slot.core = None;
            table.free.push(core.id.slot);
            drop(table);
            let resources = std::mem::take(&mut core.lock().resources);
            drop(resources);
        }
    }

    /// The endpoint a peer means: it must be the peer's own, of the current session.
    fn find(&self, peer: PeerId, id: EndpointId) -> Option<Arc<EndpointCore>> {
        let table = self.table();
        let slot = table.slots.get(id.slot as usize)?;
        slot.core.as_ref().filter(|core| core.id == id && core.peer == peer).cloned()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no panic in endpoint table")
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().expect("no panic in listener table")
    }
}

pub(crate) fn check_private(bytes: &[u8]) -> Result<()> {
    if bytes.len() > MAX_PRIVATE {
        return Err(Error::Size { what: "message", must: "at most 4096 bytes", value: bytes.len() });
    }
    Ok(())
}
