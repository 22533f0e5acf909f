//! What travels on the two queues of a connection.
//!
//! *Transfer queue*, sender to receiver: a header of 16 bytes (32 for RDMA), then the bytes it announces.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | kind |
//! | 1 | flags: 1 = immediate data, 2 = goes on in the next receive |
//! | 2..4 | fault, for `Fault` and `ReadData` |
//! | 4..8 | length |
//! | 8..12 | immediate data |
//! | 16..24, 24..28 | remote address and handle |
//!
//! *Cookie queue*, receiver to sender: records of 8 bytes: kind, number of pieces, two of fault, a 32-bit value; then 16
//! bytes a piece, or a cookie.

use sidestep_fabric::Cookie;

use crate::{
    descriptor::{List, Remote},
    memory::MemHandle,
};

/// Kinds of transfer entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A message; its bytes follow.
    Message = 1,
    /// A message whose bytes lie in the receive buffer already.
    Placed = 2,
    /// A message that could not be sent.
    Fault = 3,
    /// An RDMA write; its bytes follow.
    Write = 4,
    /// A request to read.
    Read = 5,
    /// The answer; its bytes follow.
    ReadData = 6,
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

/// The head of a transfer entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) continues: bool,
    pub(crate) fault: Fault,
    pub(crate) len: u32,
    pub(crate) immediate: Option<u32>,
    pub(crate) remote: Option<Remote>,
}

pub(crate) const SHORT: usize = 16;
pub(crate) const LONG: usize = 32;

const IMMEDIATE: u8 = 1;
const CONTINUES: u8 = 2;

impl Fault {
    fn from_bits(bits: u16) -> Option<Fault> {
        const ALL: [Fault; 5] = [Fault::None, Fault::NoReceive, Fault::Length, Fault::Protection, Fault::Descriptor];
        ALL.get(bits as usize).copied()
    }
}

impl Header {
    pub(crate) fn new(kind: Kind, len: u32, immediate: Option<u32>) -> Header {
        Header { kind, continues: false, fault: Fault::None, len, immediate, remote: None }
    }

    /// Bytes of the head itself.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        if self.remote.is_some() { LONG } else { SHORT }
    }

    /// Bytes that follow it.
    #[inline]
    pub(crate) fn body(&self) -> usize {
        match self.kind {
            Kind::Message | Kind::Write | Kind::ReadData => self.len as usize,
            Kind::Placed | Kind::Fault | Kind::Read => 0,
        }
    }

    #[inline]
    pub(crate) fn emit(&self) -> [u8; LONG] {
        let mut bytes = [0; LONG];
        bytes[0] = self.kind as u8;
        bytes[1] = if self.immediate.is_some() { IMMEDIATE } else { 0 } | if self.continues { CONTINUES } else { 0 };
        bytes[2..4].copy_from_slice(&(self.fault as u16).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.immediate.unwrap_or(0).to_le_bytes());
        if let Some(remote) = &self.remote {
            bytes[16..24].copy_from_slice(&remote.address.to_le_bytes());
            bytes[24..28].copy_from_slice(&remote.handle.0.to_le_bytes());
        }
        bytes
    }

    /// Reads a head. `Ok(None)`: not all of it is here.
    #[inline]
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Header>, &'static str> {
        if bytes.len() < SHORT {
            return Ok(None);
        }
        let kind = match bytes[0] {
            1 => Kind::Message,
            2 => Kind::Placed,
            3 => Kind::Fault,
            4 => Kind::Write,
            5 => Kind::Read,
            6 => Kind::ReadData,
            _ => return Err("a transfer entry of an unknown kind"),
        };
        let fault = Fault::from_bits(word16(&bytes[2..])).ok_or("an unknown fault")?;
        let immediate = (bytes[1] & IMMEDIATE != 0).then(|| word32(&bytes[8..]));
        let remote = match kind {
            Kind::Write | Kind::Read if bytes.len() < LONG => return Ok(None),
            Kind::Write | Kind::Read => {
                let address = u64::from(word32(&bytes[16..])) | u64::from(word32(&bytes[20..])) << 32;
                Some(Remote { address, handle: MemHandle(word32(&bytes[24..])) })
            }
            _ => None,
        };
        let continues = bytes[1] & CONTINUES != 0;
        Ok(Some(Header { kind, continues, fault, len: word32(&bytes[4..]), immediate, remote }))
    }
}

/// A posted receive, as the sender knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credit {
    pub(crate) total: u32,
    /// Where its bytes go, if they can be placed there.
    pub(crate) places: List<Place>,
}

/// A part of a receive buffer in memory that the sender can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) window: u32,
    pub(crate) len: u32,
    pub(crate) offset: u64,
}

/// A record of the cookie queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// A receive was posted.
    Posted(Credit),
    /// From now on this number names that region.
    Window(u32, Cookie),
    /// So many messages or writes are in memory.
    Placed(u32),
    /// The next one failed.
    Failed(Fault),
    /// Everything that was posted before the connection was made has been told.
    Ready,
}

