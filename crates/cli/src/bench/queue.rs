//! Candidate: a fabric message queue, as a stream of bytes and as slots.

use anyhow::{Context, Result};
use sidestep_fabric::{
    Channel, ChannelOptions, Node,
    queue::{Kind, Receiver, Sender},
};
use sidestep_shm::wait::Patience;

use super::clock;
use super::control::Peer;
use super::exercise::Exercise;
use super::path::{
    BANDWIDTH_SIZES, Bench, End, LATENCY_SIZES, Offer, Opening, Operation, Part, Path, RATE_SIZES, SHIFTED_SIZES, Wait,
    Work,
};
use super::place::Placement;

/// The byte stream.
pub const STREAM: Path = Path {
    name: "queue",
    about: "a message queue of the fabric, as a stream of bytes",
    work: Work::Pair { open: |opening| open(opening, Kind::Stream), attach: |offer| attach(offer, Kind::Stream) },
    parts: &[
        part(Bench::Latency, "queue", Operation::PingPong, Wait::Spin, Placement::Cross, LATENCY_SIZES.split_at(1).1),
        part(Bench::Rate, "queue", Operation::Stream, Wait::Spin, Placement::Cross, RATE_SIZES),
        part(Bench::Bandwidth, "queue", Operation::Stream, Wait::Spin, Placement::Cross, BANDWIDTH_SIZES),
        shifted("queue+1", 1),
        shifted("queue+16", 16),
        shifted("queue+31", 31),
        part(Bench::Wake, "queue", Operation::Wake, Wait::Block, Placement::Cross, &[8]),
        part(Bench::Wake, "queue-same-core", Operation::PingPong, Wait::Yield, Placement::Same, &[64]),
    ],
};

/// Slots.
pub const SLOTS: Path = Path {
    name: "slots",
    about: "a message queue of the fabric, with slots of 128 bytes",
    work: Work::Pair {
        open: |opening| open(opening, Kind::Slots(128)),
        attach: |offer| attach(offer, Kind::Slots(128)),
    },
    parts: &[
        part(Bench::Latency, "queue-slots", Operation::PingPong, Wait::Spin, Placement::Cross, &[0, 1, 64]),
        part(Bench::Rate, "queue-slots", Operation::Stream, Wait::Spin, Placement::Cross, RATE_SIZES),
    ],
};

const fn part(
    bench: Bench,
    row: &'static str,
    operation: Operation,
    wait: Wait,
    placement: Placement,
    sizes: &'static [usize],
) -> Part {
    let placements: &'static [Placement] = match placement {
        Placement::Same => &[Placement::Same],
        _ => &[Placement::Cross],
    };
    Part { bench, row, operation, wait, placements, sizes, shift: 0 }
}

const fn shifted(row: &'static str, shift: usize) -> Part {
    Part { shift, ..part(Bench::Bandwidth, row, Operation::Stream, Wait::Spin, Placement::Cross, SHIFTED_SIZES) }
}

fn open(opening: &mut Opening<'_>, kind: Kind) -> Result<Box<dyn Exercise>> {
    open_with(opening, kind, CAPACITY)
}

fn attach(offer: Offer, kind: Kind) -> Result<Box<dyn Exercise>> {
    attach_with(offer, kind, CAPACITY)
}

/// The measuring process's end of a queue with so much memory.
pub fn open_with(opening: &mut Opening<'_>, kind: Kind, capacity: usize) -> Result<Box<dyn Exercise>> {
    end(accept(opening, options(kind, capacity))?, kind, opening.wait, opening.peer())
}

/// The worker's end.
pub fn attach_with(offer: Offer, kind: Kind, capacity: usize) -> Result<Box<dyn Exercise>> {
    end(connect(&offer, options(kind, capacity))?, kind, offer.wait, offer.peer)
}

/// The measuring process's end of a stream.
pub fn open_stream(opening: &mut Opening<'_>) -> Result<(Channel, Peer)> {
    Ok((accept(opening, options(Kind::Stream, CAPACITY))?, opening.peer()))
}

