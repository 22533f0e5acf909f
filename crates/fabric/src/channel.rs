//! Channels: an endpoint with a queue in each direction, ready to use.
//!
//! What most programs want. Blocks come from the arena of the peer and go back to it when both sides have closed; the
//! peer's arena stays mapped. So the second connection with a peer costs a few messages and nothing else.
//!
//! [`Channel::connect`] and [`Channel::accept`] wait. A program that must not wait begins and polls; an event queue tells
//! it when:
//!
//! ```
//! # use sidestep_fabric::{Channel, ChannelOptions, EventQueue, Node, Result};
//! # fn open(node: &Node, name: &str) -> Result<Channel> {
//! let events = EventQueue::new(node);
//! let mut connecting = Channel::begin_connect(node, name, ChannelOptions::default(), b"who I am")?;
//! connecting.attach(&events, 1);
//! let channel = loop {
//!     if let Some(channel) = connecting.poll()? {
//!         break channel;
//!     }
//!     events.wait(None)?;
//! };
//! # Ok(channel)
//! # }
//! ```
//!
//! Layers that make connections of their own kind (several over one pair of queues, or with a handshake of their own) use
//! the parts: a [`Half`] is this side's queue before it is joined with the peer's, and [`Joining`] is on the way there.

use std::sync::Arc;

use sidestep_shm::wait::Waiter;

use crate::{
    aperture::Aperture,
    arena::ArenaBlock,
    endpoint::Endpoint,
    error::{CloseReason, Error, Result},
    event::{EventQueue, SourceId, Subscription},
    listener::Request,
    node::Node,
    peer::PeerId,
    queue::{self, Kind, Monitor, QueueSpec, Receiver, Sender},
};

/// A connection with a queue in each direction. Dropping it closes the connection.
#[derive(Debug)]
pub struct Channel {
    /// Writes to the peer.
    pub sender: Sender,
    /// Reads from the peer.
    pub receiver: Receiver,
    /// Out-of-band messages, and how it ends. Dropped last: the close it sends promises that nothing is written after.
    pub endpoint: Endpoint,
}

/// What the queue towards this side looks like.
#[derive(Debug, Clone, Copy)]
pub struct ChannelOptions {
    /// Ring size in bytes, a power of two.
    pub capacity: usize,
    /// Stream or slots. The two directions need not agree.
    pub kind: Kind,
}

/// A channel that was asked for, until the other side has answered. Dropping it gives up.
#[derive(Debug)]
pub struct Connecting(Opening);

/// A channel that is accepted, until it is ready. Dropping it is a refusal.
#[derive(Debug)]
pub struct Accepting {
    opening: Opening,
    request: Option<Request>,
    answer: Vec<u8>,
}

#[derive(Debug)]
struct Opening {
    /// Both are taken when the channel is ready.
    endpoint: Option<Endpoint>,
    half: Option<Half>,
    joining: Option<Joining>,
    subscription: Option<Subscription>,
}

/// This side's queue of a channel that has not been joined with the peer's yet.
#[derive(Debug)]
pub struct Half {
    block: Arc<ArenaBlock>,
}

/// On the way to the peer's queue: its memory is being opened.
#[derive(Debug)]
pub struct Joining {
    aperture: Aperture,
    theirs: QueueSpec,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        ChannelOptions { capacity: 256 * 1024, kind: Kind::Stream }
    }
}

impl Channel {
    /// Connects to whoever accepts channels under a name.
    ///
    /// Without a deadline this waits for as long as the other process lives, also if nothing there makes progress: no thread
    /// polls, waits or [serves](Node::serve). The end of that process ends the wait, and so does its refusal.
    pub fn connect(
        node: &Node,
        name: &str,
        options: ChannelOptions,
        private: &[u8],
        deadline: Option<u64>,
    ) -> Result<Channel> {
        let mut connecting = Self::begin_connect(node, name, options, private)?;
        let mut waiter = Waiter::default();
        node.wait_until(&mut waiter, deadline, "a channel", &mut || connecting.look())
    }

