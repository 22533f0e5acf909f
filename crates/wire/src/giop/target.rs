//! How a request names its object.

use super::{Error, Version};
use crate::cdr::{Cdr, Decoder, Encoder, Format};
use crate::ior;

/// What a request is for. Before GIOP 1.2 it is always a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target<'a> {
    /// The object key that the server has put into its reference.
    Key(&'a [u8]),
    /// A whole profile of the reference.
    Profile {
        /// The tag of the profile.
        tag: u32,
        /// Its data.
        data: &'a [u8],
    },
    /// The whole reference, of which a profile was chosen. It is only sent: what is received is the profile that it says.
    Reference {
        /// Which of the profiles.
        selected: u32,
        /// The reference.
        ior: &'a ior::Ior,
    },
}

/// The addressing mode of [`Target::Key`].
pub const KEY: u16 = 0;
/// Of [`Target::Profile`].
pub const PROFILE: u16 = 1;
/// Of [`Target::Reference`].
pub const REFERENCE: u16 = 2;

impl<'a> Target<'a> {
    pub(super) fn parse(version: Version, decoder: &mut Decoder<'a>) -> Result<Self, Error> {
        if version < Version::V1_2 {
            return Ok(Target::Key(decoder.octets()?));
        }
        match decoder.u16()? {
            KEY => Ok(Target::Key(decoder.octets()?)),
            PROFILE => Ok(Target::Profile { tag: decoder.u32()?, data: decoder.octets()? }),
            REFERENCE => {
                let selected = decoder.u32()?;
                decoder.identifier()?;
                let count = decoder.length(8)?;
                let mut target = None;
                for index in 0..count {
                    let tag = decoder.u32()?;
                    let data = decoder.octets()?;
                    if index == selected as usize {
                        target = Some(Target::Profile { tag, data });
                    }
                }
                target.ok_or(Error::Value { field: "selected profile", found: selected })
            }
            found => Err(Error::Value { field: "addressing mode", found: found.into() }),
        }
    }

    pub(super) fn emit(&self, version: Version, encoder: &mut Encoder) -> Result<(), Error> {
        match self {
            Target::Key(key) => {
                if version == Version::V1_2 {
                    encoder.u16(KEY);
                }
                encoder.octets(key)?;
            }
            Target::Profile { tag, data } => {
                if version != Version::V1_2 {
                    return Err(Error::Value { field: "addressing mode", found: PROFILE.into() });
                }
                encoder.u16(PROFILE);
                encoder.u32(*tag);
                encoder.octets(data)?;
            }
            Target::Reference { selected, ior } => {
                if version != Version::V1_2 {
                    return Err(Error::Value { field: "addressing mode", found: REFERENCE.into() });
                }
                encoder.u16(REFERENCE);
                encoder.u32(*selected);
                ior.encode(encoder)?;
            }
        }
        Ok(())
    }

    /// The object key, also from within an IIOP profile.
    pub fn key(&self) -> Result<&'a [u8], Error> {
        match *self {
            Target::Key(key) => Ok(key),
            Target::Profile { tag: ior::TAG_INTERNET_IOP, data } => {
                Ok(ior::iiop::object_key(&mut Decoder::of_encapsulation(data, Format::NATIVE)?)?)
            }
            Target::Profile { tag, .. } => Err(Error::Value { field: "profile tag", found: tag }),
            Target::Reference { selected, ior } => {
                let missing = Error::Value { field: "selected profile", found: selected };
                let ior::Profile { tag, data } = ior.profiles.get(selected as usize).ok_or(missing)?;
                Target::Profile { tag: *tag, data }.key()
            }
        }
    }
}
