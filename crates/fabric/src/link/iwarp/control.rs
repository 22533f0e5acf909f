//! What two Sidestep nodes say to each other over iWARP, besides writes, reads and atomics: the hello in the private
//! data of set-up, and the sends that follow.
//!
//! Little-endian. The hello:
//!
//! ```text
//! | "SdFb" | version, 1 byte | reserved, 1 byte | most bytes of a message, u16 | most bytes of a transfer, u32 |
//! ```
//!
//! A send is one kind byte, then:
//!
//! | kind | fields |
//! |---|---|
//! | 1 message | the message, to the end |
//! | 2 bind | tag u32, cookie (48 bytes): from now on the tag stands for the cookie |
//! | 3 check | tag u32: refuse if the cookie is not good |
//! | 4 refused | tag u32, units u64, why (17 bytes): the first request of the tag that was not carried out, and all after |
//! | 5 goodbye | the sender closes; nothing follows |
//! | 6 unbind | sent with invalidation of the tag |
//!
//! Tags are chosen by the side that uses them, with the highest bit clear; they mean nothing on another connection.
//! Units count what was carried out under a tag: each byte written, each read and each atomic.

use sidestep_iwarp::Stag;
use sidestep_wire::cursor::little::{Reader, Writer};

use crate::{cookie::Cookie, error::Refusal};

/// What each side says when a connection is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The most bytes of one message.
    pub max_message: u16,
    /// The most bytes of one read.
    pub max_transfer: u32,
}

/// One send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control<'a> {
    /// A message of the program above.
    Message(&'a [u8]),
    /// Lets a tag stand for a cookie.
    Bind {
        /// The tag.
        stag: Stag,
        /// The cookie.
        cookie: Cookie,
    },
    /// Asks whether the cookie of a tag is good.
    Check {
        /// The tag.
        stag: Stag,
    },
    /// A request was not carried out.
    Refused {
        /// The tag.
        stag: Stag,
        /// How much was carried out under the tag before.
        units: u64,
        /// Why.
        refusal: Refusal,
    },
    /// The sender closes.
    Goodbye,
    /// The tag that came with it is no longer used.
    Unbind,
}

impl Hello {
    /// Bytes of a hello.
    pub const LEN: usize = 12;

    /// The bytes.
    pub fn to_bytes(&self) -> [u8; Hello::LEN] {
        let mut bytes = [0; Hello::LEN];
        let mut out = Writer::new(&mut bytes[..]);
        out.bytes(MAGIC).u8(VERSION).u8(0).u16(self.max_message).u32(self.max_transfer);
        bytes
    }

    /// Reads the bytes.
    pub fn parse(bytes: &[u8]) -> Result<Hello, &'static str> {
        if bytes.len() != Hello::LEN {
            return Err("its hello has another length");
        }
        let mut fields = Reader::new(bytes);
        if fields.array()? != *MAGIC {
            return Err("it does not speak the protocol of the fabric");
        }
        if fields.u8()? != VERSION {
            return Err("it speaks another version of the protocol of the fabric");
        }
        fields.u8()?;
        Ok(Hello { max_message: fields.u16()?, max_transfer: fields.u32()? })
    }
}

impl<'a> Control<'a> {
    /// Writes the bytes to the end of `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut out = Writer::new(out);
        match *self {
            Control::Message(bytes) => out.u8(kind::MESSAGE).bytes(bytes),
            Control::Bind { stag, cookie } => out.u8(kind::BIND).u32(stag.0).bytes(&cookie.to_bytes()),
            Control::Check { stag } => out.u8(kind::CHECK).u32(stag.0),
            Control::Refused { stag, units, refusal } => {
                out.u8(kind::REFUSED).u32(stag.0).u64(units).bytes(&refusal.to_bytes())
            }
            Control::Goodbye => out.u8(kind::GOODBYE),
            Control::Unbind => out.u8(kind::UNBIND),
        };
    }

    /// Reads the bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Control<'a>, &'static str> {
        let fields = &mut Reader::new(bytes);
        let control = match fields.u8()? {
            kind::MESSAGE => Control::Message(fields.rest()),
            kind::BIND => Control::Bind { stag: Stag(fields.u32()?), cookie: Cookie::read(fields)? },
            kind::CHECK => Control::Check { stag: Stag(fields.u32()?) },
            kind::REFUSED => {
                Control::Refused { stag: Stag(fields.u32()?), units: fields.u64()?, refusal: Refusal::read(fields)? }
            }
            kind::GOODBYE => Control::Goodbye,
            kind::UNBIND => Control::Unbind,
            _ => return Err("a send of an unknown kind"),
        };
        fields.end()?;
        Ok(control)
    }
}

mod kind {
    pub(super) const MESSAGE: u8 = 1;
    pub(super) const BIND: u8 = 2;
    pub(super) const CHECK: u8 = 3;
    pub(super) const REFUSED: u8 = 4;
    pub(super) const GOODBYE: u8 = 5;
    pub(super) const UNBIND: u8 = 6;
}

const MAGIC: &[u8; 4] = b"SdFb";
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cookie::{RegionId, Rights};

    #[test]
    fn every_send_comes_back() {
        let cookie = Cookie { key: 5 << 100, region: RegionId(3), generation: 9, len: 4096, rights: Rights::ALL };
        let stag = Stag(0x0102_0304);
        let refusals = [
            Refusal::Unknown,
            Refusal::Forged,
            Refusal::Revoked,
            Refusal::Expired,
            Refusal::Rights { held: Rights::READ, wanted: Rights::WRITE },
            Refusal::Range { offset: 1 << 40, len: 7 },
        ];
        let mut all = vec![
            Control::Message(b"hello"),
            Control::Message(b""),
            Control::Bind { stag, cookie },
            Control::Check { stag },
            Control::Goodbye,
            Control::Unbind,
        ];
        all.extend(refusals.map(|refusal| Control::Refused { stag, units: 1 << 33, refusal }));
        for control in all {
            let mut bytes = Vec::new();
            control.emit(&mut bytes);
            assert_eq!(Control::parse(&bytes), Ok(control));
            if !matches!(control, Control::Message(_)) {
                bytes.push(0);
                assert!(Control::parse(&bytes).is_err());
            }
        }
        assert!(Control::parse(b"").is_err() && Control::parse(b"\x07").is_err());
    }

    #[test]
    fn a_hello_comes_back() {
        let hello = Hello { max_message: 4225, max_transfer: 65536 };
        let bytes = hello.to_bytes();
        assert_eq!(Hello::parse(&bytes), Ok(hello));
        for at in 0..5 {
            let mut bytes = bytes;
            bytes[at] ^= 1;
            assert!(Hello::parse(&bytes).is_err());
        }
        assert!(Hello::parse(&bytes[..11]).is_err());
    }
}
