//! One buffer, where it lies. What another process can write is loaded and copied, never referred to.

use sidestep_fabric::Error as FabricError;

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::frame::{HEADER, Header};
use crate::link::{Rx, Tx};
use crate::port::Position;
use crate::schedule::Scheduler;

/// A buffer that was taken from an input. It goes back to its pool when this is dropped.
#[derive(Debug)]
pub struct Buffer<'a> {
    pub(super) rx: &'a mut Rx,
    pub(super) header: Header,
}

/// A buffer of an output that is being filled. Nothing is sent without [`commit`](Self::commit).
#[derive(Debug)]
pub struct Filling<'a> {
    pub(super) tx: &'a mut Tx,
    pub(super) copy: usize,
    pub(super) tag: u64,
    /// The number of the buffer after this one, once this one is sent.
    pub(super) next: &'a mut u64,
    pub(super) capacity: usize,
    pub(super) scheduler: &'a mut Scheduler,
    pub(super) counters: &'a Counters,
    pub(super) position: &'a Position,
}

/// Bytes at hand at a time, where a buffer does not lie in this process.
const PIECE: usize = 4096;

impl Buffer<'_> {
    /// How many bytes.
    pub fn len(&self) -> usize {
        self.header.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which buffer of its stream it is, where one copy produced it or the stream is ordered.
    pub fn number(&self) -> u64 {
        self.header.tag
    }

    /// Copies bytes from offset `at` on.
    #[inline]
    pub fn copy_out(&mut self, at: usize, bytes: &mut [u8]) -> Result<()> {
        self.check(at, bytes.len())?;
        match self.rx {
            Rx::Memory(rx) => bytes.copy_from_slice(&rx.bytes()[at..at + bytes.len()]),
            Rx::Channel(rx) => rx.payload(self.header)?.copy_out(at, bytes).map_err(FabricError::from)?,
            Rx::Socket(rx) => bytes.copy_from_slice(&rx.payload(self.header)[at..at + bytes.len()]),
            Rx::Vi(rx) => rx.read(at, bytes)?,
        }
        Ok(())
    }

    /// Loads `N` bytes from offset `at` on, for `from_le_bytes` and the like.
    pub fn array<const N: usize>(&mut self, at: usize) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.copy_out(at, &mut bytes)?;
        Ok(bytes)
    }

    /// Goes through all bytes in order, in pieces; each is loaded once.
    pub fn fold<T>(&mut self, begin: T, mut each: impl FnMut(T, &[u8]) -> T) -> Result<T> {
        match self.rx {
            Rx::Memory(rx) => Ok(each(begin, rx.bytes())),
            Rx::Channel(rx) => Ok(rx.payload(self.header)?.fold(begin, each).map_err(FabricError::from)?),
            Rx::Socket(rx) => Ok(each(begin, rx.payload(self.header))),
            Rx::Vi(_) => {
                let (mut value, mut piece, mut at) = (begin, [0; PIECE], 0);
                while at < self.len() {
                    let count = PIECE.min(self.len() - at);
                    self.copy_out(at, &mut piece[..count])?;
                    value = each(value, &piece[..count]);
                    at += count;
                }
                Ok(value)
            }
        }
    }

    /// Goes through all bytes eight at a time, with zeros behind the last: into registers, where that can be.
    pub fn fold_words<T>(&mut self, begin: T, mut each: impl FnMut(T, [u8; 8]) -> T) -> Result<T> {
        if let Rx::Channel(rx) = &mut *self.rx {
            return Ok(rx.payload(self.header)?.fold_words(begin, each).map_err(FabricError::from)?);
        }
        self.fold(begin, |value, piece| {
            let (words, rest) = piece.as_chunks::<8>();
            let value = words.iter().fold(value, |value, word| each(value, *word));
            if rest.is_empty() {
                return value;
            }
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            each(value, last)
        })
    }

    /// Makes `bytes` a copy of it; memory that `bytes` has is used again.
    pub fn read_into(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.resize(self.len(), 0);
        self.copy_out(0, bytes)
    }

    #[inline]
    fn check(&self, at: usize, len: usize) -> Result<()> {
        if at > self.len() || len > self.len() - at {
            let own = self.len();
            return Err(Error::Misuse(format!("bytes {at} to {} of a buffer of {own}", at.saturating_add(len))));
        }
        Ok(())
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        self.rx.consume(self.header);
    }
}

