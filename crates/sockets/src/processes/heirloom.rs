//! What a family of processes shares of a stream after a `fork`: bytes that come before those of TCP. Each is read once, by
//! whoever asks first.
//!
//! They are a copy of what a process had taken off its carrier and not read; or they lie in a ring still. A ring has an
//! *owner*, the process that forked, and `fork` moves nothing: the owner reads and writes on as before. A holder that wants to
//! do something with the stream *takes over*: it ends the rings of both directions. From then on every holder reads what is
//! left, and goes on over TCP, where the kernel sees to the order.
//!
//! One word of memory that the family shares says how far the bytes were read, and whether the ring was taken over. Who moves
//! it has the bytes: the owner, too, copies first and then moves the word, and drops its copy if it could not.
//!
//! A program that a holder executes has no ring. What lies there does not change any more once it was taken over, so the program
//! is given a copy of it, and moves the same word as the others: that of a ring is in the record of custody.

use std::{
    io::IoSliceMut,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    },
    time::Duration,
};

use sidestep_fabric::queue::Heir;
use sidestep_shm::{Memory, Span, Word64, byte_ring::Stopper};
use sidestep_stream::carrier::Reading;
use sidestep_sys::{clock, process};

use crate::{
    kernel,
    processes::custody,
    streams::{READ, WRITE},
};

/// Bytes of one stream.
#[derive(Debug)]
pub struct Heirloom {
    word: Word64,
    /// Bytes that the peer has sent over TCP in the end.
    returned: Word64,
    /// Of the ring that the owner has written, what the peer wants over TCP. Bits 0-39: the holder that sends it; 0: none does, or
    /// all of it is there. Bits 40-63: how many bytes that are.
    resent: Word64,
    /// These words are in the record of custody, where a program that is executed finds them.
    recorded: bool,
    source: Source,
}

/// Who has asked the peer for the bytes, and [decides](Heirloom::decide) when it has waited long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// This holder.
    Own,
    /// Another one.
    Others,
}

/// Where the bytes lie.
#[derive(Debug)]
enum Source {
    /// In memory of their own, from this position of the stream's carrier on. They never change.
    Copy(Span, u64),
    /// In a ring.
    Ring(Rings),
}

/// While it lives, this process sends over TCP what the peer wants of the ring that it has written. Who takes over meanwhile waits:
/// what it writes comes behind that.
#[derive(Debug)]
pub struct Resending(Arc<Heirloom>);

impl Resending {
    /// So many bytes were taken back for that.
    pub fn took_back(&self, bytes: usize) {
        let holder = self.0.resent.load(Ordering::Relaxed) & HOLDER;
        self.0.resent.store(holder | (bytes as u64) << HOLDER_BITS, Ordering::Release);
    }
}

impl Drop for Resending {
    fn drop(&mut self) {
        let word = self.0.resent.load(Ordering::Relaxed);
        self.0.resent.store(word & !HOLDER, Ordering::Release);
    }
}

/// Two rings that a process went on using when it forked.
#[derive(Debug)]
struct Rings {
    /// None: the reading direction was never opened.
    inward: Option<Heir>,
    /// As long as the owner writes to it; else how many bytes it has brought.
    outward: Result<Stopper, u64>,
    /// Where they end, once this process knows.
    ends: [AtomicU64; 2],
    /// The stream has counted that.
    counted: AtomicBool,
    /// The process that went on using them.
    owner: u32,
}

/// How many streams of this process have one.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// In the word: the ring was taken over.
const TAKEN_OVER: u64 = 1 << 63;
/// In the word: the peer is asked to send the bytes over TCP. Nobody reads them until that is decided.
const WANTED: u64 = 1 << 62;
/// The rest of the word is the position.
const POSITION: u64 = WANTED - 1;
/// Not known yet.
const UNKNOWN: u64 = u64::MAX;
/// So long a holder that asked the peer may take; longer only if it has died.
const DECISION_NS: u64 = 1_500_000_000;
/// The bits of a holder's number; all of them: it has none that others see.
const HOLDER_BITS: u32 = 40;
const HOLDER: u64 = (1 << HOLDER_BITS) - 1;
/// So long a holder that lives may take to send what the peer wants.
const RESENT_NS: u64 = 5_000_000_000;
const LOOK: Duration = Duration::from_micros(50);
/// Bytes of the family's memory before those of the stream, so that the words of two do not share a line.
pub const HEAD: usize = 64;
/// Where a copy says, for a program that is executed, what it is: of which socket, from which position on, and whether its word is in
/// the record of custody or before its bytes.
const MARKS: [usize; 4] = [16, 24, 32, 40];
const MARK: u64 = 0x7369_6465_7374_7203;

