//! Servers that are killed, two on every transport with connections, or two hundred in all in the long form (`./test full`): every
//! call ends, and soon.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use sidestep_rpc::{Client, ClientOptions, Error, Procedure};
use sidestep_sys::clock;
use sidestep_testkit::ports::free_address;
use sidestep_testkit::process::{Learned, full, run_delay_ns};

/// The null call of the example's store.
const NULL: Procedure = Procedure { program: 0x2000_0099, version: 1, procedure: 0 };

fn serve(address: &str) -> (Child, String) {
    let folder = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples");
    let mut server =
        Command::new(folder.join("key_value")).args(["serve", address]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let scheme = address.split_once(':').unwrap().0;
    let socket = line.split_whitespace().nth(2).map(|socket| format!("{scheme}:{socket}"));
    (server, socket.unwrap_or_else(|| address.to_owned()))
}

const TRANSPORTS: [&str; 6] = ["tcp", "unix", "shm", "vi", "vi-iwarp", "rdma"];

fn address(transport: &str, round: usize) -> String {
    let name = format!("rpc-kills-{}-{round}", std::process::id());
    match transport {
        "tcp" | "rdma" => format!("{transport}:127.0.0.1:0"),
        "unix" => format!("unix:{}", std::env::temp_dir().join(name).display()),
        // A port that nobody has: it is taken from the kernel and given back.
        "vi-iwarp" => format!("vi-iwarp:{}", free_address()),
        scheme => format!("{scheme}:{name}"),
    }
}

#[test]
fn calls_end_when_their_server_is_killed() {
    // One that is always late must not hide among the others.
    let all_learned: [Mutex<Learned>; TRANSPORTS.len()] = Default::default();
    for round in 0..if full() { 200 } else { 2 * TRANSPORTS.len() } {
        let (transport, learned) = (TRANSPORTS[round % TRANSPORTS.len()], &all_learned[round % TRANSPORTS.len()]);
        let (mut server, address) = serve(&address(transport, round));
        // So long that a call does not time out however busy the machine is, unless it never ends.
        let options = ClientOptions { timeout: Duration::from_secs(300), ..ClientOptions::default() };
        let client = Client::connect_with(&address.parse().unwrap(), options).unwrap();
        let calls = AtomicUsize::new(0);
        let killed = OnceLock::new();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    // Until the server is gone; a call that never ended would time out, which is another error.
                    let error = loop {
                        match client.call(NULL, |_| Ok(()), |_| Ok(())) {
                            Ok(()) => calls.fetch_add(1, Ordering::Relaxed),
                            Err(error) => break error,
                        };
                    };
                    let (now, waited) = (clock::now(), run_delay_ns(std::process::id()));
                    assert!(matches!(error, Error::Disconnected { .. } | Error::Setup { .. }), "{address}: {error}");
                    let (dead, before): (u64, u64) = *killed.wait();
                    learned.lock().unwrap().note(dead, now, waited.saturating_sub(before));
                });
            }
            while calls.load(Ordering::Relaxed) < 20 + round {
                std::thread::sleep(Duration::from_millis(1));
            }
            let waited = run_delay_ns(std::process::id());
            server.kill().unwrap();
            server.wait().unwrap();
            killed.set((clock::now(), waited)).unwrap();
        });
        // Nobody listens there any more.
        assert!(client.call(NULL, |_| Ok(()), |_| Ok(())).is_err());
        if let Some(path) = address.strip_prefix("unix:") {
            std::fs::remove_file(path).unwrap();
        }
    }
    for (transport, learned) in TRANSPORTS.iter().zip(all_learned) {
        learned.into_inner().unwrap().judge(&format!("a server on {transport} that is killed"));
    }
}
