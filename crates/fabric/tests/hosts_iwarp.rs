//! The fabric between two hosts: the whole suite over a cable, and what a network can do to a connection: lose, delay,
//! reorder and double packets, go down, and let a peer vanish.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use sidestep_fabric::{
    Aperture, Channel, ChannelOptions, CloseReason, Cookie, Endpoint, Error, Listener, Node, RdmaQueue, Region, Rights,
    link::{AnyLink, LinkOptions, iwarp::IwarpLink},
};
use sidestep_sys::clock;
use sidestep_testkit::{
    conformance::nodes::pattern,
    conformance_suite,
    hosts::{self, Hosts, Weather},
    process::{Child, PATIENCE_NS, Role, enter, full},
};

conformance_suite!(two_hosts, sidestep_testkit::conformance::fixture::iwarp_two_hosts);

#[test]
fn role() {
    enter(&[("owner", owner)]);
}

/// Under rain everything arrives, whole and in order, and nothing ends.
#[test]
fn loss_delay_and_reordering_are_not_seen() {
    let Some(hosts) = with_relay(Weather {
        seed: 7,
        delay_ns: 200_000,
        jitter_ns: 800_000,
        lost_per_mille: 10,
        doubled_per_mille: 10,
    }) else {
        return;
    };
    let pair = Pair::new(&hosts, LinkOptions::default());
    pair.transfer(if full() { 64 << 20 } else { 2 << 20 });
    pair.exchange_messages(if full() { 2000 } else { 100 });
    let (passed, lost, overtaken) = hosts.relay().expect("a relay").counts();
    println!("{passed} packets passed, {lost} were lost, {overtaken} were overtaken");
    assert!(passed > 1000 && lost > 0 && overtaken > 0);
}

/// The same with a rule of the kernel that drops packets of the cable.
#[test]
fn packets_dropped_by_the_kernel_are_not_missed() {
    let Some(hosts) = with_cable() else { return };
    let commands: [&[&str]; 4] = [
        &["nft", "add table ip rain"],
        &["nft", "add chain ip rain fall { type filter hook input priority 0 ; }"],
        &["nft", "add rule ip rain fall ip protocol tcp numgen random mod 200 < 1 drop"],
        // A packet of the cable is as large as a write, unless it is told otherwise.
        &["ip", "link", "set", "wire", "gso_max_segs", "1"],
    ];
    let ruled = commands.iter().try_for_each(|command| hosts.host(1).run(command));
    let ruled = ruled.and_then(|()| hosts.host(0).run(commands[3]));
    if let Err(why) = ruled {
        return println!("skipped: packets cannot be dropped here: {why}");
    }
    let pair = Pair::new(&hosts, LinkOptions::default());
    pair.transfer(if full() { 32 << 20 } else { 2 << 20 });
}

/// A stream under rain: bytes of a message queue arrive in order.
#[test]
fn a_channel_under_rain() {
    let Some(hosts) = with_relay(Weather { seed: 8, jitter_ns: 500_000, lost_per_mille: 10, ..Weather::default() })
    else {
        return;
    };
    let (a, b) = (node(&hosts, 0, LinkOptions::default()), node(&hosts, 1, LinkOptions::default()));
    let name = "iwarp:10.77.0.2:9100";
    let listener = b.listen(name).expect("a free port");
    let bytes = pattern(if full() { 4 << 20 } else { 256 << 10 }, 5);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let request = listener.wait(soon()).expect("a request");
            let mut end = Channel::accept(request, ChannelOptions::default(), b"", soon()).expect("a channel");
            let mut got = vec![0; bytes.len()];
            let mut filled = 0;
            while filled < got.len() {
                filled += end.receiver.receive(&mut got[filled..], soon()).expect("bytes");
            }
            assert!(got == bytes, "the bytes are not those that were sent");
            end.sender.send(b"!", soon()).expect("an answer");
            let _ = end.endpoint.wait_closed(soon());
        });
        let mut end = Channel::connect(&a, name, ChannelOptions::default(), b"", soon()).expect("a channel");
        bytes.chunks(10_000).for_each(|piece| end.sender.send(piece, soon()).expect("room"));
        let mut answer = [0];
        assert_eq!(end.receiver.receive(&mut answer, soon()), Ok(1));
    });
}

