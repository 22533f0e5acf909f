//! What calls do when there are many of them, when they are slow, and when something is wrong.

mod every;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use every::generated::*;
use every::{FORBIDDEN, PANIC, builder, tcp_server};
use sidestep_rpc::{Accepted, AuthError, AuthSys, Client, ClientOptions, Credential, Denied, Error, Procedure, Server};
use sidestep_testkit::ports::free_address;

/// For tests that move much: nothing there depends on how fast the machine is.
const PATIENT: Duration = Duration::from_secs(300);

fn client_with(address: &str, options: ClientOptions) -> EveryV1Client {
    EveryV1Client::new(Client::connect_with(&address.parse().unwrap(), options).unwrap())
}

#[test]
fn many_threads_share_one_client() {
    let (_server, addresses) = streams("threads");
    for address in addresses {
        threads_share_one_client(&client_with(
            &address,
            ClientOptions { timeout: PATIENT, ..ClientOptions::default() },
        ));
    }
}

/// A server on every transport that carries a stream of records, and where it is.
fn streams(name: &str) -> (Server, [String; 5]) {
    let name = format!("{name}-{}", std::process::id());
    let path = std::env::temp_dir().join(format!("sidestep-rpc-{name}.sock"));
    let port = free_address();
    let others = [
        format!("unix:{}", path.display()),
        format!("shm:rpc-{name}"),
        format!("vi:{name}"),
        format!("vi-iwarp:{port}"),
    ];
    let builder = others.iter().fold(builder(), |builder, address| builder.listen(address).unwrap());
    let server = builder.tcp("127.0.0.1:0").unwrap().start().unwrap();
    let [unix, shm, vi, iwarp] = others;
    let tcp = format!("tcp:{}", server.addresses().next().unwrap());
    (server, [tcp, unix, shm, vi, iwarp])
}

fn threads_share_one_client(client: &EveryV1Client) {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for call in 0..50 {
                    let text = format!("{thread} {call}");
                    assert_eq!(client.echo_string(&text).unwrap(), text);
                }
            });
        }
    });
}

#[test]
fn many_calls_are_outstanding_at_a_time_and_end_in_any_order() {
    let (_server, address) = tcp_server();
    let client = EveryV1Client::connect(&address).unwrap();
    let mut pending: Vec<_> = (0..1000).map(|call| (call, client.begin_echo_numbers(&[call]).unwrap())).collect();
    pending.reverse();
    for (call, pending) in pending {
        // Some are given up.
        if call % 7 != 0 {
            assert_eq!(pending.wait().unwrap(), [call]);
        }
    }
    client.every_null().unwrap();
}

/// More bytes of calls and of replies are under way than all buffers between the two hold.
#[test]
fn calls_and_replies_may_fill_every_buffer() {
    let (_server, addresses) = streams("buffers");
    for address in addresses {
        let client = client_with(&address, ClientOptions { timeout: PATIENT, ..ClientOptions::default() });
        let text = "x".repeat(1 << 20);
        let pending: Vec<_> = (0..20).map(|_| client.begin_echo_string(&text).unwrap()).collect();
        for pending in pending {
            assert_eq!(pending.wait().unwrap().len(), text.len());
        }
    }
}

#[test]
fn batched_calls_are_executed_in_order_and_not_replied_to() {
    let server = builder().ordered().tcp("127.0.0.1:0").unwrap().start().unwrap();
    let client = EveryV1Client::connect(&format!("tcp:{}", server.addresses().next().unwrap())).unwrap();
    for _ in 0..1000 {
        client.batch_add(-2).unwrap();
    }
    assert_eq!(client.count().unwrap(), 2000);
    client.batch_add(-1).unwrap();
    client.client().flush().unwrap();
    assert_eq!(client.count().unwrap(), 2001);
}

