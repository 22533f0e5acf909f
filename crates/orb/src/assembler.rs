//! Bytes of a connection to whole messages.
//!
//! It has no socket: whoever reads one asks for [`Assembler::space`], says how much was [`filled`], and takes
//! messages until there is none. A message lies where it was received, unless it came in fragments.
//!
//! [`filled`]: Assembler::filled

use std::collections::HashMap;

use sidestep_wire::giop::{self, MessageType, Version, fragment, header};

use crate::cdr::{CharSet, Decoder, Format, Source};

/// A whole message, from its header on.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) header: header::Repr,
    pub(crate) bytes: &'a [u8],
    /// What follows the bytes, if they are not all.
    pub(crate) rest: Option<Rest<'a>>,
    /// Where fragments begin that values are aligned in: in GIOP 1.1.
    pub(crate) joints: &'a [usize],
}

/// A message that lies in the memory of a transport.
#[derive(Clone, Copy)]
pub(crate) struct Rest<'a> {
    pub(crate) source: &'a dyn Source,
    /// The length of the whole message.
    pub(crate) len: usize,
}

impl<'a> Message<'a> {
    /// How its values are encoded.
    #[inline]
    pub(crate) fn format(&self, chars: CharSet) -> Format {
        Format { order: self.header.order, minor: self.header.version.minor(), chars }
    }

    /// A decoder that stands behind the message header.
    #[inline]
    pub(crate) fn decoder(&self, chars: CharSet) -> Decoder<'a> {
        let mut decoder = Decoder::new(self.bytes, self.format(chars));
        // A message that has been assembled has a header.
        let _ = decoder.raw(header::LEN);
        match &self.rest {
            Some(rest) => decoder.with_rest(rest.source, rest.len),
            None => decoder.with_joints(self.joints),
        }
    }

    /// Copies the whole message; false if it is not there any more.
    pub(crate) fn copy_to(&self, buffer: &mut Vec<u8>) -> bool {
        buffer.clear();
        buffer.extend_from_slice(self.bytes);
        let begin = self.bytes.len();
        self.rest.is_none_or(|rest| rest.source.append_to(begin, rest.len - begin.min(rest.len), buffer))
    }
}

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error(transparent)]
    Giop(#[from] giop::Error),
    #[error("a message of {size} bytes is larger than {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("a fragment belongs to no message")]
    StrayFragment,
    #[error("too many messages in fragments at once")]
    TooManyPartial,
}

#[derive(Debug)]
pub(crate) struct Assembler {
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// The largest message that is taken.
    limit: usize,
    /// Messages whose fragments have not all come, by request id; GIOP 1.1 has at most one.
    partial: HashMap<u32, Whole>,
    /// The bytes of all of them.
    held: usize,
    /// A message put together of fragments, while it is looked at.
    assembled: Whole,
}

/// What has come of a message in fragments.
#[derive(Debug, Default)]
struct Whole {
    bytes: Vec<u8>,
    /// Where fragments begin, if that matters.
    joints: Vec<usize>,
}

/// What is read at once.
const CHUNK: usize = 32 * 1024;

/// How many messages may be in fragments at once. All together hold no more than one message may have.
const MAX_PARTIAL: usize = 64;

/// The key of the one message that GIOP 1.1 can have in fragments.
const UNNUMBERED: u32 = u32::MAX;

impl Assembler {
    pub(crate) fn new(limit: usize) -> Self {
        let (buffer, partial) = (Vec::new(), HashMap::new());
        Self { buffer, begin: 0, end: 0, limit, partial, held: 0, assembled: Whole::default() }
    }

