//! Every transport with every thread model.

mod peer;
mod raw;

use std::time::Duration;

use peer::foreign::exercise_byte_order;
use peer::{Peer, exercise_anys, exercise_calls, exercise_types, exercise_wide, seen_by, serve};
use sidestep_orb::{Builder, Dispatching, Orb, Stub, Threads};

fn client() -> Orb {
    Orb::builder().build().unwrap()
}

/// A server on one transport, and what its references then begin with.
fn listening(on: &str) -> (Builder, String) {
    let name = raw::name_of(on);
    let shown = match on {
        "tcp" => "tcp:".to_owned(),
        "fabric" => format!("fabric:shm:{name}"),
        "iwarp" => "fabric:iwarp:127.".to_owned(),
        "unix" => format!("unix:{}", raw::path_of(&name)),
        via => format!("{via}:{name}"),
    };
    (raw::listening(on, &name), format!("by {shown}"))
}

fn dispatcher() -> Threads {
    Threads::Dispatcher(Dispatching::default())
}

fn everything(on: &str, threads: Threads) {
    let (builder, shown) = listening(on);
    let server = builder.threads(threads).build().unwrap();
    let (own, gate) = serve(&server);
    let peer = seen_by(&client(), &own);
    assert!(format!("{:?}", peer.object()).contains(&shown), "{:?}", peer.object());
    exercise_types(&peer);
    exercise_wide(&peer);
    exercise_anys(&peer);
    exercise_calls(&peer);
    if on == "tcp" {
        exercise_byte_order(&peer);
    }
    octets_of_every_size(&own);
    many_clients(&own);
    // A servant that blocks stops nobody else, on its transport either.
    let blocked = seen_by(&client(), &own);
    let calls: Vec<_> = (0..3).map(|_| seen_by(&client(), &own)).map(|peer| peer.begin_sleep(0).unwrap()).collect();
    let call = blocked.begin_sleep(0).unwrap();
    while gate.waiting() < 4 {
        std::thread::yield_now();
    }
    exercise_calls(&peer);
    assert!(!call.is_ready());
    gate.open();
    call.collect().unwrap();
    calls.into_iter().for_each(|call| call.collect().unwrap());
    server.shutdown();
    server.run();
}

/// Messages that end at every place of a buffer, in one piece or with blocks that go past the buffer.
fn octets_of_every_size(own: &Peer) {
    let sizes =
        [0, 1, 7, 100, 1000, 4096, 8000, 8191, 8192, 8193, 20_000, 65_536, 130_000, 200_000, 300_000, 1_000_000];
    let octets = |size: usize, seed: usize| (0..size).map(|at| (at * 7 + seed) as u8).collect::<Vec<_>>();
    for direct in [1, 100, 8192, usize::MAX] {
        let peer = seen_by(&Orb::builder().direct(direct).build().unwrap(), own);
        for size in sizes {
            let (given, changed) = (octets(size, 1), octets(size / 2, 2));
            let (result, inout, out) = peer.some_octets(&given, &changed).unwrap();
            // The servant gives back what it got.
            assert!([&result, &inout, &out].into_iter().any(|octets| *octets == given), "{size} {direct}");
            assert!([&result, &inout, &out].into_iter().any(|octets| *octets == changed), "{size} {direct}");
        }
        for size in 8150..8230 {
            assert_eq!(peer.a_string(&"x".repeat(size), "y").unwrap().0.len(), size);
        }
    }
}

fn many_clients(own: &Peer) {
    std::thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || {
                let peer = seen_by(&client(), own);
                for number in 0..100 {
                    let sent = thread * 1000 + number;
                    assert_eq!(peer.a_long(sent, 0).unwrap().0, sent);
                }
            });
        }
    });
}

#[test]
fn tcp_with_threads() {
    everything("tcp", Threads::PerConnection);
}

#[test]
fn tcp_with_a_dispatcher() {
    everything("tcp", dispatcher());
}

#[test]
fn unix_with_threads() {
    everything("unix", Threads::PerConnection);
}

#[test]
fn unix_with_a_dispatcher() {
    everything("unix", dispatcher());
}

