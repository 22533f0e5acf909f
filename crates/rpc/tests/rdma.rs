//! RPC over RDMA: messages inline and in chunks, credits, errors, and connections that end.

mod every;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use every::generated::EveryV1Client;
use sidestep_rpc::xdr::{Reader, Writer};
use sidestep_rpc::{
    Accepted, Address, Binding, Call, Client, ClientOptions, Error, Procedure, Refusal, Server, Service,
};

const PROGRAM: u32 = 0x2000_0111;
/// Takes bytes, gives them back between two numbers.
const ECHO: Procedure = Procedure { program: PROGRAM, version: 1, procedure: 1 };
/// Counts, and says how far it has come.
const COUNT: Procedure = Procedure { procedure: 2, ..ECHO };
/// Takes bytes; says how many such calls went before, and the sum of the bytes.
const SUM: Procedure = Procedure { procedure: 3, ..ECHO };
const MOST: u32 = 4 << 20;

#[derive(Default)]
struct Store {
    count: AtomicUsize,
}

impl Service for Store {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        match call.procedure {
            0 => Ok(()),
            1 => {
                let (before, bytes, after) = (input.u32()?, input.opaque(MOST)?, input.u32()?);
                input.finish()?;
                let written = out.u32(before).and_then(|()| out.opaque(bytes, MOST)).and_then(|()| out.u32(after));
                written.map_err(Refusal::of_results)
            }
            2 => out.u32(self.count.fetch_add(1, Ordering::SeqCst) as u32).map_err(Refusal::of_results),
            3 => {
                let sum = sum(input.opaque(MOST)?);
                let before = self.count.fetch_add(1, Ordering::SeqCst) as u32;
                out.words([before, sum]).map_err(Refusal::of_results)
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()))
}

/// The bytes of `ECHO` begin behind a number and their length.
const BINDING: Binding = Binding {
    argument: |procedure, _| (procedure == ECHO).then_some(8),
    result: |procedure, _| (procedure == ECHO).then_some(8),
    result_limit: |procedure, arguments| {
        let length = u32::from_be_bytes(*arguments.get(4..)?.first_chunk()?);
        (procedure == ECHO).then_some(length)
    },
};

fn serve(binding: Binding) -> (Server, Address) {
    serve_at("127.0.0.1:0", binding)
}

fn serve_at(address: &str, binding: Binding) -> (Server, Address) {
    let server = Server::builder().service(Store::default()).binding(binding).rdma(address).unwrap();
    let server = server.start().unwrap();
    let address = format!("rdma:{}", server.addresses().next().unwrap());
    (server, address.parse().unwrap())
}

fn echo(client: &Client, bytes: &[u8]) -> Result<(), Error> {
    let encode = |out: &mut Writer<'_>| {
        out.u32(3)?;
        out.opaque(bytes, MOST)?;
        out.u32(4)
    };
    let decode = |input: &mut Reader<'_>| Ok((input.u32()?, input.opaque(MOST)?.to_vec(), input.u32()?));
    let (before, echoed, after) = client.call(ECHO, encode, decode)?;
    assert_eq!((before, echoed.len(), after), (3, bytes.len(), 4));
    assert!(echoed == bytes, "{} bytes changed on their way", bytes.len());
    Ok(())
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * 31) ^ (at >> 8)) as u8).collect()
}

const SIZES: [usize; 12] = [0, 1, 3, 900, 3900, 3960, 4000, 4097, 16_384, 65_536, 100_001, 1 << 20];

/// Clients have 127.0.0.1, so frames to the other address are as short as between hosts.
#[test]
fn calls_and_replies_of_every_length_arrive() {
    for (binding, at) in [(Binding::NONE, "127.0.0.1:0"), (BINDING, "127.0.0.1:0"), (BINDING, "127.0.0.2:0")] {
        let (_server, address) = serve_at(at, binding);
        let options = ClientOptions { binding, reply_chunk: 2 << 20, ..ClientOptions::default() };
        let client = Client::connect_with(&address, options).unwrap();
        for size in SIZES {
            echo(&client, &bytes(size)).unwrap_or_else(|error| panic!("{size} bytes: {error}"));
        }
    }
}

/// Whoever has a binding and whoever has none understand each other where data are small or the reply chunk takes them.
#[test]
fn a_server_without_binding_uses_the_reply_chunk() {
    let (_server, address) = serve(Binding::NONE);
    let options = ClientOptions { binding: BINDING, reply_chunk: 2 << 20, ..ClientOptions::default() };
    let client = Client::connect_with(&address, options).unwrap();
    for size in SIZES {
        echo(&client, &bytes(size)).unwrap();
    }
}

