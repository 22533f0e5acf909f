//! What two processes say to each other over their lifeline: one frame per socket message.
//!
//! Little-endian; one kind byte, then fields. Descriptors travel beside the frame. Who accepted a lifeline greets first.
//!
//! | kind | fields | beside it |
//! |---|---|---|
//! | 1 hello | magic u64, version u32, pair memory length u64 | pair memory, doorbell |
//! | 2 post | the message | – |
//! | 3 map | ticket u64, cookie | – |
//! | 4 put | ticket u64, cookie, offset u64, the bytes | – |
//! | 5 get | ticket u64, cookie, offset u64, length u32 | – |
//! | 6 atomic | ticket u64, cookie, offset u64, operation u8, two operands u64 | – |
//! | 7 reply | ticket u64, status u8, then by status | region memory, if mapped |
//! | 8 pages | cookie, length u64 | region memory |
//! | 9 unnamed | the name its sender no longer listens under | – |

use crate::{
    cookie::{Cookie, Rights},
    error::Refusal,
    link::Atomic,
};

/// The most bytes of one put or get.
pub const MAX_TRANSFER: usize = 32 * 1024;
/// The longest frame.
pub const MAX_FRAME: usize = MAX_TRANSFER + 128;
/// `SIDESTEP`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"SIDESTEP");
/// Changes whenever the layout of the pair memory, of a region or of a frame does.
pub const VERSION: u32 = 3;

/// One frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The first frame of each side.
    Hello {
        /// Layout version.
        version: u32,
        /// Length of the pair memory beside it.
        pair_len: u64,
    },
    /// A message between nodes.
    Post(&'a [u8]),
    /// A request; its ticket comes back in the reply.
    Ask {
        /// Connects request and reply.
        ticket: u64,
        /// On which region.
        cookie: Cookie,
        /// What.
        ask: Ask<'a>,
    },
    /// The answer to a request.
    Reply {
        /// Connects request and reply.
        ticket: u64,
        /// The answer.
        answer: Answer<'a>,
    },
    /// The pages of a region, ahead of being asked for.
    Pages {
        /// Which region.
        cookie: Cookie,
        /// Length of the memory beside the frame.
        len: u64,
    },
    /// The sender no longer listens under this name.
    Unnamed(&'a [u8]),
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask<'a> {
    /// The pages.
    Map,
    /// Write.
    Put {
        /// Where.
        offset: u64,
        /// What.
        bytes: &'a [u8],
    },
    /// Read.
    Get {
        /// Where.
        offset: u64,
        /// How much.
        len: u32,
    },
    /// An atomic operation.
    Atomic {
        /// Where.
        offset: u64,
        /// Which.
        atomic: Atomic,
    },
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Done.
    Done,
    /// What was read.
    Bytes(&'a [u8]),
    /// What the word held.
    Value(u64),
    /// The pages come beside the frame; their length.
    Mapped(u64),
    /// No pages; ask for each access.
    Proxied,
    /// No.
    Refused(Refusal),
}

impl<'a> Frame<'a> {
    /// Writes the frame to the end of `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Frame::Hello { version, pair_len } => {
                out.push(kind::HELLO);
                out.extend(MAGIC.to_le_bytes());
                out.extend(version.to_le_bytes());
                out.extend(pair_len.to_le_bytes());
            }
            Frame::Post(bytes) => {
                out.push(kind::POST);
                out.extend(bytes);
            }
            Frame::Ask { ticket, cookie, ask } => {
                out.push(match ask {
                    Ask::Map => kind::MAP,
                    Ask::Put { .. } => kind::PUT,
                    Ask::Get { .. } => kind::GET,
                    Ask::Atomic { .. } => kind::ATOMIC,
                });
                out.extend(ticket.to_le_bytes());
                out.extend(cookie.to_bytes());
                ask.emit(out);
            }
            Frame::Reply { ticket, answer } => {
                out.push(kind::REPLY);
                out.extend(ticket.to_le_bytes());
                answer.emit(out);
            }
            Frame::Pages { cookie, len } => {
                out.push(kind::PAGES);
                out.extend(cookie.to_bytes());
                out.extend(len.to_le_bytes());
            }
            Frame::Unnamed(name) => {
                out.push(kind::UNNAMED);
                out.extend(name);
            }
        }
    }

    /// Reads a frame; `Err` says what is wrong with it.
    pub fn parse(bytes: &'a [u8]) -> Result<Frame<'a>, &'static str> {
        let mut rest = Reader { bytes };
        let kind = rest.byte()?;
        let frame = match kind {
            kind::HELLO => {
                if rest.word()? != MAGIC {
                    return Err("its greeting is not ours");
                }
                Frame::Hello { version: rest.half()?, pair_len: rest.word()? }
            }
            kind::POST => return Ok(Frame::Post(rest.bytes)),
            kind::UNNAMED => return Ok(Frame::Unnamed(rest.bytes)),
            kind::MAP | kind::PUT | kind::GET | kind::ATOMIC => {
                let ticket = rest.word()?;
                let cookie = rest.cookie()?;
                let ask = rest.ask(kind)?;
                Frame::Ask { ticket, cookie, ask }
            }
            kind::REPLY => Frame::Reply { ticket: rest.word()?, answer: rest.answer()? },
            kind::PAGES => Frame::Pages { cookie: rest.cookie()?, len: rest.word()? },
            _ => return Err("a frame is of an unknown kind"),
        };
        if rest.bytes.is_empty() { Ok(frame) } else { Err("a frame is too long") }
    }
}

