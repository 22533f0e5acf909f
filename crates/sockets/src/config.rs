//! What `sidestep run` decided for this process, from the environment.

use std::{net::IpAddr, sync::OnceLock};

use sidestep_shm::wait::Patience;
use sidestep_stream::carrier::via;
use sidestep_sys::budget;

use crate::address::Key;

/// When streams are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promote {
    /// On the second exchange, or after 64 KiB in one direction.
    Default,
    /// At once.
    Eager,
    /// Not at all.
    Never,
    /// At random moments, and back again: for tests.
    Random(u64),
}

/// What carries a promoted stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// Rings in shared memory.
    Ring,
    /// A link over a VI, if the peer has the same setting; rings if not.
    Via,
    /// The same at first; a stream that has left its carrier for good gets one of the other kind next.
    Both,
}

/// What links go over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The NIC on shared memory.
    Shm,
    /// A NIC on iWARP over TCP, if the peer has one, too; rings if not.
    Iwarp,
}

/// The settings of a process.
#[derive(Debug)]
pub struct Config {
    /// When streams are offered.
    pub promote: Promote,
    /// What carries them.
    pub carrier: Carrier,
    /// What links go over.
    pub nic: Device,
    /// How links work.
    pub sovia: via::Options,
    /// How long waits look before they sleep.
    pub patience: Patience,
    /// Ring size at first, and after growth.
    pub rings: (usize, usize),
    /// The directory of the registry.
    pub directory: String,
    rules: Vec<Rule>,
}

/// One `--rule`: the first that fits decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    allow: bool,
    port: Option<u16>,
    network: Option<(IpAddr, u8)>,
}

const DEFAULT_DIRECTORY: &str = "/dev/shm/sidestep";
/// A ring takes at most this part of the memory that is left: a limit of 256 MiB is the least that does not make rings
/// smaller than usual.
const CROWD: u64 = 1024;
/// The smallest ring: two pieces of 8 KiB, which most programs write at a time.
const LEAST_RING: usize = 16 << 10;

static CONFIG: OnceLock<Config> = OnceLock::new();

/// The settings of this process.
pub fn config() -> &'static Config {
    CONFIG.get_or_init(|| Config::from_env(|name| std::env::var(name).ok()))
}

impl Config {
    fn from_env(get: impl Fn(&str) -> Option<String>) -> Config {
        let promote = match get("SIDESTEP_PROMOTE").as_deref() {
            Some("eager") => Promote::Eager,
            Some("never") => Promote::Never,
            Some(other) if other.starts_with("random") => {
                Promote::Random(other.split_once(':').and_then(|(_, seed)| seed.parse().ok()).unwrap_or(1))
            }
            _ => Promote::Default,
        };
        let (patience, rings) = match get("SIDESTEP_PROFILE").as_deref() {
            Some("throughput") => (Patience::DEFAULT, (1 << 20, 4 << 20)),
            Some("frugal") => (Patience::NONE, (64 << 10, 256 << 10)),
            _ => (Patience::DEFAULT, (128 << 10, 1 << 20)),
        };
        let carrier = match get("SIDESTEP_CARRIER").as_deref() {
            Some("via") => Carrier::Via,
            Some("both") => Carrier::Both,
            _ => Carrier::Ring,
        };
        let nic = if get("SIDESTEP_NIC").as_deref() == Some("iwarp") { Device::Iwarp } else { Device::Shm };
        let sovia = get("SIDESTEP_SOVIA").and_then(|text| via::Options::parse(&text).ok());
        let sovia = sovia.unwrap_or(via::Options::BEST);
        let rules = get("SIDESTEP_RULE").map(|rules| rules.split(',').filter_map(Rule::parse).collect());
        let directory = get("SIDESTEP_DIR").unwrap_or_else(|| DEFAULT_DIRECTORY.to_string());
        Config { promote, carrier, nic, sovia, patience, rings, directory, rules: rules.unwrap_or_default() }
    }

    /// The largest ring up to this size, a power of two, of which the memory that is left has room for many.
    pub fn affordable_ring(&self, wanted: usize) -> usize {
        let share = usize::try_from(budget::left() / CROWD).unwrap_or(usize::MAX);
        let affordable = share.max(LEAST_RING).min(wanted);
        if affordable == wanted { wanted } else { 1 << affordable.ilog2() }
    }

    /// Whether the registry is where it is by default.
    pub fn is_default_directory(&self) -> bool {
        self.directory == DEFAULT_DIRECTORY
    }

    /// Whether the rules let this connection be promoted.
    pub fn allows(&self, key: &Key) -> bool {
        self.rules.iter().find(|rule| rule.fits(key)).is_none_or(|rule| rule.allow)
    }
}

impl Rule {
    /// Reads `allow:port=6379`, `deny:addr=10.0.0.0/8`, `deny:all`; several conditions are joined by `;`.
    pub fn parse(text: &str) -> Option<Rule> {
        let (verb, conditions) = text.trim().split_once(':')?;
        let allow = match verb {
            "allow" => true,
            "deny" => false,
            _ => return None,
        };
        let mut rule = Rule { allow, port: None, network: None };
        for condition in conditions.split(';').filter(|condition| *condition != "all") {
            match condition.split_once('=')? {
                ("port", port) => rule.port = Some(port.parse().ok()?),
                ("addr", network) => {
                    let (ip, bits) = network.split_once('/').unwrap_or((network, "128"));
                    let ip: IpAddr = ip.parse().ok()?;
                    rule.network = Some((ip, bits.parse().ok()?));
                }
                _ => return None,
            }
        }
        Some(rule)
    }

    fn fits(&self, key: &Key) -> bool {
        let port = self.port.is_none_or(|port| key.local.port() == port || key.remote.port() == port);
        let network =
            self.network.is_none_or(|network| contains(network, key.local.ip()) || contains(network, key.remote.ip()));
        port && network
    }
}

fn contains((network, bits): (IpAddr, u8), ip: IpAddr) -> bool {
    match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => {
            let shift = 32 - u32::from(bits.min(32));
            u32::from(network).checked_shr(shift) == u32::from(ip).checked_shr(shift)
        }
        (IpAddr::V6(network), IpAddr::V6(ip)) => {
            let shift = 128 - u32::from(bits.min(128));
            u128::from(network).checked_shr(shift) == u128::from(ip).checked_shr(shift)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(rules: &str) -> Config {
        Config::from_env(|name| (name == "SIDESTEP_RULE").then(|| rules.to_string()))
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let key =
            Key { namespace: 0, local: "127.0.0.1:4000".parse().unwrap(), remote: "127.0.0.1:80".parse().unwrap() };
        assert!(config("").allows(&key));
        assert!(!config("deny:port=80").allows(&key));
        assert!(config("allow:port=80,deny:all").allows(&key));
        assert!(!config("deny:all").allows(&key));
        assert!(!config("deny:addr=127.0.0.0/8;port=80").allows(&key));
        assert!(config("deny:addr=10.0.0.0/8").allows(&key));
        assert_eq!(Rule::parse("deny:colour=red"), None);
    }
}
