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

use crate::{answer::head_of, checker::Checked, freshness::Life, rules::Varying, versions::Slot};

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

    /// Its bytes, by which it is found.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
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
    /// Its headers, without those of the connection and without its age.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// Where the version of its document lies.
    pub slot: Slot,
    /// What its document was when it was fetched.
    pub checked: Checked,
    /// What it depends on.
    pub varying: Varying,
    /// How old it is, and when it is over, whatever its version.
    pub life: Life,
    /// The answer of a hit that asks for all of it, with the age in seconds that it tells.
    prepared: Mutex<(u64, Prepared)>,
}

/// An answer as it is written to a connection.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The status and the headers; the body, too, if that is small, so that one plain write takes all.
    pub head: Bytes,
    /// What follows.
    pub body: Bytes,
}

/// A body that is copied behind its head, once a second at most: that takes a microsecond.
const SMALL: usize = 16 << 10;

/// The cache itself.
#[derive(Debug)]
pub struct Store {
    shards: Vec<Mutex<Shard>>,
    /// Bytes of a shard.
    limit: usize,
    bytes: AtomicU64,
    /// By a hash of the key, how often something was made out of date. Read under the lock of the key's shard, which is taken after it was raised, too.
    epochs: Vec<AtomicU64>,
}

#[derive(Debug)]
struct Shard {
    entries: LruCache<Key, Arc<Entry>>,
    bytes: usize,
}

/// Locks that requests are spread over.
const SHARDS: usize = 16;
/// Counts of what was made out of date. Two documents that share one are fetched once more, and that is all.
const EPOCHS: usize = 4096;
/// What an entry takes besides its key, headers and body.
const OVERHEAD: usize = 512;

