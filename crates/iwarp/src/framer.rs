//! Outgoing FPDUs: length, headers, payload by name, padding, CRC, and markers where the peer wants
//! them (RFC 5044 §4).

use crate::gather::{Gather, SourceSlice};
use crate::host::Host;
use sidestep_wire::mpa::marker::{self, Interval, Spacing};
use sidestep_wire::mpa::{crc32c, fpdu};

/// One direction of a stream, as its sender sees it.
#[derive(Debug)]
pub(crate) struct Framer {
    pub(crate) crc: bool,
    pub(crate) interval: Option<Interval>,
    /// Bytes of FPDUs and markers so far.
    pub(crate) position: u64,
}

impl Framer {
    /// Appends the FPDU of a segment: its headers, and its payload if it has any.
    ///
    /// The caller keeps the segment within the greatest ULPDU, which is at most 65535 bytes.
    pub(crate) fn frame(
        &mut self,
        headers: &[u8],
        payload: Option<SourceSlice>,
        host: &mut impl Host,
        gather: &mut Gather,
    ) {
        let payload_len = payload.map_or(0, |slice| slice.len as usize);
        let ulpdu_len = headers.len() + payload_len;
        if self.interval.is_none() && payload_len <= SHORT && self.frame_short(headers, payload, host, gather) {
            return;
        }
        let mut out = Output {
            spacing: Spacing::new(self.interval, self.position),
            at: 0,
            crc: self.crc.then_some(0),
            host,
            gather,
        };
        out.put_bytes(&(ulpdu_len as u16).to_be_bytes());
        out.put_bytes(headers);
        if let Some(slice) = payload {
            out.put_source(slice);
        }
        out.put_bytes(&[0; 3][..fpdu::padding(ulpdu_len)]);
        out.put_marker();
        let crc = out.crc.unwrap_or(0);
        gather.push_bytes(&crc.to_le_bytes());
        let spacing = Spacing::new(self.interval, self.position);
        self.position += spacing.wire_len(fpdu::bare_len(ulpdu_len)) as u64;
    }

    /// As `frame` without markers, in one piece: one sum, and nothing to gather. `false` if the host does not copy.
    fn frame_short(
        &mut self,
        headers: &[u8],
        payload: Option<SourceSlice>,
        host: &mut impl Host,
        gather: &mut Gather,
    ) -> bool {
        let ulpdu_len = headers.len() + payload.map_or(0, |slice| slice.len as usize);
        let crc = self.crc;
        let appended = gather.append(|bytes| {
            let start = bytes.len();
            bytes.extend_from_slice(&(ulpdu_len as u16).to_be_bytes());
            bytes.extend_from_slice(headers);
            if let Some(slice) = payload.filter(|slice| slice.len > 0)
                && !host.copy(slice, bytes)
            {
                return false;
            }
            debug_assert_eq!(bytes.len() - start, fpdu::HEADER_LEN + ulpdu_len, "all bytes were copied");
            bytes.extend_from_slice(&[0; 3][..fpdu::padding(ulpdu_len)]);
            let crc = if crc { crc32c(0, &bytes[start..]) } else { 0 };
            bytes.extend_from_slice(&crc.to_le_bytes());
            true
        });
        if appended {
            self.position += fpdu::bare_len(ulpdu_len) as u64;
        }
        appended
    }
}

/// The longest payload that may be copied into its frame: about what it costs to name it.
const SHORT: usize = 1024;

/// An FPDU under construction.
struct Output<'a, H> {
    spacing: Spacing,
    /// How much of the FPDU was put, markers not counted.
    at: usize,
    crc: Option<u32>,
    host: &'a mut H,
    gather: &'a mut Gather,
}

