//! How much of the memory that a receiver sets aside holds bytes when a sender has filled it: with a buffer for each
//! message, and with one buffer of bytes.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use sidestep_fabric::{Channel, ChannelOptions, Node, queue::Kind};
use sidestep_stream::carrier::via::Link;

use super::super::path::{Bench, Operation, Part, Path, Solo, Wait, Work};
use super::super::place::Placement;
use super::super::record::Metric;
use super::super::{clock, shared};
use super::{CREDIT_WORDS, SMALL_SIZES, pair};

/// A buffer of 8 KiB for each message.
pub const CREDITS: Path = Path {
    name: "fill-credits",
    about: "how full buffers of 8 KiB are that hold one message each",
    work: Work::Solo { make: || Ok(Box::new(Credits)) },
    parts: &[part("credits")],
};
/// One buffer of bytes.
pub const PACKETISED: Path = Path {
    name: "fill-packetised",
    about: "how full one buffer of bytes is",
    work: Work::Solo { make: || Ok(Box::new(Packetised)) },
    parts: &[part("packetised")],
};
/// Slots of 8 KiB in memory of the same kind.
pub const SLOT_CREDITS: Path = Path {
    name: "fill-slots",
    about: "how full slots of 8 KiB of a message queue are that hold one message each",
    work: Work::Solo { make: || Ok(Box::new(Slots)) },
    parts: &[part("slot credits")],
};

const fn part(row: &'static str) -> Part {
    let (operation, wait) = (Operation::Stream, Wait::Spin);
    Part { bench: Bench::Buffer, row, operation, wait, placements: &[Placement::Cross], sizes: SMALL_SIZES, shift: 0 }
}

struct Credits;

impl Solo for Credits {
    fn measure(&mut self, size: usize, _count: usize) -> Result<Vec<(Metric, f64)>> {
        let [from, to]: [Arc<Link>; 2] = pair(CREDIT_WORDS)?;
        let message = vec![1; size];
        while from.send(&message).map_err(super::over)? == size {
            // It takes what comes off the way, and reads nothing.
            to.absorb();
        }
        let options = from.options();
        let held = to.available();
        ensure!(held as u64 == from.sent(), "{held} bytes are held, {} were sent", from.sent());
        Ok(vec![(Metric::Utilisation, held as f64 / (options.window as usize * options.chunk) as f64)])
    }
}

/// Two ends of a queue.
fn channel(kind: Kind) -> Result<[Channel; 2]> {
    let (node, name) = (Node::new()?, shared::fabric_name());
    let listener = node.listen(&name)?;
    let options = ChannelOptions { kind, capacity: RING };
    let asking =
        std::thread::spawn(move || Channel::connect(&Node::new()?, &name, options, b"", clock::in_seconds(10)));
    let accepted = Channel::accept(listener.wait(clock::in_seconds(10))?, options, b"", clock::in_seconds(10))?;
    Ok([asking.join().ok().context("the other end")??, accepted])
}

struct Slots;

impl Solo for Slots {
    fn measure(&mut self, size: usize, _count: usize) -> Result<Vec<(Metric, f64)>> {
        let [mut asking, accepted] = channel(Kind::Slots(8 << 10))?;
        let message = vec![1; size];
        let mut held = 0;
        while asking.sender.try_send_message(&message)? {
            held += size;
        }
        drop(accepted);
        Ok(vec![(Metric::Utilisation, held as f64 / RING as f64)])
    }
}

struct Packetised;

impl Solo for Packetised {
    fn measure(&mut self, size: usize, _count: usize) -> Result<Vec<(Metric, f64)>> {
        let [mut asking, accepted] = channel(Kind::Stream)?;
        let message = vec![1; size];
        let mut held = 0;
        loop {
            let sent = asking.sender.try_send(&message)?;
            held += sent;
            if sent < size {
                break;
            }
        }
        drop(accepted);
        Ok(vec![(Metric::Utilisation, held as f64 / RING as f64)])
    }
}

/// As much as the credits have.
const RING: usize = 256 << 10;
