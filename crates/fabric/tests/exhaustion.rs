//! Limits of a process that are used up: a clear error that names the limit, what exists goes on, and when the limit is
//! raised everything works again. Each in a process of its own, by resource limits only: no memory is really taken.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sidestep_fabric::{Aperture, Channel, ChannelOptions, Cookie, Error, Node, Region, Rights};
use sidestep_sys::clock;
use sidestep_testkit::process::{Child, PATIENCE_NS, Role, cpu_time_ns, enter};

/// A region that the limits below do not allow.
const LARGE: usize = 4 << 20;

#[test]
fn role() {
    enter(&[
        ("host", host),
        ("descriptors", descriptors),
        ("address_space", address_space),
        ("file_size", file_size),
        ("locked_memory", locked_memory),
        ("full_listener", full_listener),
    ]);
}

#[test]
fn exhausted_descriptors() {
    with_host("descriptors");
}

#[test]
fn exhausted_address_space() {
    with_host("address_space");
}

#[test]
fn exhausted_file_size() {
    with_host("file_size");
}

#[test]
fn exhausted_locked_memory() {
    with_host("locked_memory");
}

/// A listener without descriptors to spare cannot take in more peers; it serves those it has, does not burn the
/// processor, and takes in who waited as soon as it can.
#[test]
fn exhausted_listener() {
    let name = name();
    let mut listener = Child::start("full_listener", &[&name]);
    listener.control.expect("here");
    let first = Node::new().unwrap();
    let mut channel = connect(&first, &name);
    listener.control.expect("full");
    let second = Node::new().unwrap();
    let waiting = second.begin_connect(&format!("shm:{name}"), b"").unwrap();
    echo(&mut channel);
    let refused = waiting.wait_connected(Some(clock::now() + 300_000_000)).unwrap_err();
    println!("a full listener: {refused}");
    assert!(matches!(refused, Error::TimedOut(_) | Error::Closed(_)), "{refused}");
    echo(&mut channel);
    listener.control.say("raise");
    let used = listener.control.hear_numbers()[0];
    println!("a full listener used {:.1} ms of processor time in 300 ms or more", used as f64 / 1e6);
    drop(waiting);
    echo(&mut connect(&second, &name));
    echo(&mut channel);
    listener.control.say("end");
    listener.wait_success();
}

fn with_host(role: &str) {
    let name = name();
    let host = Child::start("host", &[&name]);
    host.control.expect("here");
    Child::start(role, &[&name]).wait_success();
}

/// Echoes on channels, and gives everyone a large region to open.
fn host(role: Role) {
    let node = Node::new().unwrap();
    let listener = node.listen(&format!("shm:{}", role.arguments[0])).unwrap();
    let region = Region::new(&node, LARGE).unwrap();
    role.control.say("here");
    serve(&listener, &region.cookie(Rights::ALL).to_bytes(), || !role.control.has_news());
}

fn serve(listener: &sidestep_fabric::Listener, private: &[u8], mut go_on: impl FnMut() -> bool) {
    let mut channels: Vec<Channel> = Vec::new();
    let mut buffer = [0; 256];
    while go_on() {
        if let Ok(request) = listener.wait(Some(clock::now() + 200_000)) {
            channels.extend(Channel::accept(request, options(), private, soon()));
        }
        channels.retain_mut(|channel| match channel.receiver.try_receive(&mut buffer) {
            Ok(len) => channel.sender.send(&buffer[..len], soon()).is_ok() && channel.endpoint.closed().is_none(),
            Err(_) => false,
        });
    }
}

/// What a program has before a limit is met, and what it tries then.
struct Program {
    name: String,
    node: Node,
    channel: Channel,
    region: Cookie,
}

impl Program {
    fn new(role: &Role) -> Program {
        let name = role.arguments[0].clone();
        let node = Node::new().unwrap();
        let channel = connect(&node, &name);
        let region = Cookie::from_bytes(&channel.private()).unwrap();
        let mut program = Program { name, node, channel, region };
        echo(&mut program.channel);
        program
    }

    fn make_region(&self) -> Result<(), Error> {
        Region::new(&self.node, LARGE).map(drop)
    }

    /// To another process, as far as this one can tell: a node of its own has no peer yet.
    fn make_connection(&self, node: &Node) -> Result<(), Error> {
        Channel::connect(node, &format!("shm:{}", self.name), options(), b"", soon()).map(drop)
    }

    fn open_aperture(&self) -> Result<(), Error> {
        Aperture::open(&self.channel.endpoint, &self.region, soon()).map(drop)
    }
}

