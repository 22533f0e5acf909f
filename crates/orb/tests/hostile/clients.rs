//! Hostile clients of our server.

use sidestep_orb::{Dispatching, Orb, Stub, Threads};
use sidestep_sys::seeded::Seeded;
use sidestep_testkit::process::full;
use sidestep_wire::giop::{MessageType, Target};

use crate::panics;
use crate::peer::{Peer, seen_by, serve};
use crate::raw::messages::{begun, id_of, key_of, locate_request, message, message_of_size, reply, request, type_of};
use crate::raw::{Raw, listening, name_of};

/// Bytes after which the server has to end the connection, and what is wrong with them.
fn malformed(key: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let ping = request(1, key, "ping", |_| {});
    let changed = |at: usize, value: u8| {
        let mut bytes = ping.clone();
        bytes[at] = value;
        bytes
    };
    let fragment =
        |id: u32, len: usize| message(MessageType::Fragment, &[&id.to_ne_bytes()[..], &vec![0; len]].concat());
    let stray_reply = reply(1, sidestep_wire::giop::reply::Status::NoException, |_| {});
    vec![
        ("another protocol", b"GET / HTTP/1.0\r\n\r\n".to_vec()),
        ("GIOP 2.0", changed(4, 2)),
        ("GIOP 1.9", changed(5, 9)),
        ("an unknown type of message", changed(7, 9)),
        ("a size beyond the limit", message_of_size(MessageType::Request, u32::MAX, &[])),
        ("a request of no bytes", message(MessageType::Request, &[])),
        ("a request that ends within its header", message(MessageType::Request, &ping[12..24])),
        (
            "a key that is longer than the message",
            message(MessageType::Request, &[&ping[12..24], &[0xff; 16]].concat()),
        ),
        ("an addressing mode that is none", changed(20, 9)),
        ("a reply that nobody asked for", stray_reply),
        ("a locate reply", message(MessageType::LocateReply, &[0; 8])),
        ("a fragment of nothing", fragment(1, 8)),
        ("a fragment of another message", [begun(request(1, key, "ping", |_| {})), fragment(2, 8)].concat()),
        ("a cancelled request that goes on in fragments", begun(message(MessageType::CancelRequest, &[0; 4]))),
        ("a cancelled request without an id", message(MessageType::CancelRequest, &[])),
        ("a locate request without a target", message(MessageType::LocateRequest, &[0; 4])),
        ("a service context without an end", {
            let mut bytes = ping.clone();
            let len = bytes.len();
            bytes[len - 4..].fill(0x7f);
            bytes
        }),
    ]
}

/// Bytes after which more is expected.
fn incomplete(key: &[u8]) -> Vec<Vec<u8>> {
    let octets = vec![7; 40_000];
    let long = request(1, key, "some_octets", |encoder| {
        encoder.octets(&octets).unwrap();
        encoder.octets(&[]).unwrap();
    });
    let cuts = [1, 11, 12, 13, 20, 60, 1000, 8191, 8192, 20_000, long.len() - 1];
    let mut all: Vec<Vec<u8>> = cuts.iter().map(|cut| long[..*cut].to_vec()).collect();
    all.push(begun(request(1, key, "ping", |_| {})));
    all.push(message_of_size(MessageType::Request, 60 << 20, &[0; 100]));
    all
}

/// A server that is attacked, and what else it serves all the while.
struct Victim {
    server: Orb,
    own: Peer,
    witness: Peer,
    key: Vec<u8>,
}

impl Victim {
    fn new(on: &str, threads: Threads) -> Self {
        panics::watch();
        let server = listening(on, &name_of(on)).threads(threads).build().unwrap();
        let own = serve(&server).0;
        let witness = seen_by(&Orb::builder().build().unwrap(), &own);
        let key = key_of(&own);
        Self { server, own, witness, key }
    }

    fn connect(&self) -> Raw {
        Raw::connect(self.own.object().ior())
    }

    /// It serves others, and ends when it is told to.
    fn end(self) {
        self.witness.ping().unwrap();
        self.server.shutdown();
        self.server.run();
        assert_eq!(panics::count(), 0);
    }
}

/// Whole messages, each answered as it should be.
fn ask(raw: &mut Raw, key: &[u8]) {
    let mut kept = Vec::new();
    raw.send(&request(7, key, "ping", |_| {}));
    let answer = raw.read_message(&mut kept).expect("an answer");
    assert_eq!((type_of(&answer), id_of(&answer)), (MessageType::Reply, 7));
    raw.send(&locate_request(8, Target::Key(key)));
    let answer = raw.read_message(&mut kept).expect("an answer");
    assert_eq!((type_of(&answer), id_of(&answer)), (MessageType::LocateReply, 8));
}

