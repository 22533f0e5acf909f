//! Stands between a client's connection and hyper, and answers by itself what takes no more than a look: whole documents that are kept.
//!
//! ```text
//!   connection ─▶ a request for a whole document, kept and current? ── yes ─▶ its head and its body, in one write
//!                    └ no: this one request goes through to hyper, byte for byte, and its answer comes back
//! ```
//!
//! hyper reads its connection through this. While it has no request it is given nothing, and requests are looked at here; one that is
//! not answered here is given to it as a whole, and the next is looked at when its answer has been written. Where the end of a request
//! is in doubt hyper has the connection from there on.
//!
//! A hit takes one read and one write of the socket. Nothing is allocated for it, and its head is written once a second, with its age.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep},
};

use crate::{
    current::Current,
    head::{EMPTY_ROOM, Head, Seen},
    input::Input,
    proxy::{Asked, Hit, Proxy},
    store::{Key, Prepared},
};

/// The connection of a client.
pub struct Front {
    stream: TcpStream,
    current: Arc<Current>,
    /// The proxy of that generation.
    proxy: Arc<Proxy>,
    generation: u64,
    input: Input,
    /// The bytes of the request about which the application is asked, and its answer.
    asked: Option<(usize, Asked)>,
    /// The answer that is being written, and how much of it has been.
    output: Option<(Prepared, usize)>,
    turn: Turn,
    /// Set when hyper has no more need of the body of its answer.
    ended: Ended,
    /// Whom to look up; kept for its memory.
    key: Vec<u8>,
    waiting: Pin<Box<Sleep>>,
    /// Whether a request has come since `waiting` began.
    has_come: bool,
}

/// Tells that hyper has taken all of an answer's body.
#[derive(Debug, Clone, Default)]
pub struct Ended(Arc<AtomicBool>);

/// Who reads requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// This one.
    Front,
    /// hyper, which has been given a request but for so many bytes.
    Hyper {
        left: u64,
        /// Its answer has ended and been written.
        is_written: bool,
    },
    /// hyper, until the connection ends.
    HyperOnly,
}

/// How long the next request may take, but at most twice as long: it is looked at no more often, so that no clock is read for a request.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Hits in a row of one connection, before others have their turn.
const ROW: usize = 32;

