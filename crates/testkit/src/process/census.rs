//! Counting what a process holds, so that a test can show that nothing is left behind.

use std::{fmt, fs, path::PathBuf};

use rustix::time::{ClockId, clock_gettime};

/// What this process holds, and what is left in the places that outlive processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    /// Open descriptors.
    pub descriptors: usize,
    /// Mappings of our memory files.
    pub mappings: usize,
    /// Files of ours in `/dev/shm`; folders there are those of tests that run beside this one.
    pub files: usize,
    /// Abstract sockets whose name contains the word asked for.
    pub names: usize,
}

impl Census {
    /// Counts; `word` is a part of the names that belong to the test.
    pub fn take(word: &str) -> Census {
        let lines = |path: &str, word: &str| {
            let text = fs::read_to_string(path).expect("a readable /proc");
            text.lines().filter(|line| line.contains(word)).count()
        };
        let files = fs::read_dir("/dev/shm").map_or(0, |entries| {
            let is_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
            let is_ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().contains("sidestep");
            entries.flatten().filter(|entry| is_file(entry) && is_ours(entry)).count()
        });
        Census {
            descriptors: descriptors_of(std::process::id()),
            mappings: lines("/proc/self/maps", "memfd:sidestep"),
            files,
            names: lines("/proc/net/unix", word),
        }
    }
}

impl fmt::Display for Census {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Census { descriptors, mappings, files, names } = self;
        write!(out, "{descriptors} descriptors, {mappings} mappings, {files} files, {names} names")
    }
}

/// Open descriptors of a process.
pub fn descriptors_of(process: u32) -> usize {
    // In the own process, one of them is for this look.
    let own = usize::from(process == std::process::id());
    fs::read_dir(format!("/proc/{process}/fd")).map_or(0, |entries| entries.count() - own)
}

/// What the open descriptors of this process lead to.
pub fn open_files() -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
}

/// Memory of this process that is not shared, in KiB.
pub fn resident_kb() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("a readable /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// How long the threads of a process have waited for a processor while they could run. 0 where the kernel does not tell.
pub fn run_delay_ns(process: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let delay = |thread: fs::DirEntry| -> Option<u64> {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').nth(1)?.parse().ok()
    };
    threads.filter_map(delay).sum()
}

/// How often the threads of this process have gone to sleep.
pub fn sleeps() -> u64 {
    let threads = fs::read_dir("/proc/self/task").expect("a readable /proc").flatten();
    let of_thread = |thread: fs::DirEntry| -> Option<u64> {
        let text = fs::read_to_string(thread.path().join("status")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
    };
    threads.filter_map(of_thread).sum()
}

/// Processor time this process has used.
pub fn cpu_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
