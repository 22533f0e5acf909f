//! A process of a group that speaks its protocols as it likes: garbage on streams, in words of what was begun, in greetings and on
//! the line to the coordinator. Its unit fails, the group goes on when an honest process has taken its place, and another group
//! of the same program notices nothing.

mod kit;

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

use kit::{Found, apart, expected, kinds, launcher};
use serde_json::{Value, json};
use sidestep_fabric::channel::private_of;
use sidestep_fabric::{Channel, ChannelOptions, LinkOptions, Node, queue};
use sidestep_filters::{Graph, Group, HostSpec, Launcher, Place, Schedule, Settings, Transport};
use sidestep_sys::clock;
use sidestep_sys::seeded::Seeded;
use sidestep_testkit::process::{full, seed_or};
use sidestep_vi::{Descriptor, FlowControl, MemAttributes, NetAddress, Nic, ViAttributes};

/// The process reads its seed here, and becomes honest once the file of this name is gone.
const SEED: &str = "SIDESTEP_HOSTILE_SEED";
const ONCE: &str = "SIDESTEP_HOSTILE_ONCE";
/// Nobody in these tests waits for so long.
const LONG_NS: u64 = 60_000_000_000;

#[test]
fn role() {
    if let (Ok(seed), Ok(once)) = (std::env::var(SEED), std::env::var(ONCE))
        && std::fs::remove_file(once).is_ok()
    {
        // The test program has printed the beginning of a line.
        println!();
        Hostile { random: Seeded::new(seed.parse().unwrap()) }.serve();
        std::process::exit(0);
    }
    kit::role();
}

/// What holds the connections of the hostile process open.
enum Held {
    Sockets(TcpStream, TcpStream),
    Channels(Box<(Channel, Channel)>),
    Vis(Box<(sidestep_vi::Vi, sidestep_vi::Vi, sidestep_vi::Buffer, Nic)>),
}

/// What it listens with.
enum Door {
    Socket(TcpListener),
    Channel(Node, sidestep_fabric::Listener),
    Vi(Nic, NetAddress),
}

struct Hostile {
    random: Seeded,
}

