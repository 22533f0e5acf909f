//! Every check of what a peer sends, and the terminate message that it leads to.
//!
//! A [`Fault`] says what was found, with the values; its [`Check`] says which rule it broke. The table
//! in this file gives each check its layer, type and code (RFC 5040 §4.8, RFC 5041 §7.2, RFC 5044 §8,
//! RFC 6581 §8), and which headers go back with them (RFC 5040 figure 10).

use crate::fault::Fault;
use sidestep_wire::Msn;
use sidestep_wire::rdmap::{read_request, segment, terminate, terminate::Reason};

impl Fault {
    /// The terminate message for it. `refused` is the segment in which it was found.
    pub(crate) fn terminate(&self, refused: Option<&Refused>) -> terminate::Repr {
        let check = self.check();
        let refused = refused.filter(|_| check.headers() != Headers::None);
        let ddp = refused.and_then(|refused| terminate::Terminated::new(refused.bytes()));
        terminate::Repr {
            reason: check.reason(),
            segment_len: refused.map(|refused| refused.ulpdu_len),
            ddp,
            request: refused
                .filter(|_| check.headers() == Headers::SegmentAndRequest)
                .and_then(|refused| refused.request),
        }
    }
}

/// A segment that was refused: what of it goes back in a terminate message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refused {
    header: [u8; segment::MAX_HEADER_LEN],
    len: usize,
    ulpdu_len: u16,
    /// The read request in it, advanced to where it was when it was refused.
    request: Option<read_request::Repr>,
}

impl Refused {
    /// The segment of `ulpdu_len` bytes that begins with `header`, and the read request in it.
    pub(crate) fn new(header: &[u8], ulpdu_len: usize, request: Option<read_request::Repr>) -> Self {
        let len = header.len().min(segment::MAX_HEADER_LEN);
        let mut bytes = [0; segment::MAX_HEADER_LEN];
        bytes[..len].copy_from_slice(&header[..len]);
        Self { header: bytes, len, ulpdu_len: ulpdu_len as u16, request }
    }

    /// The segment that carried this read request.
    pub(crate) fn read_request(msn: Msn, request: read_request::Repr) -> Self {
        let repr = segment::Repr::ReadRequest { msn, request };
        let mut header = [0; segment::MAX_HEADER_LEN];
        repr.emit(&mut header);
        let len = repr.buffer_len();
        Self { header, len, ulpdu_len: len as u16, request: Some(request) }
    }

    fn bytes(&self) -> &[u8] {
        &self.header[..self.len]
    }
}

/// Which headers of the refused segment go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Headers {
    None,
    Segment,
    SegmentAndRequest,
}

macro_rules! checks {
    ($($name:ident, ($layer:literal, $etype:literal, $code:literal), $headers:ident, $text:literal;)*) => {
        /// A rule for what a peer sends. [`Check::ALL`] is the table of all of them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Check {
            $(#[doc = $text] $name,)*
        }

        impl Check {
            /// Every rule.
            pub const ALL: &'static [Check] = &[$(Check::$name,)*];

            /// The layer, type and code with which a breach is answered.
            #[must_use]
            pub fn reason(self) -> Reason {
                match self {
                    $(Check::$name => Reason::new($layer, $etype, $code),)*
                }
            }

            /// What a breach looks like.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self {
                    $(Check::$name => $text,)*
                }
            }

            fn headers(self) -> Headers {
                match self {
                    $(Check::$name => Headers::$headers,)*
                }
            }
        }
    };
}

