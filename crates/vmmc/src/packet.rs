//! What two cards say to each other: one packet at most 4 KiB of payload.
//!
//! ```text
//!  0        1      2        10       18           what follows, by kind
//!  +--------+------+--------+--------+--------------------------------------------------------------+
//!  | version| kind | number | ack    | send: from, work, to, key, at, len, offset, flags, bytes     |
//!  +--------+------+--------+--------+ fetch: from, work, to, key, at, len, offset, amount           |
//!                                    | reply: to, work, offset, bytes                               |
//!                                    | done: to, work, fault (0 is none), last                      |
//!                                    | message: bytes; ack, nack: nothing                           |
//!                                    +--------------------------------------------------------------+
//! ```
//!
//! Integers are little-endian. `number` counts the packets of one direction between two cards from 0 on, but for ack and nack,
//! which have none; `ack` is the number that is expected next.

use crate::error::Fault;
use crate::id::{BufferId, Cbh, Key, ProcessId, Work};

/// The most payload of a packet.
pub const SEGMENT: usize = 4096;
/// The most bytes of a packet.
pub const MAX_LEN: usize = HEADER + TARGET + 16 + SEGMENT;

/// What a packet carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A part of a message.
    Send {
        /// Where to.
        target: Target,
        /// Bytes of the message before these.
        offset: u64,
        /// These are the last.
        last: bool,
        /// The owner is to be told.
        notify: bool,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A request for a part of what is fetched.
    Fetch {
        /// Where from.
        target: Target,
        /// Bytes of the fetch before these.
        offset: u64,
        /// How many, at most [`SEGMENT`].
        amount: u32,
    },
    /// The answer to that.
    Reply {
        /// Who asked.
        process: ProcessId,
        /// What it calls the fetch.
        work: Work,
        /// Bytes of the fetch before these.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The end of a send, or the refusal of anything.
    Done {
        /// Who asked.
        process: ProcessId,
        /// What it calls the operation.
        work: Work,
        /// Why it was refused, if it was.
        fault: Option<Fault>,
        /// Whether it answers the last packet of the operation, or one of a fetch: each of those has one answer.
        last: bool,
    },
    /// Bytes for whoever stands above the card.
    Message(Vec<u8>),
}

/// What an operation is directed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Who asks.
    pub from: ProcessId,
    /// What it calls the operation.
    pub work: Work,
    /// The buffer.
    pub to: Cbh,
    /// Its key.
    pub key: Key,
    /// Where in the buffer the whole operation begins.
    pub at: u64,
    /// How long the whole operation is.
    pub len: u64,
}

/// A packet as it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// One with a number.
    Numbered {
        /// The number.
        number: u64,
        /// What is expected next.
        ack: u64,
        /// What it carries.
        body: Body,
    },
    /// What is expected next.
    Ack(u64),
    /// What is expected next, and is to be sent at once.
    Nack(u64),
}

impl Body {
    /// Whether it is an answer, which waits for nothing.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self, Body::Reply { .. } | Body::Done { .. })
    }

    /// The bytes of a packet with it; its ack is set by [`set_ack`].
    #[must_use]
    pub fn emit(&self, number: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER + TARGET + 16 + self.payload().len());
        let kind = match self {
            Body::Send { .. } => KIND_SEND,
            Body::Fetch { .. } => KIND_FETCH,
            Body::Reply { .. } => KIND_REPLY,
            Body::Done { .. } => KIND_DONE,
            Body::Message(_) => KIND_MESSAGE,
        };
        header(&mut out, kind, number, 0);
        match self {
            Body::Send { target, offset, last, notify, .. } => {
                target.emit(&mut out);
                out.extend(offset.to_le_bytes());
                out.push(u8::from(*last) | u8::from(*notify) << 1);
            }
            Body::Fetch { target, offset, amount } => {
                target.emit(&mut out);
                out.extend(offset.to_le_bytes());
                out.extend(amount.to_le_bytes());
            }
            Body::Reply { process, work, offset, .. } => {
                out.extend(process.0.to_le_bytes());
                out.extend(work.0.to_le_bytes());
                out.extend(offset.to_le_bytes());
            }
            Body::Done { process, work, fault, last } => {
                out.extend(process.0.to_le_bytes());
                out.extend(work.0.to_le_bytes());
                out.extend([fault.map_or(0, Fault::code), u8::from(*last)]);
            }
            Body::Message(_) => {}
        }
        out.extend(self.payload());
        out
    }

    fn payload(&self) -> &[u8] {
        match self {
            Body::Send { bytes, .. } | Body::Reply { bytes, .. } | Body::Message(bytes) => bytes,
            Body::Fetch { .. } | Body::Done { .. } => &[],
        }
    }
}

impl Target {
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.from.0.to_le_bytes());
        out.extend(self.work.0.to_le_bytes());
        out.extend(self.to.process.0.to_le_bytes());
        out.extend(self.to.buffer.0.to_le_bytes());
        out.extend(self.key.0.to_le_bytes());
        out.extend(self.at.to_le_bytes());
        out.extend(self.len.to_le_bytes());
    }

    fn parse(input: &mut Input<'_>) -> Option<Target> {
        Some(Target {
            from: ProcessId(input.u32()?),
            work: Work(input.u64()?),
            to: Cbh { process: ProcessId(input.u32()?), buffer: BufferId(input.u32()?) },
            key: Key(u128::from_le_bytes(input.array()?)),
            at: input.u64()?,
            len: input.u64()?,
        })
    }
}