    /// Where the next bytes go. Grows only as bytes have come: an announced length allocates nothing.
    #[inline]
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
            if !self.buffer.is_empty() {
                return &mut self.buffer;
            }
        }
        self.make_space()
    }

    fn make_space(&mut self) -> &mut [u8] {
        if self.begin > 0 {
            self.buffer.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
        }
        let wanted = (self.end * 2).max(CHUNK);
        if self.buffer.len() - self.end < CHUNK / 2 {
            self.buffer.resize(wanted, 0);
        }
        &mut self.buffer[self.end..]
    }

    #[inline]
    pub(crate) fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// What is kept. A message that is whole in it is not too large.
    #[inline]
    pub(crate) fn kept(&self) -> &[u8] {
        let end = self.end.min(self.begin.saturating_add(self.limit));
        self.buffer.get(self.begin..end).unwrap_or_default()
    }

    /// Steps over a message of what is kept, which was dealt with.
    #[inline]
    pub(crate) fn consume(&mut self, len: usize) {
        self.begin = (self.begin + len).min(self.end);
    }

    /// Whether nothing is kept: the next byte of the connection begins a message.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// The next whole message, if all of it has come.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Message<'_>>, Broken> {
        if self.is_empty() { Ok(None) } else { self.next_of_some() }
    }

    fn next_of_some(&mut self) -> Result<Option<Message<'_>>, Broken> {
        loop {
            let have = &self.buffer[self.begin..self.end];
            if have.len() < header::LEN {
                return Ok(None);
            }
            let header = header::Repr::parse(&header::Header::new_checked(have)?)?;
            let size = header::LEN + header.size as usize;
            if size > self.limit {
                return Err(Broken::TooLarge { size, limit: self.limit });
            }
            if have.len() < size {
                return Ok(None);
            }
            let begin = self.begin;
            self.begin += size;
            let range = begin..begin + size;
            if !header.more_fragments && header.message_type != MessageType::Fragment {
                return Ok(Some(Message { header, bytes: &self.buffer[range], rest: None, joints: &[] }));
            }
            if self.keep(header, range)? {
                break;
            }
        }
        let header = header::Repr::parse(&header::Header::new_checked(&self.assembled.bytes)?)?;
        Ok(Some(Message { header, bytes: &self.assembled.bytes, rest: None, joints: &self.assembled.joints }))
    }

    /// Keeps a message that goes on, or adds a fragment; true if it was the last one.
    fn keep(&mut self, header: header::Repr, range: std::ops::Range<usize>) -> Result<bool, Broken> {
        let message = Message { header, bytes: &self.buffer[range], rest: None, joints: &[] };
        let mut decoder = message.decoder(CharSet::Latin1);
        let key = match header.version {
            Version::V1_2 => fragment::message_id(&mut decoder)?,
            _ => UNNUMBERED,
        };
        if header.message_type != MessageType::Fragment {
            if self.partial.len() == MAX_PARTIAL {
                return Err(Broken::TooManyPartial);
            }
            let size = message.bytes.len();
            self.held = within(self.held + size, self.limit)?;
            let whole = Whole { bytes: message.bytes.to_vec(), joints: Vec::new() };
            let before = self.partial.insert(key, whole);
            self.held -= before.map_or(0, |before| before.bytes.len());
            return Ok(false);
        }
        let whole = self.partial.get_mut(&key).ok_or(Broken::StrayFragment)?;
        let more = &message.bytes[(header::LEN + fragment::header_len(header.version)).min(message.bytes.len())..];
        let size = whole.bytes.len() + more.len();
        self.held = within(self.held + more.len(), self.limit)?;
        if header.version < Version::V1_2 {
            whole.joints.push(whole.bytes.len());
        }
        whole.bytes.extend_from_slice(more);
        if header.more_fragments {
            return Ok(false);
        }
        self.assembled = self.partial.remove(&key).ok_or(Broken::StrayFragment)?;
        self.held -= size;
        let first = header::Repr::parse(&header::Header::new_checked(&self.assembled.bytes)?)?;
        let size = u32::try_from(size - header::LEN).unwrap_or(u32::MAX);
        header::Repr { more_fragments: false, size, ..first }.emit(&mut self.assembled.bytes);
        Ok(true)
    }

    /// Forgets the fragments of a request that was cancelled.
    pub(crate) fn forget(&mut self, request_id: u32) {
        self.held -= self.partial.remove(&request_id).map_or(0, |whole| whole.bytes.len());
    }
}

