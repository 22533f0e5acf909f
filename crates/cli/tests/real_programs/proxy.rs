//! nginx as a proxy, which puts its connections to the servers behind it into its set before it connects them: in front of
//! another nginx and of php-fpm, with connections that are kept and with new ones for each request.

use std::{path::PathBuf, process::Command};

use sidestep_testkit::{process::PATIENCE, sockets::Bounded};

use super::kit::{Stage, free_port, is_root, program, serve};

/// Requests of one client.
const REQUESTS: usize = 240;

#[test]
pub fn nginx_and_nginx() {
    let (Some(nginx), Some(_)) = (program("nginx"), program("curl")) else { return };
    let (stage, port, behind) = (Stage::new("proxy"), free_port(), free_port());
    stage.file("page", PAGE.repeat(LINES));
    let server = format!("server {{ listen 127.0.0.1:{behind}; root {}; }}", stage.files.display());
    let _behind = start_nginx(&stage, &nginx, "behind", behind, &server);
    let proxy = format!(
        "upstream kept {{ server 127.0.0.1:{behind}; keepalive 32; }}\n\
         server {{ listen 127.0.0.1:{port};\n\
           location /new/ {{ proxy_pass http://127.0.0.1:{behind}/; }}\n\
           location /kept/ {{ proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_pass http://kept/; }} }}"
    );
    let _proxy = start_nginx(&stage, &nginx, "proxy", port, &proxy);
    for connections in [1, 4, 32] {
        fetch(&stage, port, "new/page", connections);
        fetch(&stage, port, "kept/page", connections);
    }
    stays_promoted(&stage, port, "kept/page");
}

#[test]
pub fn nginx_and_php() {
    let (Some(nginx), Some(fpm), Some(_)) = (program("nginx"), php_fpm(), program("curl")) else { return };
    let (stage, port, behind) = (Stage::new("php"), free_port(), free_port());
    let page = stage.file("page.php", format!("<?php echo str_repeat({PAGE:?}, {LINES});\n"));
    let user = if is_root() { "user = root\ngroup = root\n" } else { "" };
    let pool = format!(
        "[global]\nerror_log = {}/fpm.log\n[www]\n{user}listen = 127.0.0.1:{behind}\npm = static\npm.max_children = 36\n",
        stage.files.display()
    );
    let pool = stage.file("fpm.conf", pool);
    let mut command = stage.run(fpm);
    command.args(["-F", "-n", "-y"]).arg(pool);
    if is_root() {
        command.arg("-R");
    }
    let _fpm = serve(&mut command, behind);
    let to_php = format!("fastcgi_param SCRIPT_FILENAME {}; fastcgi_param REQUEST_METHOD GET;", page.display());
    let proxy = format!(
        "upstream kept {{ server 127.0.0.1:{behind}; keepalive 32; }}\n\
         server {{ listen 127.0.0.1:{port};\n\
           location /new/ {{ {to_php} fastcgi_pass 127.0.0.1:{behind}; }}\n\
           location /kept/ {{ {to_php} fastcgi_keep_conn on; fastcgi_pass kept; }} }}"
    );
    let _proxy = start_nginx(&stage, &nginx, "proxy", port, &proxy);
    for connections in [1, 4, 32] {
        fetch(&stage, port, "new/", connections);
        fetch(&stage, port, "kept/", connections);
    }
    stays_promoted(&stage, port, "kept/");
}

/// One with this part of a configuration, and one worker: more of them would need as many kept connections each.
pub fn start_nginx(stage: &Stage, nginx: &PathBuf, name: &str, port: u16, http: &str) -> Bounded {
    let (at, user) = (stage.files.display().to_string(), if is_root() { "user root;" } else { "" });
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {at}/{name}-{kind};"))
        .collect();
    let config = format!(
        "{user} daemon off; worker_processes 1; pid {at}/{name}.pid; error_log {at}/{name}.log;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; keepalive_requests 1000000; {paths}\n{http} }}\n"
    );
    let config = stage.file(&format!("{name}.conf"), config);
    serve(stage.run(nginx).arg("-c").arg(config).arg("-p").arg(&stage.files), port)
}

/// Every one of many requests, so many at a time, is answered.
fn fetch(stage: &Stage, port: u16, path: &str, connections: usize) {
    fetch_by(stage.run("curl"), port, path, connections);
}

/// The same by this command of curl.
pub fn fetch_by(mut client: Command, port: u16, path: &str, connections: usize) {
    client.args(["-s", "-S", "-f", "--no-progress-meter", "--parallel-immediate"]);
    if connections > 1 {
        client.args(["--parallel", "--parallel-max", &connections.to_string()]);
    }
    client.args(vec![format!("http://127.0.0.1:{port}/{path}"); REQUESTS]);
    let text = Bounded::start(&mut client, PATIENCE).wait().expect("curl");
    // Answers that come at the same time are mixed, line by line at the most.
    assert_eq!(text.len(), PAGE.len() * LINES * REQUESTS, "{path}, {connections} at a time");
}

/// A client that takes some seconds: its connection to the proxy, and that of the proxy to the server behind it, leave TCP.
fn stays_promoted(stage: &Stage, port: u16, path: &str) {
    let mut client = stage.run("curl");
    client.args(["-s", "-S", "-f", "--rate", "60/s"]).args(vec![format!("http://127.0.0.1:{port}/{path}"); REQUESTS]);
    let (ended, sockets) = stage.watch(Bounded::start(&mut client, PATIENCE));
    assert_eq!(ended.expect("curl").len(), PAGE.len() * LINES * REQUESTS);
    sockets.expect_promoted(path);
}

/// Its name has a version.
fn php_fpm() -> Option<PathBuf> {
    let names = std::fs::read_dir("/usr/sbin").into_iter().flatten().flatten().map(|entry| entry.path());
    let found = names
        .into_iter()
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("php-fpm")));
    if found.is_none() {
        eprintln!("left out: php-fpm is not installed");
    }
    found
}

/// A line of a page, and how many a page has.
pub const PAGE: &str = "a line of a page that comes through the proxy\n";
pub const LINES: usize = 20;
