//! The names of NICs: which there are, and what they mean.
//!
//! A program may try `VINIC0`, `VINIC1` and so on until one does not open, so each row of names has one device. Names that
//! a site's programs use besides are given in the environment, as `SIDESTEP_VIA_NICS=NAME=shm,NAME=iwarp`.

use std::env;

use sidestep_fabric::link::SCHEMES;

use crate::error::{Error, Result};

/// A device, as the scheme of the link that carries its connections, and whether it belongs to one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) scheme: &'static str,
    pub(crate) single: bool,
}

/// The names that programs use for the first device of a host, and those of this provider.
const KNOWN: [(&str, &str); 11] = [
    ("nic0", "shm"),
    ("shm", "shm"),
    ("VINIC", "shm"),
    ("VINIC0", "shm"),
    ("via0", "shm"),
    ("/dev/via_lo", "shm"),
    ("/dev/via_eth0", "shm"),
    ("/dev/clanvi0", "shm"),
    ("iwarp", "iwarp"),
    ("iwarp0", "iwarp"),
    // Where the program provides that link.
    ("vmmc", "vmmc"),
];

/// Behind the name of a device: for one thread.
const SINGLE: &str = ",single";
/// Names of the site.
const OWN_NAMES: &str = "SIDESTEP_VIA_NICS";

impl Device {
    /// The device of a name.
    pub(crate) fn named(name: &str) -> Result<Device> {
        let own = env::var(OWN_NAMES).unwrap_or_default();
        let (device, single) = match name.strip_suffix(SINGLE) {
            Some(device) => (device, true),
            None => (name, false),
        };
        let scheme = find(device, &own).ok_or_else(|| Error::NoDevice(device.into()))?;
        Ok(Device { scheme, single })
    }
}

fn find(device: &str, own: &str) -> Option<&'static str> {
    let own = own.split(',').filter_map(|entry| entry.rsplit_once('=')).find(|(name, _)| *name == device);
    match own {
        Some((_, scheme)) => SCHEMES.into_iter().find(|known| *known == scheme),
        None => KNOWN.iter().find(|(name, _)| *name == device).map(|(_, scheme)| *scheme),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_names_has_one_device() {
        for name in ["nic0", "VINIC", "VINIC0", "/dev/via_lo", "/dev/via_eth0", "/dev/clanvi0", "via0", "shm"] {
            assert_eq!(find(name, ""), Some("shm"), "{name}");
        }
        assert_eq!([find("iwarp", ""), find("iwarp0", "")], [Some("iwarp"); 2]);
        for name in ["", "nic1", "VINIC1", "iwarp1", "/dev/clanvi1", "/dev/via_eth1", "/dev/null", "a\nb", "nic0 "] {
            assert_eq!(find(name, ""), None, "{name}");
        }
    }

    #[test]
    fn a_site_has_names_of_its_own() {
        let own = "/dev/lanai=shm,wan0=iwarp,nic0=iwarp,odd=token";
        assert_eq!([find("/dev/lanai", own), find("shm", own)], [Some("shm"); 2]);
        assert_eq!([find("wan0", own), find("nic0", own)], [Some("iwarp"); 2]);
        assert_eq!([find("odd", own), find("nic1", own)], [None; 2]);
    }

    #[test]
    fn a_suffix_gives_it_to_one_thread() {
        assert_eq!(Device::named("nic0,single"), Ok(Device { scheme: "shm", single: true }));
        assert_eq!(Device::named("nic7,single"), Err(Error::NoDevice("nic7".into())));
    }
}