#[test]
fn errors_say_what_is_wrong_and_keep_the_connection() {
    let (server, address) = tcp_server();
    let client = EveryV1Client::connect(&address).unwrap();
    let call = |program, version, procedure| {
        let procedure = Procedure { program, version, procedure };
        client.client().call(procedure, |out| out.u32(7), |_| Ok(())).unwrap_err()
    };
    let program = EveryV1Client::PROGRAM;
    assert!(matches!(call(program + 1, 1, 0), Error::Refused(Accepted::ProgramUnavailable)));
    assert!(matches!(call(program, 3, 0), Error::Refused(Accepted::ProgramMismatch { low: 1, high: 2 })));
    assert!(matches!(call(program, 1, 99), Error::Refused(Accepted::ProcedureUnavailable)));
    // An argument where there is none, and half of one.
    assert!(matches!(call(program, 1, 0), Error::Refused(Accepted::GarbageArguments)));
    assert!(matches!(call(program, 1, 1), Error::Refused(Accepted::GarbageArguments)));
    assert!(matches!(client.echo_string(PANIC).unwrap_err(), Error::Refused(Accepted::SystemError)));
    assert!(matches!(client.echo_string(FORBIDDEN).unwrap_err(), Error::Denied(Denied::AuthError(AuthError::TooWeak))));
    let second = EveryV2Client::new(client.client().clone());
    assert!(matches!(second.sum(i32::MAX, 1).unwrap_err(), Error::Refused(Accepted::SystemError)));
    // Results that are not what the caller expects.
    let sum = Procedure { program, version: 2, procedure: 1 };
    let error = client.client().call(sum, |out| out.u64(5), |input| input.u64()).unwrap_err();
    assert!(matches!(error, Error::Reply(_)), "{error}");
    client.every_null().unwrap();
    assert_eq!(server.connections(), 1);
}

#[test]
fn credentials_are_looked_at() {
    let server = builder()
        .authorize(|call| match AuthSys::parse(call.credential.body) {
            Ok(sys) if sys.uid == 1234 && sys.groups() == [5, 6] => Ok(()),
            Ok(_) => Err(AuthError::RejectedCredential),
            Err(_) => Err(AuthError::TooWeak),
        })
        .tcp("127.0.0.1:0")
        .unwrap()
        .start()
        .unwrap();
    let address = format!("tcp:{}", server.addresses().next().unwrap());
    let with = |credential| client_with(&address, ClientOptions { credential, ..ClientOptions::default() });
    let user = Credential::from_sys(&AuthSys::new(0, b"here", 1234, 1, &[5, 6]));
    with(user).every_null().unwrap();
    let denied = |error: Error| match error {
        Error::Denied(Denied::AuthError(error)) => error,
        other => panic!("{other}"),
    };
    assert_eq!(denied(with(Credential::none()).every_null().unwrap_err()), AuthError::TooWeak);
    assert_eq!(denied(with(Credential::sys()).every_null().unwrap_err()), AuthError::RejectedCredential);
}

/// Raw calls: other versions of RPC, RPCSEC_GSS, and bytes that are no calls.
#[test]
fn strange_calls_are_answered_as_the_standard_says() {
    let (_server, address) = tcp_server();
    let address = address.strip_prefix("tcp:").unwrap();
    let exchange = |words: &[u32]| {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut bytes = (0x8000_0000 | (words.len() as u32 * 4)).to_be_bytes().to_vec();
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        stream.write_all(&bytes).unwrap();
        // The server may have ended the connection already.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer.chunks(4).skip(1).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect::<Vec<u32>>()
    };
    let program = EveryV1Client::PROGRAM;
    assert_eq!(exchange(&[9, 0, 2, program, 1, 0, 0, 0, 0, 0]), [9, 1, 0, 0, 0, 0]);
    assert_eq!(exchange(&[9, 0, 3, program, 1, 0, 0, 0, 0, 0]), [9, 1, 1, 0, 2, 2]);
    assert_eq!(exchange(&[9, 0, 2, program, 1, 0, 6, 4, 1, 0, 0]), [9, 1, 1, 1, 2]);
    // A damaged AUTH_SYS body.
    assert_eq!(exchange(&[9, 0, 2, program, 1, 0, 1, 4, 1, 0, 0]), [9, 1, 1, 1, 1]);
    // A reply, a header that ends early, and a message type that does not exist get no answer.
    assert_eq!(exchange(&[9, 1, 0, 0, 0, 0]), []);
    assert_eq!(exchange(&[9, 0, 2, program]), []);
    assert_eq!(exchange(&[9, 7]), []);
}

