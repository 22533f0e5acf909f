//! Peers that send recursive data as deep as they can: no stack overflows, on either side of a call.

mod every;

use every::generated::{EveryV1Client, List, Tree};
use sidestep_rpc::xdr::{self, Reader, Writer, Xdr};
use sidestep_rpc::{Accepted, Call, Client, ClientOptions, Error, Procedure, Refusal, Server, Service};
use sidestep_testkit::ports::free_address;
use sidestep_testkit::process::PATIENCE;

const PROGRAM: u32 = 0x2000_0222;
/// Take wide values, and say how many there were.
const NARROW: Procedure = Procedure { program: PROGRAM, version: 1, procedure: 1 };
const WIDE: Procedure = Procedure { procedure: 2, ..NARROW };
/// Takes a list as a vector, and says how long it is.
const COUNT: Procedure = Procedure { procedure: 3, ..NARROW };
/// Gives a list of so many entries.
const GIVE: Procedure = Procedure { procedure: 4, ..NARROW };

const MANY: u32 = 100_000;

/// What the compiler makes of `struct wide { hyper numbers[N]; wide *next; };`.
struct Wide<const N: usize> {
    numbers: [i64; N],
    next: Option<Box<Wide<N>>>,
}

impl<const N: usize> Xdr for Wide<N> {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {
        out.items(&self.numbers, |out, item| out.i64(*item))?;
        out.optional(self.next.as_deref(), |out, item| out.value(item))
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {
        Ok(Self {
            numbers: input.items(|input| input.i64())?,
            next: input.optional(|input| input.value().map(Box::new))?,
        })
    }
}

impl<const N: usize> Wide<N> {
    fn length(&self) -> u32 {
        std::iter::successors(Some(self), |here| here.next.as_deref()).count() as u32
    }
}

struct Deep;

impl Service for Deep {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        let count = match call.procedure {
            1 => input.value::<Wide<500>>()?.length(),
            2 => input.value::<Wide<4000>>()?.length(),
            3 => input.list(xdr::UNBOUNDED, Reader::u32)?.len() as u32,
            _ => {
                let numbers = vec![7; input.u32()? as usize];
                return out.list(&numbers, |out, number| out.u32(*number)).map_err(Refusal::of_results);
            }
        };
        input.finish()?;
        out.u32(count).map_err(Refusal::of_results)
    }
}

/// A server on every transport that carries messages of this length, and where it is.
fn serve(name: &str) -> (Server, Vec<String>) {
    let name = format!("nesting-{name}-{}", std::process::id());
    let path = std::env::temp_dir().join(format!("sidestep-rpc-{name}.sock"));
    let port = free_address();
    let mut addresses = vec![
        format!("unix:{}", path.display()),
        format!("shm:{name}"),
        format!("vi:{name}"),
        format!("vi-iwarp:{port}"),
    ];
    let builder = addresses.iter().fold(every::builder().service(Deep), |builder, at| builder.listen(at).unwrap());
    let server = builder.tcp("127.0.0.1:0").unwrap().rdma("127.0.0.1:0").unwrap().start().unwrap();
    let sockets = server.addresses().zip(["tcp", "rdma"]).map(|(socket, scheme)| format!("{scheme}:{socket}"));
    addresses.extend(sockets);
    (server, addresses)
}

fn connect(address: &str) -> Client {
    let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    Client::connect_with(&address.parse().unwrap(), options).unwrap()
}

/// The XDR of a chain of so many wide values.
fn chain(client: &Client, procedure: Procedure, width: usize, length: usize) -> Result<u32, Error> {
    let encode = |out: &mut Writer<'_>| {
        for left in (0..length).rev() {
            out.fixed(&vec![0; 8 * width])?;
            out.bool(left > 0)?;
        }
        Ok(())
    };
    client.call(procedure, encode, |input| input.u32())
}

fn give(client: &Client, count: u32) -> Result<List, Error> {
    client.call(GIVE, |out| out.u32(count), |input| input.optional(|input| input.value().map(Box::new)))
}

fn is_garbage<T>(outcome: Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Refused(Accepted::GarbageArguments)))
}

#[test]
fn what_nests_as_deep_as_it_can_is_refused_and_the_server_lives() {
    let (_server, addresses) = serve("calls");
    for address in addresses {
        let client = connect(&address);
        // 4 KB a level and 250 levels; 32 KB a level and 40. Both are more than the stack may hold.
        assert!(is_garbage(chain(&client, NARROW, 500, 250)), "{address}");
        assert!(is_garbage(chain(&client, WIDE, 4000, 40)), "{address}");
        // A list that is decoded entry in entry, and one that is decoded to a vector.
        let list = |out: &mut Writer<'_>| out.list(&[7; MANY as usize], |out, number| out.u32(*number));
        let echo_list = Procedure { program: EveryV1Client::PROGRAM, version: 1, procedure: 6 };
        assert!(is_garbage(client.call(echo_list, list, |_| Ok(()))), "{address}");
        assert_eq!(client.call(COUNT, list, |input| input.u32()).unwrap(), MANY);
        // What is not deep is taken, over the same connection.
        assert_eq!(chain(&client, NARROW, 500, 3).unwrap(), 3);
        assert_eq!(chain(&client, WIDE, 4000, 2).unwrap(), 2);
    }
}

#[test]
fn a_client_refuses_results_that_nest_too_deep() {
    let (_server, addresses) = serve("results");
    let client = connect(&addresses[1]);
    let error = give(&client, MANY).unwrap_err();
    assert!(matches!(error, Error::Reply(xdr::Error::Depth { limit: xdr::MAX_DEPTH })), "{error}");
    assert!(give(&client, xdr::MAX_DEPTH).is_ok());
}

/// As deep as it may be, a value is copied, compared, shown, encoded and dropped in a quarter of the stack that a thread has.
#[test]
fn the_deepest_value_is_used_in_a_small_stack() {
    fn use_it<T: Xdr + Clone + PartialEq + std::fmt::Debug>(deepest: &T) {
        let copy = deepest.clone();
        assert!(copy == *deepest && format!("{copy:?}").len() > 1000);
        copy.encode(&mut Writer::new(&mut Vec::new(), 1 << 20)).unwrap();
    }
    let (_server, addresses) = serve("small");
    let client = EveryV1Client::new(connect(&addresses[0]));
    let list = give(client.client(), xdr::MAX_DEPTH).unwrap();
    assert_eq!(client.echo_list(&list).unwrap(), list);
    let leaf = Tree { label: String::new(), branches: Vec::new() };
    let around = |tree, _| Tree { label: String::new(), branches: vec![leaf.clone(), tree] };
    let tree = (0..xdr::MAX_DEPTH).fold(leaf.clone(), around);
    // Whether its levels are narrow enough depends on the compiler.
    match client.echo_tree(&tree) {
        Ok(echoed) => assert_eq!(echoed, tree),
        refused => assert!(is_garbage(refused)),
    }
    let both = move || {
        use_it(&*list.unwrap());
        use_it(&tree);
    };
    std::thread::Builder::new().stack_size(xdr::MAX_STACK).spawn(both).unwrap().join().unwrap();
}
