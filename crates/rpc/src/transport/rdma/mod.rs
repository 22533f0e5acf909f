//! RPC over RDMA on iWARP, on the side of a client.
//!
//! A call that is too long to be sent inline lies in a read chunk, and the server reads it. A reply chunk is offered with
//! every call for a reply that is too long. Bulk data travel as the [`Binding`] says.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};
use sidestep_iwarp::{Connection, Event, Rights, Stag};
use sidestep_sys::clock;
use sidestep_sys::lock::Lock;
use sidestep_wire::oncrpc::{Auth, Xid, call, reply};
use sidestep_wire::rpcrdma::header::{Header, Kind, Repr};
use sidestep_wire::rpcrdma::{ReadSegment, Segment};

use super::{Take, Transport, left};
use crate::Procedure;
use crate::client::lock;
use crate::rdma::{self, Binding, CREDITS, HEADER, KEPT, Line, Message, Received, bulk_at};
use crate::record::ROOM;
use crate::xdr::Writer;

/// What a client wants of its connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wishes {
    pub max_message: usize,
    pub timeout: Duration,
    pub reply_chunk: usize,
    pub inline: usize,
    pub binding: Binding,
}

pub(super) fn connect(host: &str, wishes: Wishes) -> io::Result<Box<dyn Transport>> {
    let deadline = Instant::now() + wishes.timeout;
    let socket = super::stream::dial(host, wishes.timeout)?;
    let config = rdma::config(wishes.timeout, &socket);
    let connection = Connection::initiate(config, &rdma::private_data(wishes.inline), Duration::ZERO);
    let mut line = Line::new(socket, connection.map_err(io::Error::other)?, wishes.inline)?;
    let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
    let watched = line.as_fd().try_clone_to_owned()?;
    let inline = loop {
        line.advance()?;
        match line.poll_event() {
            Some(Event::Established { private_data, .. }) => break rdma::inline_limit(&private_data, wishes.inline),
            Some(event) => return Err(rdma::ended(&event)),
            None if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
            None => rdma::wait(&watched, line.interest(), &bell, Some(deadline))?,
        }
    };
    let state = State {
        line,
        // One until the server says more (RFC 8166 §3.3.1).
        granted: 1,
        calls: HashMap::new(),
        ready: VecDeque::new(),
        spare: Vec::new(),
        inline,
    };
    let (state, taken) = (Mutex::new(state), Lock::default());
    Ok(Box::new(Rdma { state, taken, credit: Condvar::new(), bell, watched, wishes }))
}

struct Rdma {
    state: Mutex<State>,
    /// Replies that are given away. One thread at a time receives, so nobody ever waits for it.
    taken: Lock<VecDeque<Reply>>,
    /// A call has ended, or there are more credits.
    credit: Condvar,
    /// Wakes whoever waits for the socket: there is output for it, or the end.
    bell: EventFd,
    /// The socket of the line, to be waited for without the lock.
    watched: OwnedFd,
    wishes: Wishes,
}

struct State {
    line: Line,
    granted: usize,
    calls: HashMap<u32, Outstanding>,
    /// Replies that nobody has taken yet.
    ready: VecDeque<Reply>,
    /// Memory for reply chunks.
    spare: Vec<Vec<u8>>,
    /// The longest message that the server takes.
    inline: usize,
}

/// A reply: in the message that it came with, from an offset on, or put together.
enum Reply {
    Inline(Message, usize),
    Whole(Vec<u8>),
}

impl Reply {
    fn bytes(&self) -> &[u8] {
        match self {
            Reply::Inline(message, start) => &message[*start..],
            Reply::Whole(bytes) => bytes,
        }
    }
}

/// The memory of a call that the server may reach until it replies.
#[derive(Default)]
struct Outstanding {
    procedure: Procedure,
    arguments: Option<Stag>,
    reply: Option<Stag>,
    bulk: Option<Stag>,
}

impl Transport for Rdma {
    fn lossy(&self) -> bool {
        false
    }

    fn send(&self, frame: &[u8]) -> io::Result<usize> {
        let mut state = lock(&self.state);
        let mut copy = state.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(frame);
        let sent = self.send_locked(&mut state, &mut copy)?;
        state.spare.push(copy);
        Ok(if sent { frame.len() } else { 0 })
    }

    fn give_whole(&self, frame: &mut Vec<u8>) -> io::Result<bool> {
        self.send_locked(&mut lock(&self.state), frame)
    }

