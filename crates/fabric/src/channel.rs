//! Channels: an endpoint with a queue in each direction, ready to use.
//!
//! What most programs want. Blocks come from the arena of the peer and go back to it when both sides have closed; the
//! peer's arena stays mapped. So the second connection with a peer costs a few messages and nothing else.

use sidestep_shm::Memory;

use crate::{
    aperture::Aperture,
    arena::ArenaBlock,
    endpoint::Endpoint,
    error::Result,
    listener::Request,
    node::Node,
    queue::{self, Kind, QueueSpec, Receiver, Sender},
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
    /// Whether another process of this owner may take the queues up ([`crate::queue::Handover`]).
    pub shared: bool,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        ChannelOptions { capacity: 256 * 1024, kind: Kind::Stream, shared: false }
    }
}

impl ChannelOptions {
    fn family(&self) -> Result<Memory> {
        if self.shared { queue::shared_family() } else { queue::private_family() }
    }
}

impl Channel {
    /// Connects to whoever accepts channels under a name.
    pub fn connect(
        node: &Node,
        name: &str,
        options: ChannelOptions,
        private: &[u8],
        deadline: Option<u64>,
    ) -> Result<Channel> {
        let mut own = None;
        let endpoint = node.begin_connect_with(name, |peer| {
            let block = node.core().arenas.block(node, peer, options.capacity, options.kind)?;
            let private = [&block.block.spec().to_bytes(), private].concat();
            own = Some(block);
            Ok(private)
        })?;
        endpoint.wait_connected(deadline)?;
        let block = own.expect("made before the request was sent");
        let theirs = spec_of(&endpoint.private())?;
        Self::join(endpoint, block, &theirs, options, deadline)
    }

    /// Accepts a request for a channel. A request that is not one is refused.
    pub fn accept(request: Request, options: ChannelOptions, private: &[u8], deadline: Option<u64>) -> Result<Channel> {
        let theirs = spec_of(request.private())?;
        let endpoint = request.prepare()?;
        let node = endpoint.node().clone();
        let block = node.core().arenas.block(&node, endpoint.peer(), options.capacity, options.kind)?;
        let answer = [&block.block.spec().to_bytes(), private].concat();
        let channel = Self::join(endpoint, block, &theirs, options, deadline)?;
        request.finish(&channel.endpoint, &answer)?;
        Ok(channel)
    }

    /// What the other side said when the connection was made.
    pub fn private(&self) -> Vec<u8> {
        self.endpoint.private().split_off(QueueSpec::WIRE_LEN)
    }

    fn join(
        endpoint: Endpoint,
        block: ArenaBlock,
        theirs: &QueueSpec,
        options: ChannelOptions,
        deadline: Option<u64>,
    ) -> Result<Channel> {
        let aperture = Aperture::open(&endpoint, &theirs.cookie, deadline)?;
        let (sender, receiver) = queue::attach(&endpoint, &block.block, &aperture, theirs, &options.family()?)?;
        endpoint.own(block);
        Ok(Channel { sender, receiver, endpoint })
    }
}

/// The part of a request's private data that is the program's own.
pub fn private_of(request: &Request) -> &[u8] {
    request.private().get(QueueSpec::WIRE_LEN..).unwrap_or(&[])
}

fn spec_of(private: &[u8]) -> Result<QueueSpec> {
    QueueSpec::from_bytes(private.get(..QueueSpec::WIRE_LEN).unwrap_or(private))
}
