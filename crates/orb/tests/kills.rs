//! Servers and clients that are killed, ten of each, or two hundred in the long form (`./test full`): every call ends with
//! the right exception, and nothing of the dead is kept.

mod peer;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use peer::{Peer, seen_by, serve};
use sidestep_orb::{Builder, Completion, Dispatching, Kind, Orb, Stub, SystemException, Threads};
use sidestep_sys::clock;
use sidestep_testkit::process::{Learned, full, run_delay_ns};

const TRANSPORTS: [&str; 5] = ["tcp", "unix", "fabric", "via", "via-flow"];

/// What the child is to do, if this process is one.
const ROLE: &str = "SIDESTEP_ORB_KILLS";

fn rounds() -> usize {
    if full() { 200 } else { 10 }
}

fn listening(on: &str, name: &str) -> Builder {
    match on {
        "tcp" => Orb::builder().tcp("127.0.0.1:0"),
        "unix" => Orb::builder().unix(std::env::temp_dir().join(name).to_str().unwrap()),
        "fabric" => Orb::builder().fabric(&format!("shm:{name}")),
        "via" => Orb::builder().via(name),
        _ => Orb::builder().via_flow(name),
    }
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
        let server = listening(on, name).threads(threads(dispatcher)).build().unwrap();
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

/// Starts the child, and waits until it says something.
fn start(role: &str) -> (Child, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "--exact", "--nocapture"]).env(ROLE, role).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said = lines.find(|line| line.starts_with("IOR:")).expect("the child says that it is ready");
    (child, said)
}

/// What the open descriptors of this process are.
fn descriptors() -> Vec<String> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().map_while(Result::ok);
    let links = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.map(|link| link.to_string_lossy().into_owned()).collect()
}

/// A VI keeps the memory of one peer that died: its arena, region and pair, and a pipe.
const KEPT_BY_VIA: usize = 4;

/// Waits until no more descriptors are open than before.
fn no_more_than(before: usize, on: &str) {
    let before = if on.starts_with("via") { before + KEPT_BY_VIA } else { before };
    let patience = Instant::now() + Duration::from_secs(20);
    while descriptors().len() > before {
        assert!(Instant::now() < patience, "{on}: more than {before} descriptors: {:#?}", descriptors());
        std::thread::sleep(Duration::from_millis(5));
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
    let mut before = 0;
    let learned = Mutex::new(Learned::default());
    for round in 0..rounds() {
        let on = TRANSPORTS[round % TRANSPORTS.len()];
        let model = if round / TRANSPORTS.len() % 2 == 0 { "threads" } else { "dispatcher" };
        let name = format!("orb-kills-{}-{round}-{model}", std::process::id());
        let (mut server, reference) = start(&format!("serve {on} {name}"));
        let client = Orb::builder().build().unwrap();
        let peer = Peer::from_object(client.string_to_object(&reference).unwrap());
        peer.ping().unwrap();
        // One call is in its servant when the server dies: whether it was completed nobody knows.
        let blocked = peer.begin_sleep(0).unwrap();
        let others = Orb::builder().build().unwrap();
        let other = Peer::from_object(others.string_to_object(&reference).unwrap());
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
                    let (dead, before): (u64, u64) = *killed.wait();
                    learned.lock().unwrap().note(dead, now, waited.saturating_sub(before));
                });
            }
            while calls.load(Ordering::Relaxed) < 10 + round {
                std::thread::yield_now();
            }
            let waited = run_delay_ns(std::process::id());
            server.kill().unwrap();
            server.wait().unwrap();
            killed.set((clock::now(), waited)).unwrap();
        });
        assert_eq!(blocked.collect(), Err(Kind::CommFailure.raised(Completion::Maybe)), "{on}");
        let gone = peer.ping().unwrap_err();
        assert!(is_loss(&gone) && gone.completed == Completion::No, "{on}: {gone:?}");
        drop((peer, other));
        client.shutdown();
        others.shutdown();
        drop((client, others));
        let _ = std::fs::remove_file(std::env::temp_dir().join(&name));
        // What the library keeps for ever is there after the first rounds.
        match round {
            0..5 => before = before.max(descriptors().len()),
            _ => no_more_than(before, on),
        }
    }
    learned.into_inner().unwrap().judge("a server that is killed");
}

#[test]
fn a_server_forgets_clients_that_are_killed() {
    for model in [false, true] {
        let name = format!("orb-killed-{}-{model}", std::process::id());
        for on in TRANSPORTS {
            let server = listening(on, &name).threads(threads(model)).build().unwrap();
            let (own, _) = serve(&server);
            let witness = seen_by(&Orb::builder().build().unwrap(), &own);
            let mut before = 0;
            for round in 0..(rounds() / TRANSPORTS.len()).max(8) {
                let (mut child, _) = start(&own.object().ior().to_string());
                witness.ping().unwrap();
                child.kill().unwrap();
                child.wait().unwrap();
                witness.ping().unwrap();
                match round {
                    0..2 => before = before.max(descriptors().len()),
                    _ => no_more_than(before, on),
                }
            }
            server.shutdown();
            server.run();
        }
    }
}
