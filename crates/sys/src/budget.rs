//! How much memory may still be taken: what the control groups of this process and the machine leave, less a part that stays
//! the program's own.
//!
//! A group that is out of memory loses processes, without an error to anybody. So whoever makes shared memory asks here
//! before a page of it is touched. An answer is kept for some milliseconds; what is taken meanwhile is counted here.
//!
//! What was taken and not touched yet is invisible to the kernel. Where memory is short, everything is therefore touched
//! when it is made (see `shm::memfd`), so that all processes of a group see the truth.

use std::sync::{
    Mutex, OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::clock;

/// From this much on memory is plentiful: it is not touched before it is used.
pub const PLENTY: u64 = 1 << 30;

/// How long an answer holds, and how long the list of groups.
const ANSWER_NS: u64 = 20_000_000;
const GROUPS_NS: u64 = 1_000_000_000;
/// This part of the limit of a group stays free for the program, and at least so much, for heaps, page tables and the
/// kernel's buffers of its connections; and this part of the machine.
const OWN_OF_GROUP: u64 = 4;
const LEAST_OWN: u64 = 8 << 20;
const OWN_OF_MACHINE: u64 = 32;
/// Of what a group has left, a process takes this part until its next answer: others of the group ask at the same time.
const SHARE: u64 = 2;

static LEFT: AtomicU64 = AtomicU64::new(u64::MAX);
static READ_AT: AtomicU64 = AtomicU64::new(0);
static GROUPS: Mutex<Option<(u64, Vec<Group>)>> = Mutex::new(None);

/// Bytes that may be taken now.
pub fn left() -> u64 {
    let now = clock::now();
    if now.wrapping_sub(READ_AT.load(Relaxed)) > ANSWER_NS
        // Another thread is at it, or was when this process was forked.
        && let Ok(mut groups) = GROUPS.try_lock()
    {
        let stale = groups.as_ref().is_none_or(|(since, _)| now.wrapping_sub(*since) > GROUPS_NS);
        if stale {
            *groups = Some((now, groups_of("")));
        }
        let of_groups = groups.iter().flat_map(|(_, groups)| groups).filter_map(Group::left).min();
        let of_groups = of_groups.map_or(u64::MAX, |left| left / SHARE);
        LEFT.store(of_groups.min(machine_left()), Relaxed);
        READ_AT.store(now, Relaxed);
    }
    LEFT.load(Relaxed)
}

/// Takes so many bytes, if they may be taken.
pub fn take(bytes: u64) -> bool {
    left();
    LEFT.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
}

/// Whether memory that is made now may be touched later: there is plenty, and the kernel does not count promises.
pub fn may_touch_later() -> bool {
    static STRICT: OnceLock<bool> = OnceLock::new();
    // With vm.overcommit_memory=2 a page that cannot be had is a deadly signal when it is touched.
    let strict = STRICT.get_or_init(|| read("/proc/sys/vm/overcommit_memory").is_none_or(|mode| mode.trim() == "2"));
    !strict && left() >= PLENTY
}

/// What the machine can give out without swapping, by its own estimate, or by the amount of free memory where `/proc` is not
/// there.
pub fn machine_left() -> u64 {
    let system = rustix::system::sysinfo();
    let unit = u64::from(system.mem_unit);
    let free = (system.freeram as u64 + system.bufferram as u64).saturating_mul(unit);
    let available = read("/proc/meminfo").and_then(|text| field(&text, "MemAvailable:")).map(|kib| kib << 10);
    available.unwrap_or(free).saturating_sub((system.totalram as u64).saturating_mul(unit) / OWN_OF_MACHINE)
}

/// A control group that this process is in.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    folder: String,
    /// Its files, and what its statistics call pages of files that nobody has used of late.
    limits: &'static [&'static str],
    usage: &'static str,
    reclaimable: &'static str,
}

impl Group {
    /// Bytes that may be taken of it; `None`: it has no limit.
    fn left(&self) -> Option<u64> {
        let number = |name: &str| read(&format!("{}/{name}", self.folder))?.trim().parse::<u64>().ok();
        let limit = self.limits.iter().filter_map(|name| number(name)).min().filter(|limit| *limit < UNLIMITED)?;
        let usage = number(self.usage)?;
        let statistics = read(&format!("{}/memory.stat", self.folder)).unwrap_or_default();
        let needed = usage.saturating_sub(field(&statistics, self.reclaimable).unwrap_or(0));
        let own = LEAST_OWN.max(limit / OWN_OF_GROUP);
        Some(limit.saturating_sub(needed).saturating_sub(own))
    }
}