    fn receive(&self, until: u64, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let mut taken = self.taken.lock();
        loop {
            let mut state = lock(&self.state);
            let end = state.line.advance();
            let news = state.collect(&self.wishes)?;
            std::mem::swap(&mut state.ready, &mut *taken);
            if news || !taken.is_empty() {
                self.credit.notify_all();
            }
            if taken.is_empty() {
                end?;
                if clock::now() >= until {
                    return Ok(false);
                }
                let interest = state.line.interest();
                drop(state);
                rdma::wait(&self.watched, interest, &self.bell, Some(Instant::now() + left(until)))?;
                continue;
            }
            drop(state);
            taken.iter().for_each(|reply| take(reply.bytes()));
            let mut state = lock(&self.state);
            for reply in taken.drain(..) {
                if let Reply::Inline(message, _) = reply {
                    state.line.give_back(message);
                }
            }
            return Ok(true);
        }
    }

    fn wait_sendable(&self, until: u64, take: Option<&mut Take<'_>>) -> io::Result<()> {
        let state = lock(&self.state);
        // Replies that came since the last look have freed credits, and there may be none to wait for.
        if state.calls.len() < state.granted {
            return Ok(());
        }
        let Some(take) = take else {
            let most = left(until).min(OTHERS_RECEIVE);
            drop(self.credit.wait_timeout(state, most));
            return Ok(());
        };
        drop(state);
        self.receive(until, take).map(|_| ())
    }

    fn close(&self) {
        lock(&self.state).line.close();
        let _ = self.bell.write(1);
    }
}

impl Rdma {
    fn send_locked(&self, state: &mut State, frame: &mut Vec<u8>) -> io::Result<bool> {
        if state.calls.len() >= state.granted {
            return Ok(false);
        }
        state.send(frame, &self.wishes)?;
        state.line.advance()?;
        if state.line.has_output() || state.collect(&self.wishes)? {
            // Whoever reads may wait for something else.
            let _ = self.bell.write(1);
        }
        Ok(true)
    }
}

/// How long to wait before looking again whether somebody else still receives.
const OTHERS_RECEIVE: Duration = Duration::from_millis(10);

impl State {
    /// Sends the call in a frame. If a part of it is to be read by the server, that is read from the frame itself, which is
    /// taken for it.
    fn send(&mut self, frame: &mut Vec<u8>, wishes: &Wishes) -> io::Result<()> {
        let unreadable = |_| rdma::protocol("a frame that is no call");
        let message = &frame[ROOM..];
        let (parsed, arguments) = call::Repr::parse(message).map_err(unreadable)?;
        let (xid, start, end) = (parsed.xid, message.len() - arguments.len(), message.len());
        let procedure = Procedure { program: parsed.program, version: parsed.version, procedure: parsed.procedure };
        let mut outstanding = Outstanding { procedure, ..Outstanding::default() };
        // Bulk data go apart if that is what makes the rest fit.
        let too_long = HEADER + message.len() > self.inline;
        let bulk = (wishes.binding.argument)(procedure, arguments).filter(|_| too_long);
        let bulk = bulk.and_then(|at| Some((start + at, bulk_at(arguments, at)?)));
        let (inline, apart) = match bulk {
            Some((at, len)) if HEADER + end - len <= self.inline => {
                let behind = (at + len.next_multiple_of(4)).min(end);
                ([0..at, behind..end], Some(at..at + len))
            }
            _ if too_long => ([0..0, 0..0], Some(0..end)),
            _ => ([0..end, 0..0], None),
        };
        let limit = (wishes.binding.result_limit)(procedure, arguments).map_or(0, |limit| limit as usize);
        let mut read = None;
        if let Some(apart) = apart {
            let mut next = self.spare.pop().unwrap_or_default();
            next.clear();
            let stag = self.line.register(std::mem::replace(frame, next), Rights::READ)?;
            outstanding.arguments = Some(stag);
            let (offset, length) = ((ROOM + apart.start) as u64, apart.len() as u32);
            let target = Segment { handle: stag.0, length, offset };
            read = Some(ReadSegment { position: apart.start as u32, target });
        }
        let bulk = self.offer(limit.min(wishes.max_message), &mut outstanding.bulk)?;
        let reply = self.offer(wishes.reply_chunk, &mut outstanding.reply)?;
        let chunks = [bulk.as_slice()];
        let write: &[&[Segment]] = if bulk.is_some() { &chunks } else { &[] };
        let kind = if inline.iter().all(|part| part.is_empty()) { Kind::NoMsg } else { Kind::Msg };
        let (read, reply) = (read.as_slice(), reply.is_some().then_some(reply.as_slice()));
        let header = Repr { xid, credits: CREDITS as u32, kind, read, write, reply };
        let mut bytes = self.line.buffer();
        header.emit(&mut Writer::new(&mut bytes, usize::MAX)).map_err(io::Error::other)?;
        let message = &outstanding.arguments.map_or(&frame[..], |stag| self.line.region(stag))[ROOM..];
        inline.into_iter().for_each(|part| bytes.extend_from_slice(&message[part]));
        self.line.send(bytes)?;
        self.calls.insert(xid.0, outstanding);
        Ok(())
    }

