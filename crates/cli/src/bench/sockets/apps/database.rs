//! PostgreSQL, with pgbench. The server refuses to run as root, so both run as the user `postgres` then.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::super::super::place::Placement;
use super::super::super::record::Metric;
use super::super::Effort;
use super::super::outcome::Outcome;
use super::super::pair::{Via, output};
use super::service::{Folder, Service, command, free_port};
use super::{Figure, WAYS, measure};

const FIGURES: &[Figure] = &[
    Figure { what: "pgbench select only, one client", metric: Metric::Requests, must: 3.0 },
    Figure { what: "pgbench select only, 4 clients", metric: Metric::Requests, must: 2.0 },
];

/// Measures.
pub fn run(effort: &Effort) -> Result<Vec<Outcome>> {
    let skipped = |why: String| Ok(vec![Outcome::skipped("postgres", "pgbench", why)]);
    let Some(programs) = programs() else { return skipped("left out: PostgreSQL is not installed".into()) };
    let database = match Database::make(programs) {
        Ok(database) => database,
        Err(error) => return skipped(format!("left out: {error:#}")),
    };
    let ways = [WAYS, &[(Via::Unix, Placement::Free), (Via::Unix, Placement::Same)]].concat();
    measure(effort, "postgres", &ways, FIGURES, |via, placement| {
        let port = free_port()?;
        let _server = database.start(effort, via, placement, port)?;
        let mut values = Vec::new();
        for clients in ["1", "4"] {
            let host = if via == Via::Unix { database.folder.0.clone().into_os_string() } else { "127.0.0.1".into() };
            let mut arguments: Vec<OsString> =
                ["-S", "-n", "-M", "prepared", "-T", "1", "-c", clients, "-j", "1", "-p", &port.to_string(), "-h"]
                    .map(OsString::from)
                    .to_vec();
            arguments.extend([host, "postgres".into()]);
            let mut client = database.command(effort, via, placement, "pgbench", &arguments)?;
            let text = output(&mut client, Duration::from_secs(20))?;
            let line = text.lines().find_map(|line| line.strip_prefix("tps = "));
            let value = line.and_then(|rest| rest.split(' ').next()).and_then(|word| word.parse().ok());
            values.push(value.with_context(|| format!("no figure in\n{text}"))?);
        }
        Ok(values)
    })
}

/// A database cluster in a folder of its own.
struct Database {
    folder: Folder,
    programs: PathBuf,
}

impl Database {
    fn make(programs: PathBuf) -> Result<Database> {
        let folder = Folder::new("postgres")?;
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777))?;
        let database = Database { folder, programs };
        let data = database.data();
        let mut initdb = as_user(Command::new(database.programs.join("initdb")));
        initdb.args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"]).arg(&data);
        output(&mut initdb, Duration::from_secs(60))?;
        let port = free_port()?;
        let _server = database.serve(Command::new(database.programs.join("postgres")), port)?;
        let mut fill = as_user(Command::new(database.programs.join("pgbench")));
        fill.args(["-i", "-q", "-s", "1", "-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres", "postgres"]);
        output(&mut fill, Duration::from_secs(60))?;
        drop(_server);
        Ok(database)
    }

    fn data(&self) -> PathBuf {
        self.folder.0.join("data")
    }

    fn start(&self, effort: &Effort, via: Via, placement: Placement, port: u16) -> Result<Service> {
        self.serve(command(via, placement, effort.cores, self.programs.join("postgres"))?, port)
    }

    fn serve(&self, command: Command, port: u16) -> Result<Service> {
        let mut server = as_user(command);
        server.arg("-D").arg(self.data()).args(["-p", &port.to_string(), "-c", "fsync=off", "-c"]);
        server.arg("listen_addresses=127.0.0.1").arg("-c");
        server.arg(format!("unix_socket_directories={}", self.folder.0.display()));
        let ready = || {
            let mut probe = as_user(Command::new(self.programs.join("pg_isready")));
            probe.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]);
            probe.status().is_ok_and(|status| status.success())
        };
        Service::start(&mut server)?.until(ready)
    }

    fn command(
        &self,
        effort: &Effort,
        via: Via,
        placement: Placement,
        program: &str,
        arguments: &[OsString],
    ) -> Result<Command> {
        let mut client = as_user(command(via, placement, effort.cores, self.programs.join(program))?);
        client.args(arguments).env("PGUSER", "postgres");
        Ok(client)
    }
}

/// The same command, as a user that PostgreSQL accepts.
fn as_user(command: Command) -> Command {
    if !rustix::process::geteuid().is_root() {
        return command;
    }
    let mut changed = Command::new("runuser");
    changed.args(["-u", "postgres", "--"]).arg(command.get_program()).args(command.get_args());
    changed.current_dir(std::env::temp_dir());
    changed
}

/// The folder of the newest server's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<PathBuf> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
    folders.retain(|folder: &PathBuf| has_all(folder));
    folders.sort();
    folders.pop()
}

fn has_all(folder: &Path) -> bool {
    ["postgres", "initdb", "pgbench", "pg_isready"].iter().all(|program| folder.join(program).is_file())
}
