//! What `sidestep run` decided for this process, from the environment.

use std::sync::OnceLock;

use sidestep_shm::wait::Patience;
use sidestep_stream::carrier::via;
use sidestep_sys::budget;

use crate::kernel::{self, address::Key};

pub mod options;
mod rule;
pub mod users;

pub use options::WrongValue;
pub use rule::Rule;
pub use users::Users;

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
    /// A NIC on a card of VMMC, if the peer has one, too; rings if not. The link of this name is provided by whoever loads the
    /// engine.
    Vmmc,
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
    /// Bytes of memory that the card of the last of these has.
    pub card: usize,
    /// How links work.
    pub sovia: via::Options,
    /// How long waits look before they sleep.
    pub patience: Patience,
    /// Sizes of a ring: at first, for bulk, and for a stream that does not end or a reader that does not read.
    pub rings: [usize; 3],
    /// With whose processes memory is shared.
    pub users: Users,
    /// The directory of the registry.
    pub directory: String,
    /// The process that reads the registry when this one has ended, if it is the parent.
    pub watcher: Option<u32>,
    /// A value that is not allowed: then nothing is promoted, whatever else was decided.
    pub wrong: Option<WrongValue>,
    rules: Vec<Rule>,
}

/// A ring takes at most this part of the memory that is left: a limit of 256 MiB is the least that does not make rings
/// smaller than usual.
const CROWD: u64 = 1024;
/// The smallest ring: two pieces of 8 KiB, which most programs write at a time.
const LEAST_RING: usize = 16 << 10;

/// The variable by which `sidestep run --verbose` tells its child who reads the registry when it has ended.
pub const WATCHER: &str = "SIDESTEP_WATCHER";

static CONFIG: OnceLock<Config> = OnceLock::new();

/// The settings of this process.
pub fn config() -> &'static Config {
    // What is no text is no value of any option, and is shown as such.
    CONFIG.get_or_init(|| Config::from_env(|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned())))
}

/// Says what is wrong with the settings of this process, if something is.
pub fn complain() {
    if let Some(wrong) = &config().wrong {
        kernel::complain(&format!("sidestep: {wrong}: all connections of this process stay on TCP\n"));
    }
}

impl Config {
    /// The settings in an environment.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Config {
        Config::try_from_env(&get).unwrap_or_else(|wrong| {
            let directory = options::DIRECTORY.read(&get).unwrap_or_else(|_| options::DIRECTORY.default.to_owned());
            let usual = Config::try_from_env(|_| None).expect("defaults are allowed");
            Config { promote: Promote::Never, directory, wrong: Some(wrong), ..usual }
        })
    }

    fn try_from_env(get: impl Fn(&str) -> Option<String>) -> Result<Config, WrongValue> {
        let text = |option: options::RunOption| option.read(&get);
        let (patience, rings) = [
            (Patience::DEFAULT, [128 << 10, 1 << 20, 4 << 20]),
            (Patience::DEFAULT, [1 << 20, 4 << 20, 4 << 20]),
            (Patience::NONE, [64 << 10, 256 << 10, 512 << 10]),
        ][options::PROFILE.choice(&get)?];
        Ok(Config {
            promote: Promote::parse(&text(options::PROMOTE)?).unwrap_or(Promote::Default),
            carrier: [Carrier::Ring, Carrier::Via, Carrier::Both][options::CARRIER.choice(&get)?],
            nic: [Device::Shm, Device::Iwarp, Device::Vmmc][options::NIC.choice(&get)?],
            card: options::kilobytes(&text(options::CARD)?).unwrap_or(1024) << 10,
            sovia: via::Options::parse(&text(options::SOVIA)?).unwrap_or(via::Options::BEST),
            patience,
            rings,
            users: Users::parse(&text(options::USERS)?).unwrap_or(Users::Same),
            directory: text(options::DIRECTORY)?,
            watcher: get(WATCHER).and_then(|pid| pid.parse().ok()),
            wrong: None,
            rules: Rule::parse_all(&text(options::RULE)?).unwrap_or_default(),
        })
    }

    /// The largest ring up to this size, a power of two, of which the memory that is left has room for many.
    pub fn affordable_ring(&self, wanted: usize) -> usize {
        let share = usize::try_from(budget::left() / CROWD).unwrap_or(usize::MAX);
        let affordable = share.max(LEAST_RING).min(wanted);
        if affordable == wanted { wanted } else { 1 << affordable.ilog2() }
    }

    /// Whether the rules let this connection be promoted.
    pub fn allows(&self, key: &Key) -> bool {
        self.rules.iter().find(|rule| rule.fits(key)).is_none_or(|rule| rule.allow)
    }
}

impl Promote {
    /// Reads `default`, `eager`, `never`, `random` or `random:SEED`.
    pub fn parse(text: &str) -> Result<Promote, String> {
        match text.split_once(':') {
            None if text == "default" => Ok(Promote::Default),
            None if text == "eager" => Ok(Promote::Eager),
            None if text == "never" => Ok(Promote::Never),
            None if text == "random" => Ok(Promote::Random(1)),
            Some(("random", seed)) => seed.parse().map(Promote::Random).map_err(|_| format!("{seed} is not a number")),
            _ => Err("no time has this name".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{options::Values, *};

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
        assert!(!config("deny:addr=127.0.0.1").allows(&key));
        assert!(config("deny:addr=127.0.0.2").allows(&key));
        assert!(config("deny:addr=10.0.0.0/8").allows(&key));
        for wrong in ["deny:colour=red", "port=80", "forbid:all", "deny:port=x", "deny:addr=1.2.3.4/33", "deny:"] {
            assert!(Rule::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_option_refuses_what_it_does_not_take() {
        for option in options::ALL {
            let set = |value: &str| {
                let value = value.to_owned();
                Config::from_env(move |name| (name == option.variable).then(|| value.clone())).wrong
            };
            assert_eq!(set(option.default), None, "{option:?}");
            assert_eq!(set(""), None, "{option:?}");
            if let Values::OneOf(words) = option.values {
                words.iter().for_each(|(name, _)| assert_eq!(set(name), None, "{option:?}"));
            }
            if option.name == options::VERBOSE.name {
                // The library has no use for it.
                assert!(option.check("perhaps").is_err());
                continue;
            }
            let wrong = set("colour=red").expect(option.name);
            let said = wrong.to_string();
            for part in [option.name, option.variable, "colour=red", &option.allowed()] {
                assert!(said.contains(part), "{part} is not in {said}");
            }
        }
    }

    #[test]
    fn nothing_is_promoted_with_a_wrong_value() {
        let wrong = |name: &str| match name {
            "SIDESTEP_CARRIER" => Some("pigeon".to_string()),
            "SIDESTEP_DIR" => Some("/tmp/elsewhere".to_string()),
            _ => None,
        };
        let config = Config::from_env(wrong);
        assert_eq!((config.promote, config.directory.as_str()), (Promote::Never, "/tmp/elsewhere"));
    }

    #[test]
    fn promote_is_read() {
        for (text, promote) in [("random:7", Promote::Random(7)), ("never", Promote::Never)] {
            assert_eq!(Promote::parse(text), Ok(promote));
        }
        for text in ["", "random:", "random:x", "eager:1", "often"] {
            assert!(Promote::parse(text).is_err(), "{text}");
        }
    }
}
