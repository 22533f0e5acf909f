//! A server of an application: started in a folder of its own, on a free port, and ended with all it started.

use std::ffi::OsStr;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::time::clock_getcpuclockid;
use rustix::process::{Pid, Signal, kill_process_group};

use super::super::super::place::{Cores, Placement};
use super::super::pair::Via;

/// A folder that is removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    /// A new one.
    pub fn new(word: &str) -> Result<Folder> {
        Folder::under(&std::env::temp_dir(), word)
    }

    /// A new one whose files are in memory.
    pub fn in_memory(word: &str) -> Result<Folder> {
        Folder::under(Path::new("/dev/shm"), word)
    }

    fn under(parent: &Path, word: &str) -> Result<Folder> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = parent.join(format!("sidestep-{word}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Folder(path))
    }

    /// A file in it, with this content.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.0.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running server, with what it started. Dropping it ends them.
pub struct Service {
    process: Child,
    name: String,
}

impl Service {
    /// Starts it.
    pub fn start(command: &mut Command) -> Result<Service> {
        let name = format!("{command:?}");
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Service { process, name })
    }

    /// Waits until something is so.
    pub fn until(mut self, mut ready: impl FnMut() -> bool) -> Result<Service> {
        let limit = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.process.try_wait()? {
                bail!("{} ended at once: {status}", self.name);
            }
            if ready() {
                return Ok(self);
            }
            if Instant::now() > limit {
                bail!("{} is not ready within 20 s", self.name);
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Waits until it listens.
    pub fn listening(self, port: u16) -> Result<Service> {
        self.until(|| TcpStream::connect(("127.0.0.1", port)).is_ok())
    }

    /// Processor time of its processes, in nanoseconds, with that of threads that have ended.
    pub fn processor_time(&self) -> Result<u64> {
        let mut sum = 0;
        for entry in fs::read_dir("/proc")?.flatten() {
            let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // The name of the program, which may have any characters, ends with the last parenthesis.
            let group = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(2)?.parse::<u32>().ok());
            if group == Some(self.process.id()) {
                // One that has ended meanwhile has no clock.
                let time = clock_getcpuclockid(nix::unistd::Pid::from_raw(process)).and_then(|clock| clock.now());
                sum += time.map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64);
            }
        }
        Ok(sum)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let Some(group) = Pid::from_raw(self.process.id() as i32) else { return };
        // First in peace, so that what it keeps outside its process is cleared.
        let _ = kill_process_group(group, Signal::TERM);
        let limit = Instant::now() + Duration::from_secs(3);
        while Instant::now() < limit && self.process.try_wait().is_ok_and(|status| status.is_none()) {
            sleep(Duration::from_millis(5));
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.process.wait();
    }
}

/// A port that is free now.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Whether a program is installed.
pub fn has(program: &str) -> bool {
    find(program).is_some()
}

/// Where a program is, also among those for administrators.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The first of several programs that is not installed.
pub fn missing(programs: &[&'static str]) -> Option<String> {
    programs.iter().find(|program| !has(program)).map(|program| format!("left out: {program} is not installed"))
}

/// A command that runs a program on a path and in a placement.
pub fn command(via: Via, placement: Placement, cores: Cores, program: impl AsRef<OsStr>) -> Result<Command> {
    let program = program.as_ref();
    let program = find(&program.to_string_lossy()).map_or_else(|| program.to_owned(), |path| path.into_os_string());
    let inner = via.command(&program)?;
    if placement != Placement::Same {
        return Ok(inner);
    }
    let core = cores.leader(Placement::Same)[0].to_string();
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", &core]).arg(inner.get_program()).args(inner.get_args());
    Ok(pinned)
}

/// Runs a command that prepares something, and says what went wrong.
pub fn prepare(command: &mut Command, folder: &Path) -> Result<()> {
    let out = command.current_dir(folder).output().with_context(|| format!("cannot start {command:?}"))?;
    if !out.status.success() {
        bail!("{command:?}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell with a child in its group: the times of both are there, and grow.
    #[test]
    fn processor_time_is_that_of_all_processes_and_grows() {
        let mut shell = Command::new("sh");
        let service = Service::start(shell.args(["-c", "sh -c 'while :; do :; done' & while :; do :; done"])).unwrap();
        let mut before = 0;
        while before < 200_000_000 {
            let now = service.processor_time().unwrap();
            assert!(now >= before, "{before} and then {now}");
            before = now;
        }
    }
}
