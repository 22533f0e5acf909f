//! Markers: pointers back to the beginning of an FPDU, at a fixed spacing (RFC 5044 §4.2, §4.3).
//!
//! The standard spacing is 512 bytes, counted from the first byte after set-up. Another spacing is
//! only used between two Sidestep peers that have agreed on it.

use crate::bytes::{put_u16, u16_at};
use crate::error::{Error, Part, check_len};
use std::fmt;

/// The length of a marker.
pub const LEN: usize = 4;

mod field {
    use std::ops::Range;
    pub(super) const RESERVED: Range<usize> = 0..2;
    pub(super) const POINTER: Range<usize> = 2..4;
}

/// The distance from one marker to the next, in bytes of the stream: a multiple of four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(u16);

impl Interval {
    /// What RFC 5044 prescribes.
    pub const STANDARD: Self = Self(512);
    /// The smallest interval.
    pub const MIN: Self = Self(16);
    /// The greatest interval.
    pub const MAX: Self = Self(0xfffc);

    /// The interval of `bytes`.
    pub fn new(bytes: u32) -> Result<Self, Error> {
        let (min, max) = (Self::MIN.bytes(), Self::MAX.bytes());
        match u16::try_from(bytes) {
            Ok(value) if bytes % 4 == 0 && (min..=max).contains(&bytes) => Ok(Self(value)),
            _ => Err(Error::Interval { found: bytes, min, max }),
        }
    }

    /// The interval in bytes.
    #[must_use]
    pub fn bytes(self) -> u32 {
        u32::from(self.0)
    }

    /// The bytes between two markers.
    #[must_use]
    pub fn run(self) -> usize {
        usize::from(self.0) - LEN
    }
}

/// A view of a marker.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which may be longer than the marker.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        check_len(Part::Marker, LEN, buffer.as_ref().len())?;
        Ok(Self { buffer })
    }

    /// How far before the marker its FPDU begins; the lowest two bits count as zero.
    pub fn pointer(&self) -> u16 {
        u16_at(self.buffer.as_ref(), field::POINTER) & !3
    }
}

/// The value of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// How far before the marker its FPDU begins; zero where the marker precedes its FPDU.
    pub pointer: u16,
}

impl Repr {
    /// Reads the value.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        Ok(Self { pointer: header.pointer() })
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
        put_u16(buffer, field::RESERVED, 0);
        put_u16(buffer, field::POINTER, self.pointer & !3);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "marker -{}", self.pointer)
    }
}

/// Where the markers of one FPDU lie.
///
/// Positions in an FPDU are counted without markers; this type translates them to positions on the
/// wire. A marker that falls between two FPDUs belongs to the second one and precedes its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spacing {
    /// The interval, and how many bytes of the FPDU precede its first marker.
    markers: Option<(Interval, usize)>,
}

impl Spacing {
    /// The spacing of an FPDU that begins at byte `position` of the stream after set-up.
    #[must_use]
    pub fn new(interval: Option<Interval>, position: u64) -> Self {
        Self {
            markers: interval.map(|interval| {
                let past = (position % u64::from(interval.bytes())) as usize;
                (interval, if past == 0 { 0 } else { interval.bytes() as usize - past })
            }),
        }
    }

    /// The spacing of a stream without markers.
    #[must_use]
    pub fn none() -> Self {
        Self { markers: None }
    }

    /// Where byte `at` of the FPDU lies on the wire, counted from where the FPDU begins.
    #[must_use]
    pub fn wire_offset(&self, at: usize) -> usize {
        match self.markers {
            Some((interval, lead)) if at >= lead => at + LEN * (1 + (at - lead) / interval.run()),
            _ => at,
        }
    }

    /// How many bytes `len` bytes of an FPDU take on the wire.
    #[must_use]
    pub fn wire_len(&self, len: usize) -> usize {
        if len == 0 { 0 } else { self.wire_offset(len - 1) + 1 }
    }