/// The control groups of this process with what limits their memory, the innermost first. `root` is that of the file system.
fn groups_of(root: &str) -> Vec<Group> {
    let (own, mounts) = (read(&format!("{root}/proc/self/cgroup")), read(&format!("{root}/proc/self/mountinfo")));
    let (own, mounts) = (own.unwrap_or_default(), mounts.unwrap_or_default());
    let mut groups = Vec::new();
    for line in mounts.lines() {
        let Some(mount) = Mount::parse(line) else { continue };
        let path = own.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let fits =
                if mount.unified { controllers.is_empty() } else { controllers.split(',').any(|one| one == "memory") };
            fits.then_some(path)
        });
        // Within a container the path is often that of the host: then the mount shows the group itself.
        let below = path.and_then(|path| path.strip_prefix(mount.root.trim_end_matches('/'))).unwrap_or("");
        let mut below = below.trim_end_matches('/');
        loop {
            let folder = format!("{root}{}{below}", mount.point);
            groups.push(match mount.unified {
                true => Group {
                    folder,
                    limits: &["memory.max", "memory.high"],
                    usage: "memory.current",
                    reclaimable: "inactive_file",
                },
                false => Group {
                    folder,
                    limits: &["memory.limit_in_bytes"],
                    usage: "memory.usage_in_bytes",
                    reclaimable: "total_inactive_file",
                },
            });
            match below.rsplit_once('/') {
                Some((above, _)) => below = above,
                None => break,
            }
        }
    }
    groups
}

/// A mounted hierarchy of control groups that can limit memory.
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    unified: bool,
}

impl Mount<'_> {
    /// Reads a line of `mountinfo` (`proc(5)`).
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let unified = match after.next()? {
            "cgroup2" => true,
            "cgroup" if after.nth(1)?.split(',').any(|option| option == "memory") => false,
            _ => return None,
        };
        Some(Mount { root, point, unified })
    }
}

/// The number after a name, in a file of one name and number a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()? == name).then(|| words.next()?.parse().ok())?
    })
}

/// A small file. Not by the standard library, whose calls go through names that other libraries may have taken.
fn read(path: &str) -> Option<String> {
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    loop {
        let len = bytes.len();
        if len > LONGEST {
            return None;
        }
        bytes.resize(len + PIECE, 0);
        let count = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut bytes[len..])).ok()?;
        bytes.truncate(len + count);
        if count == 0 {
            return String::from_utf8(bytes).ok();
        }
    }
}

/// The kernel says "no limit" by a number that no machine has.
const UNLIMITED: u64 = 1 << 60;
const PIECE: usize = 4 << 10;
const LONGEST: usize = 1 << 20;

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// A file system of its own with these files.
    fn with_files(name: &str, files: &[(&str, &str)]) -> String {
        let root = std::env::temp_dir().join(format!("sidestep-budget-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root.to_str().unwrap().to_owned()
    }

    fn left_in(root: &str) -> Option<u64> {
        let left = groups_of(root).iter().filter_map(Group::left).min();
        fs::remove_dir_all(Path::new(root)).unwrap();
        left
    }

    const UNIFIED: &str = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_tightest_group_on_the_way_up_counts() {
        let root = with_files(
            "unified",
            &[
                ("proc/self/cgroup", "0::/a/b\n"),
                ("proc/self/mountinfo", UNIFIED),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("sys/fs/cgroup/a/b/memory.high", "max\n"),
                ("sys/fs/cgroup/a/b/memory.current", "5000\n"),
                ("sys/fs/cgroup/a/memory.max", "64000000\n"),
                ("sys/fs/cgroup/a/memory.high", "48000000\n"),
                ("sys/fs/cgroup/a/memory.current", "20000000\n"),
                ("sys/fs/cgroup/a/memory.stat", "anon 1\nfile 9000000\nactive_file 1\ninactive_file 8000000\n"),
            ],
        );
        // 48 MB, of which 12 are used and not reclaimable, and a quarter is the program's.
        assert_eq!(left_in(&root), Some(48_000_000 - 12_000_000 - 12_000_000));
    }

    #[test]
    fn the_first_version_of_groups_counts_too() {
        let root = with_files(
            "first",
            &[
                ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n"),
                (
                    "proc/self/mountinfo",
                    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
                ),
                ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "40000000"),
                ("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "29000000"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1"),
            ],
        );
        assert_eq!(left_in(&root), Some(1_000_000));
    }

    #[test]
    fn in_a_container_the_mount_is_the_group() {
        let mount = "30 24 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        for own in ["0::/docker/abc\n", "0::/elsewhere\n", "0::/\n"] {
            let root = with_files(
                "container",
                &[
                    ("proc/self/cgroup", own),
                    ("proc/self/mountinfo", mount),
                    ("sys/fs/cgroup/memory.max", "1000"),
                    ("sys/fs/cgroup/memory.current", "900"),
                ],
            );
            assert_eq!(left_in(&root), Some(0), "{own}");
        }
    }

    #[test]
    fn without_groups_there_is_no_limit() {
        let root = with_files("none", &[("proc/self/cgroup", ""), ("proc/self/mountinfo", "garbage\n")]);
        assert_eq!(left_in(&root), None);
        assert_eq!(groups_of("/nowhere"), []);
    }

    #[test]
    fn what_is_taken_is_counted_before_the_kernel_is_asked_again() {
        let left = left();
        assert!(!take(u64::MAX));
        assert!(take(left / 2) && !take(left));
    }
}