/// Whether some stream has one.
#[inline]
pub fn are_left() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// A stream has one.
pub fn came() {
    COUNT.fetch_add(1, Ordering::Relaxed);
}

/// A stream has one no more.
pub fn went() {
    COUNT.fetch_sub(1, Ordering::Relaxed);
}

/// In a forked child, whose streams are new.
pub fn after_fork() {
    COUNT.store(0, Ordering::Relaxed);
}

impl Heirloom {
    /// Puts bytes where the children of this process will see them. `None`: there is no memory.
    pub fn copy(bytes: &[u8]) -> Option<Arc<Heirloom>> {
        let (span, words) = allocate(bytes.len())?;
        span.copy_in(0, bytes).ok()?;
        Some(Heirloom::new(words, false, Source::Copy(span, 0)))
    }

    /// A copy that the program before has left for the socket with this cookie; its record of custody has these words.
    pub fn attach(file: OwnedFd, len: usize, cookie: u64, recorded: Option<[Word64; 3]>) -> Option<Arc<Heirloom>> {
        let memory = Memory::attach(file, len).ok()?;
        let span = memory.span(HEAD, len.checked_sub(HEAD)?).ok()?;
        let marks = MARKS.map(|at| memory.word64(at).map_or(0, |word| word.load(Ordering::Acquire)));
        let [MARK, of, position, is_recorded] = marks else { return None };
        let fits = of == cookie && position.checked_add(span.len() as u64).is_some_and(|end| end <= POSITION);
        let words = if is_recorded != 0 { recorded? } else { words(&memory)? };
        fits.then(|| Heirloom::new(words, is_recorded != 0, Source::Copy(span, position)))
    }

    /// A file in which a program that is executed finds what is left for the socket with this cookie. `None`: there is no memory, or
    /// the program could not tell how far it was read.
    pub fn file(&self, cookie: u64) -> Option<Arc<OwnedFd>> {
        let (span, position) = match &self.source {
            Source::Copy(span, position) => (span.clone(), *position),
            Source::Ring(_) if self.recorded => self.copy_of_ring()?,
            Source::Ring(_) => return None,
        };
        let memory = span.memory();
        for (at, word) in MARKS.into_iter().zip([MARK, cookie, position, u64::from(self.recorded)]) {
            memory.store64(at, word, Ordering::Release).ok()?;
        }
        memory.descriptor()
    }

    /// Copies what is left of a ring, and tells from where on. Others may read of it meanwhile, which the word tells.
    fn copy_of_ring(&self) -> Option<(Span, u64)> {
        let end = self.end();
        let read = loop {
            let word = self.word.load(Ordering::Acquire);
            if word & WANTED == 0 {
                break word & POSITION;
            }
            self.await_decision();
        };
        let mut bytes = vec![0; end.checked_sub(read)? as usize];
        let (span, _) = allocate(bytes.len())?;
        let copied = self.copy_out(read, &mut bytes) && span.copy_in(0, &bytes).is_ok();
        copied.then_some((span, read))
    }

    fn new([word, returned, resent]: [Word64; 3], recorded: bool, source: Source) -> Arc<Heirloom> {
        Arc::new(Heirloom { word, returned, resent, recorded, source })
    }

    /// Whether a program that is executed can have it.
    pub fn can_be_left(&self) -> bool {
        self.recorded || matches!(self.source, Source::Copy(..))
    }

    /// Of the rings that this process goes on using, one of which it has read so far, with the words of its record of custody, if it
    /// has one. `None`: there is no memory.
    pub fn rings(
        inward: Option<Heir>,
        outward: Result<Stopper, u64>,
        read: u64,
        recorded: Option<[Word64; 3]>,
    ) -> Option<Arc<Heirloom>> {
        let is_recorded = recorded.is_some();
        let words = match recorded {
            Some(words) => words,
            None => words(&Memory::family(HEAD).ok()?)?,
        };
        for (word, value) in words.iter().zip([read, 0, 0]) {
            word.store(value, Ordering::Release);
        }
        let ends = [const { AtomicU64::new(UNKNOWN) }; 2];
        let rings = Rings { inward, outward, ends, counted: AtomicBool::new(false), owner: process::generation() };
        Some(Heirloom::new(words, is_recorded, Source::Ring(rings)))
    }

