//! Where a copy gets its buffers: one connection from each copy of the producer.
//!
//! A unit of work ends when every one of them has said so. A producer copy that is ahead is not read until the others have
//! caught up, so units never mix, and the producer is held back.

use std::os::fd::{AsFd, BorrowedFd};

use sidestep_fabric::event::SourceId;
use sidestep_shm::wait::Waiter;

use super::delay::Wait;
use super::sleep::{Sources, sleep};
use super::{Buffer, Shared, Stream};
use crate::error::{Error, Result};
use crate::frame::{FrameKind, Header};
use crate::link::bell::BellKind;
use crate::link::vi::Line;
use crate::link::{Closer, Rx};

/// One input.
#[derive(Debug)]
pub struct Input {
    stream: Stream,
    links: Links,
    /// Which connections have ended the unit of work, and how many have not.
    ended: Vec<bool>,
    open: usize,
    turn: usize,
    pub(super) current: Current,
    taken: u32,
    unit: u64,
    /// The next number, on an ordered stream.
    expected: u64,
    shared: Shared,
    /// Outputs hand the numbers on: every buffer must be answered by one.
    strict: bool,
    waiter: Waiter,
    /// Channels that report to the event queue of the bell.
    attached: Vec<SourceId>,
}

/// The buffer that was found last: its connection, its length and its number.
#[derive(Debug, Default)]
pub(super) struct Current {
    link: usize,
    pub len: usize,
    pub tag: u64,
}

/// Buffers between two looks at how many wait.
const COUNTED: u32 = 16;

/// All inputs of a copy, in the order in which the kind declares them.
#[derive(Debug, Default)]
pub struct Inputs(pub(crate) Vec<Input>);

#[derive(Debug)]
struct Links {
    all: Vec<Rx>,
    /// Those that had nothing at the last look.
    empty: Vec<usize>,
}

impl Inputs {
    /// The next buffer of the first input; `None` at the end of the unit of work.
    #[inline]
    pub fn take(&mut self) -> Result<Option<Buffer<'_>>> {
        match self.0.first_mut() {
            Some(input) => input.take(),
            None => Ok(None),
        }
    }

    /// The input of this name.
    pub fn port(&mut self, name: &str) -> Result<&mut Input> {
        let found = self.0.iter_mut().find(|input| input.stream.port == name);
        found.ok_or_else(|| Error::Misuse(format!("the filter has no input {name:?}")))
    }

    pub(crate) fn begin(&mut self, unit: u64) {
        self.0.iter_mut().for_each(|input| input.begin(unit));
    }

    /// Steps over what the filter did not take, so that the next unit begins where it should.
    pub(crate) fn finish(&mut self) -> Result<()> {
        for input in &mut self.0 {
            while input.find()? {
                input.begin_current()?;
                let len = input.current.len;
                input.link().consume(len);
            }
        }
        Ok(())
    }
}

impl Input {
    pub(crate) fn new(stream: Stream, mut links: Vec<Rx>, shared: Shared, strict: bool) -> Result<Input> {
        let mut attached = Vec::new();
        if let BellKind::Events(events, _) = shared.bell.kind() {
            for (token, link) in links.iter_mut().enumerate() {
                if let Rx::Channel(rx) = link {
                    attached.push(events.attach_receiver(rx.receiver(), token as u64)?);
                }
            }
        }
        let (ended, empty) = (vec![false; links.len()], Vec::with_capacity(links.len()));
        let links = Links { all: links, empty };
        let waiter = Waiter::default();
        Ok(Input {
            stream,
            links,
            ended,
            open: 0,
            turn: 0,
            current: Current::default(),
            taken: 0,
            unit: 0,
            expected: 0,
            shared,
            strict,
            waiter,
            attached,
        })
    }

    pub(crate) fn closers(&self) -> impl Iterator<Item = Closer> {
        self.links.all.iter().filter_map(Rx::closer)
    }

    fn begin(&mut self, unit: u64) {
        self.ended.fill(false);
        self.open = self.ended.len();
        (self.unit, self.expected) = (unit, 0);
        // What the unit before left unanswered is over.
        self.shared.position.give();
    }

