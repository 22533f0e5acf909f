//! A peer that writes random values into every shared word it can reach, or sends garbage entries: it can end its own
//! connections and do nothing else.
//!
//! Three processes: the *victim* serves everyone; the *hostile* one attacks; this one is an honest client of the victim all
//! the time.

#[path = "hostile/attacks.rs"]
mod attacks;
#[path = "hostile/victim.rs"]
mod victim;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use sidestep_testkit::process::{Child, PATIENCE_NS, Role, enter, full, seed};
use sidestep_vi::{Descriptor, MemAttributes, NetAddress, Nic, ViAttributes, clock};

const SIZE: usize = 64;

#[test]
fn role() {
    enter(&[("victim", victim::play), ("hostile", hostile)]);
}

#[test]
fn hostile_scribbles_beside_traffic() {
    attack("scribble");
}

#[test]
fn hostile_entries_end_their_own_connections() {
    attack("entries");
}

#[test]
fn hostile_greetings_are_refused() {
    attack("greetings");
}

fn hostile(role: Role) {
    let [how, point, _, _] = &role.arguments[..] else { panic!("four arguments") };
    let (seed, until) = (role.number(2), clock::now() + role.number(3) * 1_000_000);
    match how.as_str() {
        "scribble" => attacks::scribble_beside_traffic(point, seed, until),
        "entries" => attacks::entries(point, seed, until),
        _ => attacks::greetings(point, seed, until),
    }
}

fn attack(how: &str) {
    let seed = seed();
    println!("seed {seed}");
    let point = format!("a-hostile-neighbourhood-{}-{}", std::process::id(), clock::now() % 1_000_000_000);
    let mut victim = Child::start("victim", &[&point]);
    victim.control.expect("here");
    let stop = Arc::new(AtomicBool::new(false));
    let honest = honest(&point, &stop);
    let (rounds, length_ms) = if full() { (60, "1000") } else { (3, "300") };
    for round in 0..rounds {
        let mut hostile = Child::start("hostile", &[how, &point, &(seed + round).to_string(), length_ms]);
        hostile.wait_success();
        assert!(victim.is_alive(), "the victim did not survive {how}, seed {seed}, round {round}");
        assert!(!honest.is_finished(), "the honest client failed in {how}, seed {seed}, round {round}");
    }
    stop.store(true, Ordering::Release);
    let echoes = honest.join().expect("an honest client that goes on");
    println!("{how}: {echoes} honest echoes");
    assert!(echoes > 0);
    victim.control.say("end");
    victim.wait_success();
}

/// A client that echoes until it is told to stop; returns how often.
fn honest(point: &str, stop: &Arc<AtomicBool>) -> JoinHandle<u64> {
    let (there, stop) = (point_of(point), stop.clone());
    thread::spawn(move || {
        let soon = || Some(clock::now() + PATIENCE_NS);
        let nic = Nic::open("nic0").unwrap();
        let ptag = nic.create_ptag().unwrap();
        let vi = nic.create_vi(&ViAttributes::new(ptag), None, None).unwrap();
        let buffer = nic.allocate(2 * SIZE, &MemAttributes::new(ptag)).unwrap();
        vi.connect(&NetAddress::default(), &there, soon()).unwrap();
        let mut echoes = 0u64;
        while !stop.load(Ordering::Acquire) {
            let message = [echoes.to_le_bytes(); SIZE / 8].concat();
            buffer.write(0, &message).unwrap();
            vi.post_receive(&Descriptor::new(1, &[buffer.segment(SIZE, SIZE)])).unwrap();
            vi.post_send(&Descriptor::new(2, &[buffer.segment(0, SIZE)])).unwrap();
            assert!(!vi.wait_send(soon()).expect("a send").status.is_error());
            assert!(!vi.wait_receive(soon()).expect("an echo").status.is_error());
            let mut back = [0; SIZE];
            buffer.read(SIZE, &mut back).unwrap();
            assert_eq!(back[..], message, "an honest message was changed");
            echoes += 1;
        }
        echoes
    })
}

fn point_of(point: &str) -> NetAddress {
    NetAddress::new(&[127, 0, 0, 1], point.as_bytes())
}
