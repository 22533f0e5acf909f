//! Requests (CORBA 3.3 part 2 §9.4.2) and cancelled requests (§9.4.4).
//!
//! ```text
//! 1.0, 1.1:  | contexts | id, 4 | response, 1 | reserved, 3 (1.1) | key | operation | principal |
//! 1.2:       | id, 4 | response, 1 | reserved, 3 | target | operation | contexts | pad to 8 if a body |
//! ```

use std::fmt;

use super::context::{ContextId, Contexts, emit_list};
use super::{Error, Target, Version};
use super::{header, plain};
use crate::cdr::{Decoder, Encoder};

/// What the client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// Nothing: a oneway operation.
    None,
    /// That the server has the request; the target need not have been called.
    Server,
    /// The outcome of the operation.
    Target,
}

impl Response {
    fn parse(version: Version, flags: u8) -> Self {
        match (version, flags & 3) {
            (_, 0) => Response::None,
            (Version::V1_2, 1 | 2) => Response::Server,
            _ => Response::Target,
        }
    }

    fn flags(self, version: Version) -> u8 {
        match self {
            Response::None => 0,
            Response::Server => 1,
            Response::Target if version == Version::V1_2 => 3,
            Response::Target => 1,
        }
    }
}

/// The header of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repr<'a> {
    /// What the reply will be known by.
    pub request_id: u32,
    /// What the client waits for.
    pub response: Response,
    /// The object.
    pub target: Target<'a>,
    /// The name of the operation.
    pub operation: &'a [u8],
    /// What the brokers tell each other.
    pub contexts: Contexts<'a>,
}

impl<'a> Repr<'a> {
    /// Reads the header; the decoder stands behind the message header, and afterwards at the body.
    pub fn parse(version: Version, decoder: &mut Decoder<'a>) -> Result<Self, Error> {
        if version == Version::V1_2
            && let Some(plain::Request { request_id, flags, key, operation }) = plain::Request::parse(decoder)
        {
            let (response, target) = (Response::parse(version, flags), Target::Key(key));
            return Ok(Self { request_id, response, target, operation, contexts: Contexts::EMPTY });
        }
        Self::parse_any(version, decoder)
    }

    #[inline(never)]
    fn parse_any(version: Version, decoder: &mut Decoder<'a>) -> Result<Self, Error> {
        if version < Version::V1_2 {
            let contexts = Contexts::parse(decoder)?;
            let request_id = decoder.u32()?;
            let response = Response::parse(version, decoder.u8()?);
            if version == Version::V1_1 {
                decoder.raw(3)?;
            }
            let target = Target::parse(version, decoder)?;
            let operation = decoder.identifier()?;
            decoder.octets()?;
            return Ok(Self { request_id, response, target, operation, contexts });
        }
        let request_id = decoder.u32()?;
        let response = Response::parse(version, decoder.u8()?);
        decoder.raw(3)?;
        let target = Target::parse(version, decoder)?;
        let operation = decoder.identifier()?;
        let contexts = Contexts::parse(decoder)?;
        // The body may be missing, and its padding with it.
        if decoder.remaining() > 0 {
            decoder.align(8)?;
        }
        Ok(Self { request_id, response, target, operation, contexts })
    }

    /// Writes the header; `more` are service contexts besides those of the value.
    ///
    /// The caller aligns to eight before a body in GIOP 1.2: [`align_body`].
    pub fn emit(&self, version: Version, more: &[(ContextId, &[u8])], encoder: &mut Encoder) -> Result<(), Error> {
        if version == Version::V1_2
            && more.is_empty()
            && self.contexts.is_empty()
            && let Target::Key(key) = self.target
        {
            let (flags, request_id, operation) = (self.response.flags(version), self.request_id, self.operation);
            if (plain::Request { request_id, flags, key, operation }).emit(encoder) {
                return Ok(());
            }
        }
        self.emit_any(version, more, encoder)
    }

    #[inline(never)]
    fn emit_any(&self, version: Version, more: &[(ContextId, &[u8])], encoder: &mut Encoder) -> Result<(), Error> {
        let contexts = |encoder: &mut Encoder| {
            if more.is_empty() { self.contexts.emit(encoder) } else { emit_list(more, encoder) }
        };
        if version < Version::V1_2 {
            contexts(encoder)?;
            encoder.u32(self.request_id);
            encoder.u8(self.response.flags(version));
            if version == Version::V1_1 {
                encoder.raw(&[0; 3]);
            }
            self.target.emit(version, encoder)?;
            encoder.identifier(self.operation)?;
            encoder.octets(&[])?;
            return Ok(());
        }
        encoder.u32(self.request_id);
        encoder.u8(self.response.flags(version));
        encoder.raw(&[0; 3]);
        self.target.emit(version, encoder)?;
        encoder.identifier(self.operation)?;
        contexts(encoder)?;
        Ok(())
    }
}

