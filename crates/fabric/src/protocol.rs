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

use crate::cookie::RegionId;

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
        match *self {
            Message::Connect { from, name, private } => {
                out.push(kind::CONNECT);
                put_id(out, from);
                out.extend((name.len() as u16).to_le_bytes());
                out.extend(name.as_bytes());
                out.extend(private);
            }
            Message::Accept { to, from, private } => {
                out.push(kind::ACCEPT);
                put_id(out, to);
                put_id(out, from);
                out.extend(private);
            }
            Message::Refuse { to, nobody_listens, private } => {
                out.push(kind::REFUSE);
                put_id(out, to);
                out.push(u8::from(nobody_listens));
                out.extend(private);
            }
            Message::Message { to, bytes } => emit_bytes(out, kind::MESSAGE, to, bytes),
            Message::OnClose { to, bytes } => emit_bytes(out, kind::ON_CLOSE, to, bytes),
            Message::Close { to, bytes } => emit_bytes(out, kind::CLOSE, to, bytes),
            Message::Revoked { region, generation } => {
                out.push(kind::REVOKED);
                out.extend(region.0.to_le_bytes());
                out.extend(generation.to_le_bytes());
            }
        }
    }

    /// The message, written.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        self.emit(&mut bytes);
        bytes
    }

    /// Reads a message; `Err` says what is wrong with it.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, &'static str> {
        let mut rest = Reader { bytes };
        let message = match rest.byte()? {
            kind::CONNECT => {
                let from = rest.id()?;
                let name_len = usize::from(u16::from_le_bytes(rest.array()?));
                if name_len > MAX_NAME {
                    return Err("a name is too long");
                }
                let name = std::str::from_utf8(rest.take(name_len)?).map_err(|_| "a name is not UTF-8")?;
                Message::Connect { from, name, private: rest.tail()? }
            }
            kind::ACCEPT => Message::Accept { to: rest.id()?, from: rest.id()?, private: rest.tail()? },
            kind::REFUSE => {
                let to = rest.id()?;
                let nobody_listens = match rest.byte()? {
                    0 => false,
                    1 => true,
                    _ => return Err("a refusal gives an unknown reason"),
                };
                Message::Refuse { to, nobody_listens, private: rest.tail()? }
            }
            kind::MESSAGE => Message::Message { to: rest.id()?, bytes: rest.tail()? },
            kind::ON_CLOSE => Message::OnClose { to: rest.id()?, bytes: rest.tail()? },
            kind::CLOSE => Message::Close { to: rest.id()?, bytes: rest.tail()? },
            kind::REVOKED => {
                let region = RegionId(u32::from_le_bytes(rest.array()?));
                let generation = u32::from_le_bytes(rest.array()?);
                if !rest.bytes.is_empty() {
                    return Err("a message is too long");
                }
                Message::Revoked { region, generation }
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
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let (head, rest) = self.bytes.split_at_checked(len).ok_or("a message is too short")?;
        self.bytes = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (head, rest) = self.bytes.split_first_chunk().ok_or("a message is too short")?;
        self.bytes = rest;
        Ok(*head)
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        Ok(self.array::<1>()?[0])
    }

    fn id(&mut self) -> Result<EndpointId, &'static str> {
        let slot = u32::from_le_bytes(self.array()?);
        Ok(EndpointId { slot, session: u32::from_le_bytes(self.array()?) })
    }

    fn tail(&mut self) -> Result<&'a [u8], &'static str> {
        if self.bytes.len() > MAX_PRIVATE {
            return Err("private data is too long");
        }
        Ok(std::mem::take(&mut self.bytes))
    }
}

fn emit_bytes(out: &mut Vec<u8>, kind: u8, to: EndpointId, bytes: &[u8]) {
    out.push(kind);
    put_id(out, to);
    out.extend(bytes);
}

fn put_id(out: &mut Vec<u8>, id: EndpointId) {
    out.extend(id.slot.to_le_bytes());
    out.extend(id.session.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back() {
        let (to, from) = (EndpointId { slot: 1, session: 2 }, EndpointId { slot: 3, session: 4 });
        let messages = [
            Message::Connect { from, name: "echo", private: b"p" },
            Message::Accept { to, from, private: b"" },
            Message::Refuse { to, nobody_listens: true, private: b"x" },
            Message::Message { to, bytes: b"hello" },
            Message::OnClose { to, bytes: b"bye" },
            Message::Close { to, bytes: b"" },
            Message::Revoked { region: RegionId(9), generation: 2 },
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
