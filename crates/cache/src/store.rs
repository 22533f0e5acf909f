//! What is kept: whole answers, by host and path, the least recently used of them given up first.

use std::{
    borrow::Borrow,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use hyper::HeaderMap;
use lru::LruCache;

use crate::{checker::Checked, rules::Varying, versions::Slot};

/// Which answer: the host and the path with its query, as they were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Both in one, with the end of a line between, which neither can have: so that a look-up takes memory once.
    bytes: Vec<u8>,
}

impl Key {
    /// Of a host and a path.
    pub fn new(host: &[u8], path: &str) -> Key {
        let mut bytes = Vec::with_capacity(host.len() + 1 + path.len());
        Key::write(&mut bytes, host, path);
        Key { bytes }
    }

    /// Its bytes, in memory that is there already.
    pub fn write(bytes: &mut Vec<u8>, host: &[u8], path: &str) {
        bytes.clear();
        bytes.extend_from_slice(host);
        bytes.push(b'\n');
        bytes.extend_from_slice(path.as_bytes());
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.bytes
    }
}

/// An answer that is kept.
#[derive(Debug)]
pub struct Entry {
    /// Its headers, without those of the connection.
    pub headers: HeaderMap,
    /// The answer of a hit that asks for all of it.
    pub whole: Prepared,
    /// Its body: the end of the whole answer.
    pub body: Bytes,
    /// Where the version of its document lies.
    pub slot: Slot,
    /// What its document was when it was fetched.
    pub checked: Checked,
    /// What it depends on.
    pub varying: Varying,
    /// When it is over, whatever its version.
    pub expires: Option<Instant>,
}

/// An answer as it is written to a connection: status, headers and body in a row, so that one plain write takes them.
#[derive(Debug, Clone)]
pub struct Prepared(pub Bytes);

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
    pub fn find(&self, key: &[u8]) -> Option<Arc<Entry>> {
        self.shard(key).entries.get(key).cloned()
    }

    /// Keeps an answer, unless it is larger than a share of the cache.
    pub fn keep(&self, key: Key, entry: Arc<Entry>) {
        let size = entry.size();
        if size > self.limit {
            return;
        }
        let mut shard = self.shard(&key.bytes);
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
        let mut shard = self.shard(&key.bytes);
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

    /// Keys are spread over locks by the end of the path; what is found there is found by a hash that nobody can foresee.
    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard> {
        let last = key.iter().rev().take(8);
        let sum = last.fold(key.len(), |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        self.shards[sum % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Whether it is an answer still, where this is what its document is now.
    pub fn is_good(&self, current: Option<Checked>) -> bool {
        current == Some(self.checked) && self.expires.is_none_or(|end| Instant::now() < end)
    }

    fn size(&self) -> usize {
        self.body.len() + OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::Version;

    fn entry(len: usize) -> Arc<Entry> {
        let body = Bytes::from(vec![0; len]);
        Arc::new(Entry {
            headers: HeaderMap::new(),
            whole: Prepared(body.clone()),
            body,
            slot: Slot::of("/"),
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
        let known = store.find(&key.bytes).expect("kept last");
        store.forget(&key, &entry(10));
        assert!(store.find(&key.bytes).is_some(), "another one under the same key");
        store.forget(&key, &known);
        assert!(store.find(&key.bytes).is_none());
        store.keep(key.clone(), entry(1 << 30));
        assert!(store.find(&key.bytes).is_none(), "larger than a share");
        store.clear();
        assert_eq!(store.bytes(), 0);
    }
}
