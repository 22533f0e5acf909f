//! What comes over a connection. Of the callers that wait, one has the reader, and reads for all.

use std::io;
use std::ops::RangeInclusive;
use std::time::Instant;

use sidestep_wire::giop::{MessageType, Version, header, locate, reply};

use super::{Connection, Lost};
use crate::assembler::{Assembler, Message};
use crate::buffers;
use crate::cdr::{ByteOrder, CharSet, Format};
use crate::strand::{Look, ReceiveHalf};

pub(super) struct Reader {
    receiver: Box<dyn ReceiveHalf>,
    assembler: Assembler,
    /// The beginning of a message that lies in the memory of the transport.
    head: Vec<u8>,
    /// The sizes of messages that are taken from there.
    sizes: RangeInclusive<usize>,
}

/// A reply, whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    pub(crate) format: Format,
    pub(crate) status: Status,
    /// Where the body begins.
    pub(crate) body: usize,
    /// Where fragments begin that values are aligned in.
    pub(crate) joints: Vec<usize>,
}

/// What was asked, and so which answers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// A request.
    Replied(reply::Status),
    /// Where an object is.
    Located(locate::Status),
}

/// The request of the caller that reads, and its reply once it has come.
pub(super) struct Own<'a> {
    pub(super) id: Option<u32>,
    /// Where the reply is put.
    pub(super) reply: &'a mut Reply,
    pub(super) has_come: bool,
}

/// Why nothing more can be read.
pub(super) enum Fault {
    Lost(Lost),
    /// The server has sent what is not GIOP.
    Malformed,
}

impl Reader {
    pub(super) fn new(receiver: Box<dyn ReceiveHalf>, sizes: RangeInclusive<usize>) -> Self {
        Self { receiver, assembler: Assembler::new(*sizes.end()), head: Vec::new(), sizes }
    }

    /// Reads at least one message and hands out all that have come.
    pub(super) fn read(
        &mut self,
        connection: &Connection,
        own: &mut Own<'_>,
        deadline: Option<Instant>,
    ) -> Result<(), Fault> {
        let mut delivered = false;
        loop {
            while !self.assembler.is_empty() && self.hand_out_kept(connection, own)? {
                delivered = true;
            }
            if delivered {
                return Ok(());
            }
            let Self { receiver, assembler, sizes, .. } = self;
            let received = match assembler.is_empty() {
                true => receiver.receive_below(*sizes.start(), assembler.space(), deadline),
                false => receiver.receive(assembler.space(), deadline).map(Some),
            };
            match received.map_err(|error| Fault::Lost(error.into()))? {
                Some(0) => return Err(Fault::Lost(Lost::Broken)),
                Some(count) => assembler.filled(count),
                None => delivered = self.hand_out_shown(connection, own, deadline)?,
            }
        }
    }

    /// Hands out the next message that has come; false if not all of it has.
    #[inline]
    fn hand_out_kept(&mut self, connection: &Connection, own: &mut Own<'_>) -> Result<bool, Fault> {
        let kept = self.assembler.kept();
        if let Some(plain) = reply::Plain::parse(kept) {
            deliver_plain(connection, own, plain, &kept[..plain.len])?;
            self.assembler.consume(plain.len);
            return Ok(true);
        }
        match self.assembler.next().map_err(|_| Fault::Malformed)? {
            Some(message) => deliver(connection, own, &message).map(|()| true),
            None => Ok(false),
        }
    }

    /// Hands out a large message where it lies; false if it has to be taken in first, of which this is the beginning.
    fn hand_out_shown(
        &mut self,
        connection: &Connection,
        own: &mut Own<'_>,
        deadline: Option<Instant>,
    ) -> Result<bool, Fault> {
        let Self { receiver, assembler, head, sizes } = self;
        let lost = |error: io::Error| Fault::Lost(error.into());
        let mut outcome = Ok(());
        let mut take = |message: &Message<'_>| outcome = deliver(connection, own, message);
        let mut look = Look { sizes: sizes.clone(), head, take: &mut take };
        let shown = receiver.show(&mut look, deadline).map_err(lost);
        outcome?;
        if shown? {
            return Ok(true);
        }
        match receiver.receive(assembler.space(), deadline).map_err(lost)? {
            0 => Err(Fault::Lost(Lost::Broken)),
            count => {
                assembler.filled(count);
                Ok(false)
            }
        }
    }
}

