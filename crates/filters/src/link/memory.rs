//! A connection between two copies in one process: buffers of a pool go from one thread to the other and back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::frame::{FrameKind, Header};
use crate::link::bell::Bell;

#[derive(Debug)]
pub(crate) struct MemoryTx {
    edge: Arc<Edge>,
    /// The buffer that is being filled.
    current: Option<Box<[u8]>>,
}

#[derive(Debug)]
pub(crate) struct MemoryRx {
    edge: Arc<Edge>,
    /// The frame that is being read.
    current: Option<(Header, Option<Box<[u8]>>)>,
}

#[derive(Debug)]
struct Edge {
    state: Mutex<State>,
    capacity: usize,
    most: usize,
    producer: Arc<Bell>,
    consumer: Arc<Bell>,
}

#[derive(Debug)]
struct State {
    frames: VecDeque<(Header, Option<Box<[u8]>>)>,
    pool: Vec<Box<[u8]>>,
    made: usize,
    begun: u64,
    over: bool,
}

/// The two ends; buffers hold `capacity` bytes, and there are `most` of them.
pub(crate) fn pair(capacity: usize, most: usize, producer: Arc<Bell>, consumer: Arc<Bell>) -> (MemoryTx, MemoryRx) {
    let (frames, pool) = (VecDeque::with_capacity(most + 2), Vec::with_capacity(most));
    let state = Mutex::new(State { frames, pool, made: 0, begun: 0, over: false });
    let edge = Arc::new(Edge { state, capacity, most, producer, consumer });
    (MemoryTx { edge: edge.clone(), current: None }, MemoryRx { edge, current: None })
}

impl MemoryTx {
    /// Whether there is a buffer to fill; it is then kept at hand.
    pub fn has_space(&mut self) -> Result<bool> {
        if self.current.is_some() {
            return Ok(true);
        }
        let mut state = self.edge.open()?;
        if let Some(buffer) = state.pool.pop() {
            self.current = Some(buffer);
        } else if state.made < self.edge.most {
            state.made += 1;
            drop(state);
            self.current = Some(vec![0; self.edge.capacity].into());
        }
        Ok(self.current.is_some())
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        self.current.as_deref_mut().unwrap_or_default()
    }

    pub fn commit(&mut self, header: Header) -> Result<()> {
        let buffer = self.current.take();
        self.edge.open()?.frames.push_back((header, buffer));
        self.edge.consumer.ring();
        Ok(())
    }

    /// An end of work needs no buffer.
    pub fn mark(&mut self, header: Header) -> Result<()> {
        self.edge.open()?.frames.push_back((header, None));
        self.edge.consumer.ring();
        Ok(())
    }

    pub fn begun(&self) -> Result<u64> {
        Ok(self.edge.open()?.begun)
    }
}

impl MemoryRx {
    pub fn peek(&mut self) -> Result<Option<Header>> {
        if self.current.is_none() {
            let mut state = self.edge.state();
            self.current = state.frames.pop_front();
            if self.current.is_none() && state.over {
                return Err(Error::Gone("a copy in this process".into()));
            }
        }
        Ok(self.current.as_ref().map(|(header, _)| *header))
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.current {
            Some((header, Some(buffer))) => &buffer[..header.len as usize],
            _ => &[],
        }
    }

    pub fn consume(&mut self) {
        let Some((header, buffer)) = self.current.take() else { return };
        if header.kind == FrameKind::Data
            && let Some(buffer) = buffer
        {
            self.edge.state().pool.push(buffer);
            self.edge.producer.ring();
        }
    }

    pub fn acknowledge(&mut self) {
        self.edge.state().begun += 1;
        self.edge.producer.ring();
    }

    /// Frames that wait.
    pub fn waiting(&self) -> usize {
        self.edge.state().frames.len()
    }
}

impl Edge {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic with a connection")
    }

    fn open(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        if state.over { Err(Error::Gone("a copy in this process".into())) } else { Ok(state) }
    }

    fn end(&self) {
        self.state().over = true;
        self.consumer.ring();
        self.producer.ring();
    }
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        self.edge.end();
    }
}

impl Drop for MemoryRx {
    fn drop(&mut self) {
        self.edge.end();
    }
}