impl Ask<'_> {
    fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Ask::Map => {}
            Ask::Put { offset, bytes } => {
                out.extend(offset.to_le_bytes());
                out.extend(bytes);
            }
            Ask::Get { offset, len } => {
                out.extend(offset.to_le_bytes());
                out.extend(len.to_le_bytes());
            }
            Ask::Atomic { offset, atomic } => {
                out.extend(offset.to_le_bytes());
                let (operation, first, second) = match atomic {
                    Atomic::CompareSwap { expected, new } => (0, expected, new),
                    Atomic::FetchAdd(value) => (1, value, 0),
                };
                out.push(operation);
                out.extend(first.to_le_bytes());
                out.extend(second.to_le_bytes());
            }
        }
    }
}

impl Answer<'_> {
    fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Answer::Done => out.push(status::DONE),
            Answer::Bytes(bytes) => {
                out.push(status::BYTES);
                out.extend(bytes);
            }
            Answer::Value(value) => {
                out.push(status::VALUE);
                out.extend(value.to_le_bytes());
            }
            Answer::Mapped(len) => {
                out.push(status::MAPPED);
                out.extend(len.to_le_bytes());
            }
            Answer::Proxied => out.push(status::PROXIED),
            Answer::Refused(refusal) => match refusal {
                Refusal::Unknown => out.push(status::UNKNOWN),
                Refusal::Forged => out.push(status::FORGED),
                Refusal::Revoked => out.push(status::REVOKED),
                Refusal::Expired => out.push(status::EXPIRED),
                Refusal::Rights { held, wanted } => out.extend([status::RIGHTS, held.bits(), wanted.bits()]),
                Refusal::Range { offset, len } => {
                    out.push(status::RANGE);
                    out.extend(offset.to_le_bytes());
                    out.extend(len.to_le_bytes());
                }
            },
        }
    }
}

mod kind {
    pub const HELLO: u8 = 1;
    pub const POST: u8 = 2;
    pub const MAP: u8 = 3;
    pub const PUT: u8 = 4;
    pub const GET: u8 = 5;
    pub const ATOMIC: u8 = 6;
    pub const REPLY: u8 = 7;
    pub const PAGES: u8 = 8;
    pub const UNNAMED: u8 = 9;
}

