//! `sidestep stat --metrics`, with the parser of a collector as the judge.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
};

use super::stage::{Killed, SIDESTEP, Stage, Two, wait_until};

/// A server of metrics.
pub struct Metrics {
    _server: Killed,
    address: String,
}

impl Metrics {
    pub fn start(stage: &Stage, options: &[&str]) -> Metrics {
        let mut command = Command::new(SIDESTEP);
        command.args(["stat", "--metrics", "127.0.0.1:0"]).args(options).env("SIDESTEP_DIR", &stage.0);
        let mut server = Killed(command.stderr(Stdio::piped()).spawn().expect("it starts"));
        let mut line = String::new();
        BufReader::new(server.0.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let address = line.trim().split("http://").nth(1).and_then(|rest| rest.split('/').next());
        Metrics { _server: server, address: address.expect(&line).to_owned() }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).expect("it listens")
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    /// The metrics, which are whole.
    pub fn body(&self) -> String {
        let answer = self.ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let kind = "application/openmetrics-text; version=1.0.0";
        assert!(head.starts_with("HTTP/1.1 200") && head.contains(kind), "{head}");
        assert!(body.ends_with("# EOF\n"), "{body}");
        body.to_owned()
    }
}

/// The names of the families and of their samples, as a collector reads them; `None` if none is installed.
fn parsed(body: &str) -> Option<String> {
    let script = "import sys\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n\
                  for family in parse(sys.stdin.read()):\n\
                  \x20 print(family.name, family.type, family.unit, sorted({sample.name for sample in family.samples}))";
    let mut python = Command::new("python3");
    python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut python) = python.spawn() else {
        eprintln!("left out: no Python");
        return None;
    };
    // It may have ended already, without the module.
    let _ = python.stdin.take().expect("a pipe").write_all(body.as_bytes());
    let output = python.wait_with_output().expect("it ends");
    let complaint = String::from_utf8_lossy(&output.stderr);
    if complaint.contains("ModuleNotFoundError") {
        eprintln!("left out: python3-prometheus-client is not installed");
        return None;
    }
    assert!(output.status.success(), "{complaint}\n{body}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn metrics_are_served() {
    let stage = Stage::new("metrics");
    let _pair = stage.pair(&[], &["promoted"]);
    let metrics = Metrics::start(&stage, &[]);
    let body = metrics.body();
    assert!(body.contains("path=\"ring\"} 2\n"), "{body}");
    assert!(metrics.ask("GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(metrics.ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    let Some(families) = parsed(&body) else { return };
    assert!(
        families.contains("sidestep_transferred_bytes counter bytes ['sidestep_transferred_bytes_total']"),
        "{families}"
    );
}

/// On request, how long the answers of each socket take.
#[test]
fn latencies_are_histograms_of_sockets() {
    let stage = Stage::new("latencies");
    let two = Two::start(&stage, &[], "pingpong");
    wait_until("a promotion", || stage.all(2, |socket| socket["reason"] == "Promoted"));
    let metrics = Metrics::start(&stage, &["--latency"]);
    let mut body = String::new();
    wait_until("answers of both ends", || {
        body = metrics.body();
        let counts = body.lines().filter(|line| line.starts_with("sidestep_response_seconds_count"));
        counts.filter(|line| !line.ends_with(" 0")).count() == 2
    });
    for pid in [&two.client, &two.server] {
        assert!(body.contains(&format!("sidestep_response_seconds_bucket{{pid=\"{pid}\"")), "{body}");
    }
    let port = format!(":{}\"", two.port);
    let sockets = body.lines().filter(|line| line.starts_with("sidestep_response_seconds_count"));
    assert!(sockets.into_iter().all(|line| line.contains(&port)), "{body}");
    if let Some(families) = parsed(&body) {
        assert!(families.contains("sidestep_response_seconds histogram seconds"), "{families}");
    }
    two.end();

    // The dashboard asks for nothing else.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli");
    let dashboard = fs::read_to_string(root.join("docs/grafana.json")).expect("a dashboard");
    serde_json::from_str::<serde_json::Value>(&dashboard).expect("JSON");
    let words = dashboard.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let asked: BTreeSet<&str> = words.filter(|word| word.starts_with("sidestep_")).collect();
    assert!(asked.len() >= 5, "{asked:?}");
    for name in asked {
        assert!(body.contains(&format!("\n{name}{{")), "{name} is not served:\n{body}");
    }
}

/// Clients that connect and say nothing keep no other waiting.
#[test]
fn silent_clients_keep_nobody_waiting() {
    let stage = Stage::new("silent");
    let metrics = Metrics::start(&stage, &[]);
    // All of them are still served when the answer has come. On a busy machine their time may be over by then: once is enough.
    wait_until("an answer beside silent clients", || {
        let silent: Vec<TcpStream> = (0..8).map(|_| metrics.connect()).collect();
        metrics.body();
        let waits = |mut stream: &TcpStream| {
            stream.set_nonblocking(true).expect("a socket");
            stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        };
        silent.iter().all(waits)
    });
}
