//! The name service: names of hosts, and a file; and which names a device may have.
//!
//! The file is named by the program, or by `SIDESTEP_VIA_HOSTS`; each line is an IPv4 address and names, as in
//! `/etc/hosts`, which is looked at next. The resolver of the system comes last.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, ToSocketAddrs},
    path::{Path, PathBuf},
};

use crate::error::{Error, Result};

/// Answers questions about names.
#[derive(Debug, Clone)]
pub struct NameService {
    files: Vec<PathBuf>,
}

const HOSTS: &str = "/etc/hosts";

impl NameService {
    /// With a file of the program's own, which must be readable, or none.
    pub fn new(file: Option<&Path>) -> Result<NameService> {
        let own = file.map(Path::to_path_buf).or_else(|| std::env::var_os("SIDESTEP_VIA_HOSTS").map(PathBuf::from));
        if let Some(own) = &own {
            fs::read_to_string(own).map_err(|_| Error::NameService(format!("file {}", own.display())))?;
        }
        Ok(NameService { files: own.into_iter().chain([PathBuf::from(HOSTS)]).collect() })
    }

    /// The address of a host; a host with several has them under 0, 1, 2 and so on.
    pub fn address_of(&self, name: &str, index: usize) -> Result<Vec<u8>> {
        let unknown = || Error::NameService(format!("address {index} of {name:?}"));
        let mut found: Vec<Ipv4Addr> =
            self.entries().filter(|(_, names)| names.iter().any(|known| known == name)).map(|(ip, _)| ip).collect();
        if found.is_empty() {
            if name == own_name() {
                found.push(Ipv4Addr::LOCALHOST);
            } else if let Ok(resolved) = (name, 0).to_socket_addrs() {
                found.extend(resolved.filter_map(|address| match address.ip() {
                    IpAddr::V4(ip) => Some(ip),
                    IpAddr::V6(_) => None,
                }));
            }
        }
        found.dedup();
        found.get(index).map(|ip| ip.octets().to_vec()).ok_or_else(unknown)
    }

    /// The name of a host.
    pub fn name_of(&self, address: &[u8]) -> Result<String> {
        let unknown = || Error::NameService(format!("name of {address:?}"));
        let ip = Ipv4Addr::from(<[u8; 4]>::try_from(address).map_err(|_| unknown())?);
        let known = self.entries().find(|(entry, _)| *entry == ip).and_then(|(_, mut names)| names.drain(..).next());
        known.or_else(|| (own_address() == address).then(own_name)).ok_or_else(unknown)
    }

    fn entries(&self) -> impl Iterator<Item = (Ipv4Addr, Vec<String>)> + '_ {
        let texts = self.files.iter().filter_map(|file| fs::read_to_string(file).ok());
        texts.flat_map(|text| text.lines().filter_map(parse_line).collect::<Vec<_>>())
    }
}

fn parse_line(line: &str) -> Option<(Ipv4Addr, Vec<String>)> {
    let mut words = line.split('#').next()?.split_whitespace();
    let ip = words.next()?.parse().ok()?;
    Some((ip, words.map(str::to_string).collect()))
}

/// The address of this host: everything is on it.
pub(crate) fn own_address() -> Vec<u8> {
    Ipv4Addr::LOCALHOST.octets().to_vec()
}

fn own_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "localhost".into(), |name| name.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_hosts() {
        assert_eq!(parse_line("10.0.0.1 a b # c"), Some((Ipv4Addr::new(10, 0, 0, 1), vec!["a".into(), "b".into()])));
        assert_eq!(parse_line("# nothing"), None);
        assert_eq!(parse_line("::1 six"), None);
    }
}
