//! The suite `cache`: requests a second of `sidestep cache` by how hits are checked, beside no cache and nginx's own, while the
//! application computes (figure 10.10 of Balaji 2006).
//!
//! What would be another host is another core: the origin, the module and the computing threads are on the first, the proxies
//! and their clients on the second, whichever way is measured. One document is changed every second. The ways take turns in short
//! rounds. Where nothing is kept the origin's core works for the answer, too, so the processor time of all servers is told beside.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Map;
use sidestep_cache::module;

use super::record::{Metric, Record};
use super::sheet::{self, Benches, Table};
use super::sink::Sink;
use super::stats::median;
use super::{options, show_progress};

/// What `bench list` says of the suite.
pub const ABOUT: &str = "a coherent web cache: requests a second by how hits are checked, beside no cache and nginx, while the \
    application has 0 to 8 computing threads (needs nginx and wrk)";

/// The benches, and what each is.
pub const BENCHES: Benches = &[
    ("small", "requests a second for five files of 1 to 16 KiB, evenly, over one proxy"),
    ("zipf", "requests a second for 20 files of 200 bytes to 1 MB, by Zipf's law, over three proxies"),
];

/// The ways to serve, the baseline first.
const WAYS: [&str; 5] = ["no-cache", "two-sided", "one-sided", "unchecked", "nginx"];

/// Runs the suite.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    if nginx().is_none() || Command::new("wrk").arg("-v").output().is_err() {
        eprintln!("cache: left out, since nginx or wrk is not installed");
        return Ok(());
    }
    let (rounds, seconds) = if options.quick { (1, 2) } else { (3, 3) };
    let loads: &[usize] = if options.quick { &[0, 8] } else { &[0, 1, 2, 4, 8] };
    sheet::run("cache", BENCHES, (options, sink), |name| workload(name, loads, rounds, seconds))
}

/// Prints the benches of the suite.
pub fn list() {
    sheet::list("cache", ABOUT, BENCHES);
}

fn workload(name: &str, loads: &[usize], rounds: usize, seconds: u64) -> Result<Table> {
    let mut table = Table::new(&["computing threads", WAYS[0], WAYS[1], WAYS[2], WAYS[3], WAYS[4]]);
    for load in loads {
        show_progress(&format!("cache.{name}, {load} computing threads"));
        let site = Site::start(name, *load)?;
        let (mut rates, mut costs) = (vec![Vec::new(); WAYS.len()], vec![Vec::new(); WAYS.len()]);
        for _ in 0..rounds {
            for (at, way) in WAYS.iter().enumerate() {
                let (rate, cost) = site.rate(way, seconds)?;
                rates[at].push(rate);
                costs[at].push(cost);
            }
        }
        show_progress("");
        let of = |all: &[Vec<f64>]| -> Vec<f64> {
            all.iter().map(|all| median(all.iter().copied()).unwrap_or(f64::NAN)).collect()
        };
        let (medians, costs) = (of(&rates), of(&costs));
        let shown = medians.iter().map(|rate| format!("{rate:.0}"));
        table.row(&std::iter::once(load.to_string()).chain(shown).collect::<Vec<_>>());
        if *load == 0 {
            let shown = costs.iter().map(|cost| format!("{cost:.1}"));
            table.row(&std::iter::once("  servers' us a request".to_string()).chain(shown).collect::<Vec<_>>());
        }
        for (way, rate) in WAYS.iter().zip(&medians) {
            let metric = Metric::Requests;
            let (bench, path) = (format!("cache.{name}"), (*way).to_string());
            table.records.push(Record {
                bench,
                path,
                size: *load,
                metric,
                value: *rate,
                unit: metric.unit(),
                extra: Map::new(),
            });
        }
        let [none, _, one_sided, unchecked, _] = medians[..] else { continue };
        let least = if *load == 8 { 10.0 } else { 3.0 };
        let gain = one_sided / none;
        if [0, 8].contains(load) && name == "small" {
            let verdict = if gain >= least { "met" } else { "MISSED" };
            table.text.push(format!(
                "one-sided against no cache, {load} threads: {gain:.1}, at least {least} promised: {verdict}"
            ));
            table.promise("unchecked against one-sided", unchecked / one_sided, 1.1);
        }
    }
    Ok(table)
}

