//! Every kind of frame that the engine sends, as tshark's dissectors of MPA, DDP and RDMAP see it.
//!
//! Two ends talk in memory; what they say goes into a capture file, one TCP segment per frame; tshark
//! must find the same frames, the same lengths and opcodes, and valid CRCs and markers. Where tshark is
//! not installed the test says so, unless `SIDESTEP_TSHARK=required`.

mod pair;
mod pcap;

use pair::{End, Pair, config, pattern};
use pcap::Capture;
use sidestep_iwarp::*;
use sidestep_wire::mpa::fpdu;
use sidestep_wire::mpa::marker::Spacing;
use std::process::Command;

/// What is in one segment of the capture.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// From the initiator.
    forth: bool,
    /// The length of the ULPDU; none for a set-up frame.
    ulpdu: Option<usize>,
    opcode: Option<u8>,
}

/// A conversation, and what it should look like.
struct Talk {
    name: &'static str,
    pair: Pair,
    crc: bool,
    frames: Vec<(bool, Vec<u8>)>,
    seen: Vec<Seen>,
    positions: [u64; 2],
}

impl Talk {
    fn new(name: &'static str, initiator: Config, responder: Config) -> Self {
        let crc = initiator.crc || responder.crc;
        let mut pair = Pair::new(initiator, responder);
        for end in [&mut pair.initiator, &mut pair.responder] {
            // One frame at a time.
            end.budget = 1;
            end.window = u64::MAX - 1;
        }
        let mut talk = Self { name, pair, crc, frames: Vec::new(), seen: Vec::new(), positions: [0; 2] };
        talk.drive();
        talk
    }

    /// Moves frames to and fro until there are none.
    fn drive(&mut self) {
        loop {
            let forth = self.carry(true);
            let back = self.carry(false);
            let asked = self.pair.responder.events.iter().any(|event| matches!(event, Event::Requested { .. }));
            let answer = self.pair.accept_with.take_if(|_| asked);
            if let Some(answer) = &answer {
                self.pair.responder.connection.accept(answer).unwrap();
                self.pair.responder.collect();
            }
            if !forth && !back && answer.is_none() {
                return;
            }
        }
    }

    fn carry(&mut self, forth: bool) -> bool {
        let mut moved = false;
        loop {
            let Pair { now, initiator, responder, .. } = &mut self.pair;
            let (from, to) = if forth { (initiator, responder) } else { (responder, initiator) };
            let bytes = from.output(*now);
            if bytes.is_empty() {
                return moved;
            }
            moved = true;
            to.input(*now, &bytes);
            self.note(forth, bytes);
        }
    }

    /// Notes a frame as this crate reads it.
    fn note(&mut self, forth: bool, bytes: Vec<u8>) {
        let agreement = self.pair.initiator.agreement();
        let mut seen = Seen { forth, ulpdu: None, opcode: None };
        if !bytes.starts_with(b"MPA ID Re") {
            let agreement = agreement.expect("established");
            let interval = if forth { agreement.markers_sent } else { agreement.markers_received };
            let position = &mut self.positions[usize::from(forth)];
            let packet = fpdu::Packet::new_checked(bytes.as_slice(), Spacing::new(interval, *position)).unwrap();
            assert_eq!(packet.wire_len(), bytes.len(), "{}: one FPDU in a segment", self.name);
            *position += bytes.len() as u64;
            let mut control = [0; 2];
            packet.copy_ulpdu(&mut control);
            seen.ulpdu = Some(packet.ulpdu_len());
            seen.opcode = Some(control[1] & 0x0f);
        }
        self.seen.push(seen);
        self.frames.push((forth, bytes));
    }
}

/// Every operation in both directions, with messages of one and of several segments.
fn everything(talk: &mut Talk) {
    let rights = Rights::READ | Rights::WRITE | Rights::ATOMIC | Rights::INVALIDATE;
    let Pair { initiator, responder, .. } = &mut talk.pair;
    let regions =
        [initiator, responder].map(|end| [0u8, 1, 2].map(|seed| end.region(pattern(8192, seed), 0x1000, rights)));
    for forth in [true, false] {
        let (own, other) = (regions[usize::from(!forth)], regions[usize::from(forth)]);
        let Pair { initiator, responder, .. } = &mut talk.pair;
        let (from, to) = if forth { (initiator, responder) } else { (responder, initiator) };
        for _ in 0..16 {
            to.post_receive(8192);
        }
        one_of_each(from, own[0], other);
        talk.drive();
    }
    for end in [&talk.pair.initiator, &talk.pair.responder] {
        assert_eq!(end.fault(), None);
        assert_eq!(end.peer_reason(), None);
    }
}

fn one_of_each(end: &mut End, own: Stag, [other, doomed, doomed_too]: [Stag; 3]) {
    for len in [0, 1, 2, 3, 4, 100, 5000] {
        end.write(&pattern(len, 3), other, 0x1000);
        end.send(&pattern(len, 4), SendKind::default());
    }
    end.send(b"event", SendKind { solicited: true, invalidate: None });
    end.read((own, 0x1000), (other, 0x1000), 0);
    end.read((own, 0x1000), (other, 0x1001), 5000);
    end.immediate(0x0102_0304_0506_0708);
    let work = WorkId(end.number());
    end.connection.post_immediate(work, 9, true).unwrap();
    end.atomic(other, 0x1008, Operation::FetchAdd { add: 3, mask: 0 });
    end.atomic(other, 0x1008, Operation::CompareSwap { swap: 4, swap_mask: 5, compare: 6, compare_mask: 7 });
    end.send(b"invalidate", SendKind { solicited: false, invalidate: Some(doomed) });
    end.send(b"event and invalidate", SendKind { solicited: true, invalidate: Some(doomed_too) });
}

