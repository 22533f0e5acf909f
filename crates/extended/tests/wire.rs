//! What a connection that is extended in place carries, as tshark's dissectors of MPA, DDP and RDMAP see it: a request, a reply, and
//! then frames with good checksums and nothing else. Where no network namespace can be made, or
//! tshark is not installed, the test says so.

mod pair;

use std::{collections::HashMap, num::NonZeroU32, os::fd::OwnedFd, path::Path, process::Command};

use pair::{Pair, Provider, take};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, recv, socket_with, sockopt};
use sidestep_extended::{Kind, Rights};
use sidestep_testkit::process::Folder;

/// What passes the interfaces of this host, one TCP port of it.
struct Capture {
    socket: OwnedFd,
    port: u16,
}

/// The head of a capture file: little endian, version 2.4, whole packets of Ethernet.
const HEAD: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 1 << 18, 1];
/// Of Ethernet, of IPv4 without options; where in the latter the protocol is, and the ports behind it.
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const PROTOCOL: usize = 9;

impl Capture {
    fn start(port: u16) -> Option<Capture> {
        // ETH_P_ALL, in the order of the network.
        let every = Protocol::from_raw(NonZeroU32::new(u32::from(3u16.to_be())).unwrap());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, Some(every)).ok()?;
        sockopt::set_socket_recv_buffer_size_force(&socket, 32 << 20).ok()?;
        Some(Capture { socket, port })
    }

    fn finish(self, file: &Path) {
        let mut out: Vec<u8> = HEAD.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (mut packet, mut count) = (vec![0; 1 << 18], 0u32);
        // By the port of its sender: where the next byte belongs.
        let mut next: HashMap<u16, u32> = HashMap::new();
        while let Ok((len, _)) = recv(&self.socket, &mut packet[..], RecvFlags::empty()) {
            let packet = &packet[..len];
            let Some(Segment { from, sequence, payload }) = self.segment(packet).filter(|segment| segment.payload > 0)
            else {
                continue;
            };
            // The loopback interface shows each as it goes and as it comes, and a busy machine lets TCP send some again.
            let expected = next.entry(from).or_insert(sequence);
            if (sequence.wrapping_sub(*expected) as i32) < 0 {
                continue;
            }
            *expected = sequence.wrapping_add(payload);
            count += 1;
            let words = [0, count, len as u32, len as u32];
            out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            out.extend(packet);
        }
        std::fs::write(file, out).unwrap();
    }

    /// What a packet is of the captured port.
    fn segment(&self, packet: &[u8]) -> Option<Segment> {
        let tcp = packet.get(ETHERNET + IPV4..)?;
        let is_tcp = packet[ETHERNET] == 0x45 && i32::from(packet[ETHERNET + PROTOCOL]) == libc::IPPROTO_TCP;
        let head = tcp.get(..20).filter(|_| is_tcp)?;
        let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let sequence = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let payload = tcp.len().checked_sub(usize::from(head[12] >> 4) * 4)? as u32;
        [port(0), port(2)].contains(&self.port).then(|| Segment { from: port(0), sequence, payload })
    }
}

/// One segment of TCP.
struct Segment {
    from: u16,
    sequence: u32,
    /// Bytes of the stream in it.
    payload: u32,
}

/// What tshark tells of a capture.
fn tshark(file: &Path, arguments: &[&str]) -> String {
    let heuristic = ["-n", "-o", "tcp.try_heuristic_first:TRUE"];
    let others = ["--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct", "-r"];
    let output = Command::new("tshark").args(heuristic).args(others).arg(file).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One of each operation, none longer than a segment: tshark loses its place where the head of a frame is spread over two.
fn everything(pair: &Pair) {
    let (_region, remote) = pair.shared(65536, Rights::ALL);
    pair.near.put(&remote, 0, &[7; 20_000]).unwrap();
    pair.near.get(&remote, 0, &mut [0; 20_000]).unwrap();
    assert_eq!(pair.near.fetch_add(&remote, 32768, 3).unwrap(), 0);
    assert_eq!(pair.near.compare_swap(&remote, 32768, 3, 4).unwrap(), 3);
    let (ours, theirs) =
        (pair.near_stack.register(4096, Rights::NONE).unwrap(), pair.far_stack.register(4096, Rights::NONE).unwrap());
    pair.far.post_recv(vec![theirs.piece(0, 4096).unwrap()], 1).unwrap();
    pair.near.post_send(vec![ours.piece(0, 4000).unwrap()], 2).unwrap();
    pair.near.notify(9).unwrap();
    let kinds: Vec<Kind> = pair.far_completions(2).iter().map(|completion| completion.kind).collect();
    assert_eq!(kinds, [Kind::Receive, Kind::Notice]);
    pair.near.post_put(&remote, 0, vec![ours.piece(0, 4096).unwrap()], 3).unwrap();
    pair.near.fence().unwrap();
    take(&pair.near_queue, 2);
}

#[test]
fn the_connection_is_a_stream_of_rdmap() {
    // A host of its own, whose loopback interface carries nothing else: what does not fit into the capture would be missing.
    let Some(_host) = Provider::two_hosts() else { return };
    let (near, far) = Provider::InPlace.connected();
    let folder = Folder::new("wire");
    let file = folder.path().join("in-place.pcap");
    let port = near.local_addr().unwrap().port();
    let has_tshark = Command::new("tshark").arg("--version").output().is_ok();
    let Some(capture) = Capture::start(port).filter(|_| has_tshark) else {
        return println!("skipped: nothing can be captured here, or tshark is not installed");
    };
    let pair = Pair::over(&Provider::InPlace, near, far);
    everything(&pair);
    drop(pair);
    capture.finish(&file);
    // Everything that has bytes is a frame of MPA: the two of set-up first.
    let bytes = "tcp.len > 0";
    let all = tshark(&file, &["-Y", bytes]).lines().count();
    let frames = tshark(&file, &["-Y", &format!("{bytes} && (iwarp_mpa || iwarp_rdma || iwarp_ddp)")]).lines().count();
    let set_up = tshark(&file, &["-Y", "iwarp_mpa.key.req || iwarp_mpa.key.rep"]).lines().count();
    assert_eq!((frames, set_up), (all, 2), "{}", tshark(&file, &["-Y", bytes]));
    let text = tshark(&file, &["-V", "-Y", bytes]);
    for word in ["Malformed", "Bad CRC", "Bad length", "Exception"] {
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(word)).collect();
        assert!(lines.is_empty(), "{word}: {lines:#?}");
    }
    assert!(text.contains("(Good CRC32)"), "{text}");
    // Write, read request and response, send, atomic request and response.
    let opcodes = tshark(&file, &["-T", "fields", "-e", "iwarp_rdma.opcode", "-Y", "iwarp_rdma"]);
    for wanted in [0, 1, 2, 3, 10, 11] {
        let found = opcodes.split(['\n', ',']).any(|word| number(word) == Some(wanted));
        assert!(found, "opcode {wanted} among {opcodes}");
    }
}

fn number(text: &str) -> Option<u8> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u8::from_str_radix(hex, 16).ok())
}
