//! A peer that writes random values into every shared word it can reach, babbles on its lifeline, or floods: it can
//! end its own connection and do nothing else.
//!
//! Three processes: the *victim* serves everyone; the *hostile* one attacks; this one is an honest client of the victim
//! all the time, and measures how long its echoes take.

#[path = "hostile/attacks.rs"]
mod attacks;
#[path = "hostile/raw.rs"]
mod raw;
#[path = "hostile/victim.rs"]
mod victim;

use std::{
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use rustix::{
    event::{EventfdFlags, eventfd},
    fs::{OFlags, fcntl_setfl},
    io::write,
};
use sidestep_fabric::{Channel, ChannelOptions, Node, queue::Kind};
use sidestep_shm::pair_bell::PairBell;
use sidestep_sys::clock;
use sidestep_testkit::process::{Child, PATIENCE_NS, Role, enter, full, seed};
use sidestep_testkit::seeded::Seeded;

use attacks::{babble, flood, scribble_beside_traffic, scribble_by_hand};
use raw::Raw;

#[test]
fn role() {
    enter(&[("victim", victim::play), ("hostile", hostile), ("ringer", ringer), ("slipper", slipper)]);
}

#[test]
fn hostile_scribbles_beside_traffic() {
    attack("scribble_beside_traffic");
}

#[test]
fn hostile_scribbles_by_hand() {
    attack("scribble_by_hand");
}

#[test]
fn hostile_babbles() {
    attack("babble");
}

#[test]
fn hostile_floods() {
    attack("flood");
}

/// What comes beside a frame that ends the session is closed with it.
#[test]
fn hostile_descriptors_are_not_kept() {
    let (mut victim, name) = victim();
    let before = ask(&mut victim);
    Child::start("slipper", &[&name]).wait_success();
    let after = settled(|| ask(&mut victim), before.clone());
    assert_eq!(after[..3], before[..3], "descriptors, mappings, threads");
}

/// The victim's write to a doorbell that its peer has filled and made blocking must not hold the victim.
#[test]
fn hostile_doorbell_holds_nobody() {
    let (mut victim, name) = victim();
    let mut hostile = Child::start("ringer", &[&name]);
    hostile.wait_success();
    let threads = || ask(&mut victim)[2];
    assert_eq!(settled(threads, 0), 0, "a thread of the victim is held by a dead peer's doorbell");
}

fn attack(how: &str) {
    let seed = seed();
    println!("seed {seed}");
    let (mut victim, name) = victim();
    let before = ask(&mut victim);
    let stop = Arc::new(AtomicBool::new(false));
    let echoed = Arc::new(AtomicU64::new(0));
    let honest = honest(&name, &stop, &echoed);
    let (rounds, length_ms) = if full() { (60, "1000") } else { (4, "400") };
    for round in 0..rounds {
        let mut hostile = Child::start("hostile", &[how, &name, &(seed + round).to_string(), length_ms]);
        hostile.wait_success();
        assert!(victim.is_alive(), "the victim did not survive {how}, seed {seed}, round {round}");
        // It goes on beside the attack, and after it.
        let before = echoed.load(Ordering::Acquire);
        let goes_on = settled(|| u64::from(echoed.load(Ordering::Acquire) > before || honest.is_finished()), 1);
        assert_eq!(goes_on, 1, "honest echoes are held up for ever, seed {seed}, round {round}");
        assert!(!honest.is_finished(), "the honest client failed in {how}, seed {seed}, round {round}");
    }
    stop.store(true, Ordering::Release);
    let mut echoes = honest.join().expect("an honest client that goes on");
    echoes.sort_unstable();
    let at = |share: usize| echoes[(echoes.len() - 1) * share / 1000] as f64 / 1e3;
    let (median, most, max) = (at(500), at(990), at(1000));
    println!("{how}: {} honest echoes, in us: median {median:.1}, 99% {most:.1}, max {max:.1}", echoes.len());
    let after = settled(|| ask(&mut victim), before.clone());
    println!("the victim's descriptors, mappings, threads, kB: {before:?} before, {after:?} after");
    assert_eq!(after[..3], before[..3], "something of the hostile peers is left, seed {seed}");
    victim.control.say("end");
    victim.wait_success();
}

fn victim() -> (Child, String) {
    let name = format!("hostile-{}-{}", std::process::id(), clock::now());
    let victim = Child::start("victim", &[&name]);
    victim.control.expect("here");
    (victim, name)
}

fn ask(victim: &mut Child) -> Vec<u64> {
    victim.control.say("census");
    victim.control.hear_numbers()
}

/// Asks until the answer is as wanted, or for so long that it never will be.
fn settled<T: PartialEq<T> + Comparable>(mut ask: impl FnMut() -> T, wanted: T) -> T {
    let deadline = clock::now() + PATIENCE_NS;
    loop {
        let answer = ask();
        if answer.same(&wanted) || clock::now() > deadline {
            return answer;
        }
        thread::yield_now();
    }
}

/// What counts when two answers are compared.
trait Comparable {
    fn same(&self, other: &Self) -> bool;
}

impl Comparable for u64 {
    fn same(&self, other: &u64) -> bool {
        self == other
    }
}

impl Comparable for Vec<u64> {
    /// All but the memory.
    fn same(&self, other: &Vec<u64>) -> bool {
        self[..3] == other[..3]
    }
}

/// A client that echoes until it is told to stop; returns how long each took.
fn honest(name: &str, stop: &Arc<AtomicBool>, echoed: &Arc<AtomicU64>) -> JoinHandle<Vec<u64>> {
    let (name, stop, echoed) = (format!("shm:{name}"), stop.clone(), echoed.clone());
    let node = Node::new().unwrap();
    let options = ChannelOptions { capacity: 8192, kind: Kind::Slots(128) };
    let deadline = Some(clock::now() + PATIENCE_NS);
    let channel = Channel::connect(&node, &name, options, b"", deadline).unwrap();
    thread::spawn(move || {
        // The whole channel, not just the fields that are used: the endpoint ends the connection when it is dropped.
        let mut channel = channel;
        let mut random = Seeded::new(1);
        let mut took = Vec::new();
        while !stop.load(Ordering::Acquire) {
            let message: Vec<u8> = (0..64).map(|_| random.next_u64() as u8).collect();
            let mut back = [0; 120];
            let start = clock::now();
            let deadline = Some(start + PATIENCE_NS);
            channel.sender.send_message(&message, deadline).expect("room");
            let len = channel.receiver.receive_message(&mut back, deadline).expect("an echo");
            assert_eq!(&back[..len], message, "an honest message was changed");
            took.push(clock::now() - start);
            echoed.fetch_add(1, Ordering::Release);
        }
        took
    })
}

fn hostile(role: Role) {
    let [how, name, _, _] = &role.arguments[..] else { panic!("four arguments") };
    let (seed, until) = (role.number(2), clock::now() + role.number(3) * 1_000_000);
    match how.as_str() {
        "scribble_beside_traffic" => scribble_beside_traffic(name, seed, until),
        "scribble_by_hand" => scribble_by_hand(name, seed, until),
        "babble" => babble(name, seed, until),
        _ => flood(name, seed, until),
    }
}

/// Sends a frame of no kind with three descriptors, and sees that the line is cut.
fn slipper(role: Role) {
    let (own, bell) = (PairBell::new().unwrap(), eventfd(0, EventfdFlags::CLOEXEC).unwrap());
    let raw = Raw::connect(&role.arguments[0], own.for_peer()).unwrap();
    raw.line.send(&[0xff; 10], &[bell.as_fd(), bell.as_fd(), bell.as_fd()]).unwrap();
    while raw::receive(&raw.line, &mut Vec::new(), 10_000).is_some() {}
}

/// Gives the victim a doorbell that blocks, arms every word, sleeps, and lets the victim answer once.
fn ringer(role: Role) {
    let name = &role.arguments[0];
    let bell = PairBell::new().unwrap();
    let shared = bell.for_peer();
    let raw = Raw::connect(name, shared).unwrap();
    // Full, and blocking for everyone who shares the description.
    while write(shared, &[0; 4096]).is_ok() {}
    fcntl_setfl(shared, OFlags::empty()).unwrap();
    let queue = raw.channel(name, true).unwrap();
    // "I sleep": in the own pair memory, where the victim looks before it rings.
    raw.ours.word64(0x80).unwrap().store(1, Ordering::SeqCst);
    let spec = queue.victim_spec;
    let ring = queue.victim.span(spec.offset as usize + 0x100, spec.capacity as usize).unwrap();
    ring.copy_in(0, &[1; 64]).unwrap();
    queue.victim.word64(spec.offset as usize).unwrap().store(64, Ordering::SeqCst);
    raw.their_bell.ring();
    // The echo: the victim's tail in the own region. By then it has rung, or is about to.
    let tail = queue.own.word64(queue.own_spec.offset as usize).unwrap();
    while tail.load(Ordering::Acquire) == 0 {
        raw.theirs.word64(0x40 + 0x18).unwrap().store(1, Ordering::SeqCst);
        raw.their_bell.ring();
        thread::yield_now();
    }
    thread::sleep(std::time::Duration::from_millis(50));
}
