//! Threads that sleep, are woken, and hardly ever get a core: they wait for the scheduler, and never for a wake-up that was lost.
//!
//! Programs that only compute take the cores, and the threads of the test have the lowest priority. No sleep lasts longer than
//! ten seconds, so a lost wake-up would show as an exchange that is slow, and no more; the nodes count sleeps that ended by
//! themselves with something there. The slowest exchange is printed with the time that its two threads were ready to run and
//! did not, as the kernel counts it.

use std::{
    fs,
    process::{Child, Command},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use sidestep_fabric::{Channel, ChannelOptions, Node};
use sidestep_testkit::{
    conformance::{fixture::unique_name, nodes::soon},
    process::full,
    seeded::Seeded,
};

/// Programs that compute for as long as this lives.
struct Load(Vec<Child>);

/// One exchange: how long it took, and how long its threads were kept from running meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Exchange {
    took: Duration,
    kept: Duration,
}

const CHANNELS: usize = 8;

#[test]
fn whoever_is_starved_of_cores_is_woken_all_the_same() {
    let (programs, exchanges) = if full() { (8, 150) } else { (4, 60) };
    let load = Load::new(programs);
    // Threads inherit it.
    let _ = rustix::process::setpriority_process(None, 19);
    let server = Node::new().expect("a node");
    let name = format!("shm:{}", unique_name());
    let listener = server.listen(&name).expect("a name that is free");
    let kept: [AtomicU64; CHANNELS] = Default::default();
    let mut slowest = Exchange::default();
    let mut sleeps = 0;
    std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for (number, kept) in kept.iter().enumerate() {
            let (node, name) = (Node::new().expect("a node"), name.clone());
            let asking = scope.spawn(move || {
                let channel = Channel::connect(&node, &name, ChannelOptions::default(), b"", soon()).expect("a server");
                let slowest = ask(channel, number as u64, exchanges, kept);
                (slowest, node.counters())
            });
            let request = listener.wait(soon()).expect("a client");
            let channel =
                Channel::accept(request, ChannelOptions::default(), b"", soon()).expect("a client that waits");
            scope.spawn(move || answer(channel, exchanges, kept));
            clients.push(asking);
        }
        for client in clients {
            let (slow, counters) = client.join().expect("a client that ends");
            assert_eq!(counters.unrung, 0, "a client was not woken");
            (slowest, sleeps) = (slowest.max(slow), sleeps + counters.sleeps);
        }
    });
    assert_eq!(server.counters().unrung, 0, "a thread of the server was not woken");
    drop(load);
    println!("{sleeps} sleeps of clients; the slowest exchange took {:?}, of which", slowest.took);
    println!("its threads were ready to run and had no core for {:?}", slowest.kept);
}

/// Asks, and pauses long enough for the other side to sleep. The slowest exchange.
fn ask(channel: Channel, seed: u64, exchanges: u32, theirs: &AtomicU64) -> Exchange {
    let (mut channel, mut random) = (channel, Seeded::new(seed));
    let mut slowest = Exchange::default();
    for _ in 0..exchanges {
        let kept = || kept_waiting() + Duration::from_nanos(theirs.load(Ordering::Relaxed));
        let (began, before) = (Instant::now(), kept());
        channel.sender.send(&[1; 64], soon()).expect("an open connection");
        receive(&mut channel);
        slowest = slowest.max(Exchange { took: began.elapsed(), kept: kept().saturating_sub(before) });
        std::thread::sleep(Duration::from_micros([0, 10, 100, 1_000][random.below(4) as usize]));
    }
    slowest
}

fn answer(channel: Channel, exchanges: u32, kept: &AtomicU64) {
    let mut channel = channel;
    for _ in 0..exchanges {
        receive(&mut channel);
        kept.store(kept_waiting().as_nanos() as u64, Ordering::Relaxed);
        channel.sender.send(&[2; 64], soon()).expect("an open connection");
    }
}

fn receive(channel: &mut Channel) {
    let (mut bytes, mut at) = ([0; 64], 0);
    while at < bytes.len() {
        at += channel.receiver.receive(&mut bytes[at..], soon()).expect("an open connection");
    }
}

/// How long this thread was ready to run and had no core, in its life.
fn kept_waiting() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0))
}

impl Load {
    fn new(programs: usize) -> Load {
        // They end with this process, however it ends.
        let compute = || Command::new("sh").args(["-c", "while kill -0 $PPID; do :; done"]).spawn().expect("a shell");
        Load((0..programs).map(|_| compute()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for program in &mut self.0 {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}
