//! A connection over a channel of the fabric: between processes of one host, or hosts by iWARP.
//!
//! Frames lie one behind the other in the ring of the consumer's side: the producer writes each where it is read. A frame is a
//! line of the cache with the header in front, and the bytes in whole lines: bytes that begin with a line are copied faster, and
//! a header never lies around the end of the ring. Word of buffers that the consumer has begun with goes back through the other
//! queue, as totals of eight bytes.

use std::sync::Arc;

use sidestep_fabric::queue::{Receiver, Reserved, Sender, View};
use sidestep_fabric::{Channel, Endpoint, Error as FabricError};

use crate::error::{Error, Result};
use crate::frame::{HEADER, Header};

#[derive(Debug)]
pub(crate) struct ChannelTx {
    sender: Sender,
    words: Receiver,
    begun: u64,
    peer: String,
    // Dropped last: nothing is written after the close that it sends.
    endpoint: Arc<Endpoint>,
}

#[derive(Debug)]
pub(crate) struct ChannelRx {
    receiver: Receiver,
    words: Sender,
    begun: u64,
    capacity: usize,
    peer: String,
    endpoint: Arc<Endpoint>,
}

/// Bytes of the ring for words of what was begun: far more than buffers can wait.
pub(crate) const WORDS: usize = 16 << 10;

/// A line of the cache.
const LINE: usize = 64;

/// Bytes of a frame with so many of a buffer. A length of a peer is at most that of a buffer, which was allocated.
#[inline(always)]
pub(crate) fn frame(len: usize) -> usize {
    LINE + len.next_multiple_of(LINE)
}

/// The ring for `queue` buffers that wait, one that is read, and what the producer does not know to be free.
pub(crate) fn ring_for(buffer: usize, queue: usize) -> usize {
    (2 * (queue + 1) * frame(buffer)).next_power_of_two().max(4 << 10)
}

impl ChannelTx {
    pub fn new(channel: Channel, peer: String) -> ChannelTx {
        let Channel { sender, receiver, endpoint } = channel;
        ChannelTx { sender, words: receiver, begun: 0, peer, endpoint: Arc::new(endpoint) }
    }

    pub fn endpoint(&self) -> Arc<Endpoint> {
        self.endpoint.clone()
    }

    #[inline(always)]
    pub fn has_space(&mut self, capacity: usize) -> Result<bool> {
        match self.sender.space_for(frame(capacity)) {
            Ok(space) => Ok(space >= frame(capacity)),
            Err(error) => Err(failed(&self.peer, error)),
        }
    }

    pub fn wait_space(&mut self, capacity: usize) -> Result<()> {
        self.sender.wait_space(frame(capacity), None).map_err(|error| failed(&self.peer, error))
    }

    /// Writes bytes of the buffer for which space was found.
    #[inline(always)]
    pub fn copy_in(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        Ok(self.sender.copy_ahead(LINE + at, bytes)?)
    }

    /// The same space, and where the bytes begin in it.
    pub fn reserve(&mut self, capacity: usize) -> Result<(Reserved<'_>, usize)> {
        match self.sender.reserve(frame(capacity)) {
            Ok(Some(reserved)) => Ok((reserved, LINE)),
            Ok(None) => Err(Error::Cancelled),
            Err(error) => Err(failed(&self.peer, error)),
        }
    }

    /// Sends a buffer that lies behind the place of its header.
    #[inline]
    pub fn commit(&mut self, header: Header) -> Result<()> {
        // By words: what is loaded as it was stored need not reach memory first.
        let [first, second] = header.words().map(u64::to_le_bytes);
        let sender = &mut self.sender;
        let written = sender.copy_ahead(0, &first).and_then(|()| sender.copy_ahead(8, &second));
        let sent = written.and_then(|()| sender.commit_ahead(frame(header.len as usize)));
        // Where the peer's memory is not mapped, bytes travel only if someone sees to it.
        match sent.and_then(|()| self.sender.flush(None)) {
            Ok(()) => Ok(()),
            Err(error) => Err(failed(&self.peer, error)),
        }
    }

    pub fn mark(&mut self, header: Header) -> Result<()> {
        self.wait_space(0)?;
        let mut line = [0; LINE];
        line[..HEADER].copy_from_slice(&header.emit());
        let sent = self.sender.send(&line, None);
        sent.map_err(|error| failed(&self.peer, error))
    }

