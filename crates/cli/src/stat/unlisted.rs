//! Connections that are not in the registry: too young for it, or of a process that cannot have an engine. The kernel tells
//! which processes have the library loaded, and what they are connected to.

use std::{
    collections::HashMap,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};

use sidestep_sockets::{
    address::Key,
    config::{Config, Promote, config},
    reason::Reason,
    registry::{self, Registry, SocketRecord, View},
};

/// Adds those of all processes.
pub fn add(sockets: &mut Vec<SocketRecord>) {
    let (first, mut settings_of) = (sockets.len(), HashMap::new());
    let mut tables = HashMap::new();
    for process in processes() {
        let folder = format!("/proc/{process}");
        let Some(settings) = accelerated(&folder) else { continue };
        let namespace = fs::read_link(format!("{folder}/ns/net")).unwrap_or_default();
        let table = tables.entry(namespace).or_insert_with(|| connections(&folder));
        let reason = Reason::Young;
        // Asked while it lives.
        settings_of.insert(process, (settings, is_short(process, true)));
        for (fd, inode) in descriptors(&folder) {
            let Some((local, remote)) = table.get(&inode).copied() else { continue };
            let known = |socket: &SocketRecord| {
                socket.pid == process && socket.key.local == local && socket.key.remote == remote
            };
            if sockets.iter().any(known) {
                continue;
            }
            sockets.push(SocketRecord::unlisted(process, fd, Key { namespace: 0, local, remote }, reason));
        }
    }
    // Looked at after the sockets: a process that has left word meanwhile is heard.
    let registries = Registry::look_at_all(&config().directory);
    for socket in &mut sockets[first..] {
        let (settings, short) = &settings_of[&socket.pid];
        let said = reason(&registries, socket.pid, settings);
        socket.reason = if *short && said == Reason::Young { Reason::Resources } else { said };
    }
}

/// Why a connection of this process is not in the registry.
fn reason(registries: &[View], process: u32, settings: &Config) -> Reason {
    if settings.wrong.is_some() {
        return Reason::WrongOption;
    }
    if settings.promote == Promote::Never {
        return Reason::Rule;
    }
    let excuse = registries.iter().find_map(|registry| registry.process(process)?.excuse);
    let is_short = || is_short(process, !registries.is_empty()) || registries.is_empty() && !can_be_made();
    excuse.unwrap_or_else(|| if is_short() { Reason::Resources } else { Reason::Young })
}

/// Whether a process has no descriptors or no address space left for the registry, where it would leave word, or cannot make
/// one if it is not there.
fn is_short(process: u32, is_there: bool) -> bool {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap_or_default();
    let limit = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(u64::MAX)
    };
    let open = fs::read_dir(format!("/proc/{process}/fd")).map_or(0, |entries| entries.count()) as u64;
    let sizes = fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages: u64 = sizes.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
    let mapped = pages * rustix::param::page_size() as u64;
    let needed = registry::LEN as u64;
    // Two at once: the directory, and the file that says where the registry is.
    open + 2 > limit("Max open files")
        || mapped + needed > limit("Max address space")
        || !is_there && registry::HINT_LEN as u64 > limit("Max file size")
}

/// Whether the first process that needs a registry can make it.
fn can_be_made() -> bool {
    let folder = Path::new(&config().directory);
    let holder = if folder.exists() { Some(folder) } else { folder.parent() };
    let usable = holder
        .is_some_and(|holder| holder.is_dir() && rustix::fs::access(holder, rustix::fs::Access::WRITE_OK).is_ok());
    let has_room =
        |holder: &Path| rustix::fs::statvfs(holder).is_ok_and(|space| space.f_bavail > 0 && space.f_favail > 0);
    usable && holder.is_some_and(has_room)
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The settings of a process of this user that has the library loaded, and uses this registry.
fn accelerated(folder: &str) -> Option<Config> {
    let loaded = fs::read_to_string(format!("{folder}/maps")).is_ok_and(|maps| maps.contains("/libsidestep.so"));
    let environment = if loaded { fs::read(format!("{folder}/environ")).unwrap_or_default() } else { return None };
    let settings = settings(&environment);
    (settings.directory == config().directory).then_some(settings)
}

/// What the library reads from an environment.
fn settings(environment: &[u8]) -> Config {
    let value = |name: &str| {
        let mut entries = environment.split(|byte| *byte == 0);
        let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(String::from_utf8_lossy(value).into_owned())
    };
    Config::from_env(value)
}

/// The sockets that a process has open: number and inode.
fn descriptors(folder: &str) -> Vec<(u32, u64)> {
    let entries = fs::read_dir(format!("{folder}/fd")).into_iter().flatten().flatten();
    let socket = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, inode))
    };
    entries.filter_map(socket).collect()
}

/// The TCP connections of a network namespace, by inode.
fn connections(folder: &str) -> HashMap<u64, (SocketAddr, SocketAddr)> {
    let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("{folder}/net/{name}")).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines().skip(1)).filter_map(connection).collect()
}

/// One line of such a table.
fn connection(line: &str) -> Option<(u64, (SocketAddr, SocketAddr))> {
    let mut words = line.split_whitespace().skip(1);
    let (local, remote, state) = (address(words.next()?)?, address(words.next()?)?, words.next()?);
    // Established, or with one end that has ended.
    if !["01", "04", "05", "08"].contains(&state) {
        return None;
    }
    Some((words.nth(5)?.parse().ok()?, (local, remote)))
}

/// An address as the kernel prints it: words of the machine in hexadecimal, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let bytes = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            let v6 = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
            v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line =
            "   3: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0";
        let (inode, (local, remote)) = connection(line).expect("a connection");
        assert_eq!((inode, local.to_string().as_str(), remote.port()), (4711, "127.0.0.1:8080", 50000));
        let listening = line.replace(" 01 ", " 0A ");
        assert_eq!(connection(&listening), None);
        let mapped = address("0000000000000000FFFF00000100007F:0050").expect("an address");
        assert_eq!(mapped.to_string(), "127.0.0.1:80");
        let own = address("00000000000000000000000001000000:0050").expect("an address");
        assert_eq!(own.to_string(), "[::1]:80");
        assert_eq!(address("0100007F"), None);
    }
}
