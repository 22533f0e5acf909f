//! What a holder leaves undone when it dies between two steps: made by hand, since no kill hits so narrow a moment.

use std::{
    os::fd::AsFd,
    sync::atomic::Ordering,
    thread::{self, JoinHandle},
};

use sidestep_fabric::{
    Aperture, Channel, ChannelOptions, Node, Region,
    queue::{self, Handover, Kind, QueueBlock, QueueSpec, Receiver, Sender},
};
use sidestep_shm::{Memory, wait::Patience, watch::watch_len};
use sidestep_testkit::process::PATIENCE_NS;

use crate::{
    pattern::{check, pattern},
    soon,
};

const CAPACITY: usize = 4096;
/// Where a side keeps its positions in family memory, written and read (docs/fabric.md).
const FAMILY: [usize; 2] = [0x00, 0x40];
const BLOCK_HEADER: usize = 0x100;

/// It had read, and not yet said so: its successor says it, though there is nothing more to read.
pub fn space_is_told() {
    let mut pair = Pair::new("space");
    let mut sender = pair.peer_sender.take().unwrap();
    assert_eq!(sender.try_send(&pattern(0, CAPACITY as u64)).unwrap(), CAPACITY);
    let waiting = thread::spawn(move || {
        sender.set_patience(Patience::NONE);
        sender.wait_space(1, soon()).expect("space");
    });
    pair.family.word64(FAMILY[1]).unwrap().store(CAPACITY as u64, Ordering::Release);
    let _second = pair.handover.attach().unwrap();
    join(waiting);
}

/// It had written, and cleared the armed bit, and not yet rung: its successor rings.
pub fn sleeper_is_woken() {
    let mut pair = Pair::new("sleeper");
    let mut receiver = pair.peer_receiver.take().unwrap();
    let waiting = thread::spawn(move || {
        receiver.set_patience(Patience::NONE);
        let mut bytes = [0; 100];
        receiver.receive_exact(&mut bytes, soon()).expect("bytes");
        check(0, &bytes);
    });
    let spec = pair.peer_spec;
    let armed = spec.cookie.len().next_multiple_of(64);
    let bits = pair.peer_memory.words(armed, watch_len(spec.cookie.len()) / 8).unwrap();
    // The tail is the first word of the block, and armed while the receiver sleeps.
    let line = spec.offset as usize / 256;
    while bits.load(line, Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    let at = spec.offset as usize + BLOCK_HEADER;
    pair.peer_memory.span(at, CAPACITY).unwrap().copy_in(0, &pattern(0, 100)).unwrap();
    pair.family.word64(FAMILY[0]).unwrap().store(100, Ordering::Release);
    pair.peer_memory.word64(spec.offset as usize).unwrap().store(100, Ordering::Release);
    bits.word(line).store(0, Ordering::SeqCst);
    let _second = pair.handover.attach().unwrap();
    join(waiting);
}

/// A queue whose first holder does nothing any more, and its peer.
struct Pair {
    handover: Handover,
    family: Memory,
    peer_memory: Memory,
    peer_spec: QueueSpec,
    peer_sender: Option<Sender>,
    peer_receiver: Option<Receiver>,
    _kept: Box<dyn std::any::Any>,
}

impl Pair {
    fn new(what: &str) -> Pair {
        let name = format!("shm:undone-{what}-{}", std::process::id());
        let listening = Node::new().unwrap();
        let listener = listening.listen(&name).unwrap();
        let accepting = thread::spawn(move || {
            let options = ChannelOptions { capacity: CAPACITY, kind: Kind::Stream, shared: false };
            Channel::accept(listener.wait(soon()).unwrap(), options, b"", soon()).unwrap()
        });
        let node = Node::new().unwrap();
        let region = Region::new(&node, 16 * 1024).unwrap();
        let block = QueueBlock::new(&region, 0, CAPACITY, Kind::Stream).unwrap();
        let endpoint = node.begin_connect(&name, &block.spec().to_bytes()).unwrap();
        endpoint.wait_connected(soon()).unwrap();
        let peer_spec = QueueSpec::from_bytes(&endpoint.private()[..QueueSpec::WIRE_LEN]).unwrap();
        let aperture = Aperture::open(&endpoint, &peer_spec.cookie, soon()).unwrap();
        let family = queue::shared_family().unwrap();
        let first = queue::attach(&endpoint, &block, &aperture, &peer_spec, &family).unwrap();
        let handover = Handover::describe(&endpoint, &block, &aperture, &peer_spec, &family).unwrap();
        let peer = handover.descriptors[1].as_fd().try_clone_to_owned().unwrap();
        let len = rustix::fs::fstat(&peer).unwrap().st_size as usize;
        let Channel { sender, receiver, endpoint: peer_endpoint } = accepting.join().unwrap();
        Pair {
            handover,
            family,
            peer_memory: Memory::attach(peer, len).unwrap(),
            peer_spec,
            peer_sender: Some(sender),
            peer_receiver: Some(receiver),
            _kept: Box::new((first, endpoint, peer_endpoint, region, aperture)),
        }
    }
}

fn join(waiting: JoinHandle<()>) {
    let deadline = sidestep_sys::clock::now() + PATIENCE_NS;
    while !waiting.is_finished() {
        assert!(sidestep_sys::clock::now() < deadline, "the peer was not woken");
        thread::yield_now();
    }
    waiting.join().unwrap();
}
