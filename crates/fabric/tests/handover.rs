//! Handing a queue to another process, leaving it, and growing it: between processes, under load, and with the first
//! holder killed in the middle.

#[path = "handover/growth.rs"]
mod growth;
#[path = "handover/pattern.rs"]
mod pattern;
#[path = "handover/undone.rs"]
mod undone;

use std::{
    os::fd::{AsFd, BorrowedFd},
    thread,
    time::Duration,
};

use sidestep_fabric::{
    Aperture, Channel, ChannelOptions, Node, Region,
    queue::{self, Handover, Kind, QueueBlock, QueueSpec, Receiver, Sender},
};
use sidestep_shm::wait::Patience;
use sidestep_sys::clock;
use sidestep_testkit::process::{Child, PATIENCE_NS, Role, enter, full, seed};
use sidestep_testkit::seeded::Seeded;

use pattern::{check, pattern};

/// Bytes each side sends in all.
const TOTAL: u64 = 3_000_000;

#[test]
fn role() {
    enter(&[("first", first), ("second", second), ("grower", growth::grower), ("leaver", growth::leaver)]);
}

#[test]
fn handover_after_sigkill() {
    for _ in 0..if full() { 100 } else { 8 } {
        hand_over("flow", |random, first| {
            thread::sleep(Duration::from_micros(random.below(6_000)));
            first.kill();
        });
    }
}

#[test]
fn handover_after_exit() {
    for _ in 0..if full() { 20 } else { 3 } {
        hand_over("flow", |random, first| {
            thread::sleep(Duration::from_micros(random.below(6_000)));
            first.control.say("exit");
        });
    }
}

/// The peer sleeps while the queue changes hands, and so does the first holder.
#[test]
fn handover_while_all_sleep() {
    for _ in 0..3 {
        hand_over("rest", |_, first| {
            thread::sleep(Duration::from_millis(20));
            first.kill();
        });
    }
}

#[test]
fn handover_growth_under_load() {
    growth::grow();
}

#[test]
fn handover_freeze_and_take_back() {
    growth::leave();
}

#[test]
fn handover_of_a_read_that_was_not_told() {
    undone::space_is_told();
}

#[test]
fn handover_of_a_ring_that_was_not_rung() {
    undone::sleeper_is_woken();
}

/// This process is the peer throughout: it must see every byte once and in order, and so must they.
fn hand_over(manner: &str, end: impl FnOnce(&mut Seeded, &mut Child)) {
    let seed = seed();
    println!("seed {seed}");
    let mut random = Seeded::new(seed);
    let name = format!("shm:handover-{}-{seed}", std::process::id());
    let node = Node::new().unwrap();
    let listener = node.listen(&name).unwrap();
    let mut first = Child::start("first", &[&name, manner]);
    let mut second = Child::start("second", &[]);
    let options = ChannelOptions { capacity: 8192, kind: Kind::Stream, shared: false };
    let channel = Channel::accept(listener.wait(soon()).unwrap(), options, b"", soon()).unwrap();
    let Channel { sender, receiver, endpoint } = channel;
    let seeds = [random.next_u64(), random.next_u64()];
    let (sending, receiving) = flow(sender, receiver, seeds);
    // Serves what the first process asks for; it is not asked any more once it has everything.
    let mut descriptors = Vec::new();
    let state = first.control.receive(&mut descriptors).expect("a handover");
    let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    second.control.send(&state, &borrowed);
    drop(descriptors);
    end(&mut random, &mut first);
    first.wait();
    second.control.say("go");
    let positions = second.control.hear_numbers();
    sending.join().unwrap_or_else(|_| panic!("seed {seed}"));
    receiving.join().unwrap_or_else(|_| panic!("seed {seed}"));
    second.control.say("end");
    second.wait_success();
    println!("{manner}: taken over at {positions:?} of {TOTAL}");
    drop(endpoint);
}

/// Sends and receives [`TOTAL`] bytes, each direction in a thread, from where each stands.
fn flow(
    mut sender: Sender,
    mut receiver: Receiver,
    seeds: [u64; 2],
) -> (thread::JoinHandle<Sender>, thread::JoinHandle<Receiver>) {
    let sending = thread::spawn(move || {
        let mut random = Seeded::new(seeds[0]);
        while sender.position() < TOTAL {
            let len = (random.below(3000) + 1).min(TOTAL - sender.position());
            sender.send(&pattern(sender.position(), len), soon()).expect("a peer that takes");
            pause(&mut random);
        }
        sender
    });
    let receiving = thread::spawn(move || {
        let mut random = Seeded::new(seeds[1]);
        let mut buffer = [0; 2500];
        while receiver.position() < TOTAL {
            if random.chance(50) {
                receiver.set_patience(if random.chance(500) { Patience::NONE } else { Patience::DEFAULT });
            }
            let position = receiver.position();
            let len = receiver.receive(&mut buffer, soon()).expect("a peer that gives");
            check(position, &buffer[..len]);
            pause(&mut random);
        }
        receiver
    });
    (sending, receiving)
}

/// The first holder: makes the connection, gives a description away, and uses the queue until it ends.
fn first(role: Role) {
    let node = Node::new().unwrap();
    let region = Region::new(&node, 64 * 1024).unwrap();
    let block = QueueBlock::new(&region, 1024, 8192, Kind::Stream).unwrap();
    let endpoint = node.connect(&role.arguments[0], &block.spec().to_bytes(), soon()).unwrap();
    let theirs = QueueSpec::from_bytes(&endpoint.private()[..QueueSpec::WIRE_LEN]).unwrap();
    let aperture = Aperture::open(&endpoint, &theirs.cookie, soon()).unwrap();
    let family = queue::shared_family().unwrap();
    let (sender, receiver) = queue::attach(&endpoint, &block, &aperture, &theirs, &family).unwrap();
    let handover = Handover::describe(&endpoint, &block, &aperture, &theirs, &family).unwrap();
    let descriptors: Vec<BorrowedFd<'_>> = handover.descriptors.iter().map(AsFd::as_fd).collect();
    role.control.send(&handover.state, &descriptors);
    if role.arguments[1] == "flow" {
        let _threads = flow(sender, receiver, [1, 2]);
        role.control.hear();
    } else {
        let mut receiver = receiver;
        receiver.peek(0, &mut []).unwrap();
        role.control.hear();
    }
    // Without a word to the peer: the connection goes on.
    std::process::exit(0);
}

/// The second holder: takes the queue up where it was left, and brings it to its end.
fn second(role: Role) {
    let mut descriptors = Vec::new();
    let state = role.control.receive(&mut descriptors).expect("a handover");
    role.control.expect("go");
    let (sender, mut receiver) = Handover { descriptors, state }.attach().unwrap();
    let positions = (sender.position(), receiver.position());
    let (sending, receiving) = flow(sender, receiver, [3, 4]);
    let ends = (sending.join().unwrap(), receiving.join().unwrap());
    role.control.say(&format!("{} {}", positions.0, positions.1));
    // The lifeline goes with it; the peer has received everything by then.
    role.control.expect("end");
    drop(ends);
}

fn pause(random: &mut Seeded) {
    match random.below(200) {
        0 => thread::sleep(Duration::from_micros(random.below(300))),
        1..4 => thread::yield_now(),
        _ => {}
    }
}

fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}
