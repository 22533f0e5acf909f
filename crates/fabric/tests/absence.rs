//! What is *not* done for a message: no system call and no allocation, counted over a million messages of 64 bytes
//! between two processes that poll.
//!
//! System calls are counted by `strace`, between two marks (`getppid`) that each process makes. What remains is counted
//! by time, not by message: a process that finds nothing for long lets its node look at the kernel's descriptors, at most
//! every 50 us.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, getppid, kill_process};
use sidestep_fabric::{Channel, ChannelOptions, LinkOptions, Node, Result, queue::Kind};
use sidestep_sys::{clock, cpu};
use sidestep_testkit::{
    allocator::Counting,
    ports::free_address,
    process::{Child, PATIENCE_NS, Role, enter},
};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Messages in all, half of them each way.
const MESSAGES: u64 = 1_000_000;
/// Messages before the count begins: everything has been touched once.
const WARM_UP: u64 = 20_000;
const SIZE: usize = 64;
/// Polls beside a peer that is silent.
const POLLS: u64 = 100_000;
/// The kernel is looked at after 50 us at most; while this many messages pass that is never more often than:
const LOOKS_PER_MS: f64 = 20.0;

#[test]
fn role() {
    enter(&[("server", server), ("client", client), ("silent", silent), ("poller", poller)]);
}

#[test]
fn absence_of_calls_in_streams() {
    count("stream");
}

#[test]
fn absence_of_calls_in_slots() {
    count("slots");
}

/// Another link of the node, on which nobody is, costs a message nothing.
#[test]
fn absence_of_calls_beside_another_link() {
    count("beside");
}

/// A peer of another link that says nothing costs a poll next to nothing.
#[test]
fn absence_of_calls_beside_a_silent_peer() {
    let mut silent = Child::start("silent", &[]);
    let name = silent.control.hear().expect("a name");
    let mut poller = Child::start("poller", &[&name]);
    poller.control.expect("warm");
    let trace = trace(&poller);
    poller.control.say("go");
    poller.control.expect("done");
    silent.control.say("over");
    poller.wait_success();
    silent.wait_success();
    let Some(trace) = trace else {
        println!("skipped: system calls are not counted, since strace is not here or may not attach");
        return;
    };
    let calls = trace.calls();
    let total: u64 = calls.values().sum();
    println!("{POLLS} polls, {total} system calls: {calls:?}");
    assert!(total * 10 < POLLS, "so many that they go with polls");
}

fn count(kind: &str) {
    let name = format!("shm:absence-{kind}-{}", std::process::id());
    let mut server = Child::start("server", &[&name, kind]);
    server.control.expect("here");
    let mut client = Child::start("client", &[&name, kind]);
    server.control.expect("warm");
    client.control.expect("warm");
    let traces = [trace(&server), trace(&client)];
    // The server first: it must have made its mark before messages flow.
    server.control.say("go");
    client.control.say("go");
    let counts = [server.control.hear_numbers(), client.control.hear_numbers()];
    server.wait_success();
    client.wait_success();
    for (who, (numbers, trace)) in ["server", "client"].iter().zip(counts.iter().zip(traces)) {
        let [allocations, took_ns] = numbers[..] else { panic!("two numbers") };
        println!("{kind}, {who}: {MESSAGES} messages in {:.1} ms, {allocations} allocations", took_ns as f64 / 1e6);
        assert_eq!(allocations, 0, "{kind}, {who}: allocations in the steady phase");
        let Some(trace) = trace else {
            println!("skipped: system calls are not counted, since strace is not here or may not attach");
            continue;
        };
        let calls = trace.calls();
        let total: u64 = calls.values().sum();
        println!("{kind}, {who}: {total} system calls, {:.6} per message: {calls:?}", total as f64 / MESSAGES as f64);
        let looks = calls.get("epoll_pwait2").or(calls.get("epoll_wait")).or(calls.get("epoll_pwait")).copied();
        // A thread that serves another link is now and then told to stay away, or given the core.
        if kind != "beside" {
            assert_eq!(total, looks.unwrap_or(0), "{kind}, {who}: other calls than looks at the kernel");
        }
        assert!((total as f64) < took_ns as f64 / 1e6 * LOOKS_PER_MS + 1.0, "{kind}, {who}: too many looks");
        // A busy machine has made them last long: what goes with time is no more than a call a millisecond.
        let with_time = took_ns / 1_000_000;
        assert!(total.saturating_sub(with_time) * 100 < MESSAGES, "{kind}, {who}: so many that they go with messages");
    }
}

/// A `strace` of one process.
struct Trace {
    tracer: std::process::Child,
    output: PathBuf,
}

