//! The reading direction of a stream.
//!
//! Where the next byte comes from is decided by [`sidestep_stream::path::Reader`]; [`walk`] carries out what it asks for. The
//! usual way through that machine, bytes of a carrier that is being read, is made in one piece here ([`Reader::step`]).

use std::{collections::VecDeque, io::IoSliceMut, sync::Arc};

use sidestep_shm::wait::Waiter;
use sidestep_stream::carrier::{AnyInbound, Carrier, Inbound, Reading};
use sidestep_sys::cpu;

use crate::{
    kernel::{self, Errno, Result, messages::Control},
    processes::heirloom::Heirloom,
    streams::Stream,
};

mod ahead;
pub mod alone;
mod aside;
mod counts;
mod crossing;
mod growth;
mod parting;
mod returning;
mod ring;
mod sharing;
mod walk;

use counts::Counts;
use growth::Growth;

/// What a try to read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many bytes; 0 is the end.
    Got(usize),
    /// Nothing now.
    Empty,
    /// The direction is not open: the kernel's own call is the right one.
    Kernel,
}

/// What a reading call knows of the anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It has news.
    News,
    /// The call sleeps on it, if there is nothing: no need to look before.
    SleptOn,
    /// Nothing: it is looked at now and then.
    Unknown,
}

impl Anchor {
    /// What a call knows that has just begun.
    #[inline]
    pub fn before(nonblocking: bool) -> Anchor {
        if nonblocking { Anchor::Unknown } else { Anchor::SleptOn }
    }
}

/// The reading direction: what this process alone has of it. Under the lock of its stream.
#[derive(Debug, Default)]
pub struct Reader {
    ring: Option<AnyInbound>,
    carrier: Option<Arc<Carrier>>,
    /// As the record says.
    on_ring: bool,
    /// What the writer is told.
    note: Reading,
    waiter: Waiter,
    /// The program has shut this direction down.
    shut: bool,
    /// When the anchor was looked at, in ticks of the processor.
    looked: u64,
    cut_off: bool,
    /// Bytes that are wanted over TCP, and have not come.
    returning: Option<returning::Returning>,
    /// Bytes since the writer was told that this side is on its way.
    paced: usize,
    growth: Growth,
    counts: Counts,
    /// Bytes from TCP that come after those of the ring: only where the program's own calls take them.
    kept: VecDeque<u8>,
    /// What comes before everything else.
    aside: Option<Box<aside::Aside>>,
    /// What children may take over, while this process owns the ring.
    shared: Option<Arc<Heirloom>>,
}

/// Ticks between two looks at the anchor by calls that do not wait: some 20 microseconds.
const LOOK_TICKS: u64 = 50_000;
const BROKEN: Errno = Errno(libc::ECONNRESET);

impl Reader {
    /// Reads what is there, and looks for a while if there is nothing and `patient`.
    #[inline]
    pub fn step(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        flags: i32,
        patient: bool,
        anchor: Anchor,
    ) -> Result<Step> {
        self.step_with(stream, parts, flags, patient, anchor, None)
    }

    /// The same, with the control messages that the kernel has for what comes over TCP.
    #[inline]
    pub fn step_with(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        flags: i32,
        patient: bool,
        anchor: Anchor,
        control: Option<&mut Control<'_>>,
    ) -> Result<Step> {
        if self.aside.is_some()
            && let Some(step) = self.take_aside(stream, parts, flags)?
        {
            return Ok(step);
        }
        let mut looks = patient;
        if patient {
            self.gather();
        }
        while self.on_ring {
            let count = self.take(stream, parts, flags)?;
            if count > 0 {
                return Ok(Step::Got(count));
            }
            if !std::mem::take(&mut looks) || !self.look() {
                break;
            }
        }
        self.step_slowly(stream, parts, flags, anchor, control)
    }

    #[inline(never)]
    fn step_slowly(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        flags: i32,
        anchor: Anchor,
        control: Option<&mut Control<'_>>,
    ) -> Result<Step> {
        self.see_sharing(stream);
        if self.aside.is_some()
            && let Some(step) = self.take_aside(stream, parts, flags)?
        {
            return Ok(step);
        }
        if self.ring.is_none() && !self.take_up(stream) {
            return Ok(Step::Kernel);
        }
        let now = cpu::ticks();
        let ended = self.carrier.as_ref().is_some_and(|carrier| carrier.has_ended());
        let due = match anchor {
            Anchor::News => true,
            Anchor::SleptOn => ended,
            Anchor::Unknown => ended || now.wrapping_sub(self.looked) > LOOK_TICKS,
        };
        if due {
            self.looked = now;
        }
        self.walk(stream, parts, flags, due || self.shut, control)
    }

    /// The program reads no more.
    pub fn shut(&mut self) {
        self.shut = true;
    }

    /// The program has closed the stream. Bytes that nobody will read are a reset, as on TCP.
    pub fn end(&mut self, stream: &Stream) {
        let Some(ring) = &mut self.ring else { return };
        let aside = self.aside.as_ref().is_some_and(|aside| !aside.bytes.is_empty());
        self.note.resets = ring.available() > 0 || !self.kept.is_empty() || aside;
        if self.note.resets {
            kernel::reset_at_close(stream.fd());
        }
        self.note.closed = true;
        self.tell();
    }
}
