//! The headers that most requests and replies of GIOP 1.2 have: no service contexts, and the object named by its key.
//!
//! ```text
//! request:  | id, 4 | response, 1 | 0, 3 | 0, 2 | pad, 2 | key length, 4 | key | pad | name length, 4 | name, 0 | pad | 0, 4 |
//! reply:    | id, 4 | status, 4 | 0, 4 |
//! ```
//! Where each part lies follows from two lengths, so these headers are read and written without a look at every value by itself.
//! What is not like this, or not all there, is left to the general way, which knows what is wrong with it.

use super::{MessageType, Version, header};
use crate::cdr::{ByteOrder, Decoder, Encoder};

/// The parts of such a request.
pub(super) struct Request<'a> {
    pub(super) request_id: u32,
    pub(super) flags: u8,
    pub(super) key: &'a [u8],
    pub(super) operation: &'a [u8],
}

const RESPONSE_AT: usize = 4;
const ADDRESSING_AT: usize = 8;
const KEY_LEN_AT: usize = 12;
const KEY_AT: usize = 16;
/// Longer ones are seldom.
const MOST: usize = 128;

const REPLY_LEN: usize = 12;

impl<'a> Request<'a> {
    /// Takes the header, if it is such a one; nothing is taken if not.
    #[inline]
    pub(super) fn parse(decoder: &mut Decoder<'a>) -> Option<Self> {
        let (bytes, order) = (begin(decoder)?, decoder.format().order);
        let head = bytes.first_chunk::<KEY_AT>()?;
        if head[ADDRESSING_AT..][..2] != [0; 2] {
            return None;
        }
        let key = bytes[KEY_AT..].get(..word(bytes, KEY_LEN_AT, order)? as usize)?;
        let name_len_at = aligned(KEY_AT + key.len());
        let name_len = word(bytes, name_len_at, order)? as usize;
        let name = bytes.get(name_len_at + 4..)?.get(..name_len)?;
        let (0, operation) = name.split_last()? else { return None };
        let contexts_at = aligned(name_len_at + 4 + name_len);
        if word(bytes, contexts_at, order)? != 0 {
            return None;
        }
        end(decoder, contexts_at + 4)?;
        Some(Self { request_id: word(bytes, 0, order)?, flags: head[RESPONSE_AT], key, operation })
    }

    /// The number of bytes of the header.
    #[inline]
    pub(super) fn len(&self) -> usize {
        let name_at = aligned(KEY_AT + self.key.len()) + 4;
        aligned(name_at + self.operation.len() + 1) + 4
    }

    /// Writes the header, unless it is long.
    #[inline]
    pub(super) fn emit(&self, encoder: &mut Encoder<'_>) -> bool {
        let Self { request_id, flags, key, operation } = *self;
        let lens = key.len().max(operation.len());
        if lens > MOST || encoder.position() != header::LEN {
            return false;
        }
        let (name_len_at, len) = (aligned(KEY_AT + key.len()), self.len());
        let name_at = name_len_at + 4;
        if len > MOST {
            return false;
        }
        let (mut bytes, order) = ([0; MOST], encoder.format().order);
        let mut put = |at: usize, value: usize| bytes[at..at + 4].copy_from_slice(&order_bytes(value as u32, order));
        put(0, request_id as usize);
        put(KEY_LEN_AT, key.len());
        put(name_len_at, operation.len() + 1);
        bytes[RESPONSE_AT] = flags;
        bytes[KEY_AT..][..key.len()].copy_from_slice(key);
        bytes[name_at..][..operation.len()].copy_from_slice(operation);
        encoder.raw(&bytes[..len]);
        true
    }
}