#[test]
fn fabric_with_threads() {
    everything("fabric", Threads::PerConnection);
}

#[test]
fn fabric_with_a_dispatcher() {
    everything("fabric", dispatcher());
}

#[test]
fn iwarp_with_threads() {
    everything("iwarp", Threads::PerConnection);
}

#[test]
fn iwarp_with_a_dispatcher() {
    everything("iwarp", dispatcher());
}

#[test]
fn via_with_threads() {
    everything("via", Threads::PerConnection);
}

#[test]
fn via_with_a_dispatcher() {
    everything("via", dispatcher());
}

#[test]
fn via_flow_with_threads() {
    everything("via-flow", Threads::PerConnection);
}

#[test]
fn via_flow_with_a_dispatcher() {
    everything("via-flow", dispatcher());
}

#[test]
fn a_reference_offers_all_that_its_server_listens_on() {
    let name = format!("orb-all-{}", std::process::id());
    let path = std::env::temp_dir().join(&name);
    let server = Orb::builder()
        .tcp("127.0.0.1:0")
        .unix(path.to_str().unwrap())
        .via(&name)
        .iwarp(&raw::iwarp_address())
        .fabric(&format!("shm:{name}"))
        .threads(dispatcher())
        .build()
        .unwrap();
    let (own, _) = serve(&server);
    let peer = seen_by(&client(), &own);
    let shown = format!("{:?}", peer.object());
    let at = |what: &str| shown.find(what).unwrap_or_else(|| panic!("{what} is not in {shown}"));
    let places = ["fabric:shm:", "via:", "unix:", "fabric:iwarp:", "tcp:"].map(at);
    assert!(places.is_sorted(), "{shown}");
    peer.ping().unwrap();
    server.shutdown();
}

/// References name iWARP whatever the client's host is called, under the name that was asked for; a client that does not reach
/// it goes on with TCP.
#[test]
fn a_reference_to_iwarp_is_for_other_hosts() {
    let address = raw::iwarp_address();
    let (host, port) = address.rsplit_once(':').unwrap();
    let server = Orb::builder().tcp("127.0.0.1:0").iwarp_as(&address, "localhost").build().unwrap();
    let own = serve(&server).0;
    let peer = seen_by(&client(), &own);
    let shown = format!("{:?}", peer.object());
    assert!(shown.contains(&format!("by fabric:iwarp:localhost:{port} tcp:")), "{shown}");
    // Nobody listens at this address of that name.
    assert!(!host.starts_with("127.0.0."));
    peer.ping().unwrap();
    server.shutdown();
    let server = Orb::builder().iwarp_as(&raw::iwarp_address(), host).build().unwrap();
    seen_by(&client(), &serve(&server).0).ping().unwrap();
    server.shutdown();
    server.run();
}

/// A dispatcher that is idle serves a call without another thread, and without asking for one.
#[test]
fn a_dispatcher_serves_by_one_thread_while_nothing_blocks() {
    let settings = Dispatching { stall: Duration::from_secs(60), ..Dispatching::default() };
    let (builder, _) = listening("fabric");
    let server = builder.threads(Threads::Dispatcher(settings)).build().unwrap();
    let (own, _) = serve(&server);
    let peers: Vec<_> = (0..20).map(|_| seen_by(&client(), &own)).collect();
    for _ in 0..50 {
        peers.iter().for_each(|peer| peer.ping().unwrap());
    }
    let counters = server.counters();
    assert_eq!((counters.switches, counters.started), (0, 2), "{counters:?}");
    // What is served last may not be counted yet.
    assert!(counters.served >= 999, "{counters:?}");
    server.shutdown();
}

#[test]
fn threads_of_connections_that_ended_serve_others() {
    let server = Orb::builder().tcp("127.0.0.1:0").build().unwrap();
    let (own, _) = serve(&server);
    for _ in 0..20 {
        let client = client();
        seen_by(&client, &own).ping().unwrap();
        client.shutdown();
        // The thread is free when it has seen the end.
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(server.counters().started < 20, "{:?}", server.counters());
    server.shutdown();
}