/// Attaches `strace` to a child; `None` if that cannot be.
fn trace(child: &Child) -> Option<Trace> {
    let output = std::env::temp_dir().join(format!("sidestep-absence-{}.strace", child.id()));
    let mut tracer = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(&output)
        .args(["-p", &child.id().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let deadline = clock::now() + PATIENCE_NS;
    loop {
        // Every thread waits in some call, which is shown as soon as its thread is traced; not before.
        let shown = fs::read_to_string(&output).unwrap_or_default();
        let threads = fs::read_dir(format!("/proc/{}/task", child.id())).ok()?.flatten();
        let mut threads = threads.map(|thread| thread.file_name().to_string_lossy().into_owned());
        if threads.all(|thread| shown.lines().any(|line| line.split(' ').next() == Some(&*thread))) {
            return Some(Trace { tracer, output });
        }
        if tracer.try_wait().ok()?.is_some() || clock::now() > deadline {
            let _ = tracer.kill();
            let _ = tracer.wait();
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

impl Trace {
    /// The calls between the two marks, by name.
    fn calls(mut self) -> BTreeMap<String, u64> {
        // The process it traced has ended, so it ends; if not, it is asked to.
        if let Some(pid) = Pid::from_raw(self.tracer.id() as i32) {
            let _ = kill_process(pid, Signal::INT);
        }
        self.tracer.wait().expect("strace ends");
        let text = fs::read_to_string(&self.output).expect("the output of strace");
        let _ = fs::remove_file(&self.output);
        // Each line: which thread, which call. Only the thread that made the marks is of interest.
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let lines: Vec<_> = lines.filter_map(|(thread, call)| Some((thread, call.trim().split_once('(')?.0))).collect();
        let marker = lines.iter().find(|(_, name)| *name == "getppid").map(|(thread, _)| *thread);
        let mut calls = BTreeMap::new();
        let mut marks = 0;
        for (_, name) in lines.iter().filter(|(thread, _)| Some(*thread) == marker) {
            if *name == "getppid" {
                marks += 1;
            } else if marks == 1 {
                *calls.entry(name.to_string()).or_insert(0) += 1;
            }
        }
        assert_eq!(marks, 2, "the marks are missing:\n{text}");
        calls
    }
}

/// Has a connection over iWARP, and says nothing.
fn silent(role: Role) {
    let node = Node::open(&["iwarp"], &LinkOptions::default()).unwrap();
    let free = free_address();
    let name = format!("iwarp:{free}");
    let listener = node.listen(&name).unwrap();
    role.control.say(&name);
    let endpoint = listener.wait(Some(clock::now() + PATIENCE_NS)).unwrap().accept(b"").unwrap();
    role.control.expect("over");
    drop(endpoint);
}

/// Polls a node of two links.
fn poller(role: Role) {
    let node = Node::open(&["shm", "iwarp"], &LinkOptions::default()).unwrap();
    let _endpoint = node.connect(&role.arguments[0], b"", Some(clock::now() + PATIENCE_NS)).unwrap();
    let poll = |count: u64| (0..count).for_each(|_| _ = node.progress());
    poll(WARM_UP);
    role.control.say("warm");
    role.control.expect("go");
    let _ = getppid();
    poll(POLLS);
    let _ = getppid();
    role.control.say("done");
}

fn server(role: Role) {
    let node = node(&role);
    let listener = node.listen(&role.arguments[0]).unwrap();
    role.control.say("here");
    let deadline = Some(clock::now() + PATIENCE_NS);
    let request = listener.wait(deadline).unwrap();
    let channel = Channel::accept(request, options(&role), b"", deadline).unwrap();
    play(role, channel, 0);
}

fn client(role: Role) {
    let node = node(&role);
    let deadline = Some(clock::now() + PATIENCE_NS);
    let channel = Channel::connect(&node, &role.arguments[0], options(&role), b"", deadline).unwrap();
    play(role, channel, 1);
}

fn node(role: &Role) -> Node {
    let schemes: &[&str] = if role.arguments[1] == "beside" { &["shm", "iwarp"] } else { &["shm"] };
    Node::open(schemes, &LinkOptions::default()).unwrap()
}

fn options(role: &Role) -> ChannelOptions {
    let kind = if role.arguments[1] == "slots" { Kind::Slots(128) } else { Kind::Stream };
    ChannelOptions { kind, ..ChannelOptions::default() }
}

fn play(role: Role, mut channel: Channel, side: usize) {
    let cores = cpu::allowed_cores();
    cpu::pin_to(cores[side % cores.len()]).unwrap();
    let slots = role.arguments[1] == "slots";
    let first = side == 1;
    exchange(&mut channel, slots, first, WARM_UP).unwrap();
    role.control.say("warm");
    role.control.expect("go");
    let (before, start) = (ALLOCATOR.calls(), clock::now());
    let _ = getppid();
    let outcome = exchange(&mut channel, slots, first, MESSAGES / 2);
    let _ = getppid();
    let (after, end) = (ALLOCATOR.calls(), clock::now());
    outcome.unwrap();
    role.control.say(&format!("{} {}", after - before, end - start));
}

/// Sends a message and takes one, or the other way round, by polling only.
fn exchange(channel: &mut Channel, slots: bool, first: bool, rounds: u64) -> Result<()> {
    for round in 0..rounds {
        if first {
            send(channel, slots, round)?;
        }
        receive(channel, slots, round)?;
        if !first {
            send(channel, slots, round)?;
        }
    }
    Ok(())
}

fn send(channel: &mut Channel, slots: bool, round: u64) -> Result<()> {
    let message = [round as u8; SIZE];
    if slots {
        while !channel.sender.try_send_message(&message)? {}
        return Ok(());
    }
    let mut rest = &message[..];
    while !rest.is_empty() {
        rest = &rest[channel.sender.try_send(rest)?..];
    }
    Ok(())
}

fn receive(channel: &mut Channel, slots: bool, round: u64) -> Result<()> {
    let mut message = [0; SIZE];
    if slots {
        while channel.receiver.try_receive_message(&mut message)?.is_none() {}
    } else {
        let mut have = 0;
        while have < SIZE {
            have += channel.receiver.try_receive(&mut message[have..])?;
        }
    }
    assert_eq!(message, [round as u8; SIZE]);
    Ok(())
}