/// A cable that is pulled for a while is not noticed but by its slowness.
#[test]
fn a_cable_that_comes_back() {
    let Some(hosts) = with_cable() else { return };
    let pair = Pair::new(&hosts, LinkOptions::default());
    pair.transfer(64 << 10);
    hosts.host(1).run(&["ip", "link", "set", "wire", "down"]).expect("a cable to pull");
    let writing = pair.queue.write(&pair.source.slice(0, 4096).expect("inside"), &pair.aperture, 0).expect("room");
    let early = pair.queue.wait(writing, Some(clock::now() + 300_000_000));
    assert!(matches!(early, Err(Error::TimedOut(_))), "{early:?}");
    hosts.host(1).run(&["ip", "link", "set", "wire", "up"]).expect("a cable to plug in");
    pair.queue.wait(writing, soon()).expect("a write");
}

/// A peer that vanishes without a word is given up after the time of silence, whether anything is under way or not.
#[test]
fn a_peer_that_vanishes_is_given_up() {
    let silence = Duration::from_secs(if full() { 8 } else { 4 });
    for busy in [false, true] {
        let Some(hosts) = with_relay(Weather::default()) else { return };
        let pair = Pair::new(&hosts, LinkOptions { silence, ..LinkOptions::default() });
        pair.transfer(4096);
        hosts.relay().expect("a relay").cut(true);
        let began = Instant::now();
        let writing = busy.then(|| pair.queue.write(&pair.source.all(), &pair.aperture, 0).expect("room"));
        let (error, _) = pair.to_b.wait_closed(soon()).expect("an end");
        assert!(matches!(error, Error::Closed(CloseReason::Link(_))), "{error:?}");
        // A connection that is not given up for its silence outlasts the patience of the test: TCP tries for longer than that.
        let took = began.elapsed();
        assert!(took >= silence / 2, "given up after {took:?}, not after {silence:?}");
        if let Some(writing) = writing {
            assert!(pair.queue.wait(writing, soon()).is_err());
        }
    }
}

/// A peer that is killed in the middle of everything is reported as dead, and its place can be taken at once.
#[test]
fn a_peer_that_is_killed() {
    let Some(hosts) = with_cable() else { return };
    let node = node(&hosts, 0, LinkOptions::default());
    for round in 0..if full() { 50 } else { 5 } {
        let holder = hosts.host(1).id().to_string();
        let mut child = Child::start("owner", &[&holder]);
        child.control.expect("here");
        let endpoint = node.connect("iwarp:10.77.0.2:9200", b"", soon()).expect("someone who accepts");
        let cookie = Cookie::from_bytes(&endpoint.private()).expect("a cookie");
        let aperture = Aperture::open(&endpoint, &cookie, soon()).expect("a good cookie");
        let queue = RdmaQueue::new(&node, 64);
        let source = Region::new(&node, OWNED).expect("memory");
        let mut writes: Vec<_> =
            (0..8).map(|_| queue.write(&source.all(), &aperture, 0).expect("room in the queue")).collect();
        if round % 2 == 0 {
            queue.wait(writes.remove(0), soon()).expect("a write");
        }
        child.kill();
        let (error, _) = endpoint.wait_closed(soon()).expect("an end");
        assert_eq!(error, Error::Closed(CloseReason::Died), "round {round}");
        // Those that were under way end, by success or not; one that begins now cannot succeed.
        for write in writes {
            assert!(!matches!(queue.wait(write, soon()), Err(Error::TimedOut(_))), "round {round}");
        }
        assert!(queue.write(&source.all(), &aperture, 0).and_then(|write| queue.wait(write, soon())).is_err());
        child.wait();
    }
}

/// Serves one region on the other host, until it is killed.
fn owner(role: Role) {
    hosts::enter(role.number(0) as u32).expect("a host");
    let node = Node::open(&["iwarp"], &LinkOptions::default()).expect("a node");
    let listener = node.listen("iwarp:0.0.0.0:9200").expect("a free port");
    let region = Region::new(&node, OWNED).expect("memory");
    role.control.say("here");
    let request = listener.wait(None).expect("a request");
    let endpoint = request.accept(&region.cookie(Rights::ALL).to_bytes()).expect("a peer that waits");
    let _ = endpoint.wait_closed(None);
}