    /// The next buffer; waits for it. `None` when every copy of the producer has ended the unit of work.
    #[inline]
    pub fn take(&mut self) -> Result<Option<Buffer<'_>>> {
        if self.strict && self.shared.position.owes() {
            return Err(Error::Misuse(format!(
                "a buffer of {} was answered by none, and a stream behind it is ordered: commit an empty one",
                self.stream.port
            )));
        }
        if !self.find()? {
            return Ok(None);
        }
        // A copy that always has work never waits, and is the one whose queue is full.
        self.taken = self.taken.wrapping_add(1);
        if self.taken % COUNTED == 0 {
            self.count_waiting();
        }
        self.begin_current()?;
        self.shared.position.take(self.current.tag);
        self.shared.counters.took(self.current.len as u64);
        Ok(Some(Buffer { input: self }))
    }

    /// The connection of the buffer that was found.
    #[inline]
    pub(super) fn link(&mut self) -> &mut Rx {
        &mut self.links.all[self.current.link]
    }

    /// The copy begins with the buffer that was found.
    #[inline]
    fn begin_current(&mut self) -> Result<()> {
        self.expected = self.current.tag.wrapping_add(1);
        if self.stream.acknowledged { self.link().acknowledge() } else { Ok(()) }
    }

    /// Finds the next buffer, which is then the current one; waits for it. `false`: the unit of work is over.
    #[inline(always)]
    fn find(&mut self) -> Result<bool> {
        // The only producer has a buffer: nothing to look around for.
        if self.open == 1
            && !self.stream.ordered
            && let [link] = &mut self.links.all[..]
            && let Ok(Some(header)) = link.peek()
            && header.kind == FrameKind::Data
        {
            self.found(0, header);
            return Ok(true);
        }
        self.find_among()
    }

    #[inline(always)]
    fn found(&mut self, link: usize, header: Header) {
        self.current = Current { link, len: header.len as usize, tag: header.tag };
    }

    #[inline(never)]
    fn find_among(&mut self) -> Result<bool> {
        loop {
            if self.open == 0 {
                return Ok(false);
            }
            if self.look_around()? {
                return Ok(true);
            }
            if self.open > 0 && !self.links.empty.is_empty() {
                self.wait()?;
            }
        }
    }

    /// One look at each connection. Notes the ends of work that it finds, and which connections had nothing.
    #[inline]
    fn look_around(&mut self) -> Result<bool> {
        let count = self.links.all.len();
        self.links.empty.clear();
        let (mut ahead, mut ended) = (false, false);
        for step in 0..count {
            let link = if self.turn + step < count { self.turn + step } else { self.turn + step - count };
            if self.ended[link] {
                continue;
            }
            let Some(header) = self.peek(link)? else {
                self.links.empty.push(link);
                continue;
            };
            match header.kind {
                FrameKind::End if header.tag == self.unit => {
                    self.links.all[link].consume(0);
                    self.ended[link] = true;
                    self.open -= 1;
                    ended = true;
                }
                FrameKind::End => return Err(self.broken("the end of another unit of work")),
                FrameKind::Data if self.stream.ordered && header.tag != self.expected => ahead = true,
                FrameKind::Data => {
                    self.turn = if link + 1 < count { link + 1 } else { 0 };
                    self.found(link, header);
                    return Ok(true);
                }
            }
        }
        if ahead && self.links.empty.is_empty() && !ended {
            return Err(self.broken("a number is missing in an ordered stream"));
        }
        Ok(false)
    }

    #[inline]
    fn peek(&mut self, link: usize) -> Result<Option<Header>> {
        match self.links.all[link].peek() {
            Ok(found) => Ok(found),
            Err(error) => Err(self.mapped(error)),
        }
    }

    #[cold]
    fn mapped(&self, error: Error) -> Error {
        if self.shared.bell.is_cancelled() { Error::Cancelled } else { error }
    }

    #[cold]
    #[inline(never)]
    fn wait(&mut self) -> Result<()> {
        let wait = Wait::begin();
        self.shared.counters.starves(wait.began());
        self.shared.counters.set_waiting(0);
        let outcome = match &mut self.links.all[..] {
            [Rx::Channel(rx)] => rx.wait(),
            // With other inputs there are other VIs to look after.
            [Rx::Vi(rx)] if self.stream.is_only => rx.wait(),
            _ => sleep(&self.shared.bell, &mut self.waiter, &mut self.links),
        };
        self.shared.counters.starved(wait.end());
        self.count_waiting();
        if self.shared.bell.is_cancelled() { Err(Error::Cancelled) } else { outcome }
    }

    /// Says how many buffers wait, for whoever watches.
    #[cold]
    #[inline(never)]
    fn count_waiting(&mut self) {
        let capacity = self.stream.capacity;
        let waiting = self.links.all.iter_mut().map(|link| link.waiting(capacity)).sum();
        self.shared.counters.set_waiting(waiting);
    }

    fn broken(&self, what: &'static str) -> Error {
        Error::Broken { peer: format!("a producer of {}", self.stream.port), what }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.shared.bell.detach(&self.attached);
    }
}

impl Sources for Links {
    fn look(&mut self) -> Result<bool> {
        for link in &self.empty {
            if !matches!(self.all[*link].peek(), Ok(None)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.empty.iter().filter_map(|link| match &self.all[*link] {
            Rx::Socket(rx) => Some(rx.stream().as_fd()),
            _ => None,
        })
    }

    fn lines(&self, each: &mut dyn FnMut(&Line)) {
        for link in &self.empty {
            if let Rx::Vi(rx) = &self.all[*link] {
                each(rx.line());
            }
        }
    }
}