/// All conversations.
fn talks() -> Vec<Talk> {
    let plain = || Config { crc: false, ..config() };
    let marked = |config: Config| Config { markers: Some(Interval::STANDARD), ..config };
    let old = |config: Config| Config { revision: Revision::One, ..config };
    let mut talks = vec![
        Talk::new("revision 2 with CRC", config(), config()),
        Talk::new("revision 1 with CRC", old(config()), config()),
        Talk::new("no CRC", plain(), plain()),
        Talk::new("markers in both directions", marked(config()), marked(config())),
        // tshark 4.0 takes markers in one direction for markers in both, so there is no such conversation.
        Talk::new("markers in both directions, no CRC", old(marked(plain())), marked(plain())),
    ];
    for talk in &mut talks {
        everything(talk);
    }
    for rtr in [
        RtrModes { write: true, ..RtrModes::default() },
        RtrModes { read: true, ..RtrModes::default() },
        RtrModes { send: true, ..RtrModes::default() },
    ] {
        let initiator = Config { peer_to_peer: true, rtr, ..config() };
        talks.push(Talk::new("peer-to-peer", initiator, config()));
    }
    talks.extend(terminated());
    talks
}

/// Conversations that end with a terminate message: with a tagged header, with a read request, with an
/// untagged header, without any.
fn terminated() -> Vec<Talk> {
    let mut talks = Vec::new();
    for fault in 0..4 {
        let mut talk = Talk::new("terminate", config(), config());
        let own = talk.pair.initiator.region(pattern(100, 1), 0, Rights::NONE);
        let initiator = &mut talk.pair.initiator;
        match fault {
            0 => drop(initiator.write(b"to nowhere", Stag(77), 0)),
            1 => drop(initiator.read((own, 0), (Stag(77), 0), 10)),
            2 => drop(initiator.send(b"to nobody", SendKind::default())),
            _ => initiator.connection.abort(talk.pair.now),
        }
        talk.drive();
        talks.push(talk);
    }
    talks
}

#[test]
fn tshark_sees_the_frames_that_were_sent() {
    if Command::new("tshark").arg("--version").output().is_err() {
        let required = std::env::var("SIDESTEP_TSHARK").is_ok_and(|value| value == "required");
        assert!(!required, "tshark is not installed");
        println!("skipped: tshark is not installed");
        return;
    }
    let talks = talks();
    let mut capture = Capture::new();
    for (at, talk) in talks.iter().enumerate() {
        let mut stream = capture.stream(FIRST_PORT + at as u16);
        for (forth, bytes) in &talk.frames {
            stream.segment(*forth, bytes);
        }
    }
    let file = std::env::temp_dir().join(format!("sidestep-tshark-{}.pcap", std::process::id()));
    std::fs::write(&file, capture.finish()).unwrap();
    let fields = tshark(
        &file,
        &[
            "-T",
            "fields",
            "-e",
            "tcp.stream",
            "-e",
            "tcp.srcport",
            "-e",
            "iwarp_mpa.key.req",
            "-e",
            "iwarp_mpa.key.rep",
        ],
        &["-e", "iwarp_mpa.ulpdulength", "-e", "iwarp_rdma.opcode", "-Y", "tcp.len > 0"],
    );
    let text = tshark(&file, &["-V"], &["-Y", "tcp.len > 0"]);
    std::fs::remove_file(&file).unwrap();

    let mut found: Vec<Vec<Seen>> = vec![Vec::new(); talks.len()];
    for line in fields.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        let [stream, port, request, reply, length, opcode] = words[..] else { panic!("{line:?}") };
        let stream: usize = stream.parse().unwrap();
        let setup = !request.is_empty() || !reply.is_empty();
        found[stream].push(Seen {
            forth: port.parse::<u16>().unwrap() != FIRST_PORT + stream as u16,
            ulpdu: (!setup).then(|| length.parse().unwrap_or_else(|_| panic!("not an FPDU: {line:?}"))),
            opcode: (!setup).then(|| parse_number(opcode)),
        });
    }
    for (talk, found) in talks.iter().zip(&found) {
        assert_eq!(&talk.seen, found, "{}", talk.name);
    }
    for opcode in 0..=11 {
        assert!(talks.iter().flat_map(|talk| &talk.seen).any(|seen| seen.opcode == Some(opcode)), "opcode {opcode}");
    }
    for word in ["Malformed", "Bad CRC", "Bad length", "Exception"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    let summed: usize = talks.iter().filter(|talk| talk.crc).map(|talk| fpdus(talk).count()).sum();
    assert_eq!(text.matches("(Good CRC32)").count(), summed, "FPDUs with a CRC");
    assert!(text.contains("FPDU back pointer"), "markers");
}

fn fpdus(talk: &Talk) -> impl Iterator<Item = &Seen> {
    talk.seen.iter().filter(|seen| seen.ulpdu.is_some())
}

fn parse_number(text: &str) -> u8 {
    text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u8::from_str_radix(hex, 16)).expect("a number")
}

/// Runs tshark without the dissectors of what programs put into sends, and without those of the ports.
fn tshark(file: &std::path::Path, first: &[&str], then: &[&str]) -> String {
    let output = Command::new("tshark")
        .args(["-n", "-o", "tcp.try_heuristic_first:TRUE"])
        .args(["--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct", "-r"])
        .arg(file)
        .args(first)
        .args(then)
        .output()
        .expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The responder of the first conversation.
const FIRST_PORT: u16 = 7174;
