//! A command with a time limit. What does not end in time is shown with its stacks, and killed with all it started.

use std::{
    fs,
    io::Read,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// A running command, leader of its own process group. Dropping it kills the group.
#[derive(Debug)]
pub struct Bounded {
    child: Child,
    described: String,
    output: Vec<JoinHandle<Vec<u8>>>,
    deadline: Instant,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Its status; `None` if it did not end in time.
    pub status: Option<ExitStatus>,
    /// What it printed.
    pub stdout: String,
    /// What it printed to standard error; after a hang, also the stacks of its processes.
    pub stderr: String,
}

impl Bounded {
    /// Starts it; it has this long.
    pub fn start(command: &mut Command, limit: Duration) -> Bounded {
        Bounded::fed(command, limit, Stdio::null())
    }

    /// Starts it with this standard input.
    pub fn fed(command: &mut Command, limit: Duration, input: Stdio) -> Bounded {
        let described = format!("{command:?}");
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{described} does not start: {error}"));
        let output = vec![collect(child.stdout.take()), collect(child.stderr.take())];
        Bounded { child, described, output, deadline: Instant::now() + limit }
    }

    /// Its process number, and that of its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, or for the end of its time.
    pub fn wait(mut self) -> Ended {
        let mut pause = Duration::from_micros(200);
        let mut status = None;
        while status.is_none() && Instant::now() < self.deadline {
            status = self.child.try_wait().expect("a status");
            if status.is_none() {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
        }
        let stacks = match status {
            Some(_) => String::new(),
            None => format!("\n{} did not end in time\n{}", self.described, stacks_of_group(self.id())),
        };
        self.kill();
        let mut texts = self.output.drain(..).map(|reader| {
            let bytes = reader.join().expect("a reader");
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let (stdout, stderr) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
        drop(texts);
        Ended { status, stdout, stderr: stderr + &stacks }
    }

    /// Kills it and what it started.
    pub fn kill(&mut self) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            // It may have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }

    /// Whether it still runs, and still may.
    pub fn is_working(&mut self) -> bool {
        self.is_alive() && Instant::now() < self.deadline
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("a status").is_none()
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Ended {
    /// Whether it ended with status 0.
    pub fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// What it printed; fails the test if it did not end well.
    pub fn expect(self, what: &str) -> String {
        assert!(self.success(), "{what}: {:?}\n{}\n{}", self.status, self.stdout, self.stderr);
        self.stdout
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("a pipe");
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A reader that fails has what it has.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// The stacks of all processes of a group: from gdb, or what procfs says of each thread.
pub fn stacks_of_group(group: u32) -> String {
    let mut text = String::new();
    for process in processes_of_group(group) {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        text += &format!("process {process} {}\n{}", name.trim(), threads_of(process));
        let gdb = Command::new("timeout")
            .args(["20", "gdb", "-p", &process.to_string(), "-batch", "-nx", "-ex", "thread apply all bt 24"])
            .stdin(Stdio::null())
            .output();
        if let Ok(output) = gdb {
            let shown = String::from_utf8_lossy(&output.stdout);
            let lines = shown.lines().filter(|line| line.starts_with('#') || line.starts_with("Thread"));
            text.extend(lines.map(|line| format!("  {line}\n")));
        }
    }
    text
}

fn threads_of(process: u32) -> String {
    let mut text = String::new();
    for task in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default().trim().to_string();
        text += &format!(
            "  thread {}: wchan {}, syscall {}\n",
            task.file_name().to_string_lossy(),
            read("wchan"),
            read("syscall")
        );
    }
    text
}

/// The processes of a group.
pub fn processes_of_group(group: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process: &u32| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let fields = stat.rsplit_once(") ").map(|(_, fields)| fields.split(' ').collect::<Vec<_>>());
            fields.is_some_and(|fields| fields.get(2) == Some(&group.to_string().as_str()))
        })
        .collect()
}
