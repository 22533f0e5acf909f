//! The messages nodes exchange about endpoints and regions, carried by [`crate::link::Link::post`].
//!
//! Little-endian; one kind byte, then fixed fields, then bytes to the end:
//!
//! | kind | fields | bytes |
//! |---|---|---|
//! | 1 connect | from: slot, session; name length u16 | name, private data |
//! | 2 accept | to: slot, session; from: slot, session | private data |
//! | 3 refuse | to: slot, session; why u8 (0 refused, 1 nobody listens) | private data |
//! | 4 message | to: slot, session | the message |
//! | 5 on-close | to: slot, session | what to deliver when the sender is gone |
//! | 6 close | to: slot, session | the on-close message |
//! | 7 revoked | region u32, first generation that is still honoured u32 | – |
//! | 8 locate | cookie | – |
//! | 9 located | cookie, address u64, turn of the gate u64 | – |
//! | 10 ring | to: slot, session | the queue spec of a larger ring to send into |

use sidestep_wire::cursor::little::{Reader, Writer};

use crate::cookie::{Cookie, RegionId};

/// An endpoint as its owner names it: a slot, and the session that makes a reused slot another endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId {
    /// Which slot.
    pub slot: u32,
    /// Which use of the slot.
    pub session: u32,
}

/// The most private data of a connect, accept or refuse, and the most bytes of a message.
pub const MAX_PRIVATE: usize = 4096;
/// The longest name.
pub const MAX_NAME: usize = 64;

/// One message between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Asks for a connection to whoever listens under a name.
    Connect {
        /// Whose connection.
        from: EndpointId,
        /// To whom.
        name: &'a str,
        /// For the listener.
        private: &'a [u8],
    },
    /// Says yes.
    Accept {
        /// Who asked.
        to: EndpointId,
        /// The new endpoint.
        from: EndpointId,
        /// For who asked.
        private: &'a [u8],
    },
    /// Says no.
    Refuse {
        /// Who asked.
        to: EndpointId,
        /// Whether nobody listens, as opposed to a listener's no.
        nobody_listens: bool,
        /// For who asked.
        private: &'a [u8],
    },
    /// An out-of-band message.
    Message {
        /// For whom.
        to: EndpointId,
        /// What.
        bytes: &'a [u8],
    },
    /// Deposits the on-close message of the sender.
    OnClose {
        /// For whom.
        to: EndpointId,
        /// What to deliver when the sender is gone.
        bytes: &'a [u8],
    },
    /// Ends the connection; the sender writes nothing after this.
    Close {
        /// For whom.
        to: EndpointId,
        /// The on-close message.
        bytes: &'a [u8],
    },
    /// Asks where memory of the program lies that a cookie names, to copy through the kernel.
    Locate {
        /// Which region.
        cookie: Cookie,
    },
    /// Says where, if the region is such memory and the kernel may let the other side.
    Located {
        /// Which region.
        cookie: Cookie,
        /// Where it begins in the process of the sender.
        address: u64,
        /// The turn of the sender's gate that this is true for.
        turn: u64,
    },
    /// A larger ring to send into.
    Ring {
        /// Whose sender.
        to: EndpointId,
        /// The block it lies in, as a `QueueSpec` says it.
        spec: &'a [u8],
    },
    /// Cookies of a region before `generation` are no longer honoured.
    Revoked {
        /// Which region.
        region: RegionId,
        /// The first generation that still is.
        generation: u32,
    },
}

