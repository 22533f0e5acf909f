//! Reasons that take a peer which speaks another language, refuses, or dies.

use std::{
    io::{Read, Write},
    net::TcpListener,
    os::fd::AsRawFd,
    sync::mpsc,
    thread,
};

use sidestep_fabric::{Endpoint, Listener, Node, Request};
use sidestep_sockets::{
    address::Key,
    registry::{Identity, Registry},
};

use super::{
    expect,
    stage::{Stage, Two},
};

/// A process that has entered the other end of a connection, and answers every question in its own way.
fn answering(stage: &Stage, name: u64, answer: fn(Request) -> Option<Endpoint>) -> String {
    // A server below the ports that the kernel gives to clients is the end that is asked.
    let listener = (20_000..30_000).find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()).expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let directory = stage.0.to_str().expect("letters").to_owned();
    let (ready, begun) = mpsc::channel();
    thread::spawn(move || {
        let (registry, node) = (Registry::open(&directory).expect("a registry"), Node::new().expect("a node"));
        let identity = Identity([1, u64::from(std::process::id()) << 20 | name]);
        let questions = node.listen(&format!("shm:{}", identity.name())).expect("a name");
        let process = registry.enter(identity, std::process::id()).expect("a record");
        ready.send(()).expect("someone waits");
        let mut stream = listener.accept().expect("a client").0;
        let key = Key::of(stream.as_raw_fd()).expect("addresses");
        let entry = registry.add(process, &key, 1, stream.as_raw_fd()).expect("a record");
        registry.set_willing(entry, true);
        // Whoever drops one has ended the connection.
        let (mut bytes, mut connected) = ([0; 64], Vec::new());
        while stream.read_exact(&mut bytes).is_ok() {
            connected.extend(answer_all(&node, &questions, answer));
            stream.write_all(&bytes).expect("it reads");
        }
        registry.withdraw(process);
    });
    begun.recv().expect("it began");
    port
}

fn answer_all(node: &Node, questions: &Listener, answer: fn(Request) -> Option<Endpoint>) -> Vec<Endpoint> {
    node.progress_kernel();
    std::iter::from_fn(|| questions.poll()).filter_map(answer).collect()
}

#[test]
fn a_peer_of_another_version() {
    let stage = Stage::new("version");
    let port = answering(&stage, 1, |request| request.accept_with(|_| Ok(vec![0xff; 64])).ok());
    expect(&stage, &stage.pair(&[], &["peer", &port]), "Version");
}

#[test]
fn a_peer_that_refuses() {
    let stage = Stage::new("refused");
    let port = answering(&stage, 2, |request| {
        let _ = request.refuse(&[]);
        None
    });
    expect(&stage, &stage.pair(&[], &["peer", &port]), "Refused");
}

#[test]
fn a_peer_that_was_killed_while_its_child_has_the_connection() {
    let stage = Stage::new("lost");
    let mut two = Two::start(&stage, &[], "lost");
    assert_eq!(two.line(), "settled");
    let said = stage.said(&["why", &two.client]);
    assert!(said.contains("LinkLost ("), "{said}");
    two.end();
}
