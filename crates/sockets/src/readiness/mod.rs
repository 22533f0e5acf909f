//! Readiness of a stream: what its rings say, and when a wait must look again although nothing tells it to.

use std::{sync::atomic::Ordering, time::Duration};

use sidestep_stream::carrier::Carrier;
use sidestep_sys::{clock, cpu};

use crate::{
    promotion::{engine, leaving},
    streams::{READ, Stream, WRITE},
};

pub mod asking;
pub mod idle;
pub mod jump;
pub mod member;
pub mod poll;
pub mod set;
pub mod sleep;

pub const IN: i16 = libc::POLLIN | libc::POLLRDNORM;
pub const OUT: i16 = libc::POLLOUT | libc::POLLWRNORM;

/// Time between two looks at what no tripwire tells.
const LOOK_NS: u64 = 1_000_000;

/// What the rings of a stream say.
#[inline]
pub fn ring_events(stream: &Stream, carrier: &Carrier) -> i16 {
    let mut events = 0;
    if stream.family.shared.load(Ordering::Relaxed) {
        stream.see_sharing();
    }
    if stream.is_open() {
        let wanted = stream.low_water();
        let kept = carrier.kept.load(Ordering::Relaxed) != 0 || stream.inherited_bytes() > 0;
        let in_ring = carrier.has_at_least(wanted) && ring_is_next(stream, carrier);
        if in_ring || kept && wanted <= 1 || wanted > 1 && has_across(stream, carrier, wanted) {
            events |= IN;
            cpu::prefetch(carrier.places[READ].load(Ordering::Relaxed), 1);
        }
    }
    if stream.on_ring(WRITE)
        && (carrier.has_space() || carrier.peer_reading().closed || carrier.lost.load(Ordering::Relaxed))
    {
        events |= OUT;
    }
    events
}

/// Whether the next read takes from the ring. Bytes there that lie behind a switch which TCP has not reached do not count: those
/// before it come first, and the kernel tells of them.
#[inline]
pub fn ring_is_next(stream: &Stream, carrier: &Carrier) -> bool {
    stream.on_ring(READ) || switch_is_reached(stream, carrier)
}

/// Whether a switch has been announced whose position is reached, so that the next read carries it out.
#[cold]
pub fn switch_is_reached(stream: &Stream, carrier: &Carrier) -> bool {
    let next = carrier.announced(carrier.switched.load(Ordering::Relaxed));
    next.is_some_and(|switch| switch.position <= stream.position(READ, carrier.taken.load(Ordering::Relaxed)))
}

/// What a stream that is the kernel's otherwise has here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Here {
    /// Nothing.
    Nothing,
    /// Bytes, but with those of the kernel not as many as the low-water mark asks for. The kernel does not tell when they are:
    /// they are looked at now and then.
    TooFew,
    /// As many as a read waits for.
    Enough,
}

/// Whether bytes for a stream lie here, and not with the kernel.
pub fn bytes_here(stream: &Stream) -> Here {
    let wanted = stream.low_water() as usize;
    match () {
        () if !leaving::has_bytes(stream) => Here::Nothing,
        // A process that has shut itself in cannot ask the kernel how many it has.
        () if wanted <= 1 || engine::is_disabled() => Here::Enough,
        // Who has the reader may be about to lock a set of the stream's. It is looked at again.
        () => match stream.try_reader().map(|mut reader| reader.available(stream)) {
            Some(Ok(bytes)) if bytes >= wanted => Here::Enough,
            Some(Err(_)) => Here::Enough,
            _ => Here::TooFew,
        },
    }
}

/// A wait of so long, or a short one if bytes that lie here are too few.
fn soon(left: Option<Duration>, scarce: bool) -> Option<Duration> {
    let look = Duration::from_nanos(LOOK_NS);
    if scarce { Some(left.map_or(look, |left| left.min(look))) } else { left }
}

/// When a wait for these events must look again at the latest: a full ring whose reader does not move gives way to TCP,
/// and bytes on two paths count together for a low-water mark.
pub fn look_again(stream: &Stream, carrier: &Carrier, events: i16) -> Option<u64> {
    let mut until = None;
    if events & OUT != 0 && stream.on_ring(WRITE) && !carrier.has_space() {
        until = match stream.try_writer() {
            Some(mut writer) => writer.stalls_until(stream),
            None => Some(clock::now() + LOOK_NS),
        };
    }
    if events & IN != 0 && stream.low_water() > 1 && is_split(stream, carrier) {
        let soon = clock::now() + LOOK_NS;
        until = Some(until.map_or(soon, |until| until.min(soon)));
    }
    until
}

/// Whether bytes may lie on several paths.
fn is_split(stream: &Stream, carrier: &Carrier) -> bool {
    carrier.may_leave() || carrier.kept.load(Ordering::Relaxed) != 0 || stream.inherited_bytes() > 0
}

/// Whether so many bytes have come, on all paths together.
#[cold]
fn has_across(stream: &Stream, carrier: &Carrier, wanted: u32) -> bool {
    is_split(stream, carrier)
        && stream
            .try_reader()
            .is_some_and(|mut reader| reader.available(stream).is_ok_and(|bytes| bytes >= wanted as usize))
}
