//! Peers of the iWARP link that do not keep to the protocol: each loses its own connection, changes no memory it may not,
//! and disturbs nobody else.

mod fuzz_entry;

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use fuzz_entry::iwarp_peer::{LEN, PATIENCE, Peer, Victim, good_cookie, hello};
use sidestep_fabric::{
    CloseReason,
    link::{Link, LinkOptions, iwarp::control::Control},
};
use sidestep_iwarp::{Event, Operation, Stag};
use sidestep_testkit::seeded::Seeded;

/// What a peer does that it may not, and what that is.
type Attack<'a> = (&'a str, &'a dyn Fn(&mut Peer));

const TAG: Stag = Stag(5);

/// Bytes that are no set-up, and set-up that never ends.
#[test]
fn bytes_that_are_no_set_up() {
    let victim = Victim::new(LinkOptions { setup_timeout: Duration::from_millis(300), ..LinkOptions::default() });
    let mut witness = Peer::established(&victim);
    let mut random = Seeded::new(1);
    for round in 0..40 {
        let mut stream = TcpStream::connect(victim.address).expect("someone who listens");
        let len = 1 + random.below(2000) as usize;
        let bytes: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
        if round % 4 != 0 {
            stream.write_all(&bytes).expect("a stream");
        }
        assert!(ends(&victim, &mut stream), "round {round}: a stream of {len} strange bytes does not end");
    }
    // Nobody that the node knows of has ended.
    assert!(victim.owner.closed.lock().unwrap().is_empty());
    still_works(&victim, &mut witness);
}

/// A peer that speaks iWARP and not the protocol of the fabric is refused.
#[test]
fn another_hello_is_refused() {
    let victim = Victim::new(LinkOptions::default());
    for private in [&b""[..], b"SdFb", &[0; 12], &[0xff; 500]] {
        let mut peer = Peer::new(&victim, private);
        peer.drive(&victim, |peer| peer.events.iter().any(|event| matches!(event, Event::Rejected { .. })));
    }
    assert!(victim.owner.closed.lock().unwrap().is_empty());
}

/// Many that connect and say nothing keep nobody out.
#[test]
fn silent_peers_keep_nobody_out() {
    let victim = Victim::new(LinkOptions::default());
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(victim.address).expect("someone who listens"));
        victim.poll();
    }
    let mut peer = Peer::established(&victim);
    still_works(&victim, &mut peer);
}

/// Segments that ask for what they may not end the connection with a terminate message, and touch nothing.
#[test]
fn forbidden_segments_are_terminated() {
    let attacks: &[Attack<'_>] = &[
        ("a write to a tag that is not bound", &|peer| peer.write(Stag(99), 0, b"x")),
        ("a write outside", &|peer| peer.write(TAG, LEN as u64 - 3, b"1234")),
        ("a write that wraps", &|peer| peer.write(TAG, u64::MAX - 1, b"1234")),
        ("a read of a tag that is not bound", &|peer| peer.read(Stag(99), 0, 8)),
        ("a read outside", &|peer| peer.read(TAG, LEN as u64, 1)),
        ("an atomic that is not aligned", &|peer| peer.atomic(TAG, 3, Operation::FetchAdd { add: 1, mask: 0 })),
        ("an atomic on a part of a word", &|peer| peer.atomic(TAG, 0, Operation::FetchAdd { add: 1, mask: 1 << 31 })),
        ("an invalidation of what is not bound", &|peer| peer.send(&[6], Some(Stag(99)))),
        ("a send without a kind", &|peer| peer.send(&[], None)),
        ("a send of an unknown kind", &|peer| peer.send(&[99, 1, 2], None)),
        ("a send that is too long", &|peer| peer.send(&[1; 5000], None)),
        ("a second binding of a tag", &|peer| peer.say(&Control::Bind { stag: TAG, cookie: good_cookie() })),
        ("a tag of the other side", &|peer| peer.say(&Control::Bind { stag: Stag(1 << 31), cookie: good_cookie() })),
        ("a question about nothing", &|peer| peer.say(&Control::Check { stag: Stag(98) })),
        ("too many bindings", &|peer| {
            for tag in 100..1200 {
                peer.say(&Control::Bind { stag: Stag(tag), cookie: good_cookie() });
                peer.step();
            }
        }),
    ];
    let victim = Victim::new(LinkOptions::default());
    let mut witness = Peer::established(&victim);
    for (what, attack) in attacks {
        let ended = victim.owner.closed.lock().unwrap().len();
        let mut peer = Peer::established(&victim);
        peer.say(&Control::Bind { stag: TAG, cookie: good_cookie() });
        attack(&mut peer);
        peer.drive(&victim, |peer| peer.events.iter().any(|event| matches!(event, Event::PeerTerminated(_))));
        let closed = victim.owner.closed.lock().unwrap();
        assert_eq!(closed.len(), ended + 1, "{what}");
        assert!(matches!(closed[ended].1, CloseReason::Violation(_)), "{what}: {:?}", closed[ended]);
    }
    assert_eq!(*victim.owner.bytes.lock().unwrap(), [0; LEN]);
    still_works(&victim, &mut witness);
}

/// A corrupted frame is caught by its checksum.
#[test]
fn a_corrupted_frame_is_caught() {
    let victim = Victim::new(LinkOptions::default());
    let mut peer = Peer::established(&victim);
    // The rest of a frame whose length and checksum do not belong together.
    peer.send_raw(&[0, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0, 0]);
    peer.drive(&victim, |peer| peer.events.iter().any(|event| matches!(event, Event::PeerTerminated(_))));
    let closed = victim.owner.closed.lock().unwrap();
    assert_eq!(closed[0].1, CloseReason::Violation("an FPDU whose CRC is wrong"));
}

/// Whether the victim ends a stream.
fn ends(victim: &Victim, stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a stream that does not block");
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        victim.poll();
        match stream.read(&mut [0; 100]) {
            Ok(0) => return true,
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return true,
            _ => {}
        }
    }
    false
}

/// A peer that keeps to the protocol is served.
fn still_works(victim: &Victim, peer: &mut Peer) {
    let heard = victim.owner.messages.lock().unwrap().len();
    peer.say(&Control::Message(b"still here"));
    peer.drive(victim, |_| victim.owner.messages.lock().unwrap().len() > heard);
    assert!(victim.link.capabilities().max_message > 0 && !hello().is_empty());
}
