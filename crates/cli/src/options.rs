//! Every option of the program, declared once: its help, its default and its environment variable.

use clap::{Args, Parser, Subcommand, value_parser};

use crate::{
    balance::Balance,
    cache::Cache,
    card::Card,
    completions::Completions,
    init_service::InitService,
    install::Install,
    pipe::options::Pipe,
    rping::options::Rping,
    run::options::Run,
    stat::select::{Filter, SortKey},
};

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
    /// Run a program so that its connections to others on this host leave the kernel
    Run(Run),
    /// Copy the program, the libraries, the header and the manual into a folder
    Install(Install),
    /// Print the completions of the options for a shell
    Completions(Completions),
    /// Print or write what makes systemd start a service under Sidestep
    InitService(InitService),
    /// Measure: named workloads, candidates and baselines interleaved in one run
    Bench(Bench),
    /// Show every socket of every accelerated process of this user
    Stat(Stat),
    /// Say in a sentence why a connection or a program is accelerated or not, and what would change it
    Why(Why),
    /// Show processes, sockets and rates live in the terminal
    Top(Top),
    /// Capture what accelerated connections carry, for Wireshark and tshark
    Tap(Tap),
    /// Move running connections back to TCP, and keep them and new ones there
    Off(Turn),
    /// Let connections be accelerated again that were turned off
    On(Turn),
    /// Check this machine: what limits acceleration, what follows from it, and how to mend it
    Doctor(Doctor),
    /// RDMA ping over iWARP, wire compatible with rdma-core's `rping`
    Rping(Rping),
    /// Compile an interface definition to Rust: ONC RPC (FILE.x) or CORBA (FILE.idl)
    Idl(Idl),
    /// Know where the RPC programs of this host listen, on hosts without rpcbind
    Rpcbind(Rpcbind),
    /// List the programs that are registered with rpcbind, or call procedure 0 of one
    Rpcinfo(Rpcinfo),
    /// A naming service for CORBA objects
    Names(Names),
    /// A reverse proxy whose cache is never old, and what lies beside the application for that
    Cache(Cache),
    /// Let servers of several sites move between them by load
    Balance(Balance),
    /// Be the card of VMMC by which processes write into and read from each other's memory
    Card(Card),
    /// Run a pipeline of filters that a file describes, or say what is wrong with the file
    Pipe(Pipe),
    /// The worker of a process of a pipeline; started by `pipe`, or by the command of a host
    #[command(hide = true)]
    PipeWorker,
    /// The second process of a measurement; started by `bench`, not by people
    #[command(hide = true)]
    BenchWorker(BenchWorker),
    /// One end of a socket measurement; started by `bench sockets` and `demo`, not by people
    #[command(hide = true)]
    SocketEnd(SocketEnd),
    /// One end of a measurement of calls; started by `bench orb`, not by people
    #[command(hide = true)]
    OrbEnd(SocketEnd),
    /// A card, or a process of a kernel on it; started by `bench vmmc`, not by people
    #[command(hide = true)]
    VmmcEnd(SocketEnd),
    /// The server of a measurement; started by `bench extended`, not by people
    #[command(hide = true)]
    ExtendedEnd(SocketEnd),
    /// The same small client and server over kernel TCP and over Sidestep, side by side
    Demo,
}

impl Command {
    /// Whether it writes to nothing but files and its standard output.
    pub fn only_prints(&self) -> bool {
        use Command::{Bench, Completions, Doctor, Idl, InitService, Install, Off, On, Why};
        match self {
            Completions(_) | Doctor(_) | Idl(_) | InitService(_) | Install(_) | Off(_) | On(_) | Why(_) => true,
            Bench(options) => options.suite == "list",
            _ => false,
        }
    }
}

/// Options of `sidestep stat`.
#[derive(Debug, Args)]
#[command(after_long_help = FILTERS)]
pub struct Stat {
    /// Only the sockets of this process
    #[arg(value_name = "PID")]
    pub process: Option<u32>,

    /// Print one JSON object a line instead of a table; docs/operating.md names its members, which stay
    #[arg(long)]
    pub json: bool,

    /// Print all columns; else a terminal gets those that it has room for
    #[arg(long, conflicts_with_all = ["json", "metrics"])]
    pub wide: bool,

    /// Print totals of each process instead of its sockets
    #[arg(long)]
    pub totals: bool,

    /// Print the cards of VMMC that run, with their hit ratios, instead of sockets
    #[arg(long, conflicts_with_all = ["totals", "sort", "filter", "metrics"])]
    pub cards: bool,

    /// Print extended sockets, with their regions and operations, of all processes that have some
    #[arg(long, conflicts_with_all = ["totals", "sort", "filter", "metrics", "cards"])]
    pub extended: bool,

