//! The ways to call an object, and how each is measured.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::place::Placement;
use super::super::record::Metric;
use super::super::shared;
use super::super::sockets::apps::kit::{self, Kit};
use super::super::sockets::apps::service::{Service, command, free_port, missing};
use super::super::sockets::pair::{Via, output};
use super::Effort;
use super::end::{Finds, Found, Job, Listen, Role};

/// The figures of one measurement; the first decides which placement is the better one.
pub type Measured = Vec<(Metric, f64)>;

/// One way to call an object.
pub struct Way {
    /// Its name in records and in `--only`.
    pub name: &'static str,
    kind: Kind,
}

enum Kind {
    /// This broker.
    Own { on: fn() -> Listen, dispatcher: bool, direct: usize },
    /// A bare channel of the fabric, with as many bytes.
    Channel,
    /// omniORB, on a path of the suite `sockets`, over a UNIX socket or TCP.
    Omni { via: Via, unix: bool },
}

/// Every way.
pub const WAYS: &[Way] = &[
    Way { name: "channel", kind: Kind::Channel },
    Way { name: "fabric", kind: Kind::Own { on: fabric, dispatcher: false, direct: DIRECT } },
    Way { name: "fabric-single", kind: Kind::Own { on: fabric, dispatcher: false, direct: usize::MAX } },
    Way { name: "fabric-dispatcher", kind: Kind::Own { on: fabric, dispatcher: true, direct: DIRECT } },
    Way { name: "iwarp", kind: Kind::Own { on: iwarp, dispatcher: false, direct: DIRECT } },
    Way { name: "via", kind: Kind::Own { on: via, dispatcher: false, direct: DIRECT } },
    Way { name: "via-flow", kind: Kind::Own { on: via_flow, dispatcher: false, direct: DIRECT } },
    Way { name: "via-dispatcher", kind: Kind::Own { on: via, dispatcher: true, direct: DIRECT } },
    Way { name: "unix", kind: Kind::Own { on: unix, dispatcher: false, direct: DIRECT } },
    Way { name: "tcp", kind: Kind::Own { on: tcp, dispatcher: false, direct: DIRECT } },
    Way { name: "tcp-dispatcher", kind: Kind::Own { on: tcp, dispatcher: true, direct: DIRECT } },
    Way { name: "omniorb-tcp", kind: Kind::Omni { via: Via::Tcp, unix: false } },
    Way { name: "omniorb-unix", kind: Kind::Omni { via: Via::Unix, unix: true } },
    Way { name: "omniorb-run", kind: Kind::Omni { via: Via::Ring, unix: false } },
];

/// From so many octets on they go past the buffers.
const DIRECT: usize = 8 << 10;

/// What a first call finds: nothing, memory of a connection before, or that and a thread of the server.
pub const COLD: &str = "cold";
pub const STRAND: &str = "strand";
pub const THREAD: &str = "strand, thread";

/// No measurement takes longer.
const LIMIT: Duration = Duration::from_secs(60);

fn tcp() -> Listen {
    Listen::Tcp
}

fn unix() -> Listen {
    Listen::Unix(socket_path())
}

fn fabric() -> Listen {
    Listen::Fabric(shared::fabric_name())
}

fn iwarp() -> Listen {
    // Without a free port the server says that it cannot listen.
    Listen::Iwarp(format!("127.0.0.1:{}", free_port().unwrap_or_default()))
}

fn via() -> Listen {
    Listen::Via(shared::fabric_name())
}

fn via_flow() -> Listen {
    Listen::ViaFlow(shared::fabric_name())
}

fn socket_path() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("sidestep-orb-{}-{number}.sock", std::process::id());
    std::env::temp_dir().join(name).to_string_lossy().into_owned()
}

/// The programs of omniORB, or why there are none.
pub struct Kits {
    omni: Option<Kit>,
    pub missing: Option<String>,
}

impl Kits {
    pub fn new() -> Kits {
        if let Some(why) = missing(&["omniidl", "c++"]) {
            return Kits { omni: None, missing: Some(format!("omniORB {why}")) };
        }
        match kit::corba() {
            Ok(kit) => Kits { omni: Some(kit), missing: None },
            Err(error) => Kits { omni: None, missing: Some(format!("omniORB left out: {error:#}")) },
        }
    }
}

impl Way {
    /// Whether it has a line in a table.
    pub fn takes_part(&self, table: &str) -> bool {
        match (&self.kind, table) {
            (Kind::Channel, table) => table == "null",
            (Kind::Omni { .. }, table) => table == "null" || table == "bulk",
            (Kind::Own { direct, .. }, "first" | "clients") => *direct != usize::MAX,
            (Kind::Own { dispatcher, .. }, "bulk" | "sizes") => !dispatcher,
            (Kind::Own { .. }, _) => true,
        }
    }

