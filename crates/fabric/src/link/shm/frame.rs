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

use sidestep_wire::cursor::little::{Reader, Writer};

use crate::{cookie::Cookie, error::Refusal, link::Atomic};

/// The most bytes of one put or get.
pub const MAX_TRANSFER: usize = 32 * 1024;
/// The longest frame.
pub const MAX_FRAME: usize = MAX_TRANSFER + 128;
/// `SIDESTEP`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"SIDESTEP");
/// Changes whenever the layout of the pair memory, of a region, of a frame or of a message in it does.
pub const VERSION: u32 = 5;

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
        let mut out = Writer::new(out);
        match *self {
            Frame::Hello { version, pair_len } => {
                out.u8(kind::HELLO).u64(MAGIC).u32(version).u64(pair_len);
            }
            Frame::Post(bytes) => {
                out.u8(kind::POST).bytes(bytes);
            }
            Frame::Ask { ticket, cookie, ask } => {
                let kind = match ask {
                    Ask::Map => kind::MAP,
                    Ask::Put { .. } => kind::PUT,
                    Ask::Get { .. } => kind::GET,
                    Ask::Atomic { .. } => kind::ATOMIC,
                };
                ask.emit(out.u8(kind).u64(ticket).bytes(&cookie.to_bytes()));
            }
            Frame::Reply { ticket, answer } => answer.emit(out.u8(kind::REPLY).u64(ticket)),
            Frame::Pages { cookie, len } => {
                out.u8(kind::PAGES).bytes(&cookie.to_bytes()).u64(len);
            }
            Frame::Unnamed(name) => {
                out.u8(kind::UNNAMED).bytes(name);
            }
        }
    }

    /// Reads a frame; `Err` says what is wrong with it.
    pub fn parse(bytes: &'a [u8]) -> Result<Frame<'a>, &'static str> {
        let rest = &mut Reader::new(bytes);
        let kind = rest.u8()?;
        let frame = match kind {
            kind::HELLO => {
                if rest.u64()? != MAGIC {
                    return Err("its greeting is not ours");
                }
                Frame::Hello { version: rest.u32()?, pair_len: rest.u64()? }
            }
            kind::POST => return Ok(Frame::Post(rest.rest())),
            kind::UNNAMED => return Ok(Frame::Unnamed(rest.rest())),
            kind::MAP | kind::PUT | kind::GET | kind::ATOMIC => {
                let ticket = rest.u64()?;
                let cookie = Cookie::read(rest)?;
                let ask = Ask::read(rest, kind)?;
                Frame::Ask { ticket, cookie, ask }
            }
            kind::REPLY => Frame::Reply { ticket: rest.u64()?, answer: Answer::read(rest)? },
            kind::PAGES => Frame::Pages { cookie: Cookie::read(rest)?, len: rest.u64()? },
            _ => return Err("a frame is of an unknown kind"),
        };
        rest.end()?;
        Ok(frame)
    }
}

impl<'a> Ask<'a> {
    fn emit(&self, out: &mut Writer<&mut Vec<u8>>) {
        match *self {
            Ask::Map => {}
            Ask::Put { offset, bytes } => {
                out.u64(offset).bytes(bytes);
            }
            Ask::Get { offset, len } => {
                out.u64(offset).u32(len);
            }
            Ask::Atomic { offset, atomic } => {
                let (operation, first, second) = match atomic {
                    Atomic::CompareSwap { expected, new } => (0, expected, new),
                    Atomic::FetchAdd(value) => (1, value, 0),
                };
                out.u64(offset).u8(operation).u64(first).u64(second);
            }
        }
    }

    fn read(fields: &mut Reader<'a>, kind: u8) -> Result<Ask<'a>, &'static str> {
        Ok(match kind {
            kind::MAP => Ask::Map,
            kind::PUT => Ask::Put { offset: fields.u64()?, bytes: payload(fields)? },
            kind::GET => {
                let (offset, len) = (fields.u64()?, fields.u32()?);
                if len as usize > MAX_TRANSFER {
                    return Err("a transfer is too long");
                }
                Ask::Get { offset, len }
            }
            _ => {
                let (offset, operation) = (fields.u64()?, fields.u8()?);
                let (first, second) = (fields.u64()?, fields.u64()?);
                let atomic = match operation {
                    0 => Atomic::CompareSwap { expected: first, new: second },
                    1 => Atomic::FetchAdd(first),
                    _ => return Err("an atomic operation is unknown"),
                };
                Ask::Atomic { offset, atomic }
            }
        })
    }
}

impl<'a> Answer<'a> {
    fn emit(&self, out: &mut Writer<&mut Vec<u8>>) {
        match *self {
            Answer::Done => out.u8(status::DONE),
            Answer::Bytes(bytes) => out.u8(status::BYTES).bytes(bytes),
            Answer::Value(value) => out.u8(status::VALUE).u64(value),
            Answer::Mapped(len) => out.u8(status::MAPPED).u64(len),
            Answer::Proxied => out.u8(status::PROXIED),
            Answer::Refused(refusal) => out.u8(status::REFUSED).bytes(&refusal.to_bytes()),
        };
    }

    fn read(fields: &mut Reader<'a>) -> Result<Answer<'a>, &'static str> {
        Ok(match fields.u8()? {
            status::DONE => Answer::Done,
            status::BYTES => Answer::Bytes(payload(fields)?),
            status::VALUE => Answer::Value(fields.u64()?),
            status::MAPPED => Answer::Mapped(fields.u64()?),
            status::PROXIED => Answer::Proxied,
            status::REFUSED => Answer::Refused(Refusal::read(fields)?),
            _ => return Err("a reply has an unknown status"),
        })
    }
}

fn payload<'a>(fields: &mut Reader<'a>) -> Result<&'a [u8], &'static str> {
    if fields.left() > MAX_TRANSFER { Err("a transfer is too long") } else { Ok(fields.rest()) }
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
    pub const REFUSED: u8 = 5;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cookie::Rights;

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
