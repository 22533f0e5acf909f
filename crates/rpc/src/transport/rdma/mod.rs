//! RPC over RDMA on iWARP, on the side of a client.
//!
//! A call that is too long to be sent inline lies in a read chunk, and the server reads it. A reply chunk is offered with
//! every call for a reply that is too long. Bulk data travel as the [`Binding`] says.

mod calls;
mod memory;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};
use sidestep_iwarp::{Connection, Event};
use sidestep_sys::clock;
use sidestep_sys::lock::Lock;

use self::calls::{Reply, State};
use self::memory::Frame;
use super::{Take, Transport, left};
use crate::client::lock;
use crate::rdma::{self, Binding, Line};

/// What a client wants of its connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wishes {
    pub max_message: usize,
    pub timeout: Duration,
    pub reply_chunk: usize,
    pub inline: usize,
    pub binding: Binding,
}

pub(super) fn connect(host: &str, wishes: Wishes) -> io::Result<Box<dyn Transport>> {
    let deadline = Instant::now() + wishes.timeout;
    let socket = super::stream::dial(host, wishes.timeout)?;
    let config = rdma::config(wishes.timeout, &socket);
    let connection = Connection::initiate(config, &rdma::private_data(wishes.inline), Duration::ZERO);
    let mut line = Line::new(socket, connection.map_err(io::Error::other)?, wishes.inline)?;
    let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
    let watched = line.as_fd().try_clone_to_owned()?;
    let inline = loop {
        line.advance()?;
        match line.poll_event() {
            Some(Event::Established { private_data, .. }) => break rdma::inline_limit(&private_data, wishes.inline),
            Some(event) => return Err(rdma::ended(&event)),
            None if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
            None => rdma::wait(&watched, line.interest(), &bell, Some(deadline))?,
        }
    };
    let state = State::new(line, inline);
    let (state, taken) = (Mutex::new(state), Lock::default());
    Ok(Box::new(Rdma { state, taken, credit: Condvar::new(), bell, watched, wishes }))
}

struct Rdma {
    state: Mutex<State>,
    /// Replies that are given away. One thread at a time receives, so nobody ever waits for it.
    taken: Lock<VecDeque<Reply>>,
    /// A call has ended, or there are more credits.
    credit: Condvar,
    /// Wakes whoever waits for the socket: there is output for it, or the end.
    bell: EventFd,
    /// The socket of the line, to be waited for without the lock.
    watched: OwnedFd,
    wishes: Wishes,
}

impl Transport for Rdma {
    fn lossy(&self) -> bool {
        false
    }

    /// Whoever calls it again and again until all is sent is the next to get credits.
    fn send(&self, frame: &[u8]) -> io::Result<usize> {
        let sent = self.send_frame(Frame::Kept(frame), true)?;
        Ok(if sent { frame.len() } else { 0 })
    }

    fn give_whole(&self, frame: &mut Vec<u8>) -> io::Result<bool> {
        self.send_frame(Frame::Given(frame), false)
    }

    fn receive(&self, until: u64, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let mut taken = self.taken.lock();
        loop {
            let mut state = lock(&self.state);
            let end = state.line.advance();
            let news = state.collect(&self.wishes)?;
            std::mem::swap(&mut state.ready, &mut *taken);
            if news || !taken.is_empty() {
                self.credit.notify_all();
            }
            if taken.is_empty() {
                end?;
                if clock::now() >= until {
                    return Ok(false);
                }
                let interest = state.line.interest();
                drop(state);
                rdma::wait(&self.watched, interest, &self.bell, Some(Instant::now() + left(until)))?;
                continue;
            }
            drop(state);
            taken.iter().for_each(|reply| take(reply.bytes()));
            let mut state = lock(&self.state);
            for reply in taken.drain(..) {
                if let Reply::Inline(message, _) = reply {
                    state.line.give_back(message);
                }
            }
            return Ok(true);
        }
    }

    fn wait_sendable(&self, until: u64, take: Option<&mut Take<'_>>) -> io::Result<()> {
        let state = lock(&self.state);
        // Replies that came since the last look have freed credits, and there may be none to wait for.
        if state.has_credit() {
            return Ok(());
        }
        let Some(take) = take else {
            let most = left(until).min(OTHERS_RECEIVE);
            drop(self.credit.wait_timeout(state, most));
            return Ok(());
        };
        drop(state);
        self.receive(until, take).map(|_| ())
    }

    fn close(&self) {
        lock(&self.state).line.close();
        let _ = self.bell.write(1);
    }
}

impl Rdma {
    fn send_frame(&self, frame: Frame<'_>, waited: bool) -> io::Result<bool> {
        let mut state = lock(&self.state);
        if !state.try_send(frame, waited, &self.wishes)? {
            return Ok(false);
        }
        if state.has_others() {
            state.line.answer()?;
        } else {
            state.line.advance()?;
        }
        if state.line.has_output() || state.collect(&self.wishes)? {
            // Whoever reads may wait for something else.
            let _ = self.bell.write(1);
        }
        Ok(true)
    }
}

/// How long to wait before looking again whether somebody else still receives.
const OTHERS_RECEIVE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
