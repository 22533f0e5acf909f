//! Eight programs that talk to each other for a long time, while processes are killed, stopped, started anew, forked and executed:
//! every byte is the right one, a stream ends early only if a process of one of its ends was killed, every talk comes to an end,
//! and what the programs that outlive all this hold does not grow.
//!
//! `SIDESTEP_SOAK` says for how many seconds (1,800 in `./test full`), `SIDESTEP_SOAK_CARRIER` over which carrier (or `plain`, without
//! Sidestep), and `SIDESTEP_SEED` repeats the choices, though not their timing.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddrV4},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with, sockopt},
    process::{Pid, Signal, kill_process, kill_process_group},
};
use sidestep_sys::clock;
use sidestep_testkit::{
    process::{Folder, PATIENCE, descriptors_of, full, seed},
    sockets::{compile, judge::Random, processes_of_group, stacks_of_group},
};

/// In the place of a carrier: kernel TCP, without Sidestep.
const PLAIN: &str = "plain";
const PLACES: usize = 8;
/// Programs at the first places are not killed, only their children are: what they hold is counted.
const LASTING: usize = 2;
/// Time between two counts.
const PHASE: Duration = Duration::from_secs(30);
/// Counts from which on growth shows.
const LONG: usize = 12;
/// Descriptors and memory that a program may hold more than early in the run: caches are fuller at one time than at another.
const SPARE_DESCRIPTORS: usize = 16;
const SPARE_KB: usize = 8 << 10;

#[test]
fn streams_survive_everything_but_their_processes() {
    let given =
        env::var("SIDESTEP_SOAK").ok().map(|seconds| seconds.parse().expect("SIDESTEP_SOAK is a number of seconds"));
    let Some(seconds) = given.or(full().then_some(1800)) else {
        return eprintln!("left out: only in ./test full, or with SIDESTEP_SOAK");
    };
    let mut soak = Soak::begin(seed());
    let end = Instant::now() + Duration::from_secs(seconds);
    let phase = PHASE.min(Duration::from_secs(seconds) / 2);
    let mut counts = Vec::new();
    while Instant::now() < end {
        soak.disturb_for(phase);
        soak.pause();
        counts.push(soak.count());
        println!("{}", soak.summary(counts.last().expect("one")));
        let left = soak.registered();
        assert!(left <= PLACES * 4, "{left} sockets are in the registry, when nobody talks");
        soak.resume();
    }
    expect_flat(&counts);
    assert!(soak.promoted() > 0 || carrier() == PLAIN, "nothing was promoted");
    assert!(soak.done > 0 && soak.cut <= soak.done, "{} talks ended, {} were cut off", soak.done, soak.cut);
}

/// What the lasting programs hold has stopped to grow in the first third of a long run. A short one does not show that.
fn expect_flat(counts: &[[Held; LASTING]]) {
    if counts.len() < LONG {
        return println!("too short to tell whether descriptors and memory grow");
    }
    let (early, late) = counts.split_at(counts.len() / 3);
    for place in 0..LASTING {
        let most = |of: fn(&Held) -> usize| early.iter().map(|held| of(&held[place])).max().expect("one");
        let least =
            |of: fn(&Held) -> usize| late[late.len() / 2..].iter().map(|held| of(&held[place])).min().expect("one");
        let [descriptors, memory] = [|held: &Held| held.descriptors, |held: &Held| held.memory_kb];
        assert!(least(descriptors) <= most(descriptors) + SPARE_DESCRIPTORS, "descriptors grow: {counts:?}");
        assert!(least(memory) <= most(memory) + SPARE_KB, "memory grows: {counts:?}");
    }
}

/// What a program holds while nobody talks.
#[derive(Debug, Clone, Copy)]
struct Held {
    descriptors: usize,
    memory_kb: usize,
}

/// A program, and the port at which it is found, which stays when it is started anew.
struct Node {
    process: Child,
    input: ChildStdin,
    port: u16,
    /// Bound, so that nobody else gets the port; listening, where the program inherits it.
    socket: OwnedFd,
    inherits: bool,
}

/// A process of a place was killed.
struct Kill {
    place: usize,
    /// Talks that began before may be cut off by it: until a new program is ready, a connection may come to the listener of the old
    /// one, which a child still holds.
    until: u64,
}

type Said = (usize, String);

struct Soak {
    nodes: Vec<Node>,
    folder: Folder,
    program: PathBuf,
    random: Random,
    seed: u64,
    /// All groups of processes there ever were: children outlive a program that is killed.
    groups: Vec<u32>,
    kills: Vec<Kill>,
    /// What programs say, and at which place.
    said: Receiver<Said>,
    sayer: Sender<Said>,
    paused: usize,
    done: usize,
    cut: usize,
}

