//! Many connections between two processes, made one after the other and at once, with service threads that poll beside
//! the threads that connect: every one of them comes about, and carries a message.

use std::thread;

use sidestep_testkit::process::{Child, PATIENCE_NS, Role, enter, full};
use sidestep_vi::{Descriptor, MemAttributes, NetAddress, Nic, ViAttributes, clock};

#[test]
fn role() {
    enter(&[("server", server)]);
}

/// Names that change and names that stay, several threads at once.
#[test]
fn connections_always_come_about() {
    let word = format!("meeting-{}", std::process::id());
    let rounds = if full() { 400 } else { 40 };
    let mut child = Child::start("server", &[&word, &rounds.to_string()]);
    child.control.expect("here");
    play(&word, rounds, false);
    child.wait_success();
}

fn server(role: Role) {
    role.control.say("here");
    play(&role.arguments[0], role.number(1), true);
}

fn play(word: &str, rounds: u64, serving: bool) {
    let nic = Nic::open("nic0").unwrap();
    nic.serve().unwrap();
    thread::scope(|scope| {
        for lane in 0..THREADS {
            let nic = &nic;
            scope.spawn(move || (0..rounds).for_each(|round| meet(nic, &name(word, lane, round), serving)));
        }
    });
}

/// Every other lane keeps its name; the others have a new one each time.
fn name(word: &str, lane: u64, round: u64) -> String {
    if lane % 2 == 0 { format!("{word}-{lane}") } else { format!("{word}-{lane}-{round}") }
}

fn meet(nic: &Nic, name: &str, serving: bool) {
    let soon = || Some(clock::now() + PATIENCE_NS);
    let point = NetAddress::new(&[127, 0, 0, 1], name.as_bytes());
    let ptag = nic.create_ptag().unwrap();
    let vi = nic.create_vi(&ViAttributes::new(ptag), None, None).unwrap();
    let buffer = nic.allocate(64, &MemAttributes::new(ptag)).unwrap();
    vi.post_receive(&Descriptor::new(1, &[buffer.segment(0, 8)])).unwrap();
    match serving {
        true => nic.connect_wait(&point, soon()).expect(name).accept(&vi).expect(name),
        false => {
            vi.connect(&NetAddress::default(), &point, soon()).expect(name);
        }
    }
    // The client asks, the server answers; then both have had their message.
    let send = || {
        buffer.write(8, name.as_bytes().last_chunk::<4>().expect("a long name")).unwrap();
        vi.post_send(&Descriptor::new(2, &[buffer.segment(8, 4)])).unwrap();
        assert!(!vi.wait_send(soon()).expect(name).status.is_error(), "{name}");
    };
    if !serving {
        send();
    }
    let received = vi.wait_receive(soon()).expect(name);
    assert!(!received.status.is_error() && received.len == 4, "{name}: {received:?}");
    let mut bytes = [0; 4];
    buffer.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, *name.as_bytes().last_chunk::<4>().expect("a long name"));
    if serving {
        send();
        // The client disconnects when it has the answer.
        let deadline = clock::now() + PATIENCE_NS;
        while vi.state() != sidestep_vi::ViState::Error {
            assert!(clock::now() < deadline, "{name}: the other side never left");
            thread::yield_now();
        }
    }
    vi.disconnect().unwrap();
    nic.deregister(buffer.address(), buffer.handle()).unwrap();
    drop(vi);
    nic.destroy_ptag(ptag).unwrap();
}

const THREADS: u64 = 3;
