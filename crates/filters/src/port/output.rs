//! Where a copy gives its buffers: one connection to each copy of the consumer, chosen by the schedule.

use std::os::fd::{AsFd, BorrowedFd};

use sidestep_fabric::event::SourceId;
use sidestep_shm::wait::Waiter;

use super::dealer::Dealer;
use super::delay::Wait;
use super::sleep::{Sources, sleep};
use super::{Filling, Shared, Stream};
use crate::error::{Error, Result};
use crate::frame::Header;
use crate::link::bell::BellKind;
use crate::link::vi::Line;
use crate::link::{Closer, Tx};
use crate::schedule::{Schedule, Scheduler};

/// One output.
#[derive(Debug)]
pub struct Output {
    stream: Stream,
    links: Links,
    scheduler: Scheduler,
    /// For keys that lie in the bytes of a buffer, where there is a choice.
    dealer: Option<Box<Dealer>>,
    /// The number of the next buffer.
    next: u64,
    pub(super) current: Current,
    shared: Shared,
    waiter: Waiter,
    /// Channels that report to the event queue of the bell.
    attached: Vec<SourceId>,
}

/// The buffer that is being filled: its connection and its number.
#[derive(Debug, Default)]
pub(super) struct Current {
    pub copy: usize,
    tag: u64,
}

/// All outputs of a copy, in the order in which the kind declares them.
#[derive(Debug, Default)]
pub struct Outputs(pub(crate) Vec<Output>);

#[derive(Debug)]
struct Links {
    all: Vec<Tx>,
    wanted: Wanted,
    capacity: usize,
}

/// What a sleep of an output waits for.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    /// Space on one connection.
    Space(usize),
    /// More than so many buffers begun, over all connections.
    Words(u64),
}

impl Outputs {
    /// Space for a buffer of the first output.
    #[inline]
    pub fn reserve(&mut self) -> Result<Filling<'_>> {
        match self.0.first_mut() {
            Some(output) => output.reserve(),
            None => Err(Error::Misuse("the filter has no output".into())),
        }
    }

    /// The output of this name.
    pub fn port(&mut self, name: &str) -> Result<&mut Output> {
        let found = self.0.iter_mut().find(|output| output.stream.port == name);
        found.ok_or_else(|| Error::Misuse(format!("the filter has no output {name:?}")))
    }

    /// Tells every copy of every consumer that this copy has ended the unit of work.
    pub(crate) fn finish(&mut self, unit: u64) -> Result<()> {
        for output in &mut self.0 {
            output.next = 0;
            let cancelled = output.shared.bell.clone();
            for link in &mut output.links.all {
                link.mark(Header::end(unit)).map_err(|error| match cancelled.is_cancelled() {
                    true => Error::Cancelled,
                    false => error,
                })?;
            }
        }
        Ok(())
    }
}

impl Output {
    pub(crate) fn new(stream: Stream, mut links: Vec<Tx>, shared: Shared) -> Result<Output> {
        let mut attached = Vec::new();
        if let BellKind::Events(events, _) = shared.bell.kind() {
            for (token, link) in links.iter_mut().enumerate() {
                if let Tx::Channel(tx) = link {
                    attached.push(events.attach_receiver(tx.words(), token as u64)?);
                }
            }
        }
        let scheduler = Scheduler::new(stream.schedule, links.len(), stream.queue);
        let copies = links.len();
        let key = stream.key.filter(|_| copies > 1);
        let dealer = key.map(|key| Box::new(Dealer::new(key, stream.capacity, copies)));
        let links = Links { all: links, wanted: Wanted::Words(0), capacity: stream.capacity };
        let (current, waiter) = (Current::default(), Waiter::default());
        Ok(Output { stream, links, scheduler, dealer, next: 0, current, shared, waiter, attached })
    }

    pub(crate) fn closers(&self) -> impl Iterator<Item = Closer> {
        self.links.all.iter().filter_map(Tx::closer)
    }

