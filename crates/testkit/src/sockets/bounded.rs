//! A command with a time limit. What does not end in time is shown with its stacks, and killed with all it started.
//!
//! The limit is for standing still: as long as a command uses the processor it gets on, however slowly where many others want it, too.
//! One that goes round in a circle is ended as well, after several limits.

use std::{
    fs,
    io::Read,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::process::full;

/// A running command, leader of its own process group. Dropping it kills the group.
#[derive(Debug)]
pub struct Bounded {
    child: Child,
    described: String,
    output: Vec<JoinHandle<Vec<u8>>>,
    time: Time,
}

/// How long a command may go on.
#[derive(Debug)]
struct Time {
    /// How long it may stand still.
    limit: Duration,
    began: Instant,
    /// When it was last seen to have moved, when that was last looked at, and what it had used of the processor then, in ticks.
    moved: Instant,
    looked: Instant,
    used: u64,
}

/// How often it is looked whether a command moves, before its limit is over.
const LOOKS: u32 = 16;
/// One that has used as much as this part of a core since the last look has moved. What waits may have timers.
const MOVES: u32 = 1000;
/// Ticks of the processor time that the kernel tells, in a second: as many on every machine.
const TICKS: u64 = 100;

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
    /// Starts it; it has this long to stand still.
    pub fn start(command: &mut Command, limit: Duration) -> Bounded {
        Bounded::fed(command, limit, Stdio::null())
    }

    /// Starts it with this standard input.
    pub fn fed(command: &mut Command, limit: Duration, input: Stdio) -> Bounded {
        let described = format!("{command:?}");
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{described} does not start: {error}"));
        let output = vec![collect(child.stdout.take()), collect(child.stderr.take())];
        Bounded { child, described, output, time: Time::new(limit, Instant::now()) }
    }

    /// Its process number, and that of its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, or for the end of its time.
    pub fn wait(mut self) -> Ended {
        let mut pause = Duration::from_micros(200);
        let mut status = None;
        while status.is_none() && self.has_time() {
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
        self.is_alive() && self.has_time()
    }

    fn has_time(&mut self) -> bool {
        let group = self.id();
        self.time.is_left(Instant::now(), || ticks_of_group(group))
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("a status").is_none()
    }
}

impl Time {
    fn new(limit: Duration, now: Instant) -> Time {
        Time { limit, began: now, moved: now, looked: now, used: 0 }
    }

    /// Whether it may go on, if it has used so many ticks by now.
    fn is_left(&mut self, now: Instant, used: impl FnOnce() -> u64) -> bool {
        let since = now - self.looked;
        if since >= self.limit / LOOKS {
            let used = used();
            // Processes of the group that end take their times with them.
            let moves = (since / MOVES).as_millis() as u64 * TICKS / 1000 + 1;
            if used.abs_diff(self.used) >= moves {
                self.moved = now;
            }
            (self.looked, self.used) = (now, used);
        }
        // The runner's limit is longer.
        let most = if full() { 8 } else { 2 };
        now < self.moved + self.limit && now < self.began + self.limit * most
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
        .filter(|process: &u32| numbers_of(*process).get(GROUP) == Some(&u64::from(group)))
        .collect()
}

/// What the processes of a group have used of the processor, with those that they have waited for, in ticks.
fn ticks_of_group(group: u32) -> u64 {
    let used = |process: u32| numbers_of(process).iter().skip(TIMES).take(4).sum::<u64>();
    processes_of_group(group).into_iter().map(used).sum()
}

/// Where the group of a process and its four times stand in `/proc/PID/stat`, behind the name and the state.
const GROUP: usize = 1;
const TIMES: usize = 10;

/// What the kernel tells of a process, from its parent's number on; nothing, if it has gone. Negative numbers are 0.
fn numbers_of(process: u32) -> Vec<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split(' ').skip(1).map(|field| field.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_stands_still_is_ended() {
        let mut shell = Command::new("sh");
        let still = Bounded::start(shell.args(["-c", "sleep 600"]), Duration::from_millis(100)).wait();
        assert!(still.status.is_none() && still.stderr.contains("did not end in time"), "{still:?}");
    }

    #[test]
    fn one_that_moves_has_more_time_but_not_for_ever() {
        let (limit, begin) = (Duration::from_secs(600), Instant::now());
        // A hundredth of a core, or the timers of one that waits, or nothing.
        let ends = |ticks_a_second: f64| {
            let mut time = Time::new(limit, begin);
            let mut is_left = |second: u64| {
                let used = (second as f64 * ticks_a_second) as u64;
                time.is_left(begin + Duration::from_secs(second), || used)
            };
            (1..).find(|second| !is_left(*second))
        };
        assert_eq!((ends(1.0), ends(0.02), ends(0.0)), (Some(1200), Some(600), Some(600)));
    }

    #[test]
    fn a_process_is_found_by_its_group() {
        let own = numbers_of(std::process::id());
        assert!(processes_of_group(own[GROUP] as u32).contains(&std::process::id()));
    }
}
