//! Fragments (CORBA 3.3 part 2 §9.4.9).
//!
//! In GIOP 1.2 a fragment begins with the id of its request, so that fragments of several messages
//! may alternate; in GIOP 1.1 it is nothing but the bytes that follow.

use super::{Error, Version};
use crate::cdr::Decoder;

/// The length of a fragment's own header in this version.
#[must_use]
pub fn header_len(version: Version) -> usize {
    if version == Version::V1_2 { 4 } else { 0 }
}

/// Reads the header of a fragment: the id of its request, which GIOP 1.1 does not tell.
pub fn parse(version: Version, decoder: &mut Decoder<'_>) -> Result<Option<u32>, Error> {
    if version == Version::V1_2 { Ok(Some(decoder.u32()?)) } else { Ok(None) }
}

/// The id of the request that a whole or a first message of GIOP 1.2 belongs to.
pub fn message_id(decoder: &mut Decoder<'_>) -> Result<u32, Error> {
    Ok(decoder.u32()?)
}
