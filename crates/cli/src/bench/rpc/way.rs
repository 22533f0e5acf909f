//! The ways in which calls are made: which programs, over which transport.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use sidestep_rpc::{Address, Client, ClientOptions};

use super::super::place::{Cores, Placement};
use super::super::sockets::apps::kit::Kit;
use super::super::sockets::apps::service::{Folder, Service, command, free_port};
use super::super::sockets::job::{Job, Work};
use super::super::sockets::pair::{Via, output};
use super::end::{self, Calls, NULL, Role};

/// One way to make calls.
pub struct Way {
    /// Its name in `--only` and in the records.
    pub name: &'static str,
    /// One line of what it is.
    pub about: &'static str,
    /// The programs.
    pub peer: Peer,
    /// Whether the kernel carries every message.
    pub kernel: bool,
    /// The most bytes of arguments that it can carry.
    pub largest: usize,
    transport: Transport,
    /// Over RDMA, the longest message that is sent inline.
    inline: usize,
    via: Via,
}

/// Which programs are the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A channel of the fabric without RPC, with as many bytes.
    Channel,
    /// RDMA reads over iWARP without RPC, of as many bytes.
    Memory,
    /// `crates/rpc`.
    Native,
    /// libtirpc.
    Tirpc,
}

#[derive(Clone, Copy, Debug)]
enum Transport {
    Fabric,
    Vi,
    ViIwarp,
    Unix,
    Tcp,
    Udp,
    Rdma,
    Iwarp,
}

/// What one run gave; times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// The median of a call, and what 99 % and 99.9 % of them stay within.
    pub call: [f64; 3],
    /// Calls per second, of all threads.
    pub rate: f64,
    /// Processor time of both ends per call.
    pub cpu: f64,
}

/// Every way.
pub const WAYS: &[Way] = &[
    Way {
        about: "a channel of the fabric and as many bytes, without RPC",
        peer: Peer::Channel,
        kernel: false,
        ..native("channel", Transport::Fabric)
    },
    Way { about: "over a channel of the fabric", kernel: false, ..native("shm", Transport::Fabric) },
    Way { about: "over a VI on shared memory", kernel: false, ..native("vi", Transport::Vi) },
    Way { about: "over a VI on iWARP", ..native("vi-iwarp", Transport::ViIwarp) },
    Way { about: "over UNIX sockets", ..native("unix", Transport::Unix) },
    Way { about: "over TCP", ..native("tcp", Transport::Tcp) },
    Way { about: "over UDP", largest: 32 << 10, ..native("udp", Transport::Udp) },
    Way { about: "RPC over RDMA on iWARP; arguments beyond 4 KiB are read chunks", ..native("rdma", Transport::Rdma) },
    Way { about: "the same with everything inline", inline: 128 << 10, ..native("rdma-inline", Transport::Rdma) },
    Way {
        about: "RDMA reads of the fabric on iWARP, without RPC",
        peer: Peer::Memory,
        ..native("rdma-read", Transport::Iwarp)
    },
    Way { about: "libtirpc over TCP", ..tirpc("tirpc-tcp", Transport::Tcp) },
    Way { about: "libtirpc over UNIX sockets", ..tirpc("tirpc-unix", Transport::Unix) },
    Way {
        about: "libtirpc over TCP under `sidestep run`",
        kernel: false,
        via: Via::Ring,
        ..tirpc("tirpc-ring", Transport::Tcp)
    },
    Way {
        about: "libtirpc over TCP under `sidestep run --carrier via`",
        kernel: false,
        via: Via::Link,
        ..tirpc("tirpc-via", Transport::Tcp)
    },
];

const fn native(name: &'static str, transport: Transport) -> Way {
    Way {
        name,
        about: "",
        peer: Peer::Native,
        kernel: true,
        largest: usize::MAX,
        transport,
        inline: 4096,
        via: Via::Tcp,
    }
}

const fn tirpc(name: &'static str, transport: Transport) -> Way {
    Way { peer: Peer::Tirpc, ..native(name, transport) }
}

impl Way {
    /// Starts a server, lets a client call it for a while, and ends both.
    pub fn measure(&self, kit: Option<&Kit>, calls: Calls, placement: Placement, cores: Cores) -> Result<Figures> {
        self.measure_once(kit, calls, placement, cores).with_context(|| format!("measuring {}", self.name))
    }

