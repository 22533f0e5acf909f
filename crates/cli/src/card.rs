//! `sidestep card`: the card process of VMMC.

use std::process::ExitCode;

use clap::{Args, value_parser};
use sidestep_vmmc::process::{CardOptions, be_card};
use sidestep_vmmc::{CacheShape, Config, LinkConfig, Result};

/// Options of `sidestep card`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Card {
    /// The name by which processes of this user attach to it
    pub name: String,

    /// Where cards of other hosts find it, such as `iwarp:HOST:PORT`; whoever reaches it may send packets, which the keys of
    /// buffers decide on
    pub address: Option<String>,

    /// All the memory of the card; without --entries the caches are the largest that fit
    #[arg(long, value_name = "KIB", value_parser = value_parser!(u32).range(1..=1 << 20))]
    pub memory: Option<u32>,

    /// C, the entries of the cache of translations [default: 16384, or half the pages that can be locked]
    #[arg(long, value_name = "C")]
    pub entries: Option<usize>,

    /// L, the entries of a line of it [default: 64]
    #[arg(long, value_name = "L")]
    pub line: Option<usize>,

    /// A, the lines of a set of it, at least 2 [default: 4]
    #[arg(long, value_name = "A")]
    pub ways: Option<usize>,

    /// The entries of the cache of buffers [default: 512]
    #[arg(long, value_name = "N")]
    pub buffers: Option<usize>,

    /// After how long a packet that is not acknowledged is sent again [default: 250]
    #[arg(long, value_name = "MICROSECONDS")]
    pub timer: Option<u64>,

    /// Ask for what was dropped as soon as what it lacked is there, instead of waiting for the timer
    #[arg(long)]
    pub nack: bool,
}

const EXAMPLES: &str = "\
Examples:
  sidestep card a                                     as large as the default, or as can be locked
  sidestep card a --memory 256                        as much as fits into 256 KiB
  sidestep card a iwarp:10.0.0.1:4000 --entries 1024 --line 16 --ways 2

It ends with its last process, and 5 seconds after its start if none comes. Programs that use the library start it on demand.

Exit status: 75 if a card of this name runs already; 1 if it cannot be as it was asked for.";

/// Is the card until its last process has gone.
pub fn run(options: &Card) -> ExitCode {
    match described(options) {
        Ok(card) => ExitCode::from(be_card(&options.name, options.address.as_deref(), card)),
        Err(error) => {
            eprintln!("sidestep card {}: {error}", options.name);
            ExitCode::FAILURE
        }
    }
}

/// The largest card that `run --card` and others with so much memory may have; fails if that is too little for any.
pub fn of_memory(kib: u32) -> Result<Config> {
    Config::default().within(bytes(kib))
}

fn described(options: &Card) -> Result<CardOptions> {
    let Config { vmh, cbh, link, .. } = Config::default();
    let vmh = CacheShape {
        entries: options.entries.unwrap_or(vmh.entries),
        line: options.line.unwrap_or(vmh.line),
        ways: options.ways.unwrap_or(vmh.ways),
    };
    let cbh = CacheShape { entries: options.buffers.unwrap_or(cbh.entries), ..cbh };
    let timer_ns = options.timer.map_or(link.timer_ns, |timer| timer.saturating_mul(1000));
    let link = LinkConfig { timer_ns, nack: options.nack, ..link };
    let memory = options.memory.map(bytes);
    let mut config = Config { vmh, cbh, link, memory, ..Config::default() };
    // What was asked for by number is not made smaller.
    let may_shrink = options.entries.is_none();
    if let Some(memory) = memory.filter(|_| may_shrink) {
        let asked = Config { memory: None, ..config };
        asked.check()?;
        config = asked.within_keeping(memory, options.line.is_some(), options.buffers.is_some())?;
    }
    config.check()?;
    Ok(CardOptions { config, may_shrink, ..CardOptions::default() })
}

fn bytes(kib: u32) -> usize {
    kib as usize * 1024
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use sidestep_vmmc::Budget;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        card: Card,
    }

    fn card(options: &[&str]) -> Result<CardOptions, String> {
        let line = Line::try_parse_from([&["card", "name"], options].concat()).map_err(|error| error.to_string())?;
        described(&line.card).map_err(|error| error.to_string())
    }

    #[test]
    fn the_options_describe_the_card() {
        assert!(card(&[]).unwrap().may_shrink);
        let asked = card(&["iwarp:h:1", "--entries", "1024", "--line", "16", "--ways", "2", "--timer", "300"]).unwrap();
        assert_eq!(asked.config.vmh, CacheShape { entries: 1024, line: 16, ways: 2 });
        assert_eq!((asked.config.link.timer_ns, asked.may_shrink), (300_000, false));
        let small = card(&["--memory", "256", "--ways", "2"]).unwrap().config;
        assert!(Budget::of(&small).total() <= 256 * 1024 && small.vmh.ways == 2, "{small:?}");
        let lines = card(&["--memory", "200", "--line", "32", "--buffers", "64"]).unwrap().config;
        assert!(
            Budget::of(&lines).total() <= 200 * 1024 && (lines.vmh.line, lines.cbh.entries) == (32, 64),
            "{lines:?}"
        );
    }

    #[test]
    fn what_is_out_of_range_is_said_with_the_remedy() {
        let said = |options: &[&str], what: &str| {
            let said = card(options).unwrap_err();
            assert!(said.contains(what), "{options:?}: {said}");
        };
        said(&["--ways", "1"], "at least 2 ways");
        said(&["--entries", "1000"], "powers of two");
        said(&["--entries", "64", "--line", "32"], "at least one set");
        said(&["--timer", "0"], "200 to 300 us");
        said(&["--memory", "20"], "give it more");
        said(&["--memory", "200", "--entries", "32768"], "smaller caches");
        said(&["--memory", "116", "--line", "1024"], "give it more");
        said(&["--memory", "0"], "1..=1048576");
        said(&["--buffers", "0"], "powers of two");
    }
}
