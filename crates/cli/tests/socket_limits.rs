//! Connections where something is short: descriptors, file sizes, room in the registry, a registry at all. They work, on
//! TCP where it must be. And many connections at once.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use sidestep_sockets::reason::Reason;
use sidestep_testkit::{
    process::{Folder, PATIENCE, full},
    sockets::{Bounded, Ended, compile},
};

const ECHO: &str = r#"{"Echo":{"size":64,"wait":"block","connections":1}}"#;
const SIDESTEP: &str = env!("CARGO_BIN_EXE_sidestep");

/// Both ends run under this limit of the shell.
fn works_under(limit: &str, registry: Option<&Path>) {
    let exchange = r#"{"Exchange":{"size":64,"wait":"block","pause_us":0,"span":{"warm_ms":50,"run_ms":150}}}"#;
    let (server, client) = both(limit, registry, ECHO, exchange);
    assert!(client.success(), "{limit}: the client: {:?}\n{}", client.status, client.stderr);
    assert!(server.success(), "{limit}: the server: {:?}\n{}", server.status, server.stderr);
    assert!(client.stdout.contains("half_trip"), "{limit}: {}", client.stdout);
}

#[test]
fn few_descriptors() {
    // Standard ones, a listener, a connection, a few for the program: and hardly any for us.
    for most in [6, 8, 10, 16, 32] {
        works_under(&format!("ulimit -n {most}"), None);
    }
}

#[test]
fn no_files_may_grow() {
    // A file, also one in memory, that grows beyond the limit brings a deadly signal.
    works_under("ulimit -f 0", None);
    works_under("ulimit -f 8", None);
}

#[test]
fn little_address_space() {
    works_under("ulimit -v 65536", None);
    works_under("ulimit -v 262144", None);
}

#[test]
fn no_locked_memory() {
    works_under("ulimit -l 0", None);
}

#[test]
fn a_registry_that_cannot_be() {
    works_under("true", Some(Path::new("/proc/none")));
    works_under("true", Some(Path::new("/dev/null")));
    works_under("true", Some(Path::new("/dev/full")));
    let file = std::env::temp_dir().join(format!("sidestep-no-folder-{}", std::process::id()));
    fs::write(&file, "not a folder").expect("a file");
    works_under("true", Some(&file));
    fs::remove_file(&file).expect("it is there");
}

