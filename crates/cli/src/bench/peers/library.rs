//! How each peer is built, started and understood.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Figures;
use crate::bench::place::{Cores, Placement};
use crate::bench::sockets::apps::service::{self, Folder, Service, free_port, prepare};
use crate::bench::sockets::job::{Span, Waiting, Work};
use crate::bench::sockets::pair::{self, Place, Via, output};
use crate::bench::sockets::round::per_second;

/// Where programs are compiled, and how long each load runs.
pub struct Kit {
    cores: Cores,
    millis: u64,
    folder: Folder,
    built: [OnceLock<PathBuf>; 4],
}

impl Kit {
    /// An empty one.
    pub fn new(cores: Cores, millis: u64) -> Result<Kit> {
        let folder = Folder::new("peers")?;
        for (name, text) in SOURCES {
            folder.file(name, text)?;
        }
        Ok(Kit { cores, millis, folder, built: Default::default() })
    }

    /// A program, compiled when it is first asked for.
    fn program(&self, program: Program) -> Result<&PathBuf> {
        let built = &self.built[program as usize];
        if let Some(path) = built.get() {
            return Ok(path);
        }
        let (name, steps): (&str, &[&[&str]]) = match program {
            Program::Tcp => ("tcp", &[&["cc", "-O2", "-o", "tcp", "tcp.c"]]),
            Program::Zmq => ("zmq", &[&["cc", "-O2", "-o", "zmq", "zmq.c", "-lzmq"]]),
            Program::Mpi => ("mpi", &[&["mpicc", "-O2", "-o", "mpi", "mpi.c"]]),
            Program::Grpc => ("grpc", GRPC),
        };
        for step in steps {
            prepare(Command::new(step[0]).args(&step[1..]), &self.folder.0)?;
        }
        Ok(built.get_or_init(|| self.folder.0.join(name)))
    }

    /// A command on the core of the server or of the client.
    fn pinned(&self, program: &PathBuf, is_server: bool) -> Command {
        let cores = if is_server { self.cores.worker(Placement::Cross) } else { self.cores.leader(Placement::Cross) };
        let mut command = Command::new("taskset");
        command.args(["-c", &cores[0].to_string()]).arg(program).current_dir(&self.folder.0);
        command
    }

    /// Runs a server and a client that prints its figures.
    fn pair(&self, program: Program, address: &str, more: &[&str]) -> Result<Figures> {
        let program = self.program(program)?;
        let mut server = self.pinned(program, true);
        let _server = Service::start(server.args(["serve", address]).args(more))?;
        let mut client = self.pinned(program, false);
        client.args(["ask", address]).args(more).arg(self.millis.to_string());
        Ok(told(&output(&mut client, LIMIT)?))
    }
}

/// The programs of `tests/peers`.
#[derive(Clone, Copy)]
enum Program {
    Tcp,
    Zmq,
    Mpi,
    Grpc,
}

/// Where a program is: beside this one, or where programs are.
pub fn find(name: &str) -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(name)).filter(|file| file.is_file());
    beside.or_else(|| service::find(name))
}

/// Our own ends, over TCP in its better placement or over Sidestep as it is used.
pub fn sockets(kit: &Kit, via: Via) -> Result<Figures> {
    let placements: &[Placement] =
        if via == Via::Tcp { &[Placement::Free, Placement::Same] } else { &[Placement::Free] };
    let span = Span { warm_ms: 30, run_ms: kit.millis };
    let mut best = Figures::default();
    for placement in placements {
        let place = Place { cores: kit.cores, placement: *placement, pair: 0 };
        let echo = Work::Echo { size: 64, wait: Waiting::Block, connections: 1 };
        let exchange = Work::Exchange { size: 64, wait: Waiting::Block, pause_us: 0, span };
        let (client, _) = pair::run(via, echo, exchange, place)?;
        let stream = |size: usize| -> Result<f64> {
            let (client, _) =
                pair::run(via, Work::Sink { size, shift: 0 }, Work::Stream { size, shift: 0, span }, place)?;
            Ok(per_second(&client))
        };
        let larger = |known: Option<f64>, value: f64| Some(known.map_or(value, |known| known.max(value)));
        best.latency = Some(best.latency.map_or(client.half_trip[0], |known| known.min(client.half_trip[0])));
        best.rate = larger(best.rate, stream(64)?);
        best.bandwidth_64k = larger(best.bandwidth_64k, stream(64 << 10)? * 65536.0);
        best.bandwidth_1m = larger(best.bandwidth_1m, stream(1 << 20)? * 1048576.0);
    }
    Ok(best)
}

