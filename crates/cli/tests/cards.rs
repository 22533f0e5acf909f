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
use sidestep_vmmc::process::{Attach, Process, card_command};
use sidestep_vmmc::{Address, CacheShape, Config, Error, Export, PAGE, Rights};

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

/// Processes of a card that is started on demand as the installed program.
#[test]
fn a_program_starts_the_card_that_it_lacks() {
    let name = format!("cards-demand-{}", std::process::id());
    let attach = |start| Process::attach(Attach { name: &name, memory: 16 * PAGE, start });
    let mut command = card_command(&name, None).expect("the program of this build");
    command.args(["--memory", "200", "--line", "8"]);
    let (mut one, mut two) = (attach(Some(command)).unwrap(), attach(None).unwrap());
    let export = Export { address: Address(0), len: 4096, rights: Rights::ALL, notify: false };
    let buffer = two.export(export).unwrap();
    let remote = one.import(buffer.handle()).unwrap();
    one.write(Address(0), b"on demand").unwrap();
    one.send(Address(0), 9, &remote, 0, false).unwrap();
    let mut there = [0; 9];
    two.read(Address(0), &mut there).unwrap();
    assert_eq!(&there, b"on demand");
    let card = one.card_process().expect("it was started here");
    let shown = shown(&["--cards"], card);
    assert_eq!((&shown[0]["card"], &shown[0]["line"]), (&Value::from(name.clone()), &Value::from(8)), "{shown:?}");
    assert!(sum(&shown, "memory") <= 200 * 1024, "{shown:?}");
    // A second of its name ends at once, and says so.
    let second = Command::new(env!("CARGO_BIN_EXE_sidestep")).args(["card", &name]).output().unwrap();
    assert_eq!(second.status.code(), Some(75), "{second:?}");
    assert!(String::from_utf8_lossy(&second.stderr).contains("is taken"), "{second:?}");
}

/// What cannot be is an error with the remedy, before anything runs: of the card by hand, on demand, and of a program's NIC.
#[test]
fn a_card_that_cannot_be_built_says_what_would_help() {
    let failed = |arguments: &[&str], status: i32, what: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_sidestep")).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(status) && said.contains(what), "{arguments:?}: {said}");
    };
    failed(&["card", "cards-bad", "--ways", "1"], 1, "at least 2 ways");
    failed(&["card", "cards-bad", "--memory", "20"], 1, "give it more");
    let run = |card| ["run", "--carrier", "via", "--nic", "vmmc", "--card", card, "--", "true"];
    failed(&run("20"), 125, "give it more");
    failed(&run("0"), 2, "1 to 1048576");
    failed(&["run", "--card", "200", "--", "true"], 125, "--nic vmmc");
    // What a program around this one was told is not an error here.
    let mut inner = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    let inner = inner.args(["run", "--", "true"]).env("SIDESTEP_CARD", "200").output().unwrap();
    assert!(inner.status.success(), "{inner:?}");
    let mut start = card_command("cards-bad", None).unwrap();
    start.args(["--entries", "100"]);
    let error = Process::attach(Attach { name: "cards-bad", memory: PAGE, start: Some(start) }).unwrap_err();
    assert!(matches!(error, Error::CardFailed { .. }) && error.to_string().contains("powers of two"), "{error}");
}
