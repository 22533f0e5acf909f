//! A ring of fixed slots: one message a slot, with its length in front. It is the byte ring with a stride.

use crate::{
    Error, Result,
    byte_ring::{Consumer, Parts, Producer},
};

/// Bytes of a slot that hold the length.
pub const SLOT_HEADER: usize = 8;

/// The writing end.
#[derive(Debug)]
pub struct SlotProducer {
    bytes: Producer,
    stride: usize,
}

/// The reading end.
#[derive(Debug)]
pub struct SlotConsumer {
    bytes: Consumer,
    stride: usize,
}

/// Checks that a ring of `capacity` bytes can have slots of `stride` bytes: powers of two, at least four slots.
pub fn check_stride(stride: usize, capacity: usize) -> Result<()> {
    if !stride.is_power_of_two() || stride <= SLOT_HEADER || stride > capacity / 4 {
        return Err(Error::Size {
            what: "slot",
            must: "a power of two above 8, at most a quarter of the ring",
            value: stride,
        });
    }
    Ok(())
}

impl SlotProducer {
    /// Takes up the writing end; `stride` bytes a slot, of which [`SLOT_HEADER`] are the length.
    pub fn new(parts: Parts, stride: usize) -> Result<SlotProducer> {
        check_stride(stride, parts.ring.len())?;
        Ok(SlotProducer { bytes: Producer::new(parts)?, stride })
    }

    /// The largest message.
    pub fn max_message(&self) -> usize {
        self.stride - SLOT_HEADER
    }

    /// Position after the last slot written, in bytes.
    pub fn position(&self) -> u64 {
        self.bytes.position()
    }

    /// Puts one message into the next slot, without publishing it; `false` if no slot is free.
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<bool> {
        if message.len() > self.max_message() {
            return Err(Error::Size { what: "message", must: "at most one slot", value: message.len() });
        }
        let header = (message.len() as u64).to_le_bytes();
        self.bytes.copy_in_whole([&header, message], self.stride)
    }

    /// The ring underneath.
    pub fn bytes(&mut self) -> &mut Producer {
        &mut self.bytes
    }
}

impl SlotConsumer {
    /// Takes up the reading end.
    pub fn new(parts: Parts, stride: usize) -> Result<SlotConsumer> {
        check_stride(stride, parts.ring.len())?;
        Ok(SlotConsumer { bytes: Consumer::new(parts)?, stride })
    }

    /// Takes the next message into `buffer` and returns its length; `None` if there is none. A message longer
    /// than the buffer stays where it is and is an error of the caller.
    #[inline]
    pub fn pop(&mut self, buffer: &mut [u8]) -> Result<Option<usize>> {
        let available = self.bytes.available()?;
        if available == 0 {
            return Ok(None);
        }
        if available < self.stride {
            return Err(Error::Peer("it published part of a slot"));
        }
        let mut header = [0; SLOT_HEADER];
        self.bytes.peek(0, &mut header)?;
        let len = u64::from_le_bytes(header);
        if len > (self.stride - SLOT_HEADER) as u64 {
            return Err(Error::Peer("the length of its message is larger than a slot"));
        }
        let len = len as usize;
        if len > buffer.len() {
            return Err(Error::Size { what: "buffer", must: "as large as the message", value: buffer.len() });
        }
        self.bytes.peek(SLOT_HEADER, &mut buffer[..len])?;
        self.bytes.consume(self.stride);
        Ok(Some(len))
    }

    /// The ring underneath.
    pub fn bytes(&mut self) -> &mut Consumer {
        &mut self.bytes
    }
}
