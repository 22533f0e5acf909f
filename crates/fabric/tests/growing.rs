//! Growing a ring and leaving one while another process writes it.

use sidestep_fabric::{
    Aperture, Channel, ChannelOptions, Error, Node, Region,
    queue::{Kind, QueueBlock, QueueSpec},
};
use sidestep_sys::clock;
use sidestep_testkit::process::{Child, PATIENCE_NS, Role, enter, full, seed};
use sidestep_testkit::seeded::Seeded;

const SMALLEST: usize = 1024;
const GROWTHS: u32 = 7;
const OPTIONS: ChannelOptions = ChannelOptions { capacity: SMALLEST, kind: Kind::Stream };

#[test]
fn role() {
    enter(&[("grower", grower), ("leaver", leaver)]);
}

/// The receiver offers ring after ring, each twice as large, while the other process sends without a pause.
#[test]
fn growth_under_load() {
    for _ in 0..if full() { 50 } else { 5 } {
        let (node, name) = node_and_name("grow");
        let listener = node.listen(&name).unwrap();
        let mut child = Child::start("grower", &[&name]);
        let mut channel = Channel::accept(listener.wait(soon()).unwrap(), OPTIONS, b"", soon()).unwrap();
        let mut buffer = vec![0; 4000];
        let mut regions = Vec::new();
        for step in 1..=GROWTHS {
            let capacity = SMALLEST << step;
            let region = Region::new(&node, capacity + 4096).unwrap();
            let block = QueueBlock::new(&region, 0, capacity, Kind::Stream).unwrap();
            channel.receiver.offer_ring(&block).unwrap();
            channel.endpoint.post(&block.spec().to_bytes()).unwrap();
            regions.push(region);
            while channel.receiver.capacity() < capacity {
                take(&mut channel, &mut buffer);
            }
            for _ in 0..20 {
                take(&mut channel, &mut buffer);
            }
        }
        println!("grown to {} at {}", channel.receiver.capacity(), channel.receiver.position());
        channel.endpoint.post(b"enough").unwrap();
        let end: u64 = loop {
            match channel.endpoint.poll_message().unwrap() {
                Some(end) => break String::from_utf8(end).unwrap().parse().unwrap(),
                None => drop(channel.receiver.try_receive(&mut []).unwrap()),
            }
            if channel.receiver.available().unwrap() > 0 {
                take(&mut channel, &mut buffer);
            }
        };
        while channel.receiver.position() < end {
            take(&mut channel, &mut buffer);
        }
        assert_eq!((channel.receiver.position(), channel.receiver.available().unwrap()), (end, 0));
        drop(channel);
        child.wait_success();
    }
}

/// The sender of [`growth_under_load`].
fn grower(role: Role) {
    let node = Node::new().unwrap();
    let mut channel = Channel::connect(&node, &role.arguments[0], OPTIONS, b"", soon()).unwrap();
    let mut random = Seeded::new(seed());
    let mut apertures = Vec::new();
    loop {
        let len = random.below(3000) + 1;
        channel.sender.send(&pattern(channel.sender.position(), len), soon()).unwrap();
        match channel.endpoint.poll_message().unwrap() {
            None => {}
            Some(message) if message == b"enough" => break,
            Some(message) => {
                let spec = QueueSpec::from_bytes(&message).unwrap();
                let aperture = Aperture::open(&channel.endpoint, &spec.cookie, soon()).unwrap();
                channel.sender.adopt_ring(&aperture, &spec).unwrap();
                assert_eq!(channel.sender.capacity() as u64, spec.capacity);
                apertures.push(aperture);
            }
        }
    }
    channel.endpoint.post(channel.sender.position().to_string().as_bytes()).unwrap();
    channel.endpoint.wait_closed(soon()).unwrap();
}

/// The receiver leaves at a random moment; what it did not read the other process takes back, not a byte more or less.
#[test]
fn freeze_and_take_back() {
    let seed = seed();
    println!("seed {seed}");
    let mut random = Seeded::new(seed);
    let (node, name) = node_and_name("leave");
    let listener = node.listen(&name).unwrap();
    let rounds = if full() { 2000 } else { 150 };
    let mut child = Child::start("leaver", &[&name, &rounds.to_string()]);
    let (mut with_rest, mut without) = (0, 0);
    for round in 0..rounds {
        let mut channel = Channel::accept(listener.wait(soon()).unwrap(), OPTIONS, b"", soon()).unwrap();
        let mut buffer = vec![0; 700];
        let target = random.below(20_000);
        while channel.receiver.position() < target {
            take(&mut channel, &mut buffer);
        }
        let unread = channel.receiver.want().unwrap();
        let end = channel.receiver.position();
        let message = channel.endpoint.wait_message(soon()).unwrap_or_else(|error| panic!("{round}: {error}"));
        let (position, rest) = message.split_at(8);
        assert_eq!(u64::from_le_bytes(position.try_into().unwrap()), end, "seed {seed}, round {round}");
        check(end, rest);
        assert_eq!(unread, !rest.is_empty(), "seed {seed}, round {round}: unread bytes were not taken back");
        if rest.is_empty() {
            without += 1
        } else {
            with_rest += 1
        }
        channel.endpoint.post(b"thanks").unwrap();
        channel.endpoint.wait_closed(soon()).unwrap();
    }
    println!("left with {with_rest} rests to take back, and {without} without");
    child.wait_success();
}

/// The sender of [`freeze_and_take_back`].
fn leaver(role: Role) {
    let node = Node::new().unwrap();
    let mut random = Seeded::new(seed());
    for _ in 0..role.number(1) {
        let mut channel = Channel::connect(&node, &role.arguments[0], OPTIONS, b"", soon()).unwrap();
        loop {
            let len = random.below(900) + 1;
            let bytes = pattern(channel.sender.position(), len);
            if channel.sender.try_send(&bytes) == Err(Error::Frozen) {
                break;
            }
            if channel.sender.space().unwrap() == 0 {
                let deadline = Some(clock::now() + 1_000_000);
                match channel.sender.wait_space(1, deadline) {
                    Ok(()) | Err(Error::TimedOut(_)) => {}
                    Err(Error::Frozen) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        let rest = channel.sender.take().unwrap().unwrap_or_default();
        let end = channel.sender.position();
        channel.endpoint.post(&[&end.to_le_bytes(), &rest[..]].concat()).unwrap();
        assert_eq!(channel.endpoint.wait_message(soon()).unwrap(), b"thanks");
    }
}

fn take(channel: &mut Channel, buffer: &mut [u8]) {
    let position = channel.receiver.position();
    let len = channel.receiver.receive(buffer, soon()).expect("a peer that gives");
    check(position, &buffer[..len]);
}

fn node_and_name(what: &str) -> (Node, String) {
    let name = format!("shm:{what}-{}-{}", std::process::id(), clock::now());
    (Node::new().unwrap(), name)
}

fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}

/// The bytes of a stream, in which every position can be told from its neighbours, from a position on.
fn pattern(position: u64, len: u64) -> Vec<u8> {
    (position..position + len).map(byte_at).collect()
}

/// That these are the bytes of the stream from a position on.
fn check(position: u64, bytes: &[u8]) {
    let wrong = bytes.iter().zip(position..).find(|(byte, at)| **byte != byte_at(*at));
    assert!(wrong.is_none(), "byte {} is not the one that was sent", wrong.unwrap().1);
}

fn byte_at(position: u64) -> u8 {
    (position ^ position >> 7 ^ position >> 14) as u8
}
