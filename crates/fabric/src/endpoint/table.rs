//! The endpoints and listeners of a node, and the messages that are about them.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicBool},
};

use sidestep_sys::{
    lock::{Mutex, MutexGuard},
    slab::{Id, Slab},
};

use super::{EndpointCore, INBOX};
use crate::{
    error::{CloseReason, Error},
    listener::{ConnectRequest, ListenerCore},
    node::{LinkIndex, NodeCore},
    peer::PeerId,
    protocol::{EndpointId, Message},
    queue::QueueSpec,
};

/// The endpoints and listeners of a node.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    table: Mutex<Table>,
    listeners: Mutex<Listeners>,
}

/// By link, and by the name there.
type Listeners = HashMap<(LinkIndex, String), Arc<ListenerCore>>;

type Table = Slab<Slot, EndpointId>;

#[derive(Debug)]
struct Slot {
    core: Arc<EndpointCore>,
    peer_has_closed: bool,
    here_has_closed: bool,
}

impl Id for EndpointId {
    const PLACES: usize = 1 << 32;
    const FIRST: u32 = 0;
    const LAST: u32 = u32::MAX;

    fn new(slot: u32, session: u32) -> EndpointId {
        EndpointId { slot, session }
    }

    fn place(self) -> u32 {
        self.slot
    }

    fn generation(self) -> u32 {
        self.session
    }
}

impl Endpoints {
    pub(super) fn insert(&self, peer: PeerId) -> Arc<EndpointCore> {
        let mut table = self.table();
        let id = table.insert_with(|id| {
            let [over, has_larger_ring] = [AtomicBool::new(false), AtomicBool::new(false)];
            let core = EndpointCore { id, peer, over, has_larger_ring, state: Mutex::default() };
            Slot { core: Arc::new(core), peer_has_closed: false, here_has_closed: false }
        });
        table.get(id.expect("fewer endpoints than 32 bits number")).expect("just added").core.clone()
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
                        // Given up meanwhile: the other side must not wait for us. It closes as well, and then writes nothing more.
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
            self.table().iter().map(|slot| &slot.core).filter(|core| core.peer == peer).cloned().collect();
        for core in cores {
            core.end(Error::Closed(reason), None);
            self.peer_side_closed(&core);
        }
        self.listeners().values().for_each(|listener| listener.forget(peer));
    }

    /// This side has closed; with `alone` the other side does not know of the endpoint, or is gone.
    pub(super) fn side_closed(&self, core: &Arc<EndpointCore>, alone: bool) {
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
        let Some(slot) = table.get_mut(core.id) else { return };
        note(slot);
        if slot.here_has_closed && slot.peer_has_closed {
            table.remove(core.id);
            drop(table);
            let resources = std::mem::take(&mut core.lock().resources);
            drop(resources);
        }
    }

    /// The endpoint a peer means: it must be the peer's own, of the current session.
    fn find(&self, peer: PeerId, id: EndpointId) -> Option<Arc<EndpointCore>> {
        let table = self.table();
        table.get(id).map(|slot| &slot.core).filter(|core| core.peer == peer).cloned()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no panic in endpoint table")
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().expect("no panic in listener table")
    }
}
