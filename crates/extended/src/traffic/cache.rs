//! A simulated cache: write-back, set-associative, least recently used. It counts what crosses the memory bus.

use super::{Direction, Interface};

/// The shape of a cache.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Bytes of the cache.
    pub size: usize,
    /// Lines that an address can be in.
    pub ways: usize,
    /// Bytes of a line.
    pub line: usize,
}

/// A transfer that is repeated with the same buffers.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// Bytes of the program's buffer.
    pub message: usize,
    /// Bytes of the socket's buffer, used around and around.
    pub socket_buffer: usize,
}

/// A cache with what it holds.
#[derive(Debug)]
pub struct Cache {
    shape: Shape,
    /// For each set its lines, the one used last at the end.
    sets: Vec<Vec<Line>>,
    /// Bytes on the memory bus.
    traffic: u64,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    number: u64,
    dirty: bool,
}

/// The processor of the thesis' machines: 512 KiB, eight ways, lines of 64 bytes.
pub const XEON: Shape = Shape { size: 512 << 10, ways: 8, line: 64 };
/// The default of Linux and Windows then.
pub const SOCKET_BUFFER: usize = 64 << 10;

impl Cache {
    /// An empty one.
    pub fn new(shape: Shape) -> Cache {
        let sets = (shape.size / shape.line / shape.ways).max(1);
        Cache { shape, sets: vec![Vec::new(); sets], traffic: 0 }
    }

    /// The processor reads or writes a line's worth of bytes at an address.
    pub fn access(&mut self, address: u64, writes: bool) {
        let number = address / self.shape.line as u64;
        let set = self.set(number);
        let held = self.sets[set].iter().position(|line| line.number == number);
        let mut line = match held {
            Some(at) => self.sets[set].remove(at),
            None => {
                if self.sets[set].len() == self.shape.ways {
                    let out = self.sets[set].remove(0);
                    self.count(out.dirty);
                }
                self.count(true);
                Line { number, dirty: false }
            }
        };
        line.dirty |= writes;
        self.sets[set].push(line);
    }

    /// The card reads a line: from memory, or by an implicit write-back.
    pub fn dma_read(&mut self, address: u64) {
        let number = address / self.shape.line as u64;
        let set = self.set(number);
        if let Some(line) = self.sets[set].iter_mut().find(|line| line.number == number) {
            line.dirty = false;
        }
        self.count(true);
    }

    /// The card writes a line: it is invalid in the cache from then on.
    pub fn dma_write(&mut self, address: u64) {
        let number = address / self.shape.line as u64;
        let set = self.set(number);
        if let Some(at) = self.sets[set].iter().position(|line| line.number == number) {
            let out = self.sets[set].remove(at);
            self.count(out.dirty);
        }
        self.count(true);
    }

    fn set(&self, number: u64) -> usize {
        (number % self.sets.len() as u64) as usize
    }

    fn count(&mut self, happens: bool) {
        self.traffic += if happens { self.shape.line as u64 } else { 0 };
    }
}

/// Bytes on the memory bus for each byte on the network, when a transfer has been repeated until the cache has settled.
pub fn ratio(shape: Shape, interface: Interface, direction: Direction, transfer: Transfer) -> f64 {
    let mut cache = Cache::new(shape);
    let line = shape.line as u64;
    let (message, socket) = (transfer.message as u64 / line, (transfer.socket_buffer as u64 / line).max(1));
    let mut position = 0;
    let mut round = |cache: &mut Cache| {
        for at in 0..message {
            let program = at * line;
            let buffer = SOCKET_BASE + position % socket * line;
            position += 1;
            match (interface, direction) {
                (Interface::Rdma, Direction::Transmit) => cache.dma_read(program),
                (Interface::Rdma, Direction::Receive) => cache.dma_write(program),
                (Interface::Sockets, Direction::Transmit) => {
                    cache.access(program, false);
                    cache.access(buffer, true);
                    cache.dma_read(buffer);
                }
                (Interface::Sockets, Direction::Receive) => {
                    cache.dma_write(buffer);
                    cache.access(buffer, false);
                    cache.access(program, true);
                }
            }
        }
    };
    // Once around the socket's buffer is a lap, of one message or several.
    let lap = socket.div_ceil(message.max(1)).max(1);
    (0..2 * lap).for_each(|_| round(&mut cache));
    let settled = cache.traffic;
    (0..lap).for_each(|_| round(&mut cache));
    (cache.traffic - settled) as f64 / (lap * message.max(1) * line) as f64
}

/// Far from any program's buffer, and in the same sets as one.
const SOCKET_BASE: u64 = 1 << 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{self, Policy};

    /// What the simulation finds lies between the least and the most of the table.
    #[test]
    fn the_simulation_stays_within_the_table() {
        for (message, fits) in [(16 << 10, true), (128 << 10, true), (10 << 20, false)] {
            for direction in [Direction::Transmit, Direction::Receive] {
                for interface in [Interface::Sockets, Interface::Rdma] {
                    let transfer = Transfer { message, socket_buffer: SOCKET_BUFFER };
                    let found = ratio(XEON, interface, direction, transfer);
                    let (least, most) = traffic::ratio(interface, direction, fits, Policy::Theoretical);
                    let context = format!("{interface:?} {direction:?} {message}: {found}");
                    assert!(found >= f64::from(least) - 0.01 && found <= f64::from(most) + 0.01, "{context}");
                }
            }
        }
    }

    #[test]
    fn small_messages_cost_what_is_practical() {
        let transfer = Transfer { message: 16 << 10, socket_buffer: SOCKET_BUFFER };
        assert_eq!(ratio(XEON, Interface::Sockets, Direction::Transmit, transfer), 1.0);
        assert_eq!(ratio(XEON, Interface::Sockets, Direction::Receive, transfer), 2.0);
        assert_eq!(ratio(XEON, Interface::Rdma, Direction::Receive, transfer), 1.0);
    }

    /// One way, and both buffers in the same lines: they push each other out, as the theory allows.
    #[test]
    fn a_cache_that_maps_both_to_one_line_costs_the_most() {
        let shape = Shape { ways: 1, ..XEON };
        let transfer = Transfer { message: SOCKET_BUFFER, socket_buffer: SOCKET_BUFFER };
        let found = ratio(shape, Interface::Sockets, Direction::Transmit, transfer);
        assert!(found > 2.0 && found <= 4.0, "{found}");
    }
}