/// Hands out a reply as most are.
#[inline]
fn deliver_plain(connection: &Connection, own: &mut Own<'_>, plain: reply::Plain, bytes: &[u8]) -> Result<(), Fault> {
    let format = Format { order: ByteOrder::NATIVE, minor: Version::V1_2.minor(), chars: connection.chars };
    let fill = |reply: &mut Reply| {
        reply.bytes.clear();
        reply.bytes.extend_from_slice(bytes);
        (reply.format, reply.status, reply.body) = (format, Status::Replied(plain.status), reply::Plain::BODY);
        reply.joints.clear();
        true
    };
    hand_out(connection, own, plain.request_id, fill)
}

fn deliver(connection: &Connection, own: &mut Own<'_>, message: &Message<'_>) -> Result<(), Fault> {
    match message.header.message_type {
        MessageType::Reply | MessageType::LocateReply => {}
        MessageType::CloseConnection => return Err(Fault::Lost(Lost::Refused)),
        MessageType::MessageError => return Err(Fault::Lost(Lost::Broken)),
        // A client that does not offer to be called gets no requests, and no replies to what it does not ask.
        _ => return Err(Fault::Malformed),
    }
    let Parsed { request_id, status, body } = parse(message, connection.chars).ok_or(Fault::Malformed)?;
    let fill = |reply: &mut Reply| {
        (reply.format, reply.status, reply.body) = (message.format(connection.chars), status, body);
        reply.joints.clear();
        reply.joints.extend_from_slice(message.joints);
        message.copy_to(&mut reply.bytes)
    };
    hand_out(connection, own, request_id, fill)
}

/// Gives a reply to the caller that reads, or to the one that waits for it; `fill` is false if it is not there any more.
#[inline]
fn hand_out(
    connection: &Connection,
    own: &mut Own<'_>,
    request_id: u32,
    fill: impl FnOnce(&mut Reply) -> bool,
) -> Result<(), Fault> {
    if own.id == Some(request_id) {
        own.has_come = fill(own.reply);
        return if own.has_come { Ok(()) } else { Err(Fault::Lost(Lost::Broken)) };
    }
    let reply = || {
        let mut reply = Reply { bytes: buffers::take(), ..Reply::default() };
        fill(&mut reply).then_some(reply)
    };
    connection.answer(request_id, reply).map_err(Fault::Lost)
}

/// What the header of a reply says.
struct Parsed {
    request_id: u32,
    status: Status,
    /// Where the body begins.
    body: usize,
}

fn parse(message: &Message<'_>, chars: CharSet) -> Option<Parsed> {
    let mut decoder = message.decoder(chars);
    let version = message.header.version;
    let (request_id, status) = match message.header.message_type {
        MessageType::LocateReply => {
            let located = locate::Reply::parse(version, &mut decoder).ok()?;
            (located.request_id, Status::Located(located.status))
        }
        _ => {
            let replied = reply::Repr::parse(version, &mut decoder).ok()?;
            (replied.request_id, Status::Replied(replied.status))
        }
    };
    Some(Parsed { request_id, status, body: decoder.position() })
}

impl Default for Reply {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            format: Format::NATIVE,
            status: Status::Replied(reply::Status::NoException),
            body: 0,
            joints: Vec::new(),
        }
    }
}

impl Reply {
    /// The reply in this buffer.
    pub(crate) fn in_buffer(bytes: Vec<u8>, chars: CharSet) -> Option<Self> {
        let header = header::Repr::parse(&header::Header::new_checked(bytes.as_slice()).ok()?).ok()?;
        let message = Message { header, bytes: &bytes, rest: None, joints: &[] };
        let (Parsed { status, body, .. }, format) = (parse(&message, chars)?, message.format(chars));
        Some(Self { bytes, format, status, body, joints: Vec::new() })
    }
}