/// An origin with files, its module, and the proxies that are measured.
struct Site {
    folder: PathBuf,
    module: String,
    /// Each way with its addresses and the processes that answer there.
    ways: Vec<(&'static str, Vec<String>, Vec<u32>)>,
    paths: Vec<String>,
    processes: Vec<Child>,
}

impl Site {
    fn start(name: &str, busy: usize) -> Result<Site> {
        let folder = env::temp_dir().join(format!("sidestep-bench-cache-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let files = folder.join("files");
        fs::create_dir_all(&files)?;
        let sizes: Vec<usize> = match name {
            "small" => (0..5).map(|at| 1024 << at).collect(),
            _ => (0..20).map(|at| (200.0 * 5000f64.powf(f64::from(at) / 19.0)) as usize).collect(),
        };
        let mut paths = Vec::new();
        for (at, size) in sizes.iter().enumerate() {
            fs::write(files.join(format!("file{at}")), vec![b'x'; *size])?;
            paths.push(format!("/file{at}"));
        }
        let (mut site, own) = (
            Site { folder, module: String::new(), ways: Vec::new(), paths, processes: Vec::new() },
            env::current_exe()?,
        );
        let own = own.display().to_string();
        let origin = site.nginx("origin", 0, &format!("root {};", files.display()))?;
        let threads = busy.to_string();
        let folder = files.display().to_string();
        site.module =
            site.spawn(0, &[&own, "cache", "files", &folder, "--listen", "127.0.0.1:0", "--busy", &threads])?;
        let module = site.module.clone();
        let shared: Vec<u32> = site.processes.iter().map(Child::id).collect();
        let proxies = if name == "zipf" { 3 } else { 1 };
        for (way, copy) in WAYS.iter().flat_map(|way| (0..proxies).map(move |copy| (*way, copy))) {
            let check = match way {
                "two-sided" | "one-sided" => way,
                _ => "none",
            };
            let proxy = [&own, "cache", "proxy", "--origin", &origin, "--listen", "127.0.0.1:0", "--threads", "1"];
            let address = match way {
                "nginx" => {
                    let store = site.folder.join(format!("store{copy}")).display().to_string();
                    let zone = format!(
                        "proxy_cache_path {store} keys_zone=one:1m use_temp_path=off; upstream origin {{ server {origin}; keepalive 16; }}"
                    );
                    let rules = "location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_cache one; proxy_cache_valid 200 1h; }";
                    site.nginx_with(&format!("cache{copy}"), 1, &zone, rules)?
                }
                "no-cache" => site.spawn(1, &[&proxy[..], &["--without-cache"]].concat())?,
                _ => site.spawn(1, &[&proxy[..], &["--module", &module, "--check", check]].concat())?,
            };
            let process = site.processes.last().map_or(0, Child::id);
            match site.ways.iter_mut().find(|(name, ..)| *name == way) {
                Some((_, addresses, processes)) => {
                    addresses.push(address);
                    processes.push(process);
                }
                None => site.ways.push((way, vec![address], shared.iter().copied().chain([process]).collect())),
            }
        }
        Ok(site)
    }

    /// Starts a program on a core; the last word of its first line is its address.
    fn spawn(&mut self, core: usize, words: &[&str]) -> Result<String> {
        let mut command = pinned(core, words[0]);
        let mut child = command.args(&words[1..]).stdout(Stdio::piped()).spawn().context("taskset cannot be run")?;
        let output = child.stdout.take().context("its output")?;
        self.processes.push(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        line.split_whitespace().next_back().map(str::to_string).context("a part of the cache does not start")
    }

    fn nginx(&mut self, name: &str, core: usize, rules: &str) -> Result<String> {
        self.nginx_with(name, core, "", rules)
    }

    fn nginx_with(&mut self, name: &str, core: usize, before: &str, rules: &str) -> Result<String> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let home = self.folder.join(name);
        fs::create_dir_all(&home)?;
        let home = home.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {home}/{kind};"))
            .concat();
        let text = format!(
            "daemon off; master_process off; worker_processes 1; pid {home}/pid; error_log {home}/error;\n\
             events {{ worker_connections 512; }}\nhttp {{ access_log off; keepalive_requests 1000000; {temporary} {before}\n\
             server {{ listen 127.0.0.1:{port}; {rules} }} }}\n"
        );
        let file = self.folder.join(format!("{name}.conf"));
        fs::write(&file, text)?;
        let program = nginx().context("nginx is not installed")?;
        let child = pinned(core, program).arg("-c").arg(&file).args(["-p", &home.to_string()]).spawn()?;
        self.processes.push(child);
        let address = format!("127.0.0.1:{port}");
        let limit = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(&address).is_err() {
            ensure!(Instant::now() < limit, "nginx does not start; see {home}/error");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(address)
    }

    /// Requests a second in one way, while a document changes every second; and the microseconds of the servers for each, with those
    /// that their computing threads take.
    fn rate(&self, way: &str, seconds: u64) -> Result<(f64, f64)> {
        let (_, addresses, processes) = self.ways.iter().find(|(name, ..)| *name == way).context("a way")?;
        let script = self.folder.join("paths.lua");
        fs::write(&script, self.script(addresses))?;
        let (before, began) = (busy_us(processes), Instant::now());
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut at = 0;
                while !over.load(Ordering::Relaxed) {
                    let path = &self.paths[at % self.paths.len()];
                    let bytes = fs::read(self.folder.join("files").join(&path[1..])).unwrap_or_default();
                    // One that is not done in time changes nothing about the requests.
                    let _ = module::update(&self.module, path, &bytes);
                    at += 1;
                    (0..100)
                        .filter(|_| !over.load(Ordering::Relaxed))
                        .for_each(|_| thread::sleep(Duration::from_millis(10)));
                }
            });
            let output = pinned(1, "wrk")
                .args(["-t", &addresses.len().to_string(), "-c", "9", "-d", &format!("{seconds}s"), "-s"])
                .arg(&script)
                .arg(format!("http://{}/", addresses[0]))
                .output();
            over.store(true, Ordering::Relaxed);
            let output = output.context("wrk is not installed")?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
            match rate.and_then(|rate| rate.trim().parse().ok()) {
                Some(rate) if !text.contains("Non-2xx") => {
                    let requests = f64::max(1.0, rate * began.elapsed().as_secs_f64());
                    Ok((rate, (busy_us(processes) - before) / requests))
                }
                _ => bail!("wrk: {text}{}", String::from_utf8_lossy(&output.stderr)),
            }
        })
    }