impl Hostile {
    /// In the place of `mix`: it takes stream 0 from, and gives stream 1 to the process of the test.
    fn serve(&mut self) {
        let (mut door, mut held, mut plan) = (None, None, Value::Null);
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let order: Value = serde_json::from_str(&line).unwrap();
            if let Some(prepared) = order.get("Prepare") {
                plan = prepared.clone();
                let (own, address) = listen(&plan);
                door = Some(own);
                self.garble();
                say(json!({"Ready": {"epoch": plan["epoch"], "address": address}}));
            } else if let Some(connect) = order.get("Connect") {
                let address = connect["addresses"]["main"].as_str().unwrap();
                held = Some(self.connect(&plan, door.as_ref().unwrap(), address));
                say(json!({"Connected": {"epoch": plan["epoch"]}}));
            } else if let Some(work) = order.get("Work") {
                let copy = json!({"filter": 1, "copy": 0});
                say(json!({"Began": {"epoch": plan["epoch"], "copy": copy, "unit": work["unit"]["number"]}}));
                self.garble();
                self.flood(held.as_mut().unwrap());
                self.garble();
                // Long enough for the garbage to be looked at, or not.
                std::thread::sleep(std::time::Duration::from_micros(self.random.below(3000)));
                return;
            }
        }
    }

    /// Reports that are none, or about what is not its own.
    fn garble(&mut self) {
        let mut out = std::io::stdout();
        for _ in 0..self.random.below(4) {
            let copy = json!({"filter": self.random.below(5), "copy": self.random.below(300)});
            let (epoch, unit) = (self.random.below(4), self.random.below(3));
            let counts = json!({"buffers_in": u64::MAX, "bytes_in": 1, "buffers_out": 1, "bytes_out": u64::MAX,
                "starved_ns": u64::MAX, "blocked_ns": u64::MAX, "working_ns": 7, "delayed_ns": u64::MAX, "waiting": 9});
            let report = match self.random.below(7) {
                0 => json!({"Finished": {"epoch": epoch, "copy": {"filter": 2, "copy": 0}, "unit": unit}}),
                1 => json!({"Finished": {"epoch": epoch, "copy": copy, "unit": unit}}),
                2 => json!({"Counts": {"epoch": epoch, "counts": [[copy, counts], [copy, counts]]}}),
                3 => json!({"Began": {"epoch": epoch, "copy": copy, "unit": unit}}),
                4 => json!({"Connected": {"epoch": 99}}),
                5 => json!({"Ready": {"epoch": u64::MAX, "address": "nowhere"}}),
                _ => json!([self.random.next_u64(), null]),
            };
            say(report);
            let bytes: Vec<u8> = self.bytes(60).into_iter().filter(|byte| *byte != b'\n').collect();
            let _ = out.write_all(&bytes).and_then(|()| out.write_all(b"\n"));
        }
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.random.below(most)).map(|_| self.random.next_u64() as u8).collect()
    }

    /// A frame that may be good, or nearly so: its length, its kind and its number are each right or not.
    fn frame(&mut self) -> Vec<u8> {
        if self.random.chance(200) {
            return self.bytes(300);
        }
        let len = match self.random.below(4) {
            0 => self.random.next_u64() as u32,
            1 => 65 + self.random.below(64) as u32,
            _ => self.random.below(65) as u32,
        };
        let kind = if self.random.chance(800) { 1 } else { self.random.below(5) as u32 };
        let tag = if self.random.chance(300) { self.random.next_u64() } else { self.random.below(3) };
        let mut frame = [&len.to_le_bytes()[..], &kind.to_le_bytes(), &tag.to_le_bytes()].concat();
        frame.resize(frame.len() + len.min(200) as usize, 7);
        frame
    }

    fn connect(&mut self, plan: &Value, door: &Door, address: &str) -> Held {
        let until = Some(clock::now() + LONG_NS);
        let greeting = greeting(plan);
        match door {
            Door::Socket(listener) => {
                // Strangers, who do not know the key or stop within it, and the same connection twice.
                let mut strangers = Vec::new();
                for _ in 0..self.random.below(4) {
                    let mut stranger = TcpStream::connect(address).unwrap();
                    let (mut said, cut) = (greeting.clone(), self.random.below(36) as usize);
                    said[cut] ^= 1;
                    let _ = stranger.write_all(&said[..if self.random.chance(500) { cut } else { 36 }]);
                    strangers.push(stranger);
                }
                let mut tx = TcpStream::connect(address).unwrap();
                tx.write_all(&greeting).unwrap();
                Held::Sockets(tx, listener.accept().unwrap().0)
            }
            Door::Channel(node, listener) => {
                let options = ChannelOptions { capacity: 16 << 10, kind: queue::Kind::Stream };
                let tx = Channel::connect(node, address, options, &greeting, until).unwrap();
                let request = listener.wait(until).unwrap();
                assert_eq!(private_of(&request).len(), greeting.len());
                Held::Channels(Box::new((tx, Channel::accept(request, options, b"", until).unwrap())))
            }
            Door::Vi(nic, own) => {
                let ptag = nic.create_ptag().unwrap();
                let memory = nic.allocate(64 << 10, &MemAttributes::new(ptag)).unwrap();
                let vi = || {
                    let vi = nic.create_vi(&ViAttributes::new(ptag), None, None).unwrap();
                    vi.set_flow_control(FlowControl::NonBlocking);
                    for slot in 0..8 {
                        vi.post_receive(&Descriptor::new(slot, &[memory.segment(slot as usize * 1024, 1024)])).unwrap();
                    }
                    vi
                };
                let (tx, rx) = (vi(), vi());
                let peer = NetAddress::new(&[], address.as_bytes());
                tx.connect(&NetAddress::new(&[], &greeting), &peer, until).unwrap();
                nic.connect_wait(own, until).unwrap().accept(&rx).unwrap();
                Held::Vis(Box::new((tx, rx, memory, nic.clone())))
            }
        }
    }

    /// Frames to the consumer, and words to the producer.
    fn flood(&mut self, held: &mut Held) {
        for _ in 0..1 + self.random.below(20) {
            let (frame, word) = (self.frame(), self.bytes(40));
            match held {
                Held::Sockets(tx, rx) => {
                    // Refused once the peer has seen enough.
                    let _ = tx.write_all(&frame);
                    let _ = rx.write_all(&word);
                }
                Held::Channels(pair) => {
                    let (tx, rx) = &mut **pair;
                    // Frames over channels lie in whole lines.
                    let mut lines = frame.clone();
                    if self.random.chance(800) {
                        lines.resize(64, 0);
                        lines.extend_from_slice(&[7; 128]);
                    }
                    let _ = tx.sender.try_send(&lines);
                    let _ = rx.sender.try_send(&word);
                    let (tx, rx) = (tx.sender.flush(Some(0)), rx.sender.flush(Some(0)));
                    drop((tx, rx));
                }
                Held::Vis(held) => {
                    let (tx, rx, memory, _) = &**held;
                    for (vi, bytes) in [(tx, &frame), (rx, &word)] {
                        memory.write(32 << 10, bytes).unwrap();
                        let descriptor = Descriptor::new(0, &[memory.segment(32 << 10, bytes.len())]);
                        let until = Some(clock::now() + 1_000_000);
                        let _ = vi.post_send_with(&descriptor, FlowControl::NonBlocking, until);
                        let _ = vi.wait_send(until);
                    }
                }
            }
        }
    }
}

fn say(report: Value) {
    println!("{report}");
}

