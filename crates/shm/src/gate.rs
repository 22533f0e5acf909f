//! A gate: memory of one process that another one copies into and out of through the kernel, and that its owner takes back.
//!
//! Where its words lie is [`GATE_LAYOUT`].
//!
//! The kernel looks at no registration. It does read the iovecs of a copy once, when the call begins, and wherever they
//! lie: here, where the owner can set their lengths to 0. So whoever had not begun when memory was taken back copies
//! nothing, however long it was held up on its way to the call; and whoever had begun is in the kernel and comes to an
//! end, as no signal stops a process in the middle of such a copy.
//!
//! # Invariants
//!
//! - **G1** A peer that finds the `turn` under which it was told of memory, after storing `busy` and the iovecs and a full
//!   fence, is seen as busy by an owner who raises `turn` later (a full fence lies between that and its look).
//! - **G2** The owner sets the lengths to 0 after that fence, so after a peer's iovecs that G1 is about. The next ones are
//!   of a peer that finds the raised `turn`.
//! - **G3** `busy` of one copy is never that of another: the pass counts.

use crate::{
    error::Result,
    memory::{Memory, Word64},
    sync::{Ordering, gate_enter_fence, gate_leave, gate_seen, gate_withdraw_fence},
};

/// Bytes of a gate.
pub const GATE_LEN: usize = 64;

crate::layout! {
    /// A gate, in memory of the side that is copied into and out of.
    GATE_LAYOUT {
        BUSY = 0x00, "busy: pass << 32 and the thread that copies, or 0", "peer";
        TURN = 0x08, "turn: how often memory was taken back", "owner";
        pub(crate) IOVECS = 0x10, "where the peer copies: two iovecs", "peer; the owner cuts them short";
        pub(crate) PROOF = 0x30, "where the owner keeps a value, and that value", "owner, before the peer is there";
    }
}

/// A stretch of the owner's memory: address and length.
pub type Stretch = (u64, u64);

/// The peer's side: who copies.
#[derive(Debug)]
pub struct Entrant {
    busy: Word64,
    turn: Word64,
    iovecs: [(Word64, Word64); 2],
    pass: u32,
}

/// The owner's side.
#[derive(Debug)]
pub struct Turnstile {
    busy: Word64,
    turn: Word64,
    lengths: [Word64; 2],
}

impl Entrant {
    /// The gate that lies at `offset`.
    pub fn new(memory: &Memory, offset: usize) -> Result<Entrant> {
        let word = |at: usize| memory.word64(offset + at);
        Ok(Entrant {
            busy: word(BUSY)?,
            turn: word(TURN)?,
            iovecs: [(word(IOVECS)?, word(IOVECS + 8)?), (word(IOVECS + 16)?, word(IOVECS + 24)?)],
            pass: 0,
        })
    }

    /// How often memory was taken back.
    pub fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    /// Copies as `thread`, with these stretches as the iovecs. `None`: something was taken back since `turn`.
    pub fn enter<T>(&mut self, thread: u32, turn: u64, to: [Stretch; 2], copy: impl FnOnce() -> T) -> Option<T> {
        self.pass = self.pass.wrapping_add(1);
        let pass = u64::from(self.pass) << 32;
        self.busy.store(pass | u64::from(thread), Ordering::Relaxed);
        for ((base, len), (address, count)) in self.iovecs.iter().zip(to) {
            base.store(address, Ordering::Relaxed);
            len.store(count, Ordering::Relaxed);
        }
        gate_enter_fence();
        let copied = (self.turn.load(Ordering::Acquire) == turn).then(copy);
        self.busy.store(pass, gate_leave());
        copied
    }
}

impl Turnstile {
    /// The gate that lies at `offset`.
    pub fn new(memory: &Memory, offset: usize) -> Result<Turnstile> {
        let word = |at: usize| memory.word64(offset + at);
        Ok(Turnstile { busy: word(BUSY)?, turn: word(TURN)?, lengths: [word(IOVECS + 8)?, word(IOVECS + 24)?] })
    }

    /// Raises the turn, so that nobody enters for what was told before, and cuts short what has not begun. Then asks for the
    /// thread that is busy, again and again until it is no longer: `false` ends that, since it is known to be outside.
    pub fn withdraw(&self, turn: u64, mut waits_for: impl FnMut(u32) -> bool) {
        self.turn.store(turn, Ordering::Release);
        gate_withdraw_fence();
        self.lengths.iter().for_each(|len| len.store(0, Ordering::Relaxed));
        let busy = self.busy.load(gate_seen());
        if busy as u32 == 0 {
            return;
        }
        while self.busy.load(gate_seen()) == busy && waits_for(busy as u32) {}
    }
}
