//! What the programs at both ends do, and what happens to them.

use proptest::prelude::*;

use crate::carriers::{Kind, RING};

/// One run: the same script does the same things each time.
#[derive(Debug, Clone)]
pub struct Script {
    pub seed: u64,
    pub kind: Kind,
    /// Bytes that a carrier takes.
    pub capacity: u64,
    /// Bytes that TCP takes.
    pub room: usize,
    /// How long a byte of TCP is on its way.
    pub delay: u64,
    /// Carriers that the stream may have, one after the other.
    pub carriers: u16,
    /// What each end does.
    pub ops: [Vec<Op>; 2],
    pub fault: Option<Fault>,
}

/// What a program does. It reads all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Write(usize),
    /// The same; a full carrier gives way to TCP.
    Overflow(usize),
    Pause(u64),
    /// Wants another carrier.
    Part,
    /// Goes on as a program that knows only TCP.
    Exec,
    /// The child does the rest, the parent too.
    Fork,
    Shutdown,
    /// Leaves, whatever there is to read.
    Close,
}

/// What happens after so many steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub after: u64,
    pub end: usize,
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A process dies.
    Kill,
    /// A process stops for a long time.
    Stop,
    /// All processes of the end die, and what is on its way over TCP is lost.
    Reset,
    /// The reader gives its carrier back.
    GiveBack,
    /// The process forks, whatever its calls are doing; where a child cannot reach the carrier, that is left first.
    Fork,
}

pub const FAULTS: [What; 5] = [What::Kill, What::Stop, What::Reset, What::GiveBack, What::Fork];

fn op(most: usize) -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (1..=most).prop_map(Op::Write),
        3 => (1..=most).prop_map(Op::Overflow),
        2 => (1..40u64).prop_map(Op::Pause),
        2 => Just(Op::Part),
        1 => Just(Op::Exec),
        1 => Just(Op::Fork),
        1 => Just(Op::Shutdown),
        1 => Just(Op::Close),
    ]
}

/// Any script for a kind of carrier.
pub fn scripts(kind: Kind) -> impl Strategy<Value = Script> {
    let (most, capacities, rooms) = match kind {
        Kind::Loopback => (9, 1..8, 1..8),
        Kind::Ring => (RING as usize, RING..RING + 1, RING as usize / 8..RING as usize),
    };
    let ops = || prop::collection::vec(op(most), 0..7);
    let what = prop::sample::select(&FAULTS[..]);
    let fault = (0..400u64, 0..2usize, what).prop_map(|(after, end, what)| Fault { after, end, what });
    let fault = prop::option::of(fault);
    (any::<u64>(), capacities, rooms, 0..12u64, 0..4u16, (ops(), ops()), fault).prop_map(
        move |(seed, capacity, room, delay, carriers, (first, second), fault)| Script {
            seed,
            kind,
            capacity,
            room,
            delay,
            carriers,
            ops: [first, second],
            fault,
        },
    )
}