    fn measure_once(&self, kit: Option<&Kit>, calls: Calls, placement: Placement, cores: Cores) -> Result<Figures> {
        let folder = Folder::new("rpc-bench")?;
        let at = self.transport.address(&folder.0)?;
        let (mut server, mut client) = match self.peer {
            Peer::Channel => (Role::Echo { size: calls.size }, Role::Exchange(calls)),
            Peer::Memory => (Role::Offer { size: calls.size }, Role::Read(calls)),
            _ => (Role::Serve { inline: self.inline }, Role::Call { calls, inline: self.inline }),
        }
        .try_map(|role| self.own(role, &at, placement, cores))?;
        if let (Peer::Tirpc, Some(kit)) = (self.peer, kit) {
            // The programs take a path, or a port of this host.
            let place = at.trim_start_matches("unix:").trim_start_matches("tcp:127.0.0.1:").to_owned();
            server = command(self.via, placement, cores, &kit.server)?;
            server.arg(&place);
            client = command(self.via, placement, cores, &kit.client)?;
            client.args([place, calls.run_ms.to_string(), calls.size.to_string(), calls.threads.to_string()]);
        }
        let server = Service::start(&mut server)?.until(|| self.answers(&at))?;
        let before = server.processor_time()?;
        let said = output(&mut client, Duration::from_secs(60))?;
        let used = server.processor_time()? - before;
        Figures::parse(&said, used as f64).with_context(|| format!("no figures in {said:?}"))
    }

    /// This program in a role of its own.
    fn own(&self, role: Role, address: &str, placement: Placement, cores: Cores) -> Result<Command> {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let mut command = command(self.via, placement, cores, program)?;
        let parent = std::process::id() as i32;
        let job = Job { work: Work::Rpc(role), address: address.into(), cores: Vec::new(), parent };
        command.args(["socket-end", &serde_json::to_string(&job)?]);
        Ok(command)
    }

    fn answers(&self, address: &str) -> bool {
        match (self.peer, self.transport) {
            (Peer::Channel, _) => end::open_channel(address).is_ok(),
            (Peer::Memory, _) => end::open_memory(address).is_ok(),
            (Peer::Tirpc, Transport::Unix) => UnixStream::connect(address.trim_start_matches("unix:")).is_ok(),
            _ => {
                let Ok(to) = address.parse::<Address>() else { return false };
                let options = ClientOptions { timeout: Duration::from_millis(500), ..ClientOptions::default() };
                let client = Client::connect_with(&to, options);
                client.is_ok_and(|client| client.call(NULL, |_| Ok(()), |_| Ok(())).is_ok())
            }
        }
    }
}

impl Transport {
    fn address(self, folder: &Path) -> Result<String> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        Ok(match self {
            Transport::Fabric => format!("shm:bench-{name}"),
            Transport::Vi => format!("vi:bench-{name}"),
            Transport::ViIwarp => format!("vi-iwarp:127.0.0.1:{}", free_port()?),
            Transport::Unix => format!("unix:{}", folder.join("socket").display()),
            Transport::Tcp => format!("tcp:127.0.0.1:{}", free_port()?),
            Transport::Rdma => format!("rdma:127.0.0.1:{}", free_port()?),
            Transport::Iwarp => format!("iwarp:127.0.0.1:{}", free_port()?),
            Transport::Udp => format!("udp:127.0.0.1:{}", free_port()?),
        })
    }
}

impl Figures {
    /// From the words that a client prints, and the processor time of the server.
    fn parse(said: &str, server_ns: f64) -> Option<Figures> {
        let value = |name: &str| -> Option<f64> {
            said.split_whitespace().skip_while(|word| *word != name).nth(1)?.parse().ok()
        };
        Some(Figures {
            call: [value("median_ns")?, value("p99_ns")?, value("p999_ns")?],
            rate: value("calls")? * 1e9 / value("elapsed_ns")?,
            cpu: (value("cpu_ns")? + server_ns) / value("all")?,
        })
    }
}

/// Both ends of a pair.
trait Both<T> {
    fn try_map<U>(self, make: impl Fn(T) -> Result<U>) -> Result<(U, U)>;
}

impl<T> Both<T> for (T, T) {
    fn try_map<U>(self, make: impl Fn(T) -> Result<U>) -> Result<(U, U)> {
        Ok((make(self.0)?, make(self.1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_what_clients_print() {
        let said = "median_ns 10 p99_ns 20 p999_ns 30 calls 50 elapsed_ns 1000 all 100 cpu_ns 300\n";
        let figures = Figures::parse(said, 700.0).unwrap();
        assert_eq!((figures.call, figures.rate, figures.cpu), ([10.0, 20.0, 30.0], 5e7, 10.0));
        assert!(Figures::parse("median_ns ten", 0.0).is_none());
    }
}
