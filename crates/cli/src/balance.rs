//! `sidestep balance`: one node of a data centre whose servers move between sites by load.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::{Context, Result};
use clap::Args;
use sidestep_balance::{Config, News, protocol::Outcome};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};

/// Options of `sidestep balance`.
#[derive(Debug, Args)]
pub struct Balance {
    /// The description of the data centre, the same for every node (docs/balance.md)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Which of its nodes this is
    #[arg(long, value_name = "NAME")]
    pub node: String,
}

/// Runs the node until it is told to end.
pub fn run(options: &Balance) -> Result<()> {
    let text = fs::read_to_string(&options.file).with_context(|| options.file.display().to_string())?;
    let config = Config::parse(&text).with_context(|| options.file.display().to_string())?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, stop.clone()).context("cannot hear signals")?;
    }
    sidestep_balance::run(&config, &options.node, &stop, |news| say(&options.node, &news))?;
    Ok(())
}

fn say(node: &str, news: &News) {
    let text = match news {
        News::Serves(site) => format!("serves {site} now"),
        News::Failed(why) => format!("will try again: {why}"),
        News::Tried { server, outcome } => match outcome {
            Outcome::Converted(_) => format!("has taken {server}"),
            Outcome::ToldOfAnother => format!("leaves {server}: another controller has answered this load"),
            Outcome::NothingToSpare => format!("leaves {server}: it is the last one of its site"),
            Outcome::Overtaken => format!("leaves {server}: it was changed meanwhile"),
        },
    };
    let mut out = std::io::stdout();
    // Nobody may be listening any more.
    let _ = writeln!(out, "{node}: {text}").and_then(|()| out.flush());
}