impl Soak {
    fn begin(seed: u64) -> Soak {
        println!("SIDESTEP_SEED={seed}");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli");
        let built = env::current_exe().expect("a path").ancestors().nth(2).expect("a profile").join("soak");
        let program = compile(&root.join("tests/soak/node.c"), &built, &[]);
        let (sayer, said) = channel();
        let mut soak = Soak {
            nodes: Vec::new(),
            folder: Folder::new("soak"),
            program,
            random: Random::new(seed),
            seed,
            groups: Vec::new(),
            kills: Vec::new(),
            said,
            sayer,
            paused: 0,
            done: 0,
            cut: 0,
        };
        for place in 0..PLACES {
            let inherits = place % 2 == 1;
            let socket = reserve(inherits);
            let port = SocketAddrV4::try_from(getsockname(&socket).expect("a name")).expect("an address").port();
            let (process, input) = soak.start(place, port, inherits.then_some(&socket));
            soak.nodes.push(Node { process, input, port, socket, inherits });
        }
        for place in 0..PLACES {
            soak.introduce(place);
        }
        soak
    }

    fn start(&mut self, place: usize, port: u16, listener: Option<&OwnedFd>) -> (Child, ChildStdin) {
        let promote = match self.random.below(4) {
            0 => "eager".to_string(),
            1 => format!("random:{}", self.random.number()),
            _ => "default".to_string(),
        };
        let number = listener.map_or(-1, AsRawFd::as_raw_fd);
        let mut command = match carrier().as_str() {
            PLAIN => Command::new(&self.program),
            carrier => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
                command.args(["run", "--carrier", carrier, "--promote", &promote, "--"]).arg(&self.program);
                command
            }
        };
        command.args([place.to_string(), self.random.number().to_string(), port.to_string(), number.to_string()]);
        command.env("SIDESTEP_DIR", self.folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let inherited = |flags| listener.map(|listener| fcntl_setfd(listener, flags).expect("its flags"));
        inherited(FdFlags::empty());
        let mut process = command.spawn().expect("it starts");
        inherited(FdFlags::CLOEXEC);
        self.groups.push(process.id());
        let (out, said) = (BufReader::new(process.stdout.take().expect("a pipe")), self.sayer.clone());
        thread::spawn(move || out.lines().map_while(Result::ok).all(|line| said.send((place, line)).is_ok()));
        let input = process.stdin.take().expect("a pipe");
        (process, input)
    }

    /// Tells a program of all others, and lets it talk.
    fn introduce(&mut self, place: usize) {
        let ports: Vec<u16> = self.nodes.iter().map(|node| node.port).collect();
        let lines: String = ports.iter().enumerate().map(|(peer, port)| format!("peer {peer} {port}\n")).collect();
        self.tell(place, &format!("{lines}go\n"));
    }

    fn tell(&mut self, place: usize, lines: &str) {
        if self.nodes[place].input.write_all(lines.as_bytes()).is_err() {
            let status = self.nodes[place].process.wait();
            self.fail(&format!("the program at place {place} has ended: {status:?}"));
        }
    }

