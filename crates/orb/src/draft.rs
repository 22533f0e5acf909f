//! What a thread writes its requests into, kept for the next one.
//!
//! Programs call one operation many times. Then the header of a request is that of the one before, but for its id and its
//! length, and lies in the draft already.

use std::cell::Cell;
use std::io;
use std::time::Instant;

use sidestep_wire::giop::{self, Version, header};

use crate::cdr::CharSet;
use crate::client::Reply;
use crate::exception::{Completion, Kind, SystemException};
use crate::request::{Encode, Request};
use crate::strand::SendHalf;

/// A request, or what was written of it.
#[derive(Default)]
pub(crate) struct Draft {
    bytes: Vec<u8>,
    /// The length of the message.
    len: usize,
    /// Whether `bytes` have no less: large blocks are left out.
    is_whole: bool,
    /// Where the id of the request lies.
    id_at: usize,
    /// Whether the bytes begin with `header`.
    is_known: bool,
    header: Header,
    /// How the values are encoded.
    format: Option<(Version, CharSet)>,
    /// The operation that the header names.
    operation: String,
    /// The reply, once it has come.
    pub(crate) reply: Reply,
}

/// A header without service contexts.
#[derive(Default)]
struct Header {
    /// Where it goes, by the number of the route.
    route: u64,
    expects_reply: bool,
    ends: usize,
    /// Where the body begins, behind padding.
    body: usize,
}

impl Header {
    /// Whether it is the header of this request, if the operation is the same.
    #[inline]
    fn fits(&self, request: &Request<'_>) -> bool {
        self.route == request.route && self.expects_reply == request.expects_reply && request.is_plain()
    }
}

thread_local! {
    static KEPT: Cell<Option<Box<Draft>>> = const { Cell::new(None) };
}

/// Larger buffers are given back.
const LARGEST: usize = 1 << 20;

impl Draft {
    /// The draft of this thread. A call within a call gets another one.
    #[inline]
    pub(crate) fn take() -> Box<Self> {
        // A thread that ends may have none any more.
        KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default()
    }

    /// Keeps the draft for the next request of this thread.
    #[inline]
    pub(crate) fn keep(self: Box<Self>) {
        if self.bytes.capacity() <= LARGEST && self.reply.bytes.capacity() <= LARGEST {
            let _ = KEPT.try_with(|kept| kept.set(Some(self)));
        }
    }

    /// Writes a request, but for its id. Large blocks are left out.
    pub(crate) fn write(
        &mut self,
        request: &Request<'_>,
        direct: usize,
        encode: Encode<'_>,
    ) -> Result<(), SystemException> {
        self.write_message(request, direct, encode).map_err(|error| match error {
            giop::Error::Cdr(error) => SystemException::of_cdr(&error, Completion::No),
            _ => Kind::Marshal.raised(Completion::No),
        })
    }

    #[inline]
    fn write_message(&mut self, request: &Request<'_>, direct: usize, encode: Encode<'_>) -> Result<(), giop::Error> {
        let is_known = std::mem::take(&mut self.is_known);
        if !is_known || !self.header.fits(request) || self.operation != request.operation {
            self.begin(request)?;
        }
        let Header { ends, body, .. } = self.header;
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.truncate(body);
        let mut encoder = request.resume(bytes).counting(direct);
        encode(&mut encoder)?;
        // Without a body there is no padding either.
        self.len = if encoder.position() == body { ends } else { encoder.position() };
        self.is_whole = !encoder.is_partial();
        // What is streamed gets its length when it is sent.
        if self.is_whole {
            giop::announce(&mut encoder, self.len)?;
        }
        self.bytes = encoder.into_bytes();
        self.is_known = self.is_whole && request.is_plain();
        Ok(())
    }

    /// Writes a header, up to where the body begins.
    fn begin(&mut self, request: &Request<'_>) -> Result<(), giop::Error> {
        let mut encoder = request.begin(std::mem::take(&mut self.bytes));
        self.id_at = request.emit_header(&mut encoder)?;
        let ends = encoder.position();
        request.align_body(&mut encoder);
        let body = encoder.position();
        self.bytes = encoder.into_bytes();
        self.format = Some(request.format());
        self.header = Header { route: request.route, expects_reply: request.expects_reply, ends, body };
        self.operation.clear();
        self.operation.push_str(request.operation);
        Ok(())
    }

    /// Writes the question where an object is, but for its id.
    pub(crate) fn write_locate(&mut self, request: &Request<'_>) -> Result<(), SystemException> {
        self.is_known = false;
        let written = request.locate(std::mem::take(&mut self.bytes));
        self.bytes = written.map_err(|_| Kind::Marshal.raised(Completion::No))?;
        (self.len, self.id_at, self.is_whole) = (self.bytes.len(), header::LEN, true);
        Ok(())
    }

    /// How the values of the request are encoded.
    pub(crate) fn format(&self) -> Option<(Version, CharSet)> {
        self.format
    }

    /// The bytes of its body, if they are all there.
    pub(crate) fn body(&self) -> Option<&[u8]> {
        if self.is_whole { Some(self.bytes().get(self.header.body..).unwrap_or_default()) } else { None }
    }

    /// Whether all of the message is in the draft.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The message, if all of it is in the draft.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Gives the request its id.
    #[inline]
    pub(crate) fn set_id(&mut self, id: u32) {
        if let Some(field) = self.bytes.get_mut(self.id_at..self.id_at + 4) {
            field.copy_from_slice(&id.to_ne_bytes());
        }
    }

    /// Sends a request that has large blocks.
    pub(crate) fn stream(
        &mut self,
        request: &Request<'_>,
        direct: usize,
        encode: Encode<'_>,
        sender: &mut dyn SendHalf,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        let id = self.bytes.get(self.id_at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or_default();
        let measured = (self.len, std::mem::take(&mut self.bytes));
        self.bytes = request.send(u32::from_ne_bytes(id), direct, measured, encode, sender, deadline)?;
        Ok(())
    }
}
