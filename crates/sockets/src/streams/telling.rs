//! Where a stream is known, and what `stat` is told of it.

use std::sync::{Arc, atomic::Ordering};

use sidestep_sys::clock;

use super::{READ, Stream, WRITE, lock};
use crate::{
    kernel::{self, address::Key},
    promotion::engine::{self, Engine},
    registry::{Entry, Field, reason::Reason},
};

/// Where a stream is known.
#[derive(Debug, Clone)]
pub struct Place {
    /// The engine of this process.
    pub engine: Arc<Engine>,
    /// Its addresses.
    pub key: Key,
    /// Its place in the registry.
    pub entry: Entry,
    /// SO_COOKIE.
    pub cookie: u64,
}

impl Stream {
    /// Where it is known; enters it if it is not.
    pub fn place(&self) -> Option<Place> {
        let mut place = lock(&self.place);
        if place.is_none() {
            self.grows();
            *place = self.enter();
        }
        place.clone()
    }

    /// Where it is known, if it is.
    pub fn known_place(&self) -> Option<Place> {
        lock(&self.place).clone()
    }

    fn enter(&self) -> Option<Place> {
        let engine = engine::engine()?;
        let key = Key::of(self.fd()).ok()?;
        let cookie = kernel::cookie(self.fd()).ok()?;
        let entry = engine.registry.add(engine.process, &key, cookie, self.fd())?;
        Some(Place { engine, key, entry, cookie })
    }

    /// Writes paths and reason where `stat` looks.
    pub fn set_reason(&self, reason: Reason) {
        self.promotion.reason.store(reason as u8, Ordering::Relaxed);
        if let Some(place) = self.known_place() {
            let [reads, writes] = [READ, WRITE].map(|direction| self.on_ring(direction));
            place.engine.registry.set_state(place.entry, reads, writes, reason);
        }
    }

    /// The reason that was last given, also if it was written nowhere.
    pub(super) fn reason(&self) -> Reason {
        Reason::from_code(self.promotion.reason.load(Ordering::Relaxed))
    }

    /// A direction has changed its path. A writer has said so in the record.
    pub fn moved(&self, direction: usize, to_ring: bool, reason: Reason) {
        if direction == READ {
            self.record.reading().set_within(to_ring);
        }
        self.set_reason(reason);
        self.publish_counts();
        if let Some(place) = self.known_place().filter(|_| to_ring) {
            let [first, count] =
                [Field::Promoted, Field::Promotions].map(|field| place.engine.registry.field(place.entry, field));
            count.fetch_add(1, Ordering::Relaxed);
            if first.load(Ordering::Relaxed) == 0 {
                first.store(clock::now(), Ordering::Relaxed);
            }
        }
    }

    /// Stores the counters of the TCP path where `stat` looks.
    pub fn publish_counts(&self) {
        if let Some(place) = self.known_place() {
            let fields = [Field::ReadTcp, Field::WrittenTcp];
            let young = [Field::ReadTcpYoung, Field::WrittenTcpYoung];
            let since = place.engine.registry.field(place.entry, Field::Since).load(Ordering::Relaxed);
            let is_young = clock::now() < since + 1_000_000_000;
            for direction in [READ, WRITE] {
                let bytes = self.over_tcp(direction);
                place.engine.registry.field(place.entry, fields[direction]).store(bytes, Ordering::Relaxed);
                if is_young {
                    place.engine.registry.field(place.entry, young[direction]).store(bytes, Ordering::Relaxed);
                }
            }
        }
    }
}
