//! Channels between two nodes on shared memory.

use std::thread;

use sidestep_fabric::{Channel, ChannelOptions, Error, Node, queue::Kind};
use sidestep_sys::clock;
use sidestep_testkit::process::PATIENCE_NS;

fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}

fn name(of: &str) -> String {
    format!("shm:{of}-{}", std::process::id())
}

#[test]
fn bytes_come_back_in_order() {
    let name = name("echo");
    let node = Node::new().unwrap();
    let listener = node.listen(&name).unwrap();
    let server = thread::spawn(move || {
        let request = listener.wait(soon()).unwrap();
        let mut channel = Channel::accept(request, ChannelOptions::default(), b"welcome", soon()).unwrap();
        let mut buffer = vec![0; 70_000];
        loop {
            match channel.receiver.receive(&mut buffer, soon()) {
                Ok(count) => channel.sender.send(&buffer[..count], soon()).unwrap(),
                Err(Error::Closed(_)) => return,
                Err(error) => panic!("{error}"),
            }
        }
    });
    let node = Node::new().unwrap();
    let mut channel = Channel::connect(&node, &name, ChannelOptions::default(), b"hello", soon()).unwrap();
    assert_eq!(channel.private(), b"welcome");
    for size in [1, 64, 1000, 65_536, 300_000] {
        let sent: Vec<u8> = (0..size).map(|index| (index * 7 + size) as u8).collect();
        let mut got = vec![0; size];
        let (mut to, mut from) = (0, 0);
        while from < size {
            if to < size {
                to += channel.sender.try_send(&sent[to..]).unwrap();
            }
            from += channel.receiver.try_receive(&mut got[from..]).unwrap();
        }
        assert!(sent == got, "{size}");
    }
    drop(channel);
    server.join().unwrap();
}

#[test]
fn messages_come_back_whole() {
    let name = name("slots");
    let node = Node::new().unwrap();
    let listener = node.listen(&name).unwrap();
    let options = ChannelOptions { capacity: 4096, kind: Kind::Slots(128) };
    let server = thread::spawn(move || {
        let request = listener.wait(soon()).unwrap();
        let mut channel = Channel::accept(request, options, b"", soon()).unwrap();
        let mut buffer = [0; 120];
        for _ in 0..1000 {
            let len = channel.receiver.receive_message(&mut buffer, soon()).unwrap();
            channel.sender.send_message(&buffer[..len], soon()).unwrap();
        }
        channel.endpoint.wait_closed(soon()).unwrap();
    });
    let node = Node::new().unwrap();
    let mut channel = Channel::connect(&node, &name, options, b"", soon()).unwrap();
    for round in 0..1000usize {
        let message = vec![round as u8; round % 121];
        channel.sender.send_message(&message, soon()).unwrap();
        let mut buffer = [0; 120];
        let len = channel.receiver.receive_message(&mut buffer, soon()).unwrap();
        assert_eq!(&buffer[..len], message);
    }
    drop(channel);
    server.join().unwrap();
}

#[test]
fn a_name_that_changes_hands_leads_to_its_new_owner() {
    let name = name("hands");
    let (first, second, client) = (Node::new().unwrap(), Node::new().unwrap(), Node::new().unwrap());
    let serve = |node: &Node| {
        let listener = node.listen(&name).unwrap();
        thread::scope(|scope| {
            let accepting = scope.spawn(|| listener.wait(soon()).unwrap().accept(b"").unwrap());
            let asking = client.connect(&name, b"", soon()).unwrap();
            (accepting.join().unwrap(), asking)
        })
    };
    let ends = serve(&first);
    // The first owner has given the name up; its session with the client lives on.
    while client.connect(&name, b"", Some(clock::now() + 1_000_000)).is_ok() {}
    client.progress();
    let others = serve(&second);
    assert_ne!(ends.1.peer(), others.1.peer());
    ends.0.post(b"still here").unwrap();
    assert_eq!(ends.1.wait_message(soon()).unwrap(), b"still here");
}
