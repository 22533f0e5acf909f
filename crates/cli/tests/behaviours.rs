//! One small program per behaviour of sockets (`tests/behaviours`), run plain and under `sidestep run`, with both ends
//! in one process and in two: the transcripts and the exit status are equal. In `./test full` they also move to and
//! fro between the paths at random; `SIDESTEP_SEED` repeats one.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use sidestep_testkit::{
    process::{full, seed},
    sockets::{Bounded, Ended, Launch, compile},
};

macro_rules! behaviours {
    ($($name:ident)*) => {
        $(#[test] fn $name() { behaves_the_same(stringify!($name)); })*
        const LISTED: &[&str] = &[$(stringify!($name)),*];
    };
}

behaviours! {
    bad_arguments both_ways buffers bulk cancel cancel_in_kernel changed_root close_in_recv close_range close_unread
    close_unread_recv connect_nonblocking const_vectors counts dontwait dup dup_anywhere epoll_before_connect epoll_dup
    epoll_edge epoll_edge_read epoll_edge_shut epoll_edge_stream epoll_errors epoll_exclusive epoll_level epoll_mixed
    epoll_nested epoll_oneshot epoll_threads exit_with_data fork_accept fork_daemon fork_exec fork_handlers fork_holds
    fork_idle fork_reads fork_shares fork_waits fortified full_and_readable half_close inherited_set interrupted
    interrupted_send interrupted_waits ipv6 jump_out killed_read killed_unread linger_close linger_others linger_reset
    lost_number low_water lowest_number many mapped message_lists messages more names nonblocking options order_across
    out_of_band own_malloc peek poll poll_writable prefork prefork_epoll raw_syscalls readable_means_readable
    receive_timeout sandbox_stopped sandbox_strict sandbox_waits select select_closed send_timeout sendfile short_lives
    shutdown_both shutdown_in_recv shutdown_read signal_storm signals_pending sigpipe sigpipe_kills spawn splice stdio
    timestamps trunc two_readers unread_counts vectors waitall write_after_close zero_length zerocopy
}

#[test]
fn every_program_is_listed() {
    let entries = fs::read_dir(folder()).expect("the folder of behaviours");
    let files = entries.map(|entry| PathBuf::from(entry.expect("an entry").file_name()));
    let sources = files.filter(|file| file.extension().is_some_and(|extension| extension == "c"));
    for source in sources {
        let name = source.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(LISTED.contains(&&*name), "{name} is not run by this test");
    }
}

fn behaves_the_same(name: &str) {
    let source = folder().join(name).with_extension("c");
    let own_roles = fs::read_to_string(&source).expect("a source").contains("#define OWN_ROLES");
    let built = env::current_exe().expect("a path").ancestors().nth(2).expect("a profile").join("behaviours");
    let program = compile(&source, &built, &[]);
    let modes: &[&str] = if own_roles { &["roles"] } else { &["alone", "pair"] };
    for mode in modes {
        let random = (full() || env::var_os("SIDESTEP_SEED").is_some()).then(seed);
        let launches = Launch::all(Path::new(env!("CARGO_BIN_EXE_sidestep")), random);
        let (plain, others) = launches.split_first().expect("kernel TCP");
        let expected = run(plain, &program, mode);
        assert!(expected.success(), "{name} {mode} {plain}: {}", shown(&expected));
        for launch in others {
            let got = run(launch, &program, mode);
            assert!(
                got.status == expected.status && got.stdout == expected.stdout,
                "{name} {mode} {launch} differs from kernel TCP:\n{}{}",
                difference(&expected.stdout, &got.stdout),
                shown(&got),
            );
        }
    }
}

fn run(launch: &Launch, program: &Path, mode: &str) -> Ended {
    Bounded::start(launch.command(program).arg(mode), LIMIT).wait()
}

fn shown(ended: &Ended) -> String {
    format!("{:?}\n{}", ended.status, ended.stderr)
}

/// The first lines in which two transcripts differ.
fn difference(expected: &str, got: &str) -> String {
    let (mut left, mut right) = (expected.lines(), got.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (left.next(), right.next()) {
            (None, None) => return String::new(),
            (left, right) if left == right => {}
            (left, right) => {
                let [left, right] = [left, right].map(|line| line.unwrap_or("(nothing)"));
                return format!("line {number}, kernel TCP: {left}\nline {number}, Sidestep:   {right}\n");
            }
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli").join("tests/behaviours")
}

/// Longer than any of them takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(40);