impl Store {
    /// For so many bytes.
    pub fn new(bytes: usize) -> Store {
        let shard = || Mutex::new(Shard { entries: LruCache::unbounded(), bytes: 0 });
        Store {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            limit: bytes / SHARDS,
            bytes: AtomicU64::new(0),
            epochs: (0..EPOCHS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The answer under a key.
    pub fn find(&self, key: &[u8]) -> Option<Arc<Entry>> {
        self.shard(key).entries.get(key).cloned()
    }

    /// What is fetched from now on may be kept until the document is made out of date.
    pub fn epoch(&self, key: &Key) -> u64 {
        let _shard = self.shard(&key.bytes);
        self.epoch_of(key).load(Ordering::Relaxed)
    }

    /// Keeps an answer that was fetched since that epoch, unless it is larger than a share of the cache; whether it is kept.
    pub fn keep(&self, key: Key, entry: Arc<Entry>, epoch: u64) -> bool {
        let size = entry.size(&key);
        if size > self.limit {
            return false;
        }
        let mut shard = self.shard(&key.bytes);
        if self.epoch_of(&key).load(Ordering::Relaxed) != epoch {
            return false;
        }
        let before = shard.bytes;
        shard.bytes += size;
        if let Some((key, old)) = shard.entries.push(key, entry) {
            shard.bytes -= old.size(&key);
        }
        while shard.bytes > self.limit {
            let Some((key, old)) = shard.entries.pop_lru() else { break };
            shard.bytes -= old.size(&key);
        }
        let change = shard.bytes.wrapping_sub(before);
        self.bytes.fetch_add(change as u64, Ordering::Relaxed);
        true
    }

    /// Gives up the answer under a key, and those that are being fetched now.
    pub fn invalidate(&self, key: &Key) {
        let mut shard = self.shard(&key.bytes);
        self.epoch_of(key).fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = shard.entries.pop(key) {
            let size = entry.size(key);
            shard.bytes -= size;
            self.bytes.fetch_sub(size as u64, Ordering::Relaxed);
        }
    }

    /// Gives up an answer, if it is still this one.
    pub fn forget(&self, key: &Key, entry: &Arc<Entry>) {
        let mut shard = self.shard(&key.bytes);
        if shard.entries.peek(key).is_some_and(|known| Arc::ptr_eq(known, entry)) {
            shard.entries.pop(key);
            let size = entry.size(key);
            shard.bytes -= size;
            self.bytes.fetch_sub(size as u64, Ordering::Relaxed);
        }
    }

    /// Gives up everything.
    pub fn clear(&self) {
        // First: what is being fetched now is not kept behind the clearing of its shard.
        self.epochs.iter().for_each(|epoch| _ = epoch.fetch_add(1, Ordering::Relaxed));
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

    fn epoch_of(&self, key: &Key) -> &AtomicU64 {
        let sum = key.bytes.iter().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        &self.epochs[sum % EPOCHS]
    }

    /// Keys are spread over locks by the end of the path; what is found there is found by a hash that nobody can foresee.
    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard> {
        let last = key.iter().rev().take(8);
        let sum = last.fold(key.len(), |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        self.shards[sum % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Of an answer with these headers and this body.
    pub fn new(
        headers: HeaderMap,
        body: Bytes,
        slot: Slot,
        checked: Checked,
        varying: Varying,
        life: Life,
    ) -> Arc<Entry> {
        let prepared = Mutex::new((u64::MAX, Prepared { head: Bytes::new(), body: Bytes::new() }));
        Arc::new(Entry { headers, body, slot, checked, varying, life, prepared })
    }

    /// Whether it is an answer still, where this is what its document is now.
    pub fn is_good(&self, current: Option<Checked>, now: Instant) -> bool {
        current == Some(self.checked) && self.life.is_fresh(now)
    }

    /// The answer to a request that asks for a whole document and nothing else. Its head is made once a second.
    pub fn whole(&self, now: Instant) -> Prepared {
        let age = self.life.age(now).as_secs();
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if prepared.0 != age {
            let mut head = head_of(&self.headers, self.body.len(), age);
            let body = match self.is_small() {
                true => {
                    head.reserve_exact(self.body.len());
                    head.extend_from_slice(&self.body);
                    Bytes::new()
                }
                false => self.body.clone(),
            };
            *prepared = (age, Prepared { head: head.into(), body });
        }
        prepared.1.clone()
    }

    fn is_small(&self) -> bool {
        self.body.len() <= SMALL
    }

    /// Bytes that it takes under a key.
    fn size(&self, key: &Key) -> usize {
        // The headers are there twice: as such, and as they are sent.
        let headers: usize = self.headers.iter().map(|(name, value)| 2 * (name.as_str().len() + value.len())).sum();
        let bodies = if self.is_small() { 2 } else { 1 };
        bodies * self.body.len() + headers + key.bytes.len() + OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::Version;

    fn entry(len: usize) -> Arc<Entry> {
        let checked = Checked { instance: 1, version: Version(1) };
        Entry::new(HeaderMap::new(), Bytes::from(vec![0; len]), Slot::of("/"), checked, Vec::new(), Life::of_an_hour())
    }

    #[test]
    fn a_host_cannot_pose_as_a_path() {
        assert_ne!(Key::new(b"h/x", "/y"), Key::new(b"h", "/x/y"));
        assert_ne!(Key::new(b"\xff", "/"), Key::new(b"\xfe", "/"));
    }

    #[test]
    fn bytes_are_bounded_and_counted() {
        let limit = SHARDS * 10 * (OVERHEAD + 2 * 1000);
        let store = Store::new(limit);
        for at in 0..10_000 {
            assert!(store.keep(Key::new(b"h", &format!("/{at}")), entry(1000), 0));
        }
        assert!(store.bytes() <= limit as u64, "{}", store.bytes());
        let key = Key::new(b"h", "/again");
        for _ in 0..3 {
            store.keep(key.clone(), entry(10), 0);
        }
        let known = store.find(&key.bytes).expect("kept last");
        store.forget(&key, &entry(10));
        assert!(store.find(&key.bytes).is_some(), "another one under the same key");
        store.forget(&key, &known);
        assert!(store.find(&key.bytes).is_none());
        assert!(!store.keep(key.clone(), entry(1 << 30), 0));
        assert!(store.find(&key.bytes).is_none(), "larger than a share");
        // A long path is counted, too.
        let long = Key::new(b"h", &"x".repeat(10_000));
        assert!(store.keep(long.clone(), entry(10), 0) && store.bytes() <= limit as u64);
        assert!(!Store::new(SHARDS * 9_000).keep(long, entry(10), 0), "larger than a share");
        store.clear();
        assert_eq!(store.bytes(), 0);
    }

    #[test]
    fn what_is_out_of_date_is_not_kept_by_a_fetch_that_had_begun() {
        let store = Store::new(SHARDS << 20);
        let (key, other) = (Key::new(b"h", "/a"), Key::new(b"h", "/b"));
        let (epoch, of_other) = (store.epoch(&key), store.epoch(&other));
        assert!(store.keep(key.clone(), entry(10), epoch));
        store.invalidate(&key);
        assert!(store.find(key.as_bytes()).is_none() && store.bytes() == 0);
        assert!(!store.keep(key.clone(), entry(10), epoch), "it was fetched before");
        assert!(store.keep(other.clone(), entry(10), of_other), "another document");
        assert!(store.keep(key.clone(), entry(10), store.epoch(&key)));
        store.clear();
        assert!(!store.keep(other, entry(10), of_other), "it was fetched before");
    }
}