/// Sets what is expected next in a packet that was emitted.
pub fn set_ack(packet: &mut [u8], ack: u64) {
    packet[10..18].copy_from_slice(&ack.to_le_bytes());
}

/// A packet without a number.
#[must_use]
pub fn bare(ack: u64, nack: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER);
    header(&mut out, if nack { KIND_NACK } else { KIND_ACK }, 0, ack);
    out
}

/// Reads a packet. `None` is one that no card sends.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<Packet> {
    let mut input = Input(bytes);
    let [version, kind] = input.array()?;
    let (number, ack) = (input.u64()?, input.u64()?);
    if version != VERSION {
        return None;
    }
    let body = match kind {
        KIND_ACK => return input.0.is_empty().then_some(Packet::Ack(ack)),
        KIND_NACK => return input.0.is_empty().then_some(Packet::Nack(ack)),
        KIND_SEND => {
            let target = Target::parse(&mut input)?;
            let (offset, [flags]) = (input.u64()?, input.array()?);
            Body::Send { target, offset, last: flags & 1 != 0, notify: flags & 2 != 0, bytes: input.segment()? }
        }
        KIND_FETCH => {
            let (target, offset, amount) = (Target::parse(&mut input)?, input.u64()?, input.u32()?);
            if !input.0.is_empty() || amount as usize > SEGMENT {
                return None;
            }
            Body::Fetch { target, offset, amount }
        }
        KIND_REPLY => {
            let (process, work) = (ProcessId(input.u32()?), Work(input.u64()?));
            Body::Reply { process, work, offset: input.u64()?, bytes: input.segment()? }
        }
        KIND_DONE => {
            let (process, work, [code, last]) = (ProcessId(input.u32()?), Work(input.u64()?), input.array()?);
            if !input.0.is_empty() || code != 0 && Fault::from_code(code).is_none() {
                return None;
            }
            Body::Done { process, work, fault: Fault::from_code(code), last: last != 0 }
        }
        KIND_MESSAGE => Body::Message(input.0.to_vec()),
        _ => return None,
    };
    Some(Packet::Numbered { number, ack, body })
}

fn header(out: &mut Vec<u8>, kind: u8, number: u64, ack: u64) {
    out.extend([VERSION, kind]);
    out.extend(number.to_le_bytes());
    out.extend(ack.to_le_bytes());
}

/// Bytes of a peer that have not been read yet.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl Input<'_> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn segment(&mut self) -> Option<Vec<u8>> {
        (self.0.len() <= SEGMENT).then(|| self.0.to_vec())
    }
}

const VERSION: u8 = 1;
const HEADER: usize = 18;
const TARGET: usize = 52;
const KIND_SEND: u8 = 1;
const KIND_FETCH: u8 = 2;
const KIND_REPLY: u8 = 3;
const KIND_DONE: u8 = 4;
const KIND_MESSAGE: u8 = 5;
const KIND_ACK: u8 = 6;
const KIND_NACK: u8 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies() -> Vec<Body> {
        let target = Target {
            from: ProcessId(1),
            work: Work(2),
            to: Cbh { process: ProcessId(3), buffer: BufferId(4) },
            key: Key(5 << 100),
            at: 6,
            len: 7,
        };
        let (process, work) = (ProcessId(8), Work(9));
        vec![
            Body::Send { target, offset: 1, last: true, notify: false, bytes: vec![1, 2, 3] },
            Body::Send { target, offset: 1, last: false, notify: true, bytes: vec![0; SEGMENT] },
            Body::Fetch { target, offset: 1 << 40, amount: 4096 },
            Body::Reply { process, work, offset: 3, bytes: vec![] },
            Body::Done { process, work, fault: None, last: true },
            Body::Done { process, work, fault: Some(Fault::WrongKey), last: false },
            Body::Message(b"hello".to_vec()),
        ]
    }

    #[test]
    fn packets_survive_the_wire() {
        for body in bodies() {
            let mut bytes = body.emit(77);
            set_ack(&mut bytes, 5);
            assert!(bytes.len() <= MAX_LEN);
            assert_eq!(parse(&bytes), Some(Packet::Numbered { number: 77, ack: 5, body }));
        }
        assert_eq!(parse(&bare(3, false)), Some(Packet::Ack(3)));
        assert_eq!(parse(&bare(3, true)), Some(Packet::Nack(3)));
    }

    #[test]
    fn what_is_cut_or_too_long_is_no_packet() {
        for body in bodies().iter().filter(|body| !matches!(body, Body::Message(_))) {
            let bytes = body.emit(1);
            let head = bytes.len() - body.payload().len();
            assert!((0..head).all(|len| parse(&bytes[..len]).is_none()), "{body:?}");
        }
        let mut long = bodies()[1].emit(0);
        long.push(0);
        assert_eq!(parse(&long), None);
        let mut other = bodies()[0].emit(0);
        other[0] = 9;
        assert_eq!(parse(&other), None);
    }
}
