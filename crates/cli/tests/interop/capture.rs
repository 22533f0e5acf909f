//! What passed the guest's network card, as tshark sees it.
//!
//! QEMU's network cuts the stream into other segments than the sender did, and tshark 4.0 loses its place
//! where an FPDU begins with the last few bytes of a segment. So the streams are put together and cut
//! again, one frame a segment, before tshark judges them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sidestep_wire::mpa::marker::Spacing;
use sidestep_wire::mpa::{fpdu, frame};

use crate::pcap::Capture;
use crate::report::Report;

pub fn run(report: &mut Report, capture: &Path) {
    report.case("tshark", "the conversations above, both directions", "both", || check(capture));
}

/// The same for RPC over RDMA.
pub fn run_rpc(report: &mut Report, capture: &Path) {
    report.case("nfs", "RPC over RDMA as tshark sees it", "both", || check_rpc(capture));
}

/// No frame is malformed, and both kinds of messages are there. The dissector of NFS is left out: tshark 4.0 does not put the data
/// of write chunks back on iWARP, and misses them in what the kernel replies.
fn check_rpc(capture: &Path) -> Result<String> {
    let (file, _) = cut(capture)?;
    let output = Command::new("tshark")
        .args(["-n", "-o", "tcp.try_heuristic_first:TRUE", "--disable-protocol", "nfs", "-r"])
        .arg(&file)
        .args(["-Y", "rpcordma || _ws.malformed", "-T", "fields", "-e", "rpcordma.msg_type", "-e", "_ws.malformed"])
        .output()
        .context("starting tshark")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8_lossy(&output.stdout);
    let count = |kind: &str| text.lines().filter(|line| line.trim_end() == kind).count();
    let (inline, chunks) = (count("0"), count("1"));
    ensure!(inline > 100 && chunks > 10, "{inline} RDMA_MSG and {chunks} RDMA_NOMSG");
    if let Some(line) = text.lines().find(|line| !matches!(line.trim_end(), "0" | "1")) {
        bail!("tshark says {line:?}");
    }
    Ok(format!("{inline} RDMA_MSG and {chunks} RDMA_NOMSG, none malformed"))
}

/// No frame is malformed, every CRC is good, and each opcode that siw knows is there.
fn check(capture: &Path) -> Result<String> {
    let (file, frames) = cut(capture)?;
    let shown = ["-T", "fields", "-e", "iwarp_mpa.key.req", "-e", "iwarp_mpa.key.rep", "-e", "iwarp_rdma.opcode"];
    let lines = tshark(&file, &[&shown[..], &["-Y", "tcp.len > 0"]].concat())?;
    let (mut counts, mut setups) = ([0usize; 16], 0);
    for line in lines.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        match words[..] {
            [_, _, opcode] if !opcode.is_empty() => {
                let number = usize::from_str_radix(opcode.trim_start_matches("0x"), 16).context("an opcode")?;
                *counts.get_mut(number).with_context(|| format!("opcode {number}"))? += 1;
            }
            [request, reply, _] if !request.is_empty() || !reply.is_empty() => setups += 1,
            _ => bail!("tshark does not know a frame as iWARP: {line:?}"),
        }
    }
    let fpdus: usize = counts.iter().sum();
    ensure!(fpdus + setups == frames, "tshark sees {fpdus} FPDUs and {setups} set-up frames of {frames} frames");
    for (opcode, count) in counts.iter().enumerate().take(6) {
        ensure!(*count > 0, "opcode {opcode} is not seen");
    }
    let text = tshark(&file, &["-O", "iwarp_mpa", "-Y", "iwarp_mpa || _ws.malformed"])?;
    for word in ["Malformed", "Bad CRC32", "Bad length"] {
        if let Some(line) = text.lines().find(|line| line.contains(word)) {
            bail!("tshark says {line:?}");
        }
    }
    let good = text.matches("(Good CRC32)").count();
    ensure!(good > 1000, "only {good} good CRCs");
    Ok(format!("{setups} set-up frames and {fpdus} FPDUs, none malformed, {good} with a good CRC, none with a bad one"))
}

