//! Lines of one caller: made from a chosen address, and used by nobody else.

use std::{
    net::{IpAddr, TcpListener, TcpStream},
    sync::atomic::{AtomicU16, Ordering},
};

use sidestep_fabric::{Endpoint, Error, Listener, Node, PeerId, link::LinkOptions};
use sidestep_sys::clock;
use sidestep_testkit::process::PATIENCE_NS;

fn soon() -> u64 {
    clock::now() + PATIENCE_NS
}

fn node() -> Node {
    Node::open(&["iwarp"], &LinkOptions::default()).unwrap()
}

/// A listener on a port that is free.
fn listen(node: &Node) -> (Listener, String) {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = 20_000 + (std::process::id() % 10_000) as u16;
    loop {
        let name = format!("iwarp:127.0.0.1:{}", begin + NEXT.fetch_add(1, Ordering::Relaxed));
        if let Ok(listener) = node.listen(&name) {
            return (listener, name);
        }
    }
}

/// Both ends of a connection, and from where the end that accepted sees it come.
fn accepted(asked: Endpoint, listener: &Listener, node: &Node) -> (PeerId, Endpoint, Endpoint, Option<IpAddr>) {
    let request = listener.wait(Some(soon())).unwrap();
    let from = node.peer(request.peer().unwrap()).address();
    let there = request.accept(b"").unwrap();
    asked.wait_connected(Some(soon())).unwrap();
    (asked.peer(), asked, there, from)
}

#[test]
fn each_has_its_own_and_comes_from_where_it_says() {
    let (near, far) = (node(), node());
    let (listener, name) = listen(&far);
    let home: IpAddr = "127.0.0.1".parse().unwrap();
    let mut seen = Vec::new();
    for from in [home, "127.0.0.2".parse().unwrap(), home] {
        let asked = near.begin_connect_from(&name, (from, soon()), |_| Ok(Vec::new())).unwrap();
        assert_eq!(near.peer(asked.peer()).address(), Some(home));
        seen.push(accepted(asked, &listener, &far));
        assert_eq!(seen.last().unwrap().3, Some(from));
    }
    // A line of one caller is not found by another, and one of many callers still is.
    for _ in 0..2 {
        seen.push(accepted(near.begin_connect(&name, b"").unwrap(), &listener, &far));
    }
    let peers: Vec<PeerId> = seen.iter().map(|line| line.0).collect();
    assert!((0..4).all(|at| !peers[..at].contains(&peers[at])), "{peers:?}");
    assert_eq!(peers[3], peers[4]);
}

/// A line over a stream that the caller has connected: no port, and the name is taken once.
#[test]
fn a_stream_of_the_caller_becomes_a_line() {
    let (near, far) = (node(), node());
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
    let listener = far.listen("iwarp:in-place/x").unwrap();
    assert!(far.listen("iwarp:in-place/x").is_err());
    far.adopt("iwarp", tcp.accept().unwrap().0.into(), false).unwrap();
    let peer = near.adopt("iwarp", stream.into(), true).unwrap();
    let asked = near.begin_connect_to(peer, "iwarp:in-place/x", |_| Ok(b"hello".to_vec())).unwrap();
    let (seen, asked, there, _) = accepted(asked, &listener, &far);
    assert_eq!((seen, there.private()), (peer, b"hello".to_vec()));
    there.post(b"over the stream").unwrap();
    assert_eq!(asked.wait_message(Some(soon())).unwrap(), b"over the stream");
    drop(listener);
    assert!(far.listen("iwarp:in-place/x").is_ok());
    let shm = Node::new().unwrap();
    let unsupported = shm.adopt("shm", tcp.into(), true);
    assert!(matches!(unsupported, Err(Error::Unsupported(_))), "{unsupported:?}");
}

#[test]
fn an_address_that_is_not_of_this_host_is_an_error() {
    let (near, far) = (node(), node());
    let (_listener, name) = listen(&far);
    // One for documents (RFC 5737).
    let elsewhere = near.begin_connect_from(&name, ("192.0.2.1".parse().unwrap(), soon()), |_| Ok(Vec::new()));
    assert!(matches!(elsewhere, Err(Error::Memory(_)) | Err(Error::TimedOut(_))), "{elsewhere:?}");
    let shm = Node::new().unwrap();
    let unsupported = shm.begin_connect_from("shm:x", ("127.0.0.1".parse().unwrap(), soon()), |_| Ok(Vec::new()));
    assert!(matches!(unsupported, Err(Error::Unsupported(_))), "{unsupported:?}");
}
