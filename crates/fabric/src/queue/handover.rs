//! Handing a queue to another process of the same owner: over `fork`, over `exec`, or after the first holder's death.
//!
//! Everything a queue needs is in descriptors: the two blocks, the positions of this side (family memory), and what it
//! takes to wake the peer and be woken by it. A process that takes them up goes on at the position where the queue was
//! left, however its predecessor ended. One process uses a queue at a time.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use sidestep_shm::{
    Memory,
    pair_bell::{PairBell, Ringer},
    passing::Lifeline,
    watch::Watch,
};

use super::{
    BLOCK_HEADER, FAMILY_LEN, HEAD, HEAD_CORE, HEAD_NOTE, QueueBlock, QueueSpec, Receiver, Sender, TAIL,
    home::{Alone, Home},
    wire::{Alarm, Wire},
};
use crate::{
    aperture::Aperture,
    endpoint::Endpoint,
    error::{Error, Result},
    link::{
        WakePath,
        shm::{pair, session::duplicate},
    },
    region::Layout,
    tripwire::Access,
};

/// What another process needs to take a queue up.
#[derive(Debug)]
pub struct Handover {
    /// Own region, peer's region, family memory, own pair memory, peer's pair memory, own doorbell, peer's doorbell,
    /// lifeline: in this order.
    pub descriptors: Vec<OwnedFd>,
    /// The two blocks, as two [`QueueSpec`]s in their wire form: own, then the peer's.
    pub state: Vec<u8>,
}

const DESCRIPTORS: usize = 8;

impl Handover {
    /// Describes a queue that was attached with shared family memory, over mapped memory, in rings that have not grown.
    /// The queue stays usable here until the other process takes it up.
    pub fn describe(
        endpoint: &Endpoint,
        ours: &QueueBlock,
        aperture: &Aperture,
        theirs: &QueueSpec,
        family: &Memory,
    ) -> Result<Handover> {
        let mapped = aperture.mapped().ok_or(Error::Unsupported("handing over a queue that is not mapped"))?;
        let WakePath { pair_memory, doorbells, lifeline } = endpoint.node().peer(endpoint.peer()).wake_path()?;
        let mut descriptors = Vec::with_capacity(DESCRIPTORS);
        for memory in [ours.slice().core().data.memory(), &mapped.memory, family] {
            let pages = memory.descriptor().ok_or(Error::Unsupported("handing over memory that is not shared"))?;
            descriptors.push(duplicate(pages.as_fd())?);
        }
        descriptors.extend(pair_memory.into_iter().chain(doorbells).chain([lifeline]));
        let state = [ours.spec().to_bytes(), theirs.to_bytes()].concat();
        Ok(Handover { descriptors, state })
    }

    /// Takes the queue up in this process.
    pub fn attach(self) -> Result<(Sender, Receiver)> {
        let bad = Error::Size { what: "handover", must: "eight descriptors and two queues", value: self.state.len() };
        let (own, peer) = self.state.split_at_checked(QueueSpec::WIRE_LEN).ok_or(bad.clone())?;
        let (ours, theirs) = (QueueSpec::from_bytes(own)?, QueueSpec::from_bytes(peer)?);
        let descriptors: [OwnedFd; DESCRIPTORS] = self.descriptors.try_into().map_err(|_| bad)?;
        let [own, peer, family, own_pair, peer_pair, own_bell, peer_bell, lifeline] = descriptors;
        let (our_layout, their_layout) = (Layout::new(ours.cookie.len())?, Layout::new(theirs.cookie.len())?);
        let own = Memory::attach(own, our_layout.total)?;
        let peer = Memory::attach(peer, their_layout.total)?;
        let family = Memory::attach(family, FAMILY_LEN)?;
        let own_pair = Memory::attach(own_pair, pair::PAIR_LEN)?;
        let peer_pair = Memory::attach(peer_pair, pair::PAIR_LEN)?;
        let (sleep, rescan) = pair::wake_words(&own_pair, &peer_pair)?;
        let (own_bell, peer_bell) = (Arc::new(PairBell::adopt(own_bell)), Arc::new(Ringer::attach(peer_bell)?));
        let lifeline = Arc::new(Lifeline::from_fd(lifeline));

        let our_watch = our_layout.watch(&own, Access::Write)?;
        let their_watch = their_layout.watch(&peer, Access::Write)?;
        let home = |at| -> Result<Home> {
            let watched = watched(&our_watch, ours.offset as usize + at)?;
            Ok(Home::Alone(Alone::new(watched, sleep.clone(), own_bell.clone(), lifeline.clone())?))
        };
        let wire = |at| -> Result<Wire> {
            let block = theirs.offset as usize;
            Ok(Wire::Mapped {
                memory: peer.clone(),
                block,
                word: block + at,
                watched: watched(&their_watch, block + at)?,
                alarm: Alarm::Alone(rescan.clone(), peer_bell.clone()),
                alarms: Default::default(),
            })
        };
        let block = ours.offset as usize;
        let ring_offset = theirs.offset as usize + BLOCK_HEADER;
        let ring = peer.span(ring_offset, theirs.capacity as usize)?;
        let words = [own.word64(block + HEAD)?, own.word64(block + HEAD_CORE)?, own.word64(block + HEAD_NOTE)?];
        let mut sender = Sender::over(home(HEAD)?, wire(TAIL)?, (ring, ring_offset), theirs.kind, words, &family)?;
        let mut receiver =
            Receiver::over(home(TAIL)?, wire(HEAD)?, (&own, block), ours.capacity as usize, ours.kind, &family)?;
        // The predecessor may have died between a step and telling of it: after moving a position and before publishing
        // it, or after clearing an armed bit and before ringing. So everything is told again, and the peer looks.
        sender.publish()?;
        receiver.tell()?;
        rescan.post();
        peer_bell.ring();
        Ok((sender, receiver))
    }
}

fn watched(watch: &Watch, offset: usize) -> Result<sidestep_shm::watch::WatchedWord> {
    let range = crate::error::Refusal::Range { offset: offset as u64, len: 8 };
    Ok(watch.word(offset).ok_or(range)?)
}
