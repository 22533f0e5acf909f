//! `sidestep bench peers`: what a user would pick instead, as it is installed, in the same run: a message of 64 bytes there and
//! back, 64-byte messages one way, and streams of 64 KiB and 1 MiB, between two processes on two cores.
//!
//! Every library has the same load (`tests/peers/load.h`, compiled when it is measured), except those that bring a measuring
//! program of their own. All take turns. What is not installed is named, with what installs it.

mod library;

use anyhow::{Result, ensure};
use serde_json::{Map, Value};

use self::library::Kit;
use super::place::Cores;
use super::record::{Metric, Record, digits};
use super::sink::Sink;
use super::stats::{median, spread};
use super::{options, progress::Plan};

/// What `bench list` says of it.
pub const ABOUT: &str =
    "what a user would pick instead, where it is installed: 64-byte latency and rate, 64 KiB and 1 MiB streams";

/// One of them.
pub struct Peer {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What has to be there: programs, or files by their path.
    needs: &'static [&'static str],
    /// What installs it.
    install: &'static str,
    /// Measures it once.
    measure: fn(&Kit) -> Result<Figures>,
}

/// What one measurement gave; what a peer cannot tell is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Nanoseconds of a 64-byte message, one way.
    pub latency: Option<f64>,
    /// 64-byte messages per second.
    pub rate: Option<f64>,
    /// Bytes per second in messages of 64 KiB.
    pub bandwidth_64k: Option<f64>,
    /// Bytes per second in messages of 1 MiB.
    pub bandwidth_1m: Option<f64>,
}

/// Every peer, ours first.
pub const PEERS: &[Peer] = &[
    Peer {
        name: "sidestep",
        about: "unmodified socket programs under `sidestep run`",
        needs: &[],
        install: "",
        measure: |kit| library::sockets(kit, super::sockets::pair::Via::Ring),
    },
    Peer {
        name: "tcp",
        about: "the same programs over kernel TCP, where that is at its best",
        needs: &[],
        install: "",
        measure: |kit| library::sockets(kit, super::sockets::pair::Via::Tcp),
    },
    Peer {
        name: "tcp-busy-poll",
        about: "TCP with SO_BUSY_POLL, and receives that look and do not sleep",
        needs: &["cc"],
        install: "apt-get install gcc",
        measure: |kit| library::tcp(kit, "busy"),
    },
    Peer {
        name: "tcp-zerocopy",
        about: "TCP with MSG_ZEROCOPY from 16 KiB on",
        needs: &["cc"],
        install: "apt-get install gcc",
        measure: |kit| library::tcp(kit, "zerocopy"),
    },
    Peer {
        name: "ucx",
        about: "UCX tags over shared memory, by ucx_perftest",
        needs: &["ucx_perftest"],
        install: "apt-get install ucx-utils",
        measure: library::ucx,
    },
    Peer {
        name: "libfabric",
        about: "libfabric's shm provider, by fi_pingpong; its streams are messages there and back",
        needs: &["fi_pingpong"],
        install: "apt-get install libfabric-bin",
        measure: library::libfabric,
    },
    Peer {
        name: "openmpi",
        about: "OpenMPI over shared memory",
        needs: &["mpicc", "mpirun"],
        install: "apt-get install openmpi-bin libopenmpi-dev",
        measure: library::mpi,
    },
    Peer {
        name: "zeromq",
        about: "ZeroMQ pairs over ipc",
        needs: &["cc", "/usr/include/zmq.h"],
        install: "apt-get install libzmq3-dev",
        measure: library::zmq,
    },
    Peer {
        name: "grpc",
        about: "gRPC in C++ over UNIX sockets: calls, and one client stream",
        needs: &["c++", "protoc", "grpc_cpp_plugin", "/usr/include/grpcpp/grpcpp.h"],
        install: "apt-get install g++ protobuf-compiler protobuf-compiler-grpc libgrpc++-dev libprotobuf-dev",
        measure: library::grpc,
    },
    Peer {
        name: "iceoryx2",
        about: "iceoryx2 publish and subscribe, with a copy in and out",
        needs: &["sidestep-peer-iceoryx2"],
        install: "cargo install --path tests/peers/iceoryx2",
        measure: library::iceoryx2,
    },
];

/// Measures all that are installed.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    for word in &options.only {
        let names: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        ensure!(names.contains(&word.as_str()), "--only {word}: no such peer; there are: {}", names.join(", "));
    }
    let named = |peer: &&Peer| options.only.is_empty() || options.only.iter().any(|word| word == peer.name);
    let (there, missing): (Vec<&Peer>, Vec<&Peer>) =
        PEERS.iter().filter(named).partition(|peer| peer.lacks().is_none());
    let rounds = options.rounds_or(7, 3);
    let millis = if options.quick { 60 } else { 200 };
    let kit = Kit::new(Cores::choose(&options.cores)?, millis)?;
    let mut found: Vec<Vec<Figures>> = vec![Vec::new(); there.len()];
    let mut notes: Vec<(&str, String)> = Vec::new();
    let plan = Plan::of((rounds * there.len()) as f64);
    for round in 0..rounds {
        for (peer, found) in there.iter().zip(&mut found) {
            plan.step(1.0, &format!("round {} of {rounds}, {}", round + 1, peer.name));
            match (peer.measure)(&kit) {
                Ok(figures) => found.push(figures),
                Err(error) if round == 0 => {
                    notes.push((peer.name, format!("{} was not measured: {error:#}", peer.name)))
                }
                Err(_) => {}
            }
        }
    }
    drop(plan);
    for peer in missing {
        let lacks = peer.lacks().unwrap_or_default();
        notes.push((peer.name, format!("{}: {lacks} is not installed; {}", peer.name, peer.install)));
    }
    let measured: Vec<(&Peer, Vec<Figures>)> =
        there.into_iter().zip(found).filter(|(_, found)| !found.is_empty()).collect();
    sink.take(records(&measured, &notes));
    if !sink.is_json() {
        print(&measured, &notes);
    }
    Ok(())
}

