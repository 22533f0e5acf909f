//! The memory by which processes hand what they write to a tap: a segment that the tap makes, with a lane for each process.
//!
//! ```text
//!   head, one page     magic, nonce, heartbeat, snap length, filter, what found no lane
//!   lane, one page     claim; what was lost; the words of its ring
//!   rings              one for each lane
//! ```
//!
//! A lane has one process as its producer, and the tap as its consumer. Whatever becomes of a process, its lane alone is
//! concerned. The segment can be attached by processes of its user alone, and is gone with the last who has it.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use sidestep_shm::{
    Memory, Word64,
    byte_ring::{Consumer, POSITION, Parts, Producer},
    memory::Words,
    segment::{self, SegmentId},
};
use sidestep_sys::{clock, cpu};

use crate::kernel;

use super::{
    Filter,
    record::{HEADER, Record},
};

/// Processes that can be tapped at a time.
pub const LANES: usize = 32;
/// Bytes of a lane's ring: what a process may write while the tap does not get a turn for a few milliseconds.
pub const RING: usize = 4 << 20;

const PAGE: usize = 4096;
const LEN: usize = PAGE * (1 + LANES) + LANES * RING;
const MAGIC: u64 = u64::from_le_bytes(*b"SIDE-TAP");
/// A tap that has not looked for so long is gone.
const GONE_NS: u64 = 10_000_000_000;

/// Words of the head.
#[repr(usize)]
enum Head {
    Magic,
    Nonce,
    Heartbeat,
    /// The process that taps.
    Pid,
    Snap,
    /// Pieces that found no lane.
    Unlaned,
    /// The words of the filter.
    Filter,
}

/// Words of a lane's page: what each side writes lies on cache lines of its own.
#[repr(usize)]
enum LaneField {
    /// Process id; 0: free.
    Claim = 0,
    LostPieces,
    LostBytes,
    Tail = 16,
    Core,
    Switch,
    Head = 32,
}

/// The memory of a tap.
#[derive(Debug, Clone)]
pub struct Buffer {
    memory: Memory,
    head: Words,
}

/// A lane, as its process has it.
#[derive(Debug)]
pub struct Lane {
    page: Words,
    ring: Producer,
}

/// A lane, as the tap has it.
#[derive(Debug)]
pub struct Tapped {
    page: Words,
    ring: Consumer,
    /// Its process has written what no correct one does: nothing more is believed.
    broken: bool,
}

/// What has been lost because a ring was full, or because there was no lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// Pieces of the stream.
    pub pieces: u64,
    /// Their bytes, as far as they are known.
    pub bytes: u64,
}

impl Buffer {
    /// Makes a buffer for pieces that fit the filter, of which so many bytes are kept.
    pub fn create(nonce: u64, filter: &Filter, snap: u64) -> Option<(SegmentId, Buffer)> {
        let (id, memory) = segment::create(LEN).ok()?;
        let buffer = Buffer::of(memory)?;
        for (at, word) in filter.to_words().iter().enumerate() {
            buffer.head.word(Head::Filter as usize + at).store(*word, Relaxed);
        }
        buffer.word(Head::Snap).store(snap, Relaxed);
        buffer.word(Head::Pid).store(kernel::process().into(), Relaxed);
        buffer.word(Head::Nonce).store(nonce, Relaxed);
        buffer.beat();
        buffer.word(Head::Magic).store(MAGIC, Release);
        Some((id, buffer))
    }

    /// The buffer that a user's tap has made, if it is the one that was meant.
    pub fn attach(id: SegmentId, nonce: u64, user: u32) -> Option<Buffer> {
        let buffer = Buffer::of(segment::attach(id, LEN, user).ok()?)?;
        let word = |field: Head| buffer.head.load(field as usize, Acquire);
        (word(Head::Magic) == MAGIC && word(Head::Nonce) == nonce).then_some(buffer)
    }

    fn of(memory: Memory) -> Option<Buffer> {
        Some(Buffer { head: memory.words(0, PAGE / 8).ok()?, memory })
    }

    fn word(&self, field: Head) -> Word64 {
        self.head.word(field as usize)
    }

    /// What is tapped.
    pub fn filter(&self) -> Filter {
        Filter::from_words(std::array::from_fn(|at| self.head.load(Head::Filter as usize + at, Relaxed)))
    }

