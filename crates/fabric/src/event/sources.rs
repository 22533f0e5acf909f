//! The sources of an event queue.

use std::sync::Arc;

use sidestep_shm::pending::Mark;
use sidestep_sys::slab::Slab;

use super::Event;
use crate::{endpoint::EndpointCore, tripwire::TripwireCore};

/// An attached source; its number is used again only with another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceId(pub(super) u64);

#[derive(Debug, Default)]
pub(super) struct Sources {
    entries: Slab<Entry, u64>,
}

#[derive(Debug)]
struct Entry {
    token: u64,
    mark: Arc<Mark>,
    source: Source,
}

#[derive(Debug)]
pub(super) enum Source {
    Tripwire(Arc<TripwireCore>),
    /// One side of a message queue: its word, and the end of its connection.
    Queue(Arc<TripwireCore>, Arc<EndpointCore>),
    /// Reports by itself; nothing to do when its event is taken.
    Plain,
}

impl Sources {
    /// A new source.
    pub(super) fn add(&mut self, token: u64, source: Source) -> (SourceId, Arc<Mark>) {
        let added = self.entries.insert_with(|id| Entry { token, mark: Mark::new(id), source });
        let id = added.expect("fewer sources than 32 bits number");
        (SourceId(id), self.entries.get(id).expect("just added").mark.clone())
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Takes a source out: its mark, and what it was.
    pub(super) fn remove(&mut self, id: SourceId) -> Option<(Arc<Mark>, Source)> {
        self.entries.remove(id.0).map(|entry| (entry.mark, entry.source))
    }

    /// The mark of a source.
    pub(super) fn mark(&self, id: SourceId) -> Option<Arc<Mark>> {
        self.entries.get(id.0).map(|entry| entry.mark.clone())
    }

    /// The event of a source, which may report again from now on.
    #[inline]
    pub(super) fn take(&self, id: SourceId) -> Option<Event> {
        let entry = self.entries.get(id.0)?;
        if let Source::Tripwire(tripwire) | Source::Queue(tripwire, _) = &entry.source {
            tripwire.take();
        }
        Some(Event { token: entry.token, source: id })
    }
}