/// The iWARP connections of a capture with one frame a segment, in another file, and how many frames those are.
fn cut(capture: &Path) -> Result<(PathBuf, usize)> {
    let streams = streams(capture)?;
    let mut cut = Capture::new();
    let mut frames = 0;
    for (port, stream) in (FIRST_PORT..).zip(streams.values()) {
        let mut into = cut.stream(port);
        for (forth, bytes) in &stream.frames {
            into.segment(*forth, bytes);
        }
        frames += stream.frames.len();
    }
    let file = capture.with_extension("cut.pcap");
    std::fs::write(&file, cut.finish()).context("writing the capture")?;
    Ok((file, frames))
}

/// One connection: its frames in the order in which they were complete.
#[derive(Default)]
struct Stream {
    initiator: u16,
    frames: Vec<(bool, Vec<u8>)>,
    /// Of the responder, of the initiator.
    directions: [Direction; 2],
}

#[derive(Default)]
struct Direction {
    /// Bytes that were taken from the stream.
    taken: u64,
    /// Bytes of an unfinished frame.
    rest: Vec<u8>,
    /// Segments that came before others, by their positions.
    early: BTreeMap<u64, Vec<u8>>,
    set_up: bool,
}

/// All iWARP connections of a capture.
fn streams(capture: &Path) -> Result<BTreeMap<u32, Stream>> {
    let shown = ["-T", "fields", "-e", "tcp.stream", "-e", "tcp.srcport", "-e", "tcp.seq", "-e", "tcp.payload"];
    // The shells of the guest are on port 7000.
    let lines = tshark(capture, &[&shown[..], &["-Y", "tcp.len > 0 && tcp.port != 7000"]].concat())?;
    let mut streams = BTreeMap::<u32, Stream>::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        let [number, port, position, payload] = words[..] else { bail!("from tshark: {line:?}") };
        let port = port.parse()?;
        let stream = streams.entry(number.parse()?).or_insert_with(|| Stream { initiator: port, ..Stream::default() });
        stream.segment(port, position.parse::<u64>()? - 1, bytes(payload)?)?;
    }
    Ok(streams)
}

impl Stream {
    fn segment(&mut self, port: u16, position: u64, bytes: Vec<u8>) -> Result<()> {
        let forth = port == self.initiator;
        let direction = &mut self.directions[usize::from(forth)];
        direction.early.insert(position, bytes);
        while let Some((position, bytes)) = direction.early.first_key_value() {
            if *position > direction.taken {
                break;
            }
            // What was sent again is left out.
            let known = usize::try_from(direction.taken - position)?.min(bytes.len());
            direction.rest.extend_from_slice(&bytes[known..]);
            direction.taken += (bytes.len() - known) as u64;
            direction.early.pop_first();
        }
        while let Some(len) = direction.frame_len(!forth)? {
            self.frames.push((forth, direction.rest.drain(..len).collect()));
            direction.set_up = true;
        }
        Ok(())
    }
}

impl Direction {
    /// The length of the first frame, if it is all there.
    fn frame_len(&self, reply: bool) -> Result<Option<usize>> {
        let needed = if self.set_up {
            fpdu::needed(&self.rest, Spacing::none())
        } else {
            frame::expected_len(&self.rest, reply)?.unwrap_or(usize::MAX)
        };
        Ok((self.rest.len() >= needed).then_some(needed))
    }
}

fn bytes(hex: &str) -> Result<Vec<u8>> {
    let digits: Vec<char> = hex.chars().filter(|letter| *letter != ':').collect();
    digits.chunks(2).map(|pair| Ok(u8::from_str_radix(&String::from_iter(pair), 16)?)).collect()
}

/// Runs tshark without the dissectors of what programs put into sends, and without those of the ports.
fn tshark(capture: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("tshark")
        .args(["-n", "-o", "tcp.try_heuristic_first:TRUE"])
        .args(["--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct", "-r"])
        .arg(capture)
        .args(arguments)
        .output()
        .context("starting tshark")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The responder of the first connection in the capture for tshark.
const FIRST_PORT: u16 = 21000;
