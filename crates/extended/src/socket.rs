//! An extended socket: what one end of a TCP connection can do beyond the stream of bytes.
//!
//! **Order.** An operation has taken effect when its call returns (`put`, `get`, `compare_swap`, `fetch_add`) or its completion is
//! taken. Bytes that are written to the socket after that are read by the other end after it; and what the other end had done
//! before it wrote bytes is seen by operations that begin after those bytes were read. An operation under way and bytes on their way have
//! no order. Operations of one socket take effect in the order in which they were called; so do messages and notices.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use sidestep_fabric::{
    self as fabric, Aperture, CloseReason, Endpoint, RdmaQueue, RegionSlice, Rights, event::SourceId, rdma::RequestId,
};
use sidestep_shm::wait::Waiter;
use sidestep_sys::{
    cpu,
    lock::{Mutex, MutexGuard},
};

use crate::{
    board::{Count, Row},
    completion::{Completion, CompletionQueue, Kind},
    direct::{BUFFER, Direct, check_range},
    error::{Error, Result},
    flow::Flow,
    meeting::Met,
    posted::Posted,
    region::{Piece, Region, Remote},
    stack::Stack,
};

/// One end of a connection that both ends have enabled. Dropping it ends the extension; the TCP connection goes on.
#[derive(Debug)]
pub struct Socket {
    core: Arc<Core>,
}

#[derive(Debug)]
pub(crate) struct Core {
    number: u64,
    stack: Stack,
    queue: CompletionQueue,
    sources: Vec<SourceId>,
    /// When the node was last looked at, by the processor's counter.
    looked: AtomicU64,
    over: AtomicBool,
    /// Posted operations that have not been collected: the others wait for them.
    in_flight: AtomicUsize,
    direct: Mutex<Direct>,
    posted: Mutex<Posted>,
    flow: Mutex<Flow>,
    /// Where others see what it does; `None` if there is no room.
    row: Option<Row>,
    /// Dropped last: its close promises that nothing is written after.
    endpoint: Endpoint,
}

impl Socket {
    pub(crate) fn new(stack: Stack, number: u64, met: Met, queue: &CompletionQueue) -> Result<Socket> {
        let Met { mut sender, mut receiver, key, endpoint } = met;
        let maps = stack.node().peer(endpoint.peer()).maps();
        let posted = Posted::new(stack.node());
        let events = queue.events();
        let sources = vec![
            events.attach_rdma(posted.queue(), number),
            events.attach_endpoint(&endpoint, number),
            events.attach_receiver(&mut receiver, number)?,
            events.attach_sender(&mut sender, number)?,
        ];
        let core = Arc::new(Core {
            number,
            queue: queue.clone(),
            sources,
            looked: AtomicU64::new(cpu::ticks()),
            over: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
            direct: Mutex::new(Direct::new(&stack)?),
            posted: Mutex::new(posted),
            flow: Mutex::new(Flow::new(sender, receiver)),
            row: stack.board.as_ref().and_then(|board| board.row(number, &key, maps)),
            endpoint,
            stack,
        });
        queue.add(number, &core);
        core.advance();
        Ok(Socket { core })
    }

    /// Names it in completions.
    pub fn number(&self) -> u64 {
        self.core.number
    }

