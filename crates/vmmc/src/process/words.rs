//! What a process and its card say to each other, in slots of shared memory. Little-endian; whatever does not parse is refused.

use super::Standing;
use crate::card::{Operation, Post, Source};
use crate::driver::Export;
use crate::error::Fault;
use crate::id::{Address, BufferId, Cbh, Key, NodeId, ProcessId, Rights, Work};

/// The longest of them.
pub(super) const LONGEST: usize = 248;

/// From a process to its card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    Export {
        request: u64,
        export: Export,
    },
    Deregister {
        request: u64,
        buffer: BufferId,
    },
    /// The way to another card, by its name.
    Import {
        request: u64,
        card: String,
    },
    Post(Post),
    Count {
        request: u64,
    },
}

/// From a card to its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Exported {
        request: u64,
        cbh: Cbh,
        key: Key,
    },
    Done {
        request: u64,
    },
    Imported {
        request: u64,
        node: NodeId,
    },
    Failed {
        request: u64,
        why: String,
    },
    Completed {
        work: Work,
        fault: Option<Fault>,
    },
    Notified {
        buffer: BufferId,
        at: u64,
        len: u64,
    },
    Counted {
        request: u64,
        standing: Standing,
    },
    /// The first of all, with the address under which other cards find this one.
    Welcome {
        card: String,
    },
}

impl Word {
    pub(super) fn emit(&self) -> Vec<u8> {
        let mut out = Out::default();
        match self {
            Word::Export { request, export } => {
                let Export { address, len, rights, notify } = export;
                out.u8(1).u64(*request).u64(address.0).u64(*len).u8(rights.bits()).u8(u8::from(*notify));
            }
            Word::Deregister { request, buffer } => drop(out.u8(2).u64(*request).u32(buffer.0)),
            Word::Import { request, card } => drop(out.u8(3).u64(*request).bytes(card.as_bytes())),
            Word::Post(post) => {
                let Post { work, node, cbh, key, at, len, operation } = post;
                out.u8(4).u64(work.0).u32(node.0.into()).u32(cbh.process.0).u32(cbh.buffer.0);
                out.bytes(&key.0.to_le_bytes()).u64(*at).u64(*len);
                match operation {
                    Operation::Send { source: Source::Inline(bytes), notify } => {
                        out.u8(0).u8(u8::from(*notify)).bytes(bytes)
                    }
                    Operation::Send { source: Source::Memory(address), notify } => {
                        out.u8(1).u8(u8::from(*notify)).u64(address.0)
                    }
                    Operation::Fetch { destination } => out.u8(2).u8(0).u64(destination.0),
                };
            }
            Word::Count { request } => drop(out.u8(5).u64(*request)),
        }
        out.0
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Word> {
        let mut input = In(bytes);
        Some(match input.u8()? {
            1 => {
                let (request, address, len) = (input.u64()?, Address(input.u64()?), input.u64()?);
                let (rights, notify) = (Rights::from_bits(input.u8()?), input.u8()? != 0);
                Word::Export { request, export: Export { address, len, rights, notify } }
            }
            2 => Word::Deregister { request: input.u64()?, buffer: BufferId(input.u32()?) },
            3 => Word::Import { request: input.u64()?, card: String::from_utf8(input.rest().to_vec()).ok()? },
            4 => {
                let (work, node) = (Work(input.u64()?), NodeId(u16::try_from(input.u32()?).ok()?));
                let cbh = Cbh { process: ProcessId(input.u32()?), buffer: BufferId(input.u32()?) };
                let key = Key(u128::from_le_bytes(input.array()?));
                let (at, len) = (input.u64()?, input.u64()?);
                let (kind, notify) = (input.u8()?, input.u8()? != 0);
                let operation = match kind {
                    0 => Operation::Send { source: Source::Inline(input.rest().to_vec()), notify },
                    1 => Operation::Send { source: Source::Memory(Address(input.u64()?)), notify },
                    2 => Operation::Fetch { destination: Address(input.u64()?) },
                    _ => return None,
                };
                Word::Post(Post { work, node, cbh, key, at, len, operation })
            }
            5 => Word::Count { request: input.u64()? },
            _ => return None,
        })
    }
}

impl Answer {
    pub(super) fn emit(&self) -> Vec<u8> {
        let mut out = Out::default();
        match self {
            Answer::Exported { request, cbh, key } => {
                out.u8(1).u64(*request).u32(cbh.process.0).u32(cbh.buffer.0).bytes(&key.0.to_le_bytes())
            }
            Answer::Done { request } => out.u8(2).u64(*request),
            Answer::Imported { request, node } => out.u8(3).u64(*request).u32(node.0.into()),
            Answer::Failed { request, why } => {
                let why = &why.as_bytes()[..why.len().min(LONGEST - 16)];
                out.u8(4).u64(*request).bytes(why)
            }
            Answer::Completed { work, fault } => out.u8(5).u64(work.0).u8(fault.map_or(0, Fault::code)),
            Answer::Notified { buffer, at, len } => out.u8(6).u32(buffer.0).u64(*at).u64(*len),
            Answer::Counted { request, standing } => {
                out.u8(7).u64(*request);
                standing.words().into_iter().fold(&mut out, Out::u64)
            }
            Answer::Welcome { card } => out.u8(8).bytes(card.as_bytes()),
        };
        out.0
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Answer> {
        let mut input = In(bytes);
        Some(match input.u8()? {
            1 => {
                let (request, process) = (input.u64()?, ProcessId(input.u32()?));
                let cbh = Cbh { process, buffer: BufferId(input.u32()?) };
                Answer::Exported { request, cbh, key: Key(u128::from_le_bytes(input.array()?)) }
            }
            2 => Answer::Done { request: input.u64()? },
            3 => Answer::Imported { request: input.u64()?, node: NodeId(u16::try_from(input.u32()?).ok()?) },
            4 => Answer::Failed { request: input.u64()?, why: String::from_utf8_lossy(input.rest()).into_owned() },
            5 => Answer::Completed { work: Work(input.u64()?), fault: Fault::from_code(input.u8()?) },
            6 => Answer::Notified { buffer: BufferId(input.u32()?), at: input.u64()?, len: input.u64()? },
            7 => {
                let (request, mut words) = (input.u64()?, [0; Standing::WORDS]);
                for word in &mut words {
                    *word = input.u64()?;
                }
                Answer::Counted { request, standing: Standing::from_words(words) }
            }
            8 => Answer::Welcome { card: String::from_utf8(input.rest().to_vec()).ok()? },
            _ => return None,
        })
    }
}

#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn u8(&mut self, value: u8) -> &mut Out {
        self.bytes(&[value])
    }