    /// How many bytes of each piece are kept.
    pub fn snap(&self) -> u64 {
        self.word(Head::Snap).load(Relaxed)
    }

    /// The tap is there.
    pub fn beat(&self) {
        self.word(Head::Heartbeat).store(clock::now(), Relaxed);
    }

    /// The process that taps, as it counts.
    pub fn pid(&self) -> u32 {
        self.word(Head::Pid).load(Relaxed) as u32
    }

    /// Whether it was, not long ago.
    pub fn is_alive(&self) -> bool {
        clock::now().saturating_sub(self.word(Head::Heartbeat).load(Relaxed)) < GONE_NS
    }

    /// A lane for this process.
    pub fn enter(&self, pid: u32) -> Option<Lane> {
        (0..LANES).find_map(|lane| {
            let page = self.page(lane)?;
            let claim = page.word(LaneField::Claim as usize);
            (claim.compare_swap(0, u64::from(pid) | CLAIMED) == 0).then_some(())?;
            // Whoever had the lane before is gone, and all that it wrote was taken: the next one goes on there.
            let begin = page.load(LaneField::Tail as usize, Relaxed) & POSITION;
            Some(Lane { ring: Producer::new(self.parts(lane, &page, begin)?).ok()?, page })
        })
    }

    /// Something found no lane.
    pub fn count_unlaned(&self) {
        self.word(Head::Unlaned).fetch_add(1, Relaxed);
    }

    /// Every lane, for the tap.
    pub fn lanes(&self) -> Vec<Tapped> {
        let lane = |lane| {
            let page = self.page(lane)?;
            Some(Tapped { ring: Consumer::new(self.parts(lane, &page, 0)?).ok()?, page, broken: false })
        };
        (0..LANES).filter_map(lane).collect()
    }

    /// What was lost so far.
    pub fn losses(&self) -> Losses {
        let word = |page: &Words, field: LaneField| page.load(field as usize, Relaxed);
        let pages = (0..LANES).filter_map(|lane| self.page(lane));
        let begin = Losses { pieces: self.word(Head::Unlaned).load(Relaxed), bytes: 0 };
        pages.fold(begin, |sum, page| Losses {
            pieces: sum.pieces.saturating_add(word(&page, LaneField::LostPieces)),
            bytes: sum.bytes.saturating_add(word(&page, LaneField::LostBytes)),
        })
    }

    fn page(&self, lane: usize) -> Option<Words> {
        self.memory.words(PAGE * (1 + lane), PAGE / 8).ok()
    }

    fn parts(&self, lane: usize, page: &Words, begin: u64) -> Option<Parts> {
        let word = |field: LaneField| page.word(field as usize);
        Some(Parts {
            ring: self.memory.span(PAGE * (1 + LANES) + lane * RING, RING).ok()?,
            tail: word(LaneField::Tail),
            core: word(LaneField::Core),
            switch: word(LaneField::Switch),
            head: word(LaneField::Head),
            begin,
        })
    }
}

/// Set in a claim, so that it is never 0.
const CLAIMED: u64 = 1 << 32;

impl Lane {
    /// Hands a piece to the tap, or counts it as lost. `false`: it was lost.
    pub fn put<'a>(&mut self, record: &Record, payload: impl Iterator<Item = &'a [u8]>) -> bool {
        let len = HEADER + record.padded();
        let put = self.ring.space(len).is_ok_and(|space| space >= len) && {
            let copied = self.ring.copy_in(&record.to_bytes()).and_then(|_| {
                payload.into_iter().try_for_each(|part| self.ring.copy_in(part).map(|_| ()))?;
                self.ring.copy_in(&[0; 8][..record.padded() - record.kept as usize])
            });
            copied.is_ok() && self.ring.publish(cpu::current_core())
        };
        if !put {
            self.page.word(LaneField::LostPieces as usize).fetch_add(1, Relaxed);
            self.page.word(LaneField::LostBytes as usize).fetch_add(record.len, Relaxed);
        }
        put
    }
}

impl Tapped {
    /// The next piece, with what was kept of its bytes.
    pub fn take(&mut self) -> Option<(Record, Vec<u8>)> {
        if self.broken {
            return None;
        }
        match self.try_take() {
            Ok(taken) => taken,
            Err(_) => {
                self.broken = true;
                None
            }
        }
    }