    /// Kills, stops and starts anew for so long.
    fn disturb_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let quiet = 50 + self.random.below(500);
            self.listen_for(Duration::from_millis(quiet));
            let place = self.random.below(PLACES as u64) as usize;
            let main = self.nodes[place].process.id();
            let victim = self.random.of(&processes_of_group(main));
            match self.random.below(4) {
                0 => {
                    // A process that is gone meanwhile cannot be stopped.
                    let _ = kill_process(pid(victim), Signal::STOP);
                    let stopped = self.random.below(300);
                    self.listen_for(Duration::from_millis(stopped));
                    let _ = kill_process(pid(victim), Signal::CONT);
                }
                1 if place >= LASTING => self.restart(place, true),
                _ if victim != main => {
                    self.kills.push(Kill { place, until: clock::now() });
                    let _ = kill_process(pid(victim), Signal::KILL);
                }
                _ if place >= LASTING => self.restart(place, false),
                _ => {}
            }
        }
    }

    /// Kills a program, alone or with its children, and starts it again.
    fn restart(&mut self, place: usize, with_children: bool) {
        let main = self.nodes[place].process.id();
        self.kills.push(Kill { place, until: u64::MAX });
        match with_children {
            true => kill_process_group(pid(main), Signal::KILL).expect("it runs"),
            false => self.nodes[place].process.kill().expect("it runs"),
        }
        self.nodes[place].process.wait().expect("it ends");
        let gone = self.random.below(200);
        self.listen_for(Duration::from_millis(gone));
        let node = &self.nodes[place];
        let (port, listener) = (node.port, node.inherits.then(|| node.socket.try_clone().expect("a copy")));
        (self.nodes[place].process, self.nodes[place].input) = self.start(place, port, listener.as_ref());
        self.introduce(place);
    }

    /// Hears what the programs say, for so long.
    fn listen_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Ok((place, line)) = self.said.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.hear(place, &line);
        }
    }

    fn hear(&mut self, place: usize, line: &str) {
        let mut words = line.split(' ');
        match words.next() {
            Some("ready") => {
                let unready = self.kills.iter_mut().filter(|kill| kill.place == place && kill.until == u64::MAX);
                unready.for_each(|kill| kill.until = clock::now());
            }
            Some("paused") => self.paused += 1,
            Some("done") => self.done += 1,
            Some("cut") => {
                let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
                let (peer, began) = (number() as usize, number());
                let killed = |kill: &Kill| (kill.place == place || kill.place == peer) && kill.until >= began;
                self.cut += 1;
                if !self.kills.iter().any(killed) {
                    self.fail(&format!("place {place} says {line:?}, and neither it nor its peer had been killed"));
                }
            }
            _ => self.fail(&format!("place {place} says {line:?}")),
        }
    }

    /// Lets all talks come to their end, and all processes but the programs.
    fn pause(&mut self) {
        self.paused = 0;
        for place in 0..PLACES {
            self.tell(place, "pause\n");
        }
        self.wait_until("every talk ends", |soak| soak.paused == PLACES);
        self.wait_until("every child ends", |soak| {
            let running = |group: &u32| processes_of_group(*group).into_iter();
            let mains: Vec<u32> = soak.nodes.iter().map(|node| node.process.id()).collect();
            soak.groups.iter().flat_map(running).all(|process| mains.contains(&process))
        });
        self.groups = self.nodes.iter().map(|node| node.process.id()).collect();
    }

    fn resume(&mut self) {
        for place in 0..PLACES {
            self.tell(place, "go\n");
        }
    }

    fn wait_until(&mut self, what: &str, mut reached: impl FnMut(&Soak) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !reached(self) {
            self.listen_for(Duration::from_millis(20));
            if Instant::now() > end {
                self.fail(&format!("waited in vain until {what}"));
            }
        }
    }

    fn count(&self) -> [Held; LASTING] {
        std::array::from_fn(|place| {
            let process = self.nodes[place].process.id();
            Held { descriptors: descriptors_of(process), memory_kb: memory_kb(process) }
        })
    }

    fn summary(&self, held: &[Held]) -> String {
        let (done, cut, kills, left) = (self.done, self.cut, self.kills.len(), self.registered());
        format!("{done} ends of talks, {cut} cut off by {kills} kills, {left} sockets registered, {held:?}")
    }

    /// Lines of `sidestep stat`.
    fn stat(&self, arguments: &[&str]) -> Vec<String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
        let output =
            command.arg("stat").args(arguments).env("SIDESTEP_DIR", self.folder.path()).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect()
    }

    /// Sockets that the registry has.
    fn registered(&self) -> usize {
        self.stat(&["--json"]).len()
    }

    /// Sockets of the programs that are not killed, which were promoted.
    fn promoted(&self) -> u64 {
        let count = |line: &String| -> Option<u64> {
            let (_, rest) = line.split_once("\"promoted_ever\":")?;
            rest.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
        };
        self.stat(&["--json", "--totals"]).iter().filter_map(count).sum()
    }

    fn fail(&self, what: &str) -> ! {
        // What others say of it may come later.
        thread::sleep(Duration::from_millis(500));
        let others = |(place, line): (usize, String)| (line != "done").then(|| format!("place {place}: {line}\n"));
        let others: String = self.said.try_iter().filter_map(others).collect();
        let stacks: String = self.groups.iter().map(|group| stacks_of_group(*group)).collect();
        let stat = self.stat(&["--json"]).join("\n");
        panic!("{what}, SIDESTEP_SEED={}\n{others}{stat}\n{stacks}", self.seed);
    }
}

impl Drop for Soak {
    fn drop(&mut self) {
        for group in &self.groups {
            // What is gone cannot be killed.
            let _ = kill_process_group(pid(*group), Signal::KILL);
        }
        for node in &mut self.nodes {
            let _ = node.process.wait();
        }
    }
}

fn carrier() -> String {
    env::var("SIDESTEP_SOAK_CARRIER").unwrap_or_else(|_| "ring".into())
}

/// A port for a program.
fn reserve(listens: bool) -> OwnedFd {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
    if !listens {
        sockopt::set_socket_reuseaddr(&socket, true).expect("an option");
    }
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port");
    if listens {
        listen(&socket, 64).expect("it listens");
    }
    socket
}

/// Memory of a process, with what it shares.
fn memory_kb(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let of = |line: &str| -> Option<usize> {
        let value = line.strip_prefix("RssAnon:").or(line.strip_prefix("RssShmem:"))?;
        value.trim().trim_end_matches(" kB").parse().ok()
    };
    status.lines().filter_map(of).sum()
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(number as i32).expect("a process number")
}
