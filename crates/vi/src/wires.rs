//! The queues of one connection, and how the two sides agree on them.

use std::sync::Arc;

use sidestep_fabric::{
    Aperture, ArenaBlock, Endpoint, Node, RdmaQueue, Request,
    link::PeerId,
    queue::{self, Kind, Monitor, QueueSpec, Receiver, Sender},
};

use crate::{
    address::NetAddress,
    attributes::{MAX_DESCRIPTORS, Reliability, RemoteAttributes, ViAttributes},
    entry::Credit,
    error::{Error, Result},
    memory::MemHandle,
};

/// Everything that exists only while a VI is connected.
#[derive(Debug)]
pub(crate) struct Wires {
    pub(crate) remote: RemoteAttributes,
    /// Messages to the peer and from it.
    pub(crate) transfer_out: Sender,
    pub(crate) transfer_in: Receiver,
    /// Posted receives of this side, told to the peer, and of the peer, told here.
    pub(crate) cookies_out: Sender,
    pub(crate) cookies_in: Receiver,
    pub(crate) monitors: Arc<Monitors>,
    /// Receives the peer has posted and nobody has used.
    pub(crate) credits: std::collections::VecDeque<Credit>,
    /// Whether the peer has told of all receives that it posted before the connection was made.
    pub(crate) ready: bool,
    /// Regions of the peer that its receives lie in.
    pub(crate) windows: Vec<Option<Aperture>>,
    /// Regions of this side that the peer was told of, by their number.
    pub(crate) announced: Vec<MemHandle>,
    pub(crate) rdma: RdmaQueue,
    /// Dropped last: the close it sends promises that nothing is written after.
    pub(crate) endpoint: Endpoint,
}

/// What can be watched without the lock of the VI.
#[derive(Debug)]
pub(crate) struct Monitors {
    pub(crate) transfer: Monitor,
    pub(crate) cookies: Monitor,
}

/// The blocks of one side, before the other's are known.
#[derive(Debug)]
pub(crate) struct Blocks {
    transfer: ArenaBlock,
    cookies: ArenaBlock,
}

/// What one side tells the other when a connection is made.
#[derive(Debug, Clone)]
pub(crate) struct Greeting {
    pub(crate) attributes: RemoteAttributes,
    pub(crate) address: NetAddress,
    transfer: QueueSpec,
    cookies: QueueSpec,
}

/// Bytes of the ring that carries messages.
pub(crate) const TRANSFER_RING: usize = 64 << 10;
/// Bytes of the ring that carries cookies: every receive in its short form, and an answer to every send.
const COOKIE_RING: usize = 32 << 10;
const _: () = assert!(COOKIE_RING >= 2 * crate::entry::RECORD * MAX_DESCRIPTORS + 8192);
const MAGIC: u32 = u32::from_le_bytes(*b"via1");
const FIXED: usize = 24;

impl Blocks {
    pub(crate) fn lend(node: &Node, peer: PeerId) -> sidestep_fabric::Result<Blocks> {
        Ok(Blocks {
            transfer: node.lend_block(peer, TRANSFER_RING, Kind::Stream)?,
            cookies: node.lend_block(peer, COOKIE_RING, Kind::Stream)?,
        })
    }

    pub(crate) fn greeting(&self, attributes: &ViAttributes, address: &NetAddress) -> Greeting {
        Greeting {
            attributes: RemoteAttributes::from(attributes),
            address: address.clone(),
            transfer: self.transfer.block().spec(),
            cookies: self.cookies.block().spec(),
        }
    }

    /// Joins the blocks of the two sides.
    pub(crate) fn join(
        self,
        endpoint: &Endpoint,
        theirs: &Greeting,
        deadline: Option<u64>,
    ) -> sidestep_fabric::Result<Joined> {
        let node = endpoint.node();
        let attach = |block: &ArenaBlock, spec: &QueueSpec| {
            let aperture = Aperture::open(endpoint, &spec.cookie, deadline)?;
            queue::attach(endpoint, block.block(), &aperture, spec, &queue::private_family()?)
        };
        let transfer = attach(&self.transfer, &theirs.transfer)?;
        let cookies = attach(&self.cookies, &theirs.cookies)?;
        let monitors =
            Monitors { transfer: self.transfer.block().monitor(node)?, cookies: self.cookies.block().monitor(node)? };
        endpoint.own(self);
        Ok(Joined { transfer, cookies, monitors, remote: theirs.attributes })
    }
}

