//! Programs that are executed with sockets of the one before them: nginx that is replaced while it runs, socket activation.

use std::{
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::kit::{Sockets, Stage, free_port, is_root, program, serve};

/// nginx is replaced by another one (USR2), which is executed with its listening socket, and the old one ends (QUIT), while a client
/// asks all the time: no request is lost, and a connection with the new one is promoted.
#[test]
pub fn nginx_is_replaced() {
    let (Some(nginx), Some(python)) = (program("nginx"), program("python3")) else { return };
    let (stage, port) = (Stage::new("nginx-replaced"), free_port());
    let (at, user) = (stage.files.display().to_string(), if is_root() { "user root;" } else { "" });
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {at}/{name};"))
        .collect();
    // It hands on no variables but those that are named.
    let config = format!(
        "{user} worker_processes 2; pid {at}/pid; error_log {at}/error.log; env LD_PRELOAD; env SIDESTEP_DIR;\n\
         events {{ worker_connections 64; }}\n\
         http {{ access_log off; keepalive_requests 100000; {paths} server {{ listen 127.0.0.1:{port}; root {at}; }} }}\n"
    );
    let config = stage.file("nginx.conf", config);
    stage.large_file("file", 4096);
    let _daemon = Daemon([stage.files.join("pid.oldbin"), stage.files.join("pid")]);
    let mut command = stage.run(&nginx);
    // One that stays in the foreground is not replaced. It leaves its group of processes only after its parent may have ended.
    let status = command.arg("-c").arg(config).arg("-p").arg(&stage.files).status();
    assert!(status.is_ok_and(|status| status.success()), "nginx starts");
    let exists = |name: &str| stage.files.join(name).exists();
    let client = stage.file("client.py", FETCHER);
    let mut command = stage.run(&python);
    let mut client = Bounded::start(command.arg(&client).arg(port.to_string()), PATIENCE);
    client = await_beside(client, || exists("begun"));
    let old = pid(&stage.files.join("pid")).expect("nginx runs");
    let new = || pid(&stage.files.join("pid")).filter(|new| *new != old);
    send(old, Signal::USR2);
    client = await_beside(client, || exists("pid.oldbin") && new().is_some_and(has_workers));
    send(old, Signal::QUIT);
    client = await_beside(client, || !exists("pid.oldbin"));
    fs::write(stage.files.join("replaced"), "").expect("a file");
    let (ended, sockets) = stage.watch(client);
    ended.expect("the client");
    sockets.expect_promoted("the new nginx");
}

/// A program is started with a listening socket that another one has made (`LISTEN_FDS`, `wait` of inetd).
#[test]
fn a_server_with_an_inherited_listener() {
    let Some(python) = program("python3") else { return };
    let activator = |stage: &Stage, port: u16| {
        let mut command = stage.run(&python);
        command.arg(stage.file("activator.py", ACTIVATOR)).arg(port.to_string());
        command
    };
    inherits_listener("activated", activator);
    if let Some(systemd) = program("systemd-socket-activate") {
        inherits_listener("systemd-activated", |stage, port| {
            let mut command = stage.run(&systemd);
            command.args(["-E", "LD_PRELOAD", "-E", "SIDESTEP_DIR", "-l", &format!("127.0.0.1:{port}")]);
            command.arg(&python).arg(stage.file("server.py", SERVER));
            command
        });
    }
    if let Some(inetd) = program("inetd").filter(|_| is_root()) {
        inherits_listener("inetd-wait", |stage, port| {
            let server = stage.file("server.py", SERVER);
            let (python, server) = (python.display(), server.display());
            // It takes LD_PRELOAD away from its programs.
            let run = format!("{} sidestep run -- {python} {server} 0", env!("CARGO_BIN_EXE_sidestep"));
            let line = format!("127.0.0.1:{port} stream tcp wait root {run}\n");
            let mut command = stage.run(&inetd);
            command.args(["-d", "-i"]).arg(stage.file("inetd.conf", line));
            command
        });
    }
}

fn inherits_listener(name: &str, command: impl FnOnce(&Stage, u16) -> std::process::Command) {
    let Some(python) = program("python3") else { return };
    let (stage, port) = (Stage::new(name), free_port());
    stage.file("server.py", SERVER);
    let mut server = serve(&mut command(&stage, port), port);
    // Long enough to be looked at.
    let sockets = talk(&stage, &python, port, 20_000);
    assert!(server.is_working(), "{name} has ended");
    sockets.expect_promoted(name);
}

/// A program is executed with a connection, several times one after the other, by a child of the server and by the server itself:
/// what it was before, and what the others have counted, goes with it. A program that cannot be executed changes nothing.
#[test]
pub fn a_session_is_executed() {
    let Some(python) = program("python3") else { return };
    let (stage, port) = (Stage::new("sessions"), free_port());
    stage.file("session.py", SESSION);
    let script = stage.file("server.py", SESSIONS.replace("PORT", &port.to_string()));
    let mut server = serve(stage.run(&python).arg(script), port);
    // Long enough to be seen on the carrier that it has in the end.
    let sockets = talk(&stage, &python, port, 20_000);
    assert!(server.is_working(), "the server has ended");
    sockets.expect_promoted("a session");
}

/// A server starts programs that inherit its connection (`system`, `posix_spawn`): when they have ended it has the connection alone,
/// and promotes it again.
#[test]
fn programs_are_started_beside_a_connection() {
    let Some(python) = program("python3") else { return };
    let (stage, port) = (Stage::new("started"), free_port());
    let script = stage.file("server.py", STARTER.replace("PORT", &port.to_string()));
    let mut server = serve(stage.run(&python).arg(script), port);
    let sockets = talk(&stage, &python, port, 20_000);
    assert!(server.is_working(), "the server has ended");
    sockets.expect_promoted_again("a server that starts programs");
}

/// inetd gives each connection to a program as its standard descriptors, by way of another one that is not under the library. One
/// that puts the connection elsewhere and opens others in their place has it to itself.
#[test]
fn inetd_and_a_program() {
    let (Some(inetd), Some(python)) = (program("inetd").filter(|_| is_root()), program("python3")) else { return };
    let (stage, port) = (Stage::new("inetd-program"), free_port());
    let script = stage.file("session.py", format!("{STANDARD}{SESSION}"));
    let run =
        format!("{} sidestep run -- {} {} 0 3", env!("CARGO_BIN_EXE_sidestep"), python.display(), script.display());
    let config = stage.file("inetd.conf", format!("127.0.0.1:{port} stream tcp nowait root {run}\n"));
    let mut server = serve(stage.run(&inetd).args(["-d", "-i"]).arg(config), port);
    let sockets = talk(&stage, &python, port, 20_000);
    assert!(server.is_working(), "inetd has ended");
    sockets.expect_promoted("a program of inetd");
}

/// socat forks for each connection and executes a program, whose input and output it carries to and fro.
#[test]
fn socat_and_a_program() {
    let (Some(socat), Some(python)) = (program("socat"), program("python3")) else { return };
    let (stage, port) = (Stage::new("socat"), free_port());
    let listens = format!("TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork");
    let mut server = serve(stage.run(&socat).args([&listens, "EXEC:cat"]), port);
    let sockets = talk(&stage, &python, port, 10_000);
    assert!(server.is_working(), "socat has ended");
    sockets.expect_promoted("socat");
}

/// A client that gets back what it has sent, many times.
fn talk(stage: &Stage, python: &Path, port: u16, times: u32) -> Sockets {
    let client = stage.file("client.py", CLIENT);
    let mut command = stage.run(python);
    command.arg(client).args([port.to_string(), times.to_string()]);
    let (ended, sockets) = stage.watch(Bounded::start(&mut command, PATIENCE));
    ended.expect("the client");
    sockets
}

/// Waits for something while a client works.
fn await_beside(mut client: Bounded, mut ready: impl FnMut() -> bool) -> Bounded {
    let end = Instant::now() + PATIENCE;
    while !ready() {
        if !client.is_working() {
            client.wait().expect("the client");
            panic!("the client has ended");
        }
        assert!(Instant::now() < end, "it is not ready in time");
        sleep(Duration::from_millis(10));
    }
    client
}

/// Servers in the background, known by the files with their numbers.
struct Daemon([PathBuf; 2]);

impl Drop for Daemon {
    fn drop(&mut self) {
        let running = |pid: &i32| Path::new("/proc").join(pid.to_string()).exists();
        let end = Instant::now() + PATIENCE;
        loop {
            let pids: Vec<i32> = self.0.iter().filter_map(|file| pid(file)).filter(running).collect();
            if pids.is_empty() || Instant::now() > end {
                return;
            }
            pids.into_iter().for_each(|pid| send(pid, Signal::TERM));
            sleep(Duration::from_millis(20));
        }
    }
}

fn pid(file: &Path) -> Option<i32> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn has_workers(pid: i32) -> bool {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.is_ok_and(|children| !children.trim().is_empty())
}

fn send(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("a process");
    // It may have ended.
    let _ = kill_process(pid, signal);
}

/// Listens, and executes a server with the socket, as systemd does.
const ACTIVATOR: &str = "
import os, socket, sys
listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))
if listener.fileno() == 3:
    os.set_inheritable(3, True)
