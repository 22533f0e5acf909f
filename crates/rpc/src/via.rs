//! A VI as a byte stream, for both sides: the same records as over TCP, in messages of at most a buffer.
//!
//! Each side has receives posted in registered memory and posts each again when its bytes were copied out, once: the peer can
//! change what lies there. The provider knows how many the peer has posted, so that nothing is sent for which there is none.

use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use sidestep_fabric::{LinkOptions, Node};
use sidestep_sys::clock;
use sidestep_vi::{
    Buffer, Completion, ConnectionRequest, Descriptor, Error, FlowControl, MemAttributes, NetAddress, Nic, Ptag, Vi,
    ViAttributes, Way,
};

use crate::Address;
use crate::record::Assembler;

/// A NIC, and the tag of the memory of its connections.
pub(crate) struct Card {
    nic: Nic,
    ptag: Ptag,
    /// Where a server is, or is to be.
    server: NetAddress,
}

/// A connected VI and its buffers: first those to receive, then those to send.
pub(crate) struct ViaLine {
    vi: Vi,
    nic: Nic,
    memory: Buffer,
}

/// The side that sends.
pub(crate) struct Outward {
    line: Arc<ViaLine>,
    next: usize,
    busy: [bool; SENDS],
}

/// The side that receives.
pub(crate) struct Inward {
    line: Arc<ViaLine>,
    assembler: Assembler,
    buffer: Box<[u8]>,
}

/// How many buffers there are in each direction: a quarter of a MiB may be under way, and the sender is a few ahead.
const RECEIVES: usize = 16;
const SENDS: usize = 4;

/// The bytes of each, as many as the provider sends in one part.
const SIZE: usize = 16 << 10;

/// Between looks whether a server has answered.
const ASK_AGAIN: Duration = Duration::from_micros(20);

impl Card {
    /// The NIC that an address is about.
    pub fn open(address: &Address) -> io::Result<Card> {
        let (scheme, server) = match address {
            Address::Vi(name) => ("shm", NetAddress::new(&[], format!("rpc:{name}").as_bytes())),
            Address::ViIwarp(host) => ("iwarp", socket(host)?),
            other => return Err(io::Error::other(format!("{other} is no address of a VI"))),
        };
        let node = Node::open(&[scheme], &LinkOptions::default()).map_err(io::Error::other)?;
        let nic = Nic::on(node, scheme, "rpc").map_err(failed)?;
        let ptag = nic.create_ptag().map_err(failed)?;
        Ok(Card { nic, ptag, server })
    }

    /// Connects to the server. It is told the identity of the client.
    pub fn connect(&self, identity: u64, deadline: u64) -> io::Result<Arc<ViaLine>> {
        let line = self.line()?;
        let own = NetAddress::new(&[], &identity.to_le_bytes());
        // Unlike the provider's own wait, this does not ask again while nobody is there.
        let mut connecting = line.vi.begin_connect(&own, &self.server).map_err(failed)?;
        while !connecting.poll().map_err(failed)? {
            if clock::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.nic.node().progress();
            std::thread::sleep(ASK_AGAIN);
        }
        Ok(Arc::new(line))
    }

    pub fn listen(&self) -> io::Result<()> {
        self.nic.listen(&self.server).map_err(failed)
    }

    /// Waits for a client until a time.
    pub fn wait_request(&self, deadline: u64) -> io::Result<Option<ConnectionRequest>> {
        match self.nic.connect_wait(&self.server, Some(deadline)) {
            Ok(request) => Ok(Some(request)),
            Err(error) if is_timeout(&error) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Connects a client, and says who it is.
    pub fn accept(&self, mut request: ConnectionRequest) -> io::Result<(Arc<ViaLine>, u64)> {
        let identity = request.remote().discriminator.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let line = self.line()?;
        request.accept(&line.vi).map_err(failed)?;
        Ok((Arc::new(line), identity))
    }

    fn line(&self) -> io::Result<ViaLine> {
        let memory = self.nic.allocate((RECEIVES + SENDS) * SIZE, &MemAttributes::new(self.ptag)).map_err(failed)?;
        let vi = self.nic.create_vi(&ViAttributes::new(self.ptag), None, None).map_err(failed)?;
        // So the peer is asked to tell of its receives from the beginning.
        vi.set_flow_control(FlowControl::NonBlocking);
        if self.nic.is_distant() {
            // What is placed by RDMA there would have to be gone on with by later calls.
            vi.set_way(Way::Pio);
        }
        let line = ViaLine { vi, nic: self.nic.clone(), memory };
        (0..RECEIVES).try_for_each(|slot| line.post(slot))?;
        Ok(line)
    }
}

impl ViaLine {
    pub fn outward(self: &Arc<Self>) -> Outward {
        Outward { line: self.clone(), next: 0, busy: [false; SENDS] }
    }

    pub fn inward(self: &Arc<Self>, max_message: usize) -> Inward {
        Inward { line: self.clone(), assembler: Assembler::new(max_message), buffer: vec![0; SIZE].into() }
    }

    /// Ends the connection; whoever waits for a message is told.
    pub fn close(&self) {
        // It may be over already.
        let _ = self.vi.disconnect();
        self.nic.node().wake();
    }

    fn post(&self, slot: usize) -> io::Result<()> {
        self.vi.post_receive(&Descriptor::new(slot as u64, &[self.memory.segment(slot * SIZE, SIZE)])).map_err(failed)
    }
}

impl Drop for ViaLine {
    fn drop(&mut self) {
        self.vi.retire();
        // The peer could write it until now, so it is never used for another connection.
        let _ = self.nic.deregister(self.memory.address(), self.memory.handle());
    }
}

impl Outward {
    /// Sends as many bytes as the peer takes now.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        for piece in bytes.chunks(SIZE) {
            if !self.try_piece(piece)? {
                // Word of receives may have come.
                self.line.vi.progress();
                if !self.try_piece(piece)? {
                    break;
                }
            }
            sent += piece.len();
        }
        Ok(sent)
    }

