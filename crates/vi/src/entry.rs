//! What travels on a trunk, in one stream a direction.
//!
//! An entry is a head of 16 bytes (32 with its extension), a body, and padding. It is whole when it is published, and what
//! is published ends with a line of memory, so that a small message lies in one line and is seen by one look. A message
//! longer than one entry goes on in `Part` entries of the same connection.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | kind |
//! | 1 | flags: 1 = immediate data, 2 = goes on in the next receive, 4 = the bytes are there already, 8 = extended; upper half: padding in 16 bytes, beyond a multiple of 16 |
//! | 2..4 | fault; number of cookies |
//! | 4..8 | line: the receiving VI's number for its connection |
//! | 8..12 | bytes of the body |
//! | 12..16 | immediate data; first number of cookies; count of answers; number of a window |
//! | 16..24, 24..28 | (extended) remote address and handle |
//! | 28..32 | (extended) length of the whole message |
//!
//! Messages are the *transfer queue* of a connection, posted receives and answers its *cookie queue*: the two are kinds of
//! entries in one stream, so that a cookie costs no line of memory of its own.

use sidestep_fabric::{Cookie, queue::QueueSpec};
use sidestep_wire::cursor::little::{Reader, Writer};

use crate::{descriptor::Remote, memory::MemHandle};

/// Kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A message, or its first part.
    Message = 1,
    /// An RDMA write, or its first part.
    Write = 2,
    /// A request to read.
    Read = 3,
    /// The answer, or its first part.
    ReadData = 4,
    /// More bytes of the last of these.
    Part = 5,
    /// Receives were posted.
    Posted = 6,
    /// From now on this number names that region.
    Window = 7,
    /// Memory that may be written and read through a window.
    Reach = 8,
    /// So many messages or writes are in memory.
    Placed = 9,
    /// The next one failed.
    Failed = 10,
    /// Posted receives shall be told of.
    Flow = 11,
    /// A larger ring is wanted.
    Want = 12,
    /// Here it is.
    Ring = 13,
}

impl Kind {
    /// Whether such an entry is about the trunk itself.
    #[inline]
    pub(crate) fn is_own(self) -> bool {
        matches!(self, Kind::Want | Kind::Ring | Kind::Window)
    }
}

/// Why a message or an RDMA operation could not be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Fault {
    None = 0,
    /// No receive was posted.
    NoReceive = 1,
    /// The posted receive was too small; it is used up.
    Length = 2,
    /// The memory may not be accessed.
    Protection = 3,
    /// The receive itself was bad.
    Descriptor = 4,
}

/// The head of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    flags: u8,
    pub(crate) extra: u16,
    pub(crate) line: u32,
    /// Bytes of the body of this entry.
    pub(crate) len: u32,
    pub(crate) value: u32,
    pub(crate) remote: Remote,
    total: u32,
}

/// Bytes of a head, and what entries are padded to.
pub(crate) const HEAD: usize = 16;
/// Bytes of a head with its extension.
pub(crate) const LONG: usize = 32;

const IMMEDIATE: u8 = 1;
const CONTINUES: u8 = 2;
const HERE: u8 = 4;
const EXTENDED: u8 = 8;
const PADDING_SHIFT: u8 = 4;
/// What a processor moves at a time.
pub(crate) const LINE: usize = 64;
const NOWHERE: Remote = Remote { address: 0, handle: MemHandle(0) };

const KINDS: [Kind; 13] = [
    Kind::Message,
    Kind::Write,
    Kind::Read,
    Kind::ReadData,
    Kind::Part,
    Kind::Posted,
    Kind::Window,
    Kind::Reach,
    Kind::Placed,
    Kind::Failed,
    Kind::Flow,
    Kind::Want,
    Kind::Ring,
];

impl Fault {
    pub(crate) fn from_bits(bits: u16) -> Option<Fault> {
        const ALL: [Fault; 5] = [Fault::None, Fault::NoReceive, Fault::Length, Fault::Protection, Fault::Descriptor];
        ALL.get(bits as usize).copied()
    }
}

