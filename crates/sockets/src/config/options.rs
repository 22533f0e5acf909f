//! Every option of `sidestep run`, once: its name, its environment variable, what it takes, its default and its help. The
//! command line, the library and the table of `docs/operating.md` are made from it.

use std::fmt;

use sidestep_stream::carrier::via;

use super::{Promote, Rule, Users};

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct RunOption {
    /// The word behind `--`.
    pub name: &'static str,
    /// By which it reaches the program.
    pub variable: &'static str,
    /// What it takes.
    pub values: Values,
    /// What it is if nobody gives it; empty if it has no value then.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// What an option takes.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// One of these words, each with its help.
    OneOf(&'static [(&'static str, &'static str)]),
    /// Text in this form; the function says what is wrong with one.
    Text {
        /// What help calls it.
        name: &'static str,
        /// What is allowed, in words.
        allowed: &'static str,
        /// Fails for what is not allowed.
        check: fn(&str) -> Result<(), String>,
        /// Whether it may be given several times; the values are joined by commas.
        repeats: bool,
    },
    /// Nothing: it is there or not. In the environment `true` or `false`.
    Flag,
}

/// An option with a value that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongValue {
    /// The environment variable.
    pub variable: &'static str,
    /// The option.
    pub option: &'static str,
    /// The value.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
}

impl fmt::Display for WrongValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongValue { variable, option, value, allowed } = self;
        write!(out, "{variable}={value} is not allowed: --{option} takes {allowed}")
    }
}

impl RunOption {
    /// What is allowed, in words.
    pub fn allowed(&self) -> String {
        match self.values {
            Values::OneOf(words) => {
                let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
                names.join(", ")
            }
            Values::Text { allowed, .. } => allowed.to_owned(),
            Values::Flag => "true or false".to_owned(),
        }
    }

    /// Fails for a value that is not allowed, with the reason.
    pub fn check(&self, value: &str) -> Result<(), String> {
        match self.values {
            Values::OneOf(words) if words.iter().any(|(name, _)| *name == value) => Ok(()),
            Values::Flag if ["true", "false"].contains(&value) => Ok(()),
            Values::Text { check, .. } => check(value),
            Values::OneOf(_) | Values::Flag => Err(format!("it takes {}", self.allowed())),
        }
    }

    /// The value in an environment, which is a default if it is not set or empty.
    pub fn read(&self, get: impl Fn(&str) -> Option<String>) -> Result<String, WrongValue> {
        let Some(value) = get(self.variable).filter(|value| !value.is_empty()) else {
            return Ok(self.default.to_owned());
        };
        let wrong = |why: String| {
            let allowed = if matches!(self.values, Values::Text { .. }) {
                format!("{} ({why})", self.allowed())
            } else {
                self.allowed()
            };
            WrongValue { variable: self.variable, option: self.name, value: value.clone(), allowed }
        };
        self.check(&value).map_err(wrong)?;
        Ok(value)
    }

    /// Which of its words the value in an environment is.
    pub fn choice(&self, get: impl Fn(&str) -> Option<String>) -> Result<usize, WrongValue> {
        let (value, Values::OneOf(words)) = (self.read(get)?, self.values) else { return Ok(0) };
        Ok(words.iter().position(|(name, _)| *name == value).unwrap_or(0))
    }
}

/// What to optimise for.
pub const PROFILE: RunOption = RunOption {
    name: "profile",
    variable: "SIDESTEP_PROFILE",
    values: Values::OneOf(&[
        ("latency", "Short waits look before they sleep; rings begin small"),
        ("throughput", "As latency, with large rings from the start"),
        ("frugal", "Waits sleep at once; rings stay small"),
    ]),
    default: "latency",
    help: "What to optimise for",
};

/// Which connections to accelerate.
pub const RULE: RunOption = RunOption {
    name: "rule",
    variable: "SIDESTEP_RULE",
    values: Values::Text {
        name: "RULE",
        allowed: "rules like deny:port=5432, allow:addr=10.0.0.0/8;port=80 or deny:all, with commas between them",
        check: |rules| Rule::parse_all(rules).map(drop),
        repeats: true,
    },
    default: "",
    help: "Which connections to accelerate: `allow:` or `deny:`, then `port=N`, `addr=NETWORK` or `all`; the first rule that \
           fits decides, and what fits none is allowed",
};

/// What carries a promoted connection.
pub const CARRIER: RunOption = RunOption {
    name: "carrier",
    variable: "SIDESTEP_CARRIER",
    values: Values::OneOf(&[
        ("ring", "A ring in shared memory"),
        ("via", "A VI of the VIA provider, if both ends ask for it"),
        ("both", "The same; with `--promote random`, each in turn, for tests"),
    ]),
    default: "ring",
    help: "What carries a promoted connection",
};

