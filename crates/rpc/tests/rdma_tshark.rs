//! RPC over RDMA as tshark's dissectors see it: headers, chunks and messages, none malformed.
//!
//! Client and server talk through a proxy that keeps what they say; it goes into a capture file, one TCP segment per
//! frame. Where tshark is not installed the test says so, unless `SIDESTEP_TSHARK=required`.

#[path = "../../iwarp/tests/pcap/mod.rs"]
mod pcap;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use sidestep_rpc::xdr::{Reader, Writer};
use sidestep_rpc::{Binding, Call, Client, ClientOptions, Procedure, Refusal, Server, Service};
use sidestep_wire::mpa::marker::Spacing;
use sidestep_wire::mpa::{fpdu, frame};

/// A program number for tests.
const ECHO: Procedure = Procedure { program: 0x2000_0112, version: 1, procedure: 1 };
const MOST: u32 = 1 << 20;

struct Echo;

impl Service for Echo {
    fn program(&self) -> u32 {
        ECHO.program
    }

    fn version(&self) -> u32 {
        ECHO.version
    }

    fn call(&self, _: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        out.opaque(input.opaque(MOST)?, MOST).map_err(Refusal::of_results)
    }
}

const BINDING: Binding = Binding {
    argument: |_, _| Some(4),
    result: |_, _| Some(4),
    result_limit: |_, arguments| Some(u32::from_be_bytes(*arguments.first_chunk()?)),
};

/// What passed, in pieces: whether from the client, and the bytes.
type Said = Arc<Mutex<Vec<(bool, Vec<u8>)>>>;

/// Stands between a client and a server, and keeps what they say.
fn proxy(server: std::net::SocketAddr, said: Said) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(server).unwrap();
        for (forth, mut from, mut to) in [
            (true, client.try_clone().unwrap(), server.try_clone().unwrap()),
            (false, server.try_clone().unwrap(), client.try_clone().unwrap()),
        ] {
            let said = said.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    said.lock().unwrap().push((forth, buffer[..count].to_vec()));
                    if to.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

/// The frames of a conversation, in the order in which they were complete.
fn frames(said: &[(bool, Vec<u8>)]) -> Vec<(bool, Vec<u8>)> {
    let mut rests = [Vec::new(), Vec::new()];
    let mut set_up = [false; 2];
    let mut frames = Vec::new();
    for (forth, bytes) in said {
        let direction = usize::from(*forth);
        rests[direction].extend_from_slice(bytes);
        loop {
            let rest = &mut rests[direction];
            let needed = if set_up[direction] {
                fpdu::needed(rest, Spacing::none())
            } else {
                frame::expected_len(rest, !forth).unwrap().unwrap_or(usize::MAX)
            };
            if rest.len() < needed {
                break;
            }
            frames.push((*forth, rest.drain(..needed).collect()));
            set_up[direction] = true;
        }
    }
    frames
}

#[test]
fn tshark_finds_no_fault() {
    if Command::new("tshark").arg("--version").output().is_err() {
        let required = std::env::var("SIDESTEP_TSHARK").is_ok_and(|value| value == "required");
        assert!(!required, "tshark is not installed");
        println!("skipped: tshark is not installed");
        return;
    }
    let mut capture = pcap::Capture::new();
    // RPC over RDMA has this port.
    for (port, binding) in (20049..).zip([Binding::NONE, BINDING]) {
        let server = Server::builder().service(Echo).binding(binding).rdma("127.0.0.1:0").unwrap().start().unwrap();
        let said = Said::default();
        let address = proxy(server.addresses().next().unwrap(), said.clone());
        let options = ClientOptions { binding, ..ClientOptions::default() };
        let client = Client::connect_with(&format!("rdma:{address}").parse().unwrap(), options).unwrap();
        for size in [0, 100, 5000, 20_001] {
            let bytes = vec![7; size];
            let echoed = client.call(ECHO, |out| out.opaque(&bytes, MOST), |input| Ok(input.opaque(MOST)?.len()));
            assert_eq!(echoed.unwrap(), size);
        }
        drop((client, server));
        let mut stream = capture.stream(port);
        for (forth, bytes) in frames(&said.lock().unwrap()) {
            stream.segment(forth, &bytes);
        }
    }
    let file = std::env::temp_dir().join(format!("sidestep-rpcrdma-{}.pcap", std::process::id()));
    std::fs::write(&file, capture.finish()).unwrap();
    let run = |arguments: &[&str]| {
        let preferences = ["-n", "-o", "tcp.try_heuristic_first:TRUE", "-r"];
        let output = Command::new("tshark").args(preferences).arg(&file).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let whole = run(&["-V"]);
    let headers = run(&["-Y", "rpcordma", "-T", "fields", "-e", "rpcordma.msg_type"]);
    let malformed = run(&["-Y", "_ws.malformed"]);
    let _ = std::fs::remove_file(&file);
    assert_eq!(malformed, "", "{whole}");
    assert!(!whole.contains("Bad CRC32"), "{whole}");
    // Four calls and four replies, with and without a binding.
    assert!(headers.lines().count() >= 16, "{headers}\n{whole}");
    // RDMA_MSG and RDMA_NOMSG.
    for kind in ["0", "1"] {
        assert!(headers.lines().any(|line| line == kind), "{kind} in {headers}");
    }
}