    /// Memory that the server may write to, as a segment.
    fn offer(&mut self, length: usize, stag: &mut Option<Stag>) -> io::Result<Option<Segment>> {
        if length == 0 {
            return Ok(None);
        }
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.resize(length, 0);
        let made = self.line.register(memory, Rights::WRITE)?;
        *stag = Some(made);
        Ok(Some(self.line.segment(made)))
    }

    /// Takes what the line has: whether there were replies, or more credits.
    fn collect(&mut self, wishes: &Wishes) -> io::Result<bool> {
        let mut any = false;
        while let Some(received) = self.line.poll_received()? {
            if let Received::Message(message) = received {
                any = true;
                let reply = self.reply(message, wishes)?;
                self.ready.extend(reply);
            }
        }
        match self.line.poll_event() {
            Some(event) => Err(rdma::ended(&event)),
            None => Ok(any),
        }
    }

    /// The reply in a message. What is none to an outstanding call is dropped.
    fn reply(&mut self, message: Message, wishes: &Wishes) -> io::Result<Option<Reply>> {
        let header = Header::new_checked(&message).map_err(|_| rdma::protocol("a header that cannot be understood"))?;
        let Some(outstanding) = self.calls.remove(&header.xid.0) else {
            self.line.give_back(message);
            return Ok(None);
        };
        self.granted = (header.credits as usize).clamp(1, CREDITS);
        let arguments = outstanding.arguments.map(|stag| self.line.take_back(stag));
        let [reply, bulk] =
            [outstanding.reply, outstanding.bulk].map(|stag| stag.map(|stag| (stag, self.line.take_back(stag))));
        let apart = header.write_chunks().next().map(|chunk| written(chunk.iter(), bulk.as_ref()));
        let whole = match (header.kind, apart) {
            (Kind::Msg, None) => None,
            (Kind::Msg, Some(apart)) => Some(put_back(header.rest(), apart, &outstanding.procedure, wishes)?),
            (Kind::NoMsg, apart) => {
                let chunk = header.reply_chunk().map(|chunk| written(chunk.iter(), reply.as_ref()));
                let chunk = chunk.flatten().ok_or_else(|| rdma::protocol("a reply chunk that was not offered"))?;
                match apart {
                    None => Some(chunk.to_vec()),
                    Some(apart) => Some(put_back(chunk, apart, &outstanding.procedure, wishes)?),
                }
            }
            (Kind::ChunkError, _) => Some(refused(header.xid)?),
            (Kind::VersionError { .. }, _) => {
                return Err(rdma::protocol("the server speaks another version of RPC over RDMA"));
            }
        };
        let start = message.len() - header.rest().len();
        // Large memory is not kept for ever.
        let used = [reply, bulk].into_iter().flatten().map(|(_, memory)| memory).chain(arguments);
        self.spare.extend(used.filter(|memory| memory.capacity() <= KEPT));
        self.spare.truncate(CREDITS);
        Ok(Some(match whole {
            None => Reply::Inline(message, start),
            Some(whole) => {
                self.line.give_back(message);
                Reply::Whole(whole)
            }
        }))
    }
}

/// A reply to a call whose chunks the server cannot use: it fails, and no other.
fn refused(xid: Xid) -> io::Result<Vec<u8>> {
    let body = reply::Body::Accepted { verifier: Auth::NONE, state: reply::Accepted::SystemError };
    let mut message = Vec::new();
    reply::Repr { xid, body }.emit(&mut Writer::new(&mut message, usize::MAX)).map_err(io::Error::other)?;
    Ok(message)
}

/// What the server has written to offered memory, as it says.
fn written(chunk: impl Iterator<Item = Segment>, offered: Option<&(Stag, Vec<u8>)>) -> Option<&[u8]> {
    let mut length = 0;
    for segment in chunk {
        let (stag, memory) = offered?;
        if segment.handle != stag.0 || segment.offset != length as u64 {
            return None;
        }
        length += segment.length as usize;
        memory.get(..length)?;
    }
    offered.map_or(Some(&[][..]), |(_, memory)| memory.get(..length))
}

/// A reply with its bulk data where they belong.
fn put_back(message: &[u8], apart: Option<&[u8]>, procedure: &Procedure, wishes: &Wishes) -> io::Result<Vec<u8>> {
    let apart = apart.ok_or_else(|| rdma::protocol("a write chunk that was not offered"))?;
    if apart.is_empty() {
        return Ok(message.to_vec());
    }
    let (_, results) = reply::Repr::parse(message).map_err(|_| rdma::protocol("a reply that cannot be understood"))?;
    let start = message.len() - results.len();
    let at = (wishes.binding.result)(*procedure, results);
    let put = at.and_then(|at| rdma::insert(message, start + at, apart, wishes.max_message));
    put.ok_or_else(|| rdma::protocol("bulk data for which there is no place in the reply"))
}