/// Where the id lies in a request that [`Repr::emit`] writes with these service contexts.
#[must_use]
pub fn id_at(version: Version, more: &[(ContextId, &[u8])]) -> usize {
    if version == Version::V1_2 {
        return header::LEN;
    }
    // The contexts come first: their number, then the id, the length and the bytes of each.
    more.iter().fold(header::LEN + 4, |at, (_, bytes)| (at + 8 + bytes.len()).next_multiple_of(4))
}

/// Pads to where the body of a request or a reply begins.
#[inline]
pub fn align_body(version: Version, encoder: &mut Encoder) {
    if version == Version::V1_2 {
        encoder.align(8);
    }
}

/// Writes the body of a request or a reply by `encode`. Without a body there is no padding either.
#[inline]
pub fn emit_body<E>(
    version: Version,
    encoder: &mut Encoder<'_>,
    encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let header_ends = encoder.position();
    align_body(version, encoder);
    let body_begins = encoder.position();
    encode(encoder)?;
    if encoder.position() == body_begins {
        encoder.truncate(header_ends);
    }
    Ok(())
}

/// Where the header of a request ends that has no service contexts and names the object by its key, in GIOP 1.2; `None` for any other.
/// The decoder stands behind the message header. Two messages that are the same up to there are requests for the same.
#[must_use]
pub fn plain_end(version: Version, decoder: &Decoder<'_>) -> Option<usize> {
    let plain = plain::Request::parse(&mut decoder.clone()).filter(|_| version == Version::V1_2)?;
    Some(decoder.position() + plain.len())
}

/// Reads a cancelled request: the id of the request.
pub fn parse_cancel(decoder: &mut Decoder<'_>) -> Result<u32, Error> {
    Ok(decoder.u32()?)
}

