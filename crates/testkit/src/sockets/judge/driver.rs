//! One end of a judged connection: a process that executes the calls it is told (`tests/judge/driver.c`).

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Failure, Judged};
use crate::{
    process::PATIENCE,
    sockets::{Launch, stacks_of_group},
};

/// The process of one end. Dropping it kills it.
#[derive(Debug)]
pub struct Driver {
    process: Child,
    words: ChildStdin,
    answers: Receiver<String>,
    complaints: Arc<Mutex<String>>,
    /// The port it listens on.
    pub port: u16,
}

/// What a call gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Its result.
    pub value: i64,
    /// Its `errno`, if the result is -1.
    pub error: i32,
    /// Bytes received that are right, or events.
    pub good: i64,
    /// How long it took.
    pub micros: i64,
}

impl Driver {
    /// Starts one.
    pub fn start(launch: &Launch, program: &Path) -> Judged<Driver> {
        let mut process = launch
            .command(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| Failure(format!("the driver does not start: {error}")))?;
        let words = process.stdin.take().expect("a pipe");
        let (sender, answers) = channel();
        let out = BufReader::new(process.stdout.take().expect("a pipe"));
        thread::spawn(move || out.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let complaints = Arc::new(Mutex::new(String::new()));
        let (mut errors, heard) = (process.stderr.take().expect("a pipe"), complaints.clone());
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut piece) {
                heard.lock().expect("no panic").push_str(&String::from_utf8_lossy(&piece[..count]));
            }
        });
        let mut driver = Driver { process, words, answers, complaints, port: 0 };
        let line = driver.line()?;
        driver.port = line.parse().map_err(|_| driver.failure(&format!("it said {line:?} instead of its port")))?;
        Ok(driver)
    }

    /// Says a line, and hears the answer.
    pub fn tell(&mut self, line: &str) -> Judged<Answer> {
        self.say(line)?;
        self.hear()
    }

    /// Says a line.
    pub fn say(&mut self, line: &str) -> Judged<()> {
        match writeln!(self.words, "{line}").and_then(|()| self.words.flush()) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failure(&format!("it does not hear: {error}"))),
        }
    }

    /// The answer to what was said.
    pub fn hear(&mut self) -> Judged<Answer> {
        let line = self.line()?;
        let numbers: Vec<i64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [value, error, good, micros] => Ok(Answer { value, error: error as i32, good, micros }),
            _ => Err(self.failure(&format!("it answered {line:?}"))),
        }
    }

    /// A failure, with what is known of the process.
    pub fn failure(&mut self, what: &str) -> Failure {
        let state = match self.process.try_wait() {
            Ok(Some(status)) => format!("ended: {status}"),
            _ => "runs".into(),
        };
        let complaints = self.complaints.lock().expect("no panic");
        Failure(format!("{what}\ndriver {} {state}\n{complaints}", self.process.id()))
    }

    /// The stacks of its processes.
    pub fn stacks(&self) -> String {
        stacks_of_group(self.process.id())
    }

    fn line(&mut self) -> Judged<String> {
        match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => {
                let stacks = self.stacks();
                Err(self.failure(&format!("a call hangs\n{stacks}")))
            }
            Err(RecvTimeoutError::Disconnected) => {
                // It is ending: its status is there soon, and is worth waiting for.
                thread::sleep(Duration::from_millis(100));
                Err(self.failure("it is gone"))
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(self.process.id() as i32) {
            // It may have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.process.wait();
    }
}
