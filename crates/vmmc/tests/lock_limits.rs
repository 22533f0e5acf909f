//! Cards of processes that may lock little memory, as those of ordinary users: they work within the limit, or say what would help.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities};
use sidestep_testkit::process::{Child, Role, enter};
use sidestep_vmmc::process::{Attach, Process};
use sidestep_vmmc::{Address, Export, PAGE, Rights};

mod card;

#[test]
fn role() {
    card::enter();
    enter(&[("exchange", exchange), ("refused", refused)]);
}

/// What this process may lock from now on, and what it starts. A superuser gives up the right to lock more.
fn limit(bytes: u64) {
    // Nobody can raise what is lower already.
    let bytes = getrlimit(Resource::Memlock).maximum.map_or(bytes, |most| most.min(bytes));
    setrlimit(Resource::Memlock, Rlimit { current: Some(bytes), maximum: Some(bytes) }).expect("a lower limit");
    let mut sets = capabilities(None).expect("capabilities");
    if sets.effective.contains(CapabilitySet::IPC_LOCK) {
        remove_capability_from_bounding_set(CapabilitySet::IPC_LOCK).expect("the right to give rights up");
        for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
            set.remove(CapabilitySet::IPC_LOCK);
        }
        set_capabilities(None, sets).expect("the right to give rights up");
    }
}

fn attach(name: &str, memory: usize) -> sidestep_vmmc::Result<Process> {
    Process::attach(Attach { name, memory, start: Some(card::command(name, None)) })
}

/// Sends and fetches through more memory than the card may lock, in every page twice.
fn exchange(role: Role) {
    let (bytes, memory) = (role.number(0), role.number(1) as usize);
    limit(bytes);
    let name = format!("limit-{}", std::process::id());
    let (mut one, mut two) = (attach(&name, memory).unwrap(), attach(&name, memory).unwrap());
    let export = Export { address: Address(0), len: memory as u64, rights: Rights::ALL, notify: false };
    let buffer = two.export(export).unwrap();
    let remote = one.import(buffer.handle()).unwrap();
    // Long messages want several pages at a time on both sides, and end within a page.
    let len = (memory / 32).min(16 * PAGE + 100);
    for round in 0..2_u8 {
        for at in (0..memory - len).step_by(len) {
            let sent: Vec<u8> = (0..len).map(|byte| (byte as u8) ^ round ^ (at / len) as u8).collect();
            one.write(Address(at as u64), &sent).unwrap();
            one.send(Address(at as u64), len as u64, &remote, at as u64, false).unwrap();
            let mut there = vec![0; len];
            two.read(Address(at as u64), &mut there).unwrap();
            assert!(there == sent, "{len} bytes at {at} are others");
            one.write(Address(at as u64), &vec![0; len]).unwrap();
            one.fetch(&remote, at as u64, len as u64, Address(at as u64)).unwrap();
            one.read(Address(at as u64), &mut there).unwrap();
            assert!(there == sent, "{len} bytes come back from {at} as others");
        }
    }
    let standing = one.standing().unwrap();
    assert!(standing.misses > 0 && standing.pinned > 0, "{standing:?}");
    assert!(standing.pinned * PAGE as u64 <= bytes, "more is locked than {bytes} bytes: {standing:?}");
}

/// A card that cannot lock anything does not start, and whoever wants it learns why at once.
fn refused(role: Role) {
    limit(role.number(0));
    let name = format!("limit-{}", std::process::id());
    let said = attach(&name, 4 * PAGE).unwrap_err().to_string();
    assert!(said.contains("no memory can be locked") && said.contains("ulimit -l"), "{said}");
}

#[test]
fn a_card_keeps_within_8_mib() {
    Child::start("exchange", &[&(8 << 20).to_string(), &(9 << 20).to_string()]).wait_success();
}

#[test]
fn a_card_keeps_within_64_kib() {
    Child::start("exchange", &[&(64 << 10).to_string(), &(256 << 10).to_string()]).wait_success();
}

#[test]
fn a_card_keeps_within_the_least() {
    Child::start("exchange", &[&(16 << 10).to_string(), &(128 << 10).to_string()]).wait_success();
}

#[test]
fn a_card_that_may_lock_nothing_says_what_would_help() {
    for limit in [0, 4096] {
        Child::start("refused", &[&limit.to_string()]).wait_success();
    }
}