    /// Sends all of it, and waits while the peer does not take it.
    pub fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        loop {
            bytes = &bytes[self.try_send(bytes)?..];
            if bytes.is_empty() {
                return Ok(());
            }
            while self.busy[self.next] {
                let sent = self.line.vi.wait_send(None).map_err(failed)?;
                self.note_sent(&sent)?;
            }
            let (piece, rest) = bytes.split_at(bytes.len().min(SIZE));
            let descriptor = self.fill(piece)?;
            self.line.vi.post_send_with(&descriptor, FlowControl::Blocking, None).map_err(failed)?;
            self.was_posted();
            bytes = rest;
        }
    }

    fn try_piece(&mut self, piece: &[u8]) -> io::Result<bool> {
        if piece.len() <= Vi::INLINE && self.line.vi.send_inline(piece, 0, 0).map_err(failed)? {
            return Ok(true);
        }
        while let Some(sent) = self.line.vi.poll_send() {
            self.note_sent(&sent)?;
        }
        if self.busy[self.next] || !self.line.vi.may_send(piece.len(), 0) {
            return Ok(false);
        }
        let descriptor = self.fill(piece)?;
        let posted = self.line.vi.try_send(&descriptor, 0).map_err(failed)?;
        if posted {
            self.was_posted();
        }
        Ok(posted)
    }

    /// Fills the next buffer.
    fn fill(&self, piece: &[u8]) -> io::Result<Descriptor> {
        let at = (RECEIVES + self.next) * SIZE;
        self.line.memory.write(at, piece).map_err(failed)?;
        Ok(Descriptor::new(self.next as u64, &[self.line.memory.segment(at, piece.len())]))
    }

    fn was_posted(&mut self) {
        self.busy[self.next] = true;
        self.next = (self.next + 1) % SENDS;
    }

    fn note_sent(&mut self, sent: &Completion) -> io::Result<()> {
        if sent.status.is_error() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if let Some(busy) = self.busy.get_mut(sent.token as usize) {
            *busy = false;
        }
        Ok(())
    }
}

impl Inward {
    /// Waits for messages until a time of the fabric: whether there was one.
    pub fn receive(&mut self, deadline: Option<u64>, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let any = Cell::new(false);
        let mut take = |message: &[u8]| {
            any.set(true);
            take(message);
        };
        while !any.get() {
            let received = match self.line.vi.poll_receive().map_or_else(|| self.line.vi.wait_receive(deadline), Ok) {
                Ok(received) => received,
                Err(error) if is_timeout(&error) => return Ok(false),
                Err(error) => return Err(failed(error)),
            };
            self.take_out(&received, &mut take)?;
        }
        Ok(true)
    }

    /// Copies the bytes of a buffer out, and posts it again.
    fn take_out(&mut self, received: &Completion, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let Self { line, assembler, buffer } = self;
        let slot = received.token as usize;
        if received.status.is_error() || slot >= RECEIVES {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let (mut at, end) = (slot * SIZE, slot * SIZE + (received.len as usize).min(SIZE));
        while at < end {
            match assembler.rest(end - at) {
                // The middle of a message goes to where it is decoded.
                Some(rest) => {
                    line.memory.read(at, rest).map_err(failed)?;
                    let count = rest.len();
                    assembler.filled(count, &mut *take);
                    at += count;
                }
                None => {
                    let bytes = &mut buffer[..end - at];
                    line.memory.read(at, bytes).map_err(failed)?;
                    let fed = assembler.feed(bytes, &mut *take);
                    fed.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a message is too long"))?;
                    at = end;
                }
            }
        }
        line.post(slot)
    }
}

/// Where a server is on iWARP: an IPv4 address and a port of TCP.
fn socket(host: &str) -> io::Result<NetAddress> {
    let found = host.to_socket_addrs()?.find_map(|address| match address {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    });
    let address = found.ok_or_else(|| io::Error::new(io::ErrorKind::AddrNotAvailable, "it has no IPv4 address"))?;
    Ok(NetAddress::new(&address.ip().octets(), format!("{address}/rpc").as_bytes()))
}

fn is_timeout(error: &Error) -> bool {
    matches!(error, Error::TimedOut | Error::Fabric(sidestep_fabric::Error::TimedOut(_)))
}

fn failed(error: Error) -> io::Error {
    match error {
        Error::NoMatch | Error::NotReachable | Error::Rejected => {
            io::Error::new(io::ErrorKind::ConnectionRefused, error)
        }
        error => io::Error::other(error),
    }
}
