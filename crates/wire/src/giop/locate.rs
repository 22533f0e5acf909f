//! Asking where an object is (CORBA 3.3 part 2 §9.4.5, §9.4.6).
//!
//! ```text
//! request:  | id, 4 | key (1.2: target) |
//! reply:    | id, 4 | status, 4 |
//! ```

use super::{Error, Target, Version};
use crate::cdr::{Decoder, Encoder};

/// The header of a locate request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request<'a> {
    /// What the reply will be known by.
    pub request_id: u32,
    /// The object.
    pub target: Target<'a>,
}

impl<'a> Request<'a> {
    /// Reads the header; the decoder stands behind the message header.
    pub fn parse(version: Version, decoder: &mut Decoder<'a>) -> Result<Self, Error> {
        Ok(Self { request_id: decoder.u32()?, target: Target::parse(version, decoder)? })
    }

    /// Writes the header.
    pub fn emit(&self, version: Version, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.u32(self.request_id);
        self.target.emit(version, encoder)
    }
}

/// Where an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nobody knows the object.
    UnknownObject,
    /// It is here.
    ObjectHere,
    /// The body is another reference.
    ObjectForward,
    /// The body is another reference, to be used from now on.
    ObjectForwardPerm,
    /// The body is a system exception.
    SystemException,
    /// How the target has to be named.
    NeedsAddressingMode,
}

/// The header of a locate reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The id of the request.
    pub request_id: u32,
    /// Where the object is.
    pub status: Status,
}

impl Reply {
    const ALL: [Status; 6] = [
        Status::UnknownObject,
        Status::ObjectHere,
        Status::ObjectForward,
        Status::ObjectForwardPerm,
        Status::SystemException,
        Status::NeedsAddressingMode,
    ];

    /// Reads the header; afterwards the decoder stands at the body, which is not aligned to eight.
    pub fn parse(version: Version, decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let request_id = decoder.u32()?;
        let found = decoder.u32()?;
        let status = Self::ALL
            .into_iter()
            .find(|status| *status as u32 == found)
            .filter(|status| version == Version::V1_2 || (*status as u32) < Status::ObjectForwardPerm as u32)
            .ok_or(Error::Value { field: "locate status", found })?;
        Ok(Self { request_id, status })
    }

    /// Writes the header.
    pub fn emit(&self, encoder: &mut Encoder) {
        encoder.u32(self.request_id);
        encoder.u32(self.status as u32);
    }
}
