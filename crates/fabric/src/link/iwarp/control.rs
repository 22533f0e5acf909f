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

use crate::{
    cookie::{Cookie, Rights},
    error::Refusal,
};

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
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4] = VERSION;
        bytes[6..8].copy_from_slice(&self.max_message.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.max_transfer.to_le_bytes());
        bytes
    }

    /// Reads the bytes.
    pub fn parse(bytes: &[u8]) -> Result<Hello, &'static str> {
        let bytes: &[u8; Hello::LEN] = bytes.try_into().map_err(|_| "its hello has another length")?;
        if bytes[..4] != *MAGIC {
            return Err("it does not speak the protocol of the fabric");
        }
        if bytes[4] != VERSION {
            return Err("it speaks another version of the protocol of the fabric");
        }
        Ok(Hello {
            max_message: u16::from_le_bytes([bytes[6], bytes[7]]),
            max_transfer: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
        })
    }
}

impl<'a> Control<'a> {
    /// Writes the bytes to the end of `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Control::Message(bytes) => {
                out.push(kind::MESSAGE);
                out.extend_from_slice(bytes);
            }
            Control::Bind { stag, cookie } => {
                out.push(kind::BIND);
                out.extend_from_slice(&stag.0.to_le_bytes());
                out.extend_from_slice(&cookie.to_bytes());
            }
            Control::Check { stag } => {
                out.push(kind::CHECK);
                out.extend_from_slice(&stag.0.to_le_bytes());
            }
            Control::Refused { stag, units, refusal } => {
                out.push(kind::REFUSED);
                out.extend_from_slice(&stag.0.to_le_bytes());
                out.extend_from_slice(&units.to_le_bytes());
                emit_refusal(out, refusal);
            }
            Control::Goodbye => out.push(kind::GOODBYE),
            Control::Unbind => out.push(kind::UNBIND),
        }
    }

    /// Reads the bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Control<'a>, &'static str> {
        let (kind, rest) = bytes.split_first().ok_or("a send without a kind")?;
        let fixed = |len| if rest.len() == len { Ok(()) } else { Err("a send of the wrong length") };
        let stag = || Stag(word(&rest[..4]) as u32);
        match *kind {
            kind::MESSAGE => Ok(Control::Message(rest)),
            kind::BIND => {
                fixed(4 + Cookie::WIRE_LEN)?;
                let cookie = Cookie::from_bytes(&rest[4..]).map_err(|_| "a cookie that is none")?;
                Ok(Control::Bind { stag: stag(), cookie })
            }
            kind::CHECK => fixed(4).map(|()| Control::Check { stag: stag() }),
            kind::REFUSED => {
                fixed(4 + 8 + REFUSAL_LEN)?;
                let refusal = parse_refusal(&rest[12..]).ok_or("a refusal without a known reason")?;
                Ok(Control::Refused { stag: stag(), units: word(&rest[4..12]), refusal })
            }
            kind::GOODBYE => fixed(0).map(|()| Control::Goodbye),
            kind::UNBIND => fixed(0).map(|()| Control::Unbind),
            _ => Err("a send of an unknown kind"),
        }
    }
}

fn emit_refusal(out: &mut Vec<u8>, refusal: Refusal) {
    let (code, first, second) = match refusal {
        Refusal::Unknown => (1, 0, 0),
        Refusal::Forged => (2, 0, 0),
        Refusal::Revoked => (3, 0, 0),
        Refusal::Expired => (4, 0, 0),
        Refusal::Rights { held, wanted } => (5, u64::from(held.bits()), u64::from(wanted.bits())),
        Refusal::Range { offset, len } => (6, offset, len),
    };
    out.push(code);
    out.extend_from_slice(&first.to_le_bytes());
    out.extend_from_slice(&second.to_le_bytes());
}

fn parse_refusal(bytes: &[u8]) -> Option<Refusal> {
    let (first, second) = (word(&bytes[1..9]), word(&bytes[9..17]));
    let rights = |bits: u64| u8::try_from(bits).ok().and_then(Rights::from_bits);
    match (bytes[0], first, second) {
        (1, 0, 0) => Some(Refusal::Unknown),
        (2, 0, 0) => Some(Refusal::Forged),
        (3, 0, 0) => Some(Refusal::Revoked),
        (4, 0, 0) => Some(Refusal::Expired),
        (5, held, wanted) => Some(Refusal::Rights { held: rights(held)?, wanted: rights(wanted)? }),
        (6, offset, len) => Some(Refusal::Range { offset, len }),
        _ => None,
    }
}

/// Up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
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
const REFUSAL_LEN: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cookie::RegionId;

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