    /// How many bytes from byte `at` on lie together, up to the next marker.
    #[must_use]
    pub fn run(&self, at: usize) -> usize {
        match self.markers {
            Some((_, lead)) if at < lead => lead - at,
            Some((interval, lead)) => interval.run() - (at - lead) % interval.run(),
            None => usize::MAX,
        }
    }

    /// The marker immediately before byte `at`, if there is one.
    #[must_use]
    pub fn marker_before(&self, at: usize) -> Option<Repr> {
        let (interval, lead) = self.markers?;
        if at < lead || (at - lead) % interval.run() != 0 {
            return None;
        }
        let marker = self.wire_offset(at) - LEN;
        // The pointer is 16 bits wide and an FPDU with markers can be longer: it wraps.
        Some(Repr { pointer: (marker.saturating_sub(self.wire_offset(0)) as u16) & !3 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_marker() {
        let mut bytes = [0xff; 4];
        Repr { pointer: 0x14 }.emit(&mut bytes);
        assert_eq!(bytes, [0, 0, 0, 0x14]);
        let dirty = Header::new_checked([0xab, 0xcd, 0x00, 0x17]).unwrap();
        assert_eq!(Repr::parse(&dirty), Ok(Repr { pointer: 0x14 }));
        assert_eq!(Repr { pointer: 20 }.to_string(), "marker -20");
        assert!(Header::new_checked([0; 3]).is_err());
    }

    #[test]
    fn intervals() {
        assert_eq!(Interval::new(512), Ok(Interval::STANDARD));
        for bad in [0, 12, 18, 510, 65536, u32::MAX] {
            assert!(matches!(Interval::new(bad), Err(Error::Interval { found, .. }) if found == bad));
        }
    }

    /// RFC 5044 §4.3: the first marker comes before everything, the next one 512 bytes later.
    #[test]
    fn spacing_at_the_start_of_the_stream() {
        let spacing = Spacing::new(Some(Interval::STANDARD), 0);
        assert_eq!(spacing.marker_before(0), Some(Repr { pointer: 0 }));
        assert_eq!((spacing.wire_offset(0), spacing.run(0)), (4, 508));
        assert_eq!(spacing.wire_len(508), 512);
        assert_eq!(spacing.wire_len(509), 517);
        assert_eq!(spacing.marker_before(508), Some(Repr { pointer: 508 }));
    }

    /// RFC 5044 figure 6: an FPDU that begins at 0x1ec has a marker 0x14 bytes on.
    #[test]
    fn spacing_in_the_stream() {
        let spacing = Spacing::new(Some(Interval::STANDARD), 0x1ec);
        assert_eq!(spacing.marker_before(0), None);
        assert_eq!(spacing.run(0), 0x14);
        assert_eq!(spacing.marker_before(0x14), Some(Repr { pointer: 0x14 }));
        assert_eq!(spacing.wire_offset(0x14), 0x18);
        // A marker right behind the FPDU belongs to the next one.
        assert_eq!(spacing.wire_len(0x14), 0x14);
    }

    #[test]
    fn no_markers() {
        let spacing = Spacing::none();
        assert_eq!((spacing.wire_len(9), spacing.run(3)), (9, usize::MAX));
        assert_eq!(spacing.marker_before(0), None);
    }

    /// The arithmetic agrees with laying out byte after byte.
    #[test]
    fn spacing_agrees_with_a_walk() {
        for interval in [16, 20, 512] {
            let interval = Interval::new(interval).unwrap();
            for position in (0..2 * u64::from(interval.bytes())).step_by(4) {
                let spacing = Spacing::new(Some(interval), position);
                let mut wire = 0usize;
                for at in 0..100 {
                    let marker = (position + wire as u64) % u64::from(interval.bytes()) == 0;
                    assert_eq!(spacing.marker_before(at).is_some(), marker);
                    wire += if marker { LEN } else { 0 };
                    assert_eq!(spacing.wire_offset(at), wire);
                    wire += 1;
                    assert_eq!(spacing.wire_len(at + 1), wire);
                }
            }
        }
    }
}
