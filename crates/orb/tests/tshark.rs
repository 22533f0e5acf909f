//! What we say over TCP, as tshark's dissector of GIOP sees it: it finds every message, and nothing wrong with one.
//!
//! Where tshark is not installed the test says so, unless `SIDESTEP_TSHARK=required`.

#[path = "../../iwarp/tests/pcap/mod.rs"]
mod pcap;
mod peer;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use peer::{Peer, exercise_anys, exercise_calls, exercise_types, exercise_wide, serve};
use sidestep_orb::{Object, Orb, Stub, Version};

/// The first port of the capture, and the most connections of a version of GIOP: the client's, and that of the server, which
/// passes a call on.
const PORT: u16 = 2809;
const CONNECTIONS: usize = 4;

/// What went over each connection, in order: whether from the client, and the bytes.
type Records = Arc<Mutex<Vec<Vec<(bool, Vec<u8>)>>>>;

/// Passes connections on and records them.
fn recorded(server: String) -> (String, Records) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let records = Records::default();
    let kept = records.clone();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
            records.lock().unwrap().push(Vec::new());
            let pass = |forth: bool, mut from: TcpStream, mut to: TcpStream| {
                let records = records.clone();
                move || {
                    let mut bytes = vec![0; 1 << 16];
                    while let Ok(count @ 1..) = from.read(&mut bytes) {
                        records.lock().unwrap()[number].push((forth, bytes[..count].to_vec()));
                        if to.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Write);
                }
            };
            std::thread::spawn(pass(false, server.try_clone().unwrap(), client.try_clone().unwrap()));
            std::thread::spawn(pass(true, client, server));
        }
    });
    (address, kept)
}

/// The messages of a recorded connection, each whole.
fn messages(record: &[(bool, Vec<u8>)]) -> Vec<(bool, Vec<u8>)> {
    let mut open = [Vec::new(), Vec::new()];
    let mut messages = Vec::new();
    for (forth, bytes) in record {
        let open = &mut open[usize::from(*forth)];
        open.extend_from_slice(bytes);
        while open.len() >= 12 {
            let size = u32::from_ne_bytes(open[8..12].try_into().unwrap()) as usize + 12;
            if open.len() < size {
                break;
            }
            messages.push((*forth, open.drain(..size).collect()));
        }
    }
    assert!(open.iter().all(Vec::is_empty), "a message is not complete");
    messages
}

fn converse(version: Version) -> Vec<Vec<(bool, Vec<u8>)>> {
    let server = Orb::builder().tcp("127.0.0.1:0").build().unwrap();
    let (own, _) = serve(&server);
    server.name_key("Peer", own.object()).unwrap();
    let shown = format!("{:?}", own.object());
    let (address, records) = recorded(shown.rsplit("tcp:").next().unwrap().to_owned());
    let client = Orb::builder().giop(version).timeout(Duration::from_secs(10)).build().unwrap();
    let peer: Peer = {
        let text = format!("corbaloc:iiop:{version}@{address}/Peer");
        Peer::from_object(client.string_to_object(&text).unwrap())
    };
    exercise_types(&peer);
    exercise_calls(&peer);
    if version == Version::V1_2 {
        exercise_wide(&peer);
        exercise_anys(&peer);
    }
    let _ = peer.object().narrow::<Object>().unwrap();
    assert!(!peer.object().non_existent().unwrap());
    server.shutdown();
    client.shutdown();
    let records = records.lock().unwrap();
    records.iter().map(|record| messages(record)).collect()
}

#[test]
fn tshark_finds_nothing_wrong() {
    if Command::new("tshark").arg("--version").output().is_err() {
        assert!(std::env::var_os("SIDESTEP_TSHARK").is_none_or(|value| value != "required"), "tshark is not installed");
        eprintln!("left out: tshark is not installed");
        return;
    }
    let mut capture = pcap::Capture::new();
    let mut count = 0;
    for (number, version) in [Version::V1_0, Version::V1_1, Version::V1_2].into_iter().enumerate() {
        for (connection, said) in converse(version).into_iter().enumerate() {
            count += said.len();
            let mut stream = capture.stream(PORT + (number * CONNECTIONS + connection) as u16);
            for (forth, message) in said {
                message.chunks(60_000).for_each(|part| stream.segment(forth, part));
            }
        }
    }
    let file = std::env::temp_dir().join(format!("sidestep-giop-{}.pcap", std::process::id()));
    std::fs::write(&file, capture.finish()).unwrap();
    let shark = |more: &[&str]| {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(&file).args([
            "-o",
            "tcp.desegment_tcp_streams:TRUE",
            "-o",
            "giop.desegment_giop_messages:TRUE",
        ]);
        for number in 0..3 * CONNECTIONS as u16 {
            command.args(["-d", &format!("tcp.port=={},giop", PORT + number)]);
        }
        let output = command.args(more).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let found = shark(&["-Y", "giop", "-T", "fields", "-e", "giop.type"]);
    let wrong = shark(&["-Y", "_ws.malformed || (giop && _ws.expert.severity >= \"Warning\")", "-V"]);
    std::fs::remove_file(&file).unwrap();
    let types: usize = found.lines().map(|line| line.split(',').count()).sum();
    assert_eq!((types, wrong.as_str()), (count, ""));
}