/// The worker's end of a stream.
pub fn attach_stream(offer: Offer) -> Result<(Channel, Peer)> {
    Ok((connect(&offer, options(Kind::Stream, CAPACITY))?, offer.peer))
}

fn accept(opening: &mut Opening<'_>, options: ChannelOptions) -> Result<Channel> {
    let node = Node::new()?;
    let name = super::shared::fabric_name();
    let listener = node.listen(&name)?;
    opening.offer(&name, &[])?;
    Ok(Channel::accept(listener.wait(clock::in_seconds(10))?, options, b"", clock::in_seconds(10))?)
}

fn connect(offer: &Offer, options: ChannelOptions) -> Result<Channel> {
    Channel::connect(&Node::new()?, &offer.note, options, b"", clock::in_seconds(10))
        .context("cannot connect over the fabric")
}

fn options(kind: Kind, capacity: usize) -> ChannelOptions {
    ChannelOptions { capacity, kind }
}

/// Memory of a queue, unless a path is about that.
const CAPACITY: usize = 1 << 20;

fn end(mut channel: Channel, kind: Kind, wait: Wait, peer: Peer) -> Result<Box<dyn Exercise>> {
    // What is measured under `wake` is the sleep, so it begins at once.
    if wait == Wait::Block {
        channel.receiver.set_patience(Patience::NONE);
    }
    Ok(match (kind, wait) {
        (Kind::Slots(_), _) => Box::new(SlotsEnd { channel, peer }),
        (Kind::Stream, Wait::Spin) => Box::new(SpinningEnd { channel, peer }),
        (Kind::Stream, _) => Box::new(WaitingEnd { channel }),
    })
}

/// Looks again and again.
struct SpinningEnd {
    channel: Channel,
    peer: Peer,
}

impl End for SpinningEnd {
    #[inline]
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        send_all(&mut self.channel.sender, payload, &self.peer)
    }

    #[inline]
    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        receive_all(&mut self.channel.receiver, payload, &self.peer)
    }
}

/// Sends all bytes, looking for space again and again.
#[inline(always)]
pub fn send_all(sender: &mut Sender, payload: &[u8], peer: &Peer) -> Result<()> {
    let mut sent = sender.try_send(payload)?;
    let mut spin = peer.spin();
    while sent < payload.len() {
        let more = sender.try_send(&payload[sent..])?;
        if more == 0 {
            spin.turn()?;
        }
        sent += more;
    }
    Ok(())
}

/// Fills the payload, looking for bytes again and again.
#[inline(always)]
pub fn receive_all(receiver: &mut Receiver, payload: &mut [u8], peer: &Peer) -> Result<()> {
    let mut spin = peer.spin();
    let mut filled = 0;
    while filled < payload.len() {
        let more = receiver.try_receive(&mut payload[filled..])?;
        if more == 0 {
            spin.turn()?;
        }
        filled += more;
    }
    Ok(())
}

/// Waits as a program would: the queue's own policy.
struct WaitingEnd {
    channel: Channel,
}

impl End for WaitingEnd {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        Ok(self.channel.sender.send(payload, None)?)
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        Ok(self.channel.receiver.receive_exact(payload, None)?)
    }

    fn receive_timed(&mut self, payload: &mut [u8]) -> Result<u64> {
        self.channel.receiver.wait(None)?;
        let running = clock::now();
        self.receive(payload)?;
        Ok(running)
    }
}

/// Messages in slots.
struct SlotsEnd {
    channel: Channel,
    peer: Peer,
}

impl End for SlotsEnd {
    #[inline]
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        let mut spin = self.peer.spin();
        while !self.channel.sender.try_send_message(payload)? {
            spin.turn()?;
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        let mut spin = self.peer.spin();
        while self.channel.receiver.try_receive_message(payload)?.is_none() {
            spin.turn()?;
        }
        Ok(())
    }
}
