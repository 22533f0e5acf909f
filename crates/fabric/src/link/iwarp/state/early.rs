//! What was posted and asked before the connection was made.

use crate::{
    cookie::Cookie,
    link::{Atomic, Request, Ticket},
};

/// A message or a request that waits for the connection.
#[derive(Debug)]
pub(super) enum Early {
    Post(Vec<u8>),
    Map(Ticket, Cookie),
    Put(Ticket, Cookie, u64, Vec<u8>),
    Get(Ticket, Cookie, u64, usize),
    Atomic(Ticket, Cookie, u64, Atomic),
}

impl Early {
    /// A request, with its bytes.
    pub(super) fn of(ticket: Ticket, cookie: &Cookie, request: Request<'_>) -> Early {
        match request {
            Request::Map => Early::Map(ticket, *cookie),
            Request::Put { offset, bytes } => Early::Put(ticket, *cookie, offset, bytes.to_vec()),
            Request::Get { offset, len } => Early::Get(ticket, *cookie, offset, len),
            Request::Atomic { offset, atomic } => Early::Atomic(ticket, *cookie, offset, atomic),
        }
    }

    /// The request that it was, with the ticket and the cookie of it; `None` for a message.
    pub(super) fn request(&self) -> Option<(Ticket, &Cookie, Request<'_>)> {
        Some(match self {
            Early::Post(_) => return None,
            Early::Map(ticket, cookie) => (*ticket, cookie, Request::Map),
            Early::Put(ticket, cookie, offset, bytes) => (*ticket, cookie, Request::Put { offset: *offset, bytes }),
            Early::Get(ticket, cookie, offset, len) => (*ticket, cookie, Request::Get { offset: *offset, len: *len }),
            Early::Atomic(ticket, cookie, offset, atomic) => {
                (*ticket, cookie, Request::Atomic { offset: *offset, atomic: *atomic })
            }
        })
    }

    /// Whoever waits for its end.
    pub(super) fn ticket(&self) -> Option<Ticket> {
        match self {
            Early::Post(_) => None,
            Early::Map(ticket, ..) | Early::Put(ticket, ..) | Early::Get(ticket, ..) | Early::Atomic(ticket, ..) => {
                Some(*ticket)
            }
        }
    }

    /// Bytes that it keeps.
    pub(super) fn len(&self) -> usize {
        match self {
            Early::Post(bytes) | Early::Put(_, _, _, bytes) => bytes.len(),
            _ => 0,
        }
    }
}
