//! What has come from a stream and was not handled: the beginning of a frame, when all is well.
//!
//! A read asks for the rest of a long frame that is coming and a little more, so that the next one begins here, with its
//! length. So the same memory is used again and again, and stays in the caches. Where frames are shorter, as they are between
//! hosts, a read asks for several of them while the socket has that much.

use std::io::{self, Read};
use std::net::TcpStream;

#[derive(Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// The last read has brought all that it asked for.
    had_plenty: bool,
}

/// What a read has brought.
pub(super) enum Came {
    Nothing,
    /// The peer sends no more.
    End,
    Some {
        /// The socket may have more.
        more: bool,
    },
}

/// A read asks for so much at least: many small messages, or the beginning of a large one.
const FIRST: usize = 16 << 10;
/// And for so much while the socket has plenty: several frames of other hosts, or most of one of this host.
const PLENTY: usize = 64 << 10;
/// A frame of which so much is still to come is asked for by itself: what a read brings of the next one is moved before it goes on.
const LONG: usize = 32 << 10;
/// And for so much beyond the end of a frame.
const LEAD: usize = 2 << 10;

impl Input {
    /// What was not handled.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// So much of it was.
    pub fn consume(&mut self, count: usize) {
        self.start += count.min(self.end - self.start);
    }

    /// Reads once. What is here becomes a frame with `needed` bytes in all.
    pub fn fill(&mut self, mut socket: &TcpStream, needed: usize) -> io::Result<Came> {
        let have = self.end - self.start;
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, have);
        let wanted = have
            + match needed.saturating_sub(have) + LEAD {
                rest if rest >= LONG => rest,
                _ if self.had_plenty => PLENTY,
                rest => rest.max(FIRST),
            };
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        let into = &mut self.bytes[have..wanted];
        let asked = into.len();
        loop {
            match socket.read(into) {
                Ok(0) => return Ok(Came::End),
                Ok(count) => {
                    self.end += count;
                    self.had_plenty = count == asked;
                    return Ok(Came::Some { more: count == asked });
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Came::Nothing),
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_read_ends_a_little_behind_the_frame_that_is_coming() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = listener.accept().unwrap().0;
        let sent: Vec<u8> = (0..200_000_u32).map(|at| at as u8).collect();
        sender.write_all(&sent).unwrap();
        drop(sender);
        let (mut input, mut taken) = (Input::default(), Vec::new());
        while let Came::Some { .. } = input.fill(&socket, 65_000).unwrap() {
            assert!(input.rest().len() <= (65_000 + LEAD).max(LEAD + PLENTY));
            let count = input.rest().len().min(65_000);
            taken.extend_from_slice(&input.rest()[..count]);
            input.consume(count);
        }
        taken.extend_from_slice(input.rest());
        assert_eq!(taken, sent);
    }

    #[test]
    fn several_short_frames_are_read_at_a_time() {
        const FRAME: usize = 16_000;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = listener.accept().unwrap().0;
        // Less than the window of any receiver.
        sender.write_all(&[7; 3 * FRAME]).unwrap();
        drop(sender);
        while socket.peek(&mut [0; 3 * FRAME]).unwrap() < 3 * FRAME {}
        let (mut input, mut reads, mut taken) = (Input::default(), 0, 0);
        while let Came::Some { .. } = input.fill(&socket, FRAME).unwrap() {
            reads += 1;
            let frames = input.rest().len() / FRAME;
            input.consume(frames * FRAME);
            taken += frames;
        }
        // One frame and a little more, then the rest.
        assert_eq!((taken, reads), (3, 2));
    }

    #[test]
    fn what_is_not_there_yet_is_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = listener.accept().unwrap().0;
        socket.set_nonblocking(true).unwrap();
        let mut input = Input::default();
        assert!(matches!(input.fill(&socket, 20), Ok(Came::Nothing)));
        drop(sender);
        socket.set_nonblocking(false).unwrap();
        assert!(matches!(input.fill(&socket, 20), Ok(Came::End)));
    }
}
