//! The processes that are measured, and wrk in front of them.

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
use sidestep_cache::module;

use super::{WAYS, Workload};

/// An origin with files, its module, and the proxies that are measured.
pub struct Site {
    workload: &'static Workload,
    folder: PathBuf,
    module: String,
    /// The origin and the module.
    shared: Vec<u32>,
    ways: Vec<Way>,
    paths: Vec<String>,
    processes: Vec<Child>,
}

/// A way to serve.
struct Way {
    name: &'static str,
    addresses: Vec<String>,
    /// The processes that answer there.
    proxies: Vec<u32>,
    /// Where they tell their counts, if they are ours and have a cache.
    counts: Vec<String>,
}

/// What a way has done while it was asked.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Requests a second.
    pub rate: f64,
    /// Microseconds of the proxies for a request.
    pub proxies: f64,
    /// Microseconds of all servers for a request, with those that computing threads take.
    pub servers: f64,
}

impl Site {
    /// With so many threads beside the origin that compute.
    pub fn start(workload: &'static Workload, busy: usize) -> Result<Site> {
        let folder = env::temp_dir().join(format!("sidestep-bench-cache-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let files = folder.join("files");
        fs::create_dir_all(&files)?;
        let mut paths = Vec::new();
        for (at, size) in (workload.sizes)().iter().enumerate() {
            fs::write(files.join(format!("file{at}")), vec![b'x'; *size])?;
            paths.push(format!("/file{at}"));
        }
        let mut site = Site {
            workload,
            folder,
            module: String::new(),
            shared: Vec::new(),
            ways: Vec::new(),
            paths,
            processes: Vec::new(),
        };
        let own = env::current_exe()?.display().to_string();
        let origin = site.nginx("origin", 0, &format!("root {};", files.display()))?;
        let threads = busy.to_string();
        let folder = files.display().to_string();
        site.module =
            site.spawn(0, &[&own, "cache", "files", &folder, "--listen", "127.0.0.1:0", "--busy", &threads])?;
        let module = site.module.clone();
        site.shared = site.processes.iter().map(Child::id).collect();
        for (way, copy) in WAYS.iter().flat_map(|way| (0..workload.proxies).map(move |copy| (*way, copy))) {
            let check = match way {
                "two-sided" | "one-sided" => way,
                _ => "none",
            };
            let proxy = [&own, "cache", "proxy", "--origin", &origin, "--listen", "127.0.0.1:0", "--threads", "1"];
            let mut counts = Vec::new();
            let address = match way {
                "nginx" => {
                    let store = site.folder.join(format!("store{copy}")).display().to_string();
                    // Files stay open, without which a hit takes it half as long again.
                    let zone = format!(
                        "open_file_cache max=1000; proxy_cache_path {store} keys_zone=one:1m use_temp_path=off; upstream origin {{ server {origin}; keepalive 64; }}"
                    );
                    let rules = "location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_cache one; proxy_cache_valid 200 1h; }";
                    site.nginx_with(&format!("cache{copy}"), 1, &zone, rules)?
                }
                "no-cache" => site.spawn(1, &[&proxy[..], &["--without-cache"]].concat())?,
                _ => {
                    counts.push(format!("127.0.0.1:{}", free_port()?));
                    let cached = ["--module", &module, "--check", check, "--metrics", &counts[0]];
                    site.spawn(1, &[&proxy[..], &cached].concat())?
                }
            };
            let process = site.processes.last().map_or(0, Child::id);
            match site.ways.iter_mut().find(|known| known.name == way) {
                Some(known) => {
                    known.addresses.push(address);
                    known.proxies.push(process);
                    known.counts.extend(counts);
                }
                None => site.ways.push(Way { name: way, addresses: vec![address], proxies: vec![process], counts }),
            }
        }
        Ok(site)
    }

    /// Starts a program on a core; the last word of its first line is its address.
    fn spawn(&mut self, core: usize, words: &[&str]) -> Result<String> {
        let mut command = self.pinned(core, words[0])?;
        let mut child = command.args(&words[1..]).stdout(Stdio::piped()).spawn().context("taskset cannot be run")?;
        let output = child.stdout.take().context("its output")?;
        self.processes.push(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        line.split_whitespace().next_back().map(str::to_string).context("a part of the cache does not start")
    }

    /// A program on a core, on rings if this workload has them.
    fn pinned(&self, core: usize, program: &str) -> Result<Command> {
        let mut command = Command::new("taskset");
        command.args(["-c", &(core % super::cores()).to_string()]).stdin(Stdio::null());
        if self.workload.is_accelerated {
            command.arg(env::current_exe()?).args(["run", "--"]);
        }
        command.arg(program);
        Ok(command)
    }

    fn nginx(&mut self, name: &str, core: usize, rules: &str) -> Result<String> {
        self.nginx_with(name, core, "", rules)
    }

    fn nginx_with(&mut self, name: &str, core: usize, before: &str, rules: &str) -> Result<String> {
        let port = free_port()?;
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
        let child = self.pinned(core, program)?.arg("-c").arg(&file).args(["-p", &home.to_string()]).spawn()?;
        self.processes.push(child);
        let address = format!("127.0.0.1:{port}");
        let limit = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(&address).is_err() {
            ensure!(Instant::now() < limit, "nginx does not start; see {home}/error");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(address)
    }

    /// Asks in one way for so long, while a document changes every second.
    pub fn measure(&self, way: &str, seconds: u64) -> Result<Measured> {
        let proxies = &self.way(way)?.proxies;
        let mut client = self.client(way, seconds)?;
        let busy = || (busy_us(proxies), busy_us(&self.shared));
        let (before, began) = (busy(), Instant::now());
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| self.change_documents(&over));
            let output = client.output();
            over.store(true, Ordering::Relaxed);
            let output = output.context("wrk is not installed")?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
            match rate.and_then(|rate| rate.trim().parse().ok()) {
                Some(rate) if !text.contains("Non-2xx") => {
                    let requests = f64::max(1.0, rate * began.elapsed().as_secs_f64());
                    let (proxies, shared) = busy();
                    let proxies = (proxies - before.0) / requests;
                    Ok(Measured { rate, proxies, servers: proxies + (shared - before.1) / requests })
                }
                _ => bail!("wrk: {text}{}", String::from_utf8_lossy(&output.stderr)),
            }
        })
    }

    fn way(&self, name: &str) -> Result<&Way> {
        self.ways.iter().find(|known| known.name == name).context("a way")
    }

    /// Where the proxies of a way tell their counts.
    pub fn counts(&self, way: &str) -> Result<&[String]> {
        Ok(&self.way(way)?.counts)
    }

    /// wrk, which asks in one way for so long.
    pub fn client(&self, way: &str, seconds: u64) -> Result<Command> {
        let addresses = &self.way(way)?.addresses;
        let script = self.folder.join(format!("{way}.lua"));
        fs::write(&script, self.script(addresses))?;
        let mut client = self.pinned(self.workload.client_core(), "wrk")?;
        client
            .args(["-t", &addresses.len().to_string(), "-c", &self.workload.connections.to_string()])
            .args(["-d", &format!("{seconds}s"), "-s"])
            .arg(&script)
            .arg(format!("http://{}/", addresses[0]));
        Ok(client)
    }

    /// Changes one document after the other, every second, until it is over.
    pub fn change_documents(&self, over: &AtomicBool) {
        for path in self.paths.iter().cycle().take_while(|_| !over.load(Ordering::Relaxed)) {
            let bytes = fs::read(self.folder.join("files").join(&path[1..])).unwrap_or_default();
            // One that is not done in time changes nothing about the requests.
            let _ = module::update(&self.module, path, &bytes);
            (0..100).filter(|_| !over.load(Ordering::Relaxed)).for_each(|_| thread::sleep(Duration::from_millis(10)));
        }
    }

    /// What wrk asks for: evenly, or by Zipf's law with exponent 0.75, from the smallest file on. Drawn and written before, so that the
    /// client takes as little of its core as it can; each of its threads asks another proxy.
    fn script(&self, addresses: &[String]) -> String {
        let exponent = self.workload.exponent;
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

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
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

/// The server that is the origin, and the cache beside ours.
pub fn nginx() -> Option<&'static str> {
    ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists())
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
