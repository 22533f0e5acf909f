//! One DDP segment with its RDMAP header: everything in a ULPDU but the payload.
//!
//! What the opcode fixes is checked here, in the order of the layers: DDP version, RDMAP version,
//! opcode, tagged flag, queue, and for messages of one segment the offset, last flag and length.

use super::{Opcode, atomic_request, atomic_response, immediate, read_request, terminate};
use crate::ddp::{Control, tagged, untagged};
use crate::error::{Error, Part, check_len};
use crate::{MessageOffset, Msn, QueueNumber, Stag, TaggedOffset};
use std::fmt;

/// The length of the longest headers.
pub const MAX_HEADER_LEN: usize = untagged::LEN + terminate::MAX_LEN;

const CONTROL_LEN: usize = 2;

mod field {
    pub(super) const CONTROL: usize = 0;
    pub(super) const UPPER: usize = 1;
}

/// A view of the headers of a segment.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
    ulpdu_len: usize,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which holds the beginning of a ULPDU of `ulpdu_len` bytes: all of it, or
    /// at least [`MAX_HEADER_LEN`] bytes.
    pub fn new_checked(buffer: T, ulpdu_len: usize) -> Result<Self, Error> {
        let have = buffer.as_ref().len();
        check_len(Part::Segment, ulpdu_len.min(MAX_HEADER_LEN), have)?;
        check_len(Part::Segment, CONTROL_LEN, ulpdu_len)?;
        let this = Self { buffer, ulpdu_len };
        check_len(Part::Segment, this.control().header_len(), ulpdu_len)?;
        Ok(this)
    }

    /// The DDP control byte.
    pub fn control(&self) -> Control {
        Control(self.buffer.as_ref()[field::CONTROL])
    }

    /// The RDMAP control byte.
    pub fn upper(&self) -> u8 {
        self.buffer.as_ref()[field::UPPER]
    }

    /// The length of the whole segment.
    pub fn ulpdu_len(&self) -> usize {
        self.ulpdu_len
    }

    fn bytes(&self) -> &[u8] {
        let data = self.buffer.as_ref();
        &data[..data.len().min(self.ulpdu_len)]
    }
}

/// The kind of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendKind {
    /// The receiver is asked to raise an event.
    pub solicited: bool,
    /// A tag of the receiver's that is no longer valid once the message is delivered.
    pub invalidate: Option<Stag>,
}

/// The value of the headers of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repr {
    /// A segment of an RDMA write.
    Write {
        /// The last segment of the message.
        last: bool,
        /// The tag of the receiver's buffer.
        sink: Stag,
        /// Where in the buffer the payload belongs.
        offset: TaggedOffset,
    },
    /// A segment of the answer to an RDMA read.
    ReadResponse {
        /// The last segment of the message.
        last: bool,
        /// The tag of the receiver's buffer.
        sink: Stag,
        /// Where in the buffer the payload belongs.
        offset: TaggedOffset,
    },
    /// A segment of a send.
    Send {
        /// The last segment of the message.
        last: bool,
        /// The number of the message.
        msn: Msn,
        /// Where in the message the payload belongs.
        offset: MessageOffset,
        /// The kind of the send.
        kind: SendKind,
    },
    /// Immediate data.
    Immediate {
        /// The number of the message.
        msn: Msn,
        /// The receiver is asked to raise an event.
        solicited: bool,
        /// The data.
        immediate: immediate::Repr,
    },
    /// An RDMA read request.
    ReadRequest {
        /// The number of the message.
        msn: Msn,
        /// What is read.
        request: read_request::Repr,
    },
    /// An atomic request.
    AtomicRequest {
        /// The number of the message.
        msn: Msn,
        /// What is done.
        request: atomic_request::Repr,
    },
    /// An atomic response.
    AtomicResponse {
        /// The number of the message.
        msn: Msn,
        /// What was there.
        response: atomic_response::Repr,
    },
    /// A terminate message.
    Terminate {
        /// The number of the message.
        msn: Msn,
        /// Why.
        terminate: terminate::Repr,
    },
}