impl<'a> Message<'a> {
    /// Writes the message to the end of `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut out = Writer::new(out);
        match *self {
            Message::Connect { from, name, private } => {
                let out = head(&mut out, kind::CONNECT, from);
                out.u16(name.len() as u16).bytes(name.as_bytes()).bytes(private)
            }
            Message::Accept { to, from, private } => {
                head(&mut out, kind::ACCEPT, to).u32(from.slot).u32(from.session).bytes(private)
            }
            Message::Refuse { to, nobody_listens, private } => {
                head(&mut out, kind::REFUSE, to).u8(u8::from(nobody_listens)).bytes(private)
            }
            Message::Message { to, bytes } => head(&mut out, kind::MESSAGE, to).bytes(bytes),
            Message::OnClose { to, bytes } => head(&mut out, kind::ON_CLOSE, to).bytes(bytes),
            Message::Close { to, bytes } => head(&mut out, kind::CLOSE, to).bytes(bytes),
            Message::Ring { to, spec } => head(&mut out, kind::RING, to).bytes(spec),
            Message::Revoked { region, generation } => out.u8(kind::REVOKED).u32(region.0).u32(generation),
            Message::Locate { cookie } => out.u8(kind::LOCATE).bytes(&cookie.to_bytes()),
            Message::Located { cookie, address, turn } => {
                out.u8(kind::LOCATED).bytes(&cookie.to_bytes()).u64(address).u64(turn)
            }
        };
    }

    /// The message, written.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        self.emit(&mut bytes);
        bytes
    }

    /// Reads a message; `Err` says what is wrong with it.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, &'static str> {
        let rest = &mut Reader::new(bytes);
        let message = match rest.u8()? {
            kind::CONNECT => {
                let from = read_id(rest)?;
                let name_len = usize::from(rest.u16()?);
                if name_len > MAX_NAME {
                    return Err("a name is too long");
                }
                let name = std::str::from_utf8(rest.take(name_len)?).map_err(|_| "a name is not UTF-8")?;
                Message::Connect { from, name, private: read_tail(rest)? }
            }
            kind::ACCEPT => Message::Accept { to: read_id(rest)?, from: read_id(rest)?, private: read_tail(rest)? },
            kind::REFUSE => {
                let to = read_id(rest)?;
                let nobody_listens = match rest.u8()? {
                    0 => false,
                    1 => true,
                    _ => return Err("a refusal gives an unknown reason"),
                };
                Message::Refuse { to, nobody_listens, private: read_tail(rest)? }
            }
            kind::MESSAGE => Message::Message { to: read_id(rest)?, bytes: read_tail(rest)? },
            kind::ON_CLOSE => Message::OnClose { to: read_id(rest)?, bytes: read_tail(rest)? },
            kind::CLOSE => Message::Close { to: read_id(rest)?, bytes: read_tail(rest)? },
            kind::RING => Message::Ring { to: read_id(rest)?, spec: read_tail(rest)? },
            kind::REVOKED => {
                let (region, generation) = (RegionId(rest.u32()?), rest.u32()?);
                rest.end()?;
                Message::Revoked { region, generation }
            }
            kind::LOCATE => {
                let cookie = read_cookie(rest)?;
                rest.end()?;
                Message::Locate { cookie }
            }
            kind::LOCATED => {
                let (cookie, address, turn) = (read_cookie(rest)?, rest.u64()?, rest.u64()?);
                rest.end()?;
                Message::Located { cookie, address, turn }
            }
            _ => return Err("a message is of an unknown kind"),
        };
        Ok(message)
    }
}

mod kind {
    pub const CONNECT: u8 = 1;
    pub const ACCEPT: u8 = 2;
    pub const REFUSE: u8 = 3;
    pub const MESSAGE: u8 = 4;
    pub const ON_CLOSE: u8 = 5;
    pub const CLOSE: u8 = 6;
    pub const REVOKED: u8 = 7;
    pub const LOCATE: u8 = 8;
    pub const LOCATED: u8 = 9;
    pub const RING: u8 = 10;
}

fn read_id(fields: &mut Reader<'_>) -> Result<EndpointId, &'static str> {
    Ok(EndpointId { slot: fields.u32()?, session: fields.u32()? })
}

fn read_cookie(fields: &mut Reader<'_>) -> Result<Cookie, &'static str> {
    Cookie::from_bytes(fields.take(Cookie::WIRE_LEN)?).map_err(|_| "a cookie that is none")
}

fn read_tail<'a>(fields: &mut Reader<'a>) -> Result<&'a [u8], &'static str> {
    if fields.left() > MAX_PRIVATE { Err("private data is too long") } else { Ok(fields.rest()) }
}

fn head<'w, 'o>(out: &'w mut Writer<&'o mut Vec<u8>>, kind: u8, id: EndpointId) -> &'w mut Writer<&'o mut Vec<u8>> {
    out.u8(kind).u32(id.slot).u32(id.session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cookie::Rights;

    #[test]
    fn every_kind_comes_back() {
        let (to, from) = (EndpointId { slot: 1, session: 2 }, EndpointId { slot: 3, session: 4 });
        let cookie = Cookie { key: 5, region: RegionId(9), generation: 2, len: 64, rights: Rights::ALL };
        let messages = [
            Message::Connect { from, name: "echo", private: b"p" },
            Message::Accept { to, from, private: b"" },
            Message::Refuse { to, nobody_listens: true, private: b"x" },
            Message::Message { to, bytes: b"hello" },
            Message::OnClose { to, bytes: b"bye" },
            Message::Close { to, bytes: b"" },
            Message::Ring { to, spec: b"spec" },
            Message::Revoked { region: RegionId(9), generation: 2 },
            Message::Locate { cookie },
            Message::Located { cookie, address: 1 << 40, turn: 3 },
        ];
        for message in messages {
            let mut bytes = Vec::new();
            message.emit(&mut bytes);
            assert_eq!(Message::parse(&bytes), Ok(message));
            for cut in 0..bytes.len().min(9) {
                assert!(Message::parse(&bytes[..cut]).is_err(), "{message:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn long_names_and_data_are_refused() {
        let from = EndpointId { slot: 0, session: 0 };
        let name = "n".repeat(MAX_NAME + 1);
        let mut bytes = Vec::new();
        Message::Connect { from, name: &name, private: b"" }.emit(&mut bytes);
        assert!(Message::parse(&bytes).is_err());
        bytes.clear();
        Message::Message { to: from, bytes: &vec![0; MAX_PRIVATE + 1] }.emit(&mut bytes);
        assert!(Message::parse(&bytes).is_err());
    }
}