/// Queues that are joined, on an endpoint that need not be announced yet.
#[derive(Debug)]
pub(crate) struct Joined {
    transfer: (Sender, Receiver),
    cookies: (Sender, Receiver),
    monitors: Monitors,
    remote: RemoteAttributes,
}

impl Joined {
    pub(crate) fn wires(self, endpoint: Endpoint) -> Wires {
        Wires {
            remote: self.remote,
            transfer_out: self.transfer.0,
            transfer_in: self.transfer.1,
            cookies_out: self.cookies.0,
            cookies_in: self.cookies.1,
            monitors: Arc::new(self.monitors),
            credits: Default::default(),
            ready: false,
            windows: Vec::new(),
            announced: Vec::new(),
            rdma: RdmaQueue::new(endpoint.node(), 4096),
            endpoint,
        }
    }
}

/// Says yes to a request: joins the queues, and tells the other side.
pub(crate) fn accept(
    request: Request,
    theirs: &Greeting,
    attributes: &ViAttributes,
    address: &NetAddress,
    deadline: Option<u64>,
) -> Result<Wires> {
    let mut joined = None;
    let endpoint = request.accept_with(|endpoint| {
        let blocks = Blocks::lend(endpoint.node(), endpoint.peer())?;
        let greeting = blocks.greeting(attributes, address).to_bytes();
        joined = Some(blocks.join(endpoint, theirs, deadline)?);
        Ok(greeting)
    })?;
    Ok(joined.expect("joined before the answer was sent").wires(endpoint))
}

impl Greeting {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend((self.attributes.reliability as u16).to_le_bytes());
        bytes.push(u8::from(self.attributes.rdma_write) | u8::from(self.attributes.rdma_read) << 1);
        bytes.push(0);
        bytes.extend((self.attributes.max_transfer as u64).to_le_bytes());
        bytes.extend((self.address.host.len() as u32).to_le_bytes());
        bytes.extend((self.address.discriminator.len() as u32).to_le_bytes());
        bytes.extend(self.transfer.to_bytes());
        bytes.extend(self.cookies.to_bytes());
        bytes.extend(&self.address.host);
        bytes.extend(&self.address.discriminator);
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Greeting> {
        let bad = Error::Invalid("the greeting of the other side");
        let word = |at: usize, len: usize| -> Option<u64> {
            Some(bytes.get(at..at + len)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
        };
        let parse = || -> Option<Greeting> {
            let (host, discriminator) = (word(16, 4)? as usize, word(20, 4)? as usize);
            let specs = bytes.get(FIXED..FIXED + 2 * QueueSpec::WIRE_LEN)?;
            let (transfer, cookies) = specs.split_at(QueueSpec::WIRE_LEN);
            let tail = &bytes[FIXED + 2 * QueueSpec::WIRE_LEN..];
            if word(0, 4)? != u64::from(MAGIC) || host.checked_add(discriminator)? != tail.len() {
                return None;
            }
            let attributes = RemoteAttributes {
                reliability: Reliability::from_bits(word(4, 2)? as u16).ok()?,
                max_transfer: word(8, 8)? as usize,
                rdma_write: word(6, 1)? & 1 != 0,
                rdma_read: word(6, 1)? & 2 != 0,
            };
            let address = NetAddress::new(&tail[..host], &tail[host..]);
            let (transfer, cookies) = (QueueSpec::from_bytes(transfer).ok()?, QueueSpec::from_bytes(cookies).ok()?);
            Some(Greeting { attributes, address, transfer, cookies })
        };
        parse().ok_or(bad)
    }
}
