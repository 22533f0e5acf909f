//! Calls and replies that are put together where they are sent from, in the ring of a channel.

use std::sync::atomic::{AtomicUsize, Ordering};

use sidestep_rpc::xdr::{Reader, Writer};
use sidestep_rpc::{Accepted, Call, Client, ClientOptions, Error, Procedure, Refusal, Server, Service};

/// Takes a number and bytes, and gives both back, the bytes twice.
const TWICE: Procedure = Procedure { program: 0x2000_0112, version: 1, procedure: 1 };
/// Gives bytes, and then finds that it cannot.
const HALF: Procedure = Procedure { procedure: 2, ..TWICE };
/// How many bytes have come with calls that are not replied to.
const BATCHED: Procedure = Procedure { procedure: 3, ..TWICE };
const COUNT: Procedure = Procedure { procedure: 4, ..TWICE };
const MOST: u32 = 4 << 20;

struct Twice {
    repeatable: bool,
    batched: AtomicUsize,
}

impl Service for Twice {
    fn program(&self) -> u32 {
        TWICE.program
    }

    fn version(&self) -> u32 {
        TWICE.version
    }

    fn call(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        let mut twice = |number, bytes: &[u8]| {
            out.u32(number)?;
            out.opaque(bytes, MOST)?;
            out.opaque(bytes, MOST)
        };
        match call.procedure {
            1 => twice(input.u32()?, input.opaque(MOST)?).map_err(Refusal::of_results),
            2 => {
                twice(2, &[7; 5000]).map_err(Refusal::of_results)?;
                Err(Refusal::ProcedureUnavailable)
            }
            3 => {
                self.batched.fetch_add(input.opaque(MOST)?.len(), Ordering::SeqCst);
                Err(Refusal::NoReply)
            }
            _ => out.u32(self.batched.load(Ordering::SeqCst) as u32).map_err(Refusal::of_results),
        }
    }

    fn repeatable(&self, _: u32) -> bool {
        self.repeatable
    }
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * 31) ^ (at >> 8)) as u8).collect()
}

fn twice(client: &Client, bytes: &[u8]) {
    let encode = |out: &mut Writer<'_>| {
        out.u32(bytes.len() as u32)?;
        out.opaque(bytes, MOST)
    };
    let decode =
        |input: &mut Reader<'_>| Ok((input.u32()?, input.opaque(MOST)?.to_vec(), input.opaque(MOST)?.to_vec()));
    let (number, first, second) = client.call(TWICE, encode, decode).unwrap();
    assert_eq!((number as usize, first.len(), second.len()), (bytes.len(), bytes.len(), bytes.len()));
    assert!(first == bytes && second == bytes, "{} bytes changed on their way", bytes.len());
}

/// Lengths around where items go to the ring, around what fits there, and beyond; whether calls are kept or not, at both ends.
#[test]
fn calls_and_replies_of_every_length_arrive() {
    for (round, repeatable, resend) in [(0, true, false), (1, true, true), (2, false, false)] {
        let name = format!("shm:rpc-place-{round}-{}", std::process::id());
        let server = Server::builder().service(Twice { repeatable, batched: AtomicUsize::new(0) });
        let _server = server.fabric(&name).start().unwrap();
        let options = ClientOptions { resend, ..ClientOptions::default() };
        let client = Client::connect_with(&name.parse().unwrap(), options).unwrap();
        for length in [0, 1, 1000, 1023, 1024, 1025, 4097, 65_536, 98_000, 98_304, 131_072, 196_500, 200_000, 1 << 20] {
            // Several times, so that frames lie around the end of the ring.
            (0..5).for_each(|_| twice(&client, &bytes(length)));
        }
        let refused = client.call(HALF, |_| Ok(()), |_| Ok(())).unwrap_err();
        assert!(matches!(refused, Error::Refused(Accepted::ProcedureUnavailable)), "{refused}");
        twice(&client, &bytes(5000));
    }
}

/// Nothing of one call gets between the bytes of another, and batched calls that wait go first.
#[test]
fn long_calls_of_many_threads_keep_apart() {
    let name = format!("shm:rpc-place-threads-{}", std::process::id());
    let server = Server::builder().service(Twice { repeatable: true, batched: AtomicUsize::new(0) });
    let _server = server.fabric(&name).start().unwrap();
    let client = Client::connect(&name).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..40 {
                    twice(client, &bytes((thread * 9973 + round * 4099) % 120_000));
                    client.batch(BATCHED, |out| out.opaque(&bytes(2000), MOST)).unwrap();
                }
            });
        }
    });
    assert_eq!(client.call(COUNT, |_| Ok(()), |input| input.u32()).unwrap(), 4 * 40 * 2000);
}