fn attack(on: &str, threads: Threads) {
    let victim = Victim::new(on, threads);
    let mut patient = victim.connect();
    ask(&mut patient, &victim.key);
    for (what, bytes) in malformed(&victim.key) {
        let mut raw = victim.connect();
        raw.send(&bytes);
        let answer = raw.read_to_end();
        let is_error = answer.len() == 12 && type_of(&answer) == MessageType::MessageError;
        assert!(is_error, "{what}, over {on}, is answered with {answer:02x?}");
        victim.witness.ping().unwrap();
    }
    for bytes in incomplete(&victim.key) {
        victim.connect().send(&bytes);
        victim.witness.ping().unwrap();
    }
    // In the wrong order, and none of it is wrong: what is said twice, cancelled too late, or sent behind the end.
    let mut raw = victim.connect();
    raw.send(&message(MessageType::CancelRequest, &99u32.to_ne_bytes()));
    ask(&mut raw, &victim.key);
    let twice = request(7, &victim.key, "ping", |_| {});
    raw.send(&[twice.clone(), twice.clone(), message(MessageType::CloseConnection, &[]), twice].concat());
    let answers = raw.read_to_end();
    assert_eq!(answers.len(), 2 * 24, "two replies, and nothing behind the end: {answers:02x?}");
    // Requests like the one before, but for a byte, and bytes at random.
    let mut random = Seeded::new(11);
    for _ in 0..if full() { 500 } else { 30 } {
        let mut raw = victim.connect();
        raw.send(&request(1, &victim.key, "a_string", |encoder| {
            encoder.string("one").unwrap();
            encoder.string("two").unwrap();
        }));
        let mut second = request(2, &victim.key, "a_string", |encoder| {
            encoder.string("one").unwrap();
            encoder.string("two").unwrap();
        });
        for _ in 0..1 + random.below(3) {
            let at = random.below(second.len() as u64) as usize;
            second[at] = random.next_u64() as u8;
        }
        raw.send(&second);
    }
    ask(&mut patient, &victim.key);
    victim.end();
}

#[test]
fn tcp_with_threads() {
    attack("tcp", Threads::PerConnection);
}

#[test]
fn fabric_with_threads() {
    attack("fabric", Threads::PerConnection);
}

#[test]
fn fabric_with_a_dispatcher() {
    attack("fabric", Threads::Dispatcher(Dispatching::default()));
}

#[test]
fn iwarp_with_threads() {
    attack("iwarp", Threads::PerConnection);
}

#[test]
fn iwarp_with_a_dispatcher() {
    attack("iwarp", Threads::Dispatcher(Dispatching::default()));
}

#[test]
fn via_with_threads() {
    attack("via", Threads::PerConnection);
}

#[test]
fn via_with_a_dispatcher() {
    attack("via", Threads::Dispatcher(Dispatching::default()));
}

#[test]
fn via_flow_with_threads() {
    attack("via-flow", Threads::PerConnection);
}

#[test]
fn via_flow_with_a_dispatcher() {
    attack("via-flow", Threads::Dispatcher(Dispatching::default()));
}

/// VIs that send messages of the wrong size, more of them than they may, and credits that they do not have.
#[test]
fn vis_that_break_the_flow_of_credits() {
    for threads in [Threads::PerConnection, Threads::Dispatcher(Dispatching::default())] {
        let victim = Victim::new("via", threads);
        let via = || match victim.connect() {
            Raw::Via(via) => via,
            _ => unreachable!("it listens on VIA only"),
        };
        // Longer than a receive.
        let mut raw = via();
        raw.send_with(&[0x47; 20_000], 0);
        assert!(raw.receive().is_empty());
        victim.witness.ping().unwrap();
        // Without bytes, so that credits go to and fro; more at once than receives are posted.
        let mut raw = via();
        (0..100).for_each(|_| raw.send_with(&[], 0));
        drop(raw);
        victim.witness.ping().unwrap();
        // Credits for more than there is, and for what the server does not send.
        let mut raw = via();
        raw.send_with(&request(1, &victim.key, "ping", |_| {}), u32::MAX);
        assert_eq!(id_of(&raw.receive()), 1);
        // A long reply, for which no credits come.
        let octets = vec![7; 100_000];
        let mut raw = via();
        let asked = request(2, &victim.key, "some_octets", |encoder| {
            encoder.octets(&octets).unwrap();
            encoder.octets(&[]).unwrap();
        });
        raw.send(&asked);
        victim.witness.ping().unwrap();
        drop(raw);
        victim.end();
    }
}

/// A large message that does not go on costs a dispatcher nothing while it waits.
#[test]
fn a_message_that_does_not_go_on_keeps_nobody_busy() {
    let victim = Victim::new("fabric", Threads::Dispatcher(Dispatching::default()));
    let mut raw = victim.connect();
    raw.send(&message_of_size(MessageType::Request, 100_000, &[0xff; 50_000]));
    victim.witness.ping().unwrap();
    let spurious = victim.server.counters().spurious;
    std::thread::sleep(std::time::Duration::from_millis(50));
    let looks = victim.server.counters().spurious - spurious;
    assert!(looks < 100, "{looks} looks in vain");
    // Then it does go on.
    raw.send(&[0; 50_000]);
    assert_eq!(type_of(&raw.read_to_end()), MessageType::MessageError);
    victim.end();
}
