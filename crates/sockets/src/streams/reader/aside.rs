//! What a reader has put aside: bytes taken off their paths before the program asked for them, since it is about to be where
//! the ring cannot be waited for; and an error that came after bytes of the same call.

use std::{
    collections::VecDeque,
    io::IoSliceMut,
    sync::{Arc, atomic::Ordering},
};

use crate::{
    kernel::{Errno, Result},
    processes::heirloom::Heirloom,
    streams::Stream,
};

use super::{Anchor, Reader, Step};

/// Bytes, and what comes after them.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Bytes that the family shares come first.
    heirloom: Option<Arc<Heirloom>>,
    pub bytes: VecDeque<u8>,
    error: Option<Errno>,
}

/// Bytes that are put aside in one go.
const PIECE: usize = 64 << 10;
/// As much as is put aside at all: more than a ring and the kernel's buffers hold.
const MOST: usize = 16 << 20;

impl Reader {
    /// Keeps an error for the next call.
    pub fn hold(&mut self, errno: Errno) {
        self.aside.get_or_insert_default().error = Some(errno);
    }

    /// What the family shares is read before everything else.
    pub fn inherit(&mut self, heirloom: Arc<Heirloom>) {
        self.aside.get_or_insert_default().heirloom = Some(heirloom);
    }

    /// What the family shares is not read here any more.
    pub fn disinherit(&mut self) {
        if let Some(aside) = &mut self.aside {
            aside.heirloom = None;
            self.aside.take_if(|aside| aside.bytes.is_empty() && aside.error.is_none());
        }
    }

    /// Bytes that were collected are read here after all, before everything else.
    pub fn put_back(&mut self, bytes: Vec<u8>) {
        let aside = self.aside.get_or_insert_default();
        bytes.into_iter().rev().for_each(|byte| aside.bytes.push_front(byte));
        self.tell_kept();
    }

    /// Puts aside all that has come, up to where the rest is the kernel's.
    pub fn put_aside(&mut self, stream: &Stream) {
        let mut aside = self.aside.take().unwrap_or_default();
        let mut piece = vec![0; PIECE];
        while aside.error.is_none() && aside.bytes.len() < MOST && !self.is_through(stream) {
            match self.step(stream, &mut [IoSliceMut::new(&mut piece)], 0, false, Anchor::News) {
                Ok(Step::Got(count @ 1..)) => aside.bytes.extend(&piece[..count]),
                // The end is the kernel's to tell, and is told again.
                Ok(_) => break,
                Err(errno) => aside.error = Some(errno),
            }
        }
        if !aside.bytes.is_empty() || aside.error.is_some() || aside.heirloom.is_some() {
            self.aside = Some(aside);
        }
        self.tell_kept();
    }

    /// Bytes that were put aside.
    pub(super) fn bytes_aside(&self) -> usize {
        let heirloom = |aside: &Aside| aside.heirloom.as_ref().map_or(0, |heirloom| heirloom.left());
        self.aside.as_ref().map_or(0, |aside| aside.bytes.len() + heirloom(aside))
    }

    /// What was put aside behind the bytes that the family shares, all of which were just shown; they are so many.
    pub(super) fn aside_behind(&self, shown: usize) -> Vec<u8> {
        let behind = |aside: &&Aside| aside.heirloom.as_ref().is_some_and(|heirloom| heirloom.left() == shown);
        self.aside.as_deref().filter(behind).map_or(Vec::new(), |aside| aside.bytes.iter().copied().collect())
    }

    /// Takes, or shows, what was put aside. `None`: others have taken it.
    #[cold]
    pub(super) fn take_aside(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        flags: i32,
    ) -> Result<Option<Step>> {
        let Some(aside) = &mut self.aside else { return Ok(None) };
        if let Some(heirloom) = &aside.heirloom {
            stream.take_over();
            let count = heirloom.take(parts, flags);
            if count > 0 {
                return Ok(Some(Step::Got(count)));
            }
            aside.heirloom = None;
            stream.forget_heirloom();
            if aside.bytes.is_empty() && aside.error.is_none() {
                self.aside = None;
                return Ok(None);
            }
        }
        let room: usize = parts.iter().map(|part| part.len()).sum();
        let count = room.min(aside.bytes.len());
        if flags & libc::MSG_TRUNC == 0 {
            let places = parts.iter_mut().flat_map(|part| part.iter_mut());
            places.zip(&aside.bytes).for_each(|(place, byte)| *place = *byte);
        }
        let error = if count == 0 { aside.error.take() } else { None };
        if flags & libc::MSG_PEEK == 0 {
            aside.bytes.drain(..count);
        }
        if aside.bytes.is_empty() && aside.error.is_none() {
            // Not freed, if it had bytes: the allocator could call the kernel then, and this process may have forbidden that.
            let had_bytes = aside.bytes.capacity() > 0;
            let emptied = self.aside.take();
            if had_bytes {
                std::mem::forget(emptied);
            }
        }
        self.tell_kept();
        match error {
            Some(errno) => Err(errno),
            None => Ok(Some(Step::Got(count))),
        }
    }

    /// Says where those look that have no lock how many bytes are kept, here and for after the ring.
    pub(super) fn tell_kept(&self) {
        if let Some(carrier) = &self.carrier {
            let aside = self.aside.as_ref().map_or(0, |aside| aside.bytes.len());
            carrier.kept.store((self.kept.len() + aside) as u64, Ordering::Relaxed);
        }
    }
}
