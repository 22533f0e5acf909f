//! The components of a profile (CORBA 3.3 part 2 §7.6.3, §7.10.2.4, §9.7.3).

use std::fmt;

use super::{encapsulate, identifier};
use crate::cdr::{CharSet, Decoder, Encoder, Error, Format};

/// The code sets that a server speaks.
pub const TAG_CODE_SETS: u32 = 1;

/// Another TCP address of the same object.
pub const TAG_ALTERNATE_IIOP_ADDRESS: u32 = 3;

/// The path of a UNIX socket, as omniORB writes it.
pub const TAG_OMNIORB_UNIX_TRANS: u32 = 0x4154_5402;

/// The name of a fabric channel, as Sidestep writes it: the octets of `SID` and one.
pub const TAG_SIDESTEP_FABRIC: u32 = 0x5349_4401;

/// An addition to a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Component {
    /// The code sets that the server speaks.
    CodeSets {
        /// Those of `char`.
        chars: CodeSetChoice,
        /// Those of `wchar`.
        wide: CodeSetChoice,
    },
    /// Another TCP address.
    Alternate {
        /// A host name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A UNIX socket on the host of this name.
    Unix {
        /// The name that the server's host gives itself.
        host: String,
        /// The path of the socket.
        path: String,
    },
    /// A channel of the fabric.
    Fabric {
        /// The name that the server's host gives itself.
        host: String,
        /// Its name, with the scheme of the link.
        name: String,
    },
    /// Something else, kept as it is.
    Other {
        /// What it is.
        tag: u32,
        /// Its data.
        data: Vec<u8>,
    },
}

/// The code sets that one end speaks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeSetChoice {
    /// The one that needs no conversion.
    pub native: u32,
    /// Those that it can convert.
    pub conversion: Vec<u32>,
}

impl CodeSetChoice {
    /// The code set of `char` for a connection to this server (CORBA 3.3 part 2 §7.10.2.6).
    ///
    /// UTF-8 is native here. It is chosen if the server knows it, else ISO 8859-1 if the server knows
    /// that, else UTF-8, which is what the standard falls back to.
    #[must_use]
    pub fn chosen(&self) -> CharSet {
        let knows = |set: CharSet| self.native == set.id() || self.conversion.contains(&set.id());
        if !knows(CharSet::Utf8) && knows(CharSet::Latin1) { CharSet::Latin1 } else { CharSet::Utf8 }
    }

    fn parse(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let native = decoder.u32()?;
        let count = decoder.length(4)?;
        let conversion = (0..count).map(|_| decoder.u32()).collect::<Result<_, _>>()?;
        Ok(Self { native, conversion })
    }

    fn emit(&self, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.u32(self.native);
        encoder.sequence(&self.conversion)
    }
}

impl Component {
    /// Reads a list of components.
    pub fn list(decoder: &mut Decoder<'_>) -> Result<Vec<Self>, Error> {
        let count = decoder.length(8)?;
        (0..count)
            .map(|_| {
                let tag = decoder.u32()?;
                let data = decoder.octets()?;
                // A component that is not understood does not spoil the others.
                Ok(Self::parse(tag, data).unwrap_or_else(|_| Component::Other { tag, data: data.to_vec() }))
            })
            .collect()
    }

    /// Writes a list of components.
    pub fn emit_list(list: &[Self], encoder: &mut Encoder) -> Result<(), Error> {
        encoder.length(list.len())?;
        list.iter().try_for_each(|component| component.emit(encoder))
    }

    fn parse(tag: u32, data: &[u8]) -> Result<Self, Error> {
        let decoder = &mut Decoder::of_encapsulation(data, Format::NATIVE)?;
        Ok(match tag {
            TAG_CODE_SETS => {
                Component::CodeSets { chars: CodeSetChoice::parse(decoder)?, wide: CodeSetChoice::parse(decoder)? }
            }
            TAG_ALTERNATE_IIOP_ADDRESS => Component::Alternate { host: identifier(decoder)?, port: decoder.u16()? },
            TAG_OMNIORB_UNIX_TRANS => Component::Unix { host: identifier(decoder)?, path: identifier(decoder)? },
            TAG_SIDESTEP_FABRIC => Component::Fabric { host: identifier(decoder)?, name: identifier(decoder)? },
            _ => Component::Other { tag, data: data.to_vec() },
        })
    }

    fn emit(&self, encoder: &mut Encoder) -> Result<(), Error> {
        let (tag, data) = match self {
            Component::CodeSets { chars, wide } => (
                TAG_CODE_SETS,
                encapsulate(|encoder| {
                    chars.emit(encoder)?;
                    wide.emit(encoder)
                })?,
            ),
            Component::Alternate { host, port } => (
                TAG_ALTERNATE_IIOP_ADDRESS,
                encapsulate(|encoder| {
                    encoder.identifier(host.as_bytes())?;
                    encoder.u16(*port);
                    Ok(())
                })?,
            ),
            Component::Unix { host, path } => (
                TAG_OMNIORB_UNIX_TRANS,
                encapsulate(|encoder| {
                    encoder.identifier(host.as_bytes())?;
                    encoder.identifier(path.as_bytes())
                })?,
            ),
            Component::Fabric { host, name } => (
                TAG_SIDESTEP_FABRIC,
                encapsulate(|encoder| {
                    encoder.identifier(host.as_bytes())?;
                    encoder.identifier(name.as_bytes())
                })?,
            ),
            Component::Other { tag, data } => (*tag, data.clone()),
        };
        encoder.u32(tag);
        encoder.octets(&data)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Component::CodeSets { chars, wide } => {
                write!(f, "code sets {:#010x} and {:#010x}", chars.native, wide.native)
            }
            Component::Alternate { host, port } => write!(f, "also at {host}:{port}"),
            Component::Unix { host, path } => write!(f, "unix:{path} on {host}"),
            Component::Fabric { host, name } => write!(f, "fabric channel {name} on {host}"),
            Component::Other { tag, data } => write!(f, "component {tag:#x} of {} bytes", data.len()),
        }
    }
}
