//! Two programs exchange messages under Sidestep while somebody attacks them: another user, who may only talk to their
//! rendezvous, and a process of the same user, which may also write the registry. The pair goes on, every message comes back
//! as it was sent, nothing of the attacks is left, and new connections are promoted as before (docs/security.md).
//!
//! Progress is counted in exchanges, never in time: a victim that waits for an attacker makes none.

#[path = "strangers/attacks.rs"]
mod attacks;

use std::{
    collections::BTreeSet,
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child as Process, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use sidestep_sockets::registry::Registry;
use sidestep_testkit::{
    process::{Child, Folder, Role, enter, full},
    sockets::compile,
};

/// The second user: nobody.
const OTHER_USER: u32 = 65_534;
/// One that can be told from others.
const GUEST: u32 = 65_531;
/// Longer than one exchange or one answer takes on a busy machine; a victim that is held is held for a thousand seconds.
const PATIENCE: Duration = Duration::from_secs(200);
/// Exchanges that a victim must make after each attack, while what the attacker has left is still there.
const ENOUGH: u64 = 500;

/// Descriptors that a pair may have more of at one moment than at another: those of a connection that begins while the one before it
/// ends, and of a look at the registry. An attack that leaves anything leaves more, and a session has six.
const OWN_BUSINESS: u64 = 4;

/// Connections of a pair before it is attacked.
const WARM_CONNECTIONS: usize = 4;

#[test]
fn role() {
    enter(&[("attacker", attack)]);
}

#[test]
fn another_user_holds_nobody_up() {
    if !rustix::process::geteuid().is_root() {
        return println!("left out: only root can become a second user");
    }
    for carrier in ["ring", "via"] {
        siege(carrier, OTHER_USER, &["descriptors", "silence", "garbage", "stop"]);
    }
}

#[test]
fn a_hostile_process_of_the_same_user_harms_nobody_else() {
    for carrier in ["ring", "via"] {
        siege(carrier, 0, &["descriptors", "greet", "silence", "garbage", "forge", "impersonate", "stop"]);
    }
}

/// One of the connections of the server waits for a process of another user, so that such a one is let in: it is no better than one
/// of the same user.
#[test]
fn a_hostile_process_of_a_user_that_is_expected_harms_nobody_else() {
    if !rustix::process::geteuid().is_root() {
        return println!("left out: only root can become a second user");
    }
    siege("ring", GUEST, &["descriptors", "greet", "silence", "garbage", "stop"]);
}

/// All the attacks, one after the other, on one pair.
fn siege(carrier: &str, user: u32, attacks: &[&str]) {
    let folder = Folder::new("strangers");
    let mut server = Victim::start(folder.path(), carrier, &["serve"]);
    let port = server.line("port");
    let mut client = Victim::start(folder.path(), carrier, &["client", &port]);
    // Connections whose other ends are not under Sidestep: their offers stand, so that somebody else may answer them.
    let mut plain_client = PlainClient::connect(&port, user);
    let plain_port = plain_server();
    let mut prey = Victim::start(folder.path(), carrier, &["client", &plain_port]);
    let began = client.exchanges_after(0, 4 * ENOUGH);
    let mut began = until_promoted(&mut client, folder.path(), &port, began);
    // The pair has all it needs by itself when some connections have come and gone.
    for _ in 0..WARM_CONNECTIONS {
        let connections = client.counts()[1];
        while client.counts()[1] == connections {
            began = client.exchanges_after(began, 1);
        }
        began = until_promoted(&mut client, folder.path(), &port, began);
    }
    let before = [&mut server, &mut client].map(|victim| (victim.descriptors(), resident_kb(victim.pid())));
    let mut done = began;
    for round in 0..if full() { 20 } else { 2 } {
        for how in attacks {
            let names: Vec<String> = [&server, &client].into_iter().flat_map(|victim| names_of(victim.pid())).collect();
            assert!(!names.is_empty(), "the victims have no rendezvous");
            let directory = folder.path().to_str().expect("a path of letters");
            let user = user.to_string();
            let words = [&[*how, &user, &port, &plain_port, directory][..], &refs(&names)].concat();
            let mut attacker = Child::start("attacker", &words);
            attacker.control.expect("attacked");
            // What it has sent, opened or stopped is still there.
            done = client.exchanges_after(done, ENOUGH);
            plain_client.exchange(ENOUGH);
            let so_far = prey.counts()[0];
            prey.exchanges_after(so_far, ENOUGH);
            attacker.control.say("end");
            attacker.wait_success();
            done = client.exchanges_after(done, ENOUGH);
            println!("{carrier}, user {user}, {how}, round {round}: {done} exchanges");
        }
    }
    for (victim, (descriptors, memory)) in [&mut server, &mut client].into_iter().zip(before) {
        let end = Instant::now() + PATIENCE;
        while victim.descriptors() > descriptors + OWN_BUSINESS {
            assert!(Instant::now() < end, "{descriptors} descriptors before, and now {:?}", links_of(victim.pid()));
        }
        let now = resident_kb(victim.pid());
        assert!(now < memory + 32 * 1024, "{now} kB, {memory} kB before");
    }
    until_promoted(&mut client, folder.path(), &port, done);
}

/// Waits until a connection of the pair is promoted.
fn until_promoted(client: &mut Victim, folder: &Path, port: &str, mut done: u64) -> u64 {
    let end = Instant::now() + PATIENCE;
    while !is_promoted(folder, port) {
        assert!(Instant::now() < end, "connections are not promoted");
        done = client.exchanges_after(done, 1);
    }
    done
}

/// A client that is not under Sidestep.
struct PlainClient(TcpStream);

impl PlainClient {
    /// With a socket of this user's, if that is not root.
    fn connect(port: &str, user: u32) -> PlainClient {
        let port: u16 = port.parse().expect("a port");
        let connect = move || TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        // Who has the smaller port makes the offer: the server.
        let find = move || {
            become_user(user);
            let mut streams = std::iter::repeat_with(connect);
            streams.find(|stream| stream.local_addr().expect("an address").port() > port).expect("without end")
        };
        let stream = thread::spawn(find).join().expect("a connection");
        stream.set_nodelay(true).expect("an option");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        let mut client = PlainClient(stream);
        client.exchange(10);
        client
    }

    fn exchange(&mut self, count: u64) {
        for round in 0..count {
            let (sent, mut back) = ([round as u8; 64], [0; 64]);
            self.0.write_all(&sent).expect("a server that listens");
            self.0.read_exact(&mut back).expect("an answer");
            assert_eq!(back, sent, "other bytes came back");
        }
    }
}

/// A server that is not under Sidestep; its port.
fn plain_server() -> String {
    // Who has the larger port asks: the program under Sidestep, so that there must be some above this one.
    let below = |listener: &TcpListener| listener.local_addr().expect("an address").port() < 50_000;
    let bind = || TcpListener::bind("127.0.0.1:0").expect("a port");
    let listener = std::iter::repeat_with(bind).find(below).expect("without end");
    let port = listener.local_addr().expect("an address").port().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                stream.set_nodelay(true).expect("an option");
                let (mut from, mut to) = (&stream, &stream);
                let _ = std::io::copy(&mut from, &mut to);
            });
        }
    });
    port
}