impl Ended {
    /// The body has been taken.
    pub fn tell(&self) {
        // Read by the task that stored it.
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Front {
    /// Of a connection to a proxy. Its service tells of the end of each answer's body.
    pub fn new(stream: TcpStream, current: Arc<Current>) -> (Front, Ended) {
        let ended = Ended::default();
        // In this order: one that comes between is noticed.
        let generation = current.generation();
        let front = Front {
            stream,
            proxy: current.proxy(),
            current,
            generation,
            input: Input::default(),
            asked: None,
            output: None,
            turn: Turn::Front,
            ended: ended.clone(),
            key: Vec::new(),
            waiting: Box::pin(tokio::time::sleep(REQUEST_TIMEOUT)),
            has_come: false,
        };
        (front, ended)
    }

    /// Answers requests, until hyper has to have one.
    fn serve(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        for _ in 0..ROW {
            ready!(self.send(cx))?;
            if let Some((length, asked)) = &mut self.asked {
                let (length, answer) = (*length, ready!(asked.as_mut().poll(cx)));
                self.asked = None;
                match answer {
                    Some(answer) => self.answer(length, answer),
                    None => return self.give_way(Some(length as u64)),
                }
                continue;
            }
            match self.look() {
                (Seen::Plain { length }, Hit::Yes(answer)) => self.answer(length, answer),
                (Seen::Plain { length }, Hit::Asked(asked)) => self.asked = Some((length, asked)),
                (Seen::Plain { length }, Hit::No) => return self.give_way(Some(length as u64)),
                (Seen::Other { length }, _) => return self.give_way(length),
                (Seen::Part, _) if self.input.is_full() || self.input.has_ended() => return self.give_way(None),
                (Seen::Part, _) => {
                    self.input.mark_partial();
                    if self.fill(cx)?.is_pending() {
                        return self.wait(cx);
                    }
                }
            }
        }
        // Others have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// What has come, and whether it can be answered here.
    fn look(&mut self) -> (Seen, Hit) {
        if !self.input.may_be_whole() {
            return (Seen::Part, Hit::No);
        }
        let mut room = EMPTY_ROOM;
        let (seen, head) = Head::see(self.input.bytes(), &mut room);
        let generation = self.current.generation();
        if generation != self.generation {
            (self.generation, self.proxy) = (generation, self.current.proxy());
        }
        let hit = head.map_or(Hit::No, |head| {
            Key::write(&mut self.key, head.host(), head.path());
            self.proxy.hit(&self.key, &head)
        });
        (seen, hit)
    }

    /// The answer to the request of so many bytes.
    fn answer(&mut self, length: usize, answer: Prepared) {
        self.input.take(length);
        self.output = Some((answer, 0));
        self.has_come = true;
    }

    fn give_way(&mut self, length: Option<u64>) -> Poll<io::Result<()>> {
        self.ended.0.store(false, Ordering::Relaxed);
        self.turn = match length {
            Some(left) => Turn::Hyper { left, is_written: false },
            None => Turn::HyperOnly,
        };
        Poll::Ready(Ok(()))
    }

    /// Looks whether the next request has taken too long.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.waiting.as_mut().poll(cx).is_ready() {
            if !std::mem::take(&mut self.has_come) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.waiting.as_mut().reset(Instant::now() + REQUEST_TIMEOUT);
        }
        Poll::Pending
    }

    /// Reads what has come.
    fn fill(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        let mut room = ReadBuf::new(self.input.room());
        match Pin::new(&mut self.stream).poll_read(cx, &mut room) {
            Poll::Ready(read) => {
                read?;
                let count = room.filled().len();
                self.input.add(count);
                Ok(Poll::Ready(()))
            }
            Poll::Pending => Ok(Poll::Pending),
        }
    }

    /// Writes what is left of an answer.
    fn send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some((Prepared { head, body }, written)) = &mut self.output {
            let stream = Pin::new(&mut self.stream);
            let count = match written.checked_sub(head.len()) {
                Some(of_body) => ready!(stream.poll_write(cx, &body[of_body..]))?,
                None if body.is_empty() => ready!(stream.poll_write(cx, &head[*written..]))?,
                None => {
                    let both = [IoSlice::new(&head[*written..]), IoSlice::new(body)];
                    ready!(stream.poll_write_vectored(cx, &both))?
                }
            };
            *written += count;
            if *written == head.len() + body.len() {
                self.output = None;
            } else if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Gives hyper what is its own.
    fn give(&mut self, cx: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let left = match self.turn {
            Turn::HyperOnly => u64::MAX,
            Turn::Hyper { left, .. } => left,
            Turn::Front => 0,
        };
        if left == 0 {
            // hyper only wants to know whether the client has gone.
            return match self.input.is_empty() && !self.input.has_ended() && self.fill(cx)?.is_ready() {
                true if self.input.has_ended() => Poll::Ready(Ok(())),
                _ => Poll::Pending,
            };
        }
        if self.input.is_empty() && !self.input.has_ended() && self.fill(cx)?.is_pending() {
            return Poll::Pending;
        }
        let bytes = self.input.bytes();
        let count = bytes.len().min(buf.remaining()).min(usize::try_from(left).unwrap_or(usize::MAX));
        buf.put_slice(&bytes[..count]);
        self.input.take(count);
        if let Turn::Hyper { left, .. } = &mut self.turn {
            *left -= count as u64;
        }
        Poll::Ready(Ok(()))
    }

    /// Takes its turn again when hyper has read and answered all of its request.
    fn follow(&mut self) {
        if self.turn == (Turn::Hyper { left: 0, is_written: true }) {
            self.turn = Turn::Front;
            self.has_come = true;
        }
    }
}

impl Read for Front {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let front = self.get_mut();
        front.follow();
        if front.turn == Turn::Front {
            ready!(front.serve(cx))?;
        }
        front.give(cx, buf)
    }
}

impl Write for Front {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    /// hyper has written all that it has.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let front = self.get_mut();
        if let Turn::Hyper { is_written, .. } = &mut front.turn
            && front.ended.0.load(Ordering::Relaxed)
        {
            *is_written = true;
            front.follow();
            if front.turn == Turn::Front && !front.input.is_empty() {
                // hyper was told that nothing has come, and would not ask again.
                cx.waker().wake_by_ref();
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let front = self.get_mut();
        ready!(front.send(cx))?;
        Pin::new(&mut front.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
    }
}
