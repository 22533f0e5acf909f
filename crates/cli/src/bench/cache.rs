//! The suite `cache`: requests a second of `sidestep cache` by how hits are checked, beside no cache and nginx's own, while the
//! application computes (figure 10.10 of Balaji 2006).
//!
//! What would be another host is another core: the origin, the module and the computing threads are on the first, the proxy
//! and its clients on the second. One document is changed every second. The variants take turns in short rounds.

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
    ("small", "requests a second for five files of 1 to 16 KiB, evenly"),
    ("zipf", "requests a second for 20 files of 200 bytes to 1 MB, by Zipf's law"),
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
        let mut rates = vec![Vec::new(); WAYS.len()];
        for _ in 0..rounds {
            for (way, rates) in WAYS.iter().zip(&mut rates) {
                rates.push(site.rate(way, seconds)?);
            }
        }
        show_progress("");
        let medians: Vec<f64> = rates.iter().map(|rates| median(rates.iter().copied()).unwrap_or(f64::NAN)).collect();
        let shown = medians.iter().map(|rate| format!("{rate:.0}"));
        table.row(&std::iter::once(load.to_string()).chain(shown).collect::<Vec<_>>());
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
    /// Each way with its address.
    ways: Vec<(&'static str, String)>,
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
        for way in WAYS {
            let check = match way {
                "two-sided" | "one-sided" => way,
                _ => "none",
            };
            let proxy = [&own, "cache", "proxy", "--origin", &origin, "--listen", "127.0.0.1:0", "--threads", "1"];
            let address = match way {
                "nginx" => {
                    let store = site.folder.join("store").display().to_string();
                    let zone = format!(
                        "proxy_cache_path {store} keys_zone=one:1m use_temp_path=off; upstream origin {{ server {origin}; keepalive 16; }}"
                    );
                    let rules = "location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_cache one; proxy_cache_valid 200 1h; }";
                    site.nginx_with("cache", 1, &zone, rules)?
                }
                "no-cache" => site.spawn(1, &[&proxy[..], &["--without-cache"]].concat())?,
                _ => site.spawn(1, &[&proxy[..], &["--module", &module, "--check", check]].concat())?,
            };
            site.ways.push((way, address));
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

    /// Requests a second in one way, while a document changes every second.
    fn rate(&self, way: &str, seconds: u64) -> Result<f64> {
        let address = &self.ways.iter().find(|(name, _)| *name == way).context("a way")?.1;
        let script = self.folder.join("paths.lua");
        fs::write(&script, self.script())?;
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
                .args(["-t", "1", "-c", "9", "-d", &format!("{seconds}s"), "-s"])
                .arg(&script)
                .arg(format!("http://{address}/"))
                .output();
            over.store(true, Ordering::Relaxed);
            let output = output.context("wrk is not installed")?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
            match rate.and_then(|rate| rate.trim().parse().ok()) {
                Some(rate) if !text.contains("Non-2xx") => Ok(rate),
                _ => bail!("wrk: {text}{}", String::from_utf8_lossy(&output.stderr)),
            }
        })
    }

    /// What wrk asks for: evenly, or by Zipf's law with exponent 0.75, from the smallest file on.
    fn script(&self) -> String {
        let exponent = if self.paths.len() > 5 { 0.75 } else { 0.0 };
        let weights: Vec<f64> = (1..=self.paths.len()).map(|rank| (rank as f64).powf(-exponent)).collect();
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let rows = weights.iter().zip(&self.paths).map(|(weight, path)| {
            sum += weight / total;
            format!("{{{sum}, \"{path}\"}}")
        });
        let rows: Vec<String> = rows.collect();
        format!(
            "local rows = {{{}}}\nrequest = function()\n  local at = math.random()\n  for _, row in ipairs(rows) do\n    if at <= \
             row[1] then return wrk.format(nil, row[2]) end\n  end\n  return wrk.format(nil, rows[1][2])\nend\n",
            rows.join(", ")
        )
    }
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