    /// Measures once; `None` if it cannot be measured here.
    pub fn measure(
        &self,
        (table, size, note): (&str, usize, &str),
        placement: Placement,
        effort: &Effort,
        kits: &Kits,
    ) -> Result<Option<Measured>> {
        let millis = effort.millis;
        let role = match table {
            "null" => Role::Call { millis },
            "bulk" => Role::Send { millis, size },
            "sizes" => Role::Trip { millis, size },
            "first" => Role::First {
                finds: match note {
                    COLD => Finds::Nothing,
                    STRAND => Finds::Strand,
                    _ => Finds::Thread,
                },
            },
            _ => Role::Many { millis, connections: size, all: note == "all" },
        };
        match &self.kind {
            Kind::Own { on, dispatcher, direct } => {
                let serve = Role::Serve { on: on(), dispatcher: *dispatcher };
                let job = |cores, role| Job { cores, role, direct: *direct };
                let mut server = End::start(&job(effort.cores.worker(placement), serve))?;
                let reference = server.line()?;
                let before = server.processor_time()?;
                let mut client = End::start(&job(effort.cores.leader(placement), role))?;
                let found = client.found(&reference)?;
                let cpu = (server.processor_time()? - before) as f64 / found.count.max(1) as f64;
                Ok(Some(measured((table, note), &found, cpu)))
            }
            Kind::Channel => {
                let name = shared::fabric_name();
                let job = |cores, role| Job { cores, role, direct: usize::MAX };
                let serve = Role::Channel { name: name.clone(), serve: true, millis };
                let mut server = End::start(&job(effort.cores.worker(placement), serve))?;
                server.line()?;
                let call = Role::Channel { name, serve: false, millis };
                let mut client = End::start(&job(effort.cores.leader(placement), call))?;
                let found = client.found("")?;
                Ok(Some(vec![(Metric::RoundTripP50, found.value), (Metric::RoundTripP99, found.second)]))
            }
            Kind::Omni { via, unix } => match &kits.omni {
                Some(kit) => omni(kit, *via, *unix, (table, size), placement, effort).map(Some),
                None => Ok(None),
            },
        }
    }
}

/// The figures of a table; `server` is the processor time of the server for each call.
fn measured((table, note): (&str, &str), found: &Found, server: f64) -> Measured {
    let both = (Metric::CpuPerMessage, found.cpu_ns + server);
    match table {
        "null" | "sizes" => vec![(Metric::RoundTripP50, found.value), (Metric::RoundTripP99, found.second), both],
        "bulk" => {
            vec![(Metric::Bandwidth, found.value), (Metric::Rate, found.second), both, (Metric::Cost, server)]
        }
        // Each has a metric of its own, for those who compare them.
        "first" => {
            let metric = match note {
                COLD => Metric::RoundTripP50,
                STRAND => Metric::CallP50,
                _ => Metric::Cost,
            };
            vec![(metric, found.value)]
        }
        _ => vec![(Metric::Requests, found.value), both],
    }
}

/// What is measured for a table.
#[cfg(test)]
pub fn metrics(table: &str) -> Vec<Metric> {
    let found = Found { value: 1.0, second: 1.0, cpu_ns: 1.0, count: 1 };
    let of = |note| measured((table, note), &found, 1.0).into_iter().map(|(metric, _)| metric);
    let mut all: Vec<Metric> = [COLD, STRAND, ""].into_iter().flat_map(of).collect();
    all.dedup();
    all
}

fn omni(
    kit: &Kit,
    via: Via,
    unix: bool,
    (table, size): (&str, usize),
    placement: Placement,
    effort: &Effort,
) -> Result<Measured> {
    let reference = kit.folder.0.join("reference");
    // That of the server before, if any.
    let _ = std::fs::remove_file(&reference);
    let endpoint = match unix {
        true => format!("giop:unix:{}", socket_path()),
        false => format!("giop:tcp:127.0.0.1:{}", free_port()?),
    };
    let mut server = command(via, placement, effort.cores, &kit.server)?;
    server.arg(&reference).args(["-ORBendPoint", &endpoint]);
    let _server = Service::start(&mut server)?.until(|| reference.is_file())?;
    let mut client = command(via, placement, effort.cores, &kit.client)?;
    client.arg(&reference).arg(effort.millis.to_string());
    if table == "bulk" {
        client.arg(size.to_string());
    }
    let text = output(&mut client, LIMIT)?;
    let word = |name: &str| -> Result<f64> {
        let value = text.split_whitespace().skip_while(|word| *word != name).nth(1);
        value.and_then(|word| word.parse().ok()).with_context(|| format!("no {name} in {text}"))
    };
    Ok(match table {
        "bulk" => {
            let rate = word("messages_per_s")?;
            vec![(Metric::Bandwidth, rate * size as f64), (Metric::Rate, rate)]
        }
        _ => vec![(Metric::RoundTripP50, word("median_ns")?)],
    })
}

/// A process of this program. Dropping it ends it.
struct End {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl End {
    fn start(job: &Job) -> Result<End> {
        let mut command = Command::new(std::env::current_exe().context("cannot tell where this program is")?);
        command.arg("orb-end").arg(serde_json::to_string(job)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context("cannot start an end")?;
        let (input, output) = (process.stdin.take(), process.stdout.take().context("no output")?);
        Ok(End { process, input, output: BufReader::new(output) })
    }

    fn line(&mut self) -> Result<String> {
        let mut text = String::new();
        self.output.read_line(&mut text)?;
        ensure!(!text.is_empty(), "an end has ended");
        Ok(text)
    }

    fn tell(&mut self, text: &str) -> Result<()> {
        let input = self.input.as_mut().context("no input")?;
        input.write_all(text.as_bytes())?;
        Ok(input.flush()?)
    }

    /// Processor time of a server so far, in nanoseconds.
    fn processor_time(&mut self) -> Result<u64> {
        self.tell("\n")?;
        Ok(self.line()?.trim().parse()?)
    }

    /// What a client says, who is given the reference.
    fn found(&mut self, reference: &str) -> Result<Found> {
        self.tell(reference)?;
        drop(self.input.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        serde_json::from_str(&text).with_context(|| format!("not a report: {text}"))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        drop(self.input.take());
        for _ in 0..300 {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