    /// Whether no posted operation is under way: then one on mapped memory waits for nobody.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.core.in_flight.load(Ordering::Acquire) == 0
    }

    /// Lets the other end reach a region, with some of the rights that it was registered with. `tag` says which one it is.
    pub fn export(&self, region: &Region, rights: Rights, tag: u64) -> Result<()> {
        self.core.check()?;
        region.check_rights(rights)?;
        let cookie = self.core.endpoint.share(&region.inner, rights)?;
        self.core.send(|flow| flow.export(tag, &cookie))?;
        self.core.count(Count::Exports, 1);
        self.core.count(Count::ExportedBytes, region.len() as u64);
        Ok(())
    }

    /// The next region that the other end has exported; waits for it until the deadline.
    pub fn import(&self, deadline: Option<u64>) -> Result<Remote> {
        let core = &self.core;
        core.check()?;
        let mut waiter = Waiter::default();
        let export = core.stack.node().wait_for(&mut waiter, deadline, &mut || {
            core.advance();
            let export = core.flow().take_export();
            match (export, core.check_open()) {
                (Some(export), _) => Some(Ok(export)),
                (None, Err(error)) => Some(Err(error)),
                (None, Ok(())) => None,
            }
        })??;
        let aperture = Aperture::open(&core.endpoint, &export.cookie, deadline)?;
        core.count(Count::Imports, 1);
        core.count(Count::ImportedBytes, export.cookie.len() as u64);
        Ok(Remote::new(aperture, core.number, export.tag))
    }

    /// Writes bytes into memory of the other end. They are there when this returns.
    pub fn put(&self, remote: &Remote, offset: usize, bytes: &[u8]) -> Result<()> {
        self.core.begin(remote, Count::Puts)?;
        if remote.aperture.is_mapped() {
            return Ok(remote.aperture.write(offset, bytes)?);
        }
        self.core.direct(|direct| {
            check_range(remote, offset, bytes.len())?;
            for (index, part) in bytes.chunks(BUFFER).enumerate() {
                direct.buffer.write(0, part)?;
                let slice = direct.buffer.slice(0, part.len())?;
                let id = direct.queue.write(&slice, &remote.aperture, offset + index * BUFFER)?;
                direct.queue.wait(id, None)?;
            }
            Ok(())
        })
    }

    /// Reads bytes of the other end's memory.
    #[inline]
    pub fn get(&self, remote: &Remote, offset: usize, into: &mut [u8]) -> Result<()> {
        self.core.begin(remote, Count::Gets)?;
        if remote.aperture.read(offset, into)? {
            return Ok(());
        }
        self.core.direct(|direct| {
            check_range(remote, offset, into.len())?;
            for (index, part) in into.chunks_mut(BUFFER).enumerate() {
                let slice = direct.buffer.slice(0, part.len())?;
                let id = direct.queue.read(&remote.aperture, offset + index * BUFFER, &slice)?;
                direct.queue.wait(id, None)?;
                direct.buffer.read(0, part)?;
            }
            Ok(())
        })
    }

    /// Stores `new` in an aligned word of 64 bits if it holds `expected`; returns what it held.
    pub fn compare_swap(&self, remote: &Remote, offset: usize, expected: u64, new: u64) -> Result<u64> {
        self.atomic(remote, |queue, into| queue.compare_swap(&remote.aperture, offset, expected, new, into))
    }

    /// Adds to an aligned word of 64 bits; returns what it held.
    pub fn fetch_add(&self, remote: &Remote, offset: usize, value: u64) -> Result<u64> {
        self.atomic(remote, |queue, into| queue.fetch_add(&remote.aperture, offset, value, into))
    }

    /// Posts a write of several pieces, one behind the other, to `offset` of the other end's memory.
    pub fn post_put(&self, remote: &Remote, offset: usize, pieces: Vec<Piece>, token: u64) -> Result<()> {
        self.core.post(Kind::Put, (remote, offset), pieces, token)
    }

    /// Posts a read from `offset` of the other end's memory into several pieces.
    pub fn post_get(&self, remote: &Remote, offset: usize, pieces: Vec<Piece>, token: u64) -> Result<()> {
        self.core.post(Kind::Get, (remote, offset), pieces, token)
    }

    /// Posts a message, gathered from several pieces.
    pub fn post_send(&self, pieces: Vec<Piece>, token: u64) -> Result<()> {
        self.core.check()?;
        self.core.send(|flow| flow.post_send(pieces.clone(), token))
    }

    /// Posts memory for the next message.
    pub fn post_recv(&self, pieces: Vec<Piece>, token: u64) -> Result<()> {
        self.core.check()?;
        self.core.flow().post_receive(pieces, token)?;
        self.core.advance();
        Ok(())
    }

    /// Tells the other end a number, after every operation that was called before: waits until those have taken effect.
    pub fn notify(&self, value: u64) -> Result<()> {
        self.core.check()?;
        self.core.drain()?;
        self.core.send(|flow| flow.notify(value))
    }

    /// Waits until every operation that was posted before has taken effect, and every message is in the other end's ring.
    /// What failed is told by completions.
    pub fn fence(&self) -> Result<()> {
        let core = &self.core;
        core.check()?;
        core.drain()?;
        let mut waiter = Waiter::default();
        core.stack.node().wait_for(&mut waiter, None, &mut || {
            core.advance();
            let all = core.flow().has_sent_all();
            (all || core.check_open().is_err()).then_some(())
        })?;
        core.check_open()
    }

    fn atomic(
        &self,
        remote: &Remote,
        ask: impl FnOnce(&RdmaQueue, &RegionSlice) -> fabric::Result<RequestId>,
    ) -> Result<u64> {
        self.core.begin(remote, Count::Atomics)?;
        self.core.direct(|direct| {
            let id = ask(&direct.queue, &direct.buffer.slice(0, 8)?)?;
            direct.queue.wait(id, None)?;
            // Read here alone: no other thread has the lock, and the peer has no cookie for it.
            Ok(direct.buffer.word64(0)?.load(Ordering::Acquire))
        })
    }
}

