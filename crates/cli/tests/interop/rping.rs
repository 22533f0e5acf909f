//! `sidestep rping` and rdma-core's rping, in both roles.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::guest::Guest;
use crate::report::Report;

const SIZES: [u32; 6] = [64, 100, 1453, 4096, 32768, 59999];
const FRESH: usize = 100;

pub fn run(report: &mut Report, guest: &mut Guest) {
    if let Err(error) = guest_serves(report, guest) {
        report.case("rping", "starting the servers", "server", || bail!("{error:#}"));
    }
    guest_connects(report, guest, "plain");
    report.case("rping", "siw with peer-to-peer mode on is put to work", "both", || use_siw(guest, "p2p"));
    guest_connects(report, guest, "p2p");
    report.case("rping", "siw as it is is put to work", "both", || use_siw(guest, "plain"));
}

/// Replaces one build of siw by the other.
fn use_siw(guest: &Guest, build: &str) -> Result<String> {
    // The server holds the module.
    let output = guest.run(&format!("killall rping 2>/dev/null; sleep 1; use-siw {build} && rdma link"))?;
    ensure!(output.contains("siw0/1 state ACTIVE"), "{}", output.trim());
    Ok(String::new())
}

fn guest_serves(report: &mut Report, guest: &mut Guest) -> Result<()> {
    let (inside, outside) = guest.reserve_port();
    guest.run(&format!("rping -s -P -a 0.0.0.0 -p {inside} -S 60000 >/tmp/rping.log 2>&1 & sleep 1"))?;
    let port = outside.to_string();
    let client = |arguments: &[&str]| {
        let given = [&["rping", "-c", "-a", "127.0.0.1", "-p", &port, "-V"], arguments].concat();
        sidestep(&given)
    };
    for crc in [true, false] {
        let name = format!("10 pings of {SIZES:?} bytes, CRC {}", on(crc));
        report.case("rping", name, "server", || {
            for size in SIZES {
                let mut arguments = vec!["-C".to_owned(), "10".into(), "-S".into(), size.to_string()];
                if !crc {
                    arguments.push("--no-crc".into());
                }
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                client(&arguments).with_context(|| format!("{size} bytes"))?;
            }
            Ok(String::new())
        });
    }
    report.case("rping", format!("{FRESH} fresh connections"), "server", || {
        for at in 0..FRESH {
            client(&["-C", "1"]).with_context(|| format!("connection {at}"))?;
        }
        Ok(String::new())
    });
    report.case("rping", "20 fresh connections without nudge", "server", || {
        let lost = (0..20).filter(|_| client(&["-C", "1", "--nudge", "0", "--timeout", "2"]).is_err()).count();
        Ok(format!("{lost} hung: siw lost the wake-up of the first FPDU"))
    });
    for ready in ["write", "read"] {
        report.case("rping", format!("peer-to-peer, ready by {ready}"), "server", || {
            client(&["-C", "3", "--peer-to-peer", "--ready", ready]).map(|()| String::new())
        });
    }
    report.case("rping", "markers, which siw lacks", "server", || {
        must_say(client(&["-C", "3", "--markers"]), "refused the connection")
    });
    report.case("rping", "revision 1, in which siw's rping cannot read", "server", || {
        match client(&["-C", "1", "--revision", "1", "--timeout", "5"]) {
            Ok(()) => Ok("it can".to_owned()),
            Err(error) => Ok(format!("the client says: {}", first_line(&error))),
        }
    });
    Ok(())
}

fn guest_connects(report: &mut Report, guest: &mut Guest, build: &str) {
    let mut variants = vec![(true, ""), (false, "")];
    if build == "p2p" {
        variants.push((true, "read"));
    }
    for (crc, ready) in variants {
        let mut name = format!("{build} siw, 10 pings of {SIZES:?} bytes, CRC {}", on(crc));
        if !ready.is_empty() {
            name += &format!(", ready by {ready} only");
        }
        report.case("rping", name, "client", || {
            let mut arguments = Vec::new();
            if !crc {
                arguments.push("--no-crc");
            }
            if !ready.is_empty() {
                arguments.extend(["--ready", ready]);
            }
            let server = Server::start(&arguments)?;
            for size in SIZES {
                let output = guest.run(&client_command(&server, size, 10))?;
                ensure!(output.trim_end().ends_with("status 0"), "{size} bytes: {}", output.trim());
            }
            let said = server.stop()?;
            let (agreed, wanted) = (said.join("\n"), format!("peer-to-peer {}", build == "p2p"));
            ensure!(agreed.contains(&wanted), "{wanted} was not agreed");
            ensure!(agreed.contains(&format!("crc {crc}")), "crc {crc} was not agreed");
            Ok(String::new())
        });
    }
    report.case("rping", format!("{build} siw, 30 fresh connections"), "client", || {
        let server = Server::start(&[])?;
        let command = client_command(&server, 64, 1);
        let output = guest.run(&format!("for i in $(seq 30); do {command}; done"))?;
        let good = output.lines().filter(|line| *line == "status 0").count();
        ensure!(good == 30, "{good} of 30: {}", output.trim());
        Ok(String::new())
    });
}

fn client_command(server: &Server, size: u32, count: u32) -> String {
    format!("rping -c -a 10.0.2.2 -p {} -V -S {size} -C {count}; echo status $?", server.port)
}

/// A server on this host.
struct Server {
    process: Child,
    port: u16,
    output: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start(arguments: &[&str]) -> Result<Self> {
        let mut process = Command::new(env!("CARGO_BIN_EXE_sidestep"))
            .args(["rping", "-s", "-d", "-a", "127.0.0.1", "-p", "0", "-S", "60000", "-P"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .context("starting sidestep")?;
        let mut output = BufReader::new(process.stdout.take().ok_or_else(|| anyhow!("no output"))?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        match port {
            Some(port) => Ok(Self { process, port, output }),
            None => {
                let _ = process.kill();
                let _ = process.wait();
                bail!("the server says {line:?} instead of its port")
            }
        }
    }

    /// Ends it; gives what it said.
    fn stop(mut self) -> Result<Vec<String>> {
        self.process.kill()?;
        let lines = (&mut self.output).lines().collect::<Result<_, _>>()?;
        Ok(lines)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the program to its end, which must be a good one.
fn sidestep(arguments: &[&str]) -> Result<()> {
    let mut process = Command::new(env!("CARGO_BIN_EXE_sidestep"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting sidestep")?;
    let begin = Instant::now();
    while process.try_wait()?.is_none() {
        if begin.elapsed() > Duration::from_secs(60) {
            let _ = process.kill();
            let _ = process.wait();
            bail!("sidestep {} does not end", arguments.join(" "));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = process.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    bail!("{}", String::from_utf8_lossy(&output.stderr).trim())
}

/// Turns a failure that must come into a success.
fn must_say(outcome: Result<()>, text: &str) -> Result<String> {
    match outcome {
        Ok(()) => bail!("it works, which it should not"),
        Err(error) if format!("{error:#}").contains(text) => Ok(first_line(&error)),
        Err(error) => Err(error),
    }
}

fn first_line(error: &anyhow::Error) -> String {
    format!("{error:#}").lines().next().unwrap_or_default().trim_start_matches("sidestep: ").to_owned()
}

pub fn on(crc: bool) -> &'static str {
    if crc { "on" } else { "off" }
}
