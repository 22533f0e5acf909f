//! Listeners: names under which connections are accepted or refused.

use std::{collections::VecDeque, sync::Arc};

use sidestep_shm::wait::Waiter;
use sidestep_sys::lock::{Mutex, MutexGuard};

use crate::{
    endpoint::{Endpoint, check_private},
    error::{CloseReason, Error, Result},
    event::Subscription,
    node::{LinkIndex, Node},
    peer::PeerId,
    protocol::{EndpointId, Message},
};

/// Accepts connections under a name. Dropping it gives the name back and refuses who waits.
#[derive(Debug)]
pub struct Listener {
    core: Arc<ListenerCore>,
    /// The link it listens on, and its name there.
    at: (LinkIndex, String),
    node: Node,
}

/// Someone asks for a connection. Dropping it is a refusal.
#[derive(Debug)]
pub struct Request {
    asked: Option<ConnectRequest>,
    node: Node,
}

#[derive(Debug)]
pub(crate) struct ConnectRequest {
    peer: PeerId,
    from: EndpointId,
    private: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct ListenerCore {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<ConnectRequest>,
    subscription: Option<Subscription>,
}

/// Requests that may wait; more are turned away as if nobody listened.
const BACKLOG: usize = 1024;
/// And of one peer, so that it does not keep the others out.
const BACKLOG_OF_PEER: usize = 128;

impl Node {
    /// Listens under a name such as `shm:echo`; its scheme picks the link.
    pub fn listen(&self, name: &str) -> Result<Listener> {
        let (attached, local) = self.core().links.named(name)?;
        attached.as_link().listen(local)?;
        let (core, at) = (Arc::new(ListenerCore::default()), (attached.index, local.to_string()));
        self.core().endpoints.listen(&at, &core);
        Ok(Listener { core, at, node: self.clone() })
    }
}

impl Listener {
    /// The next request, if there is one.
    pub fn poll(&self) -> Option<Request> {
        if self.core.lock().waiting.is_empty() {
            self.node.progress();
        }
        self.take()
    }

    /// The next request; waits for it.
    pub fn wait(&self, deadline: Option<u64>) -> Result<Request> {
        let mut waiter = Waiter::default();
        self.node.wait_until(&mut waiter, deadline, "a request for a connection", &mut || Ok(self.take()))
    }

    /// Reports requests to an event queue, by the subscription the queue makes.
    pub fn attach(&self, queue: &crate::event::EventQueue, token: u64) -> crate::event::SourceId {
        let (id, subscription) = queue.subscribe_plain(token);
        let mut state = self.core.lock();
        if !state.waiting.is_empty() {
            subscription.post();
        }
        state.subscription = Some(subscription);
        id
    }

    fn take(&self) -> Option<Request> {
        let asked = self.core.lock().waiting.pop_front()?;
        Some(Request { asked: Some(asked), node: self.node.clone() })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let core = self.node.core();
        core.links.at(self.at.0).as_link().unlisten(&self.at.1);
        core.endpoints.unlisten(&self.at);
        while self.take().is_some() {}
    }
}

impl Request {
    /// What the other side sent with its request.
    pub fn private(&self) -> &[u8] {
        self.asked.as_ref().map_or(&[], |asked| &asked.private)
    }

    /// The process that asks.
    pub fn peer(&self) -> Option<PeerId> {
        self.asked.as_ref().map(|asked| asked.peer)
    }

    /// Says yes.
    pub fn accept(self, private: &[u8]) -> Result<Endpoint> {
        let endpoint = self.prepare()?;
        self.finish(&endpoint, private)?;
        Ok(endpoint)
    }

    /// Says yes, with private data that needs the endpoint, such as cookies shared over it.
    pub fn accept_with(self, private: impl FnOnce(&Endpoint) -> Result<Vec<u8>>) -> Result<Endpoint> {
        let endpoint = self.prepare()?;
        let private = private(&endpoint)?;
        self.finish(&endpoint, &private)?;
        Ok(endpoint)
    }

    /// An endpoint for this request that is not announced yet: its resources can be prepared, and their names sent with
    /// [`finish`](Self::finish).
    pub(crate) fn prepare(&self) -> Result<Endpoint> {
        let asked = self.asked.as_ref().ok_or(Error::Closed(CloseReason::Here))?;
        Ok(Endpoint::accepted(&self.node, asked.peer, asked.from, &asked.private))
    }

    /// Says yes for a prepared endpoint.
    pub(crate) fn finish(mut self, endpoint: &Endpoint, private: &[u8]) -> Result<()> {
        check_private(private)?;
        endpoint.core().check_open()?;
        let Some(asked) = self.asked.take() else { return Ok(()) };
        endpoint.announce(asked.from, private)
    }

    /// Says no.
    pub fn refuse(mut self, private: &[u8]) -> Result<()> {
        check_private(private)?;
        self.answer_no(private)
    }

    fn answer_no(&mut self, private: &[u8]) -> Result<()> {
        let Some(asked) = self.asked.take() else { return Ok(()) };
        self.node.post(asked.peer, Message::Refuse { to: asked.from, nobody_listens: false, private })
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // A peer that cannot be told is gone.
        let _ = self.answer_no(&[]);
    }
}

impl ConnectRequest {
    pub(crate) fn new(peer: PeerId, from: EndpointId, private: &[u8]) -> ConnectRequest {
        ConnectRequest { peer, from, private: private.to_vec() }
    }
}

impl ListenerCore {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in a listener")
    }

    /// `false` if the backlog is full, or has too many of this peer.
    pub(crate) fn offer(&self, request: ConnectRequest) -> bool {
        let mut state = self.lock();
        let of_peer = state.waiting.iter().filter(|other| other.peer == request.peer).count();
        if state.waiting.len() >= BACKLOG || of_peer >= BACKLOG_OF_PEER {
            return false;
        }
        state.waiting.push_back(request);
        if let Some(subscription) = &state.subscription {
            subscription.post();
        }
        true
    }

    /// A peer is gone; its requests with it.
    pub(crate) fn forget(&self, peer: PeerId) {
        self.lock().waiting.retain(|request| request.peer != peer);
    }
}
