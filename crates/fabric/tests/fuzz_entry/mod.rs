//! What a fuzzer calls: one function per thing that is read from a peer, from bytes to nothing.
//!
//! Each parses the bytes and checks that what can be parsed is emitted and parsed again as the same value. The stored
//! inputs are replayed by the `replay` test; a libFuzzer target includes this file by path and calls one function.

// Each file that includes this one uses a part of it.
#![allow(dead_code)]

use sidestep_fabric::{
    Cookie,
    link::shm::frame::{Frame, MAX_FRAME},
    protocol::Message,
    queue::{BLOCK_HEADER, QueueSpec},
};

/// A fuzz target: its name, which is also that of its corpus, and its function.
pub struct Target {
    pub name: &'static str,
    pub entry: fn(&[u8]),
}

/// Every target of this crate.
pub const TARGETS: [Target; 4] = [
    Target { name: "fabric_frame", entry: frame },
    Target { name: "fabric_message", entry: message },
    Target { name: "fabric_cookie", entry: cookie },
    Target { name: "fabric_queue_spec", entry: queue_spec },
];

/// Frames of the shared-memory link. An operand that an operation does not use comes back as zero.
pub fn frame(data: &[u8]) {
    let Ok(frame) = Frame::parse(data) else { return };
    let mut bytes = Vec::new();
    frame.emit(&mut bytes);
    assert_eq!(bytes.len(), data.len());
    assert!(bytes.len() <= MAX_FRAME || matches!(frame, Frame::Post(_)));
    assert_eq!(Frame::parse(&bytes), Ok(frame));
}

/// Messages between nodes.
pub fn message(data: &[u8]) {
    let Ok(message) = Message::parse(data) else { return };
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    assert_eq!(bytes, data);
}

/// Cookies.
pub fn cookie(data: &[u8]) {
    let Ok(cookie) = Cookie::from_bytes(data) else { return };
    assert_eq!(cookie.to_bytes(), data);
    assert!(format!("{cookie:?} {}", cookie.rights()).len() < 200);
}

/// Descriptions of queue blocks: what is accepted lies in its region.
pub fn queue_spec(data: &[u8]) {
    let Ok(spec) = QueueSpec::from_bytes(data) else { return };
    assert_eq!(spec.to_bytes(), data);
    assert!(spec.offset + BLOCK_HEADER as u64 + spec.capacity <= spec.cookie.len() as u64);
}
