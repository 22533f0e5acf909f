//! What stands on the fabric runs on cards of a few kilobytes, by name, and `sidestep stat --cards` shows their hit ratios.

use std::process::{Command, Stdio};
use std::sync::Once;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use sidestep_rpc::xdr::{Reader, Writer};
use sidestep_rpc::{Call, Client, Procedure, Refusal, Server, Service};
use sidestep_testkit::process::{PATIENCE, PATIENCE_NS};
use sidestep_testkit::sockets::{Behaviour, Launch, Promote};
use sidestep_vi::{Descriptor, MemAttributes, NetAddress, Nic, Reliability, ViAttributes, clock};
use sidestep_vmmc::link;
use sidestep_vmmc::{CacheShape, Config};

/// Caches of eight pages and four buffers, so that hardly anything is found at once.
const VMH: CacheShape = CacheShape { entries: 8, line: 2, ways: 2 };
const CBH: CacheShape = CacheShape { entries: 4, line: 1, ways: 2 };

fn provide() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| link::provide(Config { vmh: VMH, cbh: CBH, ..Config::default() }).expect("a new scheme"));
}

fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}

/// The cards of this process, as the program shows them.
fn cards() -> Vec<Value> {
    shown(&["--cards"], std::process::id())
}

/// What `sidestep stat` shows of a process.
fn shown(options: &[&str], pid: u32) -> Vec<Value> {
    let mut stat = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    let output = stat.arg("stat").args(options).args(["--json", &pid.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sum(cards: &[Value], key: &str) -> u64 {
    cards.iter().map(|card| card[key].as_u64().unwrap()).sum()
}

#[test]
fn via_runs_on_a_small_card_that_stat_shows() {
    provide();
    let (near, far) = (Nic::open("vmmc").unwrap(), Nic::open("vmmc").unwrap());
    let (near_tag, far_tag) = (near.create_ptag().unwrap(), far.create_ptag().unwrap());
    let attributes = |tag| ViAttributes { reliability: Reliability::Delivery, ..ViAttributes::new(tag) };
    let point = NetAddress::new(&[127, 0, 0, 1], format!("cards-{}", std::process::id()).as_bytes());
    let there = far.create_vi(&attributes(far_tag), None, None).unwrap();
    let here = near.create_vi(&attributes(near_tag), None, None).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| far.connect_wait(&point, soon()).unwrap().accept(&there).unwrap());
        here.connect(&NetAddress::default(), &point, soon()).unwrap();
    });
    // More pages than the card has.
    let len = 64 * 1024;
    let source = near.allocate(len, &MemAttributes::new(near_tag)).unwrap();
    let target = far.allocate(len, &MemAttributes::new(far_tag)).unwrap();
    for round in 0..20_u8 {
        let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8 ^ round).collect();
        source.write(0, &bytes).unwrap();
        there.post_receive(&Descriptor::new(0, &[target.segment(0, len)])).unwrap();
        here.post_send(&Descriptor::new(0, &[source.segment(0, len)])).unwrap();
        // A long message needs both ends to move.
        thread::scope(|scope| {
            scope.spawn(|| assert!(!there.wait_receive(soon()).unwrap().status.is_error()));
            assert!(!here.wait_send(soon()).unwrap().status.is_error());
        });
        let mut found = vec![0; len];
        target.read(0, &mut found).unwrap();
        assert!(found == bytes, "round {round}");
    }
    let cards = cards();
    assert!(
        cards.len() >= 2 && cards.iter().all(|card| card["card"] == "vmmc:shm" && card["entries"] == 8),
        "{cards:?}"
    );
    let (hits, misses) = (sum(&cards, "page_hits"), sum(&cards, "page_misses"));
    assert!(hits > 0 && misses > 0 && sum(&cards, "dropped") >= misses && sum(&cards, "buffer_hits") > 0, "{cards:?}");
}

const PROGRAM: u32 = 0x2000_4242;

/// Gives back what it is given.
struct Echo;

impl Service for Echo {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        1
    }

    fn call(&self, _: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        let bytes = input.opaque(MOST).map_err(|_| Refusal::GarbageArguments)?;
        out.opaque(bytes, MOST).map_err(|_| Refusal::SystemError)
    }
}

const MOST: u32 = 1 << 20;

#[test]
fn rpc_runs_on_a_small_card() {
    provide();
    let address = format!("vmmc:shm:cards-rpc-{}", std::process::id());
    let _server = Server::builder().service(Echo).listen(&address).unwrap().start().unwrap();
    let client = Client::connect(&address).unwrap();
    let echo = Procedure { program: PROGRAM, version: 1, procedure: 1 };
    for len in [0, 1, 100, 5_000, 70_000, 300_000] {
        let bytes: Vec<u8> = (0..len).map(|at: usize| (at % 253) as u8).collect();
        let heard =
            client.call(echo, |out| out.opaque(&bytes, MOST), |input| Ok(input.opaque(MOST)?.to_vec())).unwrap();
        assert!(heard == bytes, "{len} bytes");
    }
    let cards = cards();
    assert!(sum(&cards, "page_hits") > 0 && sum(&cards, "page_misses") > 0, "{cards:?}");
}

/// Without a card the table says so; a name whose link the program does not provide is an error that says which there are.
#[test]
fn what_is_not_there_is_said() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sidestep")).args(["stat", "--cards", "1"]).output().expect("the program");
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("no cards of process 1: "));
}

/// Programs of sockets on a card that misses nearly always: what they see is the same as on kernel TCP.
#[test]
fn sockets_behave_the_same_on_a_small_card() {
    for name in ["both_ways", "bulk", "change_user", "epoll_edge_stream", "fork_reads", "poll", "stdio"] {
        let behaviour = Behaviour::new(name);
        for mode in behaviour.modes {
            let launch = |promote| Launch::Card(env!("CARGO_BIN_EXE_sidestep").into(), promote);
            let launches = [launch(Promote::Default), launch(Promote::Random(7))];
            behaviour.expect_equal(mode, &launches, "", |launch| behaviour.command(launch, mode));
        }
    }
}

/// Echoes within one program until its standard input ends.
const ECHO: &str = "
import select, socket, sys
door = socket.create_server(('127.0.0.1', 0))
near = socket.create_connection(door.getsockname())
far, _ = door.accept()
while not select.select([sys.stdin], [], [], 0)[0]:
    near.sendall(b'x' * 4096)
    far.sendall(far.recv(4096, socket.MSG_WAITALL))
    near.recv(4096, socket.MSG_WAITALL)
";

#[test]
fn stat_shows_the_card_that_sockets_are_on() {
    let launch = Launch::Card(env!("CARGO_BIN_EXE_sidestep").into(), Promote::Default);
    let mut command = launch.command("python3".as_ref());
    let mut echo = command.args(["-c", ECHO]).stdin(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let on_card = |sockets: &[Value]| sockets.iter().any(|socket| socket["reads_from"] == "via-vmmc");
    while !on_card(&shown(&[], echo.id())) {
        assert!(began.elapsed() < PATIENCE, "{:?}", shown(&[], echo.id()));
        thread::sleep(Duration::from_millis(10));
    }
    while sum(&shown(&["--cards"], echo.id()), "page_misses") == 0 {
        assert!(began.elapsed() < PATIENCE, "{:?}", shown(&["--cards"], echo.id()));
        thread::sleep(Duration::from_millis(10));
    }
    drop(echo.stdin.take());
    assert!(echo.wait().unwrap().success());
}