/// TCP with an option of the kernel.
pub fn tcp(kit: &Kit, way: &str) -> Result<Figures> {
    kit.pair(Program::Tcp, &free_port()?.to_string(), &[way])
}

/// ZeroMQ.
pub fn zmq(kit: &Kit) -> Result<Figures> {
    kit.pair(Program::Zmq, &format!("ipc://{}/zmq.sock", kit.folder.0.display()), &[])
}

/// gRPC.
pub fn grpc(kit: &Kit) -> Result<Figures> {
    let socket = kit.folder.0.join("grpc.sock");
    // The last server has left its name behind.
    let _ = std::fs::remove_file(&socket);
    let program = kit.program(Program::Grpc)?;
    let address = format!("unix:{}", socket.display());
    let _server = Service::start(kit.pinned(program, true).args(["serve", &address]))?.until(|| socket.exists())?;
    let mut client = kit.pinned(program, false);
    Ok(told(&output(client.args(["ask", &address, &kit.millis.to_string()]), LIMIT)?))
}

/// OpenMPI, which places its processes itself.
pub fn mpi(kit: &Kit) -> Result<Figures> {
    let program = kit.program(Program::Mpi)?;
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "-np", "2", "--bind-to", "core", "--mca", "pml", "ob1"]);
    command.args(["--mca", "btl", "self,vader"]).arg(program).arg(kit.millis.to_string());
    command.current_dir(&kit.folder.0);
    Ok(told(&output(&mut command, LIMIT)?))
}

/// UCX: one run of its program for each figure. The last line has the median and the mean of the time, bandwidths and rates.
pub fn ucx(kit: &Kit) -> Result<Figures> {
    let run = |test: &str, size: usize, count: u64| -> Result<Vec<f64>> {
        let port = free_port()?.to_string();
        let program = find("ucx_perftest").context("ucx_perftest has gone")?;
        let with = |is_server| {
            let mut command = kit.pinned(&program, is_server);
            command.env("UCX_TLS", "posix,self").args(["-p", &port]);
            command
        };
        let _server = Service::start(&mut with(true))?.until(|| listens(&port))?;
        let mut client = with(false);
        client.args(["127.0.0.1", "-t", test, "-s", &size.to_string(), "-n", &count.to_string(), "-f"]);
        let text = output(&mut client, LIMIT)?;
        let numbers: Vec<f64> =
            text.lines().last().unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect();
        anyhow::ensure!(numbers.len() >= 8, "ucx_perftest printed something else:\n{text}");
        Ok(numbers)
    };
    let scale = kit.millis.div_ceil(10);
    let bandwidth = |size, count| -> Result<Option<f64>> { Ok(Some(run("tag_bw", size, count)?[5] * 1048576.0)) };
    Ok(Figures {
        latency: Some(run("tag_lat", 64, 5000 * scale)?[1] * 1e3),
        rate: Some(run("tag_bw", 64, 10_000 * scale)?[7]),
        bandwidth_64k: bandwidth(64 << 10, 300 * scale)?,
        bandwidth_1m: bandwidth(1 << 20, 30 * scale)?,
    })
}

