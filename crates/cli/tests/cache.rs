//! `sidestep cache` in front of a server that knows nothing of it: Python's own, with its files changed by `put` and `delete`.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::{fs::PermissionsExt, process::CommandExt},
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
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sidestep() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sidestep"))
}

/// Starts a part of the cache; the last word of its first line is its address.
fn start(arguments: &[&str]) -> (Part, String) {
    started(sidestep().args(arguments))
}

fn started(command: &mut Command) -> (Part, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split_whitespace().next_back().unwrap_or_else(|| panic!("{command:?} says nothing")).to_string();
    (Part(child), address)
}

/// The head and the body of an answer.
fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    (head.to_lowercase(), body.to_string())
}

fn put(folder: &Path, module: &str, path: &str, text: &str) {
    let file = folder.join("new");
    fs::write(&file, text).unwrap();
    let status = sidestep().args(["cache", "put", path]).arg(&file).args(["--module", module]).status().unwrap();
    assert!(status.success());
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("sidestep-cli-cache-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("site")).unwrap();
    folder
}

#[test]
fn an_unmodified_server_has_a_cache_that_is_never_old() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("left out: python3 is not installed");
        return;
    }
    let folder = folder("server");
    let site = folder.join("site").display().to_string();
    let port = free_port().to_string();
    let server = ["-m", "http.server", &port, "--bind", "127.0.0.1", "--directory", &site];
    let _origin =
        Part(Command::new("python3").args(server).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    let origin = format!("127.0.0.1:{port}");
    let limit = Instant::now() + PATIENCE;
    while TcpStream::connect(&origin).is_err() {
        assert!(Instant::now() < limit, "Python's server does not start");
        thread::sleep(Duration::from_millis(10));
    }
    let (_module, module) = start(&["cache", "files", &site, "--listen", "127.0.0.1:0"]);
    put(&folder, &module, "/a.txt", "one");
    let listen = ["--listen", "127.0.0.1:0"];
    for check in ["one-sided", "two-sided"] {
        let options = ["cache", "proxy", "--origin", &origin, "--module", &module, "--check", check];
        let (proxy, address) = start(&[&options[..], &listen].concat());
        put(&folder, &module, "/a.txt", "one");
        assert_eq!(get(&address, "/a.txt").1, "one");
        let (head, body) = get(&address, "/a.txt");
        assert!(head.contains("x-cache: hit") && body == "one", "{head}");
        put(&folder, &module, "/a.txt", "two");
        let (head, body) = get(&address, "/a.txt");
        assert!(head.contains("x-cache: stale") && body == "two", "{head}");
        // The listing of the folder changes with its files.
        assert!(!get(&address, "/").1.contains("b.txt"));
        put(&folder, &module, "/b.txt", "more");
        assert!(get(&address, "/").1.contains("b.txt"));
        assert!(sidestep().args(["cache", "delete", "/b.txt", "--module", &module]).status().unwrap().success());
        assert!(get(&address, "/b.txt").0.starts_with("http/1.1 404"));
        end(proxy);
    }
    let refused = sidestep().args(["cache", "delete", "/../x", "--module", &module]).output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not the plain path of a file"));
}

/// A module of one user, and programs of others that want its files changed.
#[test]
fn files_are_changed_for_their_user_and_for_those_who_are_allowed() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root can start programs of other users");
        return;
    }
    const OWNER: u32 = 65531;
    const ALLOWED: u32 = 65532;
    const OTHER: u32 = 65533;
    let folder = folder("users");
    let (program, site, new) = (folder.join("sidestep"), folder.join("site"), folder.join("new"));
    // A copy, since others may not reach the build folder.
    fs::copy(env!("CARGO_BIN_EXE_sidestep"), &program).unwrap();
    fs::write(&new, "new").unwrap();
    fs::write(site.join("a"), "old").unwrap();
    for path in [&folder, &program, &site] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    rustix::fs::chown(&site, Some(rustix::process::Uid::from_raw(OWNER)), None).unwrap();
    let of = |user: u32, arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["cache"]).args(arguments).uid(user).gid(user);
        command
    };
    let (site_name, allowed) = (site.display().to_string(), ALLOWED.to_string());
    let (_module, module) =
        started(&mut of(OWNER, &["files", &site_name, "--listen", "127.0.0.1:0", "--allow", &allowed]));
    let owner = ["--owner".to_string(), OWNER.to_string()];
    let put = |user: u32, more: &[String]| {
        fs::write(site.join("a"), "old").unwrap();
        let file = new.display().to_string();
        let output = of(user, &["put", "/a", &file, "--module", &module]).args(more).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), fs::read_to_string(site.join("a")).unwrap() == "new", errors)
    };
    assert_eq!(put(OWNER, &[]), (true, true, String::new()));
    assert_eq!(put(ALLOWED, &owner), (true, true, String::new()));
    assert_eq!(put(0, &owner), (true, true, String::new()));
    for (user, more, why) in [
        (OTHER, &owner[..], "user 65533 may not change files here"),
        (OTHER, &[], "is one of user 65531"),
        (ALLOWED, &[], "is one of user 65531"),
        (0, &[], "with `--owner 65531`"),
    ] {
        let (done, changed, errors) = put(user, more);
        assert!(!done && !changed && errors.contains(why), "{user} {more:?}: {errors}");
    }
}

/// On SIGHUP a proxy reads its settings again, and keeps its connections; a wrong file changes nothing.
#[test]
fn settings_are_read_again_while_connections_stay() {
    let folder = folder("settings");
    let origin = |name: &'static str| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut line = String::new();
                let mut input = BufReader::new(stream.try_clone().unwrap());
                while input.read_line(&mut line).unwrap_or(0) > 2 {
                    line.clear();
                }
                let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\n{name}");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        address
    };
    let (one, two, file) = (origin("one"), origin("two"), folder.join("settings.toml"));
    fs::write(&file, "largest = 1000\n").unwrap();
    let settings = file.display().to_string();
    let proxy = ["cache", "proxy", "--origin", &one, "--without-cache", "--listen", "127.0.0.1:0", "--settings"];
    let mut child =
        sidestep().args(proxy).arg(&settings).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut complained = BufReader::new(child.stderr.take().unwrap());
    let hear = |from: &mut dyn BufRead| {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        line
    };
    let part = Part(child);
    let address = hear(&mut said).split_whitespace().next_back().unwrap().to_string();
    let mut stream = BufReader::new(TcpStream::connect(&address).unwrap());
    let mut ask = || {
        stream.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: site\r\n\r\n").unwrap();
        while hear(&mut stream).len() > 2 {}
        let mut body = [0; 3];
        stream.read_exact(&mut body).unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    };
    let hang_up = || {
        let pid = rustix::process::Pid::from_child(&part.0);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    };
    assert_eq!(ask(), "one");
    fs::write(&file, "orgin = \"nobody\"\n").unwrap();
    hang_up();
    let why = hear(&mut complained);
    assert!(why.contains("the settings stay as they were") && why.contains("settings.toml"), "{why}");
    assert_eq!(ask(), "one");
    fs::write(&file, format!("origin = \"{two}\"\n")).unwrap();
    hang_up();
    assert_eq!(hear(&mut said), "the settings were read\n");
    assert_eq!(ask(), "two", "on the connection of before");
    end(part);
}

/// SIGTERM ends a proxy in good order.
fn end(mut proxy: Part) {
    let pid = rustix::process::Pid::from_child(&proxy.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(proxy.0.wait().unwrap().success());
}
