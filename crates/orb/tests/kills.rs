//! Servers and clients that are killed, a dozen or more of each, or two hundred in the long form (`./test full`): every call ends
//! with the right exception as soon as the kernel tells of the death, and nothing of the dead is kept: no descriptor, no mapping
//! and no memory.

mod peer;
mod raw;

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use peer::{Peer, seen_by, serve};
use sidestep_orb::{Completion, Dispatching, Kind, Orb, Stub, SystemException, Threads};
use sidestep_sys::clock;
use sidestep_testkit::allocator::Counting;
use sidestep_testkit::process::{Census, PATIENCE_NS, full, open_files, run_delay_ns};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Held by each test: they count what the process has.
static ALONE: Mutex<()> = Mutex::new(());

const TRANSPORTS: [&str; 6] = ["tcp", "unix", "fabric", "iwarp", "via", "via-flow"];

/// What the child is to do, if this process is one.
const ROLE: &str = "SIDESTEP_ORB_KILLS";

fn rounds() -> usize {
    if full() { 200 } else { 2 * TRANSPORTS.len() }
}

fn threads(dispatcher: bool) -> Threads {
    if dispatcher { Threads::Dispatcher(Dispatching::default()) } else { Threads::PerConnection }
}

/// Not a test of its own: the process that is killed.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if let Some((on, name)) = role.strip_prefix("serve ").and_then(|rest| rest.split_once(' ')) {
        let dispatcher = name.ends_with("dispatcher");
        let server = raw::listening(on, name).threads(threads(dispatcher)).build().unwrap();
        let (own, _) = serve(&server);
        println!("\n{}", own.object().ior());
        server.run();
    } else {
        let object = Orb::builder().build().unwrap().string_to_object(&role).unwrap();
        let peer = Peer::from_object(object);
        peer.ping().unwrap();
        println!("\nIOR:ready");
        while peer.some_octets(&[7; 20_000], &[]).is_ok() {}
    }
}

/// A process that is killed.
struct Victim {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
    /// What it has said when it was ready.
    said: String,
}

impl Victim {
    /// Starts the child, and waits until it says something.
    fn start(role: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["child", "--exact", "--nocapture"]).env(ROLE, role).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = output.by_ref().map_while(Result::ok);
        let said = lines.find(|line| line.starts_with("IOR:")).expect("the child says that it is ready");
        Self { child, output, said }
    }

    /// Kills it; returns when the kernel told of that.
    fn kill(mut self) -> u64 {
        self.child.kill().unwrap();
        self.output.by_ref().map_while(Result::ok).for_each(drop);
        let told = clock::now();
        self.child.wait().unwrap();
        told
    }
}

/// What the process has.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    descriptors: usize,
    mappings: usize,
    memory: u64,
}

/// A VI keeps the memory of one peer that died: its arena, region and pair, and a pipe.
const KEPT_BY_VIA: usize = 4;

/// Tables that grow with the number of peers that there ever were, in bytes: a page for each of some dozen lives would be more.
const TABLES: u64 = 32 << 10;

impl Held {
    fn look() -> Self {
        let Census { descriptors, mappings, .. } = Census::take("no name");
        Self { descriptors, mappings, memory: ALLOCATOR.live() }
    }

    fn or(self, other: Self) -> Self {
        Self {
            descriptors: self.descriptors.max(other.descriptors),
            mappings: self.mappings.max(other.mappings),
            memory: self.memory.max(other.memory),
        }
    }