    /// Begins to connect, and does not wait.
    pub fn begin_connect(node: &Node, name: &str, options: ChannelOptions, private: &[u8]) -> Result<Connecting> {
        let mut own = None;
        let endpoint = node.begin_connect_with(name, |peer| {
            let half = Half::new(node, peer, options)?;
            let private = [&half.spec().to_bytes(), private].concat();
            own = Some(half);
            Ok(private)
        })?;
        let half = own.expect("made before the request was sent");
        Ok(Connecting(Opening::new(endpoint, half)))
    }

    /// Accepts a request for a channel. A request that is not one is refused. For the deadline see [`connect`](Self::connect).
    pub fn accept(request: Request, options: ChannelOptions, private: &[u8], deadline: Option<u64>) -> Result<Channel> {
        let mut accepting = Self::begin_accept(request, options, private)?;
        let node = accepting.opening.endpoint()?.node().clone();
        let mut waiter = Waiter::default();
        node.wait_until(&mut waiter, deadline, "a channel", &mut || accepting.look())
    }

    /// Begins to accept a request for a channel, and does not wait.
    pub fn begin_accept(request: Request, options: ChannelOptions, private: &[u8]) -> Result<Accepting> {
        let theirs = spec_of(request.private())?;
        let endpoint = request.prepare()?;
        let half = Half::new(endpoint.node(), endpoint.peer(), options)?;
        let answer = [&half.spec().to_bytes(), private].concat();
        let mut opening = Opening::new(endpoint, half);
        opening.join(&theirs)?;
        Ok(Accepting { opening, request: Some(request), answer })
    }

    /// What the other side said when the connection was made.
    pub fn private(&self) -> Vec<u8> {
        self.endpoint.private().split_off(QueueSpec::WIRE_LEN)
    }

    /// Gives the peer a larger ring to send into, of `capacity` bytes. It goes on there when it next finds too little space
    /// ([`Sender::poll_growth`]); until then the ring stays as it is. For streams only.
    pub fn grow(&mut self, capacity: usize) -> Result<()> {
        let block = self.receiver.grow(capacity)?;
        self.endpoint.offer_ring(block)
    }
}

impl Connecting {
    /// The channel, once the other side has accepted: then this is done, and answers `None` from there on. An error if it
    /// has refused or is gone.
    pub fn poll(&mut self) -> Result<Option<Channel>> {
        self.0.progress();
        self.look()
    }

    /// Reports to an event queue when [`poll`](Self::poll) may have an answer.
    pub fn attach(&mut self, queue: &EventQueue, token: u64) -> SourceId {
        self.0.attach(queue, token)
    }

    fn look(&mut self) -> Result<Option<Channel>> {
        let opening = &mut self.0;
        let Some(endpoint) = &opening.endpoint else { return Ok(None) };
        if opening.joining.is_none() {
            if !endpoint.is_connected()? {
                return Ok(None);
            }
            let theirs = spec_of(&endpoint.private())?;
            opening.join(&theirs)?;
        }
        opening.finish()
    }
}

impl Accepting {
    /// The channel, once it is ready and the other side has been told: then this is done, and answers `None` from there on.
    pub fn poll(&mut self) -> Result<Option<Channel>> {
        self.opening.progress();
        self.look()
    }

    /// Reports to an event queue when [`poll`](Self::poll) may have an answer.
    pub fn attach(&mut self, queue: &EventQueue, token: u64) -> SourceId {
        self.opening.attach(queue, token)
    }

    fn look(&mut self) -> Result<Option<Channel>> {
        let Some(channel) = self.opening.finish()? else { return Ok(None) };
        if let Some(request) = self.request.take() {
            request.finish(&channel.endpoint, &self.answer)?;
        }
        Ok(Some(channel))
    }
}

impl Opening {
    fn new(endpoint: Endpoint, half: Half) -> Opening {
        half.keep_with(&endpoint);
        Opening { endpoint: Some(endpoint), half: Some(half), joining: None, subscription: None }
    }

