//! Service contexts: what the brokers tell each other beside a call.

use std::fmt;

use crate::cdr::{Decoder, Encoder, Error, Format};

/// What a service context is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContextId(pub u32);

/// The code sets that the client has chosen for this connection.
pub const CODE_SETS: ContextId = ContextId(1);

/// The client allows calls in the other direction.
pub const BI_DIR_IIOP: ContextId = ContextId(5);

/// The service contexts of a message, where they lie in it.
#[derive(Clone, Copy)]
pub struct Contexts<'a> {
    /// The list behind its length; `count` contexts of it have been checked.
    data: &'a [u8],
    /// Where `data` begins, so that alignment stays what it was.
    phase: usize,
    count: u32,
    format: Format,
}

impl<'a> Contexts<'a> {
    /// No service contexts.
    pub const EMPTY: Self = Self { data: &[], phase: 0, count: 0, format: Format::NATIVE };

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn parse(decoder: &mut Decoder<'a>) -> Result<Self, Error> {
        let count = u32::try_from(decoder.length(8)?).unwrap_or(0);
        let begin = decoder.position();
        let phase = begin % 8;
        let data = decoder.rest();
        for _ in 0..count {
            decoder.u32()?;
            decoder.octets()?;
        }
        let data = &data[..(decoder.position() - begin).min(data.len())];
        Ok(Self { data, phase, count, format: decoder.format() })
    }

    /// The contexts: what each is about, and its data, which is an encapsulation.
    pub fn iter(&self) -> impl Iterator<Item = (ContextId, &'a [u8])> {
        let phase = self.phase;
        let format = self.format;
        let data = self.data;
        let mut at = 0;
        (0..self.count).map_while(move |_| {
            let id = word(data, &mut at, phase, format)?;
            let length = word(data, &mut at, phase, format)? as usize;
            let bytes = data.get(at..at.checked_add(length)?)?;
            at += length;
            Some((ContextId(id), bytes))
        })
    }

    /// The data of the context with this id.
    #[must_use]
    pub fn find(&self, id: ContextId) -> Option<&'a [u8]> {
        self.iter().find(|(each, _)| *each == id).map(|(_, data)| data)
    }

    pub(super) fn emit(&self, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.u32(self.count);
        self.iter().try_for_each(|(id, data)| {
            encoder.u32(id.0);
            encoder.octets(data)
        })
    }
}

/// Reads an unsigned long of a list that begins `phase` bytes behind a multiple of eight.
fn word(data: &[u8], at: &mut usize, phase: usize, format: Format) -> Option<u32> {
    let begin = (*at + phase).next_multiple_of(4) - phase;
    let bytes = data.get(begin..)?.first_chunk::<4>()?;
    *at = begin + 4;
    Some(match format.order {
        crate::cdr::ByteOrder::Big => u32::from_be_bytes(*bytes),
        crate::cdr::ByteOrder::Little => u32::from_le_bytes(*bytes),
    })
}

/// Writes a list of contexts that is made for this message.
pub(super) fn emit_list(list: &[(ContextId, &[u8])], encoder: &mut Encoder) -> Result<(), Error> {
    encoder.length(list.len())?;
    list.iter().try_for_each(|(id, data)| {
        encoder.u32(id.0);
        encoder.octets(data)
    })
}

impl PartialEq for Contexts<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Contexts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(id, data)| (id.0, data))).finish()
    }
}