    fn try_take(&mut self) -> Result<Option<(Record, Vec<u8>)>, sidestep_shm::Error> {
        let wrong = sidestep_shm::Error::Peer("a piece in the lane of a tap is none");
        let there = self.ring.available_now()?;
        let mut header = [0; HEADER];
        if there == 0 {
            return Ok(None);
        }
        if there < HEADER || self.ring.peek(0, &mut header)? != HEADER {
            return Err(wrong);
        }
        let Some(record) = Record::from_bytes(&header).filter(|record| HEADER + record.padded() <= there) else {
            return Err(wrong);
        };
        let mut bytes = vec![0; HEADER + record.padded()];
        self.ring.copy_out(&mut bytes)?;
        self.ring.publish_head();
        bytes.drain(..HEADER);
        bytes.truncate(record.kept as usize);
        Ok(Some((record, bytes)))
    }

    /// Whether something lies there.
    pub fn has_more(&self) -> bool {
        !self.broken && self.ring.has_news()
    }

    /// Gives the lane of a process that is gone to the next one, once it is empty.
    pub fn recycle(&mut self, lives: impl Fn(u32) -> bool) {
        let claim = self.page.word(LaneField::Claim as usize);
        let of = claim.load(Acquire);
        if of != 0 && !self.broken && !self.has_more() && !lives(of as u32) {
            claim.compare_swap(of, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kernel::address::Key, tap::record::Kind};

    fn record(len: usize, position: u64) -> Record {
        let key = Key { namespace: 1, local: "127.0.0.1:80".parse().unwrap(), remote: "[::1]:4000".parse().unwrap() };
        Record {
            kind: Kind::Bytes,
            key,
            cookie: 9,
            time: 5,
            pid: 7,
            position,
            read: 3,
            len: len as u64,
            kept: len as u64,
        }
    }

    #[test]
    fn pieces_come_out_as_they_went_in_and_what_does_not_fit_is_counted() {
        let filter = Filter { pid: Some(7), port: None, address: Some("::1".parse().unwrap()) };
        let (id, buffer) = Buffer::create(11, &filter, 64).unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert!(Buffer::attach(id, 12, own).is_none(), "another one was meant");
        let attached = Buffer::attach(id, 11, own).unwrap();
        assert_eq!((attached.filter(), attached.snap(), attached.is_alive()), (filter, 64, true));
        let mut lane = attached.enter(7).unwrap();
        let mut lanes = buffer.lanes();
        assert!(lanes[0].take().is_none());
        assert!(lane.put(&record(5, 100), [&b"he"[..], b"llo"].into_iter()));
        assert_eq!(lanes[0].take(), Some((record(5, 100), b"hello".to_vec())));
        let bulk = vec![1; 60_000];
        let fit = (0..1000).take_while(|_| lane.put(&record(bulk.len(), 0), [&bulk[..]].into_iter())).count();
        assert!(fit < 1000 && buffer.losses() == Losses { pieces: 1, bytes: 60_000 });
        assert_eq!(std::iter::from_fn(|| lanes[0].take()).count(), fit);
        // Another process gets the lane when its own is gone.
        lanes[0].recycle(|_| true);
        assert!(attached.enter(8).is_some_and(|lane| lane.page.load(0, Relaxed) == CLAIMED | 8));
        lanes[0].recycle(|_| false);
        let mut next = attached.enter(9).unwrap();
        assert!(next.put(&record(1, 0), [&b"x"[..]].into_iter()) && lanes[0].take().is_some());
    }

    #[test]
    fn a_lane_with_rubbish_is_believed_no_more() {
        let (_, buffer) = Buffer::create(1, &Filter::default(), 64).unwrap();
        let mut lane = buffer.enter(7).unwrap();
        let mut lanes = buffer.lanes();
        lane.ring.copy_in(&[0xff; HEADER]).unwrap();
        assert!(lane.ring.publish(0));
        assert!(lanes[0].take().is_none() && lanes[0].broken);
        buffer.page(1).unwrap().word(LaneField::Tail as usize).store(u64::MAX >> 8, Relaxed);
        assert!(lanes[1].take().is_none() && lanes[1].broken);
        assert!(lanes[2].take().is_none() && !lanes[2].broken);
    }
}
