//! What comes over a connection. Of the callers that wait, one has the reader, and reads for all.

use std::ops::RangeInclusive;
use std::time::Instant;

use sidestep_wire::giop::{MessageType, header, reply};

use super::{Connection, Lost};
use crate::assembler::{Assembler, Message};
use crate::buffers;
use crate::cdr::CharSet;
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
    pub(crate) header: header::Repr,
    pub(crate) bytes: Vec<u8>,
    /// The code set of its text.
    pub(crate) chars: CharSet,
    pub(crate) status: reply::Status,
    /// Where the body begins.
    pub(crate) body: usize,
}

/// The request of the caller that reads, and its reply once it has come.
pub(super) struct Own {
    pub(super) id: Option<u32>,
    /// Where the reply may be put.
    pub(super) buffer: Vec<u8>,
    pub(super) reply: Option<Reply>,
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
        own: &mut Own,
        deadline: Option<Instant>,
    ) -> Result<(), Fault> {
        let Self { receiver, assembler, head, sizes } = self;
        let mut delivered = false;
        loop {
            if let Some(message) = assembler.next().map_err(|_| Fault::Malformed)? {
                deliver(connection, own, &message)?;
                delivered = true;
                continue;
            }
            if delivered {
                return Ok(());
            }
            if assembler.is_empty() {
                let mut outcome = Ok(());
                let mut take = |message: &Message<'_>| outcome = deliver(connection, own, message);
                let mut look = Look { sizes: sizes.clone(), head: &mut *head, take: &mut take };
                let shown = receiver.show(&mut look, deadline).map_err(|error| Fault::Lost(error.into()))?;
                outcome?;
                if shown {
                    return Ok(());
                }
            }
            match receiver.receive(assembler.space(), deadline).map_err(|error| Fault::Lost(error.into()))? {
                0 => return Err(Fault::Lost(Lost::Broken)),
                count => assembler.filled(count),
            }
        }
    }
}

fn deliver(connection: &Connection, own: &mut Own, message: &Message<'_>) -> Result<(), Fault> {
    match message.header.message_type {
        MessageType::Reply => {}
        MessageType::CloseConnection => return Err(Fault::Lost(Lost::Refused)),
        // A client that does not offer to be called gets no requests, and no replies to what it does not ask.
        _ => return Err(Fault::Lost(Lost::Broken)),
    }
    let broken = || Fault::Lost(Lost::Broken);
    let (parsed, body) = parse(message, connection.chars).ok_or_else(broken)?;
    let reply = |mut bytes: Vec<u8>| {
        let copied = message.copy_to(&mut bytes);
        copied.then_some(Reply { header: message.header, bytes, chars: connection.chars, status: parsed.status, body })
    };
    if own.id == Some(parsed.request_id) {
        own.reply = Some(reply(std::mem::take(&mut own.buffer)).ok_or_else(broken)?);
        return Ok(());
    }
    connection.answer(parsed.request_id, || reply(buffers::take())).map_err(Fault::Lost)
}

/// The header of a reply, and where its body begins.
fn parse<'a>(message: &Message<'a>, chars: CharSet) -> Option<(reply::Repr<'a>, usize)> {
    let mut decoder = message.decoder(chars);
    let header = reply::Repr::parse(message.header.version, &mut decoder).ok()?;
    Some((header, decoder.position()))
}

impl Reply {
    /// The reply in this buffer.
    pub(crate) fn in_buffer(bytes: Vec<u8>, chars: CharSet) -> Option<Self> {
        let header = header::Repr::parse(&header::Header::new_checked(bytes.as_slice()).ok()?).ok()?;
        let (parsed, body) = parse(&Message { header, bytes: &bytes, rest: None }, chars)?;
        let status = parsed.status;
        Some(Self { header, bytes, chars, status, body })
    }
}
