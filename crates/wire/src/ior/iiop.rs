//! The profile of the Internet Inter-ORB Protocol (CORBA 3.3 part 2 §9.7.2).
//!
//! ```text
//! | major, 1 | minor, 1 | host, string | port, 2 | object key, octets | components (not in 1.0) |
//! ```

use std::fmt;

use super::component::Component;
use super::{Profile, TAG_INTERNET_IOP, encapsulate, identifier};
use crate::cdr::{Decoder, Encoder, Error, Format};
use crate::giop::Version;

/// The value of an IIOP profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repr {
    /// The version of GIOP that may be spoken, at most.
    pub version: Version,
    /// A host name or an address.
    pub host: String,
    /// A TCP port; zero if the object is reached only by what the components say.
    pub port: u16,
    /// What the server calls the object.
    pub object_key: Vec<u8>,
    /// What else the server says.
    pub components: Vec<Component>,
}

impl Repr {
    /// Reads the data of a profile.
    pub fn parse(profile: &Profile) -> Result<Self, Error> {
        let mut decoder = Decoder::of_encapsulation(&profile.data, Format::NATIVE)?;
        let minor = version(&mut decoder)?;
        let host = identifier(&mut decoder)?;
        let port = decoder.u16()?;
        let object_key = decoder.octets()?.to_vec();
        // Some brokers write no components where there are none.
        let components = match minor {
            0 => Vec::new(),
            _ if decoder.remaining() == 0 => Vec::new(),
            _ => Component::list(&mut decoder)?,
        };
        Ok(Self { version: Version::from_minor(minor), host, port, object_key, components })
    }

    /// Writes the profile.
    pub fn emit(&self) -> Result<Profile, Error> {
        let data = encapsulate(|encoder: &mut Encoder| {
            encoder.u8(1);
            encoder.u8(self.version.minor());
            encoder.identifier(self.host.as_bytes())?;
            encoder.u16(self.port);
            encoder.octets(&self.object_key)?;
            if self.version > Version::V1_0 { Component::emit_list(&self.components, encoder) } else { Ok(()) }
        })?;
        Ok(Profile { tag: TAG_INTERNET_IOP, data })
    }
}

/// The object key of a profile, behind the byte order.
pub(crate) fn object_key<'a>(decoder: &mut Decoder<'a>) -> Result<&'a [u8], Error> {
    version(decoder)?;
    decoder.identifier()?;
    decoder.u16()?;
    decoder.octets()
}

fn version(decoder: &mut Decoder<'_>) -> Result<u8, Error> {
    match (decoder.u8()?, decoder.u8()?) {
        (1, minor) => Ok(minor),
        (major, _) => Err(Error::Enumeration { enumeration: "IIOP major version", found: major.into() }),
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "iiop:{}@{}:{}", self.version, self.host, self.port)
    }
}
