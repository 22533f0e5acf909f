//! What it saves to make and check a payload where it lies, instead of in a buffer of one's own: the same payload is made
//! by the sender and checked by the receiver, with the copying calls of a queue and in place.

use anyhow::{Context, Result, ensure};
use sidestep_fabric::Channel;

use super::control::Peer;
use super::exercise::Exercise;
use super::path::{Bench, End, Offer, Opening, Operation, Part, Path, Wait, Work};
use super::payload::Payload;
use super::place::Placement;
use super::queue;

/// With the copying calls.
pub const COPIED: Path = Path {
    name: "queue-copied",
    about: "a payload that is made in a buffer, sent, received into a buffer and checked there",
    work: Work::Pair { open: |opening| open(opening, false), attach: |offer| attach(offer, false) },
    parts: &[part("queue-copied")],
};

/// In place.
pub const IN_PLACE: Path = Path {
    name: "queue-in-place",
    about: "the same payload, made and checked in the ring",
    work: Work::Pair { open: |opening| open(opening, true), attach: |offer| attach(offer, true) },
    parts: &[part("queue-in-place")],
};

const fn part(row: &'static str) -> Part {
    let (bench, operation, wait) = (Bench::Bandwidth, Operation::Stream, Wait::Spin);
    Part { bench, row, operation, wait, placements: &[Placement::Cross], sizes: &[4 << 10, 64 << 10], shift: 0 }
}

fn open(opening: &mut Opening<'_>, in_place: bool) -> Result<Box<dyn Exercise>> {
    let (channel, peer) = queue::open_stream(opening)?;
    Ok(Box::new(CheckedEnd { channel, peer, in_place }))
}

fn attach(offer: Offer, in_place: bool) -> Result<Box<dyn Exercise>> {
    let (channel, peer) = queue::attach_stream(offer)?;
    Ok(Box::new(CheckedEnd { channel, peer, in_place }))
}

struct CheckedEnd {
    channel: Channel,
    peer: Peer,
    in_place: bool,
}

impl End for CheckedEnd {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        queue::send_all(&mut self.channel.sender, payload, &self.peer)
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        queue::receive_all(&mut self.channel.receiver, payload, &self.peer)
    }

    fn send_stream(&mut self, payload: &mut Payload, count: usize) -> Result<()> {
        for number in 0..count {
            if !self.in_place {
                make(number, payload);
                self.send(payload)?;
                continue;
            }
            let mut spin = self.peer.spin();
            while self.channel.sender.reserve(payload.len())?.is_none() {
                spin.turn()?;
            }
            let space = self.channel.sender.reserve(payload.len())?;
            let mut space = space.context("space that was there")?;
            space.fill_words(0, payload.len(), |at| word(number, at).to_le_bytes())?;
            space.commit(payload.len())?;
        }
        self.flush()
    }

    fn receive_stream(&mut self, payload: &mut Payload, count: usize) -> Result<()> {
        for number in 0..count {
            let wrong = if self.in_place {
                let mut spin = self.peer.spin();
                while self.channel.receiver.view(payload.len())?.is_none() {
                    spin.turn()?;
                }
                let view = self.channel.receiver.view(payload.len())?.context("bytes that were there")?;
                let check = |(expected, wrong): (u64, u64), word| {
                    (expected.wrapping_add(1), wrong | (u64::from_le_bytes(word) ^ expected))
                };
                let (_, wrong) = view.part(0, payload.len())?.fold_words((word(number, 0), 0), check)?;
                self.channel.receiver.consume(payload.len())?;
                wrong
            } else {
                self.receive(payload)?;
                differences(number, payload)
            };
            ensure!(wrong == 0, "message {number} of {} bytes arrived with other contents", payload.len());
        }
        Ok(())
    }
}

/// The payload of a message: its words count up from a number of its own.
#[inline]
fn make(number: usize, payload: &mut [u8]) {
    let first = word(number, 0);
    for (index, word) in payload.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&first.wrapping_add(index as u64).to_le_bytes());
    }
}

/// Zero if this is that payload.
#[inline]
fn differences(number: usize, payload: &[u8]) -> u64 {
    let first = word(number, 0);
    payload.chunks_exact(8).enumerate().fold(0, |wrong, (index, word)| {
        let word = u64::from_le_bytes(word.try_into().expect("chunks of eight bytes"));
        wrong | (word ^ first.wrapping_add(index as u64))
    })
}

/// The word at byte `at`.
#[inline]
fn word(number: usize, at: usize) -> u64 {
    (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(at as u64 / 8)
}
