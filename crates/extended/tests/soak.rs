//! Peers that come, work and are killed, for as long as it takes: descriptors and memory of this process stay as they were.

mod pair;

use std::{
    net::TcpStream,
    os::fd::AsFd,
    time::{Duration, Instant},
};

use pair::{Provider, now_and, provider};
use sidestep_extended::{Completion, CompletionQueue, Kind, Rights, Stack};
use sidestep_testkit::{
    allocator::Counting,
    process::{self, Census, Child, Role, resident_kb},
};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

#[test]
fn role() {
    process::enter(&[("worker", worker)]);
}

/// Exports a region, and then sends notices and messages until it is killed.
fn worker(role: Role) {
    let stack = Stack::with(provider::enter(&role.arguments[1])).unwrap();
    let stream = TcpStream::connect(&role.arguments[0]).unwrap();
    let queue = stack.completion_queue().unwrap();
    let socket = stack.enable(stream.as_fd(), &queue, now_and(process::PATIENCE_NS / 1_000_000)).unwrap();
    let region = stack.register(64 << 10, Rights::ALL).unwrap();
    socket.export(&region, Rights::ALL, 1).unwrap();
    let mut taken = Vec::new();
    for value in 0.. {
        // The parent may be behind: what does not fit now is not said.
        let _ = socket.notify(value);
        let _ = socket.post_send(vec![region.piece(0, 1000).unwrap()], value);
        taken.clear();
        queue.poll(&mut taken, 64);
    }
}

/// One life of a worker: so many rounds of everything, and then its death in the middle of them.
fn life(provider: &Provider, stack: &Stack, queue: &CompletionQueue, rounds: usize) {
    let listener = provider.listen();
    let mut child = Child::start("worker", &[&listener.local_addr().unwrap().to_string(), &provider.far_holder()]);
    let stream = listener.accept().unwrap().0;
    let socket = stack.enable(stream.as_fd(), queue, now_and(process::PATIENCE_NS / 1_000_000)).unwrap();
    let remote = socket.import(Some(now_and(process::PATIENCE_NS / 1_000_000))).unwrap();
    let local = stack.register(64 << 10, Rights::NONE).unwrap();
    let mut taken: Vec<Completion> = Vec::new();
    for round in 0..rounds {
        socket.put(&remote, round % 1000 * 8, &[1; 8]).unwrap();
        socket.fetch_add(&remote, 0, 1).unwrap();
        socket.post_get(&remote, 0, vec![local.piece(0, 4096).unwrap()], 1).unwrap();
        socket.post_recv(vec![local.piece(4096, 2048).unwrap()], 2).unwrap();
        taken.clear();
        queue.wait(&mut taken, 64, Some(now_and(process::PATIENCE_NS / 1_000_000))).unwrap();
    }
    child.kill();
    child.wait();
    while !taken.iter().any(|completion| completion.kind == Kind::Closed) {
        taken.clear();
        queue.wait(&mut taken, 64, Some(now_and(process::PATIENCE_NS / 1_000_000))).unwrap();
    }
    drop(socket);
    // What it has said until then is of nobody.
    while queue.poll(&mut taken, 64) > 0 {}
}

/// 20 minutes of it in the long form (`./test extended_full`), and 5 each in place and between hosts. One test, since it counts what the process has.
#[test]
fn kills_leave_nothing_behind() {
    soak(&Provider::OneHost, Duration::from_secs(20 * 60));
    soak(&Provider::InPlace, Duration::from_secs(5 * 60));
    if let Some(provider) = Provider::two_hosts() {
        soak(&provider, Duration::from_secs(5 * 60));
    }
}

fn soak(provider: &Provider, full: Duration) {
    let (stack, length) = (provider.stack(), if process::full() { full } else { Duration::ZERO });
    let queue = stack.completion_queue().unwrap();
    for _ in 0..5 {
        life(provider, &stack, &queue, 50);
    }
    let held = || (Census::take("no name"), ALLOCATOR.live() / 1024, resident_kb());
    let ((census, live, memory), began) = (held(), Instant::now());
    let mut lives = 0;
    while lives < 10 || began.elapsed() < length {
        life(provider, &stack, &queue, 50);
        lives += 1;
    }
    let (census_now, live_now, memory_now) = held();
    println!(
        "{lives} lives: {census}, and now {census_now}; of {live} KiB of memory {live_now}, of {memory} KiB of pages {memory_now}"
    );
    assert!(census_now.descriptors <= census.descriptors && census_now.mappings <= census.mappings);
    // One region of each life would be 640 KiB.
    assert!(live_now < live + 32, "{live} KiB, and after {lives} lives {live_now}");
    // Pages follow the largest backlog of a worker that there ever was: a few of them are not a leak, some for each of thousands of lives are.
    assert!(memory_now < memory + 4096, "{memory} KiB, and after {lives} lives {memory_now}");
}
