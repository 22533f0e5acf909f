//! Calls between two brokers of ours, and within one.

mod peer;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use peer::elsewhere::elsewhere;
use peer::foreign::exercise_byte_order;
use peer::{
    Own, Peer, PeerSkeleton, exercise_anys, exercise_calls, exercise_exception_in_any, exercise_types, exercise_wide,
    seen_by, serve,
};
use sidestep_orb::{Completion, Kind, Orb, Stub, SystemException, Version};

fn client() -> Orb {
    Orb::builder().build().unwrap()
}

fn tcp_server() -> Orb {
    Orb::builder().tcp("127.0.0.1:0").build().unwrap()
}

fn exercise(peer: &Peer) {
    exercise_types(peer);
    exercise_wide(peer);
    exercise_anys(peer);
    exercise_exception_in_any(peer);
    exercise_calls(peer);
}

#[test]
fn everything_goes_over_tcp() {
    let server = tcp_server();
    let (own, _) = serve(&server);
    let peer = seen_by(&client(), &own);
    exercise(&peer);
    exercise_byte_order(&peer);
    server.shutdown();
}

#[test]
fn everything_goes_over_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("sidestep-orb-{}", std::process::id()));
    let server = Orb::builder().unix(path.to_str().unwrap()).build().unwrap();
    let (own, _) = serve(&server);
    exercise(&seen_by(&client(), &own));
    server.shutdown();
    assert!(!path.exists());
}

#[test]
fn everything_goes_over_the_fabric() {
    let name = format!("shm:orb-{}", std::process::id());
    let server = Orb::builder().tcp("127.0.0.1:0").fabric(&name).build().unwrap();
    let (own, _) = serve(&server);
    let peer = seen_by(&client(), &own);
    assert!(format!("{:?}", peer.object()).contains(&format!("by fabric:{name} tcp:")));
    exercise(&peer);
    server.shutdown();
    assert_eq!(peer.ping().unwrap_err().kind, Kind::Transient);
}

#[test]
fn everything_goes_within_a_process() {
    let server = tcp_server();
    let (own, _) = serve(&server);
    exercise(&own);
    server.shutdown();
}

#[test]
fn older_versions_are_spoken() {
    let server = tcp_server();
    let (own, _) = serve(&server);
    let older = |version| Orb::builder().giop(version).build().unwrap();
    exercise(&seen_by(&older(Version::V1_1), &own));
    // GIOP 1.0 has no wide text, and nothing but ISO 8859-1.
    let own = seen_by(&older(Version::V1_0), &own);
    exercise_calls(&own);
    let wide = own.a_wstring(&"w".into(), &"w".into());
    assert_eq!(wide.unwrap_err().kind, Kind::Marshal);
    server.shutdown();
}

#[test]
fn deferred_calls_are_outstanding_together() {
    let server = tcp_server();
    let (own, _) = serve(&server);
    let peer = seen_by(&client(), &own);
    let calls: Vec<_> = (0..50).map(|number| peer.begin_a_long(number, 0).unwrap()).collect();
    // Collected in another order than sent.
    for (number, call) in calls.into_iter().enumerate().rev() {
        assert_eq!(call.collect().unwrap().0, number as i32);
    }
    let ready = peer.begin_ping().unwrap();
    while !ready.is_ready() {
        std::thread::yield_now();
    }
    ready.collect().unwrap();
    drop(peer.begin_ping().unwrap());
    exercise_calls(&peer);
    server.shutdown();
}

#[test]
fn many_threads_share_a_connection() {
    let server = tcp_server();
    let (own, _) = serve(&server);
    let peer = seen_by(&client(), &own);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let peer = &peer;
            scope.spawn(move || {
                for number in 0..200 {
                    let sent = thread * 1000 + number;
                    assert_eq!(peer.a_long(sent, 0).unwrap().0, sent);
                }
            });
        }
    });
    server.shutdown();
}

#[test]
fn a_servant_that_blocks_stops_nobody_else() {
    let server = tcp_server();
    let (own, gate) = serve(&server);
    let blocked = seen_by(&client(), &own);
    let call = blocked.begin_sleep(0).unwrap();
    while gate.waiting() == 0 {
        std::thread::yield_now();
    }
    exercise_calls(&seen_by(&client(), &own));
    assert!(!call.is_ready());
    gate.open();
    call.collect().unwrap();
    server.shutdown();
}

#[test]
fn a_call_that_takes_too_long_is_given_up() {
    let server = tcp_server();
    let (own, gate) = serve(&server);
    let peer = seen_by(&client(), &own);
    let hasty = Peer::from_object(peer.object().with_timeout(Duration::from_millis(20)));
    assert_eq!(hasty.sleep(0), Err(Kind::Timeout.raised(Completion::Maybe)));
    gate.open();
    // The late reply is nobody's, and the connection is still good.
    exercise_calls(&peer);
    server.shutdown();
}

#[test]
fn a_servant_that_panics_fails_one_call() {
    let server = tcp_server();
    let (own, _) = serve(&server);
    let peer = seen_by(&client(), &own);
    let expected = Kind::Unknown.raised(Completion::Maybe);
    assert_eq!(peer.fail(4), Err(peer::PeerFailError::System(expected)));
    peer.ping().unwrap();
    server.shutdown();
}

