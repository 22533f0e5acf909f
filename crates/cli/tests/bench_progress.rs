//! What a person at a terminal sees of a bench while it runs: what is measured now, and how long the rest takes.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use sidestep_testkit::process::full;

/// Columns of the terminal.
const COLUMNS: u16 = 60;

/// What a suite says on a terminal, line by line.
fn said(arguments: &str) -> Vec<String> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("a terminal");
    unlockpt(&terminal).expect("a terminal");
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).expect("a terminal");
    let path = ptsname(&terminal, Vec::new()).expect("a name").into_string().expect("letters");
    let end = File::options().read(true).write(true).open(path).expect("its other end");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
    command.args(["bench", "--quick"]).args(arguments.split(' ')).stdout(Stdio::null()).stderr(end);
    let mut child = command.spawn().expect("it starts");
    drop(command);
    let mut bytes = Vec::new();
    // It ends with an error when nobody has the other end any more.
    let _ = File::from(terminal).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(child.wait().expect("it ends").success(), "{arguments}: {text}");
    text.split("\r\x1b[K").map(str::to_owned).collect()
}

#[test]
fn every_suite_says_how_long_the_rest_takes() {
    let mut suites =
        vec!["rpc --only null,shm --rounds 2", "vmmc --only memory,costs", "extended --only sizes,traffic"];
    if full() {
        suites.extend([
            "fabric --only cacheline --rounds 3",
            "sockets --only rate,foreign --rounds 1",
            "orb --only null,channel --rounds 2",
            "filters --only compress --rounds 2",
            "peers --only tcp --rounds 2",
            "cache",
        ]);
    }
    for suite in suites {
        let said = said(suite);
        // The cache has its own word where nginx or wrk is missing.
        if said.iter().any(|line| line.contains("left out")) {
            continue;
        }
        assert!(said.iter().any(|line| line.contains("about ") && line.ends_with(" left")), "{suite}: {said:#?}");
        assert!(said.iter().all(|line| line.len() < COLUMNS.into()), "a line goes on: {suite}: {said:#?}");
        assert_eq!(said.last().map(String::as_str), Some(""), "{suite}: {said:#?}");
    }
}