impl Header {
    /// Before one is read.
    pub(crate) const EMPTY: Header = Header::new(Kind::Message, 0, 0);

    #[inline]
    pub(crate) const fn new(kind: Kind, line: u32, len: u32) -> Header {
        Header { kind, flags: 0, extra: 0, line, len, value: 0, remote: NOWHERE, total: len }
    }

    #[inline]
    pub(crate) fn with_immediate(self, value: Option<u32>) -> Header {
        match value {
            Some(value) => Header { flags: self.flags | IMMEDIATE, value, ..self },
            None => self,
        }
    }

    pub(crate) fn with_fault(self, fault: Fault) -> Header {
        Header { extra: fault as u16, ..self }
    }

    pub(crate) fn continuing(self) -> Header {
        Header { flags: self.flags | CONTINUES, ..self }
    }

    /// Of a whole that is longer than the body of this entry.
    pub(crate) fn of(self, total: u32) -> Header {
        Header { flags: self.flags | EXTENDED, total, ..self }
    }

    /// About memory of the receiver.
    pub(crate) fn to(self, remote: Remote, total: u32) -> Header {
        Header { remote, ..self.of(total) }
    }

    /// The bytes are in memory already, or too many to be sent.
    pub(crate) fn here(self, total: u32) -> Header {
        Header { flags: self.flags | HERE | EXTENDED, len: 0, total, ..self }
    }

    /// The same with so many bytes of the body in this entry.
    pub(crate) fn first(self, len: usize) -> Header {
        let header = if len < self.total as usize { self.of(self.total) } else { self };
        Header { len: len as u32, ..header }
    }

    #[inline]
    pub(crate) fn immediate(&self) -> Option<u32> {
        (self.flags & IMMEDIATE != 0).then_some(self.value)
    }

    #[inline]
    pub(crate) fn continues(&self) -> bool {
        self.flags & CONTINUES != 0
    }

    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.flags & HERE != 0
    }

    /// Length of the whole message.
    #[inline]
    pub(crate) fn total(&self) -> u32 {
        self.total
    }

    /// Bytes of the head itself.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        if self.flags & EXTENDED != 0 { LONG } else { HEAD }
    }

    /// Bytes of the entry, with its padding.
    #[inline]
    pub(crate) fn whole(&self) -> usize {
        (self.size() + self.len as usize).next_multiple_of(HEAD) + (self.flags >> PADDING_SHIFT) as usize * HEAD
    }

    /// The same, ending with a line of memory when it begins at this position of the ring.
    #[inline]
    pub(crate) fn padded(self, position: u64) -> Header {
        let end = position as usize + self.whole();
        let units = (end.next_multiple_of(LINE) - end) / HEAD;
        Header { flags: self.flags | (units as u8) << PADDING_SHIFT, ..self }
    }

    #[inline]
    pub(crate) fn emit(&self) -> [u8; LONG] {
        let mut bytes = [0; LONG];
        // Two whole words: a reader of one of them does not wait for stores of its parts.
        let low = u64::from(self.kind as u8)
            | u64::from(self.flags) << 8
            | u64::from(self.extra) << 16
            | u64::from(self.line) << 32;
        let mut out = Writer::new(&mut bytes[..]);
        out.u64(low).u64(u64::from(self.len) | u64::from(self.value) << 32);
        if self.flags & EXTENDED != 0 {
            out.u64(self.remote.address).u32(self.remote.handle.0).u32(self.total);
        }
        bytes
    }

    /// Reads a head to where it is used: a copy right behind the stores of its parts would wait for them. `false`: not all of
    /// it is here.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<bool, &'static str> {
        let mut fields = Reader::new(bytes);
        let (Ok(low), Ok(high)) = (fields.u64(), fields.u64()) else { return Ok(false) };
        let kind = *KINDS.get((low as u8 as usize).wrapping_sub(1)).ok_or("an entry of an unknown kind")?;
        let flags = (low >> 8) as u8;
        let len = high as u32;
        let (remote, total) = if flags & EXTENDED == 0 {
            if matches!(kind, Kind::Write | Kind::Read) || flags & HERE != 0 {
                return Err("an entry without its extension");
            }
            (NOWHERE, len)
        } else {
            let (Ok(address), Ok(handle), Ok(total)) = (fields.u64(), fields.u32(), fields.u32()) else {
                return Ok(false);
            };
            (Remote { address, handle: MemHandle(handle) }, total)
        };
        if len > total {
            return Err("a part that is longer than the whole");
        }
        let (extra, line, value) = ((low >> 16) as u16, (low >> 32) as u32, (high >> 32) as u32);
        *self = Header { kind, flags, extra, line, len, value, remote, total };
        Ok(true)
    }
}