mod status {
    pub const DONE: u8 = 0;
    pub const BYTES: u8 = 1;
    pub const VALUE: u8 = 2;
    pub const MAPPED: u8 = 3;
    pub const PROXIED: u8 = 4;
    pub const UNKNOWN: u8 = 5;
    pub const FORGED: u8 = 6;
    pub const REVOKED: u8 = 7;
    pub const EXPIRED: u8 = 8;
    pub const RIGHTS: u8 = 9;
    pub const RANGE: u8 = 10;
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let (head, rest) = self.bytes.split_at_checked(len).ok_or("a frame is too short")?;
        self.bytes = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (head, rest) = self.bytes.split_first_chunk().ok_or("a frame is too short")?;
        self.bytes = rest;
        Ok(*head)
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        Ok(self.array::<1>()?[0])
    }

    fn half(&mut self) -> Result<u32, &'static str> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn word(&mut self) -> Result<u64, &'static str> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn payload(&mut self) -> Result<&'a [u8], &'static str> {
        if self.bytes.len() > MAX_TRANSFER {
            return Err("a transfer is too long");
        }
        Ok(std::mem::take(&mut self.bytes))
    }

    fn cookie(&mut self) -> Result<Cookie, &'static str> {
        Cookie::from_bytes(self.take(Cookie::WIRE_LEN)?).map_err(|_| "a cookie is malformed")
    }

    fn rights(&mut self) -> Result<Rights, &'static str> {
        Rights::from_bits(self.byte()?).ok_or("rights are unknown")
    }

    fn ask(&mut self, kind: u8) -> Result<Ask<'a>, &'static str> {
        Ok(match kind {
            kind::MAP => Ask::Map,
            kind::PUT => Ask::Put { offset: self.word()?, bytes: self.payload()? },
            kind::GET => {
                let (offset, len) = (self.word()?, self.half()?);
                if len as usize > MAX_TRANSFER {
                    return Err("a transfer is too long");
                }
                Ask::Get { offset, len }
            }
            _ => {
                let offset = self.word()?;
                let operation = self.byte()?;
                let (first, second) = (self.word()?, self.word()?);
                let atomic = match operation {
                    0 => Atomic::CompareSwap { expected: first, new: second },
                    1 => Atomic::FetchAdd(first),
                    _ => return Err("an atomic operation is unknown"),
                };
                Ask::Atomic { offset, atomic }
            }
        })
    }

    fn answer(&mut self) -> Result<Answer<'a>, &'static str> {
        Ok(match self.byte()? {
            status::DONE => Answer::Done,
            status::BYTES => Answer::Bytes(self.payload()?),
            status::VALUE => Answer::Value(self.word()?),
            status::MAPPED => Answer::Mapped(self.word()?),
            status::PROXIED => Answer::Proxied,
            status::UNKNOWN => Answer::Refused(Refusal::Unknown),
            status::FORGED => Answer::Refused(Refusal::Forged),
            status::REVOKED => Answer::Refused(Refusal::Revoked),
            status::EXPIRED => Answer::Refused(Refusal::Expired),
            status::RIGHTS => Answer::Refused(Refusal::Rights { held: self.rights()?, wanted: self.rights()? }),
            status::RANGE => Answer::Refused(Refusal::Range { offset: self.word()?, len: self.word()? }),
            _ => return Err("a reply has an unknown status"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_comes_back() {
        let cookie = Cookie::from_bytes(&[1; 33].into_iter().chain([0; 15]).collect::<Vec<_>>()).unwrap();
        let asks = [
            Ask::Map,
            Ask::Put { offset: 3, bytes: b"abc" },
            Ask::Get { offset: 4, len: 5 },
            Ask::Atomic { offset: 8, atomic: Atomic::CompareSwap { expected: 1, new: 2 } },
            Ask::Atomic { offset: 8, atomic: Atomic::FetchAdd(7) },
        ];
        let answers = [
            Answer::Done,
            Answer::Bytes(b"xyz"),
            Answer::Value(9),
            Answer::Mapped(4096),
            Answer::Proxied,
            Answer::Refused(Refusal::Unknown),
            Answer::Refused(Refusal::Forged),
            Answer::Refused(Refusal::Revoked),
            Answer::Refused(Refusal::Expired),
            Answer::Refused(Refusal::Rights { held: Rights::READ, wanted: Rights::WRITE }),
            Answer::Refused(Refusal::Range { offset: 1, len: 2 }),
        ];
        let pages = Frame::Pages { cookie, len: 4096 };
        let frames = [Frame::Hello { version: 1, pair_len: 2 }, Frame::Post(b"hello"), pages, Frame::Unnamed(b"echo")]
            .into_iter()
            .chain(asks.map(|ask| Frame::Ask { ticket: 1, cookie, ask }))
            .chain(answers.map(|answer| Frame::Reply { ticket: 2, answer }));
        for frame in frames {
            let mut bytes = Vec::new();
            frame.emit(&mut bytes);
            assert_eq!(Frame::parse(&bytes), Ok(frame));
        }
    }

    #[test]
    fn long_transfers_are_refused() {
        let mut bytes = Vec::new();
        Frame::Reply { ticket: 0, answer: Answer::Bytes(&vec![0; MAX_TRANSFER + 1]) }.emit(&mut bytes);
        assert!(Frame::parse(&bytes).is_err());
    }
}