impl Repr {
    /// Reads the value.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        let control = header.control();
        control.check_version()?;
        let opcode = Opcode::parse(header.upper())?;
        if opcode.tagged() != control.tagged() {
            return Err(Error::Model { part: Part::Message(opcode), tagged: control.tagged() });
        }
        if opcode.tagged() {
            let ddp = tagged::Repr::parse(&tagged::Header::new_checked(header.bytes())?)?;
            let tagged::Repr { last, stag: sink, offset, .. } = ddp;
            return Ok(if opcode == Opcode::Write {
                Repr::Write { last, sink, offset }
            } else {
                Repr::ReadResponse { last, sink, offset }
            });
        }
        let ddp = untagged::Repr::parse(&untagged::Header::new_checked(header.bytes())?)?;
        if let Some(expected) = opcode.queue().filter(|queue| *queue != ddp.queue) {
            return Err(Error::Queue { opcode, expected, found: ddp.queue });
        }
        Self::parse_untagged(header, opcode, &ddp)
    }

    fn parse_untagged<T: AsRef<[u8]>>(header: &Header<T>, opcode: Opcode, ddp: &untagged::Repr) -> Result<Self, Error> {
        let msn = ddp.msn;
        let body = &header.bytes()[untagged::LEN..];
        let exactly = |part, len| {
            let found = header.ulpdu_len - untagged::LEN;
            if found == len { Ok(()) } else { Err(Error::Length { part, expected: len, found }) }
        };
        if let Some(kind) = send_kind(opcode, ddp.upper_word) {
            return Ok(Repr::Send { last: ddp.last, msn, offset: ddp.offset, kind });
        }
        if ddp.offset != MessageOffset(0) {
            return Err(Error::Offset { opcode, found: ddp.offset });
        }
        if !ddp.last {
            return Err(Error::NotLast { opcode });
        }
        Ok(match opcode {
            Opcode::Immediate | Opcode::ImmediateSolicited => {
                exactly(Part::Immediate, immediate::LEN)?;
                let immediate = immediate::Repr::parse(&immediate::Header::new_checked(body)?)?;
                Repr::Immediate { msn, solicited: opcode == Opcode::ImmediateSolicited, immediate }
            }
            Opcode::ReadRequest => {
                exactly(Part::ReadRequest, read_request::LEN)?;
                let request = read_request::Repr::parse(&read_request::Header::new_checked(body)?)?;
                Repr::ReadRequest { msn, request }
            }
            Opcode::AtomicRequest => {
                exactly(Part::AtomicRequest, atomic_request::LEN)?;
                let request = atomic_request::Repr::parse(&atomic_request::Header::new_checked(body)?)?;
                Repr::AtomicRequest { msn, request }
            }
            Opcode::AtomicResponse => {
                exactly(Part::AtomicResponse, atomic_response::LEN)?;
                let response = atomic_response::Repr::parse(&atomic_response::Header::new_checked(body)?)?;
                Repr::AtomicResponse { msn, response }
            }
            _ => {
                let terminate = terminate::Repr::parse(&terminate::Header::new_checked(body)?)?;
                Repr::Terminate { msn, terminate }
            }
        })
    }

    /// The opcode of the segment.
    #[must_use]
    pub fn opcode(&self) -> Opcode {
        match self {
            Repr::Write { .. } => Opcode::Write,
            Repr::ReadResponse { .. } => Opcode::ReadResponse,
            Repr::Send { kind, .. } => match (kind.solicited, kind.invalidate.is_some()) {
                (false, false) => Opcode::Send,
                (false, true) => Opcode::SendInvalidate,
                (true, false) => Opcode::SendSolicited,
                (true, true) => Opcode::SendSolicitedInvalidate,
            },
            Repr::Immediate { solicited: false, .. } => Opcode::Immediate,
            Repr::Immediate { solicited: true, .. } => Opcode::ImmediateSolicited,
            Repr::ReadRequest { .. } => Opcode::ReadRequest,
            Repr::AtomicRequest { .. } => Opcode::AtomicRequest,
            Repr::AtomicResponse { .. } => Opcode::AtomicResponse,
            Repr::Terminate { .. } => Opcode::Terminate,
        }
    }

    /// The number of bytes that `emit` writes: the payload follows there.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        match self {
            Repr::Write { .. } | Repr::ReadResponse { .. } => tagged::LEN,
            Repr::Send { .. } => untagged::LEN,
            Repr::Immediate { .. } => untagged::LEN + immediate::LEN,
            Repr::ReadRequest { .. } => untagged::LEN + read_request::LEN,
            Repr::AtomicRequest { .. } => untagged::LEN + atomic_request::LEN,
            Repr::AtomicResponse { .. } => untagged::LEN + atomic_response::LEN,
            Repr::Terminate { terminate, .. } => untagged::LEN + terminate.buffer_len(),
        }
    }

    /// Writes the value.
    ///
    /// # Panics
    /// If the buffer is shorter than [`Repr::buffer_len`].
    pub fn emit(&self, buffer: &mut [u8]) {
        let upper = self.opcode().control();
        match *self {
            Repr::Write { last, sink: stag, offset } | Repr::ReadResponse { last, sink: stag, offset } => {
                tagged::Repr { last, upper, stag, offset }.emit(buffer);
            }
            Repr::Send { last, msn, offset, kind } => {
                let word = kind.invalidate.map_or(0, |stag| stag.0);
                self.emit_untagged(buffer, last, word, msn, offset);
            }
            Repr::Immediate { msn, immediate, .. } => {
                self.emit_single(buffer, msn);
                immediate.emit(&mut buffer[untagged::LEN..]);
            }
            Repr::ReadRequest { msn, request } => {
                self.emit_single(buffer, msn);
                request.emit(&mut buffer[untagged::LEN..]);
            }
            Repr::AtomicRequest { msn, request } => {
                self.emit_single(buffer, msn);
                request.emit(&mut buffer[untagged::LEN..]);
            }
            Repr::AtomicResponse { msn, response } => {
                self.emit_single(buffer, msn);
                response.emit(&mut buffer[untagged::LEN..]);
            }
            Repr::Terminate { msn, terminate } => {
                self.emit_single(buffer, msn);
                terminate.emit(&mut buffer[untagged::LEN..]);
            }
        }
    }

    fn emit_single(&self, buffer: &mut [u8], msn: Msn) {
        self.emit_untagged(buffer, true, 0, msn, MessageOffset(0));
    }

    fn emit_untagged(&self, buffer: &mut [u8], last: bool, upper_word: u32, msn: Msn, offset: MessageOffset) {
        let opcode = self.opcode();
        let queue = opcode.queue().unwrap_or(QueueNumber::SEND);
        untagged::Repr { last, upper: opcode.control(), upper_word, queue, msn, offset }.emit(buffer);
    }
}

