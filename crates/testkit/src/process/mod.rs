//! Tests with real processes: the test binary starts itself again in another role.
//!
//! A test file has one test named `role` that calls [`enter`]: in the test itself it does nothing, in a child it plays
//! the child's role and ends the process. Parent and child talk over a socket ([`Control`]), which is the child's
//! standard input; so a child sees the end of its parent, and nothing is left behind.

mod census;
mod control;
mod folder;
mod learned;

pub use self::{
    census::{Census, cpu_time_ns, descriptors_of, open_files, resident_kb, run_delay_ns, sleeps},
    control::{Control, PATIENCE, PATIENCE_NS},
    folder::Folder,
    learned::Learned,
};

use std::{
    ffi::OsStr,
    os::fd::OwnedFd,
    process::{Command, ExitStatus, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, set_parent_process_death_signal},
};
use sidestep_shm::passing::Lifeline;

const ROLE: &str = "SIDESTEP_ROLE";

/// What a child was started for.
#[derive(Debug)]
pub struct Role {
    /// What the parent passed.
    pub arguments: Vec<String>,
    /// The line to the parent.
    pub control: Control,
}

/// A process in another role. Dropping it kills it.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    /// The line to it.
    pub control: Control,
}

/// What a child does in its role.
pub type Play = fn(Role);

impl Role {
    /// An argument as a number.
    pub fn number(&self, index: usize) -> u64 {
        self.arguments[index].parse().expect("a number")
    }
}

/// In a child: plays its role and ends the process, with status 101 if any of its threads panics. Elsewhere: nothing.
pub fn enter(roles: &[(&str, Play)]) {
    let Ok(line) = std::env::var(ROLE) else { return };
    set_parent_process_death_signal(Some(Signal::KILL)).expect("a death signal");
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        std::process::exit(101);
    }));
    let mut words = line.split(' ').map(str::to_string);
    let name = words.next().expect("a role");
    let (_, play) = roles.iter().find(|(role, _)| *role == name).expect("a role of this file");
    play(Role { arguments: words.collect(), control: Control::inherited() });
    std::process::exit(0);
}

/// Whether the long form of the tests is wanted (`./test full`).
pub fn full() -> bool {
    std::env::var_os("SIDESTEP_FULL").is_some_and(|value| value != "0")
}

/// The seed of a random test: `SIDESTEP_SEED`, or one from the clock. Print it.
pub fn seed() -> u64 {
    given_seed().unwrap_or_else(|| sidestep_sys::clock::now() ^ u64::from(std::process::id()) << 40)
}

/// The same, but for runs that are not long: then it is always this one.
pub fn seed_or(usual: u64) -> u64 {
    if full() { seed() } else { given_seed().unwrap_or(usual) }
}

fn given_seed() -> Option<u64> {
    std::env::var("SIDESTEP_SEED").ok()?.parse().ok()
}

impl Child {
    /// Starts this test binary in a role of the same file.
    pub fn start(role: &str, arguments: &[&str]) -> Child {
        Child::start_with(role, arguments, &[])
    }

    /// The same, with variables of the environment: for settings that are those of a process.
    pub fn start_with(role: &str, arguments: &[&str], variables: &[(&str, &OsStr)]) -> Child {
        let (here, there) = Lifeline::pair().expect("a control socket");
        let line = [&[role], arguments].concat().join(" ");
        let process = Command::new(std::env::current_exe().expect("the path of this program"))
            .args(["role", "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, line)
            .envs(variables.iter().copied())
            .stdin(Stdio::from(there.into_fd()))
            .stdout(Stdio::null())
            .spawn()
            .expect("a child");
        Child { process, control: Control::new(here) }
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// SIGKILL, without waiting for the end.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
    }

    /// Waits for its end. A child that does not end fails the test.
    pub fn wait(&mut self) -> ExitStatus {
        let ended = self.ends_within(PATIENCE_NS);
        assert!(ended, "process {} does not end", self.id());
        self.process.wait().expect("a status")
    }

    /// Waits for its end, and that it ended well.
    pub fn wait_success(&mut self) {
        let status = self.wait();
        assert!(status.success(), "a child ended with {status}");
    }

    /// Whether it is still there.
    pub fn is_alive(&mut self) -> bool {
        self.process.try_wait().expect("a status").is_none()
    }

    fn ends_within(&self, limit_ns: u64) -> bool {
        let pid = Pid::from_raw(self.id() as i32).expect("a process number");
        let Ok(end) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
        ready(&end, PollFlags::IN, limit_ns)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until a descriptor has news.
fn ready(descriptor: &OwnedFd, flags: PollFlags, limit_ns: u64) -> bool {
    let limit = Timespec { tv_sec: (limit_ns / 1_000_000_000) as i64, tv_nsec: (limit_ns % 1_000_000_000) as i64 };
    loop {
        match poll(&mut [PollFd::new(descriptor, flags)], Some(&limit)) {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => panic!("poll: {errno}"),
        }
    }
}
