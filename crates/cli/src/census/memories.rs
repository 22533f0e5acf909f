//! Memories that processes show to whoever looks: each has a name, by which the kernel lists it among the descriptors of its process.

use std::{collections::HashSet, fs, os::unix::fs::MetadataExt, path::Path};

/// What lies in all memories of this name and length, with the process of each, in the order of processes: of those whose descriptors this
/// user may see. Any process can make such a memory.
pub fn named(name: &str, len: usize) -> Vec<(u32, Vec<u8>)> {
    let target = format!("/memfd:{name}");
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let numbers = entries(Path::new("/proc")).filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids: Vec<u32> = numbers.collect();
    pids.sort_unstable();
    let mut found = Vec::new();
    for pid in pids {
        // A copy of a descriptor is the same memory.
        let mut seen = HashSet::new();
        for entry in entries(Path::new(&format!("/proc/{pid}/fd"))) {
            let path = entry.path();
            let is_named = fs::read_link(&path).is_ok_and(|to| to.to_str().is_some_and(|to| to.starts_with(&target)));
            // Whoever made it decides how long it is.
            if is_named
                && let Ok(data) = fs::metadata(&path)
                && data.len() == len as u64
                && seen.insert(data.ino())
                && let Ok(bytes) = fs::read(&path)
            {
                found.push((pid, bytes));
            }
        }
    }
    found
}