#[test]
fn messages_that_are_too_long_end_their_connection_and_no_other() {
    let server = builder().max_message(1000).tcp("127.0.0.1:0").unwrap().start().unwrap();
    let address = server.addresses().next().unwrap();
    let client = EveryV1Client::connect(&format!("tcp:{address}")).unwrap();
    client.every_null().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&[0x80, 0, 4, 0]).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    // Results that do not fit are the server's own trouble.
    let text = "x".repeat(970);
    client.echo_string(&text[..900]).unwrap();
    assert!(matches!(client.echo_string(&text), Err(Error::Disconnected { .. })));
    client.every_null().unwrap();
}

#[test]
fn a_call_that_nobody_replies_to_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addresses =
        [format!("tcp:{}", listener.local_addr().unwrap()), format!("udp:{}", silent.local_addr().unwrap())];
    for address in addresses {
        let options = ClientOptions { timeout: Duration::from_millis(50), ..ClientOptions::default() };
        let client = client_with(&address, options);
        let outcomes = std::thread::scope(|scope| {
            let callers = [0; 3].map(|_| scope.spawn(|| client.every_null()));
            callers.map(|caller| caller.join().unwrap())
        });
        for outcome in outcomes {
            assert!(matches!(outcome, Err(Error::TimedOut { .. })), "{outcome:?}");
        }
    }
}

#[test]
fn calls_end_when_the_connection_does_and_the_next_call_makes_another() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = EveryV1Client::connect(&format!("tcp:{address}")).unwrap();
    let pending: Vec<_> = (0..3).map(|_| client.begin_every_null().unwrap()).collect();
    drop(listener.accept().unwrap());
    for pending in pending {
        assert!(matches!(pending.wait(), Err(Error::Disconnected { .. })));
    }
    drop(listener);
    assert!(matches!(client.every_null(), Err(Error::Setup { .. })));
    let _server: Server = builder().tcp(&address.to_string()).unwrap().start().unwrap();
    client.every_null().unwrap();
}

/// Passes connections on to a server and ends each after some bytes, in the middle of whatever it carries.
fn cutting_proxy(server: std::net::SocketAddr, ends: Arc<AtomicUsize>, stop: Arc<AtomicBool>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let (client, server) = (client.unwrap(), TcpStream::connect(server).unwrap());
            let limit = 200 + number * 37 % 500;
            let pass = |from: TcpStream, to: TcpStream, mut left: usize| {
                let ends = ends.clone();
                std::thread::spawn(move || {
                    let mut buffer = [0; 100];
                    while let Ok(count @ 1..) = (&from).read(&mut buffer[..left.clamp(1, 100)]) {
                        if left == 0 || (&to).write_all(&buffer[..count]).is_err() {
                            break;
                        }
                        left = left.saturating_sub(count);
                    }
                    ends.fetch_add(1, Ordering::Relaxed);
                    let _ = from.shutdown(std::net::Shutdown::Both);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                })
            };
            pass(client.try_clone().unwrap(), server.try_clone().unwrap(), limit);
            pass(server, client, limit);
        }
    });
    address
}

#[test]
fn a_counter_counts_right_although_connections_end_all_the_time() {
    let server = builder().tcp("127.0.0.1:0").unwrap().start().unwrap();
    let (ends, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let proxy = cutting_proxy(server.addresses().next().unwrap(), ends.clone(), stop.clone());
    let options = ClientOptions { resend: true, ..ClientOptions::default() };
    let client = client_with(&format!("tcp:{proxy}"), options);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    client.add(1).unwrap();
                }
            });
        }
    });
    stop.store(true, Ordering::Relaxed);
    let direct = EveryV1Client::connect(&format!("tcp:{}", server.addresses().next().unwrap())).unwrap();
    assert_eq!(direct.count().unwrap(), 200);
    assert!(ends.load(Ordering::Relaxed) > 20, "the proxy ended {ends:?} connections only");
}

