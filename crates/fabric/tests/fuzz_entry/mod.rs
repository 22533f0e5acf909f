//! What a fuzzer calls: one function per thing that is read from a peer, from bytes to nothing.
//!
//! Each parses the bytes and checks that what can be parsed is emitted and parsed again as the same value. The stored
//! inputs are replayed by the `replay` test; a libFuzzer target includes this file by path and calls one function.

// Each file that includes this one uses a part of it.
#![allow(dead_code)]

pub mod iwarp_peer;

use std::sync::OnceLock;

use sidestep_fabric::{
    Cookie,
    link::{
        LinkOptions,
        iwarp::control::{Control, Hello},
        shm::frame::{Frame, MAX_FRAME},
    },
    protocol::Message,
    queue::{BLOCK_HEADER, QueueSpec},
};

/// A fuzz target: its name, which is also that of its corpus, and its function.
pub struct Target {
    pub name: &'static str,
    pub entry: fn(&[u8]),
}

/// Every target of this crate.
pub const TARGETS: [Target; 7] = [
    Target { name: "fabric_iwarp_hello", entry: iwarp_hello },
    Target { name: "fabric_iwarp_control", entry: iwarp_control },
    Target { name: "fabric_iwarp_link", entry: iwarp_link },
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

/// Private data of set-up. A reserved byte comes back as zero.
pub fn iwarp_hello(data: &[u8]) {
    let Ok(hello) = Hello::parse(data) else { return };
    assert_eq!(Hello::parse(&hello.to_bytes()), Ok(hello));
}

/// Sends of the iWARP link.
pub fn iwarp_control(data: &[u8]) {
    let Ok(control) = Control::parse(data) else { return };
    let mut bytes = Vec::new();
    control.emit(&mut bytes);
    assert_eq!(bytes, data);
}

/// A whole link, against a peer that the bytes tell what to do: each step is a byte that says what, and a few that say
/// how.
pub fn iwarp_link(data: &[u8]) {
    use iwarp_peer::{Peer, Victim, good_cookie};
    use sidestep_iwarp::{Operation, Stag};

    static VICTIM: OnceLock<Victim> = OnceLock::new();
    let victim = VICTIM.get_or_init(|| Victim::new(LinkOptions::default()));
    let mut peer = Peer::established(victim);
    let mut rest = data;
    let mut byte = || {
        let (first, others) = rest.split_first()?;
        rest = others;
        Some(*first)
    };
    for _ in 0..32 {
        let (Some(what), Some(tag), Some(offset), Some(len)) = (byte(), byte(), byte(), byte()) else { break };
        let (stag, offset) = (Stag(u32::from(tag)), u64::from(offset) * 2);
        match what % 8 {
            0 => {
                let bytes: Vec<u8> = (0..len).map_while(|_| byte()).collect();
                peer.send(&bytes, None);
            }
            1 => peer.say(&Control::Bind { stag, cookie: good_cookie() }),
            2 => peer.write(stag, offset, &vec![tag; usize::from(len)]),
            3 => peer.read(stag, offset, u32::from(len) << (what >> 4)),
            4 => peer.atomic(stag, offset, Operation::FetchAdd { add: u64::from(len), mask: 0 }),
            5 => peer.send(&[6], Some(stag)),
            6 => {
                let bytes: Vec<u8> = (0..len).map_while(|_| byte()).collect();
                peer.step();
                peer.send_raw(&bytes);
            }
            _ => peer.say(&Control::Check { stag }),
        }
        peer.step();
        victim.poll();
    }
    for _ in 0..4 {
        peer.step();
        victim.poll();
    }
    drop(peer);
    victim.poll();
    victim.owner.closed.lock().expect("no panic").clear();
    victim.owner.messages.lock().expect("no panic").clear();
}
