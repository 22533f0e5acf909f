//! Servers that are killed, ten of them, or two hundred in the long form (`./test full`): every call ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use sidestep_rpc::{Client, Error, Procedure};

/// The null call of the example's store.
const NULL: Procedure = Procedure { program: 0x2000_0099, version: 1, procedure: 0 };

fn serve(address: &str) -> (Child, String) {
    let folder = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples");
    let mut server =
        Command::new(folder.join("key_value")).args(["serve", address]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let socket = line.split_whitespace().nth(2).map(|socket| format!("tcp:{socket}"));
    (server, socket.unwrap_or_else(|| address.to_owned()))
}

#[test]
fn calls_end_when_their_server_is_killed() {
    let name = format!("shm:rpc-kills-{}", std::process::id());
    let full = std::env::var_os("SIDESTEP_FULL").is_some_and(|value| value != "0");
    for round in 0..if full { 200 } else { 10 } {
        let (mut server, address) = serve(if round % 2 == 0 { "tcp:127.0.0.1:0" } else { &name });
        let client = Client::connect(&address).unwrap();
        let calls = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    // Until the server is gone; a call that never ended would take 25 s and be another error.
                    let error = loop {
                        match client.call(NULL, |_| Ok(()), |_| Ok(())) {
                            Ok(()) => calls.fetch_add(1, Ordering::Relaxed),
                            Err(error) => break error,
                        };
                    };
                    assert!(matches!(error, Error::Disconnected { .. } | Error::Setup { .. }), "{address}: {error}");
                });
            }
            while calls.load(Ordering::Relaxed) < 20 + round {
                std::thread::yield_now();
            }
            server.kill().unwrap();
            server.wait().unwrap();
        });
        // Nobody listens there any more.
        assert!(client.call(NULL, |_| Ok(()), |_| Ok(())).is_err());
    }
}
