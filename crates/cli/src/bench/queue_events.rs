//! What an event of a message queue costs, by the number of channels attached to the event queue: from the send of eight
//! bytes in one process until the other has taken the event and the bytes, both looking.
//!
//! The channels send one after the other. The size of a message is the number of channels.

use anyhow::{Context, Result, ensure};
use sidestep_fabric::{Channel, ChannelOptions, EventQueue, Listener, Node};

use super::clock;
use super::control::Peer;
use super::exercise::Exercise;
use super::path::{Bench, End, Offer, Opening, Operation, Part, Path, Wait, Work};
use super::place::Placement;
use super::shared;

/// The path.
pub const PATH: Path = Path {
    name: "queue-events",
    about: "eight bytes over channels in turn, and the event of the receiver; the size is the number of channels",
    work: Work::Pair { open, attach },
    parts: &[Part {
        bench: Bench::Events,
        row: "queue-events",
        operation: Operation::PingPong,
        wait: Wait::Spin,
        placements: &[Placement::Cross],
        sizes: &[1, 10, 100, 1000],
        shift: 0,
    }],
};

fn open(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let node = Node::new()?;
    let name = shared::fabric_name();
    let listener = node.listen(&name)?;
    opening.offer(&name, &[])?;
    QueueEventsEnd::boxed(node, Side::Accepts(listener), opening.peer())
}

fn attach(offer: Offer) -> Result<Box<dyn Exercise>> {
    QueueEventsEnd::boxed(Node::new()?, Side::Connects(offer.note), offer.peer)
}

/// How this side makes channels.
enum Side {
    Accepts(Listener),
    Connects(String),
}

struct QueueEventsEnd {
    channels: Vec<Channel>,
    events: EventQueue,
    side: Side,
    node: Node,
    sent: usize,
    received: usize,
    peer: Peer,
}

impl QueueEventsEnd {
    fn boxed(node: Node, side: Side, peer: Peer) -> Result<Box<dyn Exercise>> {
        let events = EventQueue::polled(&node);
        Ok(Box::new(QueueEventsEnd { channels: Vec::new(), events, side, node, sent: 0, received: 0, peer }))
    }

    /// Makes the channels when their number is known, which is the size of the first message.
    #[cold]
    fn make_channels(&mut self, count: usize) -> Result<()> {
        let options = ChannelOptions { capacity: 256, ..ChannelOptions::default() };
        while self.channels.len() < count {
            let deadline = clock::in_seconds(10);
            let mut channel = match &self.side {
                Side::Accepts(listener) => Channel::accept(listener.wait(deadline)?, options, b"", deadline)?,
                Side::Connects(name) => {
                    Channel::connect(&self.node, name, options, b"", deadline).context("cannot connect")?
                }
            };
            self.events.attach_receiver(&mut channel.receiver, self.channels.len() as u64)?;
            self.channels.push(channel);
        }
        Ok(())
    }
}

impl End for QueueEventsEnd {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        if self.channels.is_empty() {
            self.make_channels(payload.len())?;
        }
        let sender = &mut self.channels[self.sent % payload.len()].sender;
        self.sent += 1;
        ensure!(sender.try_send(&[payload[0]; 8])? == 8, "a ring is full");
        Ok(())
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        if self.channels.is_empty() {
            self.make_channels(payload.len())?;
        }
        let index = self.received % payload.len();
        self.received += 1;
        let mut spin = self.peer.spin();
        loop {
            match self.events.poll() {
                Some(event) if event.token == index as u64 => {
                    let mut bytes = [0; 8];
                    if self.channels[index].receiver.try_receive(&mut bytes)? == 8 {
                        payload[0] = bytes[0];
                        payload[payload.len() - 1] = bytes[7];
                        return Ok(());
                    }
                }
                // Bytes that were there when the receiver was attached may be reported twice.
                Some(_) => {}
                None => spin.turn()?,
            }
        }
    }
}
