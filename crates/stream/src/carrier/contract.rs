//! What every carrier does: two halves and a watch.

use std::io::{IoSlice, IoSliceMut};

use sidestep_fabric::{EventQueue, event::SourceId, queue::Heir};
use sidestep_shm::{byte_ring::Stopper, cached::CachedFile};

use super::SharedNews;
use crate::path::End;

/// What differs from one carrier to another, beyond the contract. Who needs one of these asks for it, and not for the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// What `stat` calls it.
    pub kind: Kind,
    /// Its reader can make it larger: [`Inbound::grow`].
    pub grows: bool,
    /// Either end can end it by one word, whatever the other one does: [`Inbound::want`].
    pub freezes: bool,
    /// Bytes that were sent may still be here, and die with this process: [`Outbound::holds`].
    pub holds_back: bool,
    /// Long writes of a caller that waits may be taken from where they are, while the call lasts.
    pub lends: bool,
    /// Packets fill it, not bytes, and its reader says seldom what it has read.
    pub packets: bool,
    /// What was sent may be on its way for a while: the peer's memory is not mapped.
    pub far: bool,
}

/// The name of a kind, for people. Nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Rings in shared memory.
    Ring,
    /// A link over a VI, on a link of the fabric of this scheme.
    Via(&'static str),
    /// Memory of one process.
    Loopback,
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
    /// The carrier has been ended: the bytes go another way.
    Frozen,
}

/// What a half answers.
pub type Result<T> = std::result::Result<T, Fault>;

