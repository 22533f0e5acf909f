//! What the kernel tells of a process, which may end at any moment: whatever is not there any more is left out.

use std::fs;

use rustix::{
    process::geteuid,
    time::{ClockId, clock_gettime},
};
use sidestep_sockets::config::Config;

/// The numbers of all processes.
pub fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name of its program. A process gives itself any name: what a terminal would act upon is not passed on.
pub fn program(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    let name = String::from_utf8_lossy(&name);
    Some(name.trim().chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect())
}

/// Whether the library is loaded into it; `None` if this user may not know.
pub fn has_library(pid: u32) -> Option<bool> {
    Some(fs::read_to_string(format!("/proc/{pid}/maps")).ok()?.contains("/libsidestep.so"))
}

/// What this user can know of the library in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// It is loaded.
    Loaded,
    /// The process runs a program without it.
    Absent,
    /// There is no program that could load it: a thread of the kernel.
    Kernel,
    /// The process belongs to this other user, who can look into it, as root can.
    OfOther(u32),
    /// The process belongs to this user, or this user is root, and the kernel refuses all the same.
    Closed,
}

/// What this user can know; `None` if there is no such process, or nothing is left of it but its status.
pub fn library(pid: u32) -> Option<Library> {
    let owner = user(pid)?;
    let (state, flags) = state(pid)?;
    Some(match has_library(pid) {
        _ if state == "Z" => return None,
        Some(true) => Library::Loaded,
        Some(false) if flags & PF_KTHREAD != 0 => Library::Kernel,
        Some(false) => Library::Absent,
        None if owner == geteuid().as_raw() || geteuid().is_root() => Library::Closed,
        None => Library::OfOther(owner),
    })
}

/// The effective user of a process, as which it has entered itself.
pub fn user(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    // Real, effective, saved, for files.
    status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1)?.parse().ok())
}

/// The letter for what a process does, and the flags that the kernel has for it.
fn state(pid: u32) -> Option<(String, u32)> {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may contain anything.
    let mut words = status.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?.to_owned();
    Some((state, words.nth(5)?.parse().ok()?))
}

/// Whether it is in another IPC namespace than this one; `false` if this user may not know.
pub fn is_of_other_ipc(pid: u32) -> bool {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/ipc")).ok();
    let own = namespace("self");
    namespace(&pid.to_string()).is_some_and(|namespace| own.is_some_and(|own| own != namespace))
}

/// The flag of the kernel for its own threads.
const PF_KTHREAD: u32 = 0x0020_0000;

/// What the library read from its environment when it started. Of a program that has written over that memory, as Redis does
/// with its title, nothing is known: see [`shows_settings`].
pub fn settings(pid: u32) -> Config {
    let environment = environment(pid);
    Config::from_env(|name| value(&environment, name))
}

/// Whether its environment is as it was when the library was loaded.
pub fn shows_settings(pid: u32) -> bool {
    value(&environment(pid), "LD_PRELOAD").is_some_and(|libraries| libraries.contains("libsidestep.so"))
}

fn environment(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

fn value(environment: &[u8], name: &str) -> Option<String> {
    let mut entries = environment.split(|byte| *byte == 0);
    let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// What a process has open.
#[derive(Debug, Default)]
pub struct Descriptors {
    /// How many descriptors.
    pub open: u64,
    /// The sockets among them: number and inode.
    pub sockets: Vec<(u32, u64)>,
}

/// What it has open; nothing if this user may not know.
pub fn descriptors(pid: u32) -> Descriptors {
    let mut descriptors = Descriptors::default();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        descriptors.open += 1;
        let inode = fs::read_link(entry.path()).ok().and_then(|target| inode(target.to_str()?));
        let fd = entry.file_name().to_str().and_then(|name| name.parse().ok());
        descriptors.sockets.extend(fd.zip(inode));
    }
    descriptors
}

/// The inode of a socket, from what its descriptor is a link to.
pub fn inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Whether the process with this number is the one that had it at this time of the monotonic clock, in nanoseconds.
pub fn is_still(pid: u32, since: u64) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // Behind the name, which may contain anything: the twentieth word is when it started, in ticks since the boot.
    let started = status.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)?.parse::<u64>().ok());
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    started.is_none_or(|ticks| ticks.saturating_mul(tick) <= since.saturating_add(asleep()).saturating_add(tick))
}

/// Nanoseconds that the machine has been suspended since its boot: the monotonic clock stands still meanwhile.
fn asleep() -> u64 {
    let [boot, monotonic] = [ClockId::Boottime, ClockId::Monotonic].map(|clock| {
        let time = clock_gettime(clock);
        (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
    });
    boot.saturating_sub(monotonic)
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    use super::*;

    #[test]
    fn a_number_is_one_process_at_a_time() {
        let (own, now) = (std::process::id(), sidestep_sys::clock::now());
        assert!(is_still(own, now));
        assert!(!is_still(own, 0), "it had not started then");
        assert!(!is_still(u32::MAX >> 1, now), "nobody has this number");
        assert_eq!(inode("socket:[77]"), Some(77));
        assert_eq!(inode("/dev/null"), None);
        assert!(program(own).is_some() && has_library(own) == Some(false));
        assert_eq!((library(own), user(own)), (Some(Library::Absent), Some(geteuid().as_raw())));
        assert_eq!(library(u32::MAX >> 1), None);
        // One that has ended, and that its parent has not asked for yet.
        let mut child = std::process::Command::new("true").spawn().unwrap();
        waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert_eq!(library(child.id()), None);
        child.wait().unwrap();
        // The parent of all threads of the kernel, where this namespace shows it; its mappings are empty to root alone.
        if program(2).as_deref() == Some("kthreadd") && geteuid().is_root() {
            assert_eq!(library(2), Some(Library::Kernel));
        }
    }
}