    /// What to sort by, the largest first
    #[arg(long, value_enum, default_value_t = SortKey::Pid, value_name = "KEY")]
    pub sort: SortKey,

    /// Only sockets that fit: `KEY=VALUE` or `KEY!=VALUE`; may be given again
    #[arg(long, value_name = "FILTER")]
    pub filter: Vec<Filter>,

    /// Print again every so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = seconds)]
    pub watch: Option<std::time::Duration>,

    /// With --watch: end after printing so often
    #[arg(long, value_name = "N", requires = "watch")]
    pub count: Option<u64>,

    /// Serve metrics in the OpenMetrics format at this address; port 0 takes one that is free
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::address::first,
          conflicts_with_all = ["json", "totals", "watch", "process", "sort", "filter"])]
    pub metrics: Option<std::net::SocketAddr>,

    /// With --metrics: measure how long answers take, by connection; costs what `sidestep tap` costs
    #[arg(long, requires = "metrics")]
    pub latency: bool,
}

const FILTERS: &str = "\
Filters:
  pid=N fd=N         the process, the descriptor
  program=NAME       the name of the program
  port=N address=A   either end has this port or IP address
  path=PATH          a direction is on it: tcp, ring, via, via-iwarp, via-vmmc
  reason=NAME        the name of the reason, as in --json";

/// Options of `sidestep why`.
#[derive(Debug, Args)]
#[command(after_long_help = WHY)]
pub struct Why {
    /// A process id, an address and port, a port alone as `:PORT`, or the name of a program
    #[arg(value_name = "PID | ADDRESS:PORT | PROGRAM")]
    pub subject: String,

    /// With a process id: one of its descriptors
    #[arg(value_name = "FD")]
    pub fd: Option<u32>,
}

const WHY: &str = "\
Examples:
  sidestep why 4711 7           descriptor 7 of process 4711
  sidestep why localhost:6379   connections from and to this address and port
  sidestep why :6379            the same for any address
  sidestep why redis-server     processes that run this program; if there are none, whether it could be accelerated";

/// Options of `sidestep top`.
#[derive(Debug, Args)]
pub struct Top {
    /// Look again every so many seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub interval: std::time::Duration,

    /// What to sort by, the largest first
    #[arg(long, value_enum, default_value_t = SortKey::Rate, value_name = "KEY")]
    pub sort: SortKey,

    /// Only sockets that fit, as for `sidestep stat`; may be given again
    #[arg(long, value_name = "FILTER")]
    pub filter: Vec<Filter>,
}

/// Options of `sidestep tap`.
#[derive(Debug, Args)]
#[command(after_long_help = TAP)]
pub struct Tap {
    /// The file to write, which is emptied when the tap begins [default: standard output]
    #[arg(short, value_name = "FILE")]
    pub write: Option<std::path::PathBuf>,

    /// End after so many packets
    #[arg(short, value_name = "PACKETS", value_parser = value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// How many bytes of each packet to keep
    #[arg(short, long, value_name = "BYTES", default_value_t = 262_144)]
    pub snaplen: u32,

    /// Only connections that fit: `pid=N`, `port=N`, `address=A`; all that are given must fit one of the two ends
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
}

const TAP: &str = "\
Examples:
  sidestep tap -w capture.pcapng port=6379   into a file, until it is interrupted
  sidestep tap | wireshark -k -i -           live
  sidestep tap pid=4711 | tshark -r - -z follow,tcp,ascii,0

Only what goes over carriers is in it, with made-up headers; `tcpdump -i lo` has the rest.";

/// Options of `sidestep off` and `sidestep on`.
#[derive(Debug, Args)]
pub struct Turn {
    /// A process id: all its connections; or `:PORT`: all connections that have this port at either end
    #[arg(value_name = "PID | :PORT", value_parser = crate::turn::subject)]
    pub subject: sidestep_sockets::registry::Subject,
}

/// Options of `sidestep doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Programs of which to say whether they could be accelerated
    #[arg(value_name = "PROGRAM")]
    pub programs: Vec<std::ffi::OsString>,

    /// Mend what is safe to mend
    #[arg(long)]
    pub fix: bool,
}

/// A time between a tenth of a second and an hour.
fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.map(std::time::Duration::from_secs_f64).ok_or_else(|| "it is 0.1 to 3600 seconds".to_owned())
}

/// Options of `sidestep rpcbind`.
#[derive(Debug, Args)]
pub struct Rpcbind {
    /// The address to answer questions on, over TCP and UDP
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:111", env = "SIDESTEP_RPCBIND_LISTEN")]
    pub listen: String,