impl<H: Host> Output<'_, H> {
    fn put_bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            self.put_marker();
            let (run, rest) = bytes.split_at(self.spacing.run(self.at).min(bytes.len()));
            self.put_run(run);
            self.at += run.len();
            bytes = rest;
        }
    }

    fn put_source(&mut self, mut slice: SourceSlice) {
        while slice.len > 0 {
            self.put_marker();
            let len = self.spacing.run(self.at).min(slice.len as usize) as u32;
            let run = SourceSlice { len, ..slice };
            self.crc = self.crc.map(|crc| self.host.checksum(crc, run));
            self.gather.push_source(run);
            self.at += len as usize;
            slice.offset += u64::from(len);
            slice.len -= len;
        }
    }

    /// Puts the marker that belongs here, if one does.
    fn put_marker(&mut self) {
        if let Some(repr) = self.spacing.marker_before(self.at) {
            let mut bytes = [0; marker::LEN];
            repr.emit(&mut bytes);
            self.put_run(&bytes);
        }
    }

    fn put_run(&mut self, bytes: &[u8]) {
        self.crc = self.crc.map(|crc| crc32c(crc, bytes));
        self.gather.push_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::{BufferId, Piece, Source};
    use crate::host::Target;
    use sidestep_wire::Stag;
    use sidestep_wire::rdmap::atomic_request::Operation;

    /// A host whose every buffer holds the same bytes, and which may copy.
    struct Bytes(Vec<u8>, bool);

    impl Bytes {
        fn slice(&self, slice: SourceSlice) -> &[u8] {
            &self.0[slice.offset as usize..slice.offset as usize + slice.len as usize]
        }
    }

    impl Host for Bytes {
        fn place(&mut self, _: Target, _: &[u8]) {}

        fn atomic(&mut self, _: Stag, _: u64, _: Operation) -> u64 {
            0
        }

        fn copy(&mut self, slice: SourceSlice, into: &mut Vec<u8>) -> bool {
            if self.1 {
                into.extend_from_slice(self.slice(slice));
            }
            self.1
        }

        fn checksum(&mut self, crc: u32, slice: SourceSlice) -> u32 {
            crc32c(crc, self.slice(slice))
        }
    }

    /// What is gathered is what the wire crate emits in one piece, wherever the markers fall.
    #[test]
    fn gathered_fpdus_are_those_of_the_wire() {
        let intervals = [None, Interval::new(16).ok(), Interval::new(64).ok(), Interval::new(512).ok()];
        for (interval, copies) in intervals.into_iter().flat_map(|interval| [(interval, false), (interval, true)]) {
            let mut host = Bytes((0..=255).cycle().take(1500).collect(), copies);
            let mut framer = Framer { crc: true, interval, position: 0 };
            for (header_len, payload_len) in (0..200).map(|n| (14 + n % 7, (n * 37) % 1400)).chain([(18, 0), (46, 0)]) {
                let headers = &host.0[..header_len].to_vec();
                let payload = SourceSlice { source: Source::Buffer(BufferId(0)), offset: 3, len: payload_len as u32 };
                let position = framer.position;
                let mut gather = Gather::new();
                framer.frame(headers, Some(payload), &mut host, &mut gather);
                let short = copies && interval.is_none() && payload_len <= SHORT;
                assert!(!short || gather.piece_count() == 1);
                let mut gathered = Vec::new();
                for piece in gather.pieces() {
                    match piece {
                        Piece::Bytes(bytes) => gathered.extend_from_slice(bytes),
                        Piece::Source(slice) => gathered.extend_from_slice(host.slice(slice)),
                    }
                }
                let mut ulpdu = headers.clone();
                ulpdu.extend_from_slice(host.slice(payload));
                let spacing = Spacing::new(interval, position);
                let repr = fpdu::Repr { ulpdu_len: ulpdu.len() as u16 };
                let mut expected = vec![0; repr.buffer_len(spacing)];
                repr.emit(&ulpdu, spacing, &mut expected);
                assert_eq!(gathered, expected);
                assert_eq!(framer.position, position + expected.len() as u64);
            }
        }
    }

    #[test]
    fn without_crc_the_field_is_there_and_nothing_is_computed() {
        let mut framer = Framer { crc: false, interval: None, position: 0 };
        let mut gather = Gather::new();
        framer.frame(&[1, 2], None, &mut Bytes(Vec::new(), false), &mut gather);
        assert_eq!(gather.pieces().collect::<Vec<_>>(), [Piece::Bytes(&[0, 2, 1, 2, 0, 0, 0, 0])]);
    }
}
