//! The two ends of a direction that has left the kernel: of a ring in shared memory, or of a link over a VI.

use std::{
    io::{IoSlice, IoSliceMut},
    sync::Arc,
};

use sidestep_fabric::{
    Error,
    queue::{Receiver, Sender},
};
use sidestep_shm::cached::CachedFile;

use super::{ENDED, via::Link};

/// Where bytes are written.
#[derive(Debug)]
// Every message touches the ring: no pointer is followed to it.
#[allow(clippy::large_enum_variant)]
pub enum Outgoing {
    /// A ring in memory of the peer.
    Ring(Sender),
    /// A link.
    Via(Arc<Link>),
}

/// Where bytes are read.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Incoming {
    /// A ring in memory of this process.
    Ring(Receiver),
    /// A link, and how far it has been read.
    Via(Arc<Link>, u64),
}

/// What becomes of bytes that are received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They are given to the caller.
    Take,
    /// They are shown, and stay.
    Peek,
    /// They are dropped unseen.
    Discard,
}

/// Why bytes do not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection underneath is over.
    Closed,
    /// What lies there is not what a correct peer writes.
    Broken,
    /// The ring has been ended: the bytes go another way.
    Frozen,
}

type Result<T, E = Fault> = std::result::Result<T, E>;

/// Writes of several parts up to this size go as one.
const GATHERED: usize = 4 << 10;

impl Outgoing {
    /// Sends what fits; who is patient may wait a moment for the reader. All parts are published at once, as one call on TCP mostly arrives at once.
    #[inline]
    pub fn send(&mut self, parts: &[IoSlice<'_>], patient: bool) -> Result<usize> {
        match (self, parts) {
            (Outgoing::Ring(ring), [part]) => Ok(ring.try_send(part)?),
            (Outgoing::Ring(ring), parts) => push_parts(ring, parts),
            (Outgoing::Via(link), [part]) if patient => link.send_or_lend(part).map_err(|_| Fault::Closed),
            (Outgoing::Via(link), [part]) => link.send(part).map_err(|_| Fault::Closed),
            (Outgoing::Via(link), parts) => send_parts(link, parts),
        }
    }

    /// Sends bytes of a file as far as they are in memory and fit; none over a link.
    pub fn send_file(&mut self, file: &CachedFile, offset: Option<u64>, count: usize) -> Result<usize> {
        let Outgoing::Ring(ring) = self else { return Ok(0) };
        let count = ring.push_file(file, offset, count)?;
        if count > 0 {
            ring.publish()?;
        }
        Ok(count)
    }

    /// What was put into a ring that had ended.
    pub fn recall(&mut self) -> Result<Vec<u8>> {
        match self {
            Outgoing::Ring(ring) => Ok(ring.recall()?),
            Outgoing::Via(_) => Ok(Vec::new()),
        }
    }

    /// Whether the ring has been ended, by either side. A look at memory of the peer's.
    pub fn is_frozen(&mut self) -> Result<bool> {
        match self {
            Outgoing::Ring(ring) => Ok(ring.frozen()?.is_some()),
            Outgoing::Via(_) => Ok(false),
        }
    }

    /// How far has been written.
    #[inline]
    pub fn position(&self) -> u64 {
        match self {
            Outgoing::Ring(ring) => ring.position(),
            Outgoing::Via(link) => link.sent() + link.held() as u64,
        }
    }

    /// Where the next byte belongs, for hints to the processor.
    #[inline]
    pub fn next_place(&self) -> *const u8 {
        match self {
            Outgoing::Ring(ring) => ring.next_place(),
            Outgoing::Via(_) => std::ptr::null(),
        }
    }

    /// Bytes that would be taken now.
    pub fn space(&mut self) -> usize {
        match self {
            Outgoing::Ring(ring) => ring.space().unwrap_or(0),
            Outgoing::Via(link) => link.space(),
        }
    }

    /// Gives the pages of a ring that are free back to the machine.
    pub fn release(&mut self) {
        if let Outgoing::Ring(ring) = self {
            // A ring that is gone, or broken, is told of by the next write.
            let _ = ring.release();
        }
    }

    /// Leaves a note for the reader, after everything that was written.
    pub fn set_note(&mut self, which: usize, note: u64) -> Result<()> {
        match self {
            Outgoing::Ring(ring) => Ok(ring.set_note(which, note)?),
            Outgoing::Via(link) => link.set_writer_note(which, note, note & ENDED != 0).map_err(|_| Fault::Closed),
        }
    }

    /// Whether a note would be with the reader at once.
    pub fn may_note(&self) -> bool {
        match self {
            Outgoing::Ring(_) => true,
            Outgoing::Via(link) => link.may_note() || link.is_lost(),
        }
    }

    /// Whether everything that was written, the last note too, is with the reader; the mark is this call's to keep.
    pub fn has_arrived(&self, mark: &mut Option<u64>) -> bool {
        match self {
            Outgoing::Ring(_) => true,
            Outgoing::Via(link) => link.has_arrived(mark),
        }
    }

    /// Whether bytes were taken that the peer does not have, and that cannot be sent now.
    pub fn holds(&self) -> bool {
        match self {
            Outgoing::Ring(_) => false,
            Outgoing::Via(link) => !link.flush(),
        }
    }

    /// Before another path is taken: what was written and cannot be delivered on this one, or is wanted on the other one by
    /// the reader.
    pub fn take_back(&mut self) -> Result<Vec<u8>> {
        match self {
            Outgoing::Ring(ring) => Ok(ring.take()?.unwrap_or_default()),
            Outgoing::Via(link) if !link.flush() => Ok(link.take_back()),
            Outgoing::Via(_) => Ok(Vec::new()),
        }
    }

    /// How far the peer has read by its own word, if it can be known.
    pub fn witness(&self) -> Option<u64> {
        match self {
            Outgoing::Ring(ring) => ring.witness(),
            Outgoing::Via(link) => Some(link.witnessed()),
        }
    }

    /// How often the peer slept and was woken, if that is counted.
    #[inline]
    pub fn alarms(&self) -> u64 {
        match self {
            Outgoing::Ring(ring) => ring.alarms(),
            Outgoing::Via(_) => 0,
        }
    }
}

impl Incoming {
    /// Takes bytes.
    #[inline]
    pub fn receive(&mut self, bytes: &mut [u8]) -> Result<usize> {
        match self {
            Incoming::Ring(ring) => Ok(ring.try_receive(bytes)?),
            Incoming::Via(link, position) => {
                let count = link.receive(bytes).map_err(|_| Fault::Closed)?;
                *position = link.position();
                Ok(count)
            }
        }
    }

