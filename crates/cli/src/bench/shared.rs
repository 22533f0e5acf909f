//! Memory that the two processes of a measurement share: a sealed memfd, offered with its length.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use sidestep_shm::Memory;

use super::path::{Offer, Opening};

/// Memory mapped in both processes.
pub struct Shared {
    /// The memory.
    pub memory: Memory,
}

/// Makes memory and offers it to the worker.
pub fn offer(opening: &mut Opening<'_>, len: usize) -> Result<Shared> {
    let memory = Memory::create("sidestep-bench", len).context("no shared memory")?;
    let descriptor = memory.descriptor().context("the memory has no descriptor")?;
    opening.offer(&len.to_string(), &[descriptor.as_fd()])?;
    Ok(Shared { memory })
}

/// Maps what [`offer`] offered.
pub fn attach(offer: Offer) -> Result<Shared> {
    let len = offer.note.parse().context("the note is not a length")?;
    let descriptor = offer.descriptors.into_iter().next().context("no memory was offered")?;
    let memory = Memory::attach(descriptor, len).context("cannot map the shared memory")?;
    Ok(Shared { memory })
}

/// A name on the fabric that no other measurement uses.
pub fn fabric_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("shm:bench-{}-{count}", std::process::id())
}