    fn u32(&mut self, value: u32) -> &mut Out {
        self.bytes(&value.to_le_bytes())
    }

    fn u64(&mut self, value: u64) -> &mut Out {
        self.bytes(&value.to_le_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Out {
        self.0.extend(bytes);
        self
    }
}

struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_queue() {
        let cbh = Cbh { process: ProcessId(4), buffer: BufferId(5) };
        let post = |operation| Post { work: Work(1), node: NodeId(2), cbh, key: Key(6), at: 7, len: 8, operation };
        let export = Export { address: Address(1), len: 2, rights: Rights::ALL, notify: true };
        let words = [
            Word::Export { request: 9, export },
            Word::Deregister { request: 9, buffer: BufferId(3) },
            Word::Import { request: 9, card: "shm:vmmc-a".into() },
            Word::Post(post(Operation::Send { source: Source::Inline(vec![1; 32]), notify: true })),
            Word::Post(post(Operation::Send { source: Source::Memory(Address(9)), notify: false })),
            Word::Post(post(Operation::Fetch { destination: Address(9) })),
            Word::Count { request: 1 },
        ];
        for word in words {
            let bytes = word.emit();
            assert!(bytes.len() <= LONGEST);
            assert_eq!(Word::parse(&bytes), Some(word));
            (0..bytes.len()).for_each(|len| drop(Word::parse(&bytes[..len])));
        }
        let answers = [
            Answer::Exported { request: 1, cbh, key: Key(1 << 127) },
            Answer::Done { request: 1 },
            Answer::Imported { request: 1, node: NodeId(3) },
            Answer::Failed { request: 1, why: "no".into() },
            Answer::Completed { work: Work(1), fault: Some(Fault::WrongKey) },
            Answer::Completed { work: Work(1), fault: None },
            Answer::Notified { buffer: BufferId(1), at: 2, len: 3 },
            Answer::Counted { request: 1, standing: Standing::from_words(std::array::from_fn(|at| 9 * at as u64)) },
            Answer::Welcome { card: "iwarp:127.0.0.1:4000".into() },
        ];
        for answer in answers {
            assert!(answer.emit().len() <= LONGEST);
            assert_eq!(Answer::parse(&answer.emit()), Some(answer));
        }
        assert!(Answer::Failed { request: 1, why: "x".repeat(999) }.emit().len() <= LONGEST);
    }
}
