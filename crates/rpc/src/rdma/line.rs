//! One iWARP connection over one TCP connection that does not block. Whoever has it calls [`Line::advance`] when the
//! socket or the clock says so.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IoSlice, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::PollFlags;
use sidestep_iwarp::{
    BufferId, Config, Connection, Event, Gather, MemoryTable, Outcome, Piece, ReadRequest, Region, Rights, SendKind,
    Source, SourceSlice, Stag, StreamIdentity, TaggedOffset, Transport, Vectors, WorkId,
};
use sidestep_wire::rpcrdma::Segment;

use super::input::{Came, Input};
use super::{CREDITS, KEPT, has_one_address, protocol};

pub(crate) struct Line {
    connection: Connection,
    table: MemoryTable,
    memory: Vectors,
    socket: TcpStream,
    gather: Gather,
    output: Output,
    input: Input,
    spare: Spare,
    begin: Instant,
    next_name: u64,
    /// The length of receive buffers.
    inline: usize,
    tags: RandomState,
    /// The peer has closed its half.
    peer_done: bool,
    ended: bool,
}

/// What was to be sent and lies in memory that was taken back, from `sent` on. It goes before what is gathered.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    sent: usize,
}

/// Buffers that are used again, so that messages need no memory of their own.
#[derive(Default)]
struct Spare {
    sends: Vec<Vec<u8>>,
    receives: Vec<Vec<u8>>,
}

/// A message in the buffer that it was received in, which is to be [given back](Line::give_back).
pub(crate) struct Message {
    buffer: Vec<u8>,
    len: usize,
}

#[cfg(test)]
impl Message {
    pub fn of(bytes: &[u8]) -> Self {
        Self { buffer: bytes.to_vec(), len: bytes.len() }
    }
}

impl Deref for Message {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[..self.len.min(self.buffer.len())]
    }
}

/// What the peer has done.
pub(crate) enum Received {
    /// A message came.
    Message(Message),
    /// Something that was posted is done.
    Done(WorkId),
}

/// How much is gathered at a time.
const BUDGET: u64 = 256 << 10;

/// How many pieces of memory are written at a time.
const PIECES: usize = 64;

/// A peer that sends all the time is looked away from after so many reads.
const READS: usize = 16;