#[test]
fn a_reply_for_which_there_is_no_space_is_an_error_of_its_call() {
    let (_server, address) = serve(Binding::NONE);
    for reply_chunk in [0, 5000] {
        let options = ClientOptions { reply_chunk, ..ClientOptions::default() };
        let client = Client::connect_with(&address, options).unwrap();
        let error = echo(&client, &bytes(10_000)).unwrap_err();
        assert!(matches!(error, Error::Refused(Accepted::SystemError)), "{error}");
        echo(&client, &bytes(500)).unwrap();
    }
}

#[test]
fn more_threads_than_credits_share_one_connection() {
    let (server, address) = serve(BINDING);
    let options = ClientOptions { binding: BINDING, ..ClientOptions::default() };
    let client = Client::connect_with(&address, options).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..48 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..20 {
                    echo(client, &bytes((thread * 97 + round * 1009) % 20_000)).unwrap();
                }
            });
        }
    });
    assert_eq!(server.connections(), 1);
}

#[test]
fn many_calls_are_outstanding_at_a_time() {
    let (_server, address) = serve(Binding::NONE);
    let client = Client::connect_with(&address, ClientOptions::default()).unwrap();
    let begin = || client.begin(COUNT, |_| Ok(()), |input| input.u32()).unwrap();
    let pending: Vec<_> = (0..200).map(|_| begin()).collect();
    let mut counts: Vec<u32> = pending.into_iter().map(|pending| pending.wait().unwrap()).collect();
    counts.sort_unstable();
    assert_eq!(counts, (0..200).collect::<Vec<_>>());
}

#[test]
fn chunks_of_many_calls_are_read_at_a_time_and_the_calls_executed_in_their_order() {
    let (_server, address) = serve(Binding::NONE);
    let client = Client::connect_with(&address, ClientOptions::default()).unwrap();
    // Inline, in chunks of which several are read at a time, and in some that are read alone.
    let arguments: Vec<Vec<u8>> = [100, 65_536, 5000, 300_001, 2 << 20, 0, 700_000].map(bytes).to_vec();
    let begin = |bytes: &Vec<u8>| {
        client.begin(SUM, |out| out.opaque(bytes, MOST), |input| Ok((input.u32()?, input.u32()?))).unwrap()
    };
    let pending: Vec<_> = arguments.iter().cycle().take(70).map(begin).collect();
    for (number, (pending, bytes)) in pending.into_iter().zip(arguments.iter().cycle()).enumerate() {
        assert_eq!(pending.wait().unwrap(), (number as u32, sum(bytes)), "{} bytes", bytes.len());
    }
}

#[test]
fn a_counter_counts_right_although_connections_end_all_the_time() {
    let (_server, address) = serve(Binding::NONE);
    let options = ClientOptions { resend: true, ..ClientOptions::default() };
    let client = Arc::new(Client::connect_with(&address, options).unwrap());
    let done = Arc::new(AtomicUsize::new(0));
    let ends = std::thread::spawn({
        let (client, done) = (client.clone(), done.clone());
        move || {
            // At some moment after every other call, however fast they are.
            for at in (0..CALLS).step_by(2) {
                while done.load(Ordering::SeqCst) < at {
                    std::thread::yield_now();
                }
                client.disconnect();
            }
        }
    });
    for expected in 0..CALLS {
        assert_eq!(client.call(COUNT, |_| Ok(()), |input| input.u32()).unwrap() as usize, expected);
        done.store(expected + 1, Ordering::SeqCst);
    }
    ends.join().unwrap();
}

const CALLS: usize = 200;

#[test]
fn calls_end_with_the_server_and_batches_are_refused() {
    let server = every::builder().rdma("127.0.0.1:0").unwrap().start().unwrap();
    let client = EveryV1Client::connect(&format!("rdma:{}", server.addresses().next().unwrap())).unwrap();
    client.every_null().unwrap();
    let refused = client.batch_add(-1).unwrap_err();
    assert_eq!(refused.to_string(), "there are no batched calls over RDMA");
    drop(server);
    assert!(matches!(client.every_null(), Err(Error::Disconnected { .. } | Error::Setup { .. })));
}

#[test]
fn those_who_do_not_speak_iwarp_disturb_nobody() {
    use std::io::{Read, Write};
    let (_server, address) = serve(Binding::NONE);
    let Address::Rdma(host) = &address else { panic!("an address of RDMA") };
    let mut stranger = std::net::TcpStream::connect(host).unwrap();
    stranger.write_all(b"GET / HTTP/1.0\r\n\r\nand so on, for as long as a set-up frame is").unwrap();
    // It is told the end, at once or with a reset.
    let _ = stranger.read(&mut [0; 64]);
    let client = Client::connect_with(&address, ClientOptions::default()).unwrap();
    echo(&client, b"hello").unwrap();
}