else:
    os.dup2(listener.fileno(), 3)
os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, 'server.py'])
";

/// Sends back what comes, on connections of a listener that it did not make.
const SERVER: &str = "
import os, socket, sys
number = 3
if len(sys.argv) > 1:
    number = int(sys.argv[1])
else:
    assert os.environ['LISTEN_FDS'] == '1' and os.environ['LISTEN_PID'] == str(os.getpid())
listener = socket.socket(fileno=number)
while True:
    connection, _ = listener.accept()
    served = 0
    with connection:
        while text := connection.recv(65536):
            connection.sendall(text)
            served += len(text)
    # inetd listens itself then.
    if number == 0 and served:
        break
";

/// Accepts, forks, says something, and lets its child execute a session.
const SESSIONS: &str = "
import os, socket, sys
listener = socket.create_server(('127.0.0.1', PORT))
while True:
    connection, _ = listener.accept()
    if os.fork() == 0:
        for _ in range(20):
            text = connection.recv(65536)
            if not text:
                os._exit(0)
            connection.sendall(text)
        connection.set_inheritable(True)
        try:
            os.execv('/nowhere', ['nowhere'])
        except FileNotFoundError:
            pass
        os.execv(sys.executable, [sys.executable, 'session.py', str(connection.fileno()), '3'])
    connection.close()
