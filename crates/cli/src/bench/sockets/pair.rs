//! Starting the ends of a measurement: which path the bytes take, where the processes run, and a limit on all of it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::super::place::{Cores, Placement};
use super::job::{Job, Report, Work};
use super::tools::Tool;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// Kernel TCP.
    Tcp,
    /// UNIX sockets.
    Unix,
    /// TCP connections of programs under `sidestep run`.
    Ring,
    /// The same, while a tool looks at them.
    Beside(Tool),
    /// The same as `Ring` with `--carrier via`.
    Link,
    /// UNIX sockets of programs under `sidestep run`: nothing to accelerate.
    UnixUnder,
}

impl Via {
    /// The `path` of its records.
    pub fn name(self) -> &'static str {
        match self {
            Via::Tcp => "tcp",
            Via::Unix => "unix",
            Via::Ring => "ring",
            Via::Beside(tool) => tool.way(),
            Via::Link => "via",
            Via::UnixUnder => "unix-under-run",
        }
    }

    /// An address to listen on.
    fn address(self) -> String {
        match self {
            Via::Tcp | Via::Ring | Via::Beside(_) | Via::Link => "tcp:127.0.0.1:0".into(),
            Via::Unix | Via::UnixUnder => {
                static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
                let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let name = format!("sidestep-bench-{}-{number}.sock", std::process::id());
                format!("unix:{}", std::env::temp_dir().join(name).display())
            }
        }
    }

    /// A command that runs a program this way.
    pub fn command(self, program: &std::ffi::OsStr) -> Result<Command> {
        match self {
            Via::Tcp | Via::Unix => Ok(Command::new(program)),
            Via::Ring | Via::Beside(_) | Via::UnixUnder | Via::Link => {
                let mut command = Command::new(own_program()?);
                let carrier = if self == Via::Link { "via" } else { "ring" };
                command.args(["run", "--carrier", carrier, "--"]).arg(program);
                Ok(command)
            }
        }
    }
}

/// One process of a measurement. Dropping it kills it.
pub struct End {
    process: Child,
    lines: Receiver<String>,
    input: Option<ChildStdin>,
}

/// A server at work, and where it is.
pub struct Server {
    /// Its process.
    pub end: End,
    /// Its address.
    pub address: String,
}

/// Where the two ends of a pair run.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The cores there are.
    pub cores: Cores,
    /// How they are used.
    pub placement: Placement,
    /// The number of the pair, among several.
    pub pair: usize,
}

impl Place {
    fn server(&self) -> Vec<usize> {
        self.chosen(self.cores.worker(self.placement), 1)
    }

    fn client(&self) -> Vec<usize> {
        self.chosen(self.cores.leader(self.placement), 0)
    }

    /// Pairs on one core are spread over both cores; crossed pairs change sides.
    fn chosen(&self, cores: Vec<usize>, side: usize) -> Vec<usize> {
        if self.placement == Placement::Free || self.pair % 2 == 0 {
            return if self.placement == Placement::Free { Vec::new() } else { cores };
        }
        let crossed = self.cores.leader(Placement::Cross).into_iter().chain(self.cores.worker(Placement::Cross));
        let both: Vec<usize> = crossed.collect();
        match self.placement {
            Placement::Same => vec![both[1]],
            _ => vec![both[side]],
        }
    }
}

impl End {
    /// Starts a process with this work.
    pub fn start(via: Via, work: Work, address: &str, cores: Vec<usize>) -> Result<End> {
        let program = own_program()?;
        let job = Job { work, address: address.into(), cores, parent: std::process::id() as i32 };
        let mut process = via
            .command(program.as_os_str())?
            .args(["socket-end", &serde_json::to_string(&job)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("cannot start an end")?;
        let input = process.stdin.take();
        let lines = lines_of(process.stdout.take().context("no output")?);
        Ok(End { process, lines, input })
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it says next.
    pub fn line(&mut self) -> Result<String> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Ok(line),
            Err(_) => match self.process.try_wait()? {
                Some(status) => Err(anyhow!("an end of the measurement ended without a report: {status}")),
                None => Err(anyhow!("an end of the measurement hangs:\n{}", standing(self.process.id()))),
            },
        }
    }

    /// Lets it end, and takes its report.
    pub fn report(mut self) -> Result<Report> {
        drop(self.input.take());
        self.next_report()
    }

    /// The next of its reports.
    pub fn next_report(&mut self) -> Result<Report> {
        let line = self.line()?;
        serde_json::from_str(&line).with_context(|| format!("not a report: {line}"))
    }

    /// Processor time that its first thread has used, in nanoseconds.
    pub fn processor_time(&self) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.id()))?;
        text.split(' ').next().and_then(|word| word.parse().ok()).context("schedstat has no number")
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // It has mostly ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Starts a server and waits until it listens.
    pub fn start(via: Via, work: Work, place: Option<Place>) -> Result<Server> {
        let cores = place.map(|place| place.server()).unwrap_or_default();
        let mut end = End::start(via, work, &via.address(), cores)?;
        let address = end.line()?;
        Ok(Server { end, address })
    }

    /// Starts a client of it.
    pub fn client(&self, via: Via, work: Work, place: Option<Place>) -> Result<End> {
        End::start(via, work, &self.address, place.map(|place| place.client()).unwrap_or_default())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(path) = self.address.strip_prefix("unix:") {
            // Nothing is lost with it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Runs a server and a client, and gives both reports: the client's first.
pub fn run(via: Via, server: Work, client: Work, place: Place) -> Result<(Report, Report)> {
    let server = Server::start(via, server, Some(place))?;
    let client = server.client(via, client, Some(place))?.report()?;
    let Server { .. } = &server;
    let served = serve_end(server)?;
    Ok((client, served))
}

/// The server's report, once its clients are gone.
pub fn serve_end(mut server: Server) -> Result<Report> {
    server.end.next_report()
}

/// What a command prints, if it ends well and within the limit.
pub fn output(command: &mut Command, limit: Duration) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (mut out, mut errors) =
        (process.stdout.take().context("no output")?, process.stderr.take().context("no output")?);
    let out = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = out.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let errors = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = errors.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let end = Instant::now() + limit;
    let status = loop {
        match process.try_wait()? {
            Some(status) => break status,
            None if Instant::now() > end => {
                let standing = standing(process.id());
                process.kill()?;
                process.wait()?;
                bail!("{name} did not end within {} s:\n{standing}", limit.as_secs());
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    let (out, errors) = (out.join().unwrap_or_default(), errors.join().unwrap_or_default());
    if !status.success() {
        bail!("{name}: {status}\n{out}{errors}");
    }
    Ok(out)
}

/// Where a process stands, for one that hangs.
fn standing(process: u32) -> String {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    format!("process {process}: wchan {}, syscall {}", read("wchan"), read("syscall"))
}

fn lines_of(out: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
    lines
}

/// The file of this program.
pub fn own_program() -> Result<std::path::PathBuf> {
    std::env::current_exe().context("cannot tell where this program is")
}

/// No measurement takes longer.
const LIMIT: Duration = Duration::from_secs(30);
