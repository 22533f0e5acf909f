//! Waiting: an idle receiver uses no processor time, however many connections it has, and a sleeping one is woken every
//! time.

#[path = "idle/wake.rs"]
mod wake;

use std::thread;

use sidestep_fabric::{Access, Channel, ChannelOptions, EventQueue, Mode, Node, Region, Tripwire};
use sidestep_sys::clock;
use sidestep_testkit::process::{Child, PATIENCE_NS, Role, cpu_time_ns, enter, sleeps};

/// How long idleness is measured, and how often the threads of a process may wake up in that time: the one that measures goes to
/// sleep once or twice, the others have done so before and stay asleep.
const IDLE_NS: u64 = 2_000_000_000;
const IDLE_SLEEPS: u64 = 4;
/// A thread that never sleeps does not show there: it would use a hundred times as much processor time. What one wake-up takes
/// says how busy the machine is, so this is no measure of anything else.
const SPINNING_NS: u64 = 5_000_000;

#[test]
fn role() {
    enter(&[("host", host), ("idler", idler), ("waker", wake::waker)]);
}

#[test]
fn idle_waiters_use_no_cpu() {
    let name = format!("shm:idle-{}", std::process::id());
    let host = Child::start("host", &[&name, "103"]);
    host.control.expect("here");
    let cases = [("receive", "1"), ("event", "1"), ("message", "1"), ("all", "100")];
    let idlers = cases.map(|(how, count)| (how, count, Child::start("idler", &[&name, how, count])));
    host.control.expect("all here");
    // All at once: they sleep, so they are not in each other's way.
    idlers.iter().for_each(|(_, _, child)| child.control.say("measure"));
    host.control.say("measure");
    for (how, count, child) in &idlers {
        report(&format!("waiting by {how} with {count} connections"), child);
    }
    report("accepting, with 103 connections", &host);
}

#[test]
fn wake_ups_of_streams() {
    wake::wake("stream");
}

#[test]
fn wake_ups_of_slots() {
    wake::wake("slots");
}

#[test]
fn wake_ups_of_tripwires() {
    wake::wake("tripwire");
}

#[test]
fn wake_ups_of_event_queues() {
    wake::wake("event");
}

#[test]
fn wake_ups_of_endpoints() {
    wake::wake("message");
}

fn report(what: &str, child: &Child) {
    let [used, sleeps] = child.control.hear_numbers()[..] else { panic!("two numbers") };
    println!("{what}: {sleeps} sleeps and {:.3} ms in {} s", used as f64 / 1e6, IDLE_NS / 1_000_000_000);
    assert!(sleeps <= IDLE_SLEEPS, "{what} woke up {sleeps} times");
    assert!(used < SPINNING_NS, "{what} used {used} ns of processor time");
}

/// Processor time that this process uses while this thread sleeps too, and how often it goes to sleep.
fn measure(role: &Role) {
    role.control.expect("measure");
    // Until here there was work to do, and its last part may not be over.
    role.control.wait(300_000_000);
    let before = (cpu_time_ns(), sleeps());
    role.control.wait(IDLE_NS);
    role.control.say(&format!("{} {}", cpu_time_ns() - before.0, sleeps() - before.1));
}

/// Accepts channels and then waits for more, in vain.
fn host(role: Role) {
    let node = Node::new().unwrap();
    let listener = node.listen(&role.arguments[0]).unwrap();
    role.control.say("here");
    let channels: Vec<_> = (0..role.number(1)).map(|_| accept(&listener)).collect();
    role.control.say("all here");
    thread::spawn(move || {
        let _ = listener.wait(None);
        drop(channels);
    });
    measure(&role);
    role.control.hear();
}

fn accept(listener: &sidestep_fabric::Listener) -> Channel {
    Channel::accept(listener.wait(soon()).unwrap(), options(), b"", soon()).unwrap()
}

/// Makes channels and waits on one of them for what never comes.
fn idler(role: Role) {
    let node = Node::new().unwrap();
    let connect = |_| Channel::connect(&node, &role.arguments[0], options(), b"", soon()).unwrap();
    let mut channels: Vec<_> = (0..role.number(2)).map(connect).collect();
    let Channel { mut receiver, endpoint, .. } = channels.pop().unwrap();
    let region = Region::new(&node, 64).unwrap();
    let how = role.arguments[1].clone();
    let waits = |what| how == what || how == "all";
    thread::scope(|scope| {
        if waits("receive") {
            scope.spawn(|| drop(receiver.receive(&mut [0; 10], None)));
        }
        if waits("event") {
            scope.spawn(|| {
                let queue = EventQueue::new(&node);
                let tripwire = Tripwire::new(&region, 0, Access::Write, Mode::Repeating).unwrap();
                queue.attach_tripwire(&tripwire, 1);
                for channel in &channels {
                    queue.attach_endpoint(&channel.endpoint, 2);
                }
                let _ = queue.wait(None);
            });
        }
        if waits("message") {
            scope.spawn(|| drop(endpoint.wait_message(None)));
        }
        measure(&role);
        role.control.hear();
        std::process::exit(0);
    });
}

fn options() -> ChannelOptions {
    ChannelOptions { capacity: 4096, ..ChannelOptions::default() }
}

fn soon() -> Option<u64> {
    Some(clock::now() + PATIENCE_NS)
}
