//! What processes have left behind: files of registries that are gone, and records of processes that were killed.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use sidestep_sockets::{
    config::config,
    registry::{HINT_LEN, Registry, layout},
};

use super::{Finding, State};

/// Looks, and takes away what is of no use to anybody if it may.
pub fn look(fix: bool) -> Finding {
    let mut left = Vec::new();
    // Only where a registry is: the records of its dead are given back by whoever comes next, and by this.
    if fix
        && let Some(registry) = Registry::attach(&config().directory)
        && let swept @ 1.. = registry.sweep()
    {
        left.push(format!("gave back the records of {swept} processes that are gone"));
    }
    for file in old_files() {
        let shown = file.display().to_string();
        match fix {
            true if fs::remove_file(&file).is_ok() => left.push(format!("removed {shown}")),
            _ => left.push(format!("{shown} names a registry of another version, which is gone")),
        }
    }
    let found = if left.is_empty() { "none".to_owned() } else { left.join("; ") };
    let state = if fix || left.is_empty() { State::Good } else { State::Limited };
    Finding::new(
        "leftovers",
        state,
        found,
        "They are of no use, and do no harm.",
        "`sidestep doctor --fix` takes them away.",
    )
}

/// Files of this user that name registries of other versions of the layout, which nobody has attached any more.
fn old_files() -> Vec<PathBuf> {
    let entries = fs::read_dir(&config().directory).into_iter().flatten().flatten();
    let living = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    entries.map(|entry| entry.path()).filter(|path| is_old(path, &living)).collect()
}

/// Whether a file is one of these, where these segments live.
fn is_old(path: &Path, living: &str) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_own = path.symlink_metadata().is_ok_and(|status| status.is_file() && status.uid() == own);
    let Some(bytes) = is_own.then(|| fs::read(path).ok()).flatten().filter(|bytes| bytes.len() == HINT_LEN) else {
        return false;
    };
    let word = |at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"));
    // The second word is the version and the number of the segment.
    let (version, segment) = (word(1) >> 32, (word(1) as u32).to_string());
    let is_there = living.lines().any(|line| line.split_whitespace().nth(1) == Some(&segment));
    word(0) == layout::MAGIC && version != layout::VERSION && !living.is_empty() && !is_there
}
