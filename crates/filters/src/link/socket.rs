//! A connection over TCP. All calls go through the C library, so that `sidestep run` can accelerate it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::{Error, Result};
use crate::frame::{HEADER, Header};
use crate::port::delay::Wait;

#[derive(Debug)]
pub(crate) struct SocketTx {
    stream: TcpStream,
    /// Header and buffer, written in one call.
    frame: Box<[u8]>,
    /// The first bytes of a word of which the rest has not come.
    part: [u8; WORD],
    part_len: usize,
    begun: u64,
    peer: String,
}

#[derive(Debug)]
pub(crate) struct SocketRx {
    stream: TcpStream,
    bytes: Box<[u8]>,
    /// What of `bytes` has arrived and was not consumed.
    from: usize,
    to: usize,
    begun: u64,
    capacity: usize,
    peer: String,
}

/// A word of what was begun with.
const WORD: usize = 8;
/// As much as is read at once, where buffers are small.
const READ: usize = 64 << 10;

impl SocketTx {
    pub fn new(stream: TcpStream, capacity: usize, peer: String) -> Result<SocketTx> {
        prepare(&stream)?;
        Ok(SocketTx { stream, frame: vec![0; HEADER + capacity].into(), part: [0; WORD], part_len: 0, begun: 0, peer })
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.frame[HEADER..]
    }

    /// Writes all of the frame, and waits while the kernel does not take it: for so many nanoseconds.
    pub fn commit(&mut self, header: Header) -> Result<u64> {
        self.frame[..HEADER].copy_from_slice(&header.emit());
        let SocketTx { stream, frame, peer, .. } = self;
        write_all(stream, &frame[..header.frame_len()], peer)
    }

    /// Reads the words that have come, at most a few at a time: a peer that never stops does not keep this side from its work.
    pub fn begun(&mut self) -> Result<u64> {
        let mut bytes = [0; 64 * WORD];
        bytes[..WORD].copy_from_slice(&self.part);
        match self.stream.read(&mut bytes[self.part_len..]) {
            Ok(0) => return Err(Error::Gone(self.peer.clone())),
            Ok(count) => {
                let here = self.part_len + count;
                let (whole, rest) = bytes[..here].split_at(here / WORD * WORD);
                if let Some(last) = whole.last_chunk() {
                    self.begun = u64::from_le_bytes(*last);
                }
                self.part_len = rest.len();
                self.part[..rest.len()].copy_from_slice(rest);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Err(Error::Gone(self.peer.clone())),
        }
        Ok(self.begun)
    }
}

impl SocketRx {
    pub fn new(stream: TcpStream, capacity: usize, peer: String) -> Result<SocketRx> {
        prepare(&stream)?;
        let bytes = vec![0; (HEADER + capacity).max(READ)].into();
        Ok(SocketRx { stream, bytes, from: 0, to: 0, begun: 0, capacity, peer })
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub fn peek(&mut self) -> Result<Option<Header>> {
        loop {
            let here = &self.bytes[self.from..self.to];
            if let Some(first) = here.first_chunk() {
                let header = Header::parse(*first, self.capacity)
                    .map_err(|what| Error::Broken { peer: self.peer.clone(), what })?;
                if here.len() >= header.frame_len() {
                    return Ok(Some(header));
                }
            }
            if self.from > 0 {
                self.bytes.copy_within(self.from..self.to, 0);
                self.to -= self.from;
                self.from = 0;
            }
            match self.stream.read(&mut self.bytes[self.to..]) {
                Ok(0) => return Err(Error::Gone(self.peer.clone())),
                Ok(count) => self.to += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Error::Gone(self.peer.clone())),
            }
        }
    }

    pub fn payload(&self, len: usize) -> &[u8] {
        &self.bytes[self.from + HEADER..self.from + HEADER + len]
    }

    pub fn consume(&mut self, len: usize) {
        self.from += HEADER + len;
    }

    pub fn acknowledge(&mut self) -> Result<()> {
        self.begun += 1;
        write_all(&mut self.stream, &self.begun.to_le_bytes(), &self.peer).map(drop)
    }

    pub fn waiting_bytes(&self) -> usize {
        self.to - self.from
    }
}

fn prepare(stream: &TcpStream) -> Result<()> {
    let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
    prepared.map_err(Error::system("a socket"))
}

/// How many nanoseconds it has waited.
fn write_all(stream: &mut TcpStream, mut bytes: &[u8], peer: &str) -> Result<u64> {
    let mut waited = 0;
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let wait = Wait::begin();
                // An error of the connection is found by the next write.
                let _ = poll(&mut [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE);
                waited += wait.end();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(Error::Gone(peer.to_owned())),
        }
    }
    Ok(waited)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Words may come in pieces, or without end: the last whole one counts, and a look takes a bounded time.
    #[test]
    fn words_come_in_pieces_and_in_floods() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut tx = SocketTx::new(listener.accept().unwrap().0, 64, "peer".into()).unwrap();
        let mut until = |expected: u64| {
            for _ in 0..1_000_000 {
                if tx.begun().unwrap() == expected {
                    return;
                }
                std::thread::yield_now();
            }
            panic!("{expected} does not come");
        };
        until(0);
        for value in 1..=20u64 {
            let bytes = (value * 0x0101_0101_0101).to_le_bytes();
            let cut = value as usize % WORD;
            peer.write_all(&bytes[..cut]).unwrap();
            until((value - 1) * 0x0101_0101_0101);
            peer.write_all(&bytes[cut..]).unwrap();
            until(value * 0x0101_0101_0101);
        }
        // More than one look takes.
        let flood: Vec<u8> = (21..2000u64).flat_map(u64::to_le_bytes).collect();
        peer.write_all(&flood).unwrap();
        until(1999);
        drop(peer);
        let mut outcome = tx.begun();
        while outcome.is_ok() {
            outcome = tx.begun();
        }
        assert!(matches!(outcome, Err(Error::Gone(_))), "{outcome:?}");
    }
}