    /// Takes bytes into several parts, or only shows or drops them.
    pub fn receive_parts(&mut self, parts: &mut [IoSliceMut<'_>], mode: Mode) -> Result<usize> {
        let mut total = 0;
        for part in parts {
            let count = match mode {
                Mode::Take => self.receive(part)?,
                Mode::Peek => self.peek(total, part)?,
                Mode::Discard => {
                    let count = self.available().min(part.len());
                    self.consume(count)?;
                    count
                }
            };
            total += count;
            if count < part.len() {
                break;
            }
        }
        Ok(total)
    }

    /// Shows bytes from `skip` bytes ahead on.
    pub fn peek(&mut self, skip: usize, bytes: &mut [u8]) -> Result<usize> {
        match self {
            Incoming::Ring(ring) => Ok(ring.peek(skip, bytes)?),
            Incoming::Via(link, _) => link.peek(skip, bytes).map_err(|_| Fault::Closed),
        }
    }

    fn consume(&mut self, count: usize) -> Result<()> {
        match self {
            Incoming::Ring(ring) => Ok(ring.consume(count)?),
            Incoming::Via(link, position) => {
                link.consume(count).map_err(|_| Fault::Closed)?;
                *position = link.position();
                Ok(())
            }
        }
    }

    /// Where the next byte lies, or will, for hints to the processor.
    #[inline]
    pub fn next_place(&mut self) -> *const u8 {
        match self {
            Incoming::Ring(ring) => ring.next_place(),
            Incoming::Via(..) => std::ptr::null(),
        }
    }

    /// Bytes that can be taken, all that have come.
    pub fn available(&mut self) -> usize {
        match self {
            Incoming::Ring(ring) => ring.available().unwrap_or(0),
            Incoming::Via(link, _) => {
                link.settle();
                link.available()
            }
        }
    }

    /// Whether there may be something. A look at memory, which another thread may be about to change.
    #[inline]
    pub fn has_news(&mut self) -> bool {
        match self {
            Incoming::Ring(ring) => ring.has_news(),
            Incoming::Via(link, position) => {
                let news = link.written() != *position;
                if !news {
                    link.found_nothing();
                }
                news
            }
        }
    }

    /// Takes all that was sent before this moment, whoever is about to.
    #[inline]
    pub fn settle(&self) {
        if let Incoming::Via(link, _) = self {
            link.settle();
        }
    }

    /// As `has_news`, with all that was sent before this moment.
    pub fn has_news_now(&mut self) -> bool {
        self.settle();
        self.has_news()
    }

    /// How far has been read.
    #[inline]
    pub fn position(&mut self) -> u64 {
        match self {
            Incoming::Ring(ring) => ring.position(),
            Incoming::Via(_, position) => *position,
        }
    }

    /// Leaves word how far has been read, for a peer that outlives this process.
    #[inline]
    pub fn testify(&mut self) {
        match self {
            Incoming::Ring(ring) => ring.testify(),
            Incoming::Via(link, _) => link.testify(),
        }
    }

    /// Leaves a note for the writer.
    pub fn set_note(&mut self, note: u64) -> Result<()> {
        match self {
            Incoming::Ring(ring) => Ok(ring.set_note(note)?),
            Incoming::Via(link, _) => link.set_reader_note(note).map_err(|_| Fault::Closed),
        }
    }

    /// Ends the ring, and wants what was not read to come over TCP. `None`: only the peer can end a link.
    pub fn want(&mut self) -> Option<Result<bool>> {
        match self {
            Incoming::Ring(ring) if ring.can_freeze() => Some(ring.want().map_err(Fault::from)),
            _ => None,
        }
    }

    /// Whether what was wanted has been taken.
    pub fn is_taken(&mut self) -> bool {
        match self {
            Incoming::Ring(ring) => ring.is_taken() == Ok(true),
            Incoming::Via(..) => false,
        }
    }

    /// Wants it no more.
    pub fn withdraw(&mut self) -> Result<()> {
        match self {
            Incoming::Ring(ring) if ring.can_freeze() => Ok(ring.withdraw().map(|_| ())?),
            _ => Ok(()),
        }
    }

    /// Whether the ring has ended, and was read to its end.
    #[inline]
    pub fn is_over(&mut self) -> bool {
        match self {
            Incoming::Ring(ring) => ring.end_position().is_some_and(|end| end == ring.position()),
            Incoming::Via(..) => false,
        }
    }

    /// The ring, if it is one: those grow.
    pub fn ring(&mut self) -> Option<&mut Receiver> {
        match self {
            Incoming::Ring(ring) => Some(ring),
            Incoming::Via(..) => None,
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        match error {
            Error::Closed(_) => Fault::Closed,
            Error::Frozen => Fault::Frozen,
            _ => Fault::Broken,
        }
    }
}

fn push_parts(ring: &mut Sender, parts: &[IoSlice<'_>]) -> Result<usize> {
    let mut total = 0;
    for part in parts {
        let count = ring.push(part)?;
        total += count;
        if count < part.len() {
            break;
        }
    }
    if total > 0
        && let Err(error) = ring.publish()
    {
        // They are the caller's still.
        ring.recall()?;
        return Err(error.into());
    }
    Ok(total)
}

fn send_parts(link: &Arc<Link>, parts: &[IoSlice<'_>]) -> Result<usize> {
    let (mut gathered, mut total) = (Vec::with_capacity(GATHERED), 0);
    for part in parts {
        if gathered.len() + part.len() <= GATHERED {
            gathered.extend_from_slice(part);
            continue;
        }
        let count = link.send(&gathered).map_err(|_| Fault::Closed)?;
        total += count;
        if count < gathered.len() {
            return Ok(total);
        }
        gathered.clear();
        let count = link.send(part).map_err(|_| Fault::Closed)?;
        total += count;
        if count < part.len() {
            return Ok(total);
        }
    }
    Ok(total + link.send(&gathered).map_err(|_| Fault::Closed)?)
}
