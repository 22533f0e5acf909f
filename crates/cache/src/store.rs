//! What is kept: whole answers, by host and path, the least recently used of them given up first.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use hyper::HeaderMap;
use lru::LruCache;

use crate::{checker::Checked, rules::Varying};

/// Which answer: the host and the path with its query, as they were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Both in one, with the end of a line between, which neither can have: so that a look-up takes memory once.
    bytes: Vec<u8>,
}

impl Key {
    /// Of a host and a path.
    pub fn new(host: &[u8], path: &str) -> Key {
        Key { bytes: [host, b"\n", path.as_bytes()].concat() }
    }

    /// Spreads keys over locks, by the end of the path; what is found there is found by a hash that nobody can foresee.
    fn shard(&self) -> usize {
        let last = self.bytes.iter().rev().take(8);
        last.fold(self.bytes.len(), |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte))) % SHARDS
    }
}

/// An answer that is kept.
#[derive(Debug)]
pub struct Entry {
    /// Its headers, without those of the connection.
    pub headers: HeaderMap,
    /// All headers of a hit that is answered whole.
    pub whole: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// What its document was when it was fetched.
    pub checked: Checked,
    /// What it depends on.
    pub varying: Varying,
    /// When it is over, whatever its version.
    pub expires: Option<Instant>,
}

/// The cache itself.
#[derive(Debug)]
pub struct Store {
    shards: Vec<Mutex<Shard>>,
    /// Bytes of a shard.
    limit: usize,
    bytes: AtomicU64,
}

#[derive(Debug)]
struct Shard {
    entries: LruCache<Key, Arc<Entry>>,
    bytes: usize,
}

/// Locks that requests are spread over.
const SHARDS: usize = 16;
/// What an entry takes besides its body: key, headers, bookkeeping.
const OVERHEAD: usize = 1024;

impl Store {
    /// For so many bytes.
    pub fn new(bytes: usize) -> Store {
        let shard = || Mutex::new(Shard { entries: LruCache::unbounded(), bytes: 0 });
        Store { shards: (0..SHARDS).map(|_| shard()).collect(), limit: bytes / SHARDS, bytes: AtomicU64::new(0) }
    }

    /// The answer under a key.
    pub fn find(&self, key: &Key) -> Option<Arc<Entry>> {
        self.shard(key).entries.get(key).cloned()
    }

    /// Keeps an answer, unless it is larger than a share of the cache.
    pub fn keep(&self, key: Key, entry: Arc<Entry>) {
        let size = entry.size();
        if size > self.limit {
            return;
        }
        let mut shard = self.shard(&key);
        let before = shard.bytes;
        shard.bytes += size;
        if let Some((_, old)) = shard.entries.push(key, entry) {
            shard.bytes -= old.size();
        }
        while shard.bytes > self.limit {
            let Some((_, old)) = shard.entries.pop_lru() else { break };
            shard.bytes -= old.size();
        }
        let change = shard.bytes.wrapping_sub(before);
        self.bytes.fetch_add(change as u64, Ordering::Relaxed);
    }

    /// Gives up an answer, if it is still this one.
    pub fn forget(&self, key: &Key, entry: &Arc<Entry>) {
        let mut shard = self.shard(key);
        if shard.entries.peek(key).is_some_and(|known| Arc::ptr_eq(known, entry)) {
            shard.entries.pop(key);
            shard.bytes -= entry.size();
            self.bytes.fetch_sub(entry.size() as u64, Ordering::Relaxed);
        }
    }

    /// Gives up everything.
    pub fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            self.bytes.fetch_sub(shard.bytes as u64, Ordering::Relaxed);
            shard.entries.clear();
            shard.bytes = 0;
        }
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn shard(&self, key: &Key) -> MutexGuard<'_, Shard> {
        self.shards[key.shard()].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn size(&self) -> usize {
        self.body.len() + OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::Version;

    fn entry(len: usize) -> Arc<Entry> {
        Arc::new(Entry {
            headers: HeaderMap::new(),
            whole: HeaderMap::new(),
            body: Bytes::from(vec![0; len]),
            checked: Checked { instance: 1, version: Version(1) },
            varying: Vec::new(),
            expires: None,
        })
    }

    #[test]
    fn a_host_cannot_pose_as_a_path() {
        assert_ne!(Key::new(b"h/x", "/y"), Key::new(b"h", "/x/y"));
        assert_ne!(Key::new(b"\xff", "/"), Key::new(b"\xfe", "/"));
    }

    #[test]
    fn bytes_are_bounded_and_counted() {
        let store = Store::new(SHARDS * 10 * (OVERHEAD + 1000));
        for at in 0..10_000 {
            store.keep(Key::new(b"h", &format!("/{at}")), entry(1000));
        }
        assert!(store.bytes() <= (SHARDS * 10 * (OVERHEAD + 1000)) as u64, "{}", store.bytes());
        let key = Key::new(b"h", "/again");
        for _ in 0..3 {
            store.keep(key.clone(), entry(10));
        }
        let known = store.find(&key).expect("kept last");
        store.forget(&key, &entry(10));
        assert!(store.find(&key).is_some(), "another one under the same key");
        store.forget(&key, &known);
        assert!(store.find(&key).is_none());
        store.keep(key.clone(), entry(1 << 30));
        assert!(store.find(&key).is_none(), "larger than a share");
        store.clear();
        assert_eq!(store.bytes(), 0);
    }
}