impl fmt::Display for Repr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = String::from_utf8_lossy(self.operation);
        write!(f, "request {} of {operation}, {:?} answers", self.request_id, self.response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdr::{ByteOrder, Format};
    use crate::giop::header;

    /// The bytes of a header, behind those of the message's own header.
    fn emitted(emit: impl FnOnce(&mut Encoder<'_>) -> Result<(), Error>, order: ByteOrder) -> Vec<u8> {
        let mut encoder = Encoder::new(vec![0; header::LEN], Format { order, ..Format::NATIVE });
        emit(&mut encoder).unwrap();
        encoder.into_bytes()
    }

    /// What a way to parse finds, and where the body begins then.
    fn parsed<'a, T>(
        bytes: &'a [u8],
        order: ByteOrder,
        parse: impl FnOnce(&mut Decoder<'a>) -> Result<T, Error>,
    ) -> Result<(T, usize), Error> {
        let mut decoder = Decoder::new(bytes, Format { order, ..Format::NATIVE });
        decoder.raw(header::LEN)?;
        let found = parse(&mut decoder)?;
        Ok((found, decoder.position()))
    }

    #[test]
    fn plain_headers_are_what_the_general_way_makes_of_them() {
        let version = Version::V1_2;
        for order in [ByteOrder::Big, ByteOrder::Little] {
            for (key_len, name_len) in [(0, 0), (21, 7), (20, 8), (3, 1), (60, 30), (200, 3), (1, 130)] {
                let (key, operation) = (vec![0xee; key_len], vec![b'o'; name_len]);
                let (target, contexts) = (Target::Key(&key), Contexts::EMPTY);
                let repr = Repr { request_id: 7, response: Response::Target, target, operation: &operation, contexts };
                let mut bytes = emitted(|encoder| repr.emit(version, &[], encoder), order);
                assert_eq!(bytes, emitted(|encoder| repr.emit_any(version, &[], encoder), order));
                for body in [0, 1, 8, 12] {
                    bytes.extend(vec![1; body]);
                    for end in header::LEN..=bytes.len() {
                        let plain = parsed(&bytes[..end], order, |decoder| Repr::parse(version, decoder));
                        let any = parsed(&bytes[..end], order, |decoder| Repr::parse_any(version, decoder));
                        assert_eq!(plain, any, "{end} bytes of {bytes:02x?}");
                    }
                }
                for at in header::LEN..bytes.len() {
                    for value in [0, 1, 2, 0x80, 0xff] {
                        let mut bytes = bytes.clone();
                        bytes[at] = value;
                        let plain = parsed(&bytes, order, |decoder| Repr::parse(version, decoder));
                        let any = parsed(&bytes, order, |decoder| Repr::parse_any(version, decoder));
                        assert_eq!(plain, any, "byte {at} is {value} in {bytes:02x?}");
                    }
                }
            }
        }
    }

    #[test]
    fn plain_replies_are_what_the_general_way_makes_of_them() {
        use crate::giop::reply;
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let repr = reply::Repr { request_id: 9, status: reply::Status::UserException, contexts: Contexts::EMPTY };
            let mut bytes = emitted(|encoder| repr.emit(Version::V1_2, encoder), order);
            assert_eq!(bytes.len(), header::LEN + 12);
            bytes.extend([1; 12]);
            for end in header::LEN..=bytes.len() {
                for (at, value) in (header::LEN..end).flat_map(|at| [(at, 0), (at, 5), (at, 0xff)]) {
                    let mut bytes = bytes[..end].to_vec();
                    bytes[at] = value;
                    let plain = parsed(&bytes, order, |decoder| reply::Repr::parse(Version::V1_2, decoder));
                    let any = parsed(&bytes, order, |decoder| reply::Repr::parse_any(Version::V1_2, decoder));
                    assert_eq!(plain, any, "byte {at} is {value} in {bytes:02x?}");
                }
            }
        }
    }

    #[test]
    fn the_id_is_where_it_is_said_to_be() {
        let contexts: [&[(ContextId, &[u8])]; 3] =
            [&[], &[(ContextId(1), &[2; 5])], &[(ContextId(1), &[2; 4]), (ContextId(3), &[4; 9])]];
        for (version, more) in [Version::V1_0, Version::V1_1, Version::V1_2]
            .map(|version| contexts.map(|more| (version, more)))
            .as_flattened()
        {
            let of = |request_id| {
                let (response, target, contexts) = (Response::Target, Target::Key(b"key"), Contexts::EMPTY);
                let repr = Repr { request_id, response, target, operation: b"operation", contexts };
                emitted(|encoder| repr.emit(*version, more, encoder), ByteOrder::NATIVE)
            };
            let (mut bytes, at) = (of(0), id_at(*version, more));
            bytes[at..at + 4].copy_from_slice(&0x1234_5678_u32.to_ne_bytes());
            assert_eq!(bytes, of(0x1234_5678));
        }
    }

    #[test]
    fn a_plain_header_ends_where_it_is_said_to_end() {
        for (key_len, name_len) in [(0, 0), (21, 7), (20, 8), (3, 1)] {
            let (key, operation) = (vec![0xee; key_len], vec![b'o'; name_len]);
            let (target, contexts) = (Target::Key(&key), Contexts::EMPTY);
            let repr = Repr { request_id: 7, response: Response::Target, target, operation: &operation, contexts };
            let plain = emitted(|encoder| repr.emit(Version::V1_2, &[], encoder), ByteOrder::NATIVE);
            let end = |bytes: &[u8], version| {
                let mut decoder = Decoder::new(bytes, Format::NATIVE);
                decoder.raw(header::LEN).unwrap();
                plain_end(version, &decoder)
            };
            assert_eq!(end(&plain, Version::V1_2), Some(plain.len()));
            assert_eq!(end(&[&plain[..], &[1; 20]].concat(), Version::V1_2), Some(plain.len()));
            assert_eq!(end(&plain, Version::V1_1), None);
            assert_eq!(end(&plain[..plain.len() - 1], Version::V1_2), None);
            let more: &[(ContextId, &[u8])] = &[(ContextId(1), &[2; 5])];
            assert_eq!(
                end(&emitted(|encoder| repr.emit(Version::V1_2, more, encoder), ByteOrder::NATIVE), Version::V1_2),
                None
            );
        }
    }

    #[test]
    fn whole_replies_are_what_the_general_way_makes_of_them() {
        use crate::cdr::CharSet;
        use crate::giop::{MessageType, begin, finish, reply};
        let status = reply::Status::SystemException;
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            let mut general = begin(Vec::new(), version, CharSet::Utf8, MessageType::Reply);
            let repr = reply::Repr { request_id: 9, status, contexts: Contexts::EMPTY };
            repr.emit(version, &mut general).unwrap();
            let mut short = reply::begin(vec![1; 3], version, CharSet::Utf8, (9, status));
            assert_eq!((short.bytes().len(), short.format()), (general.bytes().len(), general.format()));
            let body = |encoder: &mut Encoder<'_>| {
                encoder.u32(5);
                Ok::<(), Error>(())
            };
            emit_body(version, &mut general, body).unwrap();
            emit_body(version, &mut short, body).unwrap();
            let bytes = finish(short).unwrap();
            assert_eq!(bytes, finish(general).unwrap());
            let found = reply::Plain { request_id: 9, status, len: bytes.len() };
            let expected = Some(found).filter(|_| version == Version::V1_2);
            assert_eq!(reply::Plain::parse(&bytes), expected);
            assert_eq!(reply::Plain::parse(&[&bytes[..], b"GIOP"].concat()), expected);
            for end in 0..bytes.len() {
                assert_eq!(reply::Plain::parse(&bytes[..end]), None);
            }
            // The byte order, fragments, the type, the contexts and the status.
            for (at, value) in [(0, 0), (6, 0), (6, 3), (7, 0), (16, 6), (20, 1)] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                assert_eq!(reply::Plain::parse(&bytes), None, "byte {at} is {value}");
            }
        }
    }
}
