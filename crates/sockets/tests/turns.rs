//! A stream that changes its carrier: from VIA over TCP to rings, and back again, at any byte.

mod ends;

use std::{
    ffi::OsStr,
    io::{IoSlice, IoSliceMut},
    time::Instant,
};

use ends::pair;
use sidestep_sockets::{
    calls,
    config::config,
    registry::{CarrierName, Registry, SocketRecord},
};
use sidestep_testkit::process::{Child, Folder, PATIENCE, enter};

/// Changes of the kind of carrier that must be seen.
const TURNS: usize = 6;
#[test]
fn role() {
    enter(&[("turns", |_| turns())]);
}

#[test]
fn a_stream_goes_over_via_and_rings_in_turn() {
    for seed in 1..4 {
        let (folder, promote) = (Folder::new("turns"), format!("random:{seed}"));
        let settings = [
            ("SIDESTEP_CARRIER", OsStr::new("both")),
            ("SIDESTEP_PROMOTE", OsStr::new(&promote)),
            ("SIDESTEP_DIR", folder.path().as_os_str()),
        ];
        Child::start_with("turns", &[], &settings).wait_success();
    }
}

fn turns() {
    let ends = pair();
    let (mut seen, mut sent) = (Vec::new(), [0u64; 2]);
    let end = Instant::now() + PATIENCE;
    for round in 0.. {
        assert!(Instant::now() < end, "only these carriers in {round} rounds: {seen:?}");
        for way in 0..2 {
            // Lengths around those of packets, and some that fill nothing.
            let len = [1, 4, 300, 5_000, 20_000][round % 5];
            let bytes: Vec<u8> = (0..len).map(|at| byte(sent[way] + at)).collect();
            assert_eq!(calls::send(ends[way], &[IoSlice::new(&bytes)], 0), Ok(bytes.len()));
            let mut got = vec![0; bytes.len()];
            let count = calls::receive(ends[1 - way], &mut [IoSliceMut::new(&mut got)], libc::MSG_WAITALL);
            assert_eq!(count, Ok(bytes.len()), "round {round}");
            assert!(got == bytes, "round {round}: wrong bytes");
            sent[way] += len;
        }
        if let Some(via) = carried_by(ends[0])
            && seen.last() != Some(&via)
        {
            seen.push(via);
        }
        if seen.len() > TURNS {
            break;
        }
    }
    assert!(seen[0], "VIA comes first");
    calls::close(ends[0]).expect("it is open");
    let mut rest = [0; 1];
    assert_eq!(calls::receive(ends[1], &mut [IoSliceMut::new(&mut rest)], 0), Ok(0));
    calls::close(ends[1]).expect("it is open");
}

/// Whether the end with this number is on VIA (`true`) or on rings both ways; `None` while it is not.
fn carried_by(fd: i32) -> Option<bool> {
    if calls::paths(fd) != Some((true, true)) {
        return None;
    }
    let sockets = Registry::look(&config().directory)?.sockets();
    let own = |socket: &&SocketRecord| socket.pid == std::process::id() && socket.fd == fd as u32;
    sockets.iter().find(own).map(|socket| socket.carrier == Some(CarrierName::Via))
}

fn byte(at: u64) -> u8 {
    (at ^ at >> 8 ^ at >> 16) as u8
}