fn listen(plan: &Value) -> (Door, String) {
    let own = format!("hostile-{}", std::process::id());
    match plan["graph"]["transport"].as_str().unwrap() {
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap().to_string();
            (Door::Socket(listener), address)
        }
        "vi" => {
            let nic = Nic::on(Node::open(&["shm"], &LinkOptions::default()).unwrap(), "shm", "filters").unwrap();
            let address = NetAddress::new(&[], own.as_bytes());
            nic.listen(&address).unwrap();
            (Door::Vi(nic, address), own)
        }
        _ => {
            let node = Node::open(&["shm", "iwarp"], &LinkOptions::default()).unwrap();
            let ports = 40_000..60_000u32;
            let names: Vec<String> = match plan["address"].as_str() {
                None => vec![format!("shm:{own}")],
                Some(host) => ports.map(|port| format!("iwarp:{host}:{port}/{own}")).collect(),
            };
            let skipped = std::process::id() as usize * 7 % names.len();
            let mut names = names.iter().skip(skipped);
            let found = names.find_map(|name| Some((node.listen(name).ok()?, name.clone())));
            let (listener, name) = found.unwrap();
            (Door::Channel(node, listener), name)
        }
    }
}

/// What a connection of stream 1 begins with: the key, the epoch, the edge.
fn greeting(plan: &Value) -> Vec<u8> {
    let mut bytes: Vec<u8> = plan["key"].as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8).collect();
    bytes.extend_from_slice(&plan["epoch"].as_u64().unwrap().to_le_bytes());
    [1u32, 0, 0].iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes
}

/// One unit with the hostile process, and one with an honest one.
fn meet(mut graph: Graph, seed: u64) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let own = COUNT.fetch_add(1, Ordering::Relaxed);
    let once = std::env::temp_dir().join(format!("sidestep-hostile-{}-{own}", std::process::id()));
    std::fs::write(&once, "").unwrap();
    let program = std::env::current_exe().unwrap();
    let words = [program.to_str().unwrap(), "role", "--exact", "--nocapture", "--test-threads=1"];
    let (found, once) = (Found::default(), once.to_str().unwrap().to_owned());
    graph.pipelined = 1;
    if let Some(host) = graph.hosts.get_mut(1) {
        let variables = [format!("{SEED}={seed}"), format!("{ONCE}={once}")];
        host.command = ["env".to_owned()].into_iter().chain(variables).chain(words.map(str::to_owned)).collect();
    }
    let launcher = Launcher::command(&words).with_variable(SEED, &seed.to_string()).with_variable(ONCE, &once);
    let mut group = Group::start(graph, &kinds(&found), launcher).unwrap();
    let outcomes = group.run([Settings::default(), Settings::default()]).unwrap();
    let error = outcomes[0].result.clone().expect_err("nobody did the work");
    assert!(["mix", "gather", "numbers"].iter().any(|copy| error.copy.starts_with(copy)), "seed {seed}: {error}");
    assert_eq!(outcomes[1].result, Ok(()), "seed {seed}");
    let mut values = kit::all(&found)[&1].clone();
    values.sort_unstable();
    assert_eq!(values, expected(100), "seed {seed}");
    let counts = group.final_counts().unwrap();
    assert_eq!(counts.len(), 3, "seed {seed}: counts of copies that are not there");
}

fn garbage(transport: Transport, hosts: bool) {
    let seed = seed_or(11);
    eprintln!("SIDESTEP_SEED={seed}");
    let mut random = Seeded::new(seed);
    // Another group of the same program, which works all the while.
    let found = Found::default();
    let mut other = Group::start(apart(1, 100, Schedule::Demand, transport), &kinds(&found), launcher()).unwrap();
    for at in 0..if full() { 100 } else { 4 } {
        let schedule = if at % 2 == 0 { Schedule::Demand } else { Schedule::RoundRobin };
        let mut graph = apart(1, 100, schedule, transport);
        if hosts {
            let host = |name: &str| {
                let address = [127, 0, 0, 1].into();
                HostSpec { name: name.into(), address, command: Vec::new(), line: 0 }
            };
            graph.hosts = vec![host("here"), host("b")];
            (graph.filters[1].host, graph.filters[1].place) = (Some("b".into()), Place::Thread);
        }
        let number = other.submit(Settings::default());
        meet(graph, random.next_u64() >> 16);
        let outcome = other.wait().unwrap().unwrap();
        assert_eq!((outcome.unit, outcome.result), (number, Ok(())));
    }
    assert!(kit::all(&found).values().all(|values| values.len() == 100));
}

#[test]
fn garbage_over_sockets_breaks_one_unit() {
    garbage(Transport::Tcp, false);
}

#[test]
fn garbage_over_channels_breaks_one_unit() {
    garbage(Transport::Channel, false);
}

#[test]
fn garbage_over_iwarp_breaks_one_unit() {
    garbage(Transport::Channel, true);
}

#[test]
fn garbage_over_vis_breaks_one_unit() {
    garbage(Transport::Vi, false);
}
