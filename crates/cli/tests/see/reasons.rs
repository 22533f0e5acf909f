//! Reasons that take a peer which speaks another language, refuses, lies, or dies; and peers elsewhere.

use std::{
    io::{Read, Write},
    net::TcpListener,
    os::{fd::AsRawFd, unix::process::CommandExt},
    process::Command,
    sync::mpsc,
    thread,
};

use sidestep_fabric::{ArenaBlock, Endpoint, Listener, Node, Request, queue::Kind};
use sidestep_sockets::{
    address::Key,
    engine::HANDSHAKE,
    reason::Reason,
    registry::{Identity, Registry},
};
use sidestep_testkit::hosts::Hosts;

use super::{
    expect, shown,
    stage::{SIDESTEP, Stage, Two, program, wait_until},
};

/// How a process answers a question, and what it keeps of that: whoever drops an end has ended the connection.
type Answer = fn(&Node, Request) -> Option<(Endpoint, Option<ArenaBlock>)>;

/// A process that has entered the other end of a connection, and answers every question in its own way; without an answer, it
/// does not want to be asked.
fn answering(stage: &Stage, name: u64, answer: Option<Answer>) -> String {
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
        registry.set_willing(entry, answer.is_some());
        let (mut bytes, mut connected) = ([0; 64], Vec::new());
        while stream.read_exact(&mut bytes).is_ok() {
            connected.extend(answer.map(|answer| answer_all(&node, &questions, answer)));
            stream.write_all(&bytes).expect("it reads");
        }
        registry.withdraw(process);
    });
    begun.recv().expect("it began");
    port
}

fn answer_all(node: &Node, questions: &Listener, answer: Answer) -> Vec<(Endpoint, Option<ArenaBlock>)> {
    node.progress_kernel();
    std::iter::from_fn(|| questions.poll()).filter_map(|request| answer(node, request)).collect()
}

#[test]
fn a_peer_of_another_version() {
    let stage = Stage::new("version");
    let port = answering(&stage, 1, Some(|_, request| Some((request.accept_with(|_| Ok(vec![0xff; 64])).ok()?, None))));
    expect(&stage, &stage.pair(&[], &["peer", &port]), Reason::Version);
}

#[test]
fn a_peer_that_refuses() {
    let stage = Stage::new("refused");
    let refuse: Answer = |_, request| {
        let _ = request.refuse(&[]);
        None
    };
    let port = answering(&stage, 2, Some(refuse));
    expect(&stage, &stage.pair(&[], &["peer", &port]), Reason::Refused);
}

/// It answers as it should, and has left no notice on its socket.
#[test]
fn a_peer_that_proves_nothing() {
    let stage = Stage::new("unproven");
    let lie: Answer = |node, request| {
        let mut lent = None;
        let accepted = request.accept_with(|endpoint| {
            let block = node.lend_block(endpoint.peer(), 64 << 10, Kind::Stream)?;
            let answer = [&HANDSHAKE.to_le_bytes()[..], &block.block().spec().to_bytes()].concat();
            lent = Some(block);
            Ok(answer)
        });
        Some((accepted.ok()?, lent))
    };
    let port = answering(&stage, 3, Some(lie));
    expect(&stage, &stage.pair(&[], &["peer", &port]), Reason::Unproven);
}

#[test]
fn a_peer_that_was_entered_and_cannot_be_asked_yet() {
    let stage = Stage::new("searching");
    let port = answering(&stage, 4, None);
    expect(&stage, &stage.pair(&[], &["peer", &port]), Reason::Searching);
}

#[test]
fn a_peer_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("left out: only root can be another user");
    }
    let stage = Stage::new("user");
    let mut command = Command::new(program());
    command.arg("serve").uid(65533).gid(65533);
    let server = stage.start(command);
    let pair = stage.pair(&[], &["peer", &server.port]);
    expect(&stage, &pair, Reason::OtherUser);
    let said = stage.said(&["why", &pair.pid, &pair.fd]);
    assert!(said.contains(&format!("pair ({}), which does not run under Sidestep", server.pid)), "{said}");
}

/// Its registry is that of its namespace.
#[test]
fn a_program_in_another_ipc_namespace() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("left out: only root can make a namespace");
    }
    let stage = Stage::new("ipc");
    let mut command = Command::new("unshare");
    command.args(["--ipc", SIDESTEP, "run", "--"]).arg(program()).arg("promoted");
    expect(&stage, &stage.start(command), Reason::OtherIpc);
    let mut command = Command::new("unshare");
    command.args(["--ipc", SIDESTEP, "run", "--"]).arg(program()).arg("serve");
    let server = stage.start(command);
    expect(&stage, &stage.pair(&[], &["peer", &server.port]), Reason::PeerStays);
}

#[test]
fn a_peer_on_another_host() {
    let hosts = match Hosts::with_cable() {
        Ok(hosts) => hosts,
        Err(why) => return eprintln!("left out: {why}"),
    };
    let stage = Stage::new("host");
    let at = |host: usize| {
        let mut command = Command::new("nsenter");
        command.args(["--target", &hosts.host(host).id().to_string(), "--net"]);
        command
    };
    let mut command = at(0);
    command.arg(program()).arg("serve");
    let server = stage.start(command);
    let mut command = at(1);
    command.args([SIDESTEP, "run", "--"]).arg(program());
    command.args(["peer", &server.port, &hosts.host(0).address().to_string()]);
    expect(&stage, &stage.start(command), Reason::OtherHost);
}

#[test]
fn a_peer_that_was_killed_while_its_child_has_the_connection() {
    let stage = Stage::new("lost");
    let mut two = Two::start(&stage, &[], "lost");
    assert_eq!(two.line(), "settled");
    // A busy writer looks now and then whether its peer is there.
    wait_until("the link is lost", || {
        two.say("x");
        stage.said(&["why", &two.client]).contains(&shown(Reason::LinkLost))
    });
    two.end();
}