    pub fn begun(&mut self) -> Result<u64> {
        while self.words.has_news() {
            let mut word = [0; 8];
            let words = &mut self.words;
            let Some(view) = words.view(8).map_err(|error| failed(&self.peer, error))? else { break };
            view.copy_out(view.len() / 8 * 8 - 8, &mut word).map_err(FabricError::from)?;
            let count = view.len() / 8 * 8;
            words.consume(count).map_err(|error| failed(&self.peer, error))?;
            self.begun = u64::from_le_bytes(word);
        }
        if self.words.is_over() { Err(Error::Gone(self.peer.clone())) } else { Ok(self.begun) }
    }

    pub fn words(&mut self) -> &mut Receiver {
        &mut self.words
    }
}

impl ChannelRx {
    pub fn new(channel: Channel, capacity: usize, peer: String) -> ChannelRx {
        let Channel { sender, receiver, endpoint } = channel;
        ChannelRx { receiver, words: sender, begun: 0, capacity, peer, endpoint: Arc::new(endpoint) }
    }

    pub fn endpoint(&self) -> Arc<Endpoint> {
        self.endpoint.clone()
    }

    #[inline(always)]
    pub fn peek(&mut self) -> Result<Option<Header>> {
        let known = self.receiver.known();
        let (mut first, mut second) = ([0; 8], [0; 8]);
        if self.receiver.peek_known(0, &mut first)
            && self.receiver.peek_known(8, &mut second)
            && let Ok(header) = Header::from_words([first, second].map(u64::from_le_bytes), self.capacity)
            && known >= frame(header.len as usize)
        {
            return Ok(Some(header));
        }
        self.peek_again()
    }

    /// There is no whole frame, or something is wrong.
    #[cold]
    #[inline(never)]
    fn peek_again(&mut self) -> Result<Option<Header>> {
        let view = self.receiver.view(LINE).map_err(|error| failed(&self.peer, error))?;
        let Some(view) = view else {
            // Whatever was sent before the end is taken first.
            return if self.receiver.is_over() { Err(Error::Gone(self.peer.clone())) } else { Ok(None) };
        };
        let bytes = view.array(0).map_err(FabricError::from)?;
        let header =
            Header::parse(bytes, self.capacity).map_err(|what| Error::Broken { peer: self.peer.clone(), what })?;
        // Frames are published whole, but what travels comes in pieces.
        let whole =
            self.receiver.view(frame(header.len as usize)).map_err(|error| failed(&self.peer, error))?.is_some();
        if !whole && self.endpoint.closed().is_some() {
            return Err(Error::Gone(self.peer.clone()));
        }
        Ok(whole.then_some(header))
    }

    /// Waits for a frame, where this is the only connection.
    pub fn wait(&mut self) -> Result<()> {
        let wanted = match self.receiver.view(LINE) {
            Ok(Some(view)) => {
                let bytes = view.array(0).map_err(FabricError::from)?;
                Header::parse(bytes, self.capacity).map_or(LINE, |header| frame(header.len as usize))
            }
            _ => LINE,
        };
        self.receiver.wait_bytes(wanted, None).map_err(|error| failed(&self.peer, error))
    }

    #[inline]
    pub fn payload(&mut self, len: usize) -> Result<View<'_>> {
        match self.receiver.view(frame(len)) {
            Ok(Some(view)) => Ok(view.part(LINE, len).map_err(FabricError::from)?),
            Ok(None) => Err(Error::Cancelled),
            Err(error) => Err(failed(&self.peer, error)),
        }
    }

    #[inline(always)]
    pub fn copy_out(&mut self, len: usize, at: usize, bytes: &mut [u8]) -> Result<()> {
        if self.receiver.peek_known(LINE + at, bytes) { Ok(()) } else { self.copy_out_viewed(len, at, bytes) }
    }

    #[cold]
    #[inline(never)]
    fn copy_out_viewed(&mut self, len: usize, at: usize, bytes: &mut [u8]) -> Result<()> {
        Ok(self.payload(len)?.copy_out(at, bytes).map_err(FabricError::from)?)
    }

    #[inline]
    pub fn consume(&mut self, len: usize) {
        // The next call finds what is wrong.
        let _ = self.receiver.consume(frame(len));
    }

    pub fn acknowledge(&mut self) -> Result<()> {
        self.begun += 1;
        self.words.send(&self.begun.to_le_bytes(), None).map_err(|error| failed(&self.peer, error))
    }

    pub fn receiver(&mut self) -> &mut Receiver {
        &mut self.receiver
    }

    pub fn waiting_bytes(&mut self) -> usize {
        self.receiver.available().unwrap_or(0)
    }
}

#[cold]
#[inline(never)]
fn failed(peer: &str, error: FabricError) -> Error {
    match error {
        FabricError::Closed(_) | FabricError::Frozen => Error::Gone(peer.to_owned()),
        error => Error::Fabric(error),
    }
}
