//! Streams whose bytes come from, or go to, memory that someone else may write at any moment: a gathered send and a
//! scattered receive that name such memory to the kernel, without a copy in between.
//!
//! # Invariants
//!
//! - **V1** Every [`Area`] names bytes that stay readable (and, where bytes are received, writable) for the length of the
//!   call: they lie in a [`Span`], which was checked and keeps its memory alive, or in a slice that is borrowed.
//! - **V2** No Rust reference to bytes of a span is made. The kernel copies them as they are, so a send of bytes that
//!   change meanwhile sends a mixture of old and new ones, and nothing else happens.

#![allow(unsafe_code)]

use std::{
    io::{IoSlice, IoSliceMut},
    marker::PhantomData,
    os::fd::AsFd,
};

use rustix::{
    io::Errno,
    net::{self, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recvmsg, sendmsg},
};

use crate::{Error, Span, copy::copy};

/// Some bytes, as the kernel is told of them.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct Area<'a> {
    vector: libc::iovec,
    _bytes: PhantomData<&'a [u8]>,
}

impl<'a> Area<'a> {
    /// These bytes.
    pub fn of(bytes: &'a [u8]) -> Area<'a> {
        Self::raw(bytes.as_ptr(), bytes.len())
    }

    /// The bytes `at .. at + len` of a span.
    pub fn within(span: &'a Span, at: usize, len: usize) -> Result<Area<'a>, Error> {
        Ok(Self::raw(span.part(at, len)?.as_ptr(), len))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.vector.iov_len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies them to the beginning of `bytes`, as far as there is room; returns how many.
    pub fn copy_out(&self, bytes: &mut [u8]) -> usize {
        let count = self.len().min(bytes.len());
        // SAFETY: V1: so many bytes are readable; `bytes` is borrowed mutably, so the two do not overlap (M2).
        unsafe { copy(bytes.as_mut_ptr(), self.vector.iov_base.cast_const().cast(), count) };
        count
    }

    fn raw(base: *const u8, len: usize) -> Area<'a> {
        Area { vector: libc::iovec { iov_base: base.cast_mut().cast(), iov_len: len }, _bytes: PhantomData }
    }
}

/// Sends what the stream takes of these areas, without blocking. Nothing if it takes none now. With `more`, the next call
/// follows at once: a packet that is not full may wait for it.
pub fn send(socket: impl AsFd, areas: &[Area<'_>], more: bool) -> Result<usize, Errno> {
    // SAFETY: an `Area` is an `iovec`, with which `IoSlice` is documented to be compatible in layout; the slice is read
    // by the system call alone, so no reference to the bytes comes into being (V2). They outlive the call (V1).
    let slices = unsafe { std::slice::from_raw_parts(areas.as_ptr().cast::<IoSlice<'_>>(), areas.len()) };
    let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    flags.set(SendFlags::MORE, more);
    loop {
        match sendmsg(&socket, slices, &mut SendAncillaryBuffer::default(), flags) {
            Err(Errno::AGAIN) => return Ok(0),
            Err(Errno::INTR) => {}
            outcome => return outcome,
        }
    }
}

/// As [`send`], for bytes in one piece.
pub fn send_bytes(socket: impl AsFd, bytes: &[u8]) -> Result<usize, Errno> {
    loop {
        match net::send(&socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Err(Errno::AGAIN) => return Ok(0),
            Err(Errno::INTR) => {}
            outcome => return outcome,
        }
    }
}

/// Receives into the bytes `at .. at + len` of a span, and what follows into `rest`, without blocking: nothing at the end
/// of the stream, `None` if there is none now.
pub fn receive(
    socket: impl AsFd,
    (span, at, len): (&Span, usize, usize),
    rest: &mut [u8],
) -> Result<Option<usize>, Errno> {
    let first = Area::within(span, at, len).map_err(|_| Errno::FAULT)?;
    let mut areas = [first, Area::raw(rest.as_mut_ptr(), rest.len())];
    // SAFETY: as in `send`, with `IoSliceMut`; `rest` is borrowed mutably for the length of the call.
    let slices = unsafe { std::slice::from_raw_parts_mut(areas.as_mut_ptr().cast::<IoSliceMut<'_>>(), areas.len()) };
    loop {
        match recvmsg(&socket, slices, &mut RecvAncillaryBuffer::default(), RecvFlags::DONTWAIT) {
            Ok(received) => return Ok(Some(received.bytes)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::Memory;

    #[test]
    fn bytes_of_spans_and_slices_go_out_in_order_and_come_back() {
        let memory = Memory::heap(4096).expect("some memory");
        let span = memory.span(0, 4096).expect("all of it");
        span.copy_in(10, b"from memory").expect("room");
        let (here, there) = UnixStream::pair().expect("a pair");
        let areas = [Area::of(b"head "), Area::within(&span, 10, 11).expect("inside"), Area::of(b" tail")];
        assert_eq!(areas.iter().map(Area::len).sum::<usize>(), 21);
        assert_eq!(send(&here, &areas, false), Ok(21));
        let mut rest = [0; 64];
        assert_eq!(receive(&there, (&span, 100, 8), &mut rest), Ok(Some(21)));
        let mut front = [0; 8];
        span.copy_out(100, &mut front).expect("inside");
        assert_eq!((&front[..], &rest[..13]), (&b"head fro"[..], &b"m memory tail"[..]));
        assert_eq!(receive(&there, (&span, 100, 8), &mut rest), Ok(None));
        drop(here);
        assert_eq!(receive(&there, (&span, 100, 8), &mut rest), Ok(Some(0)));
    }

    #[test]
    fn no_area_lies_outside_its_span() {
        let memory = Memory::heap(64).expect("some memory");
        let span = memory.span(0, 64).expect("all of it");
        assert!(Area::within(&span, 60, 5).is_err() && Area::within(&span, usize::MAX, 2).is_err());
        let (_here, there) = UnixStream::pair().expect("a pair");
        assert_eq!(receive(&there, (&span, 60, 5), &mut []), Err(Errno::FAULT));
    }

    #[test]
    fn a_stream_that_is_full_takes_a_part() {
        let (here, there) = UnixStream::pair().expect("a pair");
        let bytes = vec![7; 1 << 20];
        let mut sent = 0;
        while let Ok(count @ 1..) = send(&here, &[Area::of(&bytes[..300_000]), Area::of(&bytes[300_000..])], true) {
            sent += count;
        }
        assert!(sent > 0);
        drop(there);
        assert_eq!(send(&here, &[Area::of(b"x")], false), Err(Errno::PIPE));
    }
}
