//! The calls of one connection that are outstanding: sending them, and what their replies bring back.

use std::collections::{HashMap, VecDeque};
use std::io;

use sidestep_iwarp::{Rights, Stag};
use sidestep_wire::oncrpc::{self, Auth, Xid, call, reply};
use sidestep_wire::rpcrdma::header::{Header, Kind, Repr};
use sidestep_wire::rpcrdma::{ReadSegment, Segment};

use super::Wishes;
use super::memory::{Frame, Memory};
use crate::Procedure;
use crate::rdma::{self, CREDITS, HEADER, Line, Message, Received, bulk_at};
use crate::record::ROOM;
use crate::xdr::Writer;

pub(super) struct State {
    pub line: Line,
    granted: usize,
    /// Somebody waits for credits: whoever has not waited goes behind.
    waits: bool,
    calls: HashMap<u32, Outstanding>,
    /// Replies that nobody has taken yet.
    pub ready: VecDeque<Reply>,
    memory: Memory,
    /// The longest message that the server takes.
    inline: usize,
}

/// A reply: in the message that it came with, from an offset on, or put together.
pub(super) enum Reply {
    Inline(Message, usize),
    Whole(Vec<u8>),
}

impl Reply {
    pub fn bytes(&self) -> &[u8] {
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

impl State {
    pub fn new(line: Line, inline: usize) -> Self {
        Self {
            line,
            // One until the server says more (RFC 8166 §3.3.1).
            granted: 1,
            waits: false,
            calls: HashMap::new(),
            ready: VecDeque::new(),
            memory: Memory::default(),
            inline,
        }
    }

    /// Whether one more call may be outstanding.
    pub fn has_credit(&self) -> bool {
        self.calls.len() < self.granted
    }

    /// Whether more than one call is outstanding.
    pub fn has_others(&self) -> bool {
        self.calls.len() > 1
    }

    /// Sends the call in a frame, if it may: whether it has. One call at a time may have `waited`; until it is sent, others that
    /// have not are not.
    pub fn try_send(&mut self, frame: Frame<'_>, waited: bool, wishes: &Wishes) -> io::Result<bool> {
        if !self.has_credit() || self.waits && !waited {
            self.waits |= waited;
            return Ok(false);
        }
        self.waits &= !waited;
        self.send(frame, wishes)?;
        Ok(true)
    }

    /// Sends the call in a frame. If a part of it is to be read by the server, that is read from the frame itself, or from a copy.
    fn send(&mut self, mut frame: Frame<'_>, wishes: &Wishes) -> io::Result<()> {
        let unreadable = |_| rdma::protocol("a frame that is no call");
        let message = &frame.bytes()[ROOM..];
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
            let stag = self.line.register(frame.take(&mut self.memory), Rights::READ)?;
            outstanding.arguments = Some(stag);
            let (offset, length) = ((ROOM + apart.start) as u64, apart.len() as u32);
            let target = Segment { handle: stag.0, length, offset };
            read = Some(ReadSegment { position: apart.start as u32, target });
        }
        let (bulk, reply) = (limit.min(wishes.max_message), wishes.reply_chunk);
        if bulk > 0 {
            outstanding.bulk = Some(self.line.register(self.memory.for_bulk(bulk), Rights::WRITE)?);
        }
        if reply > 0 {
            outstanding.reply = Some(self.line.register(self.memory.for_reply(reply), Rights::WRITE)?);
        }
        let [bulk, reply] =
            [outstanding.bulk, outstanding.reply].map(|offered| offered.map(|stag| self.line.segment(stag)));
        let chunks = [bulk.as_slice()];
        let write: &[&[Segment]] = if bulk.is_some() { &chunks } else { &[] };
        let kind = if inline.iter().all(|part| part.is_empty()) { Kind::NoMsg } else { Kind::Msg };
        let (read, reply) = (read.as_slice(), reply.is_some().then_some(reply.as_slice()));
        let header = Repr { xid, credits: CREDITS as u32, kind, read, write, reply };
        let mut bytes = self.line.buffer();
        header.emit(&mut Writer::new(&mut bytes, usize::MAX)).map_err(io::Error::other)?;
        let message = &outstanding.arguments.map_or(frame.bytes(), |stag| self.line.region(stag))[ROOM..];
        inline.into_iter().for_each(|part| bytes.extend_from_slice(&message[part]));
        self.line.send(bytes)?;
        self.calls.insert(xid.0, outstanding);
        Ok(())
    }

    /// Takes what the line has: whether there were replies, or more credits.
    pub fn collect(&mut self, wishes: &Wishes) -> io::Result<bool> {
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
        // The call is not outstanding any more, and would never end if it were not for this reply.
        if !matches!(oncrpc::peek(whole.as_deref().unwrap_or(header.rest())), Ok((of, false)) if of == header.xid) {
            return Err(rdma::protocol("a message that is not the reply to the call in its header"));
        }
        let start = message.len() - header.rest().len();
        self.memory.keep([arguments, reply.map(|(_, memory)| memory), bulk.map(|(_, memory)| memory)]);
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
