//! Programs that come with a load of their own: iperf3, Redis, memcached.

use std::process::Stdio;

use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::kit::{Stage, free_port, is_root, program, serve, start, wait_until};

#[test]
pub fn iperf3() {
    let Some(iperf) = program("iperf3") else { return };
    let (stage, port) = (Stage::new("iperf3"), free_port().to_string());
    let mut server = start(stage.run(&iperf).args(["-s", "-p", &port]));
    let listening = format!(":{:04X} ", port.parse::<u16>().expect("a port"));
    wait_until(&mut server, || {
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
            std::fs::read_to_string(table)
                .unwrap_or_default()
                .lines()
                .any(|line| line.contains(&listening) && line.split_whitespace().nth(3) == Some("0A"))
        })
    });
    for reverse in [&[][..], &["-R"]] {
        let mut client = stage.run(&iperf);
        client.args(["-c", "127.0.0.1", "-p", &port, "-t", "3", "-J"]).args(reverse);
        let (ended, sockets) = stage.watch(Bounded::start(&mut client, PATIENCE));
        let report: serde_json::Value = serde_json::from_str(&ended.expect("iperf3")).expect("a report");
        let bytes = |way: &str| report["end"][way]["bytes"].as_u64().unwrap_or(0);
        assert!(bytes("sum_received") > 0, "{report}");
        sockets.expect_promoted("iperf3");
    }
}

#[test]
pub fn redis() {
    let (Some(server), Some(cli), Some(bench)) =
        (program("redis-server"), program("redis-cli"), program("redis-benchmark"))
    else {
        return;
    };
    let (stage, port) = (Stage::new("redis"), free_port());
    let number = port.to_string();
    let mut command = stage.run(&server);
    command.args(["--port", &number, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    let _server = serve(&mut command, port);

    // Thousands of questions over one connection, and their answers.
    let questions: String =
        (0..5000).map(|number| format!("set key{number} value{number}\nget key{number}\n")).collect();
    let answers: String = (0..5000).map(|number| format!("OK\nvalue{number}\n")).collect();
    let mut asking = stage.run(&cli);
    let input = Stdio::from(std::fs::File::open(stage.file("questions", questions)).expect("a file"));
    let said = Bounded::fed(asking.args(["-p", &number]), PATIENCE, input).wait().expect("redis-cli");
    assert!(said == answers, "redis-cli: wrong answers");

    for clients in ["1", "20"] {
        stage.wait_for_quiet();
        let mut load = stage.run(&bench);
        load.args(["-p", &number, "-t", "set,get", "-c", clients, "-n", "20000000", "-q"]);
        let sockets = stage.watch_some(start(&mut load));
        sockets.expect_promoted("redis");
    }
}

#[test]
pub fn memcached() {
    let Some(memcached) = program("memcached") else { return };
    let (stage, port) = (Stage::new("memcached"), free_port());
    let mut command = stage.run(&memcached);
    command.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0", "-t", "2"]);
    if is_root() {
        command.args(["-u", "root"]);
    }
    let _server = serve(&mut command, port);
    let job = format!(
        r#"{{"work":{{"Memcached":{{"span":{{"warm_ms":200,"run_ms":2500}}}}}},"address":"tcp:127.0.0.1:{port}","cores":[],"parent":{}}}"#,
        std::process::id()
    );
    let mut client = stage.run(env!("CARGO_BIN_EXE_sidestep"));
    let (ended, sockets) = stage.watch(Bounded::start(client.args(["socket-end", &job]), PATIENCE));
    assert!(ended.expect("the client of memcached").contains("half_trip"));
    sockets.expect_promoted("memcached");
}
