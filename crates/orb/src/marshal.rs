//! Messages with large blocks on their way out, straight to where they go.

use std::io;
use std::time::Instant;

use sidestep_wire::giop::{self, MessageType, Version};

use crate::cdr::{self, CharSet, Encoder, Outlet};
use crate::strand::SendHalf;

/// What a message looks like, besides what is in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) version: Version,
    pub(crate) chars: CharSet,
    pub(crate) message_type: MessageType,
    /// Blocks of at least so many octets go out from where they lie.
    pub(crate) direct: usize,
}

/// What is in a message. It is written twice if there are large blocks, and has to be the same both times.
pub(crate) type Content<'a> = &'a dyn Fn(&mut Encoder<'_>) -> Result<(), giop::Error>;

/// Sends a message that was found to be `len` bytes long; returns the buffer.
pub(crate) fn send(
    shape: Shape,
    (len, buffer): (usize, Vec<u8>),
    content: Content<'_>,
    sender: &mut dyn SendHalf,
    deadline: Option<Instant>,
) -> io::Result<Vec<u8>> {
    let mut pipe = Pipe { sender, deadline, left: len, failure: None };
    let begun = giop::begin(buffer, shape.version, shape.chars, shape.message_type);
    let mut encoder = begun.streaming(shape.direct, &mut pipe);
    giop::announce(&mut encoder, len).map_err(io::Error::other)?;
    content(&mut encoder).map_err(io::Error::other)?;
    let buffer = encoder.flush();
    match (pipe.failure, pipe.left) {
        (None, 0) => Ok(buffer),
        (None, _) => Err(changed()),
        (Some(error), _) => Err(error),
    }
}

/// Where the pieces of a message go.
struct Pipe<'a> {
    sender: &'a mut dyn SendHalf,
    deadline: Option<Instant>,
    /// The bytes that have not come.
    left: usize,
    failure: Option<io::Error>,
}

impl Outlet for Pipe<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if self.failure.is_some() || bytes.is_empty() {
            return;
        }
        let sent = match self.left.checked_sub(bytes.len()) {
            Some(left) => {
                self.left = left;
                self.sender.send(bytes, left > 0, self.deadline)
            }
            None => Err(changed()),
        };
        self.failure = sent.err();
    }
}

/// The header has been sent, so the connection cannot go on.
fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a value was encoded in two ways")
}

/// Encodes a cdr value where a GIOP error is expected.
pub(crate) fn cdr_error(error: giop::Error) -> cdr::Error {
    match error {
        giop::Error::Cdr(error) => error,
        _ => cdr::Error::TypeCode,
    }
}
