//! Taps: what goes over carriers, handed to a tool that shows it as packets.
//!
//! A tool makes a [`Buffer`], says in the registry which one it is, and wakes the processes of its user. Each attaches it, and
//! marks the streams that fit the filter. What a marked stream commits to its carrier is copied into the lane of its process;
//! what finds no room is counted, and nobody waits. Both ends of a connection mark it, each hands over what it writes, and so the
//! tool has both directions, each byte once. A stream that is not marked pays for one load of a word beside those that a write
//! looks at anyway.

use std::{
    io::IoSlice,
    sync::atomic::Ordering::{Relaxed, SeqCst},
};

use sidestep_stream::carrier::Carrier;
use sidestep_sys::{clock, lock::Mutex};

use crate::{
    kernel,
    promotion::{engine::Engine, leaving},
    streams::{Place, READ, Stream, WRITE, lock},
};

pub mod buffer;
mod filter;
pub mod record;

pub use buffer::{Buffer, Losses};
pub use filter::Filter;
use record::{Kind, PIECE, Record};

/// The tap of a process, if there is one.
#[derive(Debug, Default)]
pub struct Tap(Mutex<Option<Attached>>);

#[derive(Debug)]
struct Attached {
    nonce: u64,
    buffer: Buffer,
    filter: Filter,
    snap: u64,
    lane: Option<buffer::Lane>,
}

/// A write has committed the first `count` bytes of these parts to the carrier. Under the writer's lock.
#[inline]
pub fn wrote(stream: &Stream, parts: &[IoSlice<'_>], count: usize) {
    if stream.carriage.tapped.load(Relaxed) && count > 0 {
        capture(stream, Kind::Bytes, parts, count);
    }
}

/// Nothing more is written. Under the writer's lock.
pub fn ended(stream: &Stream) {
    if stream.carriage.tapped.load(Relaxed) {
        capture(stream, Kind::End, &[], 0);
    }
}

/// A stream has a carrier now: whether it is tapped.
pub fn consider(stream: &Stream, place: &Place) {
    let registry = &place.engine.registry;
    let attached = lock(&place.engine.tap.0);
    let fits = |attached: &Attached| {
        let pids = [Some(kernel::process()), registry.pid_of(&place.key.reversed())];
        attached.filter.fits(&place.key, pids)
    };
    stream.carriage.tapped.store(attached.as_ref().is_some_and(fits), Relaxed);
}

/// A tap has come or gone.
pub fn changed(engine: &Engine) {
    {
        let named = engine.registry.tap();
        let mut attached = lock(&engine.tap.0);
        if attached.as_ref().map(|attached| attached.nonce) == named.map(|(_, nonce)| nonce) {
            return;
        }
        *attached = named.and_then(|(segment, nonce)| {
            let buffer = Buffer::attach(segment, nonce, engine.user)?;
            let lane = buffer.enter(kernel::process());
            Some(Attached { nonce, filter: buffer.filter(), snap: buffer.snap(), lane, buffer })
        });
    }
    for stream in leaving::all_streams() {
        if let Some(place) = stream.known_place() {
            consider(stream, &place);
        }
    }
}

#[cold]
fn capture(stream: &Stream, kind: Kind, parts: &[IoSlice<'_>], count: usize) {
    let (Some(place), Some(carrier)) = (stream.known_place(), stream.carrier()) else { return };
    let mut attached = lock(&place.engine.tap.0);
    let goes_on = attached.as_mut().is_some_and(|attached| attached.take(stream, &place, &carrier, kind, parts, count));
    if !goes_on {
        stream.carriage.tapped.store(false, Relaxed);
        // Whoever finds nothing here looks no further.
        if attached.as_ref().is_some_and(|attached| !attached.buffer.is_alive()) {
            *attached = None;
        }
    }
}

impl Attached {
    /// Hands a write to the tap. `false`: the tap is gone.
    fn take(
        &mut self,
        stream: &Stream,
        place: &Place,
        carrier: &Carrier,
        kind: Kind,
        parts: &[IoSlice<'_>],
        count: usize,
    ) -> bool {
        let Some(lane) = &mut self.lane else {
            self.buffer.count_unlaned();
            return self.buffer.is_alive();
        };
        let end = stream.position(WRITE, carrier.pushed.load(SeqCst));
        let mut record = Record {
            kind,
            key: place.key,
            cookie: place.cookie,
            time: clock::now(),
            pid: kernel::process(),
            position: end.saturating_sub(count as u64),
            read: stream.position(READ, carrier.taken.load(SeqCst)),
            len: 0,
            kept: 0,
        };
        let mut done = 0;
        loop {
            let len = (count - done).min(PIECE);
            (record.len, record.kept) = (len as u64, (len as u64).min(self.snap));
            if !lane.put(&record, range(parts, done, record.kept as usize)) && !self.buffer.is_alive() {
                return false;
            }
            done += len;
            record.position += len as u64;
            if done >= count {
                return true;
            }
        }
    }
}

/// `len` bytes of the parts, from `at` on.
fn range<'a>(parts: &'a [IoSlice<'_>], mut at: usize, mut len: usize) -> impl Iterator<Item = &'a [u8]> {
    parts.iter().filter_map(move |part| {
        let from = at.min(part.len());
        let count = len.min(part.len() - from);
        (at, len) = (at - from, len - count);
        (count > 0).then(|| &part[from..from + count])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cross_parts() {
        let parts = [IoSlice::new(b"abc"), IoSlice::new(b""), IoSlice::new(b"defg"), IoSlice::new(b"h")];
        let of = |at, len| range(&parts, at, len).collect::<Vec<_>>().concat();
        assert_eq!((of(0, 8), of(0, 3), of(2, 3)), (b"abcdefgh".to_vec(), b"abc".to_vec(), b"cde".to_vec()));
        assert_eq!(
            (of(3, 4), of(7, 1), of(8, 0), of(4, 9)),
            (b"defg".to_vec(), b"h".to_vec(), vec![], b"efgh".to_vec())
        );
    }
}
