//! `sidestep balance` behind real load balancers: a site whose load stays high gets a server, and the balancer sends it requests. The
//! conversions are the scripts of `examples/balance`.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use sidestep_testkit::{ports::free_port, process::PATIENCE};

/// A process that ends with the test.
struct Part(Child);

impl Drop for Part {
    fn drop(&mut self) {
        // Not killed: nginx's workers end when their master does so in good order.
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.0), rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Servers of two sites, behind a balancer that has a port for each.
struct Centre {
    folder: PathBuf,
    /// Of the web servers.
    servers: Vec<(&'static str, SocketAddr)>,
    shop: u16,
    news: u16,
}

const SERVERS: [(&str, &str); 3] = [("a", "shop"), ("b", "news"), ("c", "news")];

impl Centre {
    fn new(name: &str) -> Centre {
        let folder = std::env::temp_dir().join(format!("sidestep-cli-balance-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let servers = SERVERS.map(|(name, _)| (name, serve(name))).to_vec();
        Centre { folder, servers, shop: free_port(), news: free_port() }
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// The servers of a site at first, in the words of a balancer.
    fn lines(&self, word: impl Fn(&str, &str, SocketAddr) -> String) -> String {
        let each = self.servers.iter().zip(SERVERS);
        each.map(|((name, address), (_, site))| word(name, site, *address)).collect()
    }

    /// A server moves to `shop` when its load stays high, and requests for `shop` get there; `convert` makes the command of a server.
    fn check(&self, convert: impl Fn(SocketAddr) -> String) {
        self.until("the balancer serves", || answer(self.shop).as_deref() == Some("a"));
        assert!(["b", "c"].contains(&answer(self.news).unwrap().as_str()));
        let mut text = "sites = [\"shop\", \"news\"]\nrules = { high = 80, low = 30, sensitivity_ms = 10, history_ms = 50, lease_ms = 2000 }\n".to_string();
        for ((name, address), (_, site)) in self.servers.iter().zip(SERVERS) {
            fs::write(self.folder.join(format!("{name}.load")), "10").unwrap();
            let (load, convert) = (self.path(&format!("{name}.load")), convert(*address));
            text += &format!(
                "[[node]]\nname = \"{name}\"\naddress = \"127.0.0.1:{}\"\nsite = \"{site}\"\nload = \"cat {load}\"\nconvert = \"{convert}\"\n",
                free_port()
            );
        }
        text += &format!("[[node]]\nname = \"l0\"\naddress = \"127.0.0.1:{}\"\ncontrols = \"shop\"\n", free_port());
        fs::write(self.folder.join("centre.toml"), text).unwrap();
        let nodes: Vec<(Part, String)> =
            ["a", "b", "c", "l0"].map(|name| (self.node(name), self.path(&format!("{name}.said")))).into();
        fs::write(self.folder.join("a.load"), "95").unwrap();
        let mut seen = Vec::new();
        self.until("a server moves to the shop", || {
            seen.extend(answer(self.shop));
            seen.iter().any(|name| name == "b" || name == "c")
        });
        let moved = seen.iter().find(|name| *name != "a").unwrap().clone();
        let left = if moved == "b" { "c" } else { "b" };
        self.until("the news are served by the other one alone", || {
            (0..8).all(|_| answer(self.news).as_deref() == Some(left))
        });
        self.until("it says so", || self.said(&moved).contains(&format!("{moved}: serves shop now")));
        assert!(self.said("l0").contains(&format!("l0: has taken {moved}")), "{}", self.said("l0"));
        assert!(nodes.iter().all(|(_, said)| !fs::read_to_string(said).unwrap().contains("will try again")));
    }

    fn said(&self, node: &str) -> String {
        fs::read_to_string(self.path(&format!("{node}.said"))).unwrap()
    }

    fn node(&self, name: &str) -> Part {
        let said = fs::File::create(self.path(&format!("{name}.said"))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidestep"));
        command.args(["balance", &self.path("centre.toml"), "--node", name]).stdout(said);
        Part(command.spawn().unwrap())
    }

    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let limit = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < limit, "{what}: not so; see {}", self.folder.display());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A web server that answers every request with its name.
fn serve(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut line = String::new();
            let mut input = BufReader::new(stream.try_clone().unwrap());
            while input.read_line(&mut line).unwrap_or(0) > 2 {
                line.clear();
            }
            let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n{name}");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

/// Who answers at a port of the balancer.
fn answer(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_string())
}

fn script(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    root.join("examples/balance").join(name).display().to_string()
}

/// The path of a program; says so if it is not there.
fn installed(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];
    let found = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("left out: {name} is not installed");
    }
    found
}

#[test]
fn a_server_moves_behind_nginx() {
    let Some(nginx) = installed("nginx") else { return };
    let centre = Centre::new("nginx");
    let home = centre.folder.display().to_string();
    for site in ["shop", "news"] {
        let lines =
            centre.lines(|_, of, address| if of == site { format!("server {address};\n") } else { String::new() });
        fs::write(centre.folder.join(format!("{site}.servers")), lines).unwrap();
    }
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {home}/{kind};\n"))
        .concat();
    let site = |name: &str, port: u16| {
        format!(
            "upstream {name} {{ include {home}/{name}.servers; }}\n\
             server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{name}; }} }}\n"
        )
    };
    let text = format!(
        "daemon off; worker_processes 1; pid {home}/pid; error_log {home}/error;\nevents {{ worker_connections 64; }}\n\
         http {{ access_log off;\n{temporary}{}{} }}\n",
        site("shop", centre.shop),
        site("news", centre.news)
    );
    let file = centre.path("nginx.conf");
    fs::write(&file, text).unwrap();
    let _balancer = Part(Command::new(nginx).args(["-c", &file]).stderr(Stdio::null()).spawn().unwrap());
    centre.check(|address| format!("{} {home} {address} {file} 2>> {home}/converted", script("nginx.sh")));
}

#[test]
fn a_server_moves_behind_haproxy() {
    let (Some(haproxy), Some(_)) = (installed("haproxy"), installed("socat")) else { return };
    let centre = Centre::new("haproxy");
    let (socket, file) = (centre.path("socket"), centre.path("haproxy.cfg"));
    let site = |name: &str, port: u16| {
        let servers = centre.lines(|server, of, address| {
            let state = if of == name { "" } else { " disabled" };
            format!("  server {server} {address}{state}\n")
        });
        format!(
            "frontend at-{name}\n  bind 127.0.0.1:{port}\n  default_backend {name}\nbackend {name}\n  balance roundrobin\n{servers}"
        )
    };
    let text = format!(
        "global\n  stats socket {socket} level admin\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n{}{}",
        site("shop", centre.shop),
        site("news", centre.news)
    );
    fs::write(&file, text).unwrap();
    let _balancer = Part(Command::new(haproxy).args(["-db", "-q", "-f", &file]).spawn().unwrap());
    centre.check(|_| format!("{} {socket} 2>> {}", script("haproxy.sh"), centre.path("converted")));
}