    fn endpoint(&self) -> Result<&Endpoint> {
        self.endpoint.as_ref().ok_or(Error::Closed(CloseReason::Here))
    }

    fn progress(&self) {
        if let Some(endpoint) = &self.endpoint {
            endpoint.node().progress();
        }
    }

    fn join(&mut self, theirs: &QueueSpec) -> Result<()> {
        let joining = Joining::begin(self.endpoint()?, theirs)?;
        if let Some(subscription) = &self.subscription {
            joining.aperture.subscribe(subscription);
        }
        self.joining = Some(joining);
        Ok(())
    }

    fn attach(&mut self, queue: &EventQueue, token: u64) -> SourceId {
        let (id, subscription) = queue.subscribe_plain(token);
        if let Some(joining) = &self.joining {
            joining.aperture.subscribe(&subscription);
        }
        if let Some(endpoint) = &self.endpoint {
            endpoint.subscribe(subscription.clone());
        }
        self.subscription = Some(subscription);
        id
    }

    /// The channel, if the peer's memory is open.
    fn finish(&mut self) -> Result<Option<Channel>> {
        let Some(joining) = &self.joining else { return Ok(None) };
        if self.endpoint.is_none() || !joining.poll()? {
            return Ok(None);
        }
        let (Some(endpoint), Some(half)) = (self.endpoint.take(), self.half.take()) else { return Ok(None) };
        let (sender, receiver) = half.finish(&endpoint, joining)?;
        Ok(Some(Channel { sender, receiver, endpoint }))
    }
}

impl Half {
    /// Lends a block for a connection with `peer`, from memory that only this peer can write.
    pub fn new(node: &Node, peer: PeerId, options: ChannelOptions) -> Result<Half> {
        let block = node.core().arenas.block(node, peer, options.capacity, options.kind)?;
        Ok(Half { block: Arc::new(block) })
    }

    /// Has this endpoint keep the block: the peer, which is told of it in the request or in the answer, may write there until it has
    /// closed, also if this side gives the connection up before it is made.
    pub fn keep_with(&self, endpoint: &Endpoint) {
        endpoint.own(self.block.clone());
    }

    /// What the other side must know to join.
    pub fn spec(&self) -> QueueSpec {
        self.block.block().spec()
    }

    /// A look at the block from beside.
    pub fn monitor(&self, node: &Node) -> Result<Monitor> {
        self.block.block().monitor(node)
    }

    /// Makes the queues, once [`Joining::poll`] says that the peer's memory is open.
    ///
    /// The peer may write into the block until it has closed, too. So the half must outlive the connection, or its endpoint
    /// [keep it](Self::keep_with).
    pub fn finish(&self, endpoint: &Endpoint, joining: &Joining) -> Result<(Sender, Receiver)> {
        queue::attach(endpoint, self.block.block(), &joining.aperture, &joining.theirs)
    }
}

impl Joining {
    /// Begins to join with the peer's side, which it has named over `endpoint`. Nothing is waited for.
    pub fn begin(endpoint: &Endpoint, theirs: &QueueSpec) -> Result<Joining> {
        Ok(Joining { aperture: Aperture::begin(endpoint, &theirs.cookie)?, theirs: *theirs })
    }

    /// Whether the peer's memory is open; an error if it was refused, or the peer is gone.
    pub fn poll(&self) -> Result<bool> {
        self.aperture.is_open()
    }

    /// Waits for that.
    pub fn wait(&self, deadline: Option<u64>) -> Result<()> {
        self.aperture.wait_open(deadline)
    }

    /// The peer's side.
    pub fn theirs(&self) -> &QueueSpec {
        &self.theirs
    }
}

/// The part of a request's private data that is the program's own.
pub fn private_of(request: &Request) -> &[u8] {
    request.private().get(QueueSpec::WIRE_LEN..).unwrap_or(&[])
}

fn spec_of(private: &[u8]) -> Result<QueueSpec> {
    QueueSpec::from_bytes(private.get(..QueueSpec::WIRE_LEN).unwrap_or(private))
}
