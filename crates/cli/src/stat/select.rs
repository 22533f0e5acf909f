//! Which sockets are shown, and in which order.

use std::{cmp::Reverse, net::IpAddr, str::FromStr};

use clap::ValueEnum;
use sidestep_sockets::reason::Reason;

use crate::census::{Census, Sighting};

/// What sockets are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    /// Process and descriptor, the smallest first
    Pid,
    /// Bytes both ways since the last look; the same as `bytes` at the first
    Rate,
    /// Bytes both ways
    Bytes,
    /// Messages both ways
    Messages,
    /// Sleeps
    Sleeps,
    /// Age
    Age,
    /// Bytes that lie in the carrier
    Fill,
}

/// A condition on a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    is: bool,
    condition: Condition,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Pid(u32),
    Fd(u32),
    Program(String),
    Port(u16),
    Address(IpAddr),
    Path(&'static str),
    Reason(Reason),
}

const PATHS: [&str; 5] = ["tcp", "ring", "via", "via-iwarp", "via-vmmc"];

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        let (key, value) = text.split_once('=').ok_or("a filter is KEY=VALUE or KEY!=VALUE")?;
        let (is, key) = key.strip_suffix('!').map_or((true, key), |key| (false, key));
        let number = || format!("{value}: {key} is a number");
        let condition = match key {
            "pid" => Condition::Pid(value.parse().map_err(|_| number())?),
            "fd" => Condition::Fd(value.parse().map_err(|_| number())?),
            "port" => Condition::Port(value.parse().map_err(|_| number())?),
            "program" => Condition::Program(value.to_owned()),
            "address" => Condition::Address(value.parse().map_err(|_| format!("{value}: not an IP address"))?),
            "path" => {
                let path = PATHS.iter().find(|path| **path == value);
                Condition::Path(path.ok_or_else(|| format!("{value}: a path is one of {}", PATHS.join(", ")))?)
            }
            "reason" => {
                let reason = Reason::ALL.iter().find(|reason| reason.name().eq_ignore_ascii_case(value));
                Condition::Reason(*reason.ok_or_else(|| {
                    let names: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
                    format!("{value}: a reason is one of {}", names.join(", "))
                })?)
            }
            _ => return Err(format!("{key}: a key is pid, fd, program, port, address, path or reason")),
        };
        Ok(Filter { is, condition })
    }
}

impl Filter {
    fn fits(&self, census: &Census, socket: &Sighting) -> bool {
        let (record, key) = (&socket.record, &socket.record.key);
        let holds = match &self.condition {
            Condition::Pid(pid) => record.pid == *pid,
            Condition::Fd(fd) => record.fd == *fd,
            Condition::Program(name) => census.program(record.pid) == name,
            Condition::Port(port) => [key.local.port(), key.remote.port()].contains(port),
            Condition::Address(address) => [key.local.ip(), key.remote.ip()].contains(address),
            Condition::Path(path) => [socket.reads_from(), socket.writes_to()].contains(path),
            Condition::Reason(reason) => record.reason == *reason,
        };
        holds == self.is
    }
}

/// Bytes of a socket both ways.
pub fn bytes(socket: &Sighting) -> u64 {
    socket.record.read.bytes().saturating_add(socket.record.written.bytes())
}

/// Leaves the sockets that fit all filters, in the order of the key. `rate` is what a socket has moved since the last look.
pub fn select(census: &mut Census, filters: &[Filter], key: SortKey, rate: impl Fn(&Sighting) -> u64) {
    let mut sockets = std::mem::take(&mut census.sockets);
    sockets.retain(|socket| filters.iter().all(|filter| filter.fits(census, socket)));
    let weight = |socket: &Sighting| Reverse(weight(socket, key, census.at, rate(socket)));
    sockets.sort_by_cached_key(|socket| (weight(socket), socket.record.pid, socket.record.fd));
    census.sockets = sockets;
}

/// What a socket is sorted by at this time, the largest first; by its number, if all have the same.
pub fn weight(socket: &Sighting, key: SortKey, at: u64, rate: u64) -> u64 {
    match key {
        SortKey::Pid => 0,
        SortKey::Rate => rate,
        SortKey::Bytes => bytes(socket),
        SortKey::Messages => socket.record.read.messages.saturating_add(socket.record.written.messages),
        SortKey::Sleeps => socket.record.waits.sleeps,
        SortKey::Age => socket.age(at).unwrap_or(0),
        SortKey::Fill => socket.unread().unwrap_or(0).saturating_add(socket.unsent().unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use sidestep_sockets::{address::Key, registry::SocketRecord};

    use super::*;

    fn census() -> Census {
        let socket = |fd: u32, reason| {
            let (local, remote) = (format!("127.0.0.1:{fd}"), "10.0.0.1:80".to_owned());
            let key = Key { namespace: 0, local: local.parse().unwrap(), remote: remote.parse().unwrap() };
            Sighting { record: SocketRecord::unlisted(4711, fd, key, reason), peer: None }
        };
        let sockets = vec![socket(5, Reason::Young), socket(6, Reason::Rule)];
        let program = crate::census::Program { name: "redis".to_owned(), ..Default::default() };
        Census { at: 0, sockets, processes: [(4711, program)].into() }
    }

    fn fitting(filters: &[&str]) -> Vec<u32> {
        let filters: Vec<Filter> = filters.iter().map(|filter| filter.parse().expect(filter)).collect();
        let mut census = census();
        select(&mut census, &filters, SortKey::Pid, bytes);
        census.sockets.iter().map(|socket| socket.record.fd).collect()
    }

    #[test]
    fn filters_leave_what_fits_all_of_them() {
        assert_eq!(fitting(&[]), [5, 6]);
        assert_eq!(fitting(&["fd=5"]), [5]);
        assert_eq!(fitting(&["fd!=5"]), [6]);
        assert_eq!(fitting(&["program=redis", "reason=rule"]), [6]);
        assert_eq!(fitting(&["port=80", "address=10.0.0.1", "path=tcp", "pid=4711"]), [5, 6]);
        assert!(fitting(&["path=ring"]).is_empty());
        for wrong in ["fd", "fd=x", "colour=red", "path=wire", "reason=Mood", "address=host"] {
            assert!(wrong.parse::<Filter>().is_err(), "{wrong}");
        }
    }
}
