//! Real processes on real cards: the card is started on demand and ends with its last user; processes and cards are killed.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use sidestep_sys::clock;
use sidestep_testkit::process::{Child, Learned, PATIENCE_NS, Role, enter, full, run_delay_ns, seed_or};
use sidestep_testkit::seeded::Seeded;
use sidestep_vmmc::process::{Attach, Buffer, Handle, Process, Remote, lockable};
use sidestep_vmmc::{Address, Error, Export, Fault, PAGE, Rights};

mod card;

const MEMORY: usize = 64 * PAGE;

#[test]
fn role() {
    card::enter();
    enter(&[("worker", worker)]);
}

fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn attach(name: &str) -> Process {
    let start = card::command(name, None);
    Process::attach(Attach { name, memory: MEMORY, start: Some(start) }).expect("a card")
}

/// The same, with a card that others find at an address.
fn attach_at(name: &str, place: &str) -> Process {
    let start = card::command(name, Some(place));
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
    if has_whole_lines() {
        assert_eq!(standing.pinned, 2 * PAGES, "all pages of both: a line each");
        drop(one);
        until("the pages of a process are given back", || locked(&mut two, card) == (PAGES, PAGES * 4));
    } else {
        drop(one);
    }
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

/// Packets go from card to card over TCP, as they do between hosts.
#[test]
fn two_cards_talk_to_each_other_over_iwarp() {
    let (first, second) = (name(), name());
    let (mut one, mut two) = (attach_at(&first, &free_place()), attach_at(&second, &free_place()));
    exchange(&mut one, &mut two);
    exchange(&mut two, &mut one);
    // Another process of the same card is found without a wire.
    exchange(&mut attach(&first), &mut one);
    // A card without such a link says what would help.
    let handle = export(&mut one, 0, PAGE as u64).handle().clone();
    let said = attach(&name()).import(&handle).unwrap_err().to_string();
    assert!(said.contains("iwarp:127.") && said.contains("with an address of the same kind"), "{said}");
}

/// An address of this process alone, at a port that the kernel gives to nobody by itself.
fn free_place() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(7000);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    format!("iwarp:127.{}.{middle}.{low}:{}", 64 + high % 64, NEXT.fetch_add(1, Ordering::Relaxed))
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

/// SIGKILL of processes and of their card at any moment: the others learn it at once, and no page stays locked.
#[test]
fn kills_leave_nothing_behind() {
    if !has_whole_lines() {
        eprintln!("left out: it counts lines of 64 pages, which want `ulimit -l 2048`");
        return;
    }
    let (rounds, seed) = (if full() { 200 } else { 8 }, seed_or(5));
    let mut random = Seeded::new(seed);
    let name = name();
    let (mut processes_missed, mut cards_missed) = (Learned::default(), Learned::default());
    let (mut own, mut handle) = user_with_locked_memory(&name);
    for round in 0..rounds {
        let case = format!("seed {seed}, round {round}");
        let card = own.card_process().expect("this process has started it");
        let before = locked(&mut own, card);
        assert_eq!(before, (PAGES, PAGES * 4), "{case}: one line of pages, that of this process");
        let mut child = Child::start("worker", &[&name, &hex(&handle)]);
        let theirs = child.control.hear().and_then(|word| from_hex(&word)).expect("a handle");
        let theirs = own.import(&theirs).expect(&case);
        assert_eq!(locked(&mut own, card), (2 * PAGES, 2 * PAGES * 4), "{case}: the line of the other as well");
        std::thread::sleep(Duration::from_micros(random.below(5_000)));
        if random.chance(500) {
            let waited = run_delay_ns(card) + run_delay_ns(std::process::id());
            child.kill();
            child.wait();
            let dead = clock::now();
            let error = sends_until_error(&mut own, &theirs);
            let now = clock::now();
            assert!(matches!(error, Error::Refused(Fault::UnknownBuffer)), "{case}: {error}");
            let waited = (run_delay_ns(card) + run_delay_ns(std::process::id())).saturating_sub(waited);
            processes_missed.note(dead, now, waited);
            // The card goes on, and has given back every page of the process and none of this one.
            until(&format!("{case}: pages given back"), || locked(&mut own, card) == before);
        } else {
            let remote = own.import(&handle).expect(&case);
            let end = pidfd_open(pid(card), PidfdFlags::empty()).expect("a descriptor");
            let waited = [child.id(), std::process::id()].map(run_delay_ns);
            kill_process(pid(card), Signal::KILL).unwrap();
            poll(&mut [PollFd::new(&end, PollFlags::IN)], None).expect("the end of the card");
            let dead = clock::now();
            let error = sends_until_error(&mut own, &remote);
            assert!(matches!(error, Error::CardGone), "{case}: {error}");
            let (now, delay) = (clock::now(), run_delay_ns(std::process::id()));
            cards_missed.note(dead, now, delay.saturating_sub(waited[1]));
            // The other was in the middle of something.
            let [at, delay] = child.control.hear_numbers()[..] else { panic!("{case}: two numbers") };
            cards_missed.note(dead, at, delay.saturating_sub(waited[0]));
            child.wait_success();
            assert!(own.standing().is_err(), "{case}");
            (own, handle) = user_with_locked_memory(&name);
        }
    }
    processes_missed.judge("a process that is killed");
    cards_missed.judge("a card that is killed");
    let card = own.card_process().expect("this process has started it");
    drop(own);
    until("the end of the card", || !is_alive(card));
}

/// A process that has started the card, and whose pages are all locked: they are one line.
fn user_with_locked_memory(name: &str) -> (Process, Handle) {
    let mut own = attach(name);
    let handle = export(&mut own, 0, 16 * PAGE as u64).handle().clone();
    let remote = own.import(&handle).expect("an import");
    own.send(Address(20 * PAGE as u64), 9000, &remote, 0, false).expect("a send");
    (own, handle)
}

/// Whether a card may lock enough for lines of the usual length: for eight of them, of which its cache has half.
fn has_whole_lines() -> bool {
    lockable().is_none_or(|limit| limit >= 8 * MEMORY as u64)
}

/// Pages that the card says it has locked, and KiB that the kernel says so of.
fn locked(own: &mut Process, card: u32) -> (u64, u64) {
    (own.standing().expect("a card").pinned, locked_kb(card))
}

fn sends_until_error(own: &mut Process, to: &Remote) -> Error {
    loop {
        if let Err(error) = own.send(Address(0), 5000, to, 0, false) {
            return error;
        }
    }
}

/// Pages of the memory of a process: those of one line of the card's cache.
const PAGES: u64 = (MEMORY / PAGE) as u64;

fn pid(process: u32) -> Pid {
    Pid::from_raw(process as i32).expect("a process number")
}

fn hex(handle: &Handle) -> String {
    handle.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Handle> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    Handle::from_bytes(&text.as_bytes().chunks(2).map(byte).collect::<Option<Vec<_>>>()?)
}

/// Sends and fetches until it is killed, or its card is; then says when it learned that.
fn worker(role: Role) {
    let mut process = Process::attach(Attach { name: &role.arguments[0], memory: MEMORY, start: None }).unwrap();
    let remote = process.import(&from_hex(&role.arguments[1]).unwrap()).unwrap();
    let exchange = |process: &mut Process| {
        process.send(Address(20 * PAGE as u64 + 3), 9000, &remote, 77, false)?;
        process.fetch(&remote, 0, 9000, Address(40 * PAGE as u64))
    };
    exchange(&mut process).unwrap();
    role.control.say(&hex(export(&mut process, 0, 16 * PAGE as u64).handle()));
    let error = loop {
        if let Err(error) = exchange(&mut process) {
            break error;
        }
    };
    let now = clock::now();
    assert!(matches!(error, Error::CardGone), "{error}");
    role.control.say(&format!("{now} {}", run_delay_ns(std::process::id())));
}
