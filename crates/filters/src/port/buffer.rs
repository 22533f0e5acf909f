//! One buffer, where it lies. What another process can write is loaded and copied, never referred to.

use sidestep_fabric::Error as FabricError;
use sidestep_shm::byte_ring::pieces;

use super::{Input, Output};
use crate::error::{Error, Result};
use crate::link::{Rx, Tx};

/// A buffer that was taken from an input. It goes back to its pool when this is dropped.
///
/// What is known of it lies in the input, and this is one word: a larger value is moved through memory in other pieces than it
/// was made of, for which the processor waits until all earlier stores are done, those of the bytes before all.
#[derive(Debug)]
pub struct Buffer<'a> {
    pub(super) input: &'a mut Input,
}

/// A buffer of an output that is being filled. Nothing is sent without [`commit`](Self::commit). One word, as [`Buffer`] is.
#[derive(Debug)]
pub struct Filling<'a> {
    pub(super) output: &'a mut Output,
}

impl Buffer<'_> {
    /// How many bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.input.current.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which buffer of its stream it is, where one copy produced it or the stream is ordered.
    #[inline]
    pub fn number(&self) -> u64 {
        self.input.current.tag
    }

    /// Copies bytes from offset `at` on.
    #[inline]
    pub fn copy_out(&mut self, at: usize, bytes: &mut [u8]) -> Result<()> {
        self.check(at, bytes.len())?;
        let (len, rx) = (self.len(), self.input.link());
        match rx {
            Rx::Memory(rx) => bytes.copy_from_slice(&rx.bytes()[at..at + bytes.len()]),
            Rx::Channel(rx) => rx.copy_out(len, at, bytes)?,
            Rx::Socket(rx) => bytes.copy_from_slice(&rx.payload(len)[at..at + bytes.len()]),
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
        let (len, rx) = (self.len(), self.input.link());
        match rx {
            Rx::Memory(rx) => Ok(each(begin, rx.bytes())),
            Rx::Channel(rx) => Ok(rx.payload(len)?.fold(begin, each).map_err(FabricError::from)?),
            Rx::Socket(rx) => Ok(each(begin, rx.payload(len))),
            Rx::Vi(_) => pieces::fold(len, begin, |at, piece| self.copy_out(at, piece), each),
        }
    }

    /// Goes through all bytes eight at a time, with zeros behind the last: into registers, where that can be.
    pub fn fold_words<T>(&mut self, begin: T, mut each: impl FnMut(T, [u8; 8]) -> T) -> Result<T> {
        let len = self.len();
        if let Rx::Channel(rx) = self.input.link() {
            return Ok(rx.payload(len)?.fold_words(begin, each).map_err(FabricError::from)?);
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
        if at > self.len() || len > self.len() - at { Err(self.outside(at, len)) } else { Ok(()) }
    }

    #[cold]
    fn outside(&self, at: usize, len: usize) -> Error {
        Error::Misuse(format!("bytes {at} to {} of a buffer of {}", at.saturating_add(len), self.len()))
    }
}

impl Drop for Buffer<'_> {
    #[inline]
    fn drop(&mut self) {
        let len = self.len();
        self.input.link().consume(len);
    }
}

impl Filling<'_> {
    /// Bytes it can hold.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.output.capacity()
    }

    /// Which copy of the consumer gets it; 0 while the key that lies in it is not known.
    pub fn copy(&self) -> usize {
        self.output.current.copy
    }

    /// Writes bytes from offset `at` on, in any order.
    #[inline]
    pub fn copy_in(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        self.check(at, bytes.len())?;
        match self.output.link() {
            Tx::Memory(tx) => tx.bytes()[at..at + bytes.len()].copy_from_slice(bytes),
            Tx::Channel(tx) => tx.copy_in(at, bytes)?,
            Tx::Socket(tx) => tx.bytes()[at..at + bytes.len()].copy_from_slice(bytes),
            Tx::Vi(tx) => tx.write(at, bytes)?,
        }
        Ok(())
    }

    /// Writes `len` bytes from offset `at` on, which `make` gives in pieces: it gets the offset of each from `at`.
    pub fn fill(&mut self, at: usize, len: usize, mut make: impl FnMut(usize, &mut [u8])) -> Result<()> {
        self.check(at, len)?;
        let (capacity, tx) = (self.capacity(), self.output.link());
        match tx {
            Tx::Memory(tx) => make(0, &mut tx.bytes()[at..at + len]),
            Tx::Socket(tx) => make(0, &mut tx.bytes()[at..at + len]),
            Tx::Channel(tx) => {
                let (mut reserved, begin) = tx.reserve(capacity)?;
                reserved.fill(begin + at, len, make)?;
            }
            Tx::Vi(_) => pieces::fill(len, make, |done, piece| self.copy_in(at + done, piece))?,
        }
        Ok(())
    }

    /// Writes `len` bytes from offset `at` on, which `make` gives eight at a time: it gets the offset of each eight from `at`. Of
    /// the last ones only as many are written as belong to `len`. They go from registers to where they lie, where that can be.
    pub fn fill_words(&mut self, at: usize, len: usize, mut make: impl FnMut(usize) -> [u8; 8]) -> Result<()> {
        self.check(at, len)?;
        let capacity = self.capacity();
        if let Tx::Channel(tx) = self.output.link() {
            let (mut reserved, begin) = tx.reserve(capacity)?;
            return Ok(reserved.fill_words(begin + at, len, make)?);
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
    #[inline]
    pub fn commit(self, len: usize) -> Result<()> {
        self.check(0, len)?;
        self.output.commit(len)
    }

    #[inline]
    fn check(&self, at: usize, len: usize) -> Result<()> {
        let capacity = self.capacity();
        if at > capacity || len > capacity - at { Err(self.outside(at, len)) } else { Ok(()) }
    }

    #[cold]
    fn outside(&self, at: usize, len: usize) -> Error {
        let end = at.saturating_add(len);
        Error::Misuse(format!("bytes up to {end} do not fit into a buffer of {}", self.capacity()))
    }
}