    /// Waits until there is no more than this.
    fn outlasts(self, on: &str) {
        let kept = if on.starts_with("via") { KEPT_BY_VIA } else { 0 };
        let patience = Instant::now() + Duration::from_nanos(PATIENCE_NS);
        loop {
            let now = Self::look();
            let is_within = now.descriptors <= self.descriptors + kept
                && now.mappings <= self.mappings + kept
                && now.memory <= self.memory + TABLES;
            if is_within {
                return;
            }
            assert!(Instant::now() < patience, "{on}: {self:?}, and then {now:?}: {:#?}", open_files());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// How long after the kernel callers learned of deaths, without the time for which they waited for a processor.
#[derive(Default)]
struct Learned(Mutex<Vec<u64>>);

/// By when whoever uses a process that dies has its error.
const AT_ONCE_NS: u64 = 100_000_000;

impl Learned {
    fn note(&self, told: u64, learned: u64, waited: u64) {
        self.0.lock().unwrap().push(learned.saturating_sub(told).saturating_sub(waited));
    }

    /// Nine of ten, and the median much sooner: a machine that stands still now and then fails no test.
    fn judge(self) {
        let mut all = self.0.into_inner().unwrap();
        all.sort_unstable();
        let of = |tenths: usize| all[(all.len() * tenths / 10).min(all.len() - 1)];
        let [median, most, longest] = [5, 9, 10].map(|tenths| of(tenths) as f64 / 1e6);
        println!(
            "{} deaths: noticed {median:.3} ms after the kernel in the median, nine of ten {most:.3}, {longest:.3} at most",
            all.len()
        );
        assert!(of(5) < AT_ONCE_NS / 10 && of(9) < AT_ONCE_NS, "{all:?}");
    }
}

/// What a caller may be told when its server is gone.
fn is_loss(exception: &SystemException) -> bool {
    let told = (exception.kind, exception.completed);
    // The reply did not come; the request was not sent; nobody listens any more.
    let expected = [
        (Kind::CommFailure, Completion::Maybe),
        (Kind::CommFailure, Completion::No),
        (Kind::Transient, Completion::No),
    ];
    expected.contains(&told)
}

#[test]
fn calls_end_when_their_server_is_killed() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut before, learned) = (Held::default(), Learned::default());
    for round in 0..rounds() {
        let on = TRANSPORTS[round % TRANSPORTS.len()];
        let model = if round / TRANSPORTS.len() % 2 == 0 { "threads" } else { "dispatcher" };
        let name = format!("{}-{model}", raw::name_of("kills"));
        let server = Victim::start(&format!("serve {on} {name}"));
        let client = Orb::builder().build().unwrap();
        let peer = Peer::from_object(client.string_to_object(&server.said).unwrap());
        peer.ping().unwrap();
        // One call is in its servant when the server dies: whether it was completed nobody knows.
        let blocked = peer.begin_sleep(0).unwrap();
        let others = Orb::builder().build().unwrap();
        let other = Peer::from_object(others.string_to_object(&server.said).unwrap());
        let (calls, killed) = (AtomicUsize::new(0), OnceLock::new());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let exception = loop {
                        match other.some_octets(&[1; 10_000], &[2; 100]) {
                            Ok(_) => calls.fetch_add(1, Ordering::Relaxed),
                            Err(exception) => break exception,
                        };
                    };
                    let (now, waited) = (clock::now(), run_delay_ns(std::process::id()));
                    assert!(is_loss(&exception), "{on}: {exception:?}");
                    let (told, before): (u64, u64) = *killed.wait();
                    learned.note(told, now, waited.saturating_sub(before));
                });
            }
            while calls.load(Ordering::Relaxed) < 10 + round {
                std::thread::yield_now();
            }
            let waited = run_delay_ns(std::process::id());
            killed.set((server.kill(), waited)).unwrap();
        });
        assert_eq!(blocked.collect(), Err(Kind::CommFailure.raised(Completion::Maybe)), "{on}");
        let gone = peer.ping().unwrap_err();
        assert!(is_loss(&gone) && gone.completed == Completion::No, "{on}: {gone:?}");
        drop((peer, other));
        client.shutdown();
        others.shutdown();
        drop((client, others));
        let _ = std::fs::remove_file(raw::path_of(&name));
        // What the library keeps for ever is there after each transport was used once.
        match round < TRANSPORTS.len() {
            true => before = before.or(Held::look()),
            false => before.outlasts(on),
        }
    }
    learned.judge();
}

#[test]
fn a_server_forgets_clients_that_are_killed() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for model in [false, true] {
        for on in TRANSPORTS {
            let name = raw::name_of("killed");
            let server = raw::listening(on, &name).threads(threads(model)).build().unwrap();
            let (own, _) = serve(&server);
            let client = Orb::builder().build().unwrap();
            let witness = seen_by(&client, &own);
            let mut before = Held::default();
            for round in 0..(rounds() / TRANSPORTS.len()).max(6) {
                let victim = Victim::start(&own.object().ior().to_string());
                witness.ping().unwrap();
                victim.kill();
                witness.ping().unwrap();
                match round < 2 {
                    true => before = before.or(Held::look()),
                    false => before.outlasts(on),
                }
            }
            client.shutdown();
            server.shutdown();
            server.run();
        }
    }
}
