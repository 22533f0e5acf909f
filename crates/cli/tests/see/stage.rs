//! A folder with a registry of its own, and the programs that meet there.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::Value;
use sidestep_testkit::{process::PATIENCE, sockets::compile};

pub const SIDESTEP: &str = env!("CARGO_BIN_EXE_sidestep");

/// A folder with a registry of its own, and programs that meet there.
pub struct Stage(pub PathBuf);

impl Stage {
    pub fn new(name: &str) -> Stage {
        let folder = Path::new("/dev/shm").join(format!("sidestep-see-{name}-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        Stage(folder)
    }

    pub fn sidestep(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(SIDESTEP);
        command.args(arguments).env("SIDESTEP_DIR", &self.0).output().expect("it runs")
    }

    /// What `sidestep` with these arguments prints, which must succeed.
    pub fn said(&self, arguments: &[&str]) -> String {
        let output = self.sidestep(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts the program in this state, under `run` with these options.
    pub fn pair(&self, options: &[&str], state: &[&str]) -> Pair {
        self.program(options, &program(), state)
    }

    /// Starts a program with these arguments, under `run` with these options.
    pub fn program(&self, options: &[&str], program: &Path, arguments: &[&str]) -> Pair {
        let mut command = Command::new(SIDESTEP);
        command.arg("run").args(options).arg("--").arg(program).args(arguments);
        self.start(command)
    }

    /// Starts `sidestep` with these arguments.
    pub fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(SIDESTEP);
        command.args(arguments).env("SIDESTEP_DIR", &self.0).stdout(Stdio::piped()).spawn().expect("it starts")
    }

    /// What `sidestep` with these arguments prints, which must succeed, and the processor time that it takes.
    pub fn work(&self, arguments: &[&str]) -> Work {
        let mut child = self.spawn(arguments);
        let mut output = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut output).expect("text");
        // It has ended, and is still known.
        waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("a child");
        let used = processor_time(child.id());
        assert!(child.wait().expect("a child").success(), "{arguments:?}: {output}");
        Work { output, used }
    }

    pub fn start(&self, mut command: Command) -> Pair {
        command.env("SIDESTEP_DIR", &self.0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let [_, pid, fd, listener, port] = &words[..] else { panic!("it did not start: {line:?}") };
        let [pid, fd, listener, port] = [pid, fd, listener, port].map(String::to_owned);
        Pair { input: child.stdin.take(), child, pid, fd, listener, port }
    }

    /// Whether there are so many sockets, and this holds for each.
    pub fn all(&self, count: usize, holds: impl Fn(&Value) -> bool) -> bool {
        let sockets = self.sockets(&[]);
        sockets.len() == count && sockets.iter().all(holds)
    }

    pub fn sockets(&self, arguments: &[&str]) -> Vec<Value> {
        let text = self.said(&[&["stat", "--json"], arguments].concat());
        text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a tool has done.
pub struct Work {
    pub output: String,
    /// Processor time.
    pub used: Duration,
}

/// The processor time that a process has used so far, of the program and of the kernel for it.
pub fn processor_time(pid: u32) -> Duration {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
    let (_, behind_the_name) = status.rsplit_once(')').expect("a name");
    let ticks = behind_the_name.split_whitespace().skip(11).take(2).map(|word| word.parse::<u64>().expect("a number"));
    Duration::from_secs(1) * ticks.sum::<u64>() as u32 / rustix::param::clock_ticks_per_second() as u32
}

/// The program, until it is dropped.
pub struct Pair {
    pub input: Option<ChildStdin>,
    pub child: Child,
    pub pid: String,
    pub fd: String,
    pub listener: String,
    pub port: String,
}

impl Drop for Pair {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// A process that is killed at the end.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn program() -> PathBuf {
    compile(&source("pair.c"), &built(), &[])
}

/// A process with many connections.
pub fn many_program() -> PathBuf {
    compile(&source("many.c"), &built(), &[])
}

/// Two processes with a connection between them.
pub fn stream_program() -> PathBuf {
    compile(&source("stream.c"), &built(), &["-pthread"])
}

pub fn static_program() -> PathBuf {
    compile(&source("fixed.c"), &built().join("static"), &["-static"])
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli").join("tests/reasons").join(name)
}

fn built() -> PathBuf {
    std::env::current_exe().expect("a path").ancestors().nth(2).expect("a profile").join("reasons")
}

pub fn library() -> PathBuf {
    let profile = Path::new(SIDESTEP).parent().expect("a folder");
    let built = ["libsidestep.so", "deps/libsidestep.so"].map(|name| profile.join(name));
    // Cargo keeps two, and does not always renew both.
    let modified = |library: &PathBuf| library.metadata().and_then(|status| status.modified()).ok();
    built.into_iter().filter(|library| library.exists()).max_by_key(modified).expect("libsidestep.so is built")
}

/// `stream.c`: two processes with one connection between them.
pub struct Two {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub client: String,
    pub server: String,
    pub port: String,
}

impl Two {
    /// Starts it with this work, under `run` with these options.
    pub fn start(stage: &Stage, options: &[&str], work: &str) -> Two {
        Two::start_at(stage, options, work, "0")
    }

    /// The same at this port.
    pub fn start_at(stage: &Stage, options: &[&str], work: &str, port: &str) -> Two {
        let mut command = Command::new(SIDESTEP);
        command
            .arg("run")
            .args(options)
            .arg("--")
            .arg(stream_program())
            .args([work, port])
            .env("SIDESTEP_DIR", &stage.0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let [_, client, server, port] = &words[..] else { panic!("it did not start: {line:?}") };
        let [client, server, port] = [client, server, port].map(String::to_owned);
        Two { input: child.stdin.take(), child, output, client, server, port }
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    /// A line to its standard input.
    pub fn say(&mut self, line: &str) {
        self.input.as_mut().expect("a pipe").write_all(line.as_bytes()).expect("it reads");
    }

    /// Ends its input, and waits for its end, which must be a good one. Returns what it printed last.
    pub fn end(mut self) -> String {
        drop(self.input.take());
        let mut last = String::new();
        let lines = std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty()));
        let lines: Vec<String> = lines.collect();
        lines.iter().take(lines.len().saturating_sub(1)).for_each(|line| last.clone_from(line));
        assert_eq!(lines.last().map(String::as_str), Some("done"), "{lines:?}");
        assert!(self.child.wait().expect("it ends").success());
        last
    }
}

impl Drop for Two {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Waits for a condition.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "in vain for: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
