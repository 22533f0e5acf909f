//! SIGKILL of either side at random moments, while everything the fabric can do is going on.
//!
//! The test process survives; its child is killed, in turns the side that connects and the side that listens. The
//! survivor must learn of it soon, every call that waits must return, a new process must be able to take the dead
//! one's place at once, and in the end nothing may be left: no descriptor, no mapping, no name, no memory.

#[path = "kill/traffic.rs"]
mod traffic;

use std::{
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use sidestep_fabric::{CloseReason, Endpoint, Error, Node};
use sidestep_sys::clock;
use sidestep_testkit::process::{Census, Child, PATIENCE_NS, Role, enter, full, resident_kb, seed};
use sidestep_testkit::seeded::Seeded;

use traffic::{ACTIVITIES, LAST_WORDS, Traffic};

/// Rounds before memory is measured: caches fill, threads are made.
const WARM_UP: usize = 8;
/// The survivor knows of a death this long after the kernel has told of it, in the median: so it is told and does not find
/// out by looking now and then. On a busy machine the kernel's word comes late, and so may ours, by the same measure.
const LEARNS_NS: u64 = 100_000_000;
/// The bound for all.
const HANGS_NS: u64 = PATIENCE_NS;

#[test]
fn role() {
    enter(&[("connector", connector), ("listener", listener)]);
}

#[test]
fn kill_either_side() {
    let rounds = if full() { 1000 } else { 60 };
    let seed = seed();
    println!("seed {seed} ({rounds} rounds)");
    let name = format!("kill-{}", std::process::id());
    let (here, there) = (format!("shm:{name}-here"), format!("shm:{name}-there"));
    let at_first = Census::take(&name);

    let node = Node::new().unwrap();
    let traffic = Traffic::new(&node, seed);
    let accepting = traffic.accept(node.listen(&here).unwrap());
    let alone = Census::take(&name);
    let mut random = Seeded::new(seed);
    let (mut learned, mut reaped) = (Vec::new(), Vec::new());
    let mut warm_memory = 0;
    for round in 0..WARM_UP + rounds {
        if round == WARM_UP {
            at_rest(&name, alone);
            warm_memory = resident_kb();
            learned.clear();
            reaped.clear();
        }
        let activities = (random.below((1 << ACTIVITIES) - 1) + 1).to_string();
        let early = random.chance(250);
        let delay = Duration::from_micros(random.below(if early { 5_000 } else { 20_000 }));
        let case = format!("seed {seed}, round {round}, activities {activities}, early {early}");
        if random.chance(500) {
            let mut child = Child::start("connector", &[&here, &activities]);
            child.control.expect("here");
            let monitor = if early { None } else { traffic.monitor() };
            assert!(early || monitor.is_some(), "{case}: no connection");
            thread::sleep(delay);
            learned.extend(kill(&mut child, &traffic, monitor.as_deref(), &case, &mut reaped));
        } else {
            let mut child = Child::start("listener", &[&there]);
            child.control.expect("here");
            let monitor = connect(&node, &there, &case);
            if !early {
                assert_eq!(monitor.wait_message(soon()).unwrap(), b"ready", "{case}");
            }
            traffic.begin(&there, activities.parse().unwrap());
            thread::sleep(delay);
            let monitor = (!early).then_some(monitor);
            learned.extend(kill(&mut child, &traffic, monitor.as_ref(), &case, &mut reaped));
        }
    }

    let (census, memory) = (at_rest(&name, alone), resident_kb());
    report(&mut learned, &mut reaped);
    println!("before the first: {alone}; in the end: {census}; {warm_memory} kB, and {memory} kB in the end");
    assert_eq!(census, alone, "something was left behind (seed {seed})");
    let growth = memory.saturating_sub(warm_memory);
    assert!(growth < 16 * 1024, "memory grew by {growth} kB in {rounds} rounds (seed {seed})");
    traffic.stop.store(true, Ordering::Release);
    accepting.join().unwrap();
    drop((traffic, node));
    assert_eq!(at_rest(&name, at_first), at_first, "something was left behind by the node (seed {seed})");
}

/// The census once it is as it was before, or after a while what it is instead: a thread may be giving back what the last
/// process used, or be letting in one that was killed before it was let in.
fn at_rest(name: &str, before: Census) -> Census {
    let deadline = clock::now() + PATIENCE_NS;
    loop {
        let census = Census::take(name);
        if census == before || clock::now() > deadline {
            return census;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the child, and returns how long each part of the survivor took to learn of it. Also keeps how long it took until
/// the kernel had ended the process.
fn kill(
    child: &mut Child,
    traffic: &Arc<Traffic>,
    monitor: Option<&Endpoint>,
    case: &str,
    reaped: &mut Vec<u64>,
) -> Vec<u64> {
    let killed = clock::now();
    child.kill();
    child.wait();
    reaped.push(clock::now() - killed);
    let mut learned = Vec::new();
    if let Some(monitor) = monitor {
        let (error, message) = monitor.wait_closed(Some(killed + HANGS_NS)).expect(case);
        learned.push(clock::now() - killed);
        assert_eq!((error, message.as_slice()), (Error::Closed(CloseReason::Died), LAST_WORDS), "{case}");
    }
    let endings = traffic.wait_all(killed + HANGS_NS).unwrap_or_else(|alive| panic!("{case}: {alive:?} hang"));
    for ending in endings {
        let expected = ending.error == Error::Closed(CloseReason::Died);
        // A connection may not have been there yet, or the name no longer.
        let setting_up = ending.what == "connect"
            && matches!(ending.error, Error::NobodyListens(_) | Error::Memory(sidestep_shm::Error::NobodyListens(_)));
        assert!(expected || setting_up, "{case}: {} ended with {:?}", ending.what, ending.error);
        if ending.at > killed {
            learned.push(ending.at - killed);
        }
    }
    learned
}

fn report(learned: &mut [u64], reaped: &mut [u64]) {
    learned.sort_unstable();
    reaped.sort_unstable();
    let at = |share: usize| learned[(learned.len() - 1) * share / 1000] as f64 / 1e6;
    println!(
        "{} waits ended after a death, in ms: median {:.2}, 90% {:.2}, 99% {:.2}, max {:.2}",
        learned.len(),
        at(500),
        at(900),
        at(990),
        at(1000)
    );
    let kernel_ns = reaped[reaped.len() / 2];
    assert!(at(500) * 1e6 < (LEARNS_NS + 10 * kernel_ns) as f64, "the kernel took {kernel_ns} ns in the median");
}

/// Connects the monitor. The name may still lead to the former process if that was killed early, once.
fn connect(node: &Node, name: &str, case: &str) -> Endpoint {
    match node.connect(name, b"monitor", soon()) {
        Err(Error::Closed(CloseReason::Died)) => node.connect(name, b"monitor", soon()).expect(case),
        outcome => outcome.expect(case),
    }
}

fn connector(role: Role) {
    let node = Node::new().unwrap();
    let traffic = Traffic::new(&node, 1);
    role.control.say("here");
    let monitor = node.connect(&role.arguments[0], b"monitor", soon()).unwrap();
    monitor.set_on_close(LAST_WORDS).unwrap();
    monitor.post(b"ready").unwrap();
    traffic.begin(&role.arguments[0], role.number(1));
    role.control.hear();
}

fn listener(role: Role) {
    let node = Node::new().unwrap();
    let traffic = Traffic::new(&node, 2);
    let _accepting = traffic.accept(node.listen(&role.arguments[0]).unwrap());
    role.control.say("here");
    while !role.control.wait(1_000_000_000) {}
}

fn soon() -> Option<u64> {
    Some(clock::now() + HANGS_NS)
}
