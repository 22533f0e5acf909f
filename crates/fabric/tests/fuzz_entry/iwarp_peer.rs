//! A peer of the iWARP link that says what it likes: over a real stream, with an engine of its own for what must be well
//! formed to get anywhere.

use std::{
    collections::HashMap,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use sidestep_fabric::{
    Access, CloseReason, Cookie, Refusal,
    cookie::RegionId,
    link::{
        Atomic, Link, LinkOptions, Mapping, Outcome, Pages, PeerNumber, Target as LinkTarget, Ticket,
        iwarp::{
            IwarpLink,
            control::{Control, Hello},
        },
    },
};
use sidestep_iwarp::*;

/// The link that is attacked, and what it owns.
pub struct Victim {
    pub link: IwarpLink,
    pub address: SocketAddr,
    pub owner: Owner,
}

/// Owns [`LEN`] bytes under one cookie.
pub struct Owner {
    pub bytes: Mutex<[u8; LEN]>,
    pub closed: Mutex<Vec<(PeerNumber, CloseReason)>>,
    pub messages: Mutex<Vec<Vec<u8>>>,
}

/// A peer with an engine.
pub struct Peer {
    stream: TcpStream,
    pub connection: Connection,
    table: MemoryTable,
    buffers: Buffers,
    gather: Gather,
    input: Vec<u8>,
    pub events: Vec<Event>,
    began: Instant,
    next: u64,
    pub sink: Stag,
}

#[derive(Default)]
struct Buffers(HashMap<u64, Vec<u8>>);

/// Bytes of the owner.
pub const LEN: usize = 256;
/// As that of the other tests, whose crate the fuzz targets do not have.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// The cookie that the owner honours.
pub fn good_cookie() -> Cookie {
    let mut bytes = [0; Cookie::WIRE_LEN];
    bytes[16] = 7;
    bytes[24..32].copy_from_slice(&(LEN as u64).to_le_bytes());
    bytes[32] = 7;
    Cookie::from_bytes(&bytes).expect("a well-formed cookie")
}

/// What a link says when a connection is made.
pub fn hello() -> Vec<u8> {
    Hello { max_message: 4096 + 128, max_transfer: 128 * 1024 }.to_bytes().to_vec()
}

impl Victim {
    pub fn new(options: LinkOptions) -> Victim {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let link = IwarpLink::new(options).expect("a link");
        let [low, middle, high, _] = std::process::id().to_le_bytes();
        let port = 30_000 + NEXT.fetch_add(1, Ordering::Relaxed) % 2000;
        let name = format!("127.{}.{middle}.{low}:{port}", 64 + high);
        link.listen(&name).expect("a free port");
        let owner = Owner { bytes: Mutex::new([0; LEN]), closed: Mutex::default(), messages: Mutex::default() };
        Victim { link, address: name.parse().expect("an address"), owner }
    }

    pub fn poll(&self) {
        self.link.poll(&self.owner, true);
    }
}

impl Peer {
    /// Connects, and begins set-up with this private data.
    pub fn new(victim: &Victim, private: &[u8]) -> Peer {
        let stream = TcpStream::connect(victim.address).expect("someone who listens");
        stream.set_nonblocking(true).expect("a stream that does not block");
        let identity = StreamIdentity { domain: DomainId(9), stream: StreamId(9) };
        let config = Config { identity, peer_to_peer: true, ird: 32, ord: 32, segment_size: 4000, ..Config::default() };
        let mut connection = Connection::initiate(config, private, Duration::ZERO).expect("private data that fits");
        let mut table = MemoryTable::new();
        let region = Region {
            base: TaggedOffset(0),
            length: 1 << 20,
            rights: Rights::NONE,
            domain: identity.domain,
            stream: None,
        };
        let sink = table.register(region, || 77).expect("a free tag");
        for work in 0..64 {
            connection.post_receive(WorkId(work), 8192).expect("room for receives");
        }
        Peer {
            stream,
            connection,
            table,
            buffers: Buffers::default(),
            gather: Gather::new(),
            input: Vec::new(),
            events: Vec::new(),
            began: Instant::now(),
            next: 1000,
            sink,
        }
    }

    /// A peer whose set-up is over.
    pub fn established(victim: &Victim) -> Peer {
        let mut peer = Peer::new(victim, &hello());
        peer.drive(victim, |peer| peer.events.iter().any(|event| matches!(event, Event::Established { .. })));
        // The signal that it is ready, without which the other side says nothing.
        peer.step();
        peer
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write(bytes);
    }

    /// Posts a send.
    pub fn send(&mut self, bytes: &[u8], invalidate: Option<Stag>) {
        let source = self.buffer(bytes.to_vec());
        let _ = self.connection.post_send(WorkId(self.next), source, SendKind { solicited: false, invalidate });
    }

    /// Posts what the protocol knows.
    pub fn say(&mut self, control: &Control<'_>) {
        let mut bytes = Vec::new();
        control.emit(&mut bytes);
        self.send(&bytes, None);
    }

    pub fn write(&mut self, stag: Stag, offset: u64, bytes: &[u8]) {
        let source = self.buffer(bytes.to_vec());
        let _ = self.connection.post_write(WorkId(self.next), source, stag, TaggedOffset(offset));
    }

    pub fn read(&mut self, source: Stag, offset: u64, size: u32) {
        let (sink, sink_offset, source_offset) = (self.sink, TaggedOffset(0), TaggedOffset(offset));
        let request = ReadRequest { sink, sink_offset, size, source, source_offset };
        let _ = self.connection.post_read(WorkId(self.next), request, &self.table);
    }

    pub fn atomic(&mut self, stag: Stag, offset: u64, operation: Operation) {
        let _ = self.connection.post_atomic(WorkId(self.next), stag, TaggedOffset(offset), operation);
    }

    /// Lets both sides go on until `found`, which a busy machine may take long for.
    pub fn drive(&mut self, victim: &Victim, found: impl Fn(&Peer) -> bool) {
        while !found(self) {
            victim.poll();
            self.step();
            assert!(self.began.elapsed() < PATIENCE, "it never happened: {:?}", self.events);
        }
    }

    /// Writes and reads what there is.
    pub fn step(&mut self) {
        let now = self.began.elapsed();
        let Peer { connection, table, buffers, gather, .. } = self;
        connection.poll_transmit(now, 1 << 20, table, buffers, gather);
        let bytes: Vec<u8> = gather.pieces().flat_map(|piece| buffers.bytes(piece).to_vec()).collect();
        let sent = if bytes.is_empty() { 0 } else { self.stream.write(&bytes).unwrap_or(0) };
        gather.advance(sent as u64);
        connection.handle_transmitted(now, sent as u64);
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => connection.handle_end(now),
            Ok(count) => self.input.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => connection.handle_end(now),
        }
        let taken = connection.handle_input(now, &self.input, table, buffers);
        self.input.drain(..taken);
        while connection.poll_completion().is_some() {}
        self.events.extend(std::iter::from_fn(|| connection.poll_event()));
    }

    fn buffer(&mut self, bytes: Vec<u8>) -> SourceSlice {
        self.next += 1;
        let len = bytes.len() as u32;
        self.buffers.0.insert(self.next, bytes);
        SourceSlice { source: Source::Buffer(BufferId(self.next)), offset: 0, len }
    }
}

