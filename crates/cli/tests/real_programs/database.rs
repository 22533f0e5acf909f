//! PostgreSQL with psql and pgbench. The server refuses to be root, so all of them run as `postgres` then.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::kit::{Stage, free_port, is_root, start, wait_until};

#[test]
pub fn postgresql() {
    let Some(programs) = programs() else {
        eprintln!("left out: PostgreSQL is not installed");
        return;
    };
    let mut stage = Stage::new("postgres");
    stage.open_to_all();
    let (port, own) = (free_port().to_string(), stage.copies());
    if is_root() {
        // Its sockets are known to its user.
        stage.ask(
            &["runuser", "-u", "postgres", "--"].map(Path::new).into_iter().chain([own.as_path()]).collect::<Vec<_>>(),
        );
    }
    let stage = stage;
    let data = stage.files.join("data");
    let tool = |name: &str| stage.as_user("postgres", &programs.join(name));
    let mut initdb = tool("initdb");
    initdb.args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"]).arg(&data);
    Bounded::start(&mut initdb, PATIENCE).wait().expect("initdb");

    let under = |name: &str| stage.run_as("postgres", &own, programs.join(name));
    let mut command = under("postgres");
    command.arg("-D").arg(&data).args(["-p", &port, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c"]);
    command.arg(format!("unix_socket_directories={}", stage.files.display()));
    // The test ends it by a kill, after which nobody would clear /dev/shm.
    command.args(["-c", "dynamic_shared_memory_type=mmap"]);
    let mut server = start(&mut command);
    wait_until(&mut server, || {
        let mut probe = tool("pg_isready");
        probe.args(["-q", "-h", "127.0.0.1", "-p", &port]).status().is_ok_and(|status| status.success())
    });

    let at = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres"];
    let mut fill = under("pgbench");
    Bounded::start(fill.args(at).args(["-i", "-q", "-s", "1", "postgres"]), PATIENCE).wait().expect("pgbench -i");
    let mut ask = under("psql");
    ask.args(at).args(["-At", "-c", "select sum(n), count(*) from generate_series(1, 200000) n", "postgres"]);
    assert_eq!(Bounded::start(&mut ask, PATIENCE).wait().expect("psql").trim(), "20000100000|200000");
    let mut rows = under("psql");
    rows.args(at).args(["-At", "-c", "select n from generate_series(1, 100000) n", "postgres"]);
    let text = Bounded::start(&mut rows, PATIENCE).wait().expect("psql");
    assert!(text.lines().map(|line| line.parse().unwrap_or(0)).eq(1..=100_000), "psql: wrong rows");

    for (clients, questions) in [("1", "8000"), ("4", "2000")] {
        let mut load = under("pgbench");
        load.args(at).args(["-S", "-n", "-M", "prepared", "-t", questions, "-c", clients, "postgres"]);
        let (ended, sockets) = stage.watch(Bounded::start(&mut load, PATIENCE));
        let text = ended.expect("pgbench");
        assert!(text.contains("number of failed transactions: 0 "), "{text}");
        sockets.expect_promoted("pgbench");
    }
}

/// The folder of the newest server's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<PathBuf> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
    folders.retain(|folder| ["postgres", "initdb", "pgbench", "psql"].iter().all(|name| folder.join(name).is_file()));
    folders.sort();
    folders.pop()
}
