//! The options of `sidestep run`, declared once: help, default and environment variable, by which they reach the
//! program, too.

use std::{ffi::OsString, fmt, str::FromStr};

use clap::{Args, ValueEnum};
use sidestep_sockets::config::Rule;
use sidestep_stream::carrier::via::Options;

/// Options of `sidestep run`.
#[derive(Debug, Args)]
#[command(after_long_help = RULES)]
pub struct Run {
    /// What to optimise for
    #[arg(long, value_enum, default_value_t = Profile::Latency, env = PROFILE)]
    pub profile: Profile,

    /// Which connections to accelerate: `allow:` or `deny:`, then `port=N`, `addr=NETWORK` or `all`; the first rule that
    /// fits decides, and what fits none is allowed
    #[arg(long = "rule", value_name = "RULE", env = RULE, value_delimiter = ',', value_parser = rule)]
    pub rules: Vec<String>,

    /// What carries a promoted connection
    #[arg(long, value_enum, default_value_t = Carrier::Ring, env = CARRIER)]
    pub carrier: Carrier,

    /// What carries connections over VIA
    #[arg(long, value_enum, default_value_t = Device::Shm, env = NIC)]
    pub nic: Device,

    /// How connections over VIA work: words like `window=8`, `acks=4`, `combine=0`, `no-piggyback`, which change what
    /// docs/sovia.md describes
    #[arg(long, value_name = "WORDS", env = SOVIA, value_parser = sovia)]
    pub sovia: Option<String>,

    /// When to move a connection off TCP: `default` (on the second exchange, or after 64 KiB in one direction), `eager`
    /// (at once), `never`, or `random[:SEED]` (to and fro, for tests)
    #[arg(long, value_name = "WHEN", default_value_t = Promote::Default, env = PROMOTE)]
    pub promote: Promote,

    /// Print a summary when the program ends
    #[arg(long, short, env = VERBOSE)]
    pub verbose: bool,

    /// The program to run, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

impl Run {
    /// The options as the program's environment has them.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            (PROFILE, value_name(self.profile)),
            (CARRIER, value_name(self.carrier)),
            (NIC, value_name(self.nic)),
            (PROMOTE, self.promote.to_string()),
        ];
        if let Some(words) = &self.sovia {
            variables.push((SOVIA, words.clone()));
        }
        if !self.rules.is_empty() {
            variables.push((RULE, self.rules.join(",")));
        }
        if self.verbose {
            variables.push((VERBOSE, "true".to_owned()));
        }
        variables
    }
}

/// What to optimise for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Short waits look before they sleep; rings begin small
    Latency,
    /// As latency, with large rings from the start
    Throughput,
    /// Waits sleep at once; rings stay small
    Frugal,
}

/// What carries a promoted connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Carrier {
    /// A ring in shared memory
    Ring,
    /// A VI of the VIA provider, if both ends ask for it
    Via,
    /// The same; with `--promote random`, each in turn, for tests
    Both,
}

/// What carries connections over VIA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Device {
    /// A NIC on shared memory
    Shm,
    /// A NIC on iWARP over TCP, if both ends ask for it
    Iwarp,
}

/// When to move a connection off TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promote {
    /// When it pays.
    Default,
    /// At once.
    Eager,
    /// Not at all.
    Never,
    /// To and fro.
    Random(Option<u64>),
}

impl fmt::Display for Promote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promote::Default => write!(out, "default"),
            Promote::Eager => write!(out, "eager"),
            Promote::Never => write!(out, "never"),
            Promote::Random(None) => write!(out, "random"),
            Promote::Random(Some(seed)) => write!(out, "random:{seed}"),
        }
    }
}

impl FromStr for Promote {
    type Err = String;

    fn from_str(text: &str) -> Result<Promote, String> {
        match text.split_once(':') {
            None if text == "default" => Ok(Promote::Default),
            None if text == "eager" => Ok(Promote::Eager),
            None if text == "never" => Ok(Promote::Never),
            None if text == "random" => Ok(Promote::Random(None)),
            Some(("random", seed)) => {
                seed.parse().map(|seed| Promote::Random(Some(seed))).map_err(|_| format!("{seed} is not a number"))
            }
            _ => Err("it is one of default, eager, never, random, random:SEED".to_owned()),
        }
    }
}

fn rule(text: &str) -> Result<String, String> {
    match Rule::parse(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("a rule is like deny:port=5432, allow:addr=10.0.0.0/8;port=80 or deny:all".to_owned()),
    }
}

fn sovia(text: &str) -> Result<String, String> {
    Options::parse(text).map(|_| text.to_owned())
}

fn value_name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

const PROFILE: &str = "SIDESTEP_PROFILE";
const RULE: &str = "SIDESTEP_RULE";
const CARRIER: &str = "SIDESTEP_CARRIER";
const NIC: &str = "SIDESTEP_NIC";
const SOVIA: &str = "SIDESTEP_SOVIA";
const PROMOTE: &str = "SIDESTEP_PROMOTE";
const VERBOSE: &str = "SIDESTEP_VERBOSE";

const RULES: &str = "\
Rules:
  A rule is a verdict and its conditions: VERDICT:CONDITION[;CONDITION...]
    VERDICT    allow or deny
    CONDITION  port=N        either end has this port
               addr=A[/BITS] either end has an address of this network
               all           any connection
  All conditions of a rule must fit; the first rule that fits decides; a connection that fits none is allowed.
    --rule deny:port=5432
    --rule 'allow:addr=10.0.0.0/8;port=80' --rule deny:all

Exit status: that of the program; 126 if it cannot be executed, 127 if it is not found, 125 if sidestep itself fails.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promote_is_read_as_it_is_written() {
        for text in ["default", "eager", "never", "random", "random:7"] {
            assert_eq!(text.parse::<Promote>().unwrap().to_string(), text);
        }
        for text in ["", "random:", "random:x", "eager:1", "often"] {
            assert!(text.parse::<Promote>().is_err(), "{text}");
        }
    }
}
