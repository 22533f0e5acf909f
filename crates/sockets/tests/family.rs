//! A stream that several processes hold after a `fork`: the one that forked keeps its rings until another uses the stream.

#![allow(unsafe_code)]

mod ends;

use std::{
    ffi::OsStr,
    io::{IoSlice, IoSliceMut},
    time::Instant,
};

use ends::pair;
use sidestep_sockets::calls;
use sidestep_testkit::process::{Child, Folder, PATIENCE, enter};

const MESSAGES: u64 = 1000;
const LEN: usize = 64;
const ROUNDS: u64 = 3;

#[test]
fn role() {
    enter(&[("idle", |_| idle_child()), ("reading", |_| reading_child()), ("counting", |_| counting_child())]);
}

#[test]
fn a_child_that_touches_nothing_moves_nothing() {
    in_a_process("idle");
}

#[test]
fn a_child_that_reads_takes_over() {
    in_a_process("reading");
}

#[test]
fn what_children_move_is_counted() {
    in_a_process("counting");
}

fn in_a_process(role: &str) {
    let folder = Folder::new("family");
    let settings = [("SIDESTEP_PROMOTE", OsStr::new("eager")), ("SIDESTEP_DIR", folder.path().as_os_str())];
    Child::start_with(role, &[], &settings).wait_success();
}

fn idle_child() {
    let ends = promoted();
    // SAFETY: it only waits.
    let child = fork(|| unsafe { libc::pause() });
    for round in 0..MESSAGES {
        exchange(ends, round);
    }
    // The child lives all the while.
    assert_eq!(ends.map(calls::paths), [Some((true, true)); 2]);
    end(child);
    close(ends);
}

fn reading_child() {
    let ends = promoted();
    send(ends[0], 1);
    send(ends[0], 2);
    let child = fork(|| {
        receive(ends[1], 1);
        send(ends[1], 3);
        0
    });
    receive(ends[0], 3);
    receive(ends[1], 2);
    wait(child);
    send(ends[1], 4);
    receive(ends[0], 4);
    // All were on TCP then. The family has counted what went there, so this process may leave it again.
    promote(ends);
    close(ends);
}

/// A child moves bytes over TCP before anything is promoted.
fn counting_child() {
    let ends = pair();
    for round in 0..ROUNDS {
        let child = fork(|| {
            exchange(ends, round);
            0
        });
        wait(child);
        exchange(ends, round);
    }
    promote(ends);
    let child = fork(|| {
        exchange(ends, ROUNDS);
        close(ends);
        0
    });
    wait(child);
    promote(ends);
    close(ends);
}

/// Two ends of one connection that are on rings both ways.
fn promoted() -> [i32; 2] {
    let ends = pair();
    promote(ends);
    ends
}

/// Uses a connection until it is on rings both ways.
fn promote(ends: [i32; 2]) {
    let until = Instant::now() + PATIENCE;
    while ends.map(calls::paths) != [Some((true, true)); 2] {
        assert!(Instant::now() < until, "it is not promoted");
        exchange(ends, 0);
    }
}

fn exchange(ends: [i32; 2], value: u64) {
    for way in 0..2 {
        send(ends[way], value);
        receive(ends[1 - way], value);
    }
}

fn send(fd: i32, value: u64) {
    let bytes = [value as u8; LEN];
    assert_eq!(calls::send(fd, &[IoSlice::new(&bytes)], 0), Ok(LEN));
}

fn receive(fd: i32, value: u64) {
    let mut bytes = [0; LEN];
    assert_eq!(calls::receive(fd, &mut [IoSliceMut::new(&mut bytes)], libc::MSG_WAITALL), Ok(LEN));
    assert_eq!(bytes, [value as u8; LEN]);
}

/// Forks as a program does, with what runs before and after.
fn fork(child: impl FnOnce() -> i32) -> i32 {
    calls::before_fork();
    // SAFETY: this process has one thread but those of the test's harness, of which the child needs none.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        calls::after_fork_in_child();
        let status = child();
        // SAFETY: it ends the child, and runs nothing of the parent's.
        unsafe { libc::_exit(status) };
    }
    calls::after_fork_in_parent();
    pid
}

fn end(child: i32) {
    // SAFETY: it was started here, and was not waited for.
    unsafe { libc::kill(child, libc::SIGKILL) };
    let mut status = 0;
    // SAFETY: the status is this function's own.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
}

fn wait(child: i32) {
    let mut status = 0;
    // SAFETY: the status is this function's own.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
}

fn close(ends: [i32; 2]) {
    for end in ends {
        calls::close(end).expect("it is open");
    }
}
