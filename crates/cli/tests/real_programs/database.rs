//! PostgreSQL with psql and pgbench. The server refuses to be root, so all of them run as `postgres` then.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
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
    let own = stage.copies();
    if is_root() {
        // Its sockets are known to its user.
        stage.ask(
            &["runuser", "-u", "postgres", "--"].map(Path::new).into_iter().chain([own.as_path()]).collect::<Vec<_>>(),
        );
    }
    let (stage, server) = (&stage, Server::start(&stage, programs, own));
    let (under, port) = (|name: &str| server.run(stage, name), &server.port);

    let at = ["-h", "127.0.0.1", "-p", port, "-U", "postgres"];
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

/// A server that has the folder of a test to itself, and keeps to this host.
pub struct Server {
    /// The folder of its programs.
    programs: PathBuf,
    /// A copy of `sidestep` that its user can reach.
    sidestep: PathBuf,
    /// Where it listens.
    pub port: String,
    _process: Bounded,
}

impl Server {
    /// Starts one of these programs, and waits until it is ready.
    pub fn start(stage: &Stage, programs: PathBuf, sidestep: PathBuf) -> Server {
        let (port, data) = (free_port().to_string(), stage.files.join("cluster"));
        let tool = |name: &str| stage.as_user("postgres", &programs.join(name));
        let mut initdb = tool("initdb");
        initdb.args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"]).arg(&data);
        Bounded::start(&mut initdb, PATIENCE).wait().expect("initdb");
        let mut command = stage.run_as("postgres", &sidestep, programs.join("postgres"));
        command.arg("-D").arg(&data).args(["-p", &port, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c"]);
        command.arg(format!("unix_socket_directories={}", stage.files.display()));
        // The test ends it by a kill, after which nobody would clear /dev/shm.
        command.args(["-c", "dynamic_shared_memory_type=mmap"]);
        let mut process = start(&mut command);
        wait_until(&mut process, || {
            let mut probe = tool("pg_isready");
            probe.args(["-q", "-h", "127.0.0.1", "-p", &port]).status().is_ok_and(|status| status.success())
        });
        Server { programs, sidestep, port, _process: process }
    }

    /// One of its programs, as its user.
    pub fn run(&self, stage: &Stage, name: impl AsRef<Path>) -> Command {
        stage.run_as("postgres", &self.sidestep, self.programs.join(name))
    }
}

/// The folder of the newest server's programs.
pub fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<PathBuf> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
    folders.retain(|folder| ["postgres", "initdb", "pgbench", "psql"].iter().all(|name| folder.join(name).is_file()));
    folders.sort();
    folders.pop()
}