#[test]
fn a_registry_of_rubbish() {
    let folder = Path::new("/dev/shm").join(format!("sidestep-rubbish-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    works_under("true", Some(&folder));
    // Whatever it keeps there, it is found overwritten.
    for entry in fs::read_dir(&folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let len = fs::metadata(&path).expect("a size").len() as usize;
            let rubbish: Vec<u8> = (0..len.min(64 << 20)).map(|at| ((at * 131) >> 3) as u8).collect();
            fs::write(&path, rubbish).expect("a file");
        }
    }
    works_under("true", Some(&folder));
    fs::remove_dir_all(&folder).expect("it is there");
}

#[test]
fn a_full_file_system() {
    // Not even an empty file can be made.
    let mount = "mount -t tmpfs -o nr_inodes=1 none /dev/shm";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script]);
        command
    };
    if !unshare(mount).output().is_ok_and(|output| output.status.success()) {
        eprintln!("left out: this user may not mount a file system of its own");
        return;
    }
    let said = summary_of(unshare(&format!(r#"{mount} && exec "$0" "$@""#)).arg(SIDESTEP), "both_ways");
    assert!(said.contains("there is no registry in /dev/shm/sidestep"), "{said}");

    // The same from outside, while the connection lasts.
    let mut command = unshare(&format!(r#"{mount} && exec "$0" "$@""#));
    command.args([SIDESTEP, "run", "--"]).arg(limits_program("told")).args([SIDESTEP, "stat", "--json"]);
    let ended = Bounded::start(&mut command, PATIENCE).wait();
    assert!(ended.success(), "{:?}\n{}", ended.status, ended.stderr);
    assert_eq!(told(&ended.stdout, Reason::Resources), 2, "{mount}: {}", ended.stdout);

    // One page is enough for the registry: what it says lies elsewhere.
    let mount = "mount -t tmpfs -o size=4k none /dev/shm";
    let said = summary_of(unshare(&format!(r#"{mount} && exec "$0" "$@""#)).arg(SIDESTEP), "both_ways");
    assert!(said.contains("2 of 2 connections left TCP"), "{said}");
}

/// `stat` names the reason while the connection lasts.
#[test]
fn what_is_short_is_told() {
    told_by_both_ends("ring");
}

#[test]
fn what_is_short_is_told_over_via() {
    told_by_both_ends("via");
}

/// How many connections have this reason.
fn told(said: &str, reason: Reason) -> usize {
    said.matches(&format!(r#""reason":"{}""#, reason.name())).count()
}

/// The connection stays until both ends were looked at, after so many exchanges that each has told of itself.
fn told_by_both_ends(carrier: &str) {
    for limit in ["ulimit -n 6", "ulimit -n 8", "ulimit -f 0"] {
        let crowd = limits_program("crowd");
        let line = format!("{limit} && exec {SIDESTEP} run --carrier {carrier} -- {} 1 200 64", crowd.display());
        let mut command = Command::new("sh");
        let (said, exact) = stat_of_crowd(&format!("told-{carrier}"), command.args(["-c", &line]));
        assert!(exact, "{line}");
        assert_eq!(told(&said, Reason::Resources), 2, "{line}: {said}");
    }
}

#[test]
fn too_little_memory_is_told() {
    let folder = Path::new("/dev/shm").join(format!("sidestep-memory-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let mut command = Command::new(SIDESTEP);
    command.args(["run", "--"]).arg(limits_program("memory")).env("SIDESTEP_DIR", &folder);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut out, &mut line).expect("it speaks");
    let said = stat(&folder);
    drop(child.stdin.take());
    let status = child.wait().expect("it ends");
    fs::remove_dir_all(&folder).expect("it is there");
    assert!(status.success() && line == "exchanged\n", "{status}, {line}");
    assert_eq!(told(&said, Reason::Resources), 2, "{said}");
}

/// A control group with a limit of memory, for as long as this lives.
struct Group(PathBuf);

impl Group {
    /// `None`, with a word about it: this machine lets nobody make one here.
    fn new(name: &str, limit: usize) -> Option<Group> {
        let own = fs::read_to_string("/proc/self/cgroup").expect("a readable /proc");
        let path = |controller: &str| own.lines().find_map(|line| line.split_once(controller).map(|(_, path)| path));
        let first = path(":memory:").map(|path| (format!("/sys/fs/cgroup/memory{path}"), "memory.limit_in_bytes"));
        let unified = path("0::").map(|path| (format!("/sys/fs/cgroup{path}"), "memory.max"));
        for (above, file) in first.into_iter().chain(unified) {
            let folder = Path::new(&above).join(format!("sidestep-{name}-{}", std::process::id()));
            if fs::create_dir(&folder).is_ok() {
                let group = Group(folder);
                if fs::write(group.0.join(file), limit.to_string()).is_ok() {
                    return Some(group);
                }
            }
        }
        eprintln!("left out: no control group with a limit of memory can be made here");
        None
    }

    /// A shell that enters the group and then is this command.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo $$ > {}/cgroup.procs && exec {line}", self.0.display())]);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Those that have just ended are still in it for a moment.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Three hundred connections take 2 MB by themselves; with rings of the usual size they would need 80. There is room for small
/// rings for all of them, and each is promoted within its twelve exchanges: the two ends find each other by calls, not by time.
/// A link takes more than a ring, so that over VIA some have room.
#[test]
fn a_crowd_in_a_small_control_group() {
    let Some(group) = Group::new("crowd", 48 << 20) else { return };
    for (carrier, size, least) in [("ring", 64, 300), ("ring", 60_000, 300), ("via", 64, 1), ("via", 60_000, 1)] {
        let crowd = limits_program("crowd");
        let line =
            format!("{SIDESTEP} run --verbose --carrier {carrier} -- {} 300 12 {size} < /dev/null", crowd.display());
        // Of its own, so that no other program takes the place of one that has ended before its counts are read.
        let registry = Folder::new("crowd");
        let ended = Bounded::start(group.command(&line).env("SIDESTEP_DIR", registry.path()), PATIENCE).wait();
        assert!(ended.success() && ended.stdout.contains("exact"), "{line}: {:?} {}", ended.status, ended.stderr);
        let said = ended
            .stderr
            .lines()
            .find_map(|line| line.split_once(" of 300 connections left TCP")?.0.split(' ').next_back());
        let promoted: u32 = said.and_then(|count| count.parse().ok()).unwrap_or(0);
        assert!(promoted >= least, "{line}: {}", ended.stderr);
    }
}

/// What has no room stays on TCP, and `stat` says why.
#[test]
fn memory_that_is_short_is_told() {
    let Some(group) = Group::new("short", 16 << 20) else { return };
    for carrier in ["ring", "via"] {
        let line = format!("{SIDESTEP} run --carrier {carrier} -- {} 300 40 64", limits_program("crowd").display());
        let (said, exact) = stat_of_crowd(&format!("short-{carrier}"), &mut group.command(&line));
        assert!(exact);
        assert_eq!(said.lines().count(), 600);
        let wrong = ["Young", "PeerUnknown"].iter().any(|name| said.contains(name));
        assert!(told(&said, Reason::Memory) > 0 && !wrong, "{said}");
    }
}

/// Rings that were used and are idle hold no memory.
#[test]
fn idle_rings_give_their_pages_back() {
    let mut command = Command::new(SIDESTEP);
    command.args(["run", "--"]).arg(limits_program("crowd")).args(["100", "12", "60000", "idle"]);
    command.stdin(std::process::Stdio::null());
    let ended = Bounded::start(&mut command, PATIENCE).wait();
    assert!(ended.success() && ended.stdout.contains("exact"), "{:?} {}", ended.status, ended.stderr);
    let both = ["server", "client"].iter().all(|who| ended.stdout.contains(&format!("{who} released")));
    assert!(both, "{}", ended.stdout);
}

/// An old connection that stays on TCP is not called young, at either end.
#[test]
fn an_option_that_keeps_a_connection_on_tcp_is_told() {
    let mut command = Command::new(SIDESTEP);
    command.args(["run", "--"]).arg(limits_program("crowd")).args(["5", "40", "64", "stamped"]);
    let (said, exact) = stat_of_crowd("stamped", &mut command);
    assert!(exact);
    let count = |reason| told(&said, reason);
    assert_eq!((count(Reason::Option), count(Reason::PeerStays), said.lines().count()), (5, 5, 10), "{said}");
}

#[test]
fn a_young_connection_is_told_of() {
    let folder = Path::new("/dev/shm").join(format!("sidestep-young-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let mut said = String::new();
    // The client connects and says nothing for a while.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut command = Command::new(SIDESTEP);
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; read -u 3 line; echo $line");
    command.args(["run", "--", "bash", "-c", &script]).env("SIDESTEP_DIR", &folder);
    let client = Bounded::start(&mut command, PATIENCE);
    let (mut server, _) = listener.accept().expect("a connection");
    let end = std::time::Instant::now() + PATIENCE;
    while !said.contains("Young") && std::time::Instant::now() < end {
        said = stat(&folder);
    }
    std::io::Write::write_all(&mut server, b"done\n").expect("it listens");
    let ended = client.wait();
    fs::remove_dir_all(&folder).expect("it is there");
    assert!(ended.success() && ended.stdout.contains("done"), "{}", ended.stderr);
    assert!(said.contains(&format!("127.0.0.1:{port}")) && said.contains("too young"), "{said}");
}

#[test]
fn another_root() {
    // The registry is out of reach then, and was opened before.
    let said = summary_of(&mut Command::new(SIDESTEP), "changed_root");
    assert!(said.contains("2 of 2 connections"), "{said}");
}

#[test]
fn thousands_of_connections() {
    // In the long form more than the first level of a registry has records for.
    let connections = if full() { 15_000 } else { 1_500 };
    let limit = format!("ulimit -n {}", connections + 1000);
    let serve = format!(r#"{{"Echo":{{"size":64,"wait":"epoll","connections":{connections}}}}}"#);
    let (server, client) = both(&limit, None, &serve, &format!(r#"{{"Idle":{{"connections":{connections}}}}}"#));
    assert!(client.success(), "the client: {:?}\n{}", client.status, client.stderr);
    assert!(server.success(), "the server: {:?}\n{}", server.status, server.stderr);
    let expected = format!("\"messages\":{}", connections * 30);
    assert!(server.stdout.contains(&expected), "{}", server.stdout);
}

/// What `stat` says of a crowd that has exchanged everything, and whether that was exact.
fn stat_of_crowd(name: &str, command: &mut Command) -> (String, bool) {
    let folder = Path::new("/dev/shm").join(format!("sidestep-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    command.env("SIDESTEP_DIR", &folder).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // Read to its end: a process that writes when nobody reads is ended.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("a pipe")));
    let exact = lines.any(|line| line.is_ok_and(|line| line == "exact"));
    let said = stat(&folder);
    drop(child.stdin.take());
    lines.for_each(drop);
    let status = child.wait().expect("it ends");
    fs::remove_dir_all(&folder).expect("it is there");
    (said, exact && status.success())
}

/// What `stat` says of the processes of a registry.
fn stat(registry: &Path) -> String {
    let mut stat = Command::new(SIDESTEP);
    let output = stat.args(["stat", "--json"]).env("SIDESTEP_DIR", registry).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A program of `tests/limits`.
fn limits_program(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli");
    let built = std::env::current_exe().expect("a path").ancestors().nth(2).expect("a profile").join("limits");
    compile(&root.join("tests/limits").join(name).with_extension("c"), &built, &[])
}

/// What `run --verbose` says of a behaviour program with both ends in one process, which must work.
fn summary_of(sidestep: &mut Command, behaviour: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli").join("tests/behaviours");
    let built = std::env::current_exe().expect("a path").ancestors().nth(2).expect("a profile").join("limits");
    let program = compile(&folder.join(behaviour).with_extension("c"), &built, &[]);
    // Of its own, as for the crowd.
    let registry = Folder::new("summary");
    sidestep.args(["run", "--verbose", "--"]).arg(program).arg("alone").env("SIDESTEP_DIR", registry.path());
    let ended = Bounded::start(sidestep, PATIENCE).wait();
    assert!(ended.success(), "{:?}\n{}", ended.status, ended.stderr);
    ended.stderr
}

/// Runs a server and a client under `sidestep run`, each in a shell that first sets a limit.
fn both(limit: &str, registry: Option<&Path>, server: &str, client: &str) -> (Ended, Ended) {
    let sidestep = SIDESTEP;
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address").port();
    let start = |work: &str| {
        let parent = std::process::id();
        let job = format!(r#"{{"work":{work},"address":"tcp:127.0.0.1:{port}","cores":[],"parent":{parent}}}"#);
        let mut command = Command::new("sh");
        let line = format!(r#"{limit} && exec "{sidestep}" run -- "{sidestep}" socket-end '{job}'"#);
        command.args(["-c", &line]);
        if let Some(registry) = registry {
            command.env("SIDESTEP_DIR", registry);
        }
        Bounded::start(&mut command, PATIENCE)
    };
    let server = start(server);
    let (listening, end) = (format!(":{port:04X} "), std::time::Instant::now() + PATIENCE);
    while std::time::Instant::now() < end {
        let table = fs::read_to_string("/proc/net/tcp").expect("a readable /proc");
        if table.lines().any(|line| line.contains(&listening) && line.split_whitespace().nth(3) == Some("0A")) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let client = start(client).wait();
    (server.wait(), client)
}