    /// The owner has copied so many bytes from a position of the ring on. `false`: another holder has taken over, and these
    /// bytes may be another's.
    #[inline]
    pub fn advance(&self, from: u64, count: usize) -> bool {
        self.word.compare_swap(from, from + count as u64) == from
    }

    /// Whether another holder has taken over.
    #[inline]
    pub fn is_taken_over(&self) -> bool {
        self.word.load(Ordering::Acquire) & TAKEN_OVER != 0
    }

    /// Ends the rings of both directions, if this is about rings, and gives the positions at which they end.
    pub fn take_over(&self) -> Option<[u64; 2]> {
        let Source::Ring(rings) = &self.source else { return None };
        if rings.ends[READ].load(Ordering::Acquire) == UNKNOWN {
            // The owner moves the word no more. It may have moved it on until now.
            let read = self.word.fetch_or(TAKEN_OVER, Ordering::AcqRel) & POSITION;
            // Without an end that a correct peer leaves, nothing is left.
            let end = rings.inward.as_ref().map_or(read, |inward| inward.freeze(read).unwrap_or(read));
            rings.ends[WRITE]
                .store(rings.outward.as_ref().map_or_else(|brought| *brought, Stopper::stop), Ordering::Release);
            rings.ends[READ].store(end, Ordering::Release);
            rings.inward.iter().for_each(Heir::ring);
        }
        Some([READ, WRITE].map(|direction| rings.ends[direction].load(Ordering::Acquire)))
    }

    /// Before the owner takes bytes back that the peer wants over TCP. `None`: another holder has taken over, and may have written
    /// over TCP since. Of the two, one sees the other.
    pub fn begin_resending(self: Arc<Heirloom>) -> Option<Resending> {
        self.resent.store(custody::own().unwrap_or(HOLDER), Ordering::Release);
        fence(Ordering::SeqCst);
        let resending = Resending(self);
        (!resending.0.is_taken_over()).then_some(resending)
    }

    /// After [`take_over`](Self::take_over), before this process writes over TCP: waits until the owner has sent what the peer
    /// wants. `false`: it has died, or does not come to an end, and what it has not sent is lost.
    pub fn await_resent(&self) -> bool {
        if let Source::Ring(rings) = &self.source
            && rings.owner == process::generation()
        {
            return true;
        }
        fence(Ordering::SeqCst);
        self.resent.load(Ordering::Acquire) & HOLDER == 0 || self.await_resender()
    }

    #[cold]
    fn await_resender(&self) -> bool {
        let until = clock::now() + RESENT_NS;
        loop {
            let word = self.resent.load(Ordering::Acquire);
            let resender = word & HOLDER;
            if resender == 0 {
                return true;
            }
            if resender != HOLDER && custody::is_dead(resender) || clock::now() > until {
                // Nobody else waits for it.
                return self.resent.compare_swap(word, word & !HOLDER) != word;
            }
            kernel::pause(LOOK);
        }
    }

    /// Bytes of each direction that the rings have brought, once, for the counts of the stream. After
    /// [`await_resent`](Self::await_resent): what was sent anew over TCP is counted there.
    pub fn count(&self) -> Option<[u64; 2]> {
        let [read, written] = self.take_over()?;
        let Source::Ring(rings) = &self.source else { return None };
        let resent = self.resent.load(Ordering::Acquire) >> HOLDER_BITS;
        (!rings.counted.swap(true, Ordering::AcqRel)).then_some([read, written.wrapping_sub(resent)])
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        let end = self.end();
        end.saturating_sub(self.word.load(Ordering::Acquire) & POSITION) as usize
    }

    /// How many are left, whoever has the ring: nothing is taken over.
    pub fn unread(&self) -> usize {
        let read = self.word.load(Ordering::Acquire) & POSITION;
        match &self.source {
            Source::Copy(..) => self.left(),
            Source::Ring(rings) => rings.inward.as_ref().map_or(0, |inward| inward.unread(read)) as usize,
        }
    }

    fn end(&self) -> u64 {
        match &self.source {
            Source::Copy(bytes, position) => position + bytes.len() as u64,
            Source::Ring(_) => self.take_over().map_or(0, |[end, _]| end),
        }
    }

