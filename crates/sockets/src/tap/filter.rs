//! Which connections are tapped.

use std::net::{IpAddr, Ipv6Addr};

use crate::kernel::address::Key;

/// A connection is tapped if all that is said here holds for one of its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter {
    /// The process of either end.
    pub pid: Option<u32>,
    /// The port of either end.
    pub port: Option<u16>,
    /// The address of either end.
    pub address: Option<IpAddr>,
}

/// Words that a filter takes.
pub const WORDS: usize = 5;

impl Filter {
    /// Whether the connection with this key is tapped, whose ends these processes have.
    pub fn fits(&self, key: &Key, pids: [Option<u32>; 2]) -> bool {
        let ends = [key.local, key.remote];
        self.pid.is_none_or(|pid| pids.contains(&Some(pid)))
            && self.port.is_none_or(|port| ends.iter().any(|end| end.port() == port))
            && self.address.is_none_or(|address| ends.iter().any(|end| end.ip() == address))
    }

    /// In words of shared memory: which of the three are there, and their values.
    pub fn to_words(self) -> [u64; WORDS] {
        let bits = match self.address {
            Some(IpAddr::V4(v4)) => u128::from(v4.to_ipv6_mapped()),
            Some(IpAddr::V6(v6)) => u128::from(v6),
            None => 0,
        };
        let there = [self.pid.is_some(), self.port.is_some(), self.address.is_some()];
        let mask = there.iter().enumerate().map(|(at, there)| u64::from(*there) << at).sum();
        let (pid, port) = (self.pid.unwrap_or(0).into(), self.port.unwrap_or(0).into());
        [mask, pid, port, (bits >> 64) as u64, bits as u64]
    }

    /// Reads that form.
    pub fn from_words([mask, pid, port, high, low]: [u64; WORDS]) -> Filter {
        let v6 = Ipv6Addr::from(u128::from(high) << 64 | u128::from(low));
        Filter {
            pid: (mask & 1 != 0).then_some(pid as u32),
            port: (mask & 2 != 0).then_some(port as u16),
            address: (mask & 4 != 0).then(|| v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)),
        }
    }
}
