use std::{
    process::{Child, Command, Stdio},
    sync::Arc,
};

use super::*;
use crate::gate::GATE_LEN;

const VALUE: u64 = 0x5eed_0000_0000_0001;

fn gate(memory: &Memory) -> Gate {
    Gate::new(memory, 0, std::process::id(), VALUE).unwrap().expect("the same namespace")
}

fn bytes(span: &Span) -> Vec<u8> {
    let mut bytes = vec![0; span.len()];
    span.copy_out(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn bytes_go_both_ways_until_they_are_taken_back() {
    let memory = Memory::heap(GATE_LEN).unwrap();
    let gate = gate(&memory);
    let attachment = Attachment::probe(&memory, 0, std::process::id()).expect("a process may trace itself");
    let [source, target] = [0, 1].map(|_| Memory::heap(3 << 20).unwrap().span(0, 3 << 20).unwrap());
    let pattern: Vec<u8> = (0..3 << 20).map(|at: usize| (at % 251) as u8).collect();
    source.copy_in(0, &pattern).unwrap();
    let address = target.place(0) as u64;
    for (at, len) in [(0, 1), (3, 8), (8, 16), (5, 4099), (0, 3 << 20)] {
        assert!(attachment.write((&source, at, len), address + at as u64, gate.turn(), || true));
        assert!(bytes(&target)[at..at + len] == pattern[at..at + len]);
    }
    let back = Memory::heap(3 << 20).unwrap().span(0, 3 << 20).unwrap();
    assert!(attachment.read((&back, 0, 3 << 20), address, 0, || true) && bytes(&back) == pattern);
    assert!(!attachment.write((&source, 1, 3 << 20), address, 0, || true), "outside of the source");
    assert!(!attachment.write((&source, 0, 9), 16, 0, || true), "nothing is mapped there");
    assert!(!attachment.write((&back, 7, 9), address, 0, || false) && bytes(&target)[0] == 0);

    gate.withdraw();
    assert_eq!((gate.turn(), attachment.turn()), (1, 1));
    assert!(!attachment.write((&back, 7, 9), address, 0, || true) && bytes(&target)[0] == 0);
    assert!(attachment.write((&back, 7, 9), address, 1, || true) && bytes(&target)[0] == 7);
}

/// The writer has been let in and has not called the kernel yet: it is stopped there, as far as the owner can tell.
#[test]
fn who_was_held_up_on_the_way_copies_nothing() {
    let memory = Memory::heap(GATE_LEN).unwrap();
    let turnstile = Turnstile::new(&memory, 0).unwrap();
    drop(gate(&memory));
    let attachment = Attachment::probe(&memory, 0, std::process::id()).unwrap();
    let [source, target] = [1, 2].map(|byte| {
        let span = Memory::heap(64).unwrap().span(0, 64).unwrap();
        span.copy_in(0, &[byte; 64]).unwrap();
        span
    });
    let held_up = || {
        turnstile.withdraw(1, |_| false);
        true
    };
    assert!(!attachment.write((&source, 0, 64), target.place(0) as u64, 0, held_up));
    assert_eq!(bytes(&target), [2; 64]);
}

#[test]
fn other_values_and_other_processes_are_no_proof() {
    let memory = Memory::heap(GATE_LEN).unwrap();
    let own = std::process::id();
    assert!(Attachment::probe(&memory, 0, own).is_none(), "no value yet");
    drop(gate(&memory));
    assert!(Attachment::probe(&memory, 0, own).is_some());
    assert!(Attachment::probe(&memory, 0, 0).is_none());
    let mut other = sleeper();
    assert!(Attachment::probe(&memory, 0, other.id()).is_none(), "not in that process");
    let deadline = clock::now() + 300_000_000_000;
    while is_copying(other.id(), other.id(), &mut None) {
        assert!(clock::now() < deadline, "it sleeps in another call");
        std::thread::yield_now();
    }
    assert!(is_copying(own, rustix::thread::gettid().as_raw_nonzero().get() as u32, &mut None), "it runs");
    rustix::process::kill_process(rustix::process::Pid::from_child(&other), rustix::process::Signal::STOP).unwrap();
    rustix::process::waitpid(Some(rustix::process::Pid::from_child(&other)), rustix::process::WaitOptions::UNTRACED)
        .unwrap();
    assert!(!is_copying(other.id(), other.id(), &mut None), "stopped");
    let gate = Gate::new(&memory, 0, other.id(), VALUE).unwrap().unwrap();
    assert!(!gate.is_abandoned());
    // It says that it copies, and is stopped: nobody waits for it.
    memory.word64(0).unwrap().store(1 << 32 | u64::from(other.id()), Ordering::Release);
    gate.withdraw();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(gate.is_abandoned() && !is_copying(other.id(), other.id(), &mut None));
    gate.withdraw();
}

fn sleeper() -> Child {
    Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap()
}

/// A peer says that a thread of it copies that does nothing but run: it is waited for only so long.
#[test]
fn nobody_is_held_up_by_a_lie() {
    let memory = Memory::heap(GATE_LEN).unwrap();
    let mut liar = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let gate = Gate::new(&memory, 0, liar.id(), VALUE).unwrap().unwrap();
    memory.word64(0).unwrap().store(1 << 32 | u64::from(liar.id()), Ordering::Release);
    gate.withdraw();
    liar.kill().unwrap();
    liar.wait().unwrap();
}

/// One writes whole patterns, the owner takes the memory back and uses it itself: nothing comes afterwards.
#[test]
fn taking_back_waits_for_the_copy_under_way() {
    let memory = Memory::heap(GATE_LEN).unwrap();
    let gate = gate(&memory);
    let attachment = Arc::new(Attachment::probe(&memory, 0, std::process::id()).unwrap());
    let len = 256 << 10;
    let [source, target] = [0, 1].map(|_| Memory::heap(len).unwrap().span(0, len).unwrap());
    source.copy_in(0, &vec![1; len]).unwrap();
    let address = target.place(0) as u64;
    for _ in 0..200 {
        let turn = gate.turn();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| while attachment.write((&source, 0, len), address, turn, || true) {});
            while bytes(&target)[0] == 0 && !writer.is_finished() {}
            gate.withdraw();
            target.copy_in(0, &vec![0; len]).unwrap();
            writer.join().unwrap();
            assert!(bytes(&target) == vec![0; len], "written after it was taken back");
        });
    }
}
