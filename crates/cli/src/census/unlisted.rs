//! Connections that are not in the registry: too young for it, or of a process that cannot have an engine. The kernel tells
//! which processes have the library loaded, and what they are connected to.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::Path,
};

use sidestep_sockets::{
    address::Key,
    config::{Config, Promote, config},
    reason::Reason,
    registry::{self, Registry, SocketRecord, View},
};

use super::{
    process,
    tables::{State, Tables},
};

/// Adds those of all processes that use this registry.
pub fn add(sockets: &mut Vec<SocketRecord>, tables: &mut Tables) {
    let known: HashSet<_> = sockets.iter().map(|socket| (socket.pid, socket.key.local, socket.key.remote)).collect();
    // Who has left word in the registry has the library. To find it among the mappings of a process takes long, if that has many.
    let under_sidestep: HashSet<u32> = sockets.iter().map(|socket| socket.pid).collect();
    let has_library = |pid: &u32| under_sidestep.contains(pid) || process::has_library(*pid) == Some(true);
    let (first, mut processes) = (sockets.len(), HashMap::new());
    for pid in process::all().filter(has_library) {
        let settings = process::settings(pid);
        if settings.directory != config().directory && !under_sidestep.contains(&pid) {
            continue;
        }
        let descriptors = tables.descriptors(pid);
        // Asked while it lives.
        processes.insert(pid, (settings, descriptors.open, is_short(pid, descriptors.open, true)));
        let table = tables.of_process(pid);
        for (fd, inode) in descriptors.sockets.iter().copied() {
            let Some(row) = table.with_inode(inode).filter(|row| row.state != State::Listening) else { continue };
            if !known.contains(&(pid, row.local, row.remote)) {
                let key = Key { namespace: 0, local: row.local, remote: row.remote };
                sockets.push(SocketRecord::unlisted(pid, fd, key, Reason::Young));
            }
        }
    }
    // Looked at after the sockets: a process that has left word meanwhile is heard.
    let registries = Registry::look_at_all(&config().directory);
    // One answer for all connections of a process, which may have very many.
    let mut reasons = HashMap::new();
    for socket in &mut sockets[first..] {
        socket.reason = *reasons.entry(socket.pid).or_insert_with(|| {
            let (settings, open, short) = &processes[&socket.pid];
            let said = reason(&registries, socket.pid, *open, settings);
            if *short && said == Reason::Young { Reason::Resources } else { said }
        });
    }
}

/// Why connections of this process are not in the registry.
fn reason(registries: &[View], pid: u32, open: u64, settings: &Config) -> Reason {
    if settings.wrong.is_some() {
        return Reason::WrongOption;
    }
    if settings.promote == Promote::Never {
        return Reason::Rule;
    }
    if process::is_of_other_ipc(pid) {
        return Reason::OtherIpc;
    }
    let excuse = super::said(registries, pid).and_then(|said| said.excuse);
    let is_short = || is_short(pid, open, !registries.is_empty()) || registries.is_empty() && !can_be_made();
    excuse.unwrap_or_else(|| if is_short() { Reason::Resources } else { Reason::Young })
}

/// Whether a process with so many descriptors open has none, or no address space, left for the registry, where it would leave
/// word, or cannot make one if it is not there.
fn is_short(pid: u32, open: u64, is_there: bool) -> bool {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let limit = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(u64::MAX)
    };
    let sizes = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = sizes.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
    let mapped = pages * rustix::param::page_size() as u64;
    let needed = registry::LEN as u64;
    // Two at once: the directory, and the file that says where the registry is.
    open + 2 > limit("Max open files")
        || mapped + needed > limit("Max address space")
        || !is_there && registry::HINT_LEN as u64 > limit("Max file size")
}

/// Whether the first process that needs a registry can make it.
pub fn can_be_made() -> bool {
    let folder = Path::new(&config().directory);
    let holder = if folder.exists() { Some(folder) } else { folder.parent() };
    let usable = holder
        .is_some_and(|holder| holder.is_dir() && rustix::fs::access(holder, rustix::fs::Access::WRITE_OK).is_ok());
    let has_room =
        |holder: &Path| rustix::fs::statvfs(holder).is_ok_and(|space| space.f_bavail > 0 && space.f_favail > 0);
    usable && holder.is_some_and(has_room)
}