impl Peer {
    /// The first thing it needs that is not there.
    fn lacks(&self) -> Option<&'static str> {
        self.needs.iter().copied().find(|need| match need.starts_with('/') {
            true => !std::path::Path::new(need).exists(),
            false => library::find(need).is_none(),
        })
    }
}

/// One of the figures, and its place in records.
struct Column {
    bench: &'static str,
    size: usize,
    metric: Metric,
    of: fn(&Figures) -> Option<f64>,
}

const COLUMNS: [Column; 4] = [
    Column { bench: "latency", size: 64, metric: Metric::OneWayP50, of: |figures| figures.latency },
    Column { bench: "rate", size: 64, metric: Metric::Rate, of: |figures| figures.rate },
    Column { bench: "bandwidth", size: 64 << 10, metric: Metric::Bandwidth, of: |figures| figures.bandwidth_64k },
    Column { bench: "bandwidth", size: 1 << 20, metric: Metric::Bandwidth, of: |figures| figures.bandwidth_1m },
];

impl Column {
    fn values(&self, found: &[Figures]) -> Vec<f64> {
        found.iter().filter_map(self.of).collect()
    }
}

fn records(measured: &[(&Peer, Vec<Figures>)], notes: &[(&str, String)]) -> Vec<Record> {
    let mut records = Vec::new();
    for column in COLUMNS {
        for (peer, found) in measured {
            let values = column.values(found);
            let Some(value) = median(values.iter().copied()) else { continue };
            let mut extra = Map::new();
            extra.insert("rounds".into(), values.len().into());
            extra.insert("about".into(), peer.about.into());
            extra.extend(spread(&values).map(|spread| ("spread".to_owned(), Value::from(spread))));
            let Column { bench, size, metric, .. } = column;
            let (bench, path, unit) = (format!("peers.{bench}"), peer.name.into(), metric.unit());
            records.push(Record { bench, path, size, metric, value, unit, extra });
        }
    }
    for (name, note) in notes {
        let extra = Map::from_iter([("note".to_owned(), Value::from(note.as_str()))]);
        let (bench, path, metric) = ("peers.note".into(), (*name).into(), Metric::Ratio);
        records.push(Record { bench, path, size: 0, metric, value: 0.0, unit: metric.unit(), extra });
    }
    records
}

fn print(measured: &[(&Peer, Vec<Figures>)], notes: &[(&str, String)]) {
    println!(
        "peers: 64 bytes one way and in a row, streams of 64 KiB and 1 MiB; in brackets how many times better Sidestep is"
    );
    println!("  {:<14} {:>18} {:>18} {:>18} {:>18}", "", "64 B", "64 B in a row", "64 KiB", "1 MiB");
    let ours = measured.iter().find(|(peer, _)| peer.name == "sidestep").map(|(_, found)| found);
    for (peer, found) in measured {
        print!("  {:<14}", peer.name);
        for column in COLUMNS {
            let metric = column.metric;
            let shown = median(column.values(found)).map(|value| {
                let own = ours.and_then(|ours| median(column.values(ours))).filter(|_| peer.name != "sidestep");
                let times = own.map(|own| if metric.larger_is_better() { own / value } else { value / own });
                metric.shown(value) + &times.map(|times| format!(" ({})", digits(times))).unwrap_or_default()
            });
            print!(" {:>18}", shown.unwrap_or_default());
        }
        println!("  {}", peer.about);
    }
    notes.iter().for_each(|(_, note)| println!("  {note}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_what_installs_it() {
        let peer = Peer { needs: &["no-such-program"], ..PEERS[9] };
        assert_eq!(peer.lacks(), Some("no-such-program"));
        for peer in PEERS.iter().filter(|peer| !peer.needs.is_empty()) {
            assert!(peer.install.contains("install"), "{}", peer.name);
        }
    }

    #[test]
    fn records_have_a_figure_each_and_notes() {
        let figures = Figures { latency: Some(200.0), bandwidth_1m: Some(1e10), ..Figures::default() };
        let records = records(&[(&PEERS[0], vec![figures; 3])], &[("ucx", "ucx: not installed".into())]);
        let names: Vec<(&str, usize)> = records.iter().map(|record| (record.bench.as_str(), record.size)).collect();
        assert_eq!(names, [("peers.latency", 64), ("peers.bandwidth", 1 << 20), ("peers.note", 0)]);
    }
}