/// Two nodes on two hosts, with a region of the second open at the first.
struct Pair {
    a: Node,
    to_b: Endpoint,
    to_a: Endpoint,
    source: Region,
    target: Region,
    aperture: Aperture,
    queue: RdmaQueue,
    _listener: Listener,
}

impl Pair {
    fn new(hosts: &Hosts, options: LinkOptions) -> Pair {
        let (a, b) = (node(hosts, 0, options), node(hosts, 1, options));
        let name = "iwarp:10.77.0.2:9000";
        let listener = b.listen(name).expect("a free port");
        let to_b = a.begin_connect(name, b"").expect("someone who listens");
        let to_a = listener.wait(soon()).expect("a request").accept(b"").expect("a peer that waits");
        to_b.wait_connected(soon()).expect("an answer");
        let (source, target) = (Region::new(&a, REGION).expect("memory"), Region::new(&b, REGION).expect("memory"));
        let aperture = Aperture::open(&to_b, &target.cookie(Rights::ALL), soon()).expect("a good cookie");
        let queue = RdmaQueue::new(&a, 64);
        Pair { a, to_b, to_a, source, target, aperture, queue, _listener: listener }
    }

    /// Writes so many bytes, reads them back, and counts with atomics; the owner does nothing.
    fn transfer(&self, len: usize) {
        let back = Region::new(&self.a, REGION).expect("memory");
        let count = self.target.word64(REGION - 8).expect("a word").load(Ordering::Acquire);
        for (round, _) in (0..len).step_by(LOT).enumerate() {
            let lot = LOT.min(len);
            let bytes = pattern(lot, round as u64);
            self.source.write(0, &bytes).expect("inside");
            self.queue.write(&self.source.slice(0, lot).expect("inside"), &self.aperture, 0).expect("room");
            let read = self.queue.read(&self.aperture, 0, &back.slice(0, lot).expect("inside")).expect("room");
            let word = back.slice(REGION - 8, 8).expect("inside");
            let added = self.queue.fetch_add(&self.aperture, REGION - 8, 1, &word).expect("room");
            self.queue.wait(read, soon()).expect("a read");
            self.queue.wait(added, soon()).expect("an atomic");
            let mut got = vec![0; lot];
            back.read(0, &mut got).expect("inside");
            assert!(got == bytes, "round {round}: what was read is not what was written");
            self.target.read(0, &mut got).expect("inside");
            assert!(got == bytes, "round {round}: what lies there is not what was written");
            let held = back.word64(REGION - 8).expect("a word").load(Ordering::Acquire);
            assert_eq!(held, count + round as u64);
        }
    }

    /// Messages go and come, in order.
    fn exchange_messages(&self, count: usize) {
        for number in 0..count {
            let message = pattern(number % 4096 + 1, number as u64);
            self.to_b.post(&message).expect("an open connection");
            assert!(self.to_a.wait_message(soon()).expect("a message") == message);
            self.to_a.post(&message).expect("an open connection");
            assert!(self.to_b.wait_message(soon()).expect("a message") == message);
        }
    }
}

fn node(hosts: &Hosts, index: usize, options: LinkOptions) -> Node {
    let link = IwarpLink::on(options, hosts.network(index)).expect("an iWARP link");
    Node::with_links(vec![AnyLink::Iwarp(Box::new(link))]).expect("a node")
}

fn with_cable() -> Option<Hosts> {
    Hosts::with_cable().map_err(|why| println!("skipped: two hosts cannot be made here: {why}")).ok()
}

fn with_relay(weather: Weather) -> Option<Hosts> {
    Hosts::with_relay(weather).map_err(|why| println!("skipped: two hosts cannot be made here: {why}")).ok()
}

fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}

const LOT: usize = 256 << 10;
const REGION: usize = LOT + 64;
const OWNED: usize = 1 << 20;
