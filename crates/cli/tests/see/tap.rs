//! `sidestep tap`, with tshark as the judge.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use super::stage::{Killed, SIDESTEP, Stage, Two, wait_until};

/// A tap that is on.
struct Tap(Killed);

impl Tap {
    fn start(stage: &Stage, arguments: &[&str]) -> Tap {
        let mut command = Command::new(SIDESTEP);
        command.arg("tap").args(arguments).env("SIDESTEP_DIR", &stage.0).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        assert!(line.contains("capturing"), "{line}");
        Tap(Killed(child))
    }

    /// Interrupts it, and waits for its end.
    fn end(mut self) {
        interrupt(&self.0.0);
        assert!(self.0.0.wait().expect("it ends").success());
    }
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).expect("it lives");
}

/// What tshark prints for a capture, unless there is none.
fn tshark(capture: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("tshark").arg("-n").arg("-r").arg(capture).args(arguments).output();
    let Ok(output) = output else {
        eprintln!("left out: no tshark");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The bytes of a direction, in the order of the capture.
fn payload(capture: &Path, filter: &str) -> Option<Vec<u8>> {
    let text = tshark(capture, &["-Y", filter, "-T", "fields", "-e", "tcp.payload"])?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    Some((0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("hex")).collect())
}

/// How many packets are in a capture: its enhanced packet blocks.
fn packets(capture: &Path) -> usize {
    let bytes = fs::read(capture).expect("a capture");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() {
        count += usize::from(word(at) == 6);
        at += word(at + 4) as usize;
    }
    count
}

fn is_on_ring(socket: &serde_json::Value) -> bool {
    [&socket["reads_from"], &socket["writes_to"]] == ["ring", "ring"]
}

/// A conversation from its first captured byte to its end, without a complaint of tshark's, and with the right contents.
#[test]
fn tshark_follows_what_was_tapped() {
    let stage = Stage::new("tap");
    let capture = stage.0.join("capture.pcapng");
    let mut two = Two::start(&stage, &[], "recv");
    assert_eq!(two.line(), "settled");
    wait_until("both on rings", || stage.all(2, is_on_ring));
    let filter = format!("port={}", two.port);
    let tap = Tap::start(&stage, &["-w", capture.to_str().expect("letters"), &filter]);
    // The client is outside the library while it waits for a line: it finds the tap at one of its next calls.
    let size = || fs::metadata(&capture).map_or(0, |status| status.len());
    let begin = size();
    let mut sent = 0;
    while sent < 2000 {
        two.say("y");
        assert_eq!(two.line(), "echo");
        sent += 1;
    }
    let word = "sidestep tap";
    for letter in word.chars() {
        two.say(&letter.to_string());
        assert_eq!(two.line(), "echo");
    }
    let port = two.port.clone();
    two.end();
    wait_until("bytes in the capture", || size() > begin);
    tap.end();
    let Some(complaints) =
        tshark(&capture, &["-Y", "tcp.analysis.flags || _ws.malformed || ip.checksum.status == \"Bad\""])
    else {
        return;
    };
    assert_eq!(complaints, "");
    let flags = tshark(&capture, &["-T", "fields", "-e", "tcp.flags.str"]).expect("as before");
    let flags: Vec<&str> = flags.lines().map(|line| line.trim_matches('·')).collect();
    assert_eq!((flags[0], flags[1].replace('·', ""), flags[2]), ("S", "AS".to_owned(), "A"), "{flags:?}");
    assert_eq!(flags.iter().filter(|flags| flags.contains('F')).count(), 2, "{flags:?}");
    for direction in [format!("tcp.dstport == {port}"), format!("tcp.srcport == {port}")] {
        let bytes = payload(&capture, &format!("{direction} && tcp.len > 0")).expect("as before");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.ends_with(word) && text.len() > 1000, "{} bytes of {direction}", text.len());
        assert_eq!(text.trim_start_matches('y'), word, "{direction}");
    }
    let followed = tshark(&capture, &["-q", "-z", "follow,tcp,ascii,0"]).expect("as before");
    assert!(!followed.contains("missing") && followed.contains(&format!(":{port}")), "{followed}");
}

/// With a filter that does not fit, nothing; with the process of either end, both directions. A transfer goes on with every
/// byte while taps come and go, and one that was killed is no obstacle.
#[test]
fn taps_come_and_go_while_programs_run() {
    let stage = Stage::new("taps");
    let capture = stage.0.join("capture.pcapng");
    let file = capture.to_str().expect("letters");
    let two = Two::start(&stage, &[], "duplex");
    wait_until("on rings", || stage.sockets(&[]).iter().any(is_on_ring));
    let other = if two.port == "1" { "port=2" } else { "port=1" };
    let empty = Tap::start(&stage, &["-w", file, other]);
    let second = stage.sidestep(&["tap", "-w", "/dev/null"]);
    assert!(String::from_utf8_lossy(&second.stderr).contains("another tap is on"), "{second:?}");
    empty.end();
    let head = fs::metadata(&capture).expect("a file").len();
    assert!(head < 500, "{head} bytes for nothing");
    let mut killed = Tap::start(&stage, &["-w", "/dev/null"]);
    killed.0.0.kill().expect("it lives");
    drop(killed);
    // Its heart has stopped; nobody else waits until that is noticed.
    let pid = format!("pid={}", two.server);
    wait_until("another one may begin", || {
        let output = stage.sidestep(&["tap", "-c", "200", "-s", "64", "-w", file, &pid]);
        output.status.success()
    });
    assert_eq!(packets(&capture), 200);
    let Some(ports) = tshark(&capture, &["-Y", "tcp.len > 0", "-T", "fields", "-e", "tcp.srcport"]) else { return };
    let ports: std::collections::BTreeSet<&str> = ports.lines().collect();
    assert!(ports.len() == 2 && ports.contains(two.port.as_str()), "{ports:?}");
    two.end();
}

/// An older capture stays as it was where a tap does not begin: for a process that is not there or not under Sidestep, beside
/// another tap, or with options that are wrong.
#[test]
fn a_tap_that_does_not_begin_leaves_the_file() {
    let stage = Stage::new("old-capture");
    let capture = stage.0.join("capture.pcapng");
    let file = capture.to_str().expect("letters");
    fs::write(&capture, "an older capture").expect("a file");
    let refused = |arguments: &[&str], why: &str| {
        let output = stage.sidestep(&[&["tap", "-w", file], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{arguments:?}: {said}");
        assert_eq!(fs::read_to_string(&capture).expect("a file"), "an older capture", "{arguments:?}");
    };
    refused(&[], "nothing to tap");
    let mut two = Two::start(&stage, &[], "recv");
    assert_eq!(two.line(), "settled");
    refused(&["pid=2147483646"], "there is no process");
    refused(&[&format!("pid={}", std::process::id())], "does not run under Sidestep");
    refused(&["port=x"], "port is a number");
    refused(&["-c", "0"], "-c");
    let other = Tap::start(&stage, &["-w", "/dev/null"]);
    refused(&[&format!("port={}", two.port)], "another tap is on");
    other.end();
    two.end();
}