    /// The UNIX socket to take registrations on
    #[arg(long, value_name = "PATH", default_value = "/run/rpcbind.sock", env = "SIDESTEP_RPCBIND_SOCKET")]
    pub socket: std::path::PathBuf,
}

/// Options of `sidestep rpcinfo`.
#[derive(Debug, Args)]
pub struct Rpcinfo {
    /// Where the server is: `tcp:`, `udp:`, `rdma:` or `vi-iwarp:HOST:PORT`, `unix:PATH`, `shm:NAME` or `vi:NAME`; without
    /// PROGRAM, an rpcbind [default: that of this host]
    #[arg(value_name = "ADDRESS")]
    pub address: Option<String>,

    /// Call procedure 0 of this program there, instead of asking for a list: a number, 0x before it if it is hexadecimal
    #[arg(requires_all = ["address", "version"], value_parser = number)]
    pub program: Option<u32>,

    /// The version of the program
    #[arg(value_parser = number)]
    pub version: Option<u32>,
}

/// A number of a program or a version, as definitions of programs write it.
fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        // `from_str_radix` takes a sign, too.
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    parsed.ok_or_else(|| format!("it is 0 to {}, or 0x0 to {:#x}", u32::MAX, u32::MAX))
}

/// Options of `sidestep bench`.
#[derive(Clone, Debug, Args)]
pub struct Bench {
    /// The suite to run; `list` to see the suites and their paths, `all` for one list of workloads, `seeds` for the tables and
    /// figures of the documents, `peers` for what a user would pick instead, `compare` for two builds in turn or two saved runs
    pub suite: String,

    /// With `compare`: the old and the new build of this program, or two saved runs. With `seeds`: saved runs to judge instead of measuring
    #[arg(value_name = "FILE", num_args = 0..)]
    pub builds: Vec<std::path::PathBuf>,

    /// With `compare`: the suites to run [default: fabric,via,iwarp]
    #[arg(long, value_name = "SUITES", value_delimiter = ',')]
    pub suites: Vec<String>,

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

    /// The part of the default rounds that there is time for
    #[arg(skip = 1.0)]
    pub share: f64,

    /// Measure only these paths or benches, e.g. `tcp,ring` or `latency,ring`
    #[arg(long, value_name = "FILTER", env = "SIDESTEP_BENCH_ONLY", value_delimiter = ',')]
    pub only: Vec<String>,

    /// The two cores to pin to [default: the first two that this process may use]
    #[arg(long, value_name = "A,B", env = "SIDESTEP_BENCH_CORES", value_delimiter = ',')]
    pub cores: Vec<usize>,

    /// Write a page with plots and tables, and the run itself, into this folder
    #[arg(long, value_name = "FOLDER", env = "SIDESTEP_BENCH_REPORT")]
    pub report: Option<std::path::PathBuf>,

    /// Draw the ladder of the suite `sovia` into this file, as SVG
    #[arg(long, value_name = "FILE", env = "SIDESTEP_BENCH_PLOT")]
    pub plot: Option<std::path::PathBuf>,

    /// Measure between two network namespaces joined by virtual interfaces, which takes root (suite `iwarp`)
    #[arg(long, env = "SIDESTEP_BENCH_NETNS")]
    pub netns: bool,
}

impl Bench {
    /// How many rounds to take, where these are the defaults in full and with `--quick`.
    pub fn rounds_or(&self, full: usize, quick: usize) -> usize {
        let default = if self.quick { quick } else { full };
        self.rounds.map_or(((default as f64 * self.share) as usize).max(1), |rounds| rounds as usize)
    }
}

/// Options of `sidestep idl`.
#[derive(Debug, Args)]
pub struct Idl {
    /// The definition
    #[arg(value_name = "FILE")]
    pub file: std::path::PathBuf,

    /// Where to write the code [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<std::path::PathBuf>,

    /// Another folder with files to include, for .idl files; may be given again
    #[arg(short = 'I', value_name = "FOLDER")]
    pub include: Vec<std::path::PathBuf>,

    /// A macro, which is 1 without a value, for .idl files; may be given again
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,
}

/// Options of `sidestep names`.
#[derive(Debug, Args)]
pub struct Names {
    /// Where to listen; port 0 takes one that is free
    #[arg(long, default_value = "127.0.0.1:2809", value_name = "ADDRESS:PORT")]
    pub listen: String,
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

    /// The process that holds the network namespace to be in
    #[arg(long)]
    pub host: Option<u32>,
}

/// Options of the hidden `sidestep socket-end`.
#[derive(Debug, Args)]
pub struct SocketEnd {
    /// What to do, in JSON
    pub job: String,
}
