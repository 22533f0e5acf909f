//! Keys nobody can guess: the kernel's random bytes, fetched many at a time.

use std::cell::Cell;

use sidestep_sys::process;

/// A thread's store of random bytes. It has no destructor: who registers one allocates.
#[derive(Debug, Clone, Copy)]
pub struct Random {
    keys: [u128; BATCH],
    left: usize,
    /// A forked child must not give out what its parent gives out, too.
    process: u32,
}

thread_local! {
    static STORE: Cell<Random> = const { Cell::new(Random { keys: [0; BATCH], left: 0, process: 0 }) };
}

const BATCH: usize = 4;

impl Random {
    /// A fresh 128-bit key.
    pub fn key() -> u128 {
        let mut store = STORE.get();
        if store.left == 0 || store.process != process::generation() {
            store = Random { keys: fetch(), left: BATCH, process: process::generation() };
        }
        store.left -= 1;
        STORE.set(store);
        store.keys[store.left]
    }
}

fn fetch() -> [u128; BATCH] {
    let mut bytes = [0; BATCH * 16];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => panic!("the kernel has no random bytes: {errno}"),
        }
    }
    let mut keys = [0; BATCH];
    for (key, bytes) in keys.iter_mut().zip(bytes.chunks_exact(16)) {
        *key = u128::from_ne_bytes(bytes.try_into().expect("sixteen bytes"));
    }
    keys
}
