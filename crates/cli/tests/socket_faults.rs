//! One of two connected programs is killed at a random moment: the other learns of it as TCP would tell it, and at once;
//! nothing is left behind; the next connection works at once.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use sidestep_testkit::{
    process::{Folder, PATIENCE, full, run_delay_ns, seed},
    sockets::{compile, judge::Random},
};

/// What the survivor is doing when its peer dies.
const MODES: &[&str] = &["block", "poll", "epoll", "flood", "full", "idle"];

#[test]
fn a_killed_program_is_noticed_at_once() {
    let seed = seed();
    println!("SIDESTEP_SEED={seed}");
    let mut random = Random::new(seed);
    let folder = Folder::new("faults");
    let program = traffic();
    let mut noticed = vec![Vec::new(); MODES.len()];
    for round in 0..if full() { 500 } else { 42 } {
        let mode = MODES[round % MODES.len()];
        // A server that never reads does not notice anything; in that mode it is the one to die.
        let kill_server = mode == "full" || random.one_in(2);
        let promote = random.of(&["default", "eager"]);
        let start = |arguments: &[&str]| End::start(&program, folder.path(), promote, arguments);
        let mut server = start(&["serve", mode]);
        let port = server.word("port");
        let mut client = start(&["client", mode, &port]);
        server.word("running");
        client.word("running");
        thread::sleep(Duration::from_micros(random.below(8000)));

        let (mut victim, mut survivor) = if kill_server { (server, client) } else { (client, server) };
        let described = format!("round {round}, mode {mode}, {promote}, server killed: {kill_server}");
        let waited = run_delay_ns(survivor.process.id());
        victim.process.kill().expect("it runs");
        victim.process.wait().expect("it ends");
        let killed = now();
        let line = survivor.word("ended");
        let (how, at) = line.split_once(' ').expect("two words");
        assert!(["EOF", "ECONNRESET", "EPIPE"].contains(&how), "{described}: {how}");
        let late = at.parse::<u64>().expect("a time").saturating_sub(killed);
        let waited = run_delay_ns(survivor.process.id()) - waited;
        noticed[round % MODES.len()].push(late.saturating_sub(waited));

        // The survivor goes on with somebody else.
        let mut next = match kill_server {
            true => {
                let mut next = start(&["serve", "block"]);
                let port = next.word("port");
                survivor.tell(&port);
                next
            }
            false => start(&["client", "block", &port]),
        };
        survivor.word("probed");
        drop(survivor);
        next.word("running");
    }
    for (mode, times) in MODES.iter().zip(&mut noticed) {
        times.sort_unstable();
        let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
        println!("{mode}: noticed after {} us in the median, {} us at most", median / 1000, slowest / 1000);
        assert!(median < LIMIT_NS, "{mode}: noticed after {} ms in the median", median / 1_000_000);
    }
    let left = folder.files();
    assert!(left.len() <= 1, "left behind: {left:?}");
}

/// One of the two programs. Dropping it kills it.
struct End {
    process: Child,
    lines: Receiver<String>,
    input: ChildStdin,
}

impl End {
    fn start(program: &Path, folder: &Path, promote: &str, arguments: &[&str]) -> End {
        let mut process = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .args(["run", "--promote", promote, "--"])
            .arg(program)
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
        End { process, lines, input }
    }

    /// Waits for a line that begins with this word, and gives the rest of it.
    fn word(&mut self, word: &str) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => match line.strip_prefix(word) {
                Some(rest) => rest.trim().to_string(),
                None => panic!("it said {line:?} and not {word}"),
            },
            Err(_) => {
                let stacks = sidestep_testkit::sockets::stacks_of_group(group_of(self.process.id()));
                panic!("it never said {word}; {:?}\n{stacks}", self.process.try_wait());
            }
        }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("it listens");
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn group_of(process: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields.split(' ').nth(2).unwrap_or("0").to_string());
    fields.and_then(|group| group.parse().ok()).unwrap_or(process)
}

fn traffic() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli");
    let built = env::current_exe().expect("a path").ancestors().nth(2).expect("a profile").join("faults");
    compile(&root.join("tests/faults/traffic.c"), &built, &[])
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// By when the survivor must know in the median, not counting the time for which it waited for a processor: it is told, and
/// does not find out by looking now and then.
const LIMIT_NS: u64 = 100_000_000;
