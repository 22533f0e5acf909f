//! Messages between two processes, each way in its own manner: the ping-pong and the windows of figure 11.6.

use std::{
    io::{IoSlice, Read, Write},
    net::TcpStream,
    time::Instant,
};

use anyhow::{Result, bail, ensure};
use sidestep_extended::{CompletionQueue, Kind, Region, Rights, Socket, Stack};

/// A way to send and receive whole messages.
pub trait Talk {
    /// Sends one. It may be on its way when this returns.
    fn send(&mut self, message: &[u8]) -> Result<()>;
    /// Receives the next one, of at most [`MOST`] bytes; how long it is.
    fn receive(&mut self, into: &mut [u8]) -> Result<usize>;
}

/// Bytes of the largest message.
pub const MOST: usize = 64 << 10;
/// Messages that are sent before an answer is waited for.
pub const WINDOW: usize = 32;
/// What the first byte of a message says: send it back, or answer each window.
const PING: u8 = b'p';
const STREAM: u8 = b's';

/// The far end: answers until the other one has gone.
pub fn answer(talk: &mut dyn Talk) -> Result<()> {
    let (mut message, mut count) = (vec![0; MOST], 0);
    loop {
        let len = talk.receive(&mut message)?;
        match message[0] {
            PING => talk.send(&message[..len])?,
            STREAM => {
                count += 1;
                if count % WINDOW == 0 {
                    talk.send(&message[..1])?;
                }
            }
            other => bail!("a message that begins with {other}"),
        }
    }
}

/// Nanoseconds that a message of so many bytes takes one way.
pub fn ping(talk: &mut dyn Talk, len: usize) -> Result<f64> {
    let (message, mut back, began) = (vec![PING; len], vec![0; MOST], Instant::now());
    talk.send(&message)?;
    ensure!(talk.receive(&mut back)? == len, "an answer of another length");
    Ok(began.elapsed().as_nanos() as f64 / 2.0)
}

/// Nanoseconds that each of a window of messages takes.
pub fn stream(talk: &mut dyn Talk, len: usize) -> Result<f64> {
    let (message, mut back, began) = (vec![STREAM; len], vec![0; MOST], Instant::now());
    for _ in 0..WINDOW {
        talk.send(&message)?;
    }
    talk.receive(&mut back)?;
    Ok(began.elapsed().as_nanos() as f64 / WINDOW as f64)
}

/// Plain TCP, each message behind its length.
pub struct Tcp(pub TcpStream);

impl Talk for Tcp {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        let len = (message.len() as u32).to_le_bytes();
        let sent = self.0.write_vectored(&[IoSlice::new(&len), IoSlice::new(message)])?;
        if sent < len.len() {
            self.0.write_all(&len[sent..])?;
        }
        Ok(self.0.write_all(&message[sent.saturating_sub(len.len())..])?)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        let mut len = [0; 4];
        self.0.read_exact(&mut len)?;
        let len = u32::from_le_bytes(len) as usize;
        ensure!(len <= into.len(), "a message of {len} bytes");
        self.0.read_exact(&mut into[..len])?;
        Ok(len)
    }
}

/// Messages of an extended socket.
pub struct Messages {
    socket: Socket,
    queue: CompletionQueue,
    /// Sources, one for each message of a window, and then places for what comes.
    memory: Region,
    sent: usize,
    under_way: usize,
    come: std::collections::VecDeque<(u64, usize)>,
    _stack: Stack,
}

/// Places for messages to come.
const PLACES: usize = 4;

impl Messages {
    pub fn new(stack: Stack, queue: CompletionQueue, socket: Socket) -> Result<Messages> {
        let memory = stack.register((WINDOW + PLACES) * MOST, Rights::NONE)?;
        for place in 0..PLACES {
            socket.post_recv(vec![memory.piece((WINDOW + place) * MOST, MOST)?], place as u64)?;
        }
        Ok(Messages { socket, queue, memory, sent: 0, under_way: 0, come: Default::default(), _stack: stack })
    }

    /// Takes completions, at least one.
    fn take(&mut self) -> Result<()> {
        let mut taken = Vec::new();
        self.queue.wait(&mut taken, WINDOW, None)?;
        for completion in taken {
            match (completion.kind, completion.outcome?) {
                (Kind::Send, _) => self.under_way -= 1,
                (Kind::Receive, len) => self.come.push_back((completion.token, len)),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Talk for Messages {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        while self.under_way == WINDOW {
            self.take()?;
        }
        let place = self.sent % WINDOW * MOST;
        self.memory.write(place, message)?;
        self.socket.post_send(vec![self.memory.piece(place, message.len())?], 0)?;
        (self.sent, self.under_way) = (self.sent + 1, self.under_way + 1);
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        while self.come.is_empty() {
            self.take()?;
        }
        let Some((place, len)) = self.come.pop_front() else { bail!("no message") };
        let at = (WINDOW + place as usize) * MOST;
        self.memory.read(at, &mut into[..len])?;
        self.socket.post_recv(vec![self.memory.piece(at, MOST)?], place)?;
        Ok(len)
    }
}
