//! What comes next, also where it lies on several paths: how much, and a look at it without taking it.

use std::io::IoSliceMut;

use sidestep_stream::carrier::{Inbound, Switch};

use crate::{
    kernel::{self, Errno, Result, messages::Control},
    streams::Stream,
};

use super::{Anchor, Reader, Step};

impl Reader {
    /// As [`step`](Reader::step) with MSG_PEEK. Near a switch what has come lies on two or three paths, and all of it is
    /// shown.
    pub fn peek(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        flags: i32,
        patient: bool,
        anchor: Anchor,
        control: Option<&mut Control<'_>>,
    ) -> Result<Step> {
        self.see_sharing(stream);
        self.cross(stream)?;
        if self.aside.is_some()
            && let Some(step) = self.take_aside(stream, parts, flags)?
        {
            return match step {
                Step::Got(count) => Ok(Step::Got(count + self.look_behind(stream, parts, flags, count)?)),
                step => Ok(step),
            };
        }
        if self.is_split() {
            let wanted = parts.iter().map(|part| part.len()).sum();
            let bytes = self.in_order(stream, wanted)?;
            if !bytes.is_empty() {
                if flags & libc::MSG_TRUNC == 0 {
                    let places = parts.iter_mut().flat_map(|part| part.iter_mut());
                    places.zip(&bytes).for_each(|(place, byte)| *place = *byte);
                }
                return Ok(Step::Got(bytes.len()));
            }
        }
        self.step_with(stream, parts, flags, patient, anchor, control)
    }

    /// Shows what lies behind what was put aside, of which so many bytes were shown. Returns how many.
    fn look_behind(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        flags: i32,
        shown: usize,
    ) -> Result<usize> {
        let room = parts.iter().map(|part| part.len()).sum::<usize>() - shown;
        let mut bytes = self.aside_behind(shown);
        bytes.truncate(room);
        if bytes.len() < room && shown + bytes.len() == self.bytes_aside() {
            let more = self.in_order(stream, room - bytes.len())?;
            bytes.extend(more);
        }
        if flags & libc::MSG_TRUNC == 0 {
            let places = parts.iter_mut().flat_map(|part| part.iter_mut()).skip(shown);
            places.zip(&bytes).for_each(|(place, byte)| *place = *byte);
        }
        Ok(bytes.len())
    }

    /// Whether bytes may lie on several paths.
    fn is_split(&self) -> bool {
        self.carrier.as_ref().is_some_and(|carrier| carrier.is_switching())
    }

    /// Bytes that can be read now: the kernel's and the ring's, as far as nothing is missing before them.
    pub fn available(&mut self, stream: &Stream) -> Result<usize> {
        self.see_sharing(stream);
        let kept = self.kept.len();
        let switching = self.carrier.as_ref().is_some_and(|carrier| carrier.is_switching());
        // TCP before the notes: a switch is announced before anything that follows it.
        let asked = !self.on_ring || switching;
        let in_kernel = if asked { kernel::ask(stream.fd(), libc::FIONREAD)? as usize } else { 0 };
        let before = self.bytes_aside();
        let (Some(carrier), Some(ring)) = (&self.carrier, &mut self.ring) else { return Ok(before + kept + in_kernel) };
        ring.settle();
        let (next, in_ring) = (carrier.announced(self.note.done), ring.available());
        let position = self.counts.position(stream, self.on_ring, ring.position());
        let is_at = |switch: Switch, bytes: usize| switch.position == position + bytes as u64;
        if self.on_ring {
            let on_tcp = if next.is_some_and(|switch| is_at(switch, in_ring)) { kept + in_kernel } else { 0 };
            return Ok(before + in_ring + on_tcp);
        }
        let Some(switch) = next else { return Ok(before + kept + in_kernel) };
        let first = switch.position.saturating_sub(position + kept as u64).min(in_kernel as u64) as usize;
        if !is_at(switch, kept + first) {
            return Ok(before + kept + first);
        }
        let all = kept + first + in_ring;
        let last = carrier.announced(switch.number).is_some_and(|switch| is_at(switch, all));
        Ok(before + all + if last { in_kernel - first } else { 0 })
    }

    /// The next bytes, at most so many, from wherever they are.
    #[cold]
    fn in_order(&mut self, stream: &Stream, wanted: usize) -> Result<Vec<u8>> {
        // TCP before the notes: a switch is announced before anything that follows it.
        let tcp = on_tcp(stream, wanted);
        let (Some(carrier), Some(ring)) = (&self.carrier, &mut self.ring) else { return Ok(tcp) };
        ring.settle();
        let next = carrier.announced(self.note.done);
        let mut position = self.counts.position(stream, self.on_ring, ring.position());
        let mut bytes = Vec::with_capacity(wanted);
        let mut from_ring = |bytes: &mut Vec<u8>| -> Result<u64> {
            let before = bytes.len();
            bytes.resize(wanted, 0);
            let count = ring.peek(0, &mut bytes[before..]).map_err(|_| Errno(libc::ECONNRESET))?;
            bytes.truncate(before + count);
            Ok(count as u64)
        };
        let reaches = |position: u64, switch: Option<Switch>| switch.is_some_and(|switch| switch.position == position);
        if self.on_ring {
            position += from_ring(&mut bytes)?;
            if reaches(position, next) {
                bytes.extend(&tcp);
            }
        } else {
            let limit = next.map_or(u64::MAX, |switch| switch.position.saturating_sub(position));
            let first = (tcp.len() as u64).min(limit) as usize;
            bytes.extend(&tcp[..first]);
            position += first as u64;
            if reaches(position, next) && bytes.len() < wanted {
                position += from_ring(&mut bytes)?;
                let after = next.and_then(|switch| carrier.announced(switch.number));
                if reaches(position, after) {
                    bytes.extend(&tcp[first..]);
                }
            }
        }
        bytes.truncate(wanted);
        Ok(bytes)
    }
}

/// The next bytes that TCP has, at most so many. An error is left for the call that takes bytes.
fn on_tcp(stream: &Stream, wanted: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if kernel::ask(stream.fd(), libc::FIONREAD).is_ok_and(|count| count > 0) {
        bytes.resize(wanted, 0);
        let look = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        let there = kernel::receive(stream.fd(), &mut [IoSliceMut::new(&mut bytes)], look);
        bytes.truncate(there.unwrap_or(0));
    }
    bytes
}
