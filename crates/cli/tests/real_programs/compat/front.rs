//! Servers that stand in front of others, or of programs: HAProxy, Apache with processes and with threads, gunicorn with gevent.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use rustix::process::{Pid, Signal, kill_process};
use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::{
    super::{
        kit::{Stage, free_port, program, serve, wait_until},
        proxy::{LINES, PAGE, fetch_by, start_nginx},
    },
    report::Report,
};

/// HAProxy in front of two servers: requests one by one, and bytes as they are; then all of it while it is replaced.
pub fn haproxy(report: &mut Report) {
    let (haproxy, nginx) = (program("haproxy").expect("haproxy"), program("nginx").expect("nginx"));
    let (stage, [http, tcp, one, two]) = (Stage::new("haproxy"), [(); 4].map(|()| free_port()));
    stage.file("page", PAGE.repeat(LINES));
    let _behind = [("one", one), ("two", two)].map(|(name, port)| {
        let server = format!("server {{ listen 127.0.0.1:{port}; root {}; }}", stage.files.display());
        start_nginx(&stage, &nginx, name, port, &server)
    });
    let config = format!(
        "global\n  maxconn 400\n  nbthread 2\n\
         defaults\n  timeout connect 600s\n  timeout client 600s\n  timeout server 600s\n\
         frontend http\n  mode http\n  bind 127.0.0.1:{http}\n  default_backend http\n\
         backend http\n  mode http\n  http-reuse always\n  server one 127.0.0.1:{one}\n  server two 127.0.0.1:{two}\n\
         frontend tcp\n  mode tcp\n  bind 127.0.0.1:{tcp}\n  default_backend tcp\n\
         backend tcp\n  mode tcp\n  server one 127.0.0.1:{one}\n  server two 127.0.0.1:{two}\n"
    );
    let config = stage.file("haproxy.cfg", config);
    // A master with a worker, which is what the distribution starts.
    let mut server = serve(stage.run(&haproxy).args(["-W", "-db", "-f"]).arg(config), http);
    for connections in [1, 4, 32] {
        for (kind, port) in [("requests", http), ("bytes", tcp)] {
            let name = format!("{kind}, {connections} at a time");
            report.check(&name, || fetch_by(stage.run("curl"), port, "page", connections));
        }
    }
    report.check("replaced while clients ask", || {
        replaced(&mut server, Signal::USR2, || fetch_by(stage.run("curl"), http, "page", 8));
    });
    report.check("after it was replaced", || fetch_by(stage.run("curl"), tcp, "page", 4));
}

/// Apache with a process for each connection.
pub fn apache_prefork(report: &mut Report) {
    apache(report, "prefork");
}

/// Apache with threads and an epoll set in each of its processes.
pub fn apache_event(report: &mut Report) {
    apache(report, "event");
}

/// Its workers become another user, so the clients are that one, too.
fn apache(report: &mut Report, kind: &str) {
    let apache = program("apache2").expect("apache2");
    let (stage, port) = (Stage::new(&format!("apache-{kind}")), free_port());
    stage.open_to_all();
    let (sidestep, at) = (stage.copies(), stage.files.display().to_string());
    stage.file("page", PAGE.repeat(LINES));
    let large = stage.large_file("large", 24 << 20);
    fs::set_permissions(&large, fs::Permissions::from_mode(0o644)).expect("a mode");
    let modules: String = [&format!("mpm_{kind}"), "authz_core"]
        .iter()
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .collect();
    let config = format!(
        "ServerRoot {at}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {at}/pid\nErrorLog {at}/error.log\n{modules}\
         User www-data\nGroup www-data\nDocumentRoot {at}\nKeepAliveTimeout 600\nMaxKeepAliveRequests 0\nTimeout 600\n\
         StartServers 2\n<Directory {at}>\n  Require all granted\n</Directory>\n"
    );
    let config = stage.file("apache.conf", config);
    let mut command = stage.run_by(&sidestep, &apache);
    let mut server = serve(command.args(["-D", "FOREGROUND", "-f"]).arg(config), port);
    let curl = || stage.run_as("www-data", &sidestep, "curl");
    for connections in [1, 4, 32] {
        let name = format!("{connections} at a time");
        report.check(&name, || fetch_by(curl(), port, "page", connections));
    }
    report.check("a large file", || {
        let mut client = curl();
        client.args(["-s", "-S", "-f", "-o", "got"]).arg(format!("http://127.0.0.1:{port}/large"));
        Bounded::start(&mut client, PATIENCE).wait().expect("curl");
        super::super::web::expect_equal(&large, &stage.files.join("got"));
    });
    report.check("reloaded while clients ask", || {
        replaced(&mut server, Signal::USR1, || fetch_by(curl(), port, "page", 8));
    });
    report.check("after it was reloaded", || fetch_by(curl(), port, "page", 4));
}

/// gunicorn, whose workers have a loop of gevent, and sockets that gevent makes non-blocking.
pub fn gunicorn(report: &mut Report) {
    let gunicorn = program("gunicorn").expect("gunicorn");
    let (stage, port) = (Stage::new("gunicorn"), free_port());
    stage.file("app.py", format!("{APPLICATION}\npage = {PAGE:?}.encode() * {LINES}\n"));
    let mut command = stage.run(&gunicorn);
    command.args(["-k", "gevent", "-w", "2", "-t", "600", "--keep-alive", "600", "-b", &format!("127.0.0.1:{port}")]);
    let mut server = serve(command.arg("app:application"), port);
    for connections in [1, 4, 32] {
        let name = format!("{connections} at a time");
        report.check(&name, || fetch_by(stage.run("curl"), port, "page", connections));
    }
    report.answer("a body there and back", || {
        let body = stage.large_file("body", 4 << 20);
        let mut client = stage.run("curl");
        client.args(["-s", "-S", "-f", "-o", "got", "--data-binary"]).arg(format!("@{}", body.display()));
        let ended = Bounded::start(client.arg(format!("http://127.0.0.1:{port}/back")), PATIENCE).wait();
        super::super::web::expect_equal(&body, &stage.files.join("got"));
        ended.expect("curl")
    });
    report.check("reloaded while clients ask", || {
        replaced(&mut server, Signal::HUP, || fetch_by(stage.run("curl"), port, "page", 8));
    });
    report.check("after it was reloaded", || fetch_by(stage.run("curl"), port, "page", 4));
}

/// Tells a server to replace its workers, and asks it all the while until there are new ones.
fn replaced(server: &mut Bounded, signal: Signal, mut ask: impl FnMut()) {
    let before = children(server.id());
    assert!(!before.is_empty(), "the server has no workers");
    kill_process(Pid::from_raw(server.id() as i32).expect("a process"), signal).expect("a signal");
    let id = server.id();
    wait_until(server, || {
        ask();
        children(id).iter().any(|child| !before.contains(child))
    });
}

/// The numbers of the processes that a process has started.
fn children(process: u32) -> Vec<String> {
    let list = Path::new("/proc").join(format!("{process}/task/{process}/children"));
    fs::read_to_string(list).unwrap_or_default().split_whitespace().map(str::to_string).collect()
}

const APPLICATION: &str = "
def application(environment, start):
    start('200 OK', [])
    if environment['PATH_INFO'] == '/back':
        return [environment['wsgi.input'].read()]
    return [page]
";
