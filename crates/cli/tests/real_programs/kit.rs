//! What the tests of real programs share: a folder with a registry of its own, servers, and the watch on their sockets.

use std::{
    collections::BTreeMap,
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;
pub use sidestep_testkit::ports::free_port;
use sidestep_testkit::{
    process::PATIENCE,
    sockets::{Bounded, Ended},
};

use super::{
    tally::Tally,
    way::{self, is_compared, is_over_via, is_plain},
};

/// A stage for one test: temporary files, and a registry that no other program uses. Cleared at the end.
pub struct Stage {
    /// Files of the test.
    pub files: PathBuf,
    registry: PathBuf,
    stat: Vec<PathBuf>,
    /// Counts promoted connections until the end of the stage.
    _tally: Option<Tally>,
}

impl Stage {
    /// A new one.
    pub fn new(name: &str) -> Stage {
        let name = format!("sidestep-{name}-{}", std::process::id());
        let (files, registry) = (std::env::temp_dir().join(&name), Path::new("/dev/shm").join(&name));
        for folder in [&files, &registry] {
            fs::create_dir_all(folder).expect("a folder");
        }
        // A reader that gets no processor for some milliseconds gives its ring up, as it should: then the shares of the paths say
        // how busy the machine is. So what the test runs comes first, where it may.
        if !is_compared() {
            let _ = rustix::process::setpriority_process(None, PRIORITY);
        }
        let _tally = is_compared().then(|| Tally::begin(&registry));
        Stage { files, registry, stat: vec![env!("CARGO_BIN_EXE_sidestep").into()], _tally }
    }

    /// Lets this command, and not the usual program, be asked about sockets.
    pub fn ask(&mut self, command: &[&Path]) {
        self.stat = command.iter().map(PathBuf::from).collect();
    }

    /// A file of the test, with this content.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.files.join(name);
        fs::write(&path, content).expect("a file");
        path
    }

    /// A file of many bytes that differ.
    pub fn large_file(&self, name: &str, len: usize) -> PathBuf {
        let content: Vec<u8> = (0..len as u64 / 8)
            .flat_map(|number| (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number >> 7).to_le_bytes())
            .collect();
        self.file(name, content)
    }

    /// A command under `sidestep run`, unless the way is the plain one.
    pub fn run(&self, program: impl AsRef<Path>) -> Command {
        self.run_by(env!("CARGO_BIN_EXE_sidestep"), program)
    }

    /// The same by a copy of `sidestep`.
    pub fn run_by(&self, sidestep: impl AsRef<Path>, program: impl AsRef<Path>) -> Command {
        let mut command = way::run(sidestep.as_ref(), program.as_ref(), |first| Command::new(first));
        self.place(&mut command);
        command
    }

    /// The same as another user, by a copy of `sidestep`.
    pub fn run_as(&self, user: &str, sidestep: &Path, program: impl AsRef<Path>) -> Command {
        way::run(sidestep, program.as_ref(), |first| self.as_user(user, first))
    }

    /// Lets a command use the registry of the test.
    pub fn place(&self, command: &mut Command) {
        command.envs(way::variables());
        command.env("SIDESTEP_DIR", &self.registry).current_dir(&self.files);
    }

    /// A copy of the program with its library beside it: another user may not reach the build folder.
    pub fn copies(&self) -> PathBuf {
        let program = Path::new(env!("CARGO_BIN_EXE_sidestep"));
        let beside = program.with_file_name("libsidestep.so");
        let library = if beside.is_file() { beside } else { program.with_file_name("deps").join("libsidestep.so") };
        for file in [program, &library] {
            fs::copy(file, self.files.join(file.file_name().expect("a name"))).expect("a copy");
        }
        self.files.join("sidestep")
    }

    /// A command of this user, where the test may become another one.
    pub fn as_user(&self, user: &str, program: &Path) -> Command {
        let mut command = match is_root() {
            true => {
                let mut changed = Command::new("runuser");
                changed.args(["-u", user, "--"]).arg(program);
                changed
            }
            false => Command::new(program),
        };
        self.place(&mut command);
        command
    }

    /// Lets other users write where the test does.
    pub fn open_to_all(&self) {
        use std::os::unix::fs::PermissionsExt;
        for folder in [&self.files, &self.registry] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o1777)).expect("permissions");
        }
    }

    /// Waits for the end of a client and looks at all sockets meanwhile.
    pub fn watch(&self, mut client: Bounded) -> (Ended, Sockets) {
        let mut sockets = Sockets::default();
        while client.is_working() {
            sockets.look(self);
            sleep(Duration::from_millis(60));
        }
        (client.wait(), sockets)
    }

    /// Waits until no socket of the test is left: the ends of clients that are gone go with their connections.
    pub fn wait_for_quiet(&self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let mut sockets = Sockets::default();
            sockets.look(self);
            if sockets.0.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "sockets stay behind:\n{}", sockets.shown());
            sleep(Duration::from_millis(20));
        }
    }

    /// Looks at all sockets while a client works, until both ends of a connection have had much traffic, and ends it.
    pub fn watch_some(&self, mut client: Bounded) -> Sockets {
        let mut sockets = Sockets::default();
        // Nobody counts the traffic of plain programs.
        while !is_plain() && !sockets.has_much_traffic() {
            assert!(client.is_working(), "the client has ended, or there is no traffic\n{}", sockets.shown());
            sockets.look(self);
            sleep(Duration::from_millis(60));
        }
        client.kill();
        sockets
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for folder in [&self.files, &self.registry] {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// What was seen of every socket, by process and addresses.
#[derive(Default)]
pub struct Sockets(BTreeMap<(u64, String, String), Seen>);

/// What was seen of one socket.
struct Seen {
    last: Value,
    /// What it was when each direction was first seen on the carrier.
    carried: [Option<Value>; 2],
}

/// The directions, as `stat` names their paths and their counters.
const DIRECTIONS: [(&str, &str); 2] = [("reads_from", "read"), ("writes_to", "written")];

impl Sockets {
    fn look(&mut self, stage: &Stage) {
        let mut command = Command::new(&stage.stat[0]);
        command.args(&stage.stat[1..]).args(["stat", "--json"]);
        stage.place(&mut command);
        let output = command.output().expect("sidestep stat runs");
        assert!(output.status.success(), "sidestep stat: {}", String::from_utf8_lossy(&output.stderr));
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let socket: Value = serde_json::from_str(line).expect("a JSON object a line");
            let text = |key: &str| socket[key].as_str().unwrap_or_default().to_string();
            let key = (socket["pid"].as_u64().expect("a pid"), text("local"), text("remote"));
            let seen = self.0.entry(key).or_insert_with(|| Seen { last: Value::Null, carried: [None, None] });
            seen.look(socket);
        }
    }

    fn has_much_traffic(&self) -> bool {
        let much = |seen: &&Seen| (0..2).any(|way| seen.since_carried(way).0 >= 4 * ENOUGH);
        self.0.values().filter(much).count() >= 2
    }

    /// Every connection with traffic was promoted at both ends, and kept to its carrier from then on; and there was one.
    ///
    /// No time is measured: two ends find each other by their calls, whoever gets a processor when. What goes over TCP before that
    /// is limited by the number of exchanges, or by the kernel's buffers where one end writes and the other reads.
    pub fn expect_promoted(&self, what: &str) {
        self.expect_share(what, if is_over_via() { LEAST_SHARE_OF_SOME } else { LEAST_SHARE });
    }

    /// The same of a program that writes more at once than a carrier takes, whose rest goes over TCP. In the end it is on its carrier.
    pub fn expect_promoted_again(&self, what: &str) {
        self.expect_share(what, LEAST_SHARE_OF_SOME);
        let carrier = if is_over_via() { "via" } else { "ring" };
        let is_there = |seen: &Seen| DIRECTIONS.iter().all(|(path, _)| seen.last[*path] == carrier) || is_compared();
        assert!(self.0.values().all(is_there), "{what}: not all on {carrier}\n{}", self.shown());
    }

    fn expect_share(&self, what: &str, least: f64) {
        if is_compared() {
            return;
        }
        let mut judged = 0;
        for ((pid, local, remote), seen) in &self.0 {
            let fail = |told: String| panic!("{what}, process {pid}, {local} to {remote}: {told}\n{}", self.shown());
            let before = seen.before_carried();
            if before.iter().min() > Some(&ENOUGH) {
                fail(format!("{before:?} bytes read and written before it was promoted, if it was"));
            }
            for (way, (path, counter)) in DIRECTIONS.iter().enumerate() {
                let (all, carried) = seen.since_carried(way);
                if all == 0 && of(&seen.last, way, "tcp") > buffers() {
                    fail(format!("{} bytes {counter}, and it was never promoted", of(&seen.last, way, "tcp")));
                }
                if all >= ENOUGH {
                    let share = carried as f64 / all as f64;
                    if share < least {
                        fail(format!("{share:.3} of the {all} bytes {counter} since its promotion are on the carrier"));
                    }
                    judged += 1;
                }
                if is_over_via() && seen.last[*path] == "ring" {
                    fail("a ring is used, not VIA".into());
                }
            }
        }
        assert!(judged >= 2, "{what}: no connection with traffic was seen at both ends\n{}", self.shown());
    }

    fn shown(&self) -> String {
        let lines = self.0.values().take(12).map(|seen| {
            let since = [0, 1].map(|way| seen.since_carried(way));
            format!("{}\n  before it was carried {:?}, and since {since:?}\n", seen.last, seen.before_carried())
        });
        lines.collect()
    }
}

impl Seen {
    fn look(&mut self, socket: Value) {
        for (way, (path, _)) in DIRECTIONS.iter().enumerate() {
            if self.carried[way].is_none() && socket[*path] != "tcp" {
                self.carried[way] = Some(socket.clone());
            }
        }
        self.last = socket;
    }

    /// Bytes read and written over TCP until the socket was first seen on the carrier, or until the end.
    fn before_carried(&self) -> [u64; 2] {
        let tcp = |then: &Value| [0, 1].map(|way| of(then, way, "tcp"));
        let [read, written] = &self.carried;
        // The earlier one counted less.
        let first = read.iter().chain(written).map(tcp).min_by_key(|counts| counts[0] + counts[1]);
        first.unwrap_or_else(|| tcp(&self.last))
    }

    /// Bytes of a direction since it left TCP, and how many of them went over the carrier.
    fn since_carried(&self, way: usize) -> (u64, u64) {
        let Some(then) = &self.carried[way] else { return (0, 0) };
        let carried = of(&self.last, way, "ring");
        (carried + of(&self.last, way, "tcp").saturating_sub(of(then, way, "tcp")), carried)
    }
}

fn of(socket: &Value, way: usize, path: &str) -> u64 {
    socket[DIRECTIONS[way].1][path].as_u64().unwrap_or(0)
}

/// What the kernel takes at the most between two ends of a connection: so much is written before the other end makes a call.
fn buffers() -> u64 {
    let most = |file: &str| {
        let text = fs::read_to_string(Path::new("/proc/sys/net/ipv4").join(file)).expect("a readable /proc");
        text.split_whitespace().next_back().and_then(|word| word.parse::<u64>().ok()).expect("a number")
    };
    most("tcp_wmem") + most("tcp_rmem")
}

/// A server, ended at the end of the test.
pub fn serve(command: &mut Command, port: u16) -> Bounded {
    let mut server = start(command);
    wait_until(&mut server, || TcpStream::connect(("127.0.0.1", port)).is_ok());
    server
}

/// A server that says in its own way when it is ready.
pub fn start(command: &mut Command) -> Bounded {
    Bounded::start(command, PATIENCE)
}

/// Waits for something that a server does.
pub fn wait_until(server: &mut Bounded, mut ready: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !ready() {
        assert!(server.is_alive(), "the server has ended");
        assert!(Instant::now() < end, "the server is not ready in time");
        sleep(Duration::from_millis(10));
    }
}

/// Where a program is; says so if it is nowhere.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let found = std::env::split_paths(&path).chain(more).map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        eprintln!("left out: {name} is not installed");
    }
    found
}

/// Whether this is root, as which some servers change their user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The root of the sources.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli")
}

/// A connection with less traffic than this since its promotion says nothing; and more of it is not exchanged to and fro before.
const ENOUGH: u64 = 20_000;
/// Above all that runs with the usual one, below what the kernel needs.
const PRIORITY: i32 = -15;
/// How much of what follows is on the carrier.
const LEAST_SHARE: f64 = 0.9;
/// The same of a link, and of programs that write much at once. A link takes little: a writer that has filled it while its reader still
/// reads what TCP had gives way to TCP, up to four times, each time for as much as the kernel's buffers take.
const LEAST_SHARE_OF_SOME: f64 = 0.5;
