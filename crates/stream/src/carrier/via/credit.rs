//! Credits and acknowledgements: what may be sent, what the peer has read, and what was read here and is told.

use std::sync::{OnceLock, atomic::Ordering};

use sidestep_shm::Word64;
use sidestep_vi::{Buffer, Descriptor, Remote};

use super::{
    BOARD, CONTROL, DRAFT, Link, Lost, WITNESS,
    inward::Inward,
    offer::CLAIM,
    packet::{Kind, Read},
};

/// Words in memory of this side that the peer writes, and where this side writes those of the peer.
#[derive(Debug)]
pub struct Words {
    /// What the peer has read, as it writes it here by RDMA, and where this side writes it.
    board: Word64,
    pub(super) theirs: OnceLock<Remote>,
    /// The word on which both agree about what this side offers, and about what the peer does.
    pub(super) claim: Word64,
    pub(super) peer_claim: OnceLock<Word64>,
    /// How far this side has read, for a peer that outlives this process, and the peer's word for it.
    witness: Word64,
    peer_witness: OnceLock<Word64>,
}

/// Packets that look for the peer's word, and after those each such one.
const FIRST: u32 = 16;

impl Words {
    /// In this memory.
    pub fn new(memory: &Buffer) -> sidestep_vi::Result<Words> {
        Ok(Words {
            board: memory.word(BOARD)?,
            theirs: OnceLock::new(),
            claim: memory.word(CLAIM)?,
            peer_claim: OnceLock::new(),
            witness: memory.word(WITNESS)?,
            peer_witness: OnceLock::new(),
        })
    }
}

impl Link {
    /// Leaves word how far has been read, for a peer that outlives this process.
    #[inline]
    pub fn testify(&self) {
        self.words.witness.store(self.position(), Ordering::Relaxed);
    }

    /// How far the peer has read, by its last word: acknowledgements may be owing, and never come if it is dead.
    pub fn witnessed(&self) -> u64 {
        let read = self.read();
        let word = self.words.peer_witness.get().map_or(0, |word| word.load(Ordering::Relaxed));
        read.max(word.min(self.sent()))
    }

    /// Finds where the peer leaves that word, while there is a connection.
    #[inline]
    pub(super) fn find_witness(&self) {
        let packets = self.sent.packets.load(Ordering::Relaxed);
        if (packets < FIRST || packets % FIRST == 0) && !self.line.distant {
            self.word_of_peer(&self.words.peer_witness, WITNESS);
        }
    }

    /// A word of the peer's memory, found once.
    pub(super) fn word_of_peer<'a>(&self, place: &'a OnceLock<Word64>, offset: usize) -> Option<&'a Word64> {
        if let Some(word) = place.get() {
            return Some(word);
        }
        let Remote { address, handle } = self.words.theirs.get().copied()?;
        let word = self.line.vi.peer_word(&Remote { address: address.wrapping_add(offset as u64), handle })?;
        Some(place.get_or_init(|| word))
    }

    /// Tells what was read, in the peer's memory, or by a packet of its own, which wakes it. One thread at a time: the word in
    /// memory only grows.
    pub(super) fn acknowledge(&self, _inward: &mut Inward) {
        let wanted = self.received.wanted.swap(false, Ordering::Relaxed);
        if wanted || !self.reaches_board() {
            if self.push(Kind::Ack, &[]) == Ok(true) {
                self.acks.fetch_add(1, Ordering::Relaxed);
            } else if wanted {
                // The peer may sleep until it is told: the next look tries again.
                self.received.wanted.store(true, Ordering::Relaxed);
            }
            return;
        }
        let Read { packets, bytes } = self.take_owed();
        let owed = u64::from(packets) << 32 | u64::from(bytes);
        let posted = self.received.posted.load(Ordering::Relaxed).wrapping_add(owed);
        self.received.posted.store(posted, Ordering::Relaxed);
        let _ = self.write_board(posted);
    }

    /// Whether something was read and not told.
    #[inline]
    pub(super) fn owes(&self) -> bool {
        self.received.taken.load(Ordering::Relaxed) != self.received.told.load(Ordering::Relaxed)
    }

    /// What was read and not told; the caller tells it.
    #[inline]
    pub(super) fn take_owed(&self) -> Read {
        let told = self.received.told.load(Ordering::Relaxed);
        let taken = self.received.taken.load(Ordering::Relaxed);
        // Who comes second leaves it to the first.
        if taken == told
            || self.received.told.compare_exchange(told, taken, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return Read::default();
        }
        let owed = taken.wrapping_sub(told);
        Read { packets: (owed >> 32) as u32, bytes: owed as u32 }
    }

    /// It could not be told after all.
    #[cold]
    pub(super) fn give_back(&self, read: Read) {
        self.received.told.fetch_sub(u64::from(read.packets) << 32 | u64::from(read.bytes), Ordering::Relaxed);
    }

    /// Packets under way that the peer has not read.
    #[inline]
    pub(super) fn under_way(&self) -> u32 {
        let read = self.sent.read_packets.load(Ordering::Relaxed);
        self.sent.packets.load(Ordering::Relaxed).wrapping_sub(read)
    }

    /// Packets that the peer has acknowledged; to compare with an earlier answer.
    pub fn acknowledged(&self) -> u32 {
        self.sent.read_packets.load(Ordering::Relaxed)
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
        let before = self.sent.read.load(Ordering::Relaxed);
        let most = self.sent.bytes.load(Ordering::Relaxed).saturating_sub(before);
        self.sent.read.store(before + u64::from(read.bytes).min(most), Ordering::Relaxed);
        let packets = self.sent.read_packets.load(Ordering::Relaxed);
        self.sent.read_packets.store(packets.wrapping_add(read.packets.min(self.under_way())), Ordering::Release);
    }

    /// Whether the peer has written here what it has read.
    #[inline]
    pub(super) fn board_has_news(&self) -> bool {
        self.options.apart && self.words.board.load(Ordering::Relaxed) != self.sent.heard.load(Ordering::Relaxed)
    }

    /// Looks at what the peer says it has read. Under the lock of `inward`.
    #[inline]
    pub(super) fn look_at_board(&self) {
        if self.board_has_news() {
            let word = self.words.board.load(Ordering::Acquire);
            let news = word.wrapping_sub(self.sent.heard.load(Ordering::Relaxed));
            self.sent.heard.store(word, Ordering::Relaxed);
            self.gains(Read { packets: (news >> 32) as u32, bytes: news as u32 });
        }
    }

    /// Whether what was read can be written into the peer's memory at once. A write that the peer had to carry out would hold up
    /// everything behind it.
    pub(super) fn reaches_board(&self) -> bool {
        self.options.apart && self.words.theirs.get().is_some_and(|board| self.line.vi.reaches(board, 8))
    }

    /// Writes what was read into the peer's memory.
    pub(super) fn write_board(&self, told: u64) -> Result<(), Lost> {
        let Some(Remote { address, handle }) = self.words.theirs.get().copied() else { return Err(Lost) };
        self.line.memory.write(DRAFT, &told.to_le_bytes()).map_err(|_| Lost)?;
        let descriptor = Descriptor::new(CONTROL, &[self.line.memory.segment(DRAFT, 8)]);
        let posted = self.line.vi.post_send(&descriptor.write_to(address, handle));
        self.drain_sends();
        posted.map_err(|_| self.lose())
    }
}