/// libfabric. Its lines end with megabytes per second, microseconds and millions of transfers per second.
pub fn libfabric(kit: &Kit) -> Result<Figures> {
    let run = |size: usize, count: u64| -> Result<[f64; 2]> {
        let port = free_port()?.to_string();
        let program = find("fi_pingpong").context("fi_pingpong has gone")?;
        let with = |is_server| {
            let mut command = kit.pinned(&program, is_server);
            command.args(["-p", "shm", "-e", "rdm", "-S", &size.to_string(), "-I", &count.to_string()]);
            command.args([if is_server { "-B" } else { "-P" }, &port]);
            command
        };
        let _server = Service::start(&mut with(true))?.until(|| listens(&port))?;
        let text = output(with(false).arg("127.0.0.1"), LIMIT)?;
        let words: Vec<&str> = text.lines().last().unwrap_or_default().split_whitespace().collect();
        let number = |at: usize| words.len().checked_sub(at).and_then(|at| words.get(at)?.parse::<f64>().ok());
        let (bandwidth, time) = (number(3), number(2));
        Ok([bandwidth, time].map(|value| value.unwrap_or(f64::NAN)))
    };
    let scale = kit.millis.div_ceil(10);
    Ok(Figures {
        latency: Some(run(64, 3000 * scale)?[1] * 1e3),
        rate: None,
        bandwidth_64k: Some(run(64 << 10, 100 * scale)?[0] * 1e6),
        bandwidth_1m: Some(run(1 << 20, 10 * scale)?[0] * 1e6),
    })
}

/// iceoryx2, by the program of `tests/peers/iceoryx2`, which starts its other end itself.
pub fn iceoryx2(kit: &Kit) -> Result<Figures> {
    let program = find("sidestep-peer-iceoryx2").context("sidestep-peer-iceoryx2 has gone")?;
    Ok(told(&output(Command::new(program).arg(kit.millis.to_string()), LIMIT)?))
}

/// Whether somebody listens on a port; asked of the kernel, since a server of these serves the first that connects.
fn listens(port: &str) -> bool {
    let Ok(port) = port.parse::<u16>() else { return false };
    let wanted = format!(":{port:04X} ");
    let is_listener = |line: &str| {
        let mut words = line.split_whitespace();
        words.nth(1).is_some_and(|local| format!("{local} ").ends_with(&wanted)) && words.nth(1) == Some("0A")
    };
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .any(|table| std::fs::read_to_string(table).unwrap_or_default().lines().any(is_listener))
}

/// The figures that a program of `tests/peers` prints.
fn told(text: &str) -> Figures {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    Figures {
        latency: value("latency_ns "),
        rate: value("rate "),
        bandwidth_64k: value("bandwidth_64k "),
        bandwidth_1m: value("bandwidth_1m "),
    }
}

const LIMIT: Duration = Duration::from_secs(60);

const GRPC: &[&[&str]] = &[
    &["protoc", "--cpp_out=.", "echo.proto"],
    &["sh", "-c", "protoc --grpc_out=. --plugin=protoc-gen-grpc=$(command -v grpc_cpp_plugin) echo.proto"],
    // The libraries that these need themselves are not named.
    &[
        "c++",
        "-O2",
        "-o",
        "grpc",
        "grpc.cc",
        "echo.pb.cc",
        "echo.grpc.pb.cc",
        "-Wl,--copy-dt-needed-entries",
        "-lgrpc++",
        "-lgrpc",
        "-lprotobuf",
        "-lgpr",
    ],
];

const SOURCES: [(&str, &str); 6] = [
    ("load.h", include_str!("../../../../../tests/peers/load.h")),
    ("tcp.c", include_str!("../../../../../tests/peers/tcp.c")),
    ("zmq.c", include_str!("../../../../../tests/peers/zmq.c")),
    ("mpi.c", include_str!("../../../../../tests/peers/mpi.c")),
    ("grpc.cc", include_str!("../../../../../tests/peers/grpc.cc")),
    ("echo.proto", include_str!("../../../../../tests/programs/grpc/echo.proto")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_what_is_not_there_is_missing() {
        let figures = told("latency_ns 123.5\nrate 9\nelse 1\n");
        assert_eq!(figures, Figures { latency: Some(123.5), rate: Some(9.0), ..Figures::default() });
    }
}
