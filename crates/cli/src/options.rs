//! Every option of the program, declared once: its help, its default and its environment variable.

use clap::{Args, Parser, Subcommand, value_parser};

/// Programs talk to each other without going through the kernel on every message.
#[derive(Debug, Parser)]
#[command(name = "sidestep", version, about, max_term_width = 100)]
pub struct Options {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The jobs of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure: named workloads, candidates and baselines interleaved in one run
    Bench(Bench),
    /// The second process of a measurement; started by `bench`, not by people
    #[command(hide = true)]
    BenchWorker(BenchWorker),
}

/// Options of `sidestep bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// The suite to run, or `list` to see the suites and their paths
    pub suite: String,

    /// Print one JSON object a line instead of tables
    #[arg(long, env = "SIDESTEP_BENCH_JSON")]
    pub json: bool,

    /// Take fewer and shorter rounds, so that a suite ends within 60 seconds
    #[arg(long, env = "SIDESTEP_BENCH_QUICK")]
    pub quick: bool,

    /// How many rounds to take [default: 25, with --quick 9]
    #[arg(
        long,
        value_name = "N",
        env = "SIDESTEP_BENCH_ROUNDS",
        value_parser = value_parser!(u32).range(1..=1000)
    )]
    pub rounds: Option<u32>,

    /// Measure only these paths or benches, e.g. `tcp,ring` or `latency,ring`
    #[arg(long, value_name = "FILTER", env = "SIDESTEP_BENCH_ONLY", value_delimiter = ',')]
    pub only: Vec<String>,

    /// The two cores to pin to [default: the first two that this process may use]
    #[arg(long, value_name = "A,B", env = "SIDESTEP_BENCH_CORES", value_delimiter = ',')]
    pub cores: Vec<usize>,
}

/// Options of the hidden `sidestep bench-worker`. Its control socket is its standard input.
#[derive(Debug, Args)]
pub struct BenchWorker {
    /// The suite whose paths it serves
    #[arg(long)]
    pub suite: String,

    /// The process that started it, and with which it ends
    #[arg(long)]
    pub parent: i32,

    /// The cores it may run on
    #[arg(long, value_delimiter = ',', required = true)]
    pub cores: Vec<usize>,
}