";

/// Puts what it was given as standard descriptors elsewhere.
const STANDARD: &str = "
import os, sys
if sys.argv[1] == '0':
    sys.argv[1] = str(os.dup(0))
    nothing = os.open('/dev/null', os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
";

/// Sends back what comes; after some of it, by another program.
const SESSION: &str = "
import os, socket, sys
number, left = int(sys.argv[1]), int(sys.argv[2])
connection = socket.socket(fileno=number)
served = 0
while text := connection.recv(65536):
    connection.sendall(text)
    served += 1
    if left and served == 20:
        os.set_inheritable(number, True)
        os.execv(sys.executable, [sys.executable, 'session.py', str(number), str(left - 1)])
";

/// Sends back what comes, and starts programs meanwhile.
const STARTER: &str = "
import os, socket
listener = socket.create_server(('127.0.0.1', PORT))
while True:
    connection, _ = listener.accept()
    connection.set_inheritable(True)
    served = 0
    with connection:
        while text := connection.recv(65536):
            connection.sendall(text)
            served += 1
            if served in (20, 300):
                assert os.system('true') == 0
            if served in (100, 500):
                program = os.posix_spawn('/bin/true', ['true'], os.environ)
                assert os.waitpid(program, 0)[1] == 0
";

const CLIENT: &str = "
import socket, sys
with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as connection:
    for number in range(int(sys.argv[2])):
        text = bytes((number + at) % 251 for at in range(number % 300 + 1))
        connection.sendall(text)
        got = b''
        while len(got) < len(text):
            piece = connection.recv(65536)
            assert piece, (number, len(got))
            got += piece
        assert got == text, number
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b''
";

/// Fetches a file again and again, by a connection each, until the server was replaced; then by one connection.
const FETCHER: &str = "
import http.client, os, sys
expected = open('file', 'rb').read()
def connect():
    return http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))
def fetch(connection, more={}):
    connection.request('GET', '/file', headers=more)
    assert connection.getresponse().read() == expected
count = 0
while not os.path.exists('replaced'):
    connection = connect()
    fetch(connection, {'Connection': 'close'})
    connection.close()
    count += 1
    if count == 50:
        open('begun', 'w').close()
connection = connect()
for number in range(1500):
    fetch(connection)
";
