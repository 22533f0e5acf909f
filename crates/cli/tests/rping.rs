//! `sidestep rping` against itself: both roles, every option that changes what is on the wire.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A server, ended when it is dropped.
struct Server {
    process: Child,
    output: BufReader<ChildStdout>,
    port: String,
}

impl Server {
    /// One of `-v` and `-d` must be among the arguments, so that it tells its port.
    fn start(arguments: &[&str]) -> Self {
        let mut process = rping(&["-s", "-a", "127.0.0.1", "-p", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut output = BufReader::new(process.stdout.take().expect("output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let port = line.trim().rsplit(':').next().expect("a port").to_owned();
        assert!(line.starts_with("listening on 127.0.0.1:"), "{line:?}");
        Self { process, output, port }
    }

    fn ping(&self, arguments: &[&str]) -> Output {
        rping(&["-c", "-a", "127.0.0.1", "-p", &self.port]).args(arguments).output().expect("the program runs")
    }

    /// Waits for its end; gives whether it was a good one, and what it printed.
    fn finish(mut self) -> (bool, String, String) {
        let (mut output, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut output).expect("output");
        let stderr = self.process.stderr.take();
        stderr.expect("errors").read_to_string(&mut errors).expect("errors");
        let status = self.process.wait().expect("an end");
        (status.success(), output, errors)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn rping(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.arg("rping").args(arguments);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_client_pings_a_server() {
    let server = Server::start(&["-v", "-S", "100"]);
    let output = server.ping(&["-C", "3", "-S", "100", "-v", "-V"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let data = text(&output.stdout);
    assert_eq!(data.lines().count(), 3, "{data}");
    for (at, line) in data.lines().enumerate() {
        assert!(line.starts_with(&format!("ping data: rdma-ping-{at}: ")), "{line}");
        assert_eq!(line.len(), "ping data: ".len() + 99, "a byte of each ping is its zero");
    }
    let (good, output, errors) = server.finish();
    assert!(good, "{errors}");
    assert_eq!(output, data.replace("ping data", "server ping data"));
}

#[test]
fn every_way_of_talking_works() {
    for (server_options, client_options) in [
        (&["--no-crc"][..], &["--no-crc"][..]),
        (&["--no-crc"], &[]),
        (&["--markers"], &[]),
        (&[], &["--markers"]),
        (&["--markers"], &["--markers", "--no-crc"]),
        (&[], &["--revision", "1"]),
        (&["--markers"], &["--revision", "1", "--markers"]),
        (&[], &["--peer-to-peer"]),
        (&["--ready", "read"], &["--peer-to-peer"]),
        (&["--ready", "send"], &["--peer-to-peer", "--markers"]),
        (&[], &["--peer-to-peer", "--ready", "write,read"]),
        (&[], &["-I", "127.0.0.2", "--nudge", "0"]),
    ] {
        let server = Server::start(&[server_options, &["-d", "-S", "65535"]].concat());
        let output = server.ping(&[client_options, &["-C", "2", "-V", "-S", "65535"]].concat());
        assert!(output.status.success(), "{server_options:?} {client_options:?}: {}", text(&output.stderr));
        let (good, _, errors) = server.finish();
        assert!(good, "{server_options:?} {client_options:?}: {errors}");
    }
}

#[test]
fn a_persistent_server_serves_many_at_a_time() {
    let server = Server::start(&["-d", "-P"]);
    let clients: Vec<Child> = (0..4)
        .map(|_| rping(&["-c", "-a", "127.0.0.1", "-p", &server.port, "-C", "20", "-V"]).spawn().expect("it runs"))
        .collect();
    for client in clients {
        let output = client.wait_with_output().expect("an end");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

#[test]
fn what_cannot_work_is_said() {
    let server = Server::start(&["-d", "-S", "64"]);
    let output = server.ping(&["-C", "1", "-S", "1000"]);
    assert!(!output.status.success());
    let (good, _, errors) = server.finish();
    assert!(!good);
    assert!(errors.contains("start the server with -S 1000"), "{errors}");

    let server = Server::start(&["-d", "--ready", "read"]);
    let output = server.ping(&["-C", "1", "--peer-to-peer", "--ready", "write"]);
    assert!(text(&output.stderr).contains("understands"), "{}", text(&output.stderr));
    drop(server);

    let output = rping(&["-c", "-C", "1"]).output().expect("it runs");
    assert!(text(&output.stderr).contains("-a ADDRESS"), "{}", text(&output.stderr));
    let output = rping(&["-C", "1"]).output().expect("it runs");
    assert!(!output.status.success(), "neither client nor server");
}

/// A server that speaks only revision one closes; the client comes again.
#[test]
fn a_client_falls_back_to_revision_one() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let client = rping(&["-c", "-a", "127.0.0.1", "-p", &port, "-C", "1"]).stderr(Stdio::piped()).spawn();
    let client = client.expect("it runs");
    assert_eq!(request(&listener)[17], 2);
    assert_eq!(request(&listener)[17], 1);
    let output = client.wait_with_output().expect("an end");
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("the stream ended"), "{}", text(&output.stderr));
}

/// Takes one set-up frame, and closes.
fn request(listener: &TcpListener) -> Vec<u8> {
    let (mut stream, _): (TcpStream, _) = listener.accept().expect("a client");
    let mut header = vec![0; 20];
    stream.read_exact(&mut header).expect("a request");
    let mut private_data = vec![0; usize::from(u16::from_be_bytes([header[18], header[19]]))];
    stream.read_exact(&mut private_data).expect("its private data");
    header
}
