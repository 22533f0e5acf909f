//! What two Sidestep peers say to each other at the start of MPA's private data.
//!
//! No RFC knows it. It is sent only where something beyond the standard is wanted, and a peer that
//! does not answer with a hello of its own is treated as the standard prescribes.
//!
//! ```text
//! | "SdSt" | version, 1 byte | reserved, 1 byte | marker interval wanted, 2 bytes, 0 = the standard |
//! ```

use crate::bytes::{array, put_u16, u16_at};
use crate::error::{Error, Part, check_len};
use crate::mpa::marker::Interval;
use std::fmt;

/// The length of the hello.
pub const LEN: usize = 8;

const MAGIC: [u8; 4] = *b"SdSt";
const VERSION: u8 = 1;

mod field {
    use std::ops::Range;
    pub(super) const MAGIC: Range<usize> = 0..4;
    pub(super) const VERSION: usize = 4;
    pub(super) const RESERVED: usize = 5;
    pub(super) const INTERVAL: Range<usize> = 6..8;
}

/// A view of a hello.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which may be longer than the hello.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let data = buffer.as_ref();
        check_len(Part::Hello, LEN, data.len())?;
        let found = array(data, field::MAGIC);
        if found != MAGIC {
            return Err(Error::HelloMagic { found });
        }
        Ok(Self { buffer })
    }

    /// The version of the hello.
    pub fn version(&self) -> u8 {
        self.buffer.as_ref()[field::VERSION]
    }

    /// The marker interval as a number, zero for the standard one.
    pub fn interval(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::INTERVAL)
    }
}

/// The value of a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The interval at which the sender wants to receive markers, if it wants markers at all and not
    /// at the standard one.
    pub interval: Option<Interval>,
}

impl Repr {
    /// Reads the value.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        if header.version() != VERSION {
            return Err(Error::HelloVersion { found: header.version() });
        }
        let interval = match header.interval() {
            0 => None,
            bytes => Some(Interval::new(u32::from(bytes))?),
        };
        Ok(Self { interval })
    }

    /// The number of bytes that `emit` writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        LEN
    }

    /// Writes the value.
    ///
    /// # Panics
    /// If the buffer is shorter than [`Repr::buffer_len`].
    pub fn emit(&self, buffer: &mut [u8]) {
        buffer[field::MAGIC].copy_from_slice(&MAGIC);
        buffer[field::VERSION] = VERSION;
        buffer[field::RESERVED] = 0;
        let bytes = self.interval.map_or(0, Interval::bytes);
        put_u16(buffer, field::INTERVAL, bytes as u16);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.interval {
            Some(interval) => write!(f, "sidestep hello, markers every {} bytes", interval.bytes()),
            None => f.write_str("sidestep hello"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_emits_the_golden_hello() {
        let golden = *b"SdSt\x01\x00\x10\x00";
        let repr = Repr::parse(&Header::new_checked(golden).unwrap()).unwrap();
        assert_eq!(repr.interval.unwrap().bytes(), 4096);
        let mut out = [0xee; LEN];
        repr.emit(&mut out);
        assert_eq!(out, golden);
        assert_eq!(repr.to_string(), "sidestep hello, markers every 4096 bytes");
    }

    #[test]
    fn what_is_refused() {
        assert!(Header::new_checked(b"SdSt").is_err());
        assert!(matches!(Header::new_checked(b"SdSx\x01\0\0\0"), Err(Error::HelloMagic { .. })));
        let parse = |bytes: &[u8; 8]| Repr::parse(&Header::new_checked(*bytes).unwrap());
        assert_eq!(parse(b"SdSt\x02\0\0\0"), Err(Error::HelloVersion { found: 2 }));
        assert!(matches!(parse(b"SdSt\x01\0\0\x0a"), Err(Error::Interval { found: 10, .. })));
        assert_eq!(parse(b"SdSt\x01\0\0\0"), Ok(Repr { interval: None }));
    }
}