#[test]
fn a_server_that_is_gone_is_unreachable() {
    let server = tcp_server();
    let (own, gate) = serve(&server);
    let client = client();
    let peer = seen_by(&client, &own);
    let waiting = peer.begin_sleep(0).unwrap();
    while gate.waiting() == 0 {
        std::thread::yield_now();
    }
    server.shutdown();
    // It said that it serves nothing more, so the call is sent again, and there is nobody.
    let refused = waiting.collect().unwrap_err();
    assert_eq!((refused.kind, refused.completed), (Kind::Transient, Completion::No));
    let gone = peer.ping().unwrap_err();
    assert_eq!((gone.kind, gone.completed), (Kind::Transient, Completion::No));
    gate.open();
    let again = Orb::builder().tcp("127.0.0.1:0").build().unwrap();
    let (fresh, _) = serve(&again);
    seen_by(&client, &fresh).ping().unwrap();
    again.shutdown();
}

#[test]
fn a_call_follows_where_it_is_sent() {
    let (near, far) = (tcp_server(), tcp_server());
    let (own, _) = serve(&far);
    let object = elsewhere(&near, own.object());
    let text = object.ior().to_string();
    let peer: Peer = client().string_to_object(&text).unwrap().narrow().unwrap().unwrap();
    exercise_calls(&peer);
    far.shutdown();
    // Where it was sent is gone: it asks again, is sent there again, and gives up.
    assert_eq!(peer.ping().unwrap_err().kind, Kind::Transient);
    near.shutdown();
}

#[test]
fn hostile_bytes_end_their_connection_only() {
    let server = tcp_server();
    let (own, _) = serve(&server);
    let peer = seen_by(&client(), &own);
    let profile = sidestep_wire_profile(&own);
    let mut request = *b"GIOP\x01\x02\x01\x00\x20\x00\x00\x00";
    let attacks: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.0\r\n\r\n".to_vec(),
        b"GIOP\x01\x02\x01\x00\xff\xff\xff\xff".to_vec(),
        b"GIOP\x02\x00\x01\x00\x00\x00\x00\x00".to_vec(),
        b"GIOP\x01\x02\x01\x09\x00\x00\x00\x00".to_vec(),
        b"GIOP\x01\x02\x01\x07\x04\x00\x00\x00\x01\x00\x00\x00".to_vec(),
        b"GIOP\x01\x02\x01\x01\x00\x00\x00\x00".to_vec(),
        [&request[..], &[0xff; 32]].concat(),
    ];
    for attack in attacks {
        let mut stream = TcpStream::connect(&profile).unwrap();
        stream.write_all(&attack).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.get(..4), Some(&b"GIOP"[..]), "{attack:?}");
        assert_eq!(answer[7], 6, "MessageError answers {attack:?}");
        peer.ping().unwrap();
    }
    request[8] = 64;
    let mut stream = TcpStream::connect(&profile).unwrap();
    stream.write_all(&request).unwrap();
    drop(stream);
    peer.ping().unwrap();
    server.shutdown();
}

/// Where an object listens, from its reference.
fn sidestep_wire_profile(peer: &Peer) -> String {
    let shown = format!("{:?}", peer.object());
    shown.rsplit("tcp:").next().unwrap().to_owned()
}

#[test]
fn arguments_that_do_not_fit_are_refused_on_either_side() {
    let server = Orb::builder().tcp("127.0.0.1:0").message_limit(10_000).build().unwrap();
    let (own, _) = serve(&server);
    let peer = seen_by(&client(), &own);
    assert_eq!(peer.a_char('€', 'a').unwrap_err().kind, Kind::DataConversion);
    let truncated: Result<(), SystemException> = peer.object().call("a_double", |_| Ok(()), |_| Ok(()));
    assert_eq!(truncated, Err(Kind::Marshal.raised(Completion::No)));
    let long = vec![0; 20_000];
    assert_eq!(peer.some_octets(&long, &[]).unwrap_err().kind, Kind::CommFailure);
    peer.ping().unwrap();
    server.shutdown();
}

#[test]
fn objects_of_another_process_or_adapter_do_not_exist() {
    let server = tcp_server();
    let (own, _) = serve(&server);
    let id = server.root_poa().reference_to_id(own.object()).unwrap();
    server.root_poa().deactivate_object(&id).unwrap();
    let gone = client().string_to_object(&own.object().ior().to_string()).unwrap();
    assert_eq!(gone.non_existent(), Ok(true));
    assert_eq!(Peer::from_object(gone).ping().unwrap_err().kind, Kind::ObjectNotExist);
    let address = sidestep_wire_profile(&own);
    let unknown = client().string_to_object(&format!("corbaloc::{address}/unknown")).unwrap();
    assert_eq!(unknown.non_existent(), Ok(true));
    let named: Peer = server.root_poa().activate(PeerSkeleton(Own::new())).unwrap();
    server.name_key("Peer", named.object()).unwrap();
    let by_key = client().string_to_object(&format!("corbaloc::{address}/Peer")).unwrap();
    Peer::from_object(by_key).ping().unwrap();
    server.shutdown();
}
