//! Copies between the card and the memory of processes.

use crate::id::Frame;
use crate::vmh::Engine;

/// Bytes to copy between the card and a frame. When it is done, [`Card::handle_dma`](super::Card::handle_dma) is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dma {
    /// Who asks.
    pub engine: Engine,
    /// Which frame.
    pub frame: Frame,
    /// Bytes from its beginning.
    pub offset: usize,
    /// What is to be done.
    pub job: Job,
}

/// The direction of a [`Dma`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Read so many bytes.
    Read(usize),
    /// Write these.
    Write(Vec<u8>),
}