fn send_kind(opcode: Opcode, word: u32) -> Option<SendKind> {
    let (solicited, invalidate) = match opcode {
        Opcode::Send => (false, None),
        Opcode::SendInvalidate => (false, Some(Stag(word))),
        Opcode::SendSolicited => (true, None),
        Opcode::SendSolicitedInvalidate => (true, Some(Stag(word))),
        _ => return None,
    };
    Some(SendKind { solicited, invalidate })
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rdmap {}", self.opcode())?;
        match self {
            Repr::Write { last, sink, offset } | Repr::ReadResponse { last, sink, offset } => {
                write!(f, " to {sink}+{offset}{}", if *last { " last" } else { "" })
            }
            Repr::Send { last, msn, offset, kind } => {
                write!(f, " msn {msn} mo {offset}{}", if *last { " last" } else { "" })?;
                kind.invalidate.map_or(Ok(()), |stag| write!(f, " of {stag}"))
            }
            Repr::Immediate { msn, immediate, .. } => write!(f, " msn {msn} {immediate}"),
            Repr::ReadRequest { msn, request } => write!(f, " msn {msn} {request}"),
            Repr::AtomicRequest { msn, request } => write!(f, " msn {msn} {request}"),
            Repr::AtomicResponse { msn, response } => write!(f, " msn {msn} {response}"),
            Repr::Terminate { msn, terminate } => write!(f, " msn {msn} {terminate}"),
        }
    }
}

#[cfg(test)]
mod tests;