/// What carries connections over VIA.
pub const NIC: RunOption = RunOption {
    name: "nic",
    variable: "SIDESTEP_NIC",
    values: Values::OneOf(&[
        ("shm", "A NIC on shared memory"),
        ("iwarp", "A NIC on iWARP over TCP, if both ends ask for it"),
        ("vmmc", "A NIC on a card with the memory of `--card`, if both ends ask for it"),
    ]),
    default: "shm",
    help: "What carries connections over VIA",
};

/// How much memory a card has.
pub const CARD: RunOption = RunOption {
    name: "card",
    variable: "SIDESTEP_CARD",
    values: Values::Text {
        name: "KIB",
        allowed: "kilobytes of memory, 1 to 1048576",
        check: |text| kilobytes(text).map(drop).ok_or_else(|| "that is none".to_owned()),
        repeats: false,
    },
    default: "1024",
    help: "The memory of the card that `--nic vmmc` is on",
};

/// Kilobytes that a card may have.
pub(super) fn kilobytes(text: &str) -> Option<usize> {
    text.parse().ok().filter(|kilobytes| (1..=1 << 20).contains(kilobytes))
}

/// How connections over VIA work.
pub const SOVIA: RunOption = RunOption {
    name: "sovia",
    variable: "SIDESTEP_SOVIA",
    values: Values::Text {
        name: "WORDS",
        allowed: "words like window=8, acks=4, combine=0 or no-piggyback, with commas between them",
        check: |words| via::Options::parse(words).map(drop),
        repeats: false,
    },
    default: "",
    help: "How connections over VIA work: words like `window=8`, `acks=4`, `combine=0`, `no-piggyback`, which change what \
           docs/sovia.md describes",
};

/// When to move a connection off TCP.
pub const PROMOTE: RunOption = RunOption {
    name: "promote",
    variable: "SIDESTEP_PROMOTE",
    values: Values::Text {
        name: "WHEN",
        allowed: "default, eager, never, random or random:SEED",
        check: |when| Promote::parse(when).map(drop),
        repeats: false,
    },
    default: "default",
    help: "When to move a connection off TCP: `default` (on the second exchange, or after 64 KiB in one direction), `eager` \
           (at once), `never`, or `random[:SEED]` (to and fro, for tests)",
};

/// With whose programs memory is shared.
pub const USERS: RunOption = RunOption {
    name: "users",
    variable: "SIDESTEP_USERS",
    values: Values::Text {
        name: "USERS",
        allowed: "same, any, or names and numbers of users with commas between them",
        check: |users| Users::parse(users).map(drop),
        repeats: false,
    },
    default: "any",
    help: "With whose programs connections are accelerated: `same` (this user's alone), `any`, or this user's and those of the \
           users that are listed; both ends must allow it, and so must /etc/sidestep/users, if it is there",
};

/// Where programs meet.
pub const DIRECTORY: RunOption = RunOption {
    name: "directory",
    variable: "SIDESTEP_DIR",
    values: Values::Text {
        name: "FOLDER",
        allowed: "an absolute path",
        check: |path| match path.starts_with('/') {
            true => Ok(()),
            false => Err("it begins with no /".to_owned()),
        },
        repeats: false,
    },
    default: "/dev/shm/sidestep",
    help: "Where programs of one user meet: only those with the same folder are accelerated",
};

/// Whether to print a summary.
pub const VERBOSE: RunOption = RunOption {
    name: "verbose",
    variable: "SIDESTEP_VERBOSE",
    values: Values::Flag,
    default: "",
    help: "Print a summary when the program ends",
};

/// All of them, in the order of help.
pub const ALL: [RunOption; 10] = [PROFILE, RULE, USERS, CARRIER, NIC, CARD, SOVIA, PROMOTE, DIRECTORY, VERBOSE];

/// The table in words for people, as `docs/operating.md` has it.
pub fn table() -> String {
    let row = |option: &RunOption| {
        let values = match option.values {
            Values::OneOf(words) => {
                words.iter().map(|(name, help)| format!("`{name}`: {help}")).collect::<Vec<_>>().join("; ")
            }
            Values::Text { .. } | Values::Flag => option.allowed(),
        };
        let default = if option.default.is_empty() { String::new() } else { format!("`{}`", option.default) };
        let RunOption { name, variable, help, .. } = option;
        format!("| `--{name}` | `{variable}` | {values} | {default} | {help} |\n")
    };
    let rows: String = ALL.iter().map(row).collect();
    format!("\n| option | variable | values | default | |\n|---|---|---|---|---|\n{rows}")
}
