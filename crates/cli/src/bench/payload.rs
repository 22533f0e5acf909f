//! The bytes that are sent: written by the sender, looked at by the receiver.
//!
//! Buffers begin at a page boundary. Copies on some processors are 15 times slower when source and
//! destination lie a few bytes apart within their pages, so a benchmark that leaves this to the
//! allocator measures the allocator.

use std::ops::{Deref, DerefMut};

use anyhow::{Result, ensure};

/// A page-aligned buffer, every byte written once.
pub struct Payload {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Payload {
    /// A buffer of `len` bytes.
    pub fn new(len: usize) -> Payload {
        Self::shifted(len, 0)
    }

    /// A buffer of `len` bytes that begins `shift` bytes after a page boundary.
    pub fn shifted(len: usize, shift: usize) -> Payload {
        let bytes: Vec<u8> = (0..len + PAGE + shift).map(|at| at as u8).collect();
        let start = bytes.as_ptr().align_offset(PAGE) + shift;
        Payload { bytes, start, len }
    }

    /// Marks the first and the last byte with the number of the message.
    #[inline]
    pub fn stamp(&mut self, number: usize) {
        if let Some(first) = self.first_mut() {
            *first = number as u8;
        }
        if let Some(last) = self.last_mut() {
            *last = number as u8;
        }
    }

    /// Checks the marks of [`Payload::stamp`].
    #[inline]
    pub fn verify(&self, number: usize) -> Result<()> {
        let marked = |byte: Option<&u8>| byte.is_none_or(|byte| *byte == number as u8);
        ensure!(
            marked(self.first()) && marked(self.last()),
            "message {number} of {} bytes arrived with other contents",
            self.len
        );
        Ok(())
    }
}

impl Deref for Payload {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl DerefMut for Payload {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_begins_at_a_page_and_keeps_its_stamp() {
        for len in [0, 1, 2, 64, 5000] {
            let mut payload = Payload::new(len);
            assert_eq!(payload.len(), len);
            assert_eq!(payload.as_ptr().align_offset(PAGE), 0);
            payload.stamp(300);
            assert!(payload.verify(300).is_ok());
            assert_eq!(payload.verify(301).is_ok(), len == 0);
        }
    }
}
