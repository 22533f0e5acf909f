//! Keys nobody can guess: the kernel's random bytes, fetched many at a time.

use std::cell::RefCell;

/// A thread's store of random bytes.
#[derive(Debug, Default)]
pub(crate) struct Random {
    bytes: Vec<u8>,
}

thread_local! {
    static STORE: RefCell<Random> = RefCell::default();
}

const BATCH: usize = 256;

impl Random {
    /// A fresh 128-bit key.
    pub(crate) fn key() -> u128 {
        STORE.with_borrow_mut(|store| {
            if store.bytes.len() < 16 {
                store.refill();
            }
            let rest = store.bytes.len().saturating_sub(16);
            store.bytes.drain(rest..).fold(0, |key, byte| key << 8 | u128::from(byte))
        })
    }

    fn refill(&mut self) {
        self.bytes.resize(BATCH, 0);
        let mut filled = 0;
        while filled < BATCH {
            match rustix::rand::getrandom(&mut self.bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => panic!("the kernel has no random bytes: {errno}"),
            }
        }
    }
}
