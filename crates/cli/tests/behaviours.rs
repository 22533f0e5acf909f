//! One small program per behaviour of sockets (`tests/behaviours`), run plain and under `sidestep run`, with both ends
//! in one process and in two: the transcripts and the exit status are equal. In `./test full` they also move to and
//! fro between the paths at random; `SIDESTEP_SEED` repeats one.

use std::{env, path::Path};

use sidestep_testkit::{
    process::{full, seed},
    sockets::{Behaviour, Launch, Promote},
};

macro_rules! behaviours {
    ($($name:ident)*) => {
        $(#[test] fn $name() { behaves_the_same(stringify!($name)); })*
        const LISTED: &[&str] = &[$(stringify!($name)),*];
    };
}

behaviours! {
    bad_arguments both_ways buffers bulk cancel cancel_in_kernel change_user changed_root children_past_libc close_in_recv close_range close_unread
    close_unread_recv connect_nonblocking const_vectors counts dontwait dup dup_anywhere epoll_before_connect epoll_dup
    epoll_edge epoll_edge_many epoll_edge_read epoll_edge_shut epoll_edge_stream epoll_errors epoll_exclusive epoll_level epoll_mixed
    epoll_nested epoll_oneshot epoll_threads exec_again exec_silent exit_small_writes exit_with_data fork_accept fork_after_end fork_and_want fork_daemon fork_exec fork_exec_silent fork_goes_on
    fork_handlers fork_holds fork_idle fork_low_water fork_reads fork_shares fork_shutdown fork_tells fork_turns fork_twice fork_waits fortified full_and_readable half_close inherited_set interrupted
    interrupted_send interrupted_waits ipv6 jump_lists jump_out killed_read killed_unread linger_close linger_others linger_reset
    lost_number low_water lowest_number many many_and_brief mapped message_lists messages more names nonblocking options order_across
    out_of_band own_malloc pass_unread peek pid_namespace poll poll_writable prefork prefork_epoll raw_syscalls
    readable_means_readable receive_timeout sandbox_after_fork sandbox_leaves sandbox_stopped sandbox_strict sandbox_waits select select_closed
    send_timeout sendfile short_lives shutdown_both shutdown_in_recv shutdown_read signal_input signal_storm signals_pending sigpipe
    sigpipe_kills small_stacks spawn spins splice stdio stdio_silent stdio_unread timestamps timestamps_late trunc two_readers
    unread_counts untouched vectors waitall write_after_close zero_length zerocopy
}

#[test]
fn every_program_is_listed() {
    for name in Behaviour::all() {
        assert!(LISTED.contains(&&*name), "{name} is not run by this test");
    }
}

/// Behaviours that once differed with some seed, which is tried some times since the order of processes differs, too.
#[test]
fn seeds_that_have_found_something() {
    for (name, mode, seed) in [("small_stacks", "pair", 581_477_994_366), ("unread_counts", "pair", 11_528)] {
        let behaviour = Behaviour::new(name);
        let launch = || Launch::Via(env!("CARGO_BIN_EXE_sidestep").into(), Promote::Random(seed));
        let launches: Vec<Launch> = std::iter::repeat_with(launch).take(6).collect();
        behaviour.expect_equal(mode, &launches, "", |launch| behaviour.command(launch, mode));
    }
}

/// A switch to the ring that is announced just while the reader looks, at the position that it has reached.
#[test]
fn switches_meet_a_reader_that_looks() {
    let behaviour = Behaviour::new("spins");
    let launch = |seed| Launch::Sidestep(env!("CARGO_BIN_EXE_sidestep").into(), Promote::Random(seed));
    let launches: Vec<Launch> = (1..=4).map(launch).collect();
    behaviour.expect_equal("pair", &launches, "", |launch| behaviour.command(launch, "pair"));
}

/// Links whose windows are always full: every answer waits for space, beside many others, and is told of it.
#[test]
fn small_windows_are_told_of() {
    let behaviour = Behaviour::new("epoll_edge_many");
    let launches = [Launch::Via(env!("CARGO_BIN_EXE_sidestep").into(), Promote::Default)];
    let mode = behaviour.modes[0];
    behaviour.expect_equal(mode, &launches, "", |launch| {
        let mut command = behaviour.command(launch, mode);
        command.env("SIDESTEP_SOVIA", "window=4,acks=2");
        command
    });
}

/// A NIC with a thread of its own: what that closes is closed, and it is not started where a handler has interrupted the program's
/// allocator.
#[test]
fn nics_with_threads_behave_the_same() {
    for (name, mode) in [("change_user", "roles"), ("own_malloc", "pair")] {
        let behaviour = Behaviour::new(name);
        let launches = [Launch::Iwarp(env!("CARGO_BIN_EXE_sidestep").into(), Promote::Default)];
        behaviour.expect_equal(mode, &launches, "", |launch| behaviour.command(launch, mode));
    }
}

fn behaves_the_same(name: &str) {
    let behaviour = Behaviour::new(name);
    for mode in behaviour.modes {
        let random = (full() || env::var_os("SIDESTEP_SEED").is_some()).then(seed);
        let launches = Launch::all(Path::new(env!("CARGO_BIN_EXE_sidestep")), random);
        behaviour.expect_equal(mode, &launches[1..], "", |launch| behaviour.command(launch, mode));
    }
}
