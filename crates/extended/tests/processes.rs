//! Two processes with an extended socket between them: the order against the stream, and death.

mod pair;

use std::io::{Read, Write};

use pair::{
    Provider,
    far::{End, enabled, start},
    outcome_of,
    provider::on_every_provider,
    soon, take,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use sidestep_extended::{Error, Kind, Rights};
use sidestep_fabric::{self as fabric, CloseReason};
use sidestep_sys::clock;
use sidestep_testkit::process::{self, Child, Role};

#[test]
fn role() {
    process::enter(&[("owner", owner), ("writer", writer), ("stopped", stopped)]);
}

mod stream {
    use super::{Provider, a_get_after_bytes_sees_what_was_done_before_them, a_put_before_bytes_is_seen_after_them};

    crate::pair::provider::beside_the_stream!(
        a_get_after_bytes_sees_what_was_done_before_them,
        a_put_before_bytes_is_seen_after_them,
    );
}

on_every_provider!(a_killed_peer_ends_every_operation, a_killed_peer_ends_reads_that_never_fail_by_themselves,);

/// Owns a region, and answers each byte with one after it has changed the region's first word.
fn owner(role: Role) {
    let mut end = enabled(&role);
    let rights = if role.arguments[2] == "read" { Rights::READ } else { Rights::ALL };
    let region = end.stack.register(4096, rights).unwrap();
    end.socket.export(&region, rights, 1).unwrap();
    let (word, mut byte) = (region.word64(0).unwrap(), [0]);
    let mut round = 0;
    while end.stream.read(&mut byte).unwrap() == 1 {
        round += 1;
        word.store(round, std::sync::atomic::Ordering::Release);
        end.stream.write_all(&byte).unwrap();
    }
}

const ROUNDS: u64 = 3000;

/// What the other end did before it wrote bytes is seen by operations that begin after they were read.
fn a_get_after_bytes_sees_what_was_done_before_them(provider: &Provider) {
    for rights in ["read", "all"] {
        let (mut child, stream) = start(provider, "owner", &[rights]);
        let mut end = End::enable(stream, provider.stack());
        let remote = end.socket.import(Some(soon())).unwrap();
        assert_eq!(remote.reads_directly(), provider.maps());
        for round in 1..=ROUNDS {
            end.stream.write_all(b"x").unwrap();
            end.stream.read_exact(&mut [0]).unwrap();
            let mut word = [0; 8];
            end.socket.get(&remote, 0, &mut word).unwrap();
            assert_eq!(u64::from_le_bytes(word), round);
        }
        end.stream.shutdown(std::net::Shutdown::Write).unwrap();
        child.wait_success();
    }
}

/// Writes rounds into the parent's region, and a byte behind each.
fn writer(role: Role) {
    let mut end = enabled(&role);
    let remote = end.socket.import(Some(soon())).unwrap();
    let local = end.stack.register(4096, Rights::NONE).unwrap();
    for round in 1..=ROUNDS {
        let bytes = round.to_le_bytes();
        if round % 2 == 0 {
            end.socket.put(&remote, 8, &bytes).unwrap();
        } else {
            local.write(0, &bytes).unwrap();
            end.socket.post_put(&remote, 8, vec![local.piece(0, 8).unwrap()], round).unwrap();
            end.socket.fence().unwrap();
        }
        end.stream.write_all(b"x").unwrap();
        end.stream.read_exact(&mut [0]).unwrap();
    }
}

/// What was put before bytes were written is there when they are read.
fn a_put_before_bytes_is_seen_after_them(provider: &Provider) {
    let (mut child, stream) = start(provider, "writer", &[]);
    let mut end = End::enable(stream, provider.stack());
    let region = end.stack.register(4096, Rights::ALL).unwrap();
    end.socket.export(&region, Rights::ALL, 1).unwrap();
    for round in 1..=ROUNDS {
        end.stream.read_exact(&mut [0]).unwrap();
        let mut word = [0; 8];
        region.read(8, &mut word).unwrap();
        assert_eq!(u64::from_le_bytes(word), round);
        end.stream.write_all(b"x").unwrap();
    }
    child.wait_success();
}

/// Enables its socket, exports a region and a half-served one, and then does nothing more.
fn stopped(role: Role) {
    let end = enabled(&role);
    let region = end.stack.register(4096, Rights::READ).unwrap();
    end.socket.export(&region, Rights::READ, 1).unwrap();
    let served = end.stack.register(4096, Rights::WRITE).unwrap();
    end.socket.export(&served, Rights::WRITE, 2).unwrap();
    let deadline = soon();
    while !role.control.has_news() && clock::now() < deadline {
        end.stack.progress();
    }
    loop {
        std::thread::park();
    }
}

/// Whatever an operation waits for ends when the other process is killed: memory that is mapped, memory that is served, and
/// messages. By the median, since a busy machine may let one of them wait.
fn a_killed_peer_ends_every_operation(provider: &Provider) {
    let mut times: Vec<u64> = (0..KILLS).map(|_| time_to_hear_of_a_kill(provider)).collect();
    times.sort_unstable();
    println!("the end of a killed peer is told after {times:?} ns");
    assert!(times[KILLS / 2] < PROMPT_NS, "{times:?}");
}

const KILLS: usize = 5;
/// What a program may count on.
const PROMPT_NS: u64 = 100_000_000;

/// Lets no thread of a child run any more.
fn stop(child: &Child) {
    let process = Pid::from_raw(child.id() as i32).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    waitpid(Some(process), WaitOptions::UNTRACED).unwrap();
}

fn time_to_hear_of_a_kill(provider: &Provider) -> u64 {
    let (mut child, stream) = start(provider, "stopped", &[]);
    let end = End::enable(stream, provider.stack());
    let mapped = end.socket.import(Some(soon())).unwrap();
    let served = end.socket.import(Some(soon())).unwrap();
    child.control.say("park");
    let local = end.stack.register(4096, Rights::NONE).unwrap();
    end.socket.post_recv(vec![local.piece(0, 64).unwrap()], 1).unwrap();
    stop(&child);
    // Nobody serves it any more, no thread of its library either: this one waits for the process.
    end.socket.post_put(&served, 0, vec![local.piece(0, 64).unwrap()], 2).unwrap();
    child.kill();
    child.wait();
    let began = clock::now();
    let completions = take(&end.queue, 3);
    let took = clock::now() - began;
    let kinds: Vec<_> = completions.iter().map(outcome_of).collect();
    let reset = Err(libc::ECONNRESET);
    assert!(kinds.contains(&(Kind::Receive, 1, reset)) && kinds.contains(&(Kind::Put, 2, reset)), "{kinds:?}");
    assert_eq!(completions[2].outcome, Err(Error::Fabric(fabric::Error::Closed(CloseReason::Died))));
    let refused = end.socket.get(&mapped, 0, &mut [0; 8]).unwrap_err();
    assert_eq!(refused.errno(), libc::ECONNRESET);
    took
}

/// A program that only reads mapped memory, and looks at nothing else, hears of the end too.
fn a_killed_peer_ends_reads_that_never_fail_by_themselves(provider: &Provider) {
    let mut times: Vec<u64> = (0..KILLS).map(|_| time_to_fail_after_a_kill(provider)).collect();
    times.sort_unstable();
    assert!(times[KILLS / 2] < PROMPT_NS, "{times:?}");
}

fn time_to_fail_after_a_kill(provider: &Provider) -> u64 {
    let (mut child, stream) = start(provider, "stopped", &[]);
    let end = End::enable(stream, provider.stack());
    let mapped = end.socket.import(Some(soon())).unwrap();
    child.kill();
    child.wait();
    let began = clock::now();
    while end.socket.get(&mapped, 0, &mut [0; 8]).is_ok() {
        assert!(clock::now() - began < process::PATIENCE_NS, "reads of a dead peer's memory go on");
    }
    clock::now() - began
}
