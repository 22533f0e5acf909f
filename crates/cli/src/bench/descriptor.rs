//! The end of a kernel byte stream: what `tcp`, `unix` and `pipe` have in common.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result, bail, ensure};
use rustix::io::Errno;

use super::control::Peer;
use super::exercise::Exercise;
use super::path::{BANDWIDTH_SIZES, Bench, End, LATENCY_SIZES, Offer, Opening, Operation, Part, RATE_SIZES, Wait};
use super::payload::Payload;
use super::place::Placement;

/// Both descriptors of one end; a socket is named twice.
pub struct Descriptors {
    /// Where this end reads.
    pub reader: OwnedFd,
    /// Where this end writes.
    pub writer: OwnedFd,
}

impl Descriptors {
    /// One descriptor for both directions.
    pub fn both_ways(descriptor: impl Into<OwnedFd>) -> Result<Descriptors> {
        let reader = descriptor.into();
        let writer = reader.try_clone().context("cannot duplicate a descriptor")?;
        Ok(Descriptors { reader, writer })
    }
}

/// Opens a path from both its ends: keeps one, and passes the other to the worker.
pub fn open(opening: &mut Opening<'_>, here: Descriptors, there: Descriptors) -> Result<Box<dyn Exercise>> {
    opening.offer("", &[there.reader.as_fd(), there.writer.as_fd()])?;
    StreamEnd::boxed(here, opening.wait, opening.peer())
}

/// Attaches the worker to what [`open`] offered.
pub fn attach(offer: Offer) -> Result<Box<dyn Exercise>> {
    let mut descriptors = offer.descriptors.into_iter();
    let (Some(reader), Some(writer)) = (descriptors.next(), descriptors.next()) else {
        bail!("two descriptors were to be offered");
    };
    StreamEnd::boxed(Descriptors { reader, writer }, offer.wait, offer.peer)
}

/// Where kernel byte streams take part: blocking, wherever they do best, and spinning.
pub const fn parts(row: &'static str, spinning_row: &'static str) -> [Part; 6] {
    const BLOCKING: &[Placement] = &[Placement::Free, Placement::Same];
    const SPINNING: &[Placement] = &[Placement::Cross];
    // A byte stream has no empty messages.
    const LATENCY: &[usize] = LATENCY_SIZES.split_at(1).1;
    const fn part(bench: Bench, operation: Operation, sizes: &'static [usize], row: &'static str, wait: Wait) -> Part {
        let placements = if matches!(wait, Wait::Block) { BLOCKING } else { SPINNING };
        Part { bench, row, operation, wait, placements, sizes, shift: 0 }
    }
    use Operation::{PingPong, Stream};
    use Wait::{Block, Spin};
    [
        part(Bench::Latency, PingPong, LATENCY, row, Block),
        part(Bench::Latency, PingPong, LATENCY, spinning_row, Spin),
        part(Bench::Rate, Stream, RATE_SIZES, row, Block),
        part(Bench::Rate, Stream, RATE_SIZES, spinning_row, Spin),
        part(Bench::Bandwidth, Stream, BANDWIDTH_SIZES, row, Block),
        part(Bench::Bandwidth, Stream, BANDWIDTH_SIZES, spinning_row, Spin),
    ]
}

/// An end that reads and writes descriptors.
pub struct StreamEnd {
    descriptors: Descriptors,
    peer: Peer,
    /// Takes several small messages of a stream with one call, as programs do.
    pool: Payload,
    /// Puts the large messages of a stream together, each from the beginning to the end of one buffer.
    whole: bool,
}

impl StreamEnd {
    /// The end of these descriptors.
    pub fn boxed(descriptors: Descriptors, wait: Wait, peer: Peer) -> Result<Box<dyn Exercise>> {
        Ok(Box::new(Self::new(descriptors, wait, peer, false)?))
    }

    /// One whose receiver has every large message of a stream whole in its buffer, as an RDMA write leaves it.
    pub fn boxed_whole(descriptors: Descriptors, wait: Wait, peer: Peer) -> Result<Box<dyn Exercise>> {
        Ok(Box::new(Self::new(descriptors, wait, peer, true)?))
    }

    fn new(descriptors: Descriptors, wait: Wait, peer: Peer, whole: bool) -> Result<StreamEnd> {
        for descriptor in [&descriptors.reader, &descriptors.writer] {
            rustix::io::ioctl_fionbio(descriptor, wait == Wait::Spin).context("FIONBIO failed")?;
        }
        Ok(StreamEnd { descriptors, peer, pool: Payload::new(POOL_BYTES), whole })
    }

    /// Puts every message together in its buffer; a call may bring the end of one and the beginning of the next.
    fn receive_whole(&mut self, payload: &mut Payload, count: usize) -> Result<()> {
        let size = payload.len();
        let end = size * count;
        let mut position = 0;
        while position < end {
            let (next, rest) = payload.split_at_mut(position % size);
            let next_len = next.len().min(end - position - rest.len());
            let got = read_parts(self.descriptors.reader.as_fd(), &self.peer, [rest, &mut next[..next_len]])?;
            let (number, after) = (position.div_ceil(size), position + got);
            if number * size < after {
                let first = payload[0];
                ensure!(first == number as u8, "message {number} of {size} bytes arrived with other contents");
            }
            position = after;
        }
        Ok(())
    }
}

impl End for StreamEnd {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        let mut rest = payload;
        let mut spin = self.peer.spin();
        while !rest.is_empty() {
            match rustix::io::write(&self.descriptors.writer, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::AGAIN) => spin.turn()?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("write failed"),
            }
        }
        Ok(())
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < payload.len() {
            filled += read(self.descriptors.reader.as_fd(), &self.peer, &mut payload[filled..])?;
        }
        Ok(())
    }

    fn receive_stream(&mut self, payload: &mut Payload, count: usize) -> Result<()> {
        let size = payload.len();
        if self.whole && size >= POOL_BYTES {
            return self.receive_whole(payload, count);
        }
        let pool = if size < POOL_BYTES { &mut self.pool } else { payload };
        let end = size * count;
        let mut position = 0;
        while position < end {
            let wanted = pool.len().min(end - position);
            let got = read(self.descriptors.reader.as_fd(), &self.peer, &mut pool[..wanted])?;
            let first = position.div_ceil(size);
            let after = (position + got).div_ceil(size);
            for number in first..after {
                ensure!(
                    pool[number * size - position] == number as u8,
                    "message {number} of {size} bytes arrived with other contents"
                );
            }
            position += got;
        }
        Ok(())
    }
}

fn read(descriptor: BorrowedFd<'_>, peer: &Peer, bytes: &mut [u8]) -> Result<usize> {
    read_by(peer, || rustix::io::read(descriptor, &mut *bytes))
}

fn read_parts(descriptor: BorrowedFd<'_>, peer: &Peer, parts: [&mut [u8]; 2]) -> Result<usize> {
    let mut parts = parts.map(IoSliceMut::new);
    read_by(peer, || rustix::io::readv(descriptor, &mut parts))
}

fn read_by(peer: &Peer, mut read: impl FnMut() -> Result<usize, Errno>) -> Result<usize> {
    let mut spin = peer.spin();
    loop {
        match read() {
            Ok(0) => bail!("the other process of the measurement has closed the stream"),
            Ok(got) => return Ok(got),
            Err(Errno::AGAIN) => spin.turn()?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("read failed"),
        }
    }
}

const POOL_BYTES: usize = 64 << 10;
