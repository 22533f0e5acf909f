//! Limits of waking: a bare eventfd with `poll`, and handing over a core with `sched_yield`.

use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::control::Peer;
use super::exercise::Exercise;
use super::path::{Bench, End, Offer, Opening, Operation, Part, Path, Wait, Work};
use super::place::Placement;
use super::{cacheline, clock};

/// A sleeper in `poll` on an eventfd, and one who writes it.
pub const EVENTFD: Path = Path {
    name: "eventfd",
    about: "limit of waking: from before the write of an eventfd to after the return of poll",
    work: Work::Pair { open, attach },
    parts: &[Part {
        bench: Bench::Wake,
        row: "eventfd",
        operation: Operation::Wake,
        wait: Wait::Block,
        placements: &[Placement::Cross],
        sizes: &[0],
        shift: 0,
    }],
};

/// Two processes that give one core to each other.
pub const YIELD: Path = Path {
    name: "yield",
    about: "limit of sharing a core: a cache-line exchange with sched_yield, both on one core",
    work: Work::Pair { open: cacheline::open, attach: cacheline::attach },
    parts: &[Part {
        bench: Bench::Wake,
        row: "yield",
        operation: Operation::PingPong,
        wait: Wait::Yield,
        placements: &[Placement::Same],
        sizes: &[cacheline::LINE_BYTES],
        shift: 0,
    }],
};

fn open(opening: &mut Opening<'_>) -> Result<Box<dyn Exercise>> {
    let bell = || eventfd(0, EventfdFlags::CLOEXEC).context("no eventfd");
    let (own, other) = (bell()?, bell()?);
    opening.offer("", &[other.as_fd(), own.as_fd()])?;
    Ok(Box::new(BellEnd { own, other, guard: Some(opening.peer()) }))
}

fn attach(offer: Offer) -> Result<Box<dyn Exercise>> {
    let mut descriptors = offer.descriptors.into_iter();
    let (Some(own), Some(other)) = (descriptors.next(), descriptors.next()) else {
        bail!("two eventfds were to be offered");
    };
    Ok(Box::new(BellEnd { own, other, guard: None }))
}

/// An end whose messages are the values of eventfds: eight bytes, not all zero.
struct BellEnd {
    own: OwnedFd,
    other: OwnedFd,
    /// Also watched while waiting. The worker has none: what is measured there is the bare wait,
    /// and it dies with its parent anyway.
    guard: Option<Peer>,
}

impl End for BellEnd {
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        rustix::io::write(&self.other, payload).context("write of an eventfd failed")?;
        Ok(())
    }

    fn receive(&mut self, payload: &mut [u8]) -> Result<()> {
        self.receive_timed(payload).map(drop)
    }

    fn receive_timed(&mut self, payload: &mut [u8]) -> Result<u64> {
        let bell = PollFd::new(&self.own, PollFlags::IN);
        match &self.guard {
            None => poll(&mut [bell], None)?,
            Some(guard) => {
                let mut sets = [bell, PollFd::new(guard, PollFlags::empty())];
                poll(&mut sets, None)?;
                ensure!(sets[0].revents().contains(PollFlags::IN), "the other process of the measurement has ended");
                1
            }
        };
        let running = clock::now();
        rustix::io::read(&self.own, payload).context("read of an eventfd failed")?;
        Ok(running)
    }
}
