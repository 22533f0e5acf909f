//! SIGKILL of either side at random moments, while everything that VIs can do is going on.
//!
//! The test process survives; its child is killed, in turns the side that connects and the side that waits. Every VI of the
//! survivor must get to the error state, every descriptor must come back, in order; and in the end nothing may be left: no
//! descriptor, no mapping, no name, no memory.

#[path = "kill/traffic.rs"]
mod traffic;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use sidestep_testkit::process::{Census, Child, Role, enter, full, open_files, resident_kb, seed};
use sidestep_testkit::seeded::Seeded;
use sidestep_vi::{NetAddress, Nic, ViAttributes, clock};

use traffic::{ACTIVITIES, Activity, Station};

/// Rounds before memory is measured: caches fill, threads are made.
const WARM_UP: usize = 4;
/// No wait and no flush takes longer after a death; the machine may be busy.
const HANGS_NS: u64 = 20_000_000_000;

#[test]
fn role() {
    enter(&[("connector", |role| play(role, true)), ("acceptor", |role| play(role, false))]);
}

#[test]
fn kill_either_side() {
    kill_rounds("nic0", if full() { 500 } else { 30 });
}

#[test]
fn kill_either_side_over_iwarp() {
    kill_rounds("iwarp", if full() { 200 } else { 15 });
}

fn kill_rounds(device: &str, rounds: usize) {
    let seed = seed();
    println!("seed {seed} ({rounds} rounds)");
    let name = format!("via-kill-{}", std::process::id());
    let at_first = Census::take(&name);
    let nic = Nic::open(device).unwrap();
    let (here, there) = (point(device, &name, "here"), point(device, &name, "there"));
    Activity::all(u64::MAX).iter().for_each(|activity| nic.listen(&activity.address(&here)).unwrap());
    let mut random = Seeded::new(seed);
    let (mut alone, mut warm_memory) = (at_first, 0);
    for round in 0..WARM_UP + rounds {
        if round == WARM_UP {
            alone = at_rest(&name, Some((&nic, &here)), None);
            warm_memory = resident_kb();
        }
        let activities = random.below((1 << ACTIVITIES) - 1) + 1;
        let (connects, delay) = (random.chance(500), Duration::from_micros(random.below(20_000)));
        let case = format!("seed {seed}, round {round}, activities {activities:b}, the child connects {connects}");
        let (role, point) = if connects { ("connector", &here) } else { ("acceptor", &there) };
        let mut child = Child::start(role, &[device, point, &activities.to_string(), &round.to_string()]);
        child.control.expect("here");
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for activity in Activity::all(activities) {
                let station = Station::new(&nic, activity, random.next_u64());
                let (stop, case) = (&stop, &case);
                scope.spawn(move || {
                    if station.join(point, !connects, stop) {
                        station.work(stop, HANGS_NS);
                        station.check_drained(clock::now() + HANGS_NS, case);
                    }
                });
            }
            thread::sleep(delay);
            child.kill();
            child.wait();
            stop.store(true, Ordering::Release);
        });
    }
    let (census, memory) = (at_rest(&name, Some((&nic, &here)), Some(alone)), resident_kb());
    println!("before: {alone}; in the end: {census}; {warm_memory} kB, and {memory} kB in the end");
    assert_eq!(census, alone, "something was left behind (seed {seed}); open are {:#?}", open_files());
    let growth = memory.saturating_sub(warm_memory);
    assert!(growth < 16 * 1024, "memory grew by {growth} kB in {rounds} rounds (seed {seed})");
    drop(nic);
    let census = at_rest(&name, None, Some(at_first));
    assert_eq!(census, at_first, "something was left behind by the NIC (seed {seed}); open are {:#?}", open_files());
}

/// Where the two meet: a name on shared memory, a socket of this process on iWARP.
fn point(device: &str, name: &str, side: &str) -> String {
    let [low, middle, high, _] = std::process::id().to_le_bytes();
    match device {
        "iwarp" => format!("127.{}.{middle}.{low}:{}", 64 | high & 63, 4700 + side.len()),
        _ => format!("{name}-{side}"),
    }
}

/// The census once it is as it was before, or after a while what it is instead. Nobody else calls, and the end of a process is
/// seen by who looks; a request of one that was killed before it was accepted stays until it is taken.
fn at_rest(name: &str, nic: Option<(&Nic, &str)>, before: Option<Census>) -> Census {
    let patience = if before.is_some() { 5_000_000_000 } else { 200_000_000 };
    let deadline = clock::now() + patience;
    loop {
        if let Some((nic, point)) = nic {
            for activity in Activity::all(u64::MAX) {
                while nic.poll_request(&activity.address(point)).unwrap().is_some() {}
            }
            nic.node().progress();
            ask_nobody(nic);
        }
        let census = Census::take(name);
        if Some(census) == before || clock::now() > deadline {
            return census;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whoever connects next has the NIC forget peers that are gone.
fn ask_nobody(nic: &Nic) {
    let ptag = nic.create_ptag().unwrap();
    let vi = nic.create_vi(&ViAttributes::new(ptag), None, None).unwrap();
    let nobody = NetAddress::new(&[127, 0, 0, 1], b"127.0.0.1:1/nobody");
    vi.connect(&NetAddress::default(), &nobody, Some(0)).unwrap_err();
    drop(vi);
    nic.destroy_ptag(ptag).unwrap();
}

/// A child does the same as its parent until it is killed.
fn play(role: Role, connects: bool) {
    let nic = Nic::open(&role.arguments[0]).unwrap();
    let (point, never) = (&role.arguments[1], AtomicBool::new(false));
    role.control.say("here");
    thread::scope(|scope| {
        for activity in Activity::all(role.number(2)) {
            let station = Station::new(&nic, activity, role.number(3));
            let never = &never;
            scope.spawn(move || {
                if station.join(point, connects, never) {
                    station.work(never, HANGS_NS);
                }
            });
        }
        role.control.hear();
    });
}