fn within(size: usize, limit: usize) -> Result<usize, Broken> {
    if size > limit { Err(Broken::TooLarge { size, limit }) } else { Ok(size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(message_type: MessageType, more_fragments: bool, body: &[u8]) -> Vec<u8> {
        let order = crate::cdr::ByteOrder::NATIVE;
        let mut bytes = vec![0; header::LEN];
        let size = body.len() as u32;
        header::Repr { version: Version::V1_2, order, more_fragments, message_type, size }.emit(&mut bytes);
        bytes.extend_from_slice(body);
        bytes
    }

    fn feed(assembler: &mut Assembler, bytes: &[u8]) {
        assembler.space()[..bytes.len()].copy_from_slice(bytes);
        assembler.filled(bytes.len());
    }

    #[test]
    fn a_stream_may_be_cut_anywhere() {
        let id = |id: u32| id.to_ne_bytes().to_vec();
        let stream = [
            message(MessageType::Request, true, &[id(1), vec![10; 4]].concat()),
            message(MessageType::Request, true, &[id(2), vec![20; 4]].concat()),
            message(MessageType::Reply, false, &id(3)),
            message(MessageType::Fragment, true, &[id(1), vec![11; 8]].concat()),
            message(MessageType::Fragment, false, &[id(2), vec![21; 4]].concat()),
            message(MessageType::Fragment, false, &[id(1), vec![12; 3]].concat()),
        ]
        .concat();
        let expected: Vec<Vec<u8>> = vec![
            id(3),
            [id(2), vec![20; 4], vec![21; 4]].concat(),
            [id(1), vec![10; 4], vec![11; 8], vec![12; 3]].concat(),
        ];
        for cut in 1..stream.len() {
            let mut assembler = Assembler::new(1 << 20);
            let mut found = Vec::new();
            for part in stream.chunks(cut) {
                feed(&mut assembler, part);
                while let Some(message) = assembler.next().unwrap() {
                    assert!(!message.header.more_fragments);
                    assert_eq!(message.header.size as usize, message.bytes.len() - header::LEN);
                    found.push(message.bytes[header::LEN..].to_vec());
                }
            }
            assert_eq!(found, expected, "cut at {cut}");
            assert_eq!((assembler.begin, assembler.partial.len(), assembler.held), (assembler.end, 0, 0));
        }
    }

    #[test]
    fn what_is_too_large_or_stray_is_refused() {
        let mut assembler = Assembler::new(100);
        let mut huge = message(MessageType::Request, false, &[]);
        huge[8..12].copy_from_slice(&u32::MAX.to_ne_bytes());
        feed(&mut assembler, &huge);
        assert!(matches!(assembler.next(), Err(Broken::TooLarge { .. })));
        assert!(assembler.buffer.len() <= CHUNK);
        let mut assembler = Assembler::new(100);
        feed(&mut assembler, &message(MessageType::Fragment, false, &[0; 8]));
        assert!(matches!(assembler.next(), Err(Broken::StrayFragment)));
        let mut assembler = Assembler::new(100);
        feed(&mut assembler, &message(MessageType::Request, true, &[0; 60]));
        feed(&mut assembler, &message(MessageType::Fragment, true, &[0; 60]));
        assert!(matches!(assembler.next(), Err(Broken::TooLarge { .. })));
        // Of several messages, together.
        let mut assembler = Assembler::new(100);
        feed(&mut assembler, &message(MessageType::Request, true, &[0; 60]));
        feed(&mut assembler, &message(MessageType::Request, true, &[1; 60]));
        assert!(matches!(assembler.next(), Err(Broken::TooLarge { .. })));
        let mut assembler = Assembler::new(100);
        feed(&mut assembler, &message(MessageType::Request, true, &[0; 60]));
        assert!(assembler.next().unwrap().is_none());
        assembler.forget(0);
        feed(&mut assembler, &message(MessageType::Request, true, &[1; 60]));
        assert!(assembler.next().unwrap().is_none());
    }
}