impl Socket {
    /// Whether these bytes lie in a remote region: for callers that move them in parts, all or none.
    pub fn check_range(&self, remote: &Remote, offset: usize, len: usize) -> Result<()> {
        check_range(remote, offset, len)
    }
}

impl Core {
    #[inline]
    fn count(&self, count: Count, value: u64) {
        if let Some(row) = &self.row {
            row.add(count, value);
        }
    }

    /// Before an operation on memory of the other end.
    #[inline]
    fn begin(&self, remote: &Remote, what: Count) -> Result<()> {
        if remote.socket != self.number {
            return Err(Error::OtherSocket);
        }
        self.stack.check()?;
        // The fabric is looked at now and then: whether the peer lives, and what it has taken back.
        let now = cpu::ticks();
        if cpu::is_long(now.wrapping_sub(self.looked.load(Ordering::Relaxed))) {
            self.look(now);
        }
        if self.over.load(Ordering::Acquire) {
            return self.check_open();
        }
        self.count(what, 1);
        if self.in_flight.load(Ordering::Acquire) > 0 { self.drain() } else { Ok(()) }
    }

    #[cold]
    fn look(&self, now: u64) {
        self.looked.store(now, Ordering::Relaxed);
        self.stack.node().progress_kernel();
        if self.endpoint.closed().is_some() {
            self.advance();
        }
    }

    fn check(&self) -> Result<()> {
        self.stack.check()?;
        self.check_open()
    }

