//! The sources of an event queue.

use std::sync::Arc;

use sidestep_shm::pending::Mark;

use super::Event;
use crate::{endpoint::EndpointCore, tripwire::TripwireCore};

/// An attached source; its number is used again only with another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceId(pub(super) u64);

#[derive(Debug, Default)]
pub(super) struct Sources {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry {
    generation: u32,
    token: u64,
    mark: Option<Arc<Mark>>,
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
        let index = match self.free.pop() {
            Some(index) => index as usize,
            None => {
                self.entries.push(Entry { generation: 0, token, mark: None, source: Source::Plain });
                self.entries.len() - 1
            }
        };
        let entry = &mut self.entries[index];
        let id = SourceId(u64::from(entry.generation) << 32 | index as u64);
        let mark = Mark::new(id.0);
        entry.token = token;
        entry.mark = Some(mark.clone());
        entry.source = source;
        (id, mark)
    }

    /// Takes a source out: its mark, and what it was.
    pub(super) fn remove(&mut self, id: SourceId) -> Option<(Arc<Mark>, Source)> {
        let entry = self.entry(id)?;
        entry.generation = entry.generation.wrapping_add(1);
        let source = std::mem::replace(&mut entry.source, Source::Plain);
        let mark = entry.mark.take()?;
        self.free.push(id.index() as u32);
        Some((mark, source))
    }

    /// The mark of a source.
    pub(super) fn mark(&mut self, id: SourceId) -> Option<Arc<Mark>> {
        self.entry(id).and_then(|entry| entry.mark.clone())
    }

    /// The event of a source, which may report again from now on.
    pub(super) fn take(&mut self, id: SourceId) -> Option<Event> {
        let entry = self.entry(id)?;
        if let Source::Tripwire(tripwire) | Source::Queue(tripwire, _) = &entry.source {
            tripwire.take();
        }
        Some(Event { token: entry.token, source: id })
    }

    fn entry(&mut self, id: SourceId) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(id.index())?;
        (entry.generation == id.generation() && entry.mark.is_some()).then_some(entry)
    }
}

impl SourceId {
    fn index(self) -> usize {
        self.0 as u32 as usize
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