impl Filling<'_> {
    /// Bytes it can hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Which copy of the consumer gets it.
    pub fn copy(&self) -> usize {
        self.copy
    }

    /// Writes bytes from offset `at` on, in any order.
    #[inline]
    pub fn copy_in(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        self.check(at, bytes.len())?;
        match self.tx {
            Tx::Memory(tx) => tx.bytes()[at..at + bytes.len()].copy_from_slice(bytes),
            Tx::Channel(tx) => tx.reserve(self.capacity)?.copy_in(HEADER + at, bytes)?,
            Tx::Socket(tx) => tx.bytes()[at..at + bytes.len()].copy_from_slice(bytes),
            Tx::Vi(tx) => tx.write(at, bytes)?,
        }
        Ok(())
    }

    /// Writes `len` bytes from offset `at` on, which `make` gives in pieces: it gets the offset of each from `at`.
    pub fn fill(&mut self, at: usize, len: usize, mut make: impl FnMut(usize, &mut [u8])) -> Result<()> {
        self.check(at, len)?;
        match self.tx {
            Tx::Memory(tx) => make(0, &mut tx.bytes()[at..at + len]),
            Tx::Socket(tx) => make(0, &mut tx.bytes()[at..at + len]),
            Tx::Channel(tx) => tx.reserve(self.capacity)?.fill(HEADER + at, len, make)?,
            Tx::Vi(_) => {
                let (mut piece, mut done) = ([0; PIECE], 0);
                while done < len {
                    let count = PIECE.min(len - done);
                    make(done, &mut piece[..count]);
                    self.copy_in(at + done, &piece[..count])?;
                    done += count;
                }
            }
        }
        Ok(())
    }

    /// Writes `len` bytes from offset `at` on, which `make` gives eight at a time: it gets the offset of each eight from `at`. Of
    /// the last ones only as many are written as belong to `len`. They go from registers to where they lie, where that can be.
    pub fn fill_words(&mut self, at: usize, len: usize, mut make: impl FnMut(usize) -> [u8; 8]) -> Result<()> {
        self.check(at, len)?;
        if let Tx::Channel(tx) = &mut *self.tx {
            return Ok(tx.reserve(self.capacity)?.fill_words(HEADER + at, len, make)?);
        }
        self.fill(at, len, |from, piece| {
            let (words, rest) = piece.as_chunks_mut::<8>();
            let end = from + 8 * words.len();
            words.iter_mut().enumerate().for_each(|(word, bytes)| *bytes = make(from + 8 * word));
            if !rest.is_empty() {
                rest.copy_from_slice(&make(end)[..rest.len()]);
            }
        })
    }

    /// Makes the first bytes those of a buffer that was taken.
    pub fn copy_from(&mut self, buffer: &mut Buffer<'_>) -> Result<()> {
        self.check(0, buffer.len())?;
        let mut at = 0;
        buffer.fold(Ok(()), |outcome: Result<()>, piece| {
            outcome?;
            self.copy_in(at, piece)?;
            at += piece.len();
            Ok(())
        })?
    }

    /// Sends the first `len` bytes.
    pub fn commit(self, len: usize) -> Result<()> {
        self.check(0, len)?;
        let header = Header::data(self.tag, len);
        match self.tx {
            Tx::Memory(tx) => tx.commit(header)?,
            Tx::Channel(tx) => {
                let mut reserved = tx.reserve(self.capacity)?;
                reserved.copy_in(0, &header.emit())?;
                reserved.commit(header.frame_len())?;
                tx.flush()?;
            }
            Tx::Socket(tx) => tx.commit(header)?,
            Tx::Vi(tx) => tx.commit(header)?,
        }
        *self.next = self.tag.wrapping_add(1);
        self.scheduler.sent(self.copy);
        self.position.give();
        self.counters.gave(len as u64);
        Ok(())
    }

    #[inline]
    fn check(&self, at: usize, len: usize) -> Result<()> {
        if at > self.capacity || len > self.capacity - at {
            let end = at.saturating_add(len);
            return Err(Error::Misuse(format!("bytes up to {end} do not fit into a buffer of {}", self.capacity)));
        }
        Ok(())
    }
}