/// A posted receive, as the sender knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Credit {
    pub(crate) total: u32,
    /// Where its bytes go, if they can be placed there: a window of the receiver and an offset in it.
    pub(crate) place: Option<(u32, u64)>,
}

/// Bytes of a credit in a `Posted` entry.
pub(crate) const CREDIT: usize = 16;
/// Credits in one entry.
pub(crate) const MAX_CREDITS: usize = 16;
const NO_WINDOW: u32 = u32::MAX;
const WRITE: u32 = 1;
const READ: u32 = 2;

impl Credit {
    #[inline]
    pub(crate) fn emit(&self) -> [u8; CREDIT] {
        let (window, offset) = self.place.unwrap_or((NO_WINDOW, 0));
        let mut bytes = [0; CREDIT];
        Writer::new(&mut bytes[..]).u32(self.total).u32(window).u64(offset);
        bytes
    }

    /// Reads the next credit; `None` at the end.
    #[inline]
    pub(crate) fn read(fields: &mut Reader<'_>) -> Option<Credit> {
        let (total, window, offset) = (fields.u32().ok()?, fields.u32().ok()?, fields.u64().ok()?);
        Some(Credit { total, place: (window != NO_WINDOW).then_some((window, offset)) })
    }
}

/// Memory of the peer that can be written and read without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) handle: MemHandle,
    pub(crate) way: ReachWay,
    pub(crate) base: u64,
    pub(crate) len: u64,
}

/// How it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReachWay {
    /// Through a window of that number: memory that the library allocated.
    Window(u32),
    /// Through the kernel, as long as the peer's gate is at this turn: memory of the program.
    Attached { turn: u64, write: bool, read: bool },
}

/// Memory of the peer's program that receives lie in, reached through the kernel as long as its gate is at this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attached {
    pub(crate) turn: u64,
    pub(crate) base: u64,
    pub(crate) len: u64,
}

impl Attached {
    pub(crate) const LEN: usize = 24;

    pub(crate) fn emit(&self) -> [u8; Attached::LEN] {
        let mut bytes = [0; Attached::LEN];
        Writer::new(&mut bytes[..]).u64(self.turn).u64(self.base).u64(self.len);
        bytes
    }

    pub(crate) fn read(fields: &mut Reader<'_>) -> Option<Attached> {
        Some(Attached { turn: fields.u64().ok()?, base: fields.u64().ok()?, len: fields.u64().ok()? })
    }

    /// The address of these bytes, if they lie within.
    pub(crate) fn address(&self, offset: u64, len: u32) -> Option<u64> {
        (offset <= self.len && u64::from(len) <= self.len - offset).then(|| self.base.wrapping_add(offset))
    }
}

const _: () = assert!(Attached::LEN != Cookie::WIRE_LEN, "a window is told by its length");

impl Reach {
    pub(crate) const LEN: usize = 40;

    pub(crate) fn emit(&self) -> [u8; Reach::LEN] {
        let (window, turn, rights) = match self.way {
            ReachWay::Window(window) => (window, 0, WRITE | READ),
            ReachWay::Attached { turn, write, read } => {
                (NO_WINDOW, turn, if write { WRITE } else { 0 } | if read { READ } else { 0 })
            }
        };
        let mut bytes = [0; Reach::LEN];
        let mut out = Writer::new(&mut bytes[..]);
        out.u32(self.handle.0).u32(window).u64(self.base).u64(self.len).u64(turn).u32(rights);
        bytes
    }