    /// What wrk asks for: evenly, or by Zipf's law with exponent 0.75, from the smallest file on. Drawn and written before, so that the
    /// client takes as little of its core as it can; each of its threads asks another proxy.
    fn script(&self, addresses: &[String]) -> String {
        let exponent = if self.paths.len() > 5 { 0.75 } else { 0.0 };
        let weights: Vec<f64> = (1..=self.paths.len()).map(|rank| (rank as f64).powf(-exponent)).collect();
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let rows = weights.iter().zip(&self.paths).map(|(weight, path)| {
            sum += weight / total;
            format!("{{{sum}, \"{path}\"}}")
        });
        let rows: Vec<String> = rows.collect();
        let places = addresses.iter().filter_map(|address| address.rsplit_once(':'));
        let places: Vec<String> = places.map(|(host, port)| format!("{{\"{host}\", \"{port}\"}}")).collect();
        SCRIPT.replace("ROWS", &rows.join(", ")).replace("PLACES", &places.join(", "))
    }
}

/// The program of wrk.
const SCRIPT: &str = "local rows, places, asked = {ROWS}, {PLACES}, 0
function setup(thread)
  asked = asked % #places + 1
  thread.addr = wrk.lookup(places[asked][1], places[asked][2])[1]
end
local drawn, last = {}, 0
function init(args)
  for at = 1, 4096 do
    local value, chosen = math.random(), rows[1][2]
    for _, row in ipairs(rows) do
      if value <= row[1] then chosen = row[2] break end
    end
    drawn[at] = wrk.format(nil, chosen)
  end
end
function request()
  last = last % 4096 + 1
  return drawn[last]
end
";

/// Microseconds of the processors that these processes have used.
fn busy_us(processes: &[u32]) -> f64 {
    let of = |process: &u32| -> Option<f64> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
        Some(ticks * 1e6 / rustix::param::clock_ticks_per_second() as f64)
    };
    processes.iter().filter_map(of).sum()
}

fn nginx() -> Option<&'static str> {
    ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists())
}

fn pinned(core: usize, program: &str) -> Command {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new("taskset");
    command.args(["-c", &(core % cores).to_string(), program]).stdin(Stdio::null());
    command
}

impl Drop for Site {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
