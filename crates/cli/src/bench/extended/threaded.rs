//! The user-level iWARP of the thesis (section 11.2.2), for comparison: a program posts descriptors of some 60 bytes over UNIX sockets to
//! two threads, which move the bytes over TCP, gathered by `TCP_CORK`, without Nagle's delay and with a checksum, and tell the end of
//! each by another descriptor. What is posted lies in work queues of the socket, under a lock.

use std::{
    collections::VecDeque,
    io::{Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use anyhow::{Result, ensure};
use rustix::net::sockopt::set_tcp_cork;
use sidestep_wire::mpa::crc32c;

use super::talk::{MOST, Talk};

/// A socket with its two threads.
pub struct Threaded {
    sending: Half,
    receiving: Half,
    under_way: usize,
}

/// What the program has of one thread.
struct Half {
    line: UnixStream,
    posted: Work,
    done: Work,
}

/// Buffers on their way to a thread, or back.
type Work = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// Bytes of a descriptor.
const DESCRIPTOR: usize = 60;
/// Bytes before a message: its length and its checksum.
const HEAD: usize = 8;
/// Sends that have not ended, at most.
const MOST_SENDS: usize = 8;

impl Threaded {
    pub fn new(stream: TcpStream) -> Result<Threaded> {
        stream.set_nodelay(true)?;
        let other = stream.try_clone()?;
        let sending = Half::start(move |bytes| send(&stream, bytes))?;
        let receiving = Half::start(move |bytes| receive(&other, bytes))?;
        let mut threaded = Threaded { sending, receiving, under_way: 0 };
        threaded.receiving.post(vec![0; MOST])?;
        Ok(threaded)
    }
}

impl Half {
    /// A thread that does `act` with what is posted, in order, until it fails.
    fn start(act: impl Fn(&mut Vec<u8>) -> Result<()> + Send + 'static) -> Result<Half> {
        let (line, mut far) = UnixStream::pair()?;
        let half = Half { line, posted: Work::default(), done: Work::default() };
        let (posted, ended) = (half.posted.clone(), half.done.clone());
        thread::spawn(move || -> Result<()> {
            let mut descriptor = [0; DESCRIPTOR];
            loop {
                far.read_exact(&mut descriptor)?;
                let mut bytes = pop(&posted);
                // The end of the thread ends the line, which is how a failure is told.
                act(&mut bytes)?;
                push(&ended, bytes);
                far.write_all(&descriptor)?;
            }
        });
        Ok(half)
    }

    fn post(&mut self, bytes: Vec<u8>) -> Result<()> {
        push(&self.posted, bytes);
        Ok(self.line.write_all(&[0; DESCRIPTOR])?)
    }

    /// Waits for the end of the first that was posted.
    fn take(&mut self) -> Result<Vec<u8>> {
        self.line.read_exact(&mut [0; DESCRIPTOR])?;
        Ok(pop(&self.done))
    }
}

fn push(work: &Work, bytes: Vec<u8>) {
    work.lock().unwrap_or_else(PoisonError::into_inner).push_back(bytes);
}

/// The first one. Its descriptor was read, so it is there.
fn pop(work: &Work) -> Vec<u8> {
    work.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or_default()
}

fn send(mut stream: &TcpStream, bytes: &[u8]) -> Result<()> {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    head[4..].copy_from_slice(&crc32c(0, bytes).to_le_bytes());
    set_tcp_cork(stream, true)?;
    stream.write_all(&head)?;
    stream.write_all(bytes)?;
    Ok(set_tcp_cork(stream, false)?)
}

fn receive(mut stream: &TcpStream, bytes: &mut Vec<u8>) -> Result<()> {
    let mut head = [0; HEAD];
    stream.read_exact(&mut head)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    ensure!(word(0) as usize <= MOST, "a message of {} bytes", word(0));
    bytes.resize(word(0) as usize, 0);
    stream.read_exact(bytes)?;
    ensure!(crc32c(0, bytes) == word(4), "a checksum that is wrong");
    Ok(())
}

impl Talk for Threaded {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        if self.under_way == MOST_SENDS {
            self.sending.take()?;
            self.under_way -= 1;
        }
        self.under_way += 1;
        self.sending.post(message.to_vec())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        let bytes = self.receiving.take()?;
        into[..bytes.len()].copy_from_slice(&bytes);
        let len = bytes.len();
        self.receiving.post(bytes)?;
        Ok(len)
    }
}