    /// Bytes that a buffer of this stream holds.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.stream.capacity
    }

    /// Space for a buffer; waits for it. A stream by key needs [`reserve_for`](Self::reserve_for), if the description does not
    /// say where the key lies.
    #[inline]
    pub fn reserve(&mut self) -> Result<Filling<'_>> {
        if self.stream.schedule == Schedule::Keyed && self.stream.key.is_none() {
            return Err(Error::Misuse(format!("{} is dealt by key: reserve_for says which", self.stream.port)));
        }
        self.reserve_at(0)
    }

    /// Space for a buffer of this key; waits for it. Where the stream is not dealt by key, or the description says where the
    /// key lies, this one means nothing.
    pub fn reserve_for(&mut self, key: u64) -> Result<Filling<'_>> {
        self.reserve_at(key)
    }

    /// Sends bytes as one buffer.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let mut buffer = self.reserve()?;
        buffer.copy_in(0, bytes)?;
        buffer.commit(bytes.len())
    }

    #[inline]
    fn reserve_at(&mut self, key: u64) -> Result<Filling<'_>> {
        let tag = self.tag()?;
        if let Some(dealer) = &mut self.dealer {
            // Where it goes is known when it is filled.
            dealer.tx.has_space(self.stream.capacity)?;
            self.current = Current { copy: 0, tag };
            return Ok(Filling { output: self });
        }
        let copy = match self.choose(key) {
            Ok(copy) => copy,
            Err(error) => return Err(self.mapped(error)),
        };
        self.current = Current { copy, tag };
        Ok(Filling { output: self })
    }

    /// The number of the next buffer.
    #[inline]
    fn tag(&self) -> Result<u64> {
        if !self.stream.tagged {
            return Ok(self.next);
        }
        if !self.shared.position.owes() {
            let port = &self.stream.port;
            return Err(Error::Misuse(format!("a second buffer of {port} for one buffer, and the stream is ordered")));
        }
        Ok(self.shared.position.tag())
    }

    /// The connection of the buffer that is being filled.
    #[inline]
    pub(super) fn link(&mut self) -> &mut Tx {
        match &mut self.dealer {
            None => &mut self.links.all[self.current.copy],
            Some(dealer) => &mut dealer.tx,
        }
    }

    /// Sends the first bytes of the buffer that is being filled.
    #[inline]
    pub(super) fn commit(&mut self, len: usize) -> Result<()> {
        if self.dealer.is_some() {
            return self.deal(len);
        }
        let Output { links, scheduler, shared, next, current, .. } = self;
        let header = Header::data(current.tag, len);
        match &mut links.all[current.copy] {
            Tx::Memory(tx) => tx.commit(header)?,
            Tx::Channel(tx) => tx.commit(header)?,
            Tx::Socket(tx) => shared.counters.blocked(tx.commit(header)?),
            Tx::Vi(tx) => tx.commit(header)?,
        }
        *next = current.tag.wrapping_add(1);
        scheduler.sent(current.copy);
        shared.position.give();
        shared.counters.gave(len as u64);
        Ok(())
    }

    /// Sends what was filled to the copies that its keys belong to.
    #[cold]
    #[inline(never)]
    fn deal(&mut self, len: usize) -> Result<()> {
        let Some(mut dealer) = self.dealer.take() else { return Ok(()) };
        let outcome = self.send_parts(&mut dealer, len);
        self.dealer = Some(dealer);
        outcome
    }

    /// Meanwhile there is no dealer: buffers are filled where they go.
    fn send_parts(&mut self, dealer: &mut Dealer, len: usize) -> Result<()> {
        dealer.divide(len, &self.scheduler)?;
        for copy in 0..dealer.parts.len() {
            let Some(part) = dealer.parts[copy].take() else { continue };
            let tag = self.tag()?;
            while !self.has_space(copy)? {
                if let Err(error) = self.wait(Wanted::Space(copy)) {
                    return Err(self.mapped(error));
                }
            }
            self.current = Current { copy, tag };
            let mut filling = Filling { output: self };
            filling.copy_in(0, &part)?;
            filling.commit(part.len())?;
            dealer.give_back(part);
        }
        Ok(())
    }

    fn has_space(&mut self, copy: usize) -> Result<bool> {
        let found = self.links.all[copy].has_space(self.stream.capacity);
        found.map_err(|error| self.mapped(error))
    }

    #[inline(always)]
    fn choose(&mut self, key: u64) -> Result<usize> {
        loop {
            let begun = if self.scheduler.wants_word() { self.take_words()? } else { 0 };
            match self.scheduler.pick(key) {
                Some(copy) if self.links.all[copy].has_space(self.stream.capacity)? => return Ok(copy),
                Some(copy) => self.wait(Wanted::Space(copy))?,
                None => self.wait(Wanted::Words(begun))?,
            }
        }
    }

    /// What the consumers have begun with; how many in all.
    #[inline(never)]
    fn take_words(&mut self) -> Result<u64> {
        let mut all = 0;
        for (copy, link) in self.links.all.iter_mut().enumerate() {
            let begun = link.begun()?;
            if !self.scheduler.begun(copy, begun) {
                let peer = format!("copy {copy} of the consumer of {}", self.stream.port);
                return Err(Error::Broken { peer, what: "word of more buffers than it was sent" });
            }
            all += begun;
        }
        Ok(all)
    }

    #[cold]
    #[inline(never)]
    fn wait(&mut self, wanted: Wanted) -> Result<()> {
        let wait = Wait::begin();
        self.shared.counters.blocks(wait.began());
        self.links.wanted = wanted;
        let capacity = self.stream.capacity;
        let outcome = match (wanted, &mut self.links.all[..]) {
            (Wanted::Space(copy), all) if !matches!(all[copy], Tx::Memory(_)) => match &mut all[copy] {
                Tx::Channel(tx) => tx.wait_space(capacity),
                Tx::Vi(tx) => tx.wait_space(),
                Tx::Memory(_) | Tx::Socket(_) => Ok(()),
            },
            _ => sleep(&self.shared.bell, &mut self.waiter, &mut self.links),
        };
        self.shared.counters.blocked(wait.end());
        outcome
    }

    #[cold]
    fn mapped(&self, error: Error) -> Error {
        if self.shared.bell.is_cancelled() { Error::Cancelled } else { error }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.shared.bell.detach(&self.attached);
    }
}

impl Sources for Links {
    fn look(&mut self) -> Result<bool> {
        match self.wanted {
            Wanted::Space(copy) => Ok(!matches!(self.all[copy].has_space(self.capacity), Ok(false))),
            Wanted::Words(known) => {
                let mut all = 0;
                for link in &mut self.all {
                    all += link.begun()?;
                }
                Ok(all > known)
            }
        }
    }

    fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.all.iter().filter_map(|link| match link {
            Tx::Socket(tx) => Some(tx.stream().as_fd()),
            _ => None,
        })
    }

    fn lines(&self, each: &mut dyn FnMut(&Line)) {
        for link in &self.all {
            if let Tx::Vi(tx) = link {
                each(tx.line());
            }
        }
    }
}