    pub(crate) fn read(fields: &mut Reader<'_>) -> Option<Reach> {
        let (handle, window) = (MemHandle(fields.u32().ok()?), fields.u32().ok()?);
        let (base, len, turn) = (fields.u64().ok()?, fields.u64().ok()?, fields.u64().ok()?);
        // Four bytes behind the rights are not used.
        let (rights, _) = (fields.u32().ok()?, fields.u32().ok()?);
        let way = match window {
            NO_WINDOW => ReachWay::Attached { turn, write: rights & WRITE != 0, read: rights & READ != 0 },
            window => ReachWay::Window(window),
        };
        Some(Reach { handle, way, base, len })
    }

    /// Where in the window these bytes lie, if they do.
    pub(crate) fn offset(&self, remote: &Remote, len: u32) -> Option<usize> {
        let offset = remote.address.checked_sub(self.base).filter(|_| remote.handle == self.handle)?;
        (offset <= self.len && u64::from(len) <= self.len - offset).then_some(offset as usize)
    }
}

/// The longest body that is not bytes of a message.
pub(crate) const MAX_FIXED: usize = CREDIT * MAX_CREDITS;
const _: () = assert!(MAX_FIXED >= QueueSpec::WIRE_LEN && MAX_FIXED >= Cookie::WIRE_LEN);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Option<Header>, &'static str> {
        let mut header = Header::EMPTY;
        Ok(header.read(bytes)?.then_some(header))
    }

    #[test]
    fn headers_come_back() {
        let remote = Remote { address: 0x1234_5678_9abc_def0, handle: MemHandle(7) };
        for header in [
            Header::new(Kind::Message, 1, 5),
            Header::new(Kind::Message, 1, 5).with_immediate(Some(9)).continuing(),
            Header::new(Kind::Message, 3, 50).here(50),
            Header::new(Kind::Message, u32::MAX, 50).first(20),
            Header::new(Kind::Write, 9, 77).to(remote, 1 << 20).with_immediate(Some(1)),
            Header::new(Kind::ReadData, 9, 0).with_fault(Fault::Protection),
            Header::new(Kind::Message, 1, 4).padded(128),
        ] {
            let bytes = header.emit();
            assert_eq!(parse(&bytes[..header.size()]), Ok(Some(header)));
            assert_eq!(parse(&bytes[..header.size() - 1]), Ok(None));
            assert_eq!(header.whole() % HEAD, 0);
        }
        for position in (0..256).step_by(HEAD) {
            for len in 0..200 {
                let header = Header::new(Kind::Message, 1, len).padded(position);
                assert_eq!((position as usize + header.whole()) % LINE, 0);
                assert!(header.whole() - HEAD - (len as usize) < LINE + HEAD);
            }
        }
        assert!(parse(&[14; 32]).is_err() && parse(&[0; 32]).is_err());
        assert!(parse(&Header::new(Kind::Read, 0, 0).emit()).is_err(), "a read must say what");
    }

    #[test]
    fn credits_and_reaches_come_back() {
        for place in [None, Some((3, 1 << 40))] {
            let credit = Credit { total: 77, place };
            assert_eq!(Credit::read(&mut Reader::new(&credit.emit())), Some(credit));
        }
        let reach = Reach { handle: MemHandle(5), way: ReachWay::Window(2), base: 1 << 40, len: 100 };
        let way = ReachWay::Attached { turn: 1 << 50, write: true, read: false };
        for reach in [reach, Reach { way, ..reach }] {
            assert_eq!(Reach::read(&mut Reader::new(&reach.emit())), Some(reach));
        }
        let at = |address, len| reach.offset(&Remote { address, handle: MemHandle(5) }, len);
        assert_eq!((at((1 << 40) + 60, 40), at((1 << 40) + 60, 41), at(5, 1)), (Some(60), None, None));
        assert_eq!(reach.offset(&Remote { address: 1 << 40, handle: MemHandle(6) }, 1), None);
    }
}
