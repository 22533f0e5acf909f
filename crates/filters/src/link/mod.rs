//! Connections between a copy of a producer and a copy of a consumer, one file for each way.
//!
//! - A `Tx` has space for one more buffer or has not; a buffer is written where the connection wants it, and then committed.
//! - An `Rx` shows the header of the next frame once all of it is there; its bytes are read where they lie, and then consumed.
//! - An end is told to whoever waits, as [`Error::Gone`](crate::Error::Gone), after everything that was sent before it.
//! - Word of buffers that were begun with goes back, as a total.

pub(crate) mod bell;
pub(crate) mod channel;
pub(crate) mod memory;
pub(crate) mod socket;
pub(crate) mod vi;

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use sidestep_fabric::Endpoint;

use crate::error::Result;
use crate::frame::Header;
use channel::{ChannelRx, ChannelTx};
use memory::{MemoryRx, MemoryTx};
use socket::{SocketRx, SocketTx};
use vi::{Line, ViRx, ViTx};

/// The producer's end.
#[derive(Debug)]
pub(crate) enum Tx {
    Memory(MemoryTx),
    Channel(Box<ChannelTx>),
    Socket(Box<SocketTx>),
    Vi(Box<ViTx>),
}

/// The consumer's end.
#[derive(Debug)]
pub(crate) enum Rx {
    Memory(MemoryRx),
    Channel(Box<ChannelRx>),
    Socket(Box<SocketRx>),
    Vi(Box<ViRx>),
}

/// Ends a connection from another thread.
#[derive(Debug)]
pub(crate) enum Closer {
    Channel(Arc<Endpoint>),
    Socket(TcpStream),
    Vi(Arc<Line>),
}

impl Tx {
    #[inline(always)]
    pub fn has_space(&mut self, capacity: usize) -> Result<bool> {
        match self {
            Tx::Memory(tx) => tx.has_space(),
            Tx::Channel(tx) => tx.has_space(capacity),
            // A commit waits.
            Tx::Socket(_) => Ok(true),
            Tx::Vi(tx) => tx.has_space(),
        }
    }

    /// An end of work, which follows all buffers.
    pub fn mark(&mut self, header: Header) -> Result<()> {
        match self {
            Tx::Memory(tx) => tx.mark(header),
            Tx::Channel(tx) => tx.mark(header),
            Tx::Socket(tx) => tx.commit(header).map(drop),
            Tx::Vi(tx) => tx.commit(header),
        }
    }

    /// How many buffers the consumer has begun with.
    pub fn begun(&mut self) -> Result<u64> {
        match self {
            Tx::Memory(tx) => tx.begun(),
            Tx::Channel(tx) => tx.begun(),
            Tx::Socket(tx) => tx.begun(),
            Tx::Vi(tx) => tx.begun(),
        }
    }

    pub fn closer(&self) -> Option<Closer> {
        match self {
            Tx::Memory(_) => None,
            Tx::Channel(tx) => Some(Closer::Channel(tx.endpoint())),
            Tx::Socket(tx) => tx.stream().try_clone().ok().map(Closer::Socket),
            Tx::Vi(tx) => Some(Closer::Vi(tx.line().clone())),
        }
    }
}

impl Rx {
    #[inline(always)]
    pub fn peek(&mut self) -> Result<Option<Header>> {
        match self {
            Rx::Memory(rx) => rx.peek(),
            Rx::Channel(rx) => rx.peek(),
            Rx::Socket(rx) => rx.peek(),
            Rx::Vi(rx) => rx.peek(),
        }
    }

    /// Steps over the frame that was peeked at, with so many bytes.
    #[inline]
    pub fn consume(&mut self, len: usize) {
        match self {
            Rx::Memory(rx) => rx.consume(),
            Rx::Channel(rx) => rx.consume(len),
            Rx::Socket(rx) => rx.consume(len),
            Rx::Vi(rx) => rx.consume(),
        }
    }

    pub fn acknowledge(&mut self) -> Result<()> {
        match self {
            Rx::Memory(rx) => {
                rx.acknowledge();
                Ok(())
            }
            Rx::Channel(rx) => rx.acknowledge(),
            Rx::Socket(rx) => rx.acknowledge(),
            Rx::Vi(rx) => rx.acknowledge(),
        }
    }

    /// About how many frames wait, for whoever watches.
    pub fn waiting(&mut self, capacity: usize) -> u64 {
        match self {
            Rx::Memory(rx) => rx.waiting() as u64,
            Rx::Channel(rx) => rx.waiting_bytes().div_ceil(channel::frame(capacity)) as u64,
            Rx::Socket(rx) => rx.waiting_bytes().div_ceil(capacity + crate::frame::HEADER) as u64,
            Rx::Vi(rx) => u64::from(rx.has_current()),
        }
    }

    pub fn closer(&self) -> Option<Closer> {
        match self {
            Rx::Memory(_) => None,
            Rx::Channel(rx) => Some(Closer::Channel(rx.endpoint())),
            Rx::Socket(rx) => rx.stream().try_clone().ok().map(Closer::Socket),
            Rx::Vi(rx) => Some(Closer::Vi(rx.line().clone())),
        }
    }
}

impl Closer {
    pub fn close(&self) {
        match self {
            Closer::Channel(endpoint) => endpoint.close(),
            // It may be over already.
            Closer::Socket(stream) => drop(stream.shutdown(Shutdown::Both)),
            Closer::Vi(line) => line.close(),
        }
    }
}