/// Whether a connection of the pair is promoted now.
fn is_promoted(folder: &Path, port: &str) -> bool {
    let Some(registry) = Registry::look(folder.to_str().expect("a path of letters")) else { return false };
    let of_pair = |key: &sidestep_sockets::address::Key| key.local.port().to_string() == port;
    registry.sockets().iter().any(|socket| of_pair(&socket.key) && socket.on_carrier == (true, true))
}

/// What the descriptors of a process are.
fn links_of(process: u32) -> Vec<String> {
    let links = fs::read_dir(format!("/proc/{process}/fd")).expect("its descriptors");
    links.filter_map(|link| Some(fs::read_link(link.ok()?.path()).ok()?.to_str()?.to_string())).collect()
}

/// The names that a process listens under.
fn names_of(process: u32) -> BTreeSet<String> {
    let number = |link: &String| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_string());
    let sockets: BTreeSet<String> = links_of(process).iter().filter_map(number).collect();
    let all = fs::read_to_string("/proc/net/unix").expect("a list of sockets");
    let fields = |line: &str| -> Option<String> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = fields.get(7)?.strip_prefix("@sidestep-fabric/")?;
        sockets.contains(fields[6]).then(|| name.to_string())
    };
    all.lines().filter_map(fields).collect()
}

fn resident_kb(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn refs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// One of the pair. Dropping it kills it.
struct Victim {
    process: Process,
    lines: Receiver<String>,
    input: ChildStdin,
}

impl Victim {
    fn start(folder: &Path, carrier: &str, arguments: &[&str]) -> Victim {
        let mut process = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .args(["run", "--carrier", carrier, "--"])
            .arg(program())
            .args(arguments)
            .env("SIDESTEP_DIR", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = BufReader::new(process.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        thread::spawn(move || out.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let input = process.stdin.take().expect("a pipe");
        Victim { process, lines, input }
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits for a line that begins with this word, and gives the rest of it.
    fn line(&mut self, word: &str) -> String {
        let line = self.lines.recv_timeout(PATIENCE).expect("a victim that answers");
        line.strip_prefix(word).unwrap_or_else(|| panic!("it said {line:?}")).trim().to_string()
    }

    fn counts(&mut self) -> Vec<u64> {
        writeln!(self.input, "count").expect("a victim that listens");
        self.line("count").split(' ').map(|number| number.parse().expect("a number")).collect()
    }

    fn descriptors(&mut self) -> u64 {
        self.counts()[2]
    }

    /// Waits until it has made so many exchanges more. It may be slow, but not stand still.
    fn exchanges_after(&mut self, before: u64, more: u64) -> u64 {
        let (mut seen, mut end) = (before, Instant::now() + PATIENCE);
        loop {
            let count = self.counts()[0];
            if count >= before + more {
                return count;
            }
            if count > seen {
                (seen, end) = (count, Instant::now() + PATIENCE);
            }
            if Instant::now() > end {
                let stacks = sidestep_testkit::sockets::stacks_of_group(self.pid());
                panic!("{} exchanges since {before}, not {more}: it is held up\n{stacks}", count - before);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli");
    let built = env::current_exe().expect("a path").ancestors().nth(2).expect("a profile").join("strangers");
    compile(&root.join("tests/strangers/exchange.c"), &built, &["-pthread"])
}

/// The hostile process: attacks, says so, and stays until it is told to end.
fn attack(role: Role) {
    let [how, _, port, plain_port, directory, names @ ..] = &role.arguments[..] else { panic!("more arguments") };
    become_user(role.number(1) as u32);
    let ports = [port, plain_port].map(|port| port.parse().expect("a port"));
    let held = attacks::begin(how, ports, directory, names);
    role.control.say("attacked");
    role.control.hear_any_time();
    drop(held);
}

/// This thread is another user's from now on, unless that is root.
fn become_user(user: u32) {
    if user != 0 {
        rustix::thread::set_thread_groups(&[]).expect("no groups");
        let user = rustix::process::Uid::from_raw(user);
        rustix::thread::set_thread_res_uid(user, user, user).expect("the rights of root");
    }
}
