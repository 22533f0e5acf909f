//! Options of `sidestep rping`.

use std::net::IpAddr;

use clap::{Args, ValueEnum, value_parser};

/// Options of `sidestep rping`: the letters mean what they mean to `rping`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("role").required(true).args(["server", "client"]))]
pub struct Rping {
    /// Be the server
    #[arg(short)]
    pub server: bool,

    /// Be the client
    #[arg(short)]
    pub client: bool,

    /// The address to listen on or to connect to [default for a server: 0.0.0.0]
    #[arg(short, value_name = "ADDRESS")]
    pub address: Option<String>,

    /// The address to connect from
    #[arg(short = 'I', value_name = "ADDRESS")]
    pub source: Option<IpAddr>,

    /// The port
    #[arg(short, default_value_t = 7174)]
    pub port: u16,

    /// Serve every client that comes, not only the first
    #[arg(short = 'P', requires = "server")]
    pub persistent: bool,

    /// How many pings to send, 0 for no end
    #[arg(short = 'C', default_value_t = 0)]
    pub count: u32,

    /// How many bytes a ping has, or the server has room for
    #[arg(short = 'S', default_value_t = 64, value_parser = value_parser!(u32).range(27..=65535))]
    pub size: u32,

    /// Print the data
    #[arg(short)]
    pub verbose: bool,

    /// Compare what comes back with what was sent
    #[arg(short = 'V')]
    pub validate: bool,

    /// Print each step
    #[arg(short)]
    pub debug: bool,

    /// Do not ask for CRC; it is still used if the peer asks
    #[arg(long)]
    pub no_crc: bool,

    /// Ask the peer for markers
    #[arg(long)]
    pub markers: bool,

    /// The revision of MPA to ask in
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u8).range(1..=2))]
    pub revision: u8,

    /// Ask for the peer-to-peer model of revision 2
    #[arg(long, requires = "client")]
    pub peer_to_peer: bool,

    /// The ways of saying "ready to receive" to use in the peer-to-peer model [default: all]
    #[arg(long, value_name = "MODES", value_delimiter = ',')]
    pub ready: Vec<Ready>,

    /// Wake a server that says nothing after so many milliseconds, 0 for never
    #[arg(long, value_name = "MS", default_value_t = 50)]
    pub nudge: u64,

    /// How many seconds the peer may take for one step
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
}

/// The ways of saying "ready to receive" (RFC 6581).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ready {
    /// A write of length zero
    Write,
    /// A read of length zero
    Read,
    /// A send of length zero
    Send,
}