/// Takes the header of a reply without service contexts: its id and its status.
#[inline]
pub(super) fn parse_reply(decoder: &mut Decoder<'_>) -> Option<(u32, u32)> {
    let (bytes, order) = (begin(decoder)?, decoder.format().order);
    let (id, status, contexts) = (word(bytes, 0, order)?, word(bytes, 4, order)?, word(bytes, 8, order)?);
    if contexts != 0 {
        return None;
    }
    end(decoder, REPLY_LEN)?;
    Some((id, status))
}

/// Writes the header of a reply without service contexts.
#[inline]
pub(super) fn emit_reply(id: u32, status: u32, encoder: &mut Encoder<'_>) {
    encoder.align(4);
    let order = encoder.format().order;
    encoder.raw([id, status, 0].map(|word| order_bytes(word, order)).as_flattened());
}

/// The length of both headers of a reply. The body may begin there.
pub(super) const WHOLE_REPLY_LEN: usize = header::LEN + REPLY_LEN;

/// Both headers of a reply, in the byte order of this machine; the size is that of a reply without a body. Before GIOP 1.2 the
/// contexts come first.
#[inline]
pub(super) fn whole_reply(version: Version, id: u32, status: u32) -> [u8; WHOLE_REPLY_LEN] {
    let mut bytes = [0; WHOLE_REPLY_LEN];
    bytes[..header::SIZE_AT].copy_from_slice(&header::begin(version, MessageType::Reply));
    let id_at = if version == Version::V1_2 { header::LEN } else { header::LEN + 4 };
    for (at, word) in [(header::SIZE_AT, REPLY_LEN as u32), (id_at, id), (id_at + 4, status)] {
        bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Reads both headers of a reply that is all there, in the byte order of this machine: its id, its status and its length.
#[inline]
pub(super) fn parse_whole_reply(bytes: &[u8]) -> Option<(u32, u32, usize)> {
    let head = bytes.first_chunk::<WHOLE_REPLY_LEN>()?;
    let (begin, words) = head.split_first_chunk::<{ header::SIZE_AT }>()?;
    let word = |at: usize| u32::from_ne_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]]);
    let len = header::LEN + word(0) as usize;
    let is_plain = *begin == BEGIN_OF_REPLY && word(12) == 0;
    (is_plain && (WHOLE_REPLY_LEN..=bytes.len()).contains(&len)).then(|| (word(4), word(8), len))
}

/// How a reply begins.
const BEGIN_OF_REPLY: [u8; header::SIZE_AT] = header::begin(Version::V1_2, MessageType::Reply);

const _: () = assert!(WHOLE_REPLY_LEN % 8 == 0);

/// The bytes behind the header of the message.
#[inline]
fn begin<'a>(decoder: &Decoder<'a>) -> Option<&'a [u8]> {
    (decoder.position() == header::LEN).then(|| decoder.rest())
}

/// Steps over so many bytes that are there, and to where the body begins if there is one.
#[inline]
fn end(decoder: &mut Decoder<'_>, len: usize) -> Option<()> {
    let all = decoder.remaining();
    let body = (header::LEN + len).next_multiple_of(8) - header::LEN;
    if all > len && body > all {
        return None;
    }
    decoder.raw(len).ok()?;
    if all > len { decoder.align(8).ok() } else { Some(()) }
}

#[inline]
fn word(bytes: &[u8], at: usize, order: ByteOrder) -> Option<u32> {
    let bytes = *bytes.get(at..)?.first_chunk()?;
    Some(match order {
        ByteOrder::Big => u32::from_be_bytes(bytes),
        ByteOrder::Little => u32::from_le_bytes(bytes),
    })
}

#[inline]
fn order_bytes(value: u32, order: ByteOrder) -> [u8; 4] {
    match order {
        ByteOrder::Big => value.to_be_bytes(),
        ByteOrder::Little => value.to_le_bytes(),
    }
}

/// Everything here begins behind the header of the message, which is a multiple of four long.
#[inline]
fn aligned(at: usize) -> usize {
    (at + 3) & !3
}

const _: () = assert!(header::LEN % 4 == 0);
