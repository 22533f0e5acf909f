//! Real processes on real cards: the card is started on demand and ends with its last user; processes and cards are killed.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sidestep_sys::clock;
use sidestep_testkit::process::{Child, PATIENCE_NS, Role, enter, full, seed_or};
use sidestep_testkit::seeded::Seeded;
use sidestep_vmmc::process::{Attach, Buffer, Handle, Process};
use sidestep_vmmc::{Address, Error, Export, Fault, PAGE, Rights};

const MEMORY: usize = 64 * PAGE;

#[test]
fn role() {
    enter(&[("worker", worker)]);
}

fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn attach(name: &str) -> Process {
    let mut start = Command::new(env!("CARGO_BIN_EXE_sidestep-card"));
    start.arg(name);
    Process::attach(Attach { name, memory: MEMORY, start: Some(start) }).expect("a card")
}

fn export(process: &mut Process, at: u64, len: u64) -> Buffer {
    process.export(Export { address: Address(at), len, rights: Rights::ALL, notify: true }).expect("an export")
}

fn pattern(len: usize, salt: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(salt)).collect()
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = clock::now() + PATIENCE_NS;
    while !holds() {
        assert!(clock::now() < deadline, "{what} never happens");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_alive(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn locked_kb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Everything that one process can do to another, on one card or two.
fn exchange(one: &mut Process, two: &mut Process) {
    let buffer = export(two, 8 * PAGE as u64, 16 * PAGE as u64);
    let handle = Handle::from_bytes(&buffer.handle().to_bytes()).expect("a handle");
    let remote = one.import(&handle).expect("an import");
    for (len, at) in [(0, 0), (4, 8), (32, 40), (33, 100), (4096, 4090), (50_000, 1)] {
        let bytes = pattern(len, len as u8);
        one.write(Address(0), &bytes).unwrap();
        one.send(Address(0), len as u64, &remote, at, true).expect("a send");
        let notice = two.wait_notice(None).expect("a notification");
        assert_eq!((notice.at, notice.len), (at, len as u64));
        let mut there = vec![0; len];
        two.read(Address(8 * PAGE as u64 + at), &mut there).unwrap();
        assert!(there == bytes, "{len} bytes at {at} are others");
        one.fetch(&remote, at, len as u64, Address(30 * PAGE as u64 + 7)).expect("a fetch");
        let mut back = vec![0; len];
        one.read(Address(30 * PAGE as u64 + 7), &mut back).unwrap();
        assert!(back == bytes, "{len} bytes come back as others");
    }
    // What may not be is refused, and touches nothing.
    let mut before = vec![0; MEMORY];
    two.read(Address(0), &mut before).unwrap();
    let refused = |outcome: Result<(), Error>, fault: Fault| match outcome {
        Err(Error::Refused(found)) => assert_eq!(found, fault),
        outcome => panic!("{outcome:?}, and not {fault:?}"),
    };
    refused(one.send(Address(0), 10, &remote, 16 * PAGE as u64 - 9, true), Fault::OutOfRange);
    let mut forged = handle.to_bytes();
    forged[8] ^= 1;
    let wrong = one.import(&Handle::from_bytes(&forged).unwrap()).unwrap();
    refused(one.send(Address(0), 10, &wrong, 0, true), Fault::WrongKey);
    refused(one.fetch(&wrong, 0, 10, Address(0)), Fault::WrongKey);
    refused(one.send(Address(MEMORY as u64 - 10), 40, &remote, 0, false), Fault::BadAddress);
    two.deregister(buffer).expect("a buffer that is there");
    refused(one.send(Address(0), 10, &remote, 0, true), Fault::UnknownBuffer);
    let again = export(two, 8 * PAGE as u64, PAGE as u64);
    refused(one.send(Address(0), 10, &remote, 0, true), Fault::UnknownBuffer);
    let mut after = vec![0; MEMORY];
    two.read(Address(0), &mut after).unwrap();
    assert!(before == after, "what was refused has changed something");
    two.deregister(again).expect("a buffer that is there");
}

#[test]
fn a_card_is_started_on_demand_and_ends_with_its_last_process() {
    let name = name();
    let mut one = attach(&name);
    let mut two = attach(&name);
    let card = one.card_process().expect("the first has started it");
    assert_eq!(two.card_process(), None, "it was there for the second");
    exchange(&mut one, &mut two);
    let standing = one.standing().unwrap();
    assert!(standing.pinned > 0 && standing.misses > 0, "{standing:?}");
    assert_eq!(locked_kb(card), standing.pinned * 4);
    drop(one);
    until("the pages of a process are given back", || two.standing().unwrap().pinned < standing.pinned);
    drop(two);
    until("the end of the card", || !is_alive(card));
}

#[test]
fn two_cards_talk_to_each_other() {
    let (first, second) = (name(), name());
    let (mut one, mut two) = (attach(&first), attach(&second));
    exchange(&mut one, &mut two);
    exchange(&mut two, &mut one);
}

#[test]
fn what_cannot_be_is_said_with_the_remedy() {
    let nobody = Process::attach(Attach { name: "test-nobody", memory: MEMORY, start: None });
    assert!(nobody.unwrap_err().to_string().contains("nobody"), "no card, and none to start");
    let odd = Process::attach(Attach { name: "test-odd", memory: 5, start: None });
    assert!(odd.unwrap_err().to_string().contains("whole pages"));
    let start = Some(Command::new("/nonexistent/card"));
    let missing = Process::attach(Attach { name: "test-missing", memory: MEMORY, start });
    assert!(matches!(missing, Err(Error::Start { .. })));
    let mut process = attach(&name());
    let export = Export { address: Address(1), len: MEMORY as u64, rights: Rights::ALL, notify: false };
    let far = process.export(export).unwrap_err().to_string();
    assert!(far.contains("outside"), "{far}");
}

/// SIGKILL of processes and of their card at any moment: the others get errors or go on, and no page stays locked.
#[test]
fn kills_leave_nothing_behind() {
    let (rounds, seed) = (if full() { 200 } else { 8 }, seed_or(5));
    let mut random = Seeded::new(seed);
    let name = name();
    let mut learned = Vec::new();
    let mut own = attach(&name);
    let mut buffer = export(&mut own, 0, 16 * PAGE as u64);
    for round in 0..rounds {
        let case = format!("seed {seed}, round {round}");
        let hex: String = buffer.handle().to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let before = own.standing().expect(&case).pinned;
        let mut child = Child::start("worker", &[&name, &hex]);
        child.control.expect("busy");
        std::thread::sleep(Duration::from_micros(random.below(5_000)));
        if random.chance(500) {
            child.kill();
            child.wait();
            // The card goes on, and gives back what the process had locked; what was locked here for its sake stays.
            let most = before.max((MEMORY / PAGE) as u64);
            until(&format!("{case}: pages given back"), || own.standing().expect(&case).pinned <= most);
        } else {
            let card = own.card_process().expect("this process has started it");
            let remote = own.import(buffer.handle()).expect(&case);
            let killed = clock::now();
            kill_process(Pid::from_raw(card as i32).unwrap(), Signal::KILL).unwrap();
            // Whatever it does next ends with that error.
            let error = loop {
                if let Err(error) = own.send(Address(0), 5000, &remote, 0, false) {
                    break error;
                }
            };
            assert!(matches!(error, Error::CardGone), "{case}: {error}");
            learned.push(clock::now() - killed);
            child.control.expect("gone");
            child.wait_success();
            assert!(own.standing().is_err(), "{case}");
            own = attach(&name);
            buffer = export(&mut own, 0, 16 * PAGE as u64);
        }
    }
    learned.sort_unstable();
    if let Some(median) = learned.get(learned.len() / 2) {
        println!("{} deaths of the card noticed, in the median after {:.2} ms", learned.len(), *median as f64 / 1e6);
    }
    let card = own.card_process().expect("this process has started it");
    drop(own);
    until("the end of the card", || !is_alive(card));
}

/// Sends and fetches until it is killed, or its card is.
fn worker(role: Role) {
    let bytes = role.arguments[1].as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let handle = Handle::from_bytes(&bytes.map(byte).collect::<Vec<_>>()).unwrap();
    let mut process = Process::attach(Attach { name: &role.arguments[0], memory: MEMORY, start: None }).unwrap();
    let remote = process.import(&handle).unwrap();
    role.control.say("busy");
    let error = loop {
        let sent = process.send(Address(20 * PAGE as u64 + 3), 9000, &remote, 77, false);
        if let Err(error) = sent.and_then(|()| process.fetch(&remote, 0, 9000, Address(40 * PAGE as u64))) {
            break error;
        }
    };
    assert!(matches!(error, Error::CardGone), "{error}");
    role.control.say("gone");
}
