//! What the tests of real programs share: a folder with a registry of its own, servers, and the watch on their sockets.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;
use sidestep_testkit::{
    process::PATIENCE,
    sockets::{Bounded, Ended},
};

thread_local! {
    static OVER_VIA: Cell<bool> = const { Cell::new(false) };
}

/// Runs a test with connections over VIA.
pub fn over_via(test: fn()) {
    OVER_VIA.set(true);
    test();
}

/// A stage for one test: temporary files, and a registry that no other program uses. Cleared at the end.
pub struct Stage {
    /// Files of the test.
    pub files: PathBuf,
    registry: PathBuf,
    stat: Vec<PathBuf>,
}

impl Stage {
    /// A new one.
    pub fn new(name: &str) -> Stage {
        let name = format!("sidestep-{name}-{}", std::process::id());
        let (files, registry) = (std::env::temp_dir().join(&name), Path::new("/dev/shm").join(&name));
        for folder in [&files, &registry] {
            fs::create_dir_all(folder).expect("a folder");
        }
        Stage { files, registry, stat: vec![env!("CARGO_BIN_EXE_sidestep").into()] }
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

    /// A command under `sidestep run`.
    pub fn run(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
        command.args(["run", "--"]).arg(program.as_ref());
        self.place(&mut command);
        command
    }

    /// Lets a command use the registry of the test.
    pub fn place(&self, command: &mut Command) {
        if OVER_VIA.get() {
            command.env("SIDESTEP_CARRIER", "via");
        }
        command.env("SIDESTEP_DIR", &self.registry).current_dir(&self.files);
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
        while !sockets.has_much_traffic() {
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

/// The last that was seen of every socket, by process and addresses.
#[derive(Default)]
pub struct Sockets(BTreeMap<(u64, String, String), Value>);

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
            self.0.insert((socket["pid"].as_u64().expect("a pid"), text("local"), text("remote")), socket);
        }
    }

    fn has_much_traffic(&self) -> bool {
        let much = |socket: &&Value| later(socket) >= 4 * ENOUGH;
        self.0.values().filter(much).count() >= 2
    }

    /// Every connection with traffic beyond its first second went over the ring at both ends, and there was one.
    pub fn expect_promoted(&self, what: &str) {
        let (mut judged, least) = (0, if is_busy() { 0.5 } else { 0.9 });
        for ((pid, local, remote), socket) in &self.0 {
            let both = self.0.keys().any(|(_, peer_local, peer_remote)| peer_local == remote && peer_remote == local);
            let (ring, later) = (sum(socket, "ring"), later(socket));
            if later < ENOUGH {
                continue;
            }
            // On a busy machine one end may have gone before the other was looked at.
            if !both {
                continue;
            }
            let share = ring as f64 / later as f64;
            if OVER_VIA.get() {
                let on_ring = ["reads_from", "writes_to"].iter().any(|way| socket[*way] == "ring");
                assert!(!on_ring, "{what}: process {pid} uses a ring, not VIA\n{}", self.shown());
            }
            // A reader that gets no processor for some milliseconds gives its ring up: on a busy machine that is right.
            let gave_up = ring > 0 && socket["reason"] == "Overflow";
            assert!(
                share >= least || gave_up,
                "{what}: process {pid} has {share:.2} of its bytes on the ring\n{}",
                self.shown()
            );
            judged += 1;
        }
        assert!(judged >= 2, "{what}: no connection with traffic was seen at both ends\n{}", self.shown());
    }

    /// Every connection was last seen on the ring, or on VIA, in both directions, and there was one. For programs that write
    /// more at once than a link takes, the rest of which goes over TCP.
    pub fn expect_on_carrier(&self, what: &str) {
        let carrier = if OVER_VIA.get() { "via" } else { "ring" };
        let is_there = |socket: &Value| ["reads_from", "writes_to"].iter().all(|way| socket[*way] == carrier);
        assert!(self.0.len() >= 2 && self.0.values().all(is_there), "{what}: not all on {carrier}\n{}", self.shown());
    }

    fn shown(&self) -> String {
        self.0.values().take(12).map(|socket| format!("{socket}\n")).collect()
    }
}

/// Whether the machine has much else to do: then less is done in a connection's first second, and promoting takes longer.
fn is_busy() -> bool {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    load > 2.0 * std::thread::available_parallelism().map_or(1, usize::from) as f64
}

/// The bytes of a socket but those of its first second on TCP.
fn later(socket: &Value) -> u64 {
    sum(socket, "ring") + sum(socket, "tcp") - sum(socket, "tcp_in_first_second")
}

fn sum(socket: &Value, key: &str) -> u64 {
    ["read", "written"].iter().map(|way| socket[*way][key].as_u64().unwrap_or(0)).sum()
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

/// A port that is free now.
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address").port()
}

/// Whether this is root, as which some servers change their user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The root of the sources.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli")
}

/// A connection with less traffic than this after its first second says nothing.
const ENOUGH: u64 = 20_000;
