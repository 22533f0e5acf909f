//! Servers that are killed, twelve of them, or two hundred in the long form (`./test full`): every call ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use sidestep_rpc::{Client, ClientOptions, Error, Procedure};
use sidestep_sys::clock;
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

#[test]
fn calls_end_when_their_server_is_killed() {
    let [shm, vi] = ["shm", "vi"].map(|scheme| format!("{scheme}:rpc-kills-{}", std::process::id()));
    let transports = ["tcp:127.0.0.1:0", &shm, "rdma:127.0.0.1:0", &vi];
    let learned = Mutex::new(Learned::default());
    for round in 0..if full() { 200 } else { 12 } {
        let (mut server, address) = serve(transports[round % transports.len()]);
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
    }
    learned.into_inner().unwrap().judge("a server that is killed");
}