impl Buffers {
    fn bytes<'a>(&'a self, piece: Piece<'a>) -> &'a [u8] {
        match piece {
            Piece::Bytes(bytes) => bytes,
            Piece::Source(slice) => self.slice(slice),
        }
    }

    fn slice(&self, slice: SourceSlice) -> &[u8] {
        let Source::Buffer(BufferId(id)) = slice.source else { return &[] };
        &self.0[&id][slice.offset as usize..][..slice.len as usize]
    }
}

impl Host for Buffers {
    fn place(&mut self, _: Target, _: &[u8]) {}

    fn atomic(&mut self, _: Stag, _: u64, _: Operation) -> u64 {
        0
    }

    fn checksum(&mut self, crc: u32, slice: SourceSlice) -> u32 {
        crc32c(crc, self.slice(slice))
    }
}

impl Owner {
    fn range(&self, cookie: &Cookie, offset: u64, len: usize) -> Result<std::ops::Range<usize>, Refusal> {
        if *cookie != good_cookie() {
            return Err(Refusal::Forged);
        }
        let range = Refusal::Range { offset, len: len as u64 };
        let start = usize::try_from(offset).map_err(|_| range)?;
        if start.checked_add(len).is_none_or(|end| end > LEN) {
            return Err(range);
        }
        Ok(start..start + len)
    }
}

impl LinkTarget for Owner {
    fn opened(&self, _: PeerNumber) {}

    fn message(&self, _: PeerNumber, bytes: &[u8]) {
        self.messages.lock().expect("no panic").push(bytes.to_vec());
    }

    fn place(&self, _: PeerNumber, cookie: &Cookie, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let range = self.range(cookie, offset, bytes.len())?;
        self.bytes.lock().expect("no panic")[range].copy_from_slice(bytes);
        Ok(())
    }

    fn fetch(&self, _: PeerNumber, cookie: &Cookie, offset: u64, bytes: &mut [u8]) -> Result<(), Refusal> {
        let range = self.range(cookie, offset, bytes.len())?;
        bytes.copy_from_slice(&self.bytes.lock().expect("no panic")[range]);
        Ok(())
    }

    fn atomic(&self, _: PeerNumber, cookie: &Cookie, offset: u64, _: Atomic) -> Result<u64, Refusal> {
        self.range(cookie, offset, 8).map(|_| 0)
    }

    fn grant(&self, _: PeerNumber, cookie: &Cookie) -> Result<Option<Pages>, Refusal> {
        self.range(cookie, 0, 0).map(|_| None)
    }

    fn offered(&self, _: PeerNumber, _: &Cookie, _: Mapping) {}

    fn fired(&self, _: RegionId, _: usize, _: Access) {}

    fn fired_unknown(&self) {}

    fn completed(&self, _: Ticket, _: Outcome) {}

    fn closed(&self, peer: PeerNumber, reason: CloseReason) {
        self.closed.lock().expect("no panic").push((peer, reason));
    }
}
