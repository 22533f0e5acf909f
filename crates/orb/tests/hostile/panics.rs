//! Panics of any thread, counted. The broker catches those of servants, and the tests have none there.

use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Counts the panics of threads of brokers from here on.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if std::thread::current().name().is_some_and(|name| name.starts_with("orb-")) {
                COUNT.fetch_add(1, Ordering::SeqCst);
            }
            usual(info);
        }));
    });
}

/// How many there were.
pub fn count() -> usize {
    COUNT.load(Ordering::SeqCst)
}
