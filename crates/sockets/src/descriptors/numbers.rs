//! Numbers of descriptors that are the engine's own: above the limit of the program, where none of its calls can meet them.
//!
//! A program may raise its limit. Then, and where there is no room above it, they lie at the end of what it may use. One that may
//! have few at all has no engine: every number that the engine took would be missed, or met.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fs::{self, Dir, Mode, OFlags, readlinkat},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use sidestep_sys::descriptor;

/// Numbers that are left above the limit of a program, if it has many.
const ROOM: u64 = 512;
/// A program that may have fewer needs all of them.
const FEW: u64 = 256;
/// The kernel's table of a process is as long as its highest number, and is copied by every `fork`.
const LOW: u64 = 4096;
const HIGH: u64 = 1 << 16;

/// Numbers that the kernel's table had room for before the engine made it longer.
/// 0: nobody has looked. No `OnceLock`: a child would wait for ever for a thread of its parent's that was looking.
static TABLE: AtomicU32 = AtomicU32::new(0);

/// Before the program begins: leaves room above its limit.
pub fn start() {
    let Rlimit { current: Some(soft), maximum: Some(hard) } = getrlimit(Resource::Nofile) else { return };
    let room = ROOM.min(hard / 16);
    if hard >= FEW && hard - soft.min(hard) < room {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(hard - room), maximum: Some(hard) });
    }
}

/// Before a descriptor is made: chooses where those of the engine lie from now on. `false`: there is no room for them.
pub fn choose() -> bool {
    if TABLE.load(Ordering::Relaxed) == 0 {
        let _ = TABLE.compare_exchange(0, measured().unwrap_or(u32::MAX), Ordering::Relaxed, Ordering::Relaxed);
    }
    let Rlimit { current, maximum } = descriptor::limit();
    let soft = current.unwrap_or(u64::MAX);
    let hard = maximum.unwrap_or(u64::MAX);
    let below = soft.min(HIGH) - soft.min(HIGH) / 4;
    let room = ROOM.min(hard / 16);
    let floor = if hard - soft.min(hard) >= room { soft.max(LOW.min(hard - room)) } else { below };
    descriptor::set_floor(u32::try_from(floor).unwrap_or(0), below as u32);
    hard >= FEW
}

/// Where a program finds what the one before has left for it. Depends on the hard limit alone.
pub fn handed_on() -> Option<i32> {
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    (hard >= FEW).then(|| hard.min(LOW + ROOM) as i32 - 1)
}

/// The numbers that are open and not the engine's. None where there is no `/proc`.
pub fn open() -> Vec<i32> {
    list().ok().and_then(|folder| open_ones(&folder).map(Iterator::collect)).unwrap_or_default()
}

/// How many numbers the kernel's table would have room for without the engine, so that `select` does not look beyond.
pub fn table() -> u32 {
    let known = TABLE.load(Ordering::Relaxed);
    let first = if known == 0 { measured() } else { Some(known) };
    let grown = highest().map(grown);
    first.zip(grown).map_or(u32::MAX, |(first, grown)| first.max(grown))
}

/// The length of a table with room for a number, as the kernel makes it.
fn grown(number: u32) -> u32 {
    if number < 64 { 64 } else { (number / 128 + 1).next_power_of_two() * 128 }
}

/// Whether a descriptor of the program is of this kind, as its link in `/proc` names it. `false` where there is no `/proc`.
pub fn has_any(kind: &str) -> bool {
    let Ok(folder) = list() else { return false };
    let is_one = |fd: i32| {
        let link = readlinkat(&folder, fd.to_string(), Vec::new());
        link.is_ok_and(|link| link.as_bytes() == kind.as_bytes())
    };
    open_ones(&folder).into_iter().flatten().any(is_one)
}

/// The highest number that is open and not the engine's.
fn highest() -> Option<u32> {
    let folder = list().ok()?;
    open_ones(&folder)?.max().map(|fd| fd as u32)
}

/// The folder of what is open.
fn list() -> rustix::io::Result<OwnedFd> {
    fs::open("/proc/self/fd", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// The numbers that are open, but for the folder itself and the engine's.
fn open_ones(folder: &OwnedFd) -> Option<impl Iterator<Item = i32> + use<>> {
    let own = folder.as_raw_fd();
    let entries = Dir::read_from(folder).ok()?.filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str().ok()?.parse::<i32>().ok());
    Some(numbers.filter(move |fd| *fd != own && !descriptor::is_kept(*fd)))
}

/// The length of this process's table now.
fn measured() -> Option<u32> {
    let file = fs::open("/proc/self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    // It is among the first lines.
    let mut text = [0; 512];
    let count = rustix::io::read(&file, &mut text).ok()?;
    let text = std::str::from_utf8(&text[..count]).ok()?;
    text.lines().find_map(|line| line.strip_prefix("FDSize:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::grown;

    #[test]
    fn tables_grow_as_the_kernel_s_do() {
        assert_eq!(
            [0, 63, 64, 127, 128, 255, 256, 700, 1024].map(grown),
            [64, 64, 128, 128, 256, 256, 512, 1024, 2048]
        );
    }
}
