//! One connection: its place on a trunk, and how the two sides agree on it.

use std::sync::Weak;

use sidestep_fabric::{Endpoint, RdmaQueue, Request, event::SourceId, queue::QueueSpec};
use sidestep_wire::cursor::little::{Reader, Writer};

use crate::{
    address::NetAddress,
    attributes::{Reliability, RemoteAttributes, ViAttributes},
    entry::{Credit, Reach},
    error::{Error, Result},
    fifo::Later,
    memory::Key,
    nic::NicCore,
    trunk::Route,
    vi::ViCore,
};

/// Everything that exists only while a VI is connected. What every message touches comes first: with many connections each
/// line of memory counts.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Line {
    pub(crate) route: Route,
    /// The peer's number for this connection.
    pub(crate) theirs: u32,
    /// Receives used up at the peer by what was sent.
    pub(crate) sent: u32,
    /// Receives the peer has posted and nobody has used; the first is for message number `sent`.
    pub(crate) credits: Later<Credit>,
    /// Where in the trunk the last message ends whose bytes went in the ring.
    pub(crate) carried: u64,
    /// RDMA writes that the peer carries out and has not answered.
    pub(crate) writes: u32,
    /// The window that a receive was announced in last.
    pub(crate) window: Option<(Key, u32)>,
    pub(crate) reach: Reaches,
    pub(crate) rdma: Option<RdmaQueue>,
    pub(crate) remote: RemoteAttributes,
    /// Whether the peer may place messages in receives of this side.
    pub(crate) places: bool,
    /// Whether the peer was asked to tell of its receives, and whether it has.
    pub(crate) asked: bool,
    pub(crate) told: bool,
    /// Where the end of the connection is reported.
    pub(crate) ended: Option<SourceId>,
    pub(crate) endpoint: Endpoint,
}

/// What each side can reach of the other's memory by itself.
#[derive(Debug)]
pub(crate) struct Reaches {
    /// Memory of the peer.
    pub(crate) theirs: Vec<Reach>,
    /// Memory of this side that the peer was told of.
    pub(crate) ours: Vec<Key>,
    /// The notes of this side and of the peer for which these hold.
    pub(crate) notes: [u64; 2],
}

/// What one side tells the other when a connection is made.
#[derive(Debug, Clone)]
pub(crate) struct Greeting {
    pub(crate) attributes: RemoteAttributes,
    pub(crate) address: NetAddress,
    trunk: QueueSpec,
    line: u32,
}

impl Line {
    /// Bytes at its beginning that every message touches.
    pub(crate) const HOT: usize = std::mem::offset_of!(Line, writes);
}

const MAGIC: u32 = u32::from_le_bytes(*b"via2");

impl Line {
    /// The connection that two greetings make, once the trunk is joined.
    pub(crate) fn new(endpoint: Endpoint, route: Route, theirs: &Greeting) -> Line {
        let notes = [0, u64::from(route.note)];
        Line {
            route,
            theirs: theirs.line,
            sent: 0,
            credits: Later::default(),
            carried: 0,
            writes: 0,
            window: None,
            reach: Reaches { theirs: Vec::new(), ours: Vec::new(), notes },
            rdma: None,
            remote: theirs.attributes,
            places: true,
            asked: false,
            told: false,
            ended: None,
            endpoint,
        }
    }

    /// The queue for transfers, made when it is first needed.
    pub(crate) fn rdma(&mut self) -> &RdmaQueue {
        self.rdma.get_or_insert_with(|| RdmaQueue::new(self.endpoint.node(), 4096))
    }
}

/// Says yes to a request: joins the trunk, and tells the other side.
pub(crate) fn accept(
    request: Request,
    theirs: &Greeting,
    (nic, vi): (&NicCore, &Weak<ViCore>),
    attributes: &ViAttributes,
    address: &NetAddress,
    deadline: Option<u64>,
) -> Result<Line> {
    let mut made = None;
    let endpoint = request.accept_with(|endpoint| {
        let trunk = nic.trunks.of(endpoint.node(), endpoint.peer())?;
        trunk.join(endpoint, &theirs.trunk, deadline)?;
        let full = sidestep_fabric::Error::Full { what: "the trunk", limit: 0 };
        let route = trunk.route(vi).map_err(|_| full)?;
        let greeting = Greeting::new(attributes, address, &route).to_bytes();
        made = Some(route);
        Ok(greeting)
    })?;
    Ok(Line::new(endpoint, made.expect("made before the answer was sent"), theirs))
}

impl Greeting {
    pub(crate) fn new(attributes: &ViAttributes, address: &NetAddress, route: &Route) -> Greeting {
        Greeting {
            attributes: RemoteAttributes::from(attributes),
            address: address.clone(),
            trunk: route.trunk.spec(),
            line: route.number,
        }
    }

    /// The trunk of the side that sent it.
    pub(crate) fn trunk(&self) -> &QueueSpec {
        &self.trunk
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let attributes = &self.attributes;
        let mut bytes = Vec::with_capacity(256);
        Writer::new(&mut bytes)
            .u32(MAGIC)
            .u16(attributes.reliability as u16)
            .u8(u8::from(attributes.rdma_write) | u8::from(attributes.rdma_read) << 1)
            .u8(0)
            .u64(attributes.max_transfer as u64)
            .u32(self.address.host.len() as u32)
            .u32(self.address.discriminator.len() as u32)
            .u32(self.line)
            .bytes(&self.trunk.to_bytes())
            .bytes(&self.address.host)
            .bytes(&self.address.discriminator);
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Greeting> {
        Greeting::read(&mut Reader::new(bytes)).ok_or(Error::Invalid("the greeting of the other side"))
    }

    fn read(fields: &mut Reader<'_>) -> Option<Greeting> {
        if fields.u32().ok()? != MAGIC {
            return None;
        }
        let reliability = Reliability::from_bits(fields.u16().ok()?).ok()?;
        let rdma = fields.u8().ok()?;
        fields.u8().ok()?;
        let max_transfer = fields.u64().ok()? as usize;
        let [host, discriminator, line] = [fields.u32().ok()?, fields.u32().ok()?, fields.u32().ok()?];
        let trunk = QueueSpec::from_bytes(fields.take(QueueSpec::WIRE_LEN).ok()?).ok()?;
        let address = NetAddress::new(fields.take(host as usize).ok()?, fields.take(discriminator as usize).ok()?);
        fields.end().ok()?;
        let (rdma_write, rdma_read) = (rdma & 1 != 0, rdma & 2 != 0);
        let attributes = RemoteAttributes { reliability, max_transfer, rdma_write, rdma_read };
        Some(Greeting { attributes, address, trunk, line })
    }
}