impl Line {
    /// Posts the receive buffers at once: no message comes too early.
    pub fn new(socket: TcpStream, connection: Connection, inline: usize) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        tune_for_path(&socket);
        let mut line = Self {
            connection,
            table: MemoryTable::new(),
            memory: Vectors::default(),
            socket,
            gather: Gather::new(),
            output: Output::default(),
            input: Input::default(),
            spare: Spare::default(),
            begin: Instant::now(),
            next_name: 0,
            inline,
            tags: RandomState::new(),
            peer_done: false,
            ended: false,
        };
        for _ in 0..CREDITS {
            line.post_receive()?;
        }
        Ok(line)
    }

    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub fn poll_event(&mut self) -> Option<Event> {
        self.connection.poll_event()
    }

    /// A message was dealt with: its buffer is used again.
    pub fn give_back(&mut self, message: Message) {
        self.spare.receives.push(message.buffer);
    }

    /// An empty buffer to send from.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.sends.pop().unwrap_or_default()
    }

    /// The next message, or the end of something that was posted.
    pub fn poll_received(&mut self) -> io::Result<Option<Received>> {
        while let Some(completion) = self.connection.poll_completion() {
            let work = completion.work;
            return match completion.outcome {
                Outcome::Received { len, .. } => {
                    let buffer = self.memory.receives.remove(&work).unwrap_or_default();
                    self.post_receive()?;
                    Ok(Some(Received::Message(Message { buffer, len: len as usize })))
                }
                Outcome::Sent => {
                    if let Some(mut buffer) = self.memory.buffers.remove(&BufferId(work.0))
                        && buffer.capacity() <= KEPT
                        && self.spare.sends.len() < CREDITS
                    {
                        buffer.clear();
                        self.spare.sends.push(buffer);
                    }
                    Ok(Some(Received::Done(work)))
                }
                Outcome::Read => Ok(Some(Received::Done(work))),
                Outcome::Flushed => continue,
                _ => Err(protocol("immediate data or atomics, which RPC does not use")),
            };
        }
        Ok(None)
    }

    /// Memory that the peer may reach, with its tag. Offsets begin at zero.
    pub fn register(&mut self, bytes: Vec<u8>, rights: Rights) -> io::Result<Stag> {
        // The table is of this connection alone.
        let StreamIdentity { domain, stream } = Config::default().identity;
        let length = bytes.len() as u64;
        let region = Region { base: TaggedOffset(0), length, rights, domain, stream: Some(stream) };
        let Self { table, tags, next_name, .. } = self;
        let tag = || {
            *next_name += 1;
            tags.hash_one(*next_name) as u32
        };
        let stag = table.register(region, tag).map_err(io::Error::other)?;
        self.memory.regions.insert(stag, bytes);
        Ok(stag)
    }

    /// Takes memory back: the peer cannot reach it any more.
    pub fn take_back(&mut self, stag: Stag) -> Vec<u8> {
        self.table.deregister(stag);
        let Self { memory, gather, output, .. } = self;
        let is_from_there = |piece| matches!(piece, Piece::Source(slice) if slice.source == Source::Region(stag));
        if gather.pieces().any(is_from_there) {
            // A peer that has asked for it, and does not wait for it, gets it nevertheless.
            memory.collect(gather, &mut output.bytes);
        }
        self.memory.regions.remove(&stag).unwrap_or_default()
    }

    /// What lies in registered memory.
    pub fn region(&self, stag: Stag) -> &[u8] {
        self.memory.regions.get(&stag).map_or(&[], Vec::as_slice)
    }

    pub fn segment(&self, stag: Stag) -> Segment {
        Segment { handle: stag.0, length: self.region(stag).len() as u32, offset: 0 }
    }

    /// Sends a message.
    pub fn send(&mut self, message: Vec<u8>) -> io::Result<WorkId> {
        let (work, source) = self.source(message);
        self.connection.post_send(work, source, SendKind::default()).map_err(io::Error::other)?;
        Ok(work)
    }

    /// Writes bytes to memory of the peer. They arrive before a message that is sent later.
    pub fn write(&mut self, bytes: &[u8], to: Segment) -> io::Result<WorkId> {
        let mut buffer = self.buffer();
        buffer.extend_from_slice(bytes);
        let (work, source) = self.source(buffer);
        let posted = self.connection.post_write(work, source, Stag(to.handle), TaggedOffset(to.offset));
        posted.map_err(io::Error::other)?;
        Ok(work)
    }

    /// Reads memory of the peer into an own region.
    pub fn read(&mut self, from: Segment, sink: Stag, offset: u64) -> io::Result<WorkId> {
        let work = self.name();
        let request = ReadRequest {
            sink,
            sink_offset: TaggedOffset(offset),
            size: from.length,
            source: Stag(from.handle),
            source_offset: TaggedOffset(from.offset),
        };
        self.connection.post_read(work, request, &self.table).map_err(io::Error::other)?;
        Ok(work)
    }

    /// Does what can be done without waiting. An error is the end of the connection.
    pub fn advance(&mut self) -> io::Result<()> {
        self.transmit()?;
        self.answer()
    }

    /// The same while the peer is likely to have sent more: what waits goes out with the answers to that, in fewer packets.
    pub fn answer(&mut self) -> io::Result<()> {
        self.connection.handle_timeout(self.begin.elapsed());
        for _ in 0..READS {
            if !self.receive()? {
                break;
            }
        }
        // What has come may have to be answered.
        self.transmit()?;
        match self.connection.transport() {
            Transport::Open => Ok(()),
            _ if self.ended => Err(io::ErrorKind::ConnectionReset.into()),
            transport => {
                self.ended = true;
                let how = if transport == Transport::Finish { Shutdown::Write } else { Shutdown::Both };
                let _ = self.socket.shutdown(how);
                // What it has to say is said first.
                Ok(())
            }
        }
    }

    /// What to wait for, and when to look at the latest.
    pub fn interest(&self) -> (PollFlags, Option<Instant>) {
        let mut events = PollFlags::POLLIN;
        if self.has_output() {
            events |= PollFlags::POLLOUT;
        }
        (events, self.connection.poll_timeout().map(|at| self.begin + at))
    }

    /// Whether the socket has not taken everything.
    pub fn has_output(&self) -> bool {
        self.output.sent < self.output.bytes.len() || !self.gather.is_empty()
    }

    /// Ends the connection; whoever waits for its socket is told.
    pub fn close(&mut self) {
        self.connection.close(self.begin.elapsed());
        // The peer learns it from the socket if not from this.
        let _ = self.transmit();
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    fn name(&mut self) -> WorkId {
        self.next_name += 1;
        WorkId(self.next_name)
    }

    fn source(&mut self, bytes: Vec<u8>) -> (WorkId, SourceSlice) {
        let work = self.name();
        let (id, len) = (BufferId(work.0), bytes.len() as u32);
        self.memory.buffers.insert(id, bytes);
        (work, SourceSlice { source: Source::Buffer(id), offset: 0, len })
    }

    fn post_receive(&mut self) -> io::Result<()> {
        let buffer = self.spare.receives.pop().unwrap_or_else(|| vec![0; self.inline]);
        let work = self.name();
        let capacity = buffer.len() as u32;
        self.memory.receives.insert(work, buffer);
        self.connection.post_receive(work, capacity).map_err(io::Error::other)
    }

    fn transmit(&mut self) -> io::Result<()> {
        loop {
            if !self.has_output() {
                let now: Duration = self.begin.elapsed();
                let Self { connection, table, memory, gather, .. } = self;
                connection.poll_transmit(now, BUDGET, table, memory, gather);
                if gather.is_empty() {
                    return Ok(());
                }
            }
            match self.write_some() {
                Ok(count) => self.connection.handle_transmitted(self.begin.elapsed(), count as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the socket what it takes, from where it lies.
    fn write_some(&mut self) -> io::Result<usize> {
        let Self { socket, memory, gather, output, .. } = self;
        if output.sent < output.bytes.len() {
            let count = (&*socket).write(&output.bytes[output.sent..])?;
            output.sent += count;
            if output.sent == output.bytes.len() {
                (output.bytes, output.sent) = (Vec::new(), 0);
            }
            return Ok(count);
        }
        let mut slices = [IoSlice::new(&[]); PIECES];
        for (slice, piece) in slices.iter_mut().zip(gather.pieces()) {
            *slice = IoSlice::new(match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::Source(source) => memory.source(source),
            });
        }
        let count = (&*socket).write_vectored(&slices[..gather.piece_count().min(PIECES)])?;
        gather.advance(count as u64);
        Ok(count)
    }

    /// Takes what has come; `false` if there is no more.
    fn receive(&mut self) -> io::Result<bool> {
        if self.peer_done {
            return Ok(false);
        }
        let Self { connection, table, memory, input, socket, begin, .. } = self;
        let needed = connection.needed(input.rest());
        match input.fill(socket, needed)? {
            Came::Nothing => Ok(false),
            Came::End => {
                self.peer_done = true;
                connection.handle_end(begin.elapsed());
                Ok(false)
            }
            Came::Some { more } => {
                let consumed = connection.handle_input(begin.elapsed(), input.rest(), table, memory);
                input.consume(consumed);
                Ok(more)
            }
        }
    }
}

/// A stream from an address to itself is not to be paced, as the congestion control of the system may do (BBR: half of the
/// bandwidth). Between addresses the system decides. Reno is in every kernel, and everybody may use it.
fn tune_for_path(socket: &TcpStream) {
    if has_one_address(socket) {
        // It works without, too.
        let _ = rustix::net::sockopt::set_tcp_congestion(socket, "reno");
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