pub(crate) const RECORD: usize = 8;
const PLACE: usize = 16;
/// Pieces of a receive buffer that are announced; buffers in more pieces are filled by copy.
pub(crate) const MAX_PLACES: usize = 8;
/// The longest record.
pub(crate) const MAX_RECORD: usize = RECORD + PLACE * MAX_PLACES;

impl Record {
    pub(crate) fn emit(&self, into: &mut Vec<u8>) {
        let head = |kind: u8, count: u8, fault: u16, value: u32| {
            let (fault, value) = (fault.to_le_bytes(), value.to_le_bytes());
            [kind, count, fault[0], fault[1], value[0], value[1], value[2], value[3]]
        };
        into.clear();
        match self {
            Record::Posted(credit) => {
                let places = credit.places.as_slice();
                into.extend(head(1, places.len() as u8, 0, credit.total));
                for place in places {
                    into.extend(place.window.to_le_bytes());
                    into.extend(place.len.to_le_bytes());
                    into.extend(place.offset.to_le_bytes());
                }
            }
            Record::Window(number, cookie) => {
                into.extend(head(2, 0, 0, *number));
                into.extend(cookie.to_bytes());
            }
            Record::Placed(count) => into.extend(head(3, 0, 0, *count)),
            Record::Failed(fault) => into.extend(head(4, 0, *fault as u16, 1)),
            Record::Ready => into.extend(head(5, 0, 0, 0)),
        }
    }

    /// Reads a record and says how long it is. `Ok(None)`: not all of it is here.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Record, usize)>, &'static str> {
        let Some((head, rest)) = bytes.split_at_checked(RECORD) else { return Ok(None) };
        let value = word32(&head[4..]);
        let record = match head[0] {
            1 => {
                let count = head[1] as usize;
                if count > MAX_PLACES {
                    return Err("a receive in too many pieces");
                }
                let Some(bytes) = rest.get(..count * PLACE) else { return Ok(None) };
                let place = |bytes: &[u8]| Place {
                    window: word32(bytes),
                    len: word32(&bytes[4..]),
                    offset: u64::from(word32(&bytes[8..])) | u64::from(word32(&bytes[12..])) << 32,
                };
                let places = match count {
                    1 => List::One(place(bytes)),
                    _ => List::Many(bytes.chunks_exact(PLACE).map(place).collect()),
                };
                let credit = Credit { total: value, places };
                (Record::Posted(credit), RECORD + count * PLACE)
            }
            2 => {
                let Some(bytes) = rest.get(..Cookie::WIRE_LEN) else { return Ok(None) };
                let cookie = Cookie::from_bytes(bytes).map_err(|_| "a bad cookie")?;
                (Record::Window(value, cookie), RECORD + Cookie::WIRE_LEN)
            }
            3 => (Record::Placed(value), RECORD),
            4 => (Record::Failed(Fault::from_bits(word16(&head[2..])).ok_or("an unknown fault")?), RECORD),
            5 => (Record::Ready, RECORD),
            _ => return Err("a record of an unknown kind"),
        };
        Ok(Some(record))
    }
}

fn word16(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[0], bytes[1]])
}

pub(crate) fn word32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        let remote = Some(Remote { address: 0x1234_5678_9abc_def0, handle: MemHandle(7) });
        for header in [
            Header::new(Kind::Message, 5, None),
            Header { continues: true, ..Header::new(Kind::Message, 5, Some(9)) },
            Header { fault: Fault::Length, ..Header::new(Kind::Fault, 0, None) },
            Header { remote, ..Header::new(Kind::Write, 77, Some(1)) },
            Header { remote, ..Header::new(Kind::Read, 1 << 20, None) },
        ] {
            let bytes = header.emit();
            assert_eq!(Header::parse(&bytes[..header.size()]), Ok(Some(header)));
            assert_eq!(Header::parse(&bytes[..header.size() - 1]), Ok(None));
        }
        assert!(Header::parse(&[9; 32]).is_err());
    }

    #[test]
    fn records_come_back() {
        let place = Place { window: 1, len: 2, offset: 1 << 40 };
        for record in [
            Record::Posted(Credit { total: 3, places: List::NONE }),
            Record::Posted(Credit { total: 3, places: List::Many(vec![place; MAX_PLACES]) }),
            Record::Posted(Credit { total: 3, places: List::One(place) }),
            Record::Placed(4),
            Record::Ready,
            Record::Failed(Fault::Protection),
        ] {
            let mut bytes = Vec::new();
            record.emit(&mut bytes);
            assert!(bytes.len() <= MAX_RECORD);
            assert_eq!(Record::parse(&bytes[..bytes.len() - 1]), Ok(None));
            assert_eq!(Record::parse(&bytes), Ok(Some((record, bytes.len()))));
        }
        assert!(Record::parse(&[1, 200, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(Record::parse(&[0; 8]).is_err());
    }
}
