//! Procedures that take as long as the test wants, and what goes on meanwhile.

use std::sync::{Arc, Condvar, Mutex};

use sidestep_rpc::xdr::{Reader, Writer};
use sidestep_rpc::{Call, Client, ClientOptions, Pending, Procedure, Refusal, Server, ServerBuilder, Service};
use sidestep_testkit::ports::free_address;
use sidestep_testkit::process::PATIENCE;

const PROGRAM: u32 = 0x2000_0333;
const NULL: Procedure = Procedure { program: PROGRAM, version: 1, procedure: 0 };
/// Ends when the gate is opened.
const SLOW: Procedure = Procedure { procedure: 1, ..NULL };

#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_open: bool,
    /// How many calls are in the slow procedure.
    inside: usize,
}

struct Slow(Arc<Gate>);

impl Service for Slow {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(&self, call: &Call<'_>, _: &mut Reader<'_>, _: &mut Writer<'_>) -> Result<(), Refusal> {
        if call.procedure == SLOW.procedure {
            self.0.pass();
        }
        Ok(())
    }
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.inside += 1;
        self.changed.notify_all();
        // When the test has failed nobody opens it.
        let (mut state, _) = self.changed.wait_timeout_while(state, PATIENCE, |state| !state.is_open).unwrap();
        state.inside -= 1;
    }

    fn wait_for(&self, inside: usize) {
        drop(self.changed.wait_while(self.state.lock().unwrap(), |state| state.inside < inside).unwrap());
    }

    fn open(&self) {
        self.state.lock().unwrap().is_open = true;
        self.changed.notify_all();
    }
}

struct Served {
    gate: Arc<Gate>,
    /// Those of sockets come first.
    addresses: Vec<String>,
    _server: Server,
}

const SOCKETS: usize = 3;

/// A server on every transport.
fn serve(name: &str, configure: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Served {
    let gate = Arc::<Gate>::default();
    let name = format!("rpc-slow-{name}-{}", std::process::id());
    // A port that nobody has: it is taken from the kernel and given back.
    let port = free_address();
    let unix = format!("unix:{}", std::env::temp_dir().join(&name).display());
    let lines = [format!("shm:{name}"), format!("vi:{name}"), format!("vi-iwarp:{port}")];
    let named = lines.iter().chain([&unix]);
    let builder = named.fold(Server::builder().service(Slow(gate.clone())), |builder, at| builder.listen(at).unwrap());
    let builder =
        ["tcp", "udp", "rdma"].iter().fold(builder, |it, on| it.listen(&format!("{on}:127.0.0.1:0")).unwrap());
    let server = configure(builder).start().unwrap();
    let [tcp, udp, rdma] = server.addresses().collect::<Vec<_>>().try_into().unwrap();
    let sockets = [format!("tcp:{tcp}"), format!("udp:{udp}"), unix];
    let addresses = sockets.into_iter().chain(lines).chain([format!("rdma:{rdma}")]).collect();
    Served { gate, addresses, _server: server }
}

fn connect(address: &str) -> Client {
    let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    Client::connect_with(&address.parse().unwrap(), options).unwrap()
}

fn null(client: &Client) {
    client.call(NULL, |_| Ok(()), |_| Ok(())).unwrap();
}

fn begin_slow(client: &Client) -> Pending<()> {
    client.begin(SLOW, |_| Ok(()), |_| Ok(())).unwrap()
}

/// Over every transport at once, a procedure is slow. If others waited for it, they would time out.
#[test]
fn a_slow_procedure_stops_no_other_connection() {
    for ordered in [false, true] {
        let configure = |builder: ServerBuilder| if ordered { builder.ordered() } else { builder };
        let Served { gate, addresses, _server } = serve("others", configure);
        let connect_all = || addresses.iter().map(|at| connect(at)).collect::<Vec<_>>();
        let (stopped, others) = (connect_all(), connect_all());
        let slow: Vec<_> = stopped.iter().map(begin_slow).collect();
        gate.wait_for(slow.len());
        others.iter().for_each(null);
        // And new ones.
        connect_all().iter().for_each(null);
        if !ordered {
            // Over sockets not even the other calls of its own connection.
            stopped[..SOCKETS].iter().for_each(null);
        }
        gate.open();
        slow.into_iter().for_each(|slow| slow.wait().unwrap());
        stopped.iter().for_each(null);
    }
}

#[test]
fn as_many_procedures_are_slow_at_a_time_over_sockets_as_there_are_threads() {
    const THREADS: usize = 2;
    let Served { gate, addresses, _server } = serve("threads", |builder| builder.threads(THREADS));
    let clients: Vec<Client> = addresses.iter().map(|at| connect(at)).collect();
    let (sockets, others) = clients.split_at(SOCKETS);
    let slow: Vec<_> = sockets.iter().chain(sockets).map(begin_slow).collect();
    gate.wait_for(THREADS);
    // The threads of other connections are their own.
    others.iter().for_each(null);
    assert_eq!(gate.state.lock().unwrap().inside, THREADS);
    gate.open();
    slow.into_iter().for_each(|slow| slow.wait().unwrap());
    sockets.iter().for_each(null);
}
