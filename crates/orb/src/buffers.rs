//! Buffers of messages, kept by each thread for its next ones.

use std::cell::RefCell;

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// How many buffers a thread keeps: a call within a process needs one for its request, and one for its reply.
const MOST: usize = 2;

/// Larger buffers are given back.
const LARGEST: usize = 1 << 20;

/// A buffer for a message. What is in it is of no use.
pub(crate) fn take() -> Vec<u8> {
    // A thread that ends may have none any more.
    KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten().unwrap_or_default()
}

/// Takes a buffer back.
pub(crate) fn keep(buffer: Vec<u8>) {
    if buffer.capacity() == 0 || buffer.capacity() > LARGEST {
        return;
    }
    let _ = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.len() < MOST {
            kept.push(buffer);
        }
    });
}
