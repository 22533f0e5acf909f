//! A model of one direction of a TCP connection: a buffer, a delay, FIN and RST.

use std::collections::VecDeque;

/// One direction.
#[derive(Debug)]
pub struct Tcp {
    /// When each byte comes, and the byte.
    queue: VecDeque<(u64, u8)>,
    /// Bytes that it takes while nobody reads.
    room: usize,
    delay: u64,
    /// When the end comes, of whatever kind.
    end: Option<u64>,
    /// When the writer learns that nobody reads any more.
    refused: Option<u64>,
    /// Bytes that the kernel has seen go in and come out.
    pub sent: u64,
    pub received: u64,
}

impl Tcp {
    pub fn new(room: usize, delay: u64) -> Tcp {
        Tcp { queue: VecDeque::new(), room, delay, end: None, refused: None, sent: 0, received: 0 }
    }

    /// Takes what there is room for.
    pub fn send(&mut self, now: u64, bytes: &[u8]) -> usize {
        let count = self.room.saturating_sub(self.queue.len()).min(bytes.len());
        self.send_all(now, &bytes[..count]);
        count
    }

    /// Takes everything: a kernel has room for what a carrier holds.
    pub fn send_all(&mut self, now: u64, bytes: &[u8]) {
        assert!(self.end.is_none(), "bytes behind the end");
        self.sent += bytes.len() as u64;
        if self.refused.is_none() {
            self.queue.extend(bytes.iter().map(|byte| (now + self.delay, *byte)));
        }
    }

    /// Bytes that have come, and whether the end has come behind them.
    pub fn pending(&self, now: u64) -> (u64, bool) {
        let come = self.queue.iter().take_while(|(when, _)| *when <= now).count() as u64;
        (come, self.has_ended(now))
    }

    pub fn receive(&mut self, now: u64, most: usize) -> Vec<u8> {
        let count = most.min(self.pending(now).0 as usize);
        self.received += count as u64;
        self.queue.drain(..count).map(|(_, byte)| byte).collect()
    }

    /// Nothing more is sent.
    pub fn finish(&mut self, now: u64) {
        self.end.get_or_insert(now + self.delay);
    }

    /// What is on its way is lost.
    pub fn reset(&mut self, now: u64) {
        self.queue.retain(|(when, _)| *when <= now);
        self.end = Some(self.end.unwrap_or(now + self.delay).min(now + self.delay));
    }

    /// Nobody reads any more.
    pub fn refuse(&mut self, now: u64) {
        self.refused.get_or_insert(now + self.delay);
        self.queue.clear();
    }

    pub fn is_finished(&self) -> bool {
        self.end.is_some()
    }

    pub fn has_ended(&self, now: u64) -> bool {
        self.end.is_some_and(|when| when <= now)
    }

    pub fn is_refused(&self, now: u64) -> bool {
        self.refused.is_some_and(|when| when <= now)
    }

    /// When something comes next.
    pub fn next_event(&self, now: u64) -> Option<u64> {
        let bytes = self.queue.iter().map(|(when, _)| *when);
        bytes.chain(self.end).chain(self.refused).filter(|when| *when > now).min()
    }
}
