//! What two links say to each other, each in one numbered packet of the data link. Little-endian; a peer whose words do not parse has
//! broken the protocol.
//!
//! ```text
//!   message: last, bytes                     put: ticket, cookie, offset, left, bytes
//!   get: ticket, cookie, offset, len, last   atomic: ticket, cookie, offset, kind, two words
//!   map: ticket, cookie                      done: ticket, nothing or a refusal
//!   bytes: ticket, last, bytes               value: ticket, word
//! ```

use sidestep_fabric::cookie::Cookie;
use sidestep_fabric::error::Refusal;
use sidestep_fabric::link::{Atomic, Ticket};

use crate::packet::{Input, SEGMENT};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    Message { last: bool, bytes: Vec<u8> },
    Ask { ticket: Ticket, cookie: Cookie, ask: Ask },
    Done { ticket: Ticket, refusal: Option<Refusal> },
    Bytes { ticket: Ticket, last: bool, bytes: Vec<u8> },
    Value { ticket: Ticket, value: u64 },
}

/// What is asked of a region.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ask {
    Map,
    /// A segment, with so many bytes of the same put behind it.
    Put {
        offset: u64,
        left: u64,
        bytes: Vec<u8>,
    },
    Get {
        offset: u64,
        len: u32,
        last: bool,
    },
    Atomic {
        offset: u64,
        atomic: Atomic,
    },
}

impl Word {
    pub(super) fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Word::Message { last, bytes } => {
                out.extend([1, u8::from(*last)]);
                out.extend(bytes);
            }
            Word::Ask { ticket, cookie, ask } => {
                out.push(match ask {
                    Ask::Map => 2,
                    Ask::Put { .. } => 3,
                    Ask::Get { .. } => 4,
                    Ask::Atomic { .. } => 5,
                });
                out.extend(ticket.0.to_le_bytes());
                out.extend(cookie.to_bytes());
                match ask {
                    Ask::Map => {}
                    Ask::Put { offset, left, bytes } => {
                        out.extend([offset.to_le_bytes(), left.to_le_bytes()].concat());
                        out.extend(bytes);
                    }
                    Ask::Get { offset, len, last } => {
                        out.extend(offset.to_le_bytes());
                        out.extend(len.to_le_bytes());
                        out.push(u8::from(*last));
                    }
                    Ask::Atomic { offset, atomic } => {
                        let (kind, first, second) = match atomic {
                            Atomic::CompareSwap { expected, new } => (1, *expected, *new),
                            Atomic::FetchAdd(value) => (2, *value, 0),
                        };
                        out.extend(offset.to_le_bytes());
                        out.push(kind);
                        out.extend([first.to_le_bytes(), second.to_le_bytes()].concat());
                    }
                }
            }
            Word::Done { ticket, refusal } => {
                out.push(6);
                out.extend(ticket.0.to_le_bytes());
                out.extend(refusal.map(Refusal::to_bytes).into_iter().flatten());
            }
            Word::Bytes { ticket, last, bytes } => {
                out.push(7);
                out.extend(ticket.0.to_le_bytes());
                out.push(u8::from(*last));
                out.extend(bytes);
            }
            Word::Value { ticket, value } => {
                out.push(8);
                out.extend([ticket.0.to_le_bytes(), value.to_le_bytes()].concat());
            }
        }
        out
    }

    /// Whether the card of the receiver must look something up for the word of these bytes.
    pub(super) fn may_miss(bytes: &[u8]) -> bool {
        matches!(bytes.first(), Some(3..=5))
    }

    /// `None` is what no link says.
    pub(super) fn parse(bytes: &[u8]) -> Option<Word> {
        let mut input = Input(bytes);
        let [kind] = input.array()?;
        if kind == 1 {
            return Some(Word::Message { last: input.flag()?, bytes: input.rest()? });
        }
        let ticket = Ticket(input.u64()?);
        let word = match kind {
            2..=5 => {
                let cookie = Cookie::from_bytes(&input.array::<{ Cookie::WIRE_LEN }>()?).ok()?;
                let ask = match kind {
                    2 => Ask::Map,
                    3 => Ask::Put { offset: input.u64()?, left: input.u64()?, bytes: input.rest()? },
                    4 => {
                        let (offset, len) = (input.u64()?, u32::from_le_bytes(input.array()?));
                        Ask::Get { offset, len: Some(len).filter(|len| *len as usize <= SEGMENT)?, last: input.flag()? }
                    }
                    _ => {
                        let (offset, [kind], first, second) =
                            (input.u64()?, input.array()?, input.u64()?, input.u64()?);
                        let atomic = match kind {
                            1 => Atomic::CompareSwap { expected: first, new: second },
                            2 => Atomic::FetchAdd(first),
                            _ => return None,
                        };
                        Ask::Atomic { offset, atomic }
                    }
                };
                Word::Ask { ticket, cookie, ask }
            }
            6 if input.0.is_empty() => Word::Done { ticket, refusal: None },
            6 => Word::Done { ticket, refusal: Some(Refusal::from_bytes(&input.rest()?).ok()?) },
            7 => Word::Bytes { ticket, last: input.flag()?, bytes: input.rest()? },
            8 => Word::Value { ticket, value: input.u64()? },
            _ => return None,
        };
        input.0.is_empty().then_some(word)
    }
}

impl Input<'_> {
    fn flag(&mut self) -> Option<bool> {
        match self.array()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn rest(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.0);
        (rest.len() <= SEGMENT).then(|| rest.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_wire() {
        let node = sidestep_fabric::Node::new().unwrap();
        let cookie = sidestep_fabric::Region::new(&node, 64).unwrap().cookie(sidestep_fabric::Rights::ALL);
        let ticket = Ticket(7);
        let asks = [
            Ask::Map,
            Ask::Put { offset: 3, left: 9, bytes: vec![1; SEGMENT] },
            Ask::Get { offset: 3, len: 4096, last: true },
            Ask::Atomic { offset: 8, atomic: Atomic::FetchAdd(3) },
            Ask::Atomic { offset: 8, atomic: Atomic::CompareSwap { expected: 1, new: 2 } },
        ];
        let mut words: Vec<Word> = asks.into_iter().map(|ask| Word::Ask { ticket, cookie, ask }).collect();
        words.extend([
            Word::Message { last: false, bytes: vec![2; 9] },
            Word::Done { ticket, refusal: None },
            Word::Done { ticket, refusal: Some(Refusal::Range { offset: 1, len: 2 }) },
            Word::Bytes { ticket, last: true, bytes: vec![] },
            Word::Value { ticket, value: 5 },
        ]);
        for word in words {
            let bytes = word.emit();
            assert_eq!(Word::parse(&bytes), Some(word));
            (0..bytes.len()).for_each(|len| drop(Word::parse(&bytes[..len])));
            assert_eq!(Word::parse(&[&bytes[..], &[9; SEGMENT + 1]].concat()), None);
        }
    }
}