    fn check_open(&self) -> Result<()> {
        match self.endpoint.closed() {
            Some((error, _)) if self.over.load(Ordering::Acquire) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// One operation at a time through the queue and its buffer.
    fn direct<T>(&self, act: impl FnOnce(&mut Direct) -> Result<T>) -> Result<T> {
        let mut direct = self.direct.lock().expect("no panic in an operation");
        let outcome = act(&mut direct);
        if outcome.is_err() {
            direct.queue.reset();
        }
        outcome
    }

    fn post(&self, kind: Kind, (remote, offset): (&Remote, usize), pieces: Vec<Piece>, token: u64) -> Result<()> {
        self.check()?;
        if remote.socket != self.number {
            return Err(Error::OtherSocket);
        }
        let mut posted = self.posted.lock().expect("no panic in a post");
        let outcome = posted.post(kind, (&remote.aperture, offset), pieces, token);
        self.in_flight.store(posted.len(), Ordering::Release);
        self.count(if kind == Kind::Put { Count::Puts } else { Count::Gets }, u64::from(outcome.is_ok()));
        outcome
    }

    /// Queues something to be sent, and sends what fits.
    fn send(&self, queue: impl Fn(&mut Flow) -> Result<()>) -> Result<()> {
        let queued = queue(&mut self.flow());
        self.advance();
        match queued {
            // There may be room now.
            Err(Error::Full { .. }) => queue(&mut self.flow()),
            queued => queued,
        }
    }

    /// Waits until every posted operation has ended.
    #[cold]
    fn drain(&self) -> Result<()> {
        loop {
            let mut posted = self.posted.lock().expect("no panic in a post");
            let Some(last) = posted.last() else { return Ok(()) };
            let queue = posted.queue().clone();
            if queue.test(last) == Ok(false) {
                drop(posted);
                // Whether it failed is told by its completion.
                let _ = queue.wait(last, None);
                self.check_open()?;
                continue;
            }
            self.collect(&mut posted);
        }
    }

    /// Reports the posted operations that have ended, in their order: the lock is held meanwhile.
    fn collect(&self, posted: &mut Posted) {
        let mut completions = Vec::new();
        posted.collect(self.number, &mut completions);
        self.in_flight.store(posted.len(), Ordering::Release);
        self.queue.push(completions);
    }

    /// Goes on with everything that waits, and reports what has ended.
    pub(crate) fn advance(&self) {
        if !self.stack.is_own() || self.over.load(Ordering::Acquire) {
            return;
        }
        // Held until the completions are in the queue: another thread's come behind them.
        let mut flow = self.flow();
        let mut completions = Vec::new();
        let closed = self.endpoint.closed().map(|(error, _)| error);
        self.collect(&mut self.posted.lock().expect("no panic in a post"));
        // What came before the end is there.
        let taken = flow.take_in(self.number, self.queue.room(), &mut completions);
        let pushed = flow.push_out(self.number, &mut completions);
        if taken == Ok(false) {
            self.queue.hold_back();
        }
        self.count_messages(&completions);
        let error = closed.or(taken.err()).or(pushed.err());
        if let Some(error) = error {
            self.end(&mut flow, error, &mut completions);
        }
        self.queue.push(completions);
    }

    fn count_messages(&self, completions: &[Completion]) {
        for completion in completions.iter().filter(|completion| completion.outcome.is_ok()) {
            match completion.kind {
                Kind::Send => self.count(Count::Sends, 1),
                Kind::Receive => self.count(Count::Receives, 1),
                Kind::Notice => self.count(Count::Notices, 1),
                Kind::Put | Kind::Get | Kind::Export | Kind::Closed => {}
            }
        }
    }

    /// The extension is over.
    #[cold]
    fn end(&self, flow: &mut Flow, error: fabric::Error, completions: &mut Vec<Completion>) {
        if self.over.swap(true, Ordering::AcqRel) {
            return;
        }
        // A peer that broke the protocol is told by the end of the connection.
        self.endpoint.close();
        let cause = Error::from(error.clone());
        self.posted.lock().expect("no panic in a post").end(self.number, &cause, completions);
        self.in_flight.store(0, Ordering::Release);
        flow.end(self.number, &cause, completions);
        completions.push(Completion::closed(self.number, error));
    }

    fn flow(&self) -> MutexGuard<'_, Flow> {
        self.flow.lock().expect("no panic in a flow")
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if !self.core.stack.is_own() {
            // In a forked child: whatever it gave up, it would give up in the parent's name.
            std::mem::forget(self.core.clone());
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.queue.remove(self.number);
        self.sources.iter().for_each(|source| self.queue.events().detach(*source));
        self.endpoint.close();
        // The line to the peer is of this socket alone. What was said on it before arrives.
        let node = self.stack.node();
        node.progress_kernel();
        node.peer(self.endpoint.peer()).close(CloseReason::Here);
    }
}
