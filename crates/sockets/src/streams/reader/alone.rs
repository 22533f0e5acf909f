//! Reading without the kernel: in a process that has shut itself in while its peer did not follow. Only the calls of the
//! program itself are made, and what the ring and this process's own memory hold is taken around them.

use std::io::IoSliceMut;

use crate::{
    kernel::Result,
    streams::{READ, Stream},
};

use super::{Reader, Step};

/// Bytes of TCP that can be kept, for after the ring, without an allocation.
pub const ROOM: usize = 64 << 10;

impl Reader {
    /// From now on nothing here calls the kernel.
    pub fn prepare_alone(&mut self) {
        self.kept.reserve(ROOM);
        self.growth.stop();
    }

    /// Takes what is here; 0: nothing is.
    pub fn take_alone(&mut self, stream: &Stream, parts: &mut [IoSliceMut<'_>], flags: i32) -> Result<usize> {
        if self.aside.is_some()
            && let Some(Step::Got(count @ 1..)) = self.take_aside(stream, parts, flags)?
        {
            return Ok(count);
        }
        loop {
            if self.on_ring {
                let count = self.take(stream, parts, flags)?;
                if count > 0 {
                    return Ok(count);
                }
            }
            if self.cross_alone(stream)? {
                continue;
            }
            if self.on_ring || self.kept.is_empty() {
                return Ok(0);
            }
            let count = self.take_kept(parts, flags);
            if flags & libc::MSG_PEEK == 0 {
                stream.count(READ, count);
            }
            return Ok(count);
        }
    }

    /// Carries out a switch to TCP. The peer is not told, since it cannot come back; and no clock is read, which is
    /// forbidden in the strictest of filters.
    fn cross_alone(&mut self, stream: &Stream) -> Result<bool> {
        if self.take_switch(stream)?.is_none() {
            return Ok(false);
        }
        stream.record().reading().set_within(self.on_ring);
        Ok(true)
    }

    /// The program's own call has given it `count` bytes of TCP. What lies in the ring comes before them: then they are
    /// kept, and the call gives that. Returns how many bytes the call gives.
    pub fn sort_in(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        count: usize,
        flags: i32,
    ) -> Result<usize> {
        if self.on_ring && self.has_news() {
            if flags & libc::MSG_PEEK == 0 {
                let bytes = parts.iter().flat_map(|part| part.iter().copied());
                self.kept.extend(bytes.take(count));
                self.tell_kept();
            }
            return self.take(stream, parts, flags);
        }
        if flags & libc::MSG_PEEK == 0 {
            // A switch that was announced before these bytes is carried out before they count.
            self.cross_alone(stream)?;
            stream.count(READ, count);
        }
        Ok(count)
    }

    /// Takes bytes that were kept.
    fn take_kept(&mut self, parts: &mut [IoSliceMut<'_>], flags: i32) -> usize {
        let room: usize = parts.iter().map(|part| part.len()).sum();
        let count = room.min(self.kept.len());
        let places = parts.iter_mut().flat_map(|part| part.iter_mut());
        places.zip(&self.kept).for_each(|(place, byte)| *place = *byte);
        if flags & libc::MSG_PEEK == 0 {
            self.kept.drain(..count);
            self.tell_kept();
        }
        count
    }
}