/// Where bytes are written. One thread at a time has it.
pub trait Outbound {
    /// Sends what fits, and says how much that was; who is patient may wait a moment for the reader. All parts go at once, as one
    /// call on TCP mostly arrives at once. [`Fault::Frozen`]: nothing was sent.
    fn send(&mut self, parts: &[IoSlice<'_>], patient: bool) -> Result<usize>;

    /// Sends bytes of a file as far as they are in memory and fit. Zero: they must be read first.
    fn send_file(&mut self, _file: &CachedFile, _offset: Option<u64>, _count: usize) -> Result<usize> {
        Ok(0)
    }

    /// After [`Fault::Frozen`] from [`send_file`](Self::send_file): what was read from the file.
    fn recall(&mut self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// Bytes that were sent since the beginning, with those that are held back.
    fn position(&self) -> u64;

    /// Bytes that would be taken now.
    fn space(&mut self) -> usize;

    /// Leaves one of the writer's two notes for the reader: it is seen after everything that was sent before.
    fn set_note(&mut self, which: usize, note: u64) -> Result<()>;

    /// Whether a note would go out at once.
    fn may_note(&self) -> bool {
        true
    }

    /// Leaves a count for the reader: who sees bytes that are sent from now on sees it, or a later one.
    fn set_count(&mut self, _count: u64) {}

    /// Whether the carrier may be left now: a note would go out at once, and nothing is on its way that the reader [gives
    /// back](Inbound::give).
    fn may_leave(&mut self) -> bool {
        self.may_note()
    }

    /// Takes nothing back from now on that the reader gives back. `false`: the reader has been told that all of it is here, and
    /// decides.
    fn refuse(&mut self) -> bool {
        true
    }

    /// Whether everything that was sent, the last note too, is with the reader; the mark is the caller's to keep.
    fn has_arrived(&self, _mark: &mut Option<u64>) -> bool {
        true
    }

    /// Whether bytes were taken that the peer does not have, and that cannot be sent now.
    fn holds(&self) -> bool {
        false
    }

    /// Before another path is taken: bytes that were sent and that the reader will not find here, from the first to the last.
    /// The position goes back by as many.
    fn take_back(&mut self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// Whether the carrier has been ended, by either side.
    fn is_frozen(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// How the carrier ends, as far as this side can know: [`End::Taken`] and [`End::Sent`] are the caller's to keep. What a peer
    /// that can only be asked says is in its note.
    fn end(&mut self) -> Result<End> {
        Ok(End::Open)
    }

    /// Ends the carrier from this side, by one word. `None`: there is no such word, and a note has to say it.
    fn freeze(&mut self) -> Option<Result<()>> {
        None
    }

    /// Goes on in what the reader has offered by [`Inbound::grow`]. Returns how many bytes fit from now on, if that has changed.
    fn adopt_larger(&mut self) -> Option<u64> {
        None
    }

    /// Gives memory that is free back to the machine.
    fn release(&mut self) {}

    /// What a forked child needs to end this half, if it can be ended by one word.
    fn stopper(&mut self) -> Option<Stopper> {
        None
    }

    /// How far the peer has read by its own word, if that can be known after its death.
    fn witness(&self) -> Option<u64>;

    /// How far it has come.
    fn written(&self) -> Written {
        Written { position: self.position(), next_place: std::ptr::null(), alarms: 0 }
    }
}

/// How far a sending half has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Bytes that were sent since the beginning.
    pub position: u64,
    /// Where the next byte belongs, for hints to the processor.
    pub next_place: *const u8,
    /// How often the peer slept and was woken, if that is counted.
    pub alarms: u64,
}

/// Where bytes are read. One thread at a time has it.
pub trait Inbound {
    /// Takes bytes, as many as are there and fit. Bytes that arrived are there also after the peer has gone.
    fn receive(&mut self, bytes: &mut [u8]) -> Result<usize>;

    /// Shows bytes from `skip` bytes ahead on.
    fn peek(&mut self, skip: usize, bytes: &mut [u8]) -> Result<usize>;

    /// Drops bytes that are there.
    fn consume(&mut self, count: usize) -> Result<()>;

    /// Bytes that can be taken, all that have come.
    fn available(&mut self) -> usize;

    /// Whether there may be something. A look at memory, which another thread may be about to change.
    fn has_news(&mut self) -> bool;

    /// Takes in all that was sent before this moment, whoever is about to.
    fn settle(&self) {}

    /// Bytes that were read since the beginning.
    fn position(&mut self) -> u64;

    /// Leaves word how far has been read, for a peer that outlives this process. Returns that position, and where the next byte
    /// lies, or will, for hints to the processor.
    fn testify(&mut self) -> (u64, *const u8);

    /// Whether bytes are there without a look at what the peer writes. Who can only look says that they are.
    fn has_known(&mut self) -> bool {
        true
    }

    /// Leaves the reader's note for the writer.
    fn set_note(&mut self, note: u64) -> Result<()>;

    /// Bytes that fit into it.
    fn capacity(&mut self) -> usize;

    /// Offers room for so many bytes to the writer. `false`: it stays as it is.
    fn grow(&mut self, _bytes: usize) -> bool {
        false
    }

    /// Ends the carrier, and wants what was not read to come over TCP. `Ok(false)`: everything was read. `None`: only the peer
    /// can end it.
    fn want(&mut self) -> Option<Result<bool>> {
        None
    }

    /// Ends the carrier, and reads what lies before its end. `None`: only the peer can end it.
    fn freeze(&mut self) -> Option<Result<()>> {
        None
    }

    /// Whether the carrier has ended by one word.
    fn has_end(&mut self) -> bool {
        false
    }

    /// Whether it was wanted, and neither taken nor [withdrawn](Inbound::withdraw) as far as this half knows.
    fn is_wanted(&mut self) -> bool {
        false
    }

    /// Whether what was wanted has been taken.
    fn is_taken(&mut self) -> bool {
        false
    }

    /// Wants it no more: unless it was taken, it is read here.
    fn withdraw(&mut self) -> Result<()> {
        Ok(())
    }

    /// Where only the writer can end the carrier, after a note that says [`wanted`](super::Reading::wanted): gives what was not read
    /// back to the writer, and what comes from now on. Nobody reads that until it is decided. To be called until the writer has
    /// all of it, and how many bytes that is. Then a note may say [`given`](super::Reading::given).
    fn give(&mut self) -> Option<u64> {
        None
    }

    /// What was given back, and not said to be, is read here after all.
    fn keep(&mut self) {}

    /// Whether the carrier has ended, and was read to its end.
    fn is_over(&mut self) -> bool {
        false
    }

    /// What a forked child needs to end this half and read what is left, if that can be done without this process.
    fn heir(&mut self) -> Option<Heir> {
        None
    }

    /// The carrier has ended at this position, and a family of processes reads what is left of it.
    fn skip_to_end(&mut self, _end: u64) {}

    /// Takes bytes into several parts, or only shows or drops them.
    fn receive_parts(&mut self, parts: &mut [IoSliceMut<'_>], mode: Mode) -> Result<usize> {
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

    /// As [`has_news`](Self::has_news), with all that was sent before this moment.
    fn has_news_now(&mut self) -> bool {
        self.settle();
        self.has_news()
    }
}

/// What any thread may look at and wait for. Nothing here waits.
pub trait Watch {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// How far the peer has written; to compare with an earlier answer.
    fn written(&self) -> u64;

    /// How far the peer has read; to compare with an earlier answer.
    fn read(&self) -> u64;

    /// Whether what the peer writes to has been ended by one word ([`Capabilities::freezes`]), by either side.
    fn is_frozen(&self) -> bool {
        false
    }

    /// A note of the peer's writer. Bytes that were sent before it are there.
    fn writer_note(&self, which: usize) -> u64;

    /// The count that the peer's writer left ([`Outbound::set_count`]); how far it has written, if it leaves none.
    fn writer_count(&self) -> u64 {
        self.written()
    }

    /// The note of the peer's reader.
    fn reader_note(&self) -> u64;

    /// How often the peer has given something back; to compare with an earlier answer.
    fn returns(&self) -> u64 {
        0
    }

    /// Where the peer last ran.
    fn peer_core(&self) -> u32;

    /// Sees whether the connection underneath stands.
    fn stands(&self) -> bool;

    /// From now on what arrives is news of the node; look again after this.
    fn arm_arrival(&self);

    /// The same for space.
    fn arm_space(&self);

    /// The last thing before a sleep, when it has been announced: what other threads are about to take is taken, and what the
    /// peer may wait for is told.
    fn settle(&self) {}

    /// Takes in all that was sent before this moment, whoever is about to: what a look may leave to another thread.
    fn take_in(&self) {}

    /// Lets news come to an event queue: arrivals with this token, and space with it or the next one.
    fn attach(&self, news: &EventQueue, token: u64) -> Vec<SourceId>;

    /// Ends that.
    fn detach(&self, news: &EventQueue, source: SourceId);

    /// Armed both ways, it may be left alone until its news comes to the queue. `false`: it must be looked at; if there are
    /// `many`, only where that is needed.
    fn may_rest(&self, _many: bool) -> bool {
        true
    }

    /// Where news of all carriers of its kind comes in, if they share that.
    fn shared_news(&self) -> Option<SharedNews> {
        None
    }

    /// Wakes the peer, and says nothing.
    fn nudge(&self);

    /// TCP_NODELAY: small writes are not combined.
    fn set_prompt(&self, _prompt: bool) {}

    /// A look found nothing to read: what waits for that moment is done.
    fn found_nothing(&self) {}

    /// As [`Outbound::has_arrived`].
    fn has_arrived(&self, _mark: &mut Option<u64>) -> bool {
        true
    }

    /// What tells that the peer's reader moves; to compare with an earlier answer.
    fn said(&self) -> (u64, u64) {
        (self.read(), 0)
    }

    /// Of what the peer's reader has [`said`](Self::said): how far it has come, and by how much one moves that is at work.
    fn progress(&self, said: (u64, u64)) -> (u64, u64) {
        (said.0, 1)
    }

    /// How much of it has been filled since the beginning, when so many bytes were sent: bytes, or packets.
    fn filled(&self, pushed: u64) -> u64 {
        pushed
    }

    /// So much is filled after a reader moved that is at work, if it takes so many bytes.
    fn much(&self, capacity: u64) -> u64 {
        capacity / 2
    }

    /// Whether enough is free that a writer should be told, with so many bytes in flight of so many that fit.
    fn has_space(&self, in_flight: impl FnOnce() -> u64, capacity: u64) -> bool {
        in_flight() <= capacity - capacity / 4
    }

    /// Whether there is space that what was [`read`](Self::read) does not show.
    fn has_other_space(&self) -> bool {
        false
    }

    /// Whether nothing fits though few bytes are under way.
    fn is_choked(&self) -> bool {
        false
    }
}
