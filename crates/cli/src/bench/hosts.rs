//! Where the two processes of a measurement over a network are: on the loopback interface, each at an address of its own.

use std::sync::atomic::{AtomicU32, Ordering};

/// A name on the iWARP link that no other measurement uses.
pub fn iwarp_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let [low, middle, high, _] = std::process::id().to_le_bytes();
    let port = 20_000 + COUNT.fetch_add(1, Ordering::Relaxed) % 10_000;
    format!("iwarp:127.{}.{middle}.{low}:{port}", 64 + high)
}