// RFC 5041 has no code for a write without the right to write: an invalid tag comes nearest, and is
// what siw answers. RFC 5040 and RFC 7306 have none for a message of the wrong shape: unspecified.
checks! {
    Crc, (2, 0, 0x02), None, "an FPDU whose CRC is wrong";
    Marker, (2, 0, 0x03), None, "a marker that does not point to its FPDU";
    ReadDepthShort, (2, 0, 0x06), None, "a reply with more outbound reads than can be served";
    NoReadyMode, (2, 0, 0x07), None, "a reply without a common way to signal readiness";
    SegmentShort, (0, 2, 0xff), Segment, "a segment shorter than its headers";
    TaggedVersion, (1, 1, 0x04), Segment, "a tagged segment of another DDP version";
    UntaggedVersion, (1, 2, 0x06), Segment, "an untagged segment of another DDP version";
    RdmapVersion, (0, 2, 0x05), Segment, "a message of another RDMAP version";
    Opcode, (0, 2, 0x06), Segment, "an unknown opcode";
    Model, (0, 2, 0x06), Segment, "an opcode that contradicts the tagged flag";
    MessageShape, (0, 2, 0xff), Segment, "a message of one segment with another length or not last";
    Queue, (1, 2, 0x01), Segment, "a queue number that is not that of the opcode";
    NoReceive, (1, 2, 0x02), Segment, "a message without a receive buffer";
    ReadQueueFull, (1, 2, 0x02), Segment, "more reads and atomics at a time than agreed";
    MessageNumber, (1, 2, 0x03), Segment, "a message number out of turn";
    MessageOffset, (1, 2, 0x04), Segment, "a message offset out of turn";
    MessageTooLong, (1, 2, 0x05), Segment, "a message longer than its receive buffer";
    OpcodeChanged, (0, 2, 0x06), Segment, "another opcode within a message";
    WriteStag, (1, 1, 0x00), Segment, "a write to an invalid steering tag";
    WriteRights, (1, 1, 0x00), Segment, "a write to a region that is not writable";
    WriteBounds, (1, 1, 0x01), Segment, "a write outside the region";
    WriteAssociation, (1, 1, 0x02), Segment, "a write to a steering tag of another stream";
    WriteWrap, (1, 1, 0x03), Segment, "a write whose offset wraps";
    ReadStag, (0, 1, 0x00), SegmentAndRequest, "a read or atomic of an invalid steering tag";
    ReadBounds, (0, 1, 0x01), SegmentAndRequest, "a read or atomic outside the region";
    ReadRights, (0, 1, 0x02), SegmentAndRequest, "a read or atomic that the region does not allow";
    ReadAssociation, (0, 1, 0x03), SegmentAndRequest, "a read or atomic of a tag of another stream";
    ReadWrap, (0, 1, 0x04), SegmentAndRequest, "a read or atomic whose offset wraps";
    AtomicAlignment, (0, 2, 0x07), Segment, "an atomic that is not aligned to 8 bytes";
    AtomicOperation, (0, 2, 0x06), Segment, "an unknown atomic operation";
    InvalidateAssociation, (0, 1, 0x09), Segment, "invalidation of a tag of another stream";
    InvalidateForbidden, (0, 2, 0x09), Segment, "invalidation of a tag that the peer may not invalidate";
    UnexpectedResponse, (0, 2, 0x06), Segment, "a response that was not asked for";
    ResponseStag, (1, 1, 0x00), Segment, "a read response for another steering tag";
    ResponseRange, (1, 1, 0x01), Segment, "a read response for another place or length";
    ResponseId, (0, 2, 0xff), Segment, "an atomic response to another request";
    Aborted, (0, 0, 0x00), None, "the program above gives up";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::MemoryFault;
    use sidestep_wire::{Stag, TaggedOffset};

    #[test]
    fn every_check_has_a_reason_that_the_standards_name() {
        for check in Check::ALL {
            assert!(check.reason().name().is_some(), "{check:?}");
        }
    }

    /// RFC 5040 figure 10: what goes back with which error.
    #[test]
    fn headers_follow_the_layers() {
        for check in Check::ALL {
            let expected = match check.reason() {
                Reason { layer: 2, .. } | Reason { layer: 0, etype: 0, .. } => Headers::None,
                Reason { layer: 0, etype: 1, code } if code != 9 => Headers::SegmentAndRequest,
                _ => Headers::Segment,
            };
            assert_eq!(check.headers(), expected, "{check:?}");
        }
    }

    #[test]
    fn a_refused_read_goes_back_whole() {
        let request = read_request::Repr {
            sink: Stag(1),
            sink_offset: TaggedOffset(2),
            size: 3,
            source: Stag(4),
            source_offset: TaggedOffset(5),
        };
        let refused = Refused::read_request(Msn(9), request);
        let fault = Fault::Read { fault: MemoryFault::Bounds, stag: Stag(4), offset: TaggedOffset(5), len: 3 };
        let repr = fault.terminate(Some(&refused));
        assert_eq!(repr.segment_len, Some(46));
        assert_eq!(repr.request, Some(request));
        assert_eq!(repr.ddp.unwrap().as_bytes()[..2], [0x41, 0x41]);
        assert_eq!(Fault::Aborted.terminate(Some(&refused)).ddp, None);
    }
}
