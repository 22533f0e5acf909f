//! Options of `sidestep pipe`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Options of `sidestep pipe`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Pipe {
    /// Something else than running it
    #[command(subcommand)]
    pub command: Option<PipeCommand>,

    /// The description; docs/filters.md shows its form
    #[arg(value_name = "FILE", required = true)]
    pub file: Option<PathBuf>,

    /// Print one JSON object at the end, and nothing while it runs
    #[arg(long)]
    pub json: bool,

    /// How processes are joined, in place of what the description says
    #[arg(long, value_enum, value_name = "WAY")]
    pub transport: Option<PipeTransport>,
}

/// What `sidestep pipe` does besides running.
#[derive(Debug, Subcommand)]
pub enum PipeCommand {
    /// Say what is wrong with a description, and draw it
    Check {
        /// The description
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Write the picture here
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// List the kinds of filters, their ports and what they do
    Kinds,
}

/// How processes of a pipeline are joined.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum PipeTransport {
    /// Channels of the fabric
    Channel,
    /// TCP sockets
    Tcp,
    /// VIs
    Vi,
}
