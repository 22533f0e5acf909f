//! Credits and acknowledgements: what may be sent, what the peer has read, and what was read here and is told.

use std::sync::{OnceLock, atomic::Ordering};

use sidestep_shm::Word64;
use sidestep_vi::{Descriptor, Remote};

use super::{
    CONTROL, DRAFT, Link, Lost, WITNESS,
    inward::Inward,
    packet::{Kind, Read},
};

/// Packets that look for the peer's word, and after those each such one.
const FIRST: u32 = 16;

impl Link {
    /// Leaves word how far has been read, for a peer that outlives this process.
    #[inline]
    pub fn testify(&self) {
        self.witness.store(self.position(), Ordering::Relaxed);
    }

    /// How far the peer has read, by its last word: acknowledgements may be owing, and never come if it is dead.
    pub fn witnessed(&self) -> u64 {
        let read = self.read();
        let word = self.peer_witness.get().map_or(0, |word| word.load(Ordering::Relaxed));
        read.max(word.min(self.sent()))
    }

    /// Finds where the peer leaves that word, while there is a connection.
    #[inline]
    pub(super) fn find_witness(&self) {
        let packets = self.sent_packets.load(Ordering::Relaxed);
        if (packets < FIRST || packets % FIRST == 0) && !self.distant {
            self.word_of_peer(&self.peer_witness, WITNESS);
        }
    }

    /// A word of the peer's memory, found once.
    pub(super) fn word_of_peer<'a>(&self, place: &'a OnceLock<Word64>, offset: usize) -> Option<&'a Word64> {
        if let Some(word) = place.get() {
            return Some(word);
        }
        let Remote { address, handle } = self.theirs.get().copied()?;
        let word = self.vi.peer_word(&Remote { address: address.wrapping_add(offset as u64), handle })?;
        Some(place.get_or_init(|| word))
    }

    /// Tells what was read, in the peer's memory, or by a packet of its own, which wakes it. One thread at a time: the word in
    /// memory only grows.
    pub(super) fn acknowledge(&self, _inward: &mut Inward) {
        let wanted = self.wanted.swap(false, Ordering::Relaxed);
        if wanted || !self.reaches_board() {
            if self.push(Kind::Ack, &[]) == Ok(true) {
                self.acks.fetch_add(1, Ordering::Relaxed);
            } else if wanted {
                // The peer may sleep until it is told: the next look tries again.
                self.wanted.store(true, Ordering::Relaxed);
            }
            return;
        }
        let Read { packets, bytes } = self.take_owed();
        let owed = u64::from(packets) << 32 | u64::from(bytes);
        let posted = self.posted.load(Ordering::Relaxed).wrapping_add(owed);
        self.posted.store(posted, Ordering::Relaxed);
        let _ = self.write_board(posted);
    }

    /// Whether something was read and not told.
    #[inline]
    pub(super) fn owes(&self) -> bool {
        self.taken.load(Ordering::Relaxed) != self.told.load(Ordering::Relaxed)
    }

    /// What was read and not told; the caller tells it.
    #[inline]
    pub(super) fn take_owed(&self) -> Read {
        let told = self.told.load(Ordering::Relaxed);
        let taken = self.taken.load(Ordering::Relaxed);
        // Who comes second leaves it to the first.
        if taken == told || self.told.compare_exchange(told, taken, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Read::default();
        }
        let owed = taken.wrapping_sub(told);
        Read { packets: (owed >> 32) as u32, bytes: owed as u32 }
    }

    /// It could not be told after all.
    #[cold]
    pub(super) fn give_back(&self, read: Read) {
        self.told.fetch_sub(u64::from(read.packets) << 32 | u64::from(read.bytes), Ordering::Relaxed);
    }

    /// Packets under way that the peer has not read.
    #[inline]
    pub(super) fn under_way(&self) -> u32 {
        let read = self.read_packets.load(Ordering::Relaxed);
        self.sent_packets.load(Ordering::Relaxed).wrapping_sub(read)
    }

    /// Packets that the peer has acknowledged; to compare with an earlier answer.
    pub fn acknowledged(&self) -> u32 {
        self.read_packets.load(Ordering::Relaxed)
    }

    /// Packets that may be sent.
    #[inline]
    pub(super) fn credits(&self) -> u32 {
        self.options.window.saturating_sub(self.under_way())
    }

    /// The peer has read so much, as it says; not more than was sent. Under the lock of `inward`.
    #[inline]
    pub(super) fn gains(&self, read: Read) {
        if read.packets == 0 {
            return;
        }
        let before = self.read.load(Ordering::Relaxed);
        let most = self.sent.load(Ordering::Relaxed).saturating_sub(before);
        self.read.store(before + u64::from(read.bytes).min(most), Ordering::Relaxed);
        let packets = self.read_packets.load(Ordering::Relaxed);
        self.read_packets.store(packets.wrapping_add(read.packets.min(self.under_way())), Ordering::Release);
    }

    /// Whether the peer has written here what it has read.
    #[inline]
    pub(super) fn board_has_news(&self) -> bool {
        self.options.apart && self.board.load(Ordering::Relaxed) != self.heard.load(Ordering::Relaxed)
    }

    /// Looks at what the peer says it has read. Under the lock of `inward`.
    #[inline]
    pub(super) fn look_at_board(&self) {
        if self.board_has_news() {
            let word = self.board.load(Ordering::Acquire);
            let news = word.wrapping_sub(self.heard.load(Ordering::Relaxed));
            self.heard.store(word, Ordering::Relaxed);
            self.gains(Read { packets: (news >> 32) as u32, bytes: news as u32 });
        }
    }

    /// Whether what was read can be written into the peer's memory at once. A write that the peer had to carry out would hold up
    /// everything behind it.
    pub(super) fn reaches_board(&self) -> bool {
        self.options.apart && self.theirs.get().is_some_and(|board| self.vi.reaches(board, 8))
    }

    /// Writes what was read into the peer's memory.
    pub(super) fn write_board(&self, told: u64) -> Result<(), Lost> {
        let Some(Remote { address, handle }) = self.theirs.get().copied() else { return Err(Lost) };
        self.memory.write(DRAFT, &told.to_le_bytes()).map_err(|_| Lost)?;
        let descriptor = Descriptor::new(CONTROL, &[self.memory.segment(DRAFT, 8)]);
        let posted = self.vi.post_send(&descriptor.write_to(address, handle));
        self.drain_sends();
        posted.map_err(|_| self.lose())
    }
}
