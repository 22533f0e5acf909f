//! What a fuzzer calls: everything that is read from the process at the other end, or from one that claims to be there. The
//! stored inputs are replayed by the `replay` test; a libFuzzer target includes this file by path.

use sidestep_sockets::engine::{HANDSHAKE, read_answer, read_hello, read_question, read_ticket};

/// Questions for rings and for tickets, and their answers. What can be read is of this handshake, and one thing only.
pub fn handshake(data: &[u8]) {
    let read = [
        read_hello(data).is_some(),
        read_answer(data).is_some(),
        read_question(data).is_some(),
        read_ticket(data).is_some(),
    ];
    let count = read.iter().filter(|read| **read).count();
    assert!(count <= 1);
    assert!(count == 0 || data.starts_with(&HANDSHAKE.to_le_bytes()));
    if let Some(key) = read_question(data) {
        assert_eq!(key.reversed().reversed(), key);
    }
}
