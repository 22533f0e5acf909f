//! A thousand clients at the same time in the long form (`./test full`), a hundred otherwise.

mod peer;

use peer::{Peer, serve};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sidestep_orb::{Builder, Dispatching, Orb, Stub, Threads};

fn clients() -> usize {
    if std::env::var_os("SIDESTEP_FULL").is_some_and(|value| value != "0") { 1000 } else { 100 }
}

/// Whether so many descriptors may be open.
fn may_have(descriptors: u64) -> bool {
    let most = getrlimit(Resource::Nofile).maximum;
    let enough = most.is_none_or(|most| most >= descriptors);
    match enough {
        true => setrlimit(Resource::Nofile, Rlimit { current: Some(descriptors), maximum: most }).unwrap(),
        false => eprintln!("left out: a process here may have {most:?} descriptors, and {descriptors} are needed"),
    }
    enough
}

/// All have a call under way before one of them looks for its reply, several times.
fn crowd(builder: Builder, threads: Threads) {
    if !may_have(clients() as u64 * 4 + 200) {
        return;
    }
    let server = builder.threads(threads).build().unwrap();
    let (own, gate) = serve(&server);
    let client = Orb::builder().connections(clients()).build().unwrap();
    let text = own.object().ior().to_string();
    let peers: Vec<Peer> = (0..clients()).map(|_| Peer::from_object(client.string_to_object(&text).unwrap())).collect();
    for round in 0..3 {
        let numbers = || peers.iter().enumerate().map(|(number, peer)| (number as i32 * 3 + round, peer));
        let calls: Vec<_> = numbers().map(|(number, peer)| peer.begin_a_long(number, 0).unwrap()).collect();
        for ((number, _), call) in numbers().zip(calls) {
            assert_eq!(call.collect().unwrap().0, number);
        }
    }
    // One that blocks stops none of the others.
    let blocked = peers[0].begin_sleep(0).unwrap();
    while gate.waiting() == 0 {
        std::thread::yield_now();
    }
    peers[1..].iter().for_each(|peer| peer.ping().unwrap());
    gate.open();
    blocked.collect().unwrap();
    client.shutdown();
    server.shutdown();
    server.run();
}

fn dispatcher() -> Threads {
    Threads::Dispatcher(Dispatching::default())
}

fn name(test: &str) -> String {
    format!("orb-crowd-{test}-{}", std::process::id())
}

#[test]
fn over_tcp_with_threads() {
    crowd(Orb::builder().tcp("127.0.0.1:0"), Threads::PerConnection);
}

#[test]
fn over_tcp_with_a_dispatcher() {
    crowd(Orb::builder().tcp("127.0.0.1:0"), dispatcher());
}

#[test]
fn over_the_fabric_with_threads() {
    crowd(Orb::builder().fabric(&format!("shm:{}", name("threads"))), Threads::PerConnection);
}

#[test]
fn over_the_fabric_with_a_dispatcher() {
    crowd(Orb::builder().fabric(&format!("shm:{}", name("dispatcher"))), dispatcher());
}

#[test]
fn over_via_with_a_dispatcher() {
    crowd(Orb::builder().via(&name("via")), dispatcher());
}