fn descriptors(role: Role) {
    let mut program = Program::new(&role);
    let other = Node::new().unwrap();
    let full = getrlimit(Resource::Nofile);
    // With none to spare, and with one or two, so that the later steps of an operation fail too.
    for spare in 0..6 {
        limit(Resource::Nofile, limit_that_leaves(spare));
        let outcomes =
            [program.make_region(), program.make_connection(&other), program.open_aperture(), Node::new().map(drop)];
        for (what, outcome) in ["a region", "a connection", "an aperture", "a node"].iter().zip(outcomes) {
            match outcome {
                Ok(()) => assert!(spare > 0, "{what} works without descriptors"),
                Err(error) => names(&error, "ulimit -n"),
            }
        }
        echo(&mut program.channel);
        setrlimit(Resource::Nofile, full).unwrap();
    }
    everything_works(program, &other);
}

fn address_space(role: Role) {
    let mut program = Program::new(&role);
    let other = Node::new().unwrap();
    let full = getrlimit(Resource::As);
    // Room for the heap of what is tried, but for no mapping of any size.
    limit(Resource::As, address_space_used() + 96 * 1024);
    for outcome in [program.make_region(), program.make_connection(&other), program.open_aperture()] {
        names(&outcome.unwrap_err(), "ulimit -v");
    }
    echo(&mut program.channel);
    setrlimit(Resource::As, full).unwrap();
    everything_works(program, &other);
}

fn file_size(role: Role) {
    let mut program = Program::new(&role);
    let other = Node::new().unwrap();
    let full = getrlimit(Resource::Fsize);
    limit(Resource::Fsize, 64 * 1024);
    for outcome in [program.make_region(), program.make_connection(&other)] {
        names(&outcome.unwrap_err(), "ulimit -f");
    }
    // The peer's pages were made by the peer.
    program.open_aperture().unwrap();
    echo(&mut program.channel);
    setrlimit(Resource::Fsize, full).unwrap();
    everything_works(program, &other);
}

/// Nothing is locked into memory, so this limit has no effect.
fn locked_memory(role: Role) {
    let mut program = Program::new(&role);
    let other = Node::new().unwrap();
    limit(Resource::Memlock, 0);
    echo(&mut program.channel);
    everything_works(program, &other);
}

fn everything_works(mut program: Program, other: &Node) {
    program.make_region().unwrap();
    program.make_connection(other).unwrap();
    program.open_aperture().unwrap();
    echo(&mut program.channel);
}

fn full_listener(role: Role) {
    let node = Node::new().unwrap();
    let listener = node.listen(&format!("shm:{}", role.arguments[0])).unwrap();
    role.control.say("here");
    let request = listener.wait(soon()).unwrap();
    let channel = Channel::accept(request, options(), b"", soon()).unwrap();
    let full = getrlimit(Resource::Nofile);
    limit(Resource::Nofile, limit_that_leaves(0));
    let before = cpu_time_ns();
    role.control.say("full");
    let mut channel = Some(channel);
    let mut buffer = [0; 256];
    // Sleeps whenever there is nothing to echo.
    while !role.control.has_news() {
        let deadline = Some(clock::now() + 20_000_000);
        let channel = channel.as_mut().unwrap();
        match channel.receiver.receive(&mut buffer, deadline) {
            Ok(len) => channel.sender.send(&buffer[..len], soon()).unwrap(),
            Err(Error::TimedOut(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    role.control.expect("raise");
    role.control.say(&(cpu_time_ns() - before).to_string());
    setrlimit(Resource::Nofile, full).unwrap();
    let mut channels = vec![channel.take().unwrap()];
    while !role.control.has_news() {
        if let Ok(request) = listener.wait(Some(clock::now() + 1_000_000)) {
            channels.extend(Channel::accept(request, options(), b"", soon()));
        }
        for channel in &mut channels {
            if let Ok(len) = channel.receiver.try_receive(&mut buffer) {
                let _ = channel.sender.send(&buffer[..len], soon());
            }
        }
    }
}

fn connect(node: &Node, name: &str) -> Channel {
    Channel::connect(node, &format!("shm:{name}"), options(), b"", soon()).unwrap()
}

fn echo(channel: &mut Channel) {
    for round in 0..20u8 {
        let mut back = [0; 64];
        channel.sender.send(&[round; 64], soon()).unwrap();
        channel.receiver.receive_exact(&mut back, soon()).unwrap();
        assert_eq!(back, [round; 64]);
    }
}

fn names(error: &Error, limit: &str) {
    assert!(error.to_string().contains(limit), "{limit} is not named: {error}");
}

fn limit(resource: Resource, value: u64) {
    let maximum = getrlimit(resource).maximum;
    setrlimit(resource, Rlimit { current: Some(value), maximum }).unwrap();
}

/// The limit of descriptors under which just so many can still be opened.
fn limit_that_leaves(spare: u64) -> u64 {
    let is_free = |number: &u64| std::fs::read_link(format!("/proc/self/fd/{number}")).is_err();
    (0..).filter(is_free).nth(spare as usize).unwrap()
}

fn address_space_used() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').next().unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64
}

fn name() -> String {
    format!("exhaustion-{}-{}", std::process::id(), clock::now())
}

fn options() -> ChannelOptions {
    ChannelOptions { capacity: 4096, ..ChannelOptions::default() }
}

fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}