/// Passes datagrams on, but loses every second one in each direction.
#[test]
fn a_counter_counts_right_although_datagrams_get_lost() {
    let server = builder().udp("127.0.0.1:0").unwrap().start().unwrap();
    let server_address = server.addresses().next().unwrap();
    let inner = UdpSocket::bind("127.0.0.1:0").unwrap();
    inner.connect(server_address).unwrap();
    let outer = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let proxy = outer.local_addr().unwrap();
    let back = (inner.try_clone().unwrap(), outer.clone());
    std::thread::spawn(move || {
        let (mut buffer, mut count, mut returning) = ([0; 2000], 0, None);
        while let Ok((len, from)) = outer.recv_from(&mut buffer) {
            if returning.replace(from).is_none() {
                let (inner, outer) = (back.0.try_clone().unwrap(), back.1.clone());
                std::thread::spawn(move || {
                    let (mut buffer, mut count) = ([0; 2000], 0);
                    while let Ok(len) = inner.recv(&mut buffer) {
                        count += 1;
                        if count % 2 == 0 {
                            outer.send_to(&buffer[..len], from).unwrap();
                        }
                    }
                });
            }
            count += 1;
            if count % 2 == 0 {
                inner.send(&buffer[..len]).unwrap();
            }
        }
    });
    let options = ClientOptions { first_resend: Duration::from_millis(5), ..ClientOptions::default() };
    let client = client_with(&format!("udp:{proxy}"), options);
    for _ in 0..20 {
        client.add(1).unwrap();
    }
    let direct = EveryV1Client::connect(&format!("udp:{server_address}")).unwrap();
    assert_eq!(direct.count().unwrap(), 20);
}

#[test]
fn calls_end_with_the_server_and_find_the_next_one() {
    for scheme in ["shm", "vi"] {
        let name = format!("{scheme}:rpc-ends-{}", std::process::id());
        let server = builder().listen(&name).unwrap().start().unwrap();
        let client = EveryV1Client::connect(&name).unwrap();
        client.every_null().unwrap();
        assert_eq!(server.connections(), 1);
        drop(server);
        assert!(client.every_null().is_err());
        let _server = builder().listen(&name).unwrap().start().unwrap();
        client.every_null().unwrap();
    }
}

/// The calls of a counter are neither lost nor executed twice, on whatever transport the connection ends in the middle of them.
#[test]
fn a_counter_counts_right_over_connections_that_end() {
    const CALLS: i32 = 100;
    let (_server, addresses) = streams("counter");
    let mut expected = 0;
    for address in addresses {
        let options = ClientOptions { resend: true, timeout: PATIENT, ..ClientOptions::default() };
        let client = client_with(&address, options);
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // At some moment after every fifth call, however fast they are.
                for at in (0..CALLS as usize).step_by(5) {
                    while done.load(Ordering::SeqCst) < at {
                        std::thread::yield_now();
                    }
                    client.client().disconnect();
                }
            });
            for _ in 0..CALLS {
                client.add(1).unwrap_or_else(|error| panic!("{address}: {error}"));
                done.fetch_add(1, Ordering::SeqCst);
            }
        });
        expected += CALLS;
        assert_eq!(client.count().unwrap(), expected, "{address}");
    }
}

/// Connections are counted, and those that end at once are no burden.
#[test]
fn connections_that_end_at_once_are_forgotten() {
    let server = builder().tcp("127.0.0.1:0").unwrap().start().unwrap();
    let address = server.addresses().next().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..200).for_each(|_| drop(TcpStream::connect(address).unwrap())));
        }
    });
    while server.connections() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    EveryV1Client::connect(&format!("tcp:{address}")).unwrap().every_null().unwrap();
}

/// A client that sends without end and takes replies late is slowed down, and every call is answered.
#[test]
fn a_flood_of_calls_is_answered_in_full() {
    const CALLS: usize = 30_000;
    for server in [builder(), builder().ordered()] {
        let server = server.tcp("127.0.0.1:0").unwrap().start().unwrap();
        let mut stream = TcpStream::connect(server.addresses().next().unwrap()).unwrap();
        let mut writer = stream.try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            let words = [0x8000_0028, 9, 0, 2, EveryV1Client::PROGRAM, 1, 0, 0, 0, 0, 0];
            let call: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
            writer.write_all(&call.repeat(CALLS)).unwrap();
        });
        let mut replies = vec![0; CALLS * 28];
        stream.read_exact(&mut replies).unwrap();
        assert!(replies.chunks(28).all(|reply| reply == &replies[..28]));
        sending.join().unwrap();
    }
}
