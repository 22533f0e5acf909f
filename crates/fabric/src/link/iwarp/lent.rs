//! Bytes that a request sends: the caller's for the length of its call, or those of a region until the request has ended.

use sidestep_iwarp as iwarp;
use sidestep_shm::{Span, digest, stream::Area};

/// Where they are during the call that makes the request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lent<'a> {
    /// The caller's, who may change them after the call.
    Bytes(&'a [u8]),
    /// Those of a region, which stay until the request has ended: so many from there on, within its bounds.
    Part(&'a Span, usize, usize),
}

/// Where they are kept until the stream has taken them.
#[derive(Debug)]
pub(super) enum Kept {
    /// A copy.
    Bytes(Vec<u8>),
    /// Where they were.
    Part(Span, usize, usize),
}

impl<'a> Lent<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Lent::Bytes(bytes) => bytes.len(),
            Lent::Part(_, _, len) => *len,
        }
    }

    /// Some of them, as the kernel is told of them. Nothing if they lie outside.
    pub(super) fn area(&self, at: usize, len: usize) -> Area<'a> {
        match self {
            Lent::Bytes(bytes) => Area::of(bytes.get(at..at + len).unwrap_or_default()),
            Lent::Part(span, start, whole) => {
                let inside = at.checked_add(len).is_some_and(|end| end <= *whole);
                let area = inside.then(|| Area::within(span, start + at, len).ok());
                area.flatten().unwrap_or(Area::of(&[]))
            }
        }
    }

    /// Continues a checksum over some of them.
    pub(super) fn checksum(&self, crc: u32, at: usize, len: usize) -> u32 {
        match self {
            Lent::Bytes(bytes) => iwarp::crc32c(crc, bytes.get(at..at + len).unwrap_or_default()),
            Lent::Part(span, start, _) => digest::crc32c(span, start + at, len, crc, iwarp::crc32c).unwrap_or(crc),
        }
    }
}

impl Kept {
    pub(super) fn lent(&self) -> Lent<'_> {
        match self {
            Kept::Bytes(bytes) => Lent::Bytes(bytes),
            Kept::Part(span, start, len) => Lent::Part(span, *start, *len),
        }
    }
}