    /// Takes bytes, or only shows or drops them, as the flags of `recv` say. Zero: none are left, for good.
    pub fn take(&self, parts: &mut [IoSliceMut<'_>], flags: i32) -> usize {
        let end = self.end();
        loop {
            let word = self.word.load(Ordering::Acquire);
            if word & WANTED != 0 {
                self.await_decision();
                continue;
            }
            let (read, mut count) = (word & POSITION, 0);
            for part in parts.iter_mut() {
                let at = read.saturating_add(count as u64);
                let piece = (end.saturating_sub(at) as usize).min(part.len());
                if flags & libc::MSG_TRUNC == 0 && !self.copy_out(at, &mut part[..piece]) {
                    return 0;
                }
                count += piece;
            }
            let moves = count > 0 && flags & libc::MSG_PEEK == 0;
            if !moves || self.word.compare_swap(word, word + count as u64) == word {
                if let Source::Ring(Rings { inward: Some(inward), .. }) = &self.source
                    && moves
                {
                    inward.testify(read + count as u64);
                }
                return count;
            }
        }
    }

    fn copy_out(&self, at: u64, bytes: &mut [u8]) -> bool {
        match &self.source {
            Source::Copy(span, position) => {
                at.checked_sub(*position).is_some_and(|at| span.copy_out(at as usize, bytes).is_ok())
            }
            Source::Ring(rings) => rings.inward.as_ref().is_some_and(|inward| inward.copy_out(at, bytes).is_ok()),
        }
    }

    /// Asks the peer to send what is left over TCP, which has to be waited for. `None`: nothing is left, or the peer cannot be asked.
    pub fn want(&self) -> Option<Wish> {
        let Source::Ring(Rings { inward: Some(inward), .. }) = &self.source else { return None };
        let end = self.end();
        loop {
            let word = self.word.load(Ordering::Acquire);
            if word & POSITION >= end {
                return None;
            }
            if word & WANTED != 0 {
                return Some(Wish::Others);
            }
            if self.word.compare_swap(word, word | WANTED) == word {
                let parts = |note| Reading { parting: true, ..Reading::from_note(note) }.to_note();
                inward.want(word & POSITION, parts);
                if self.word.load(Ordering::Acquire) & WANTED == 0 {
                    // Another holder took this one for dead, and has decided.
                    inward.withdraw();
                }
                return Some(Wish::Own);
            }
        }
    }

    /// Whether the peer has.
    pub fn is_sent(&self) -> bool {
        match &self.source {
            Source::Ring(Rings { inward: Some(inward), .. }) => inward.is_taken(),
            _ => false,
        }
    }

    /// What the peer has not taken by now is read here. Who has a copy cannot see whether it has: what was asked for comes then.
    pub fn decide(&self) {
        let inward = match &self.source {
            Source::Ring(rings) => rings.inward.as_ref(),
            Source::Copy(..) => None,
        };
        let word = self.word.load(Ordering::Acquire);
        if word & WANTED != 0 {
            let decided = match inward.is_some_and(Heir::withdraw) {
                true => word & !WANTED,
                false => {
                    let end = self.end();
                    self.returned.store(end.saturating_sub(word & POSITION), Ordering::Release);
                    end | TAKEN_OVER
                }
            };
            self.word.compare_swap(word, decided);
        }
    }

    /// Bytes of the ring that did not come out of it in the end.
    pub fn returned(&self) -> u64 {
        self.returned.load(Ordering::Acquire)
    }

    /// Another holder has asked the peer. Should it have died since, this one decides.
    #[cold]
    fn await_decision(&self) {
        let until = clock::now() + DECISION_NS;
        while self.word.load(Ordering::Acquire) & WANTED != 0 {
            if clock::now() > until {
                return self.decide();
            }
            kernel::pause(LOOK);
        }
    }

    /// The descriptors that are its own as long as it lives, in a child, too.
    pub fn descriptors(&self) -> Vec<i32> {
        let words = [self.word.memory(), self.returned.memory(), self.resent.memory()];
        let mut all: Vec<i32> = words.into_iter().filter_map(Memory::number).collect();
        match &self.source {
            Source::Copy(span, _) => all.extend(span.memory().number()),
            Source::Ring(rings) => {
                all.extend(rings.inward.iter().flat_map(Heir::descriptors));
                all.extend(rings.outward.as_ref().ok().and_then(|outward| outward.memory().number()));
            }
        }
        all
    }
}

/// Memory for a copy of so many bytes, and its words.
fn allocate(len: usize) -> Option<(Span, [Word64; 3])> {
    let memory = Memory::create("sidestep-heirloom", HEAD + len).ok()?;
    Some((memory.span(HEAD, len).ok()?, words(&memory)?))
}

/// The three words of an heirloom.
fn words(memory: &Memory) -> Option<[Word64; 3]> {
    Some([memory.word64(0).ok()?, memory.word64(8).ok()?, memory.word64(48).ok()?])
}

#[cfg(test)]
mod tests;
