//! Web servers, with `wrk`.

use std::time::Duration;

use anyhow::{Context, Result};

use super::super::super::place::Placement;
use super::super::super::record::Metric;
use super::super::Effort;
use super::super::outcome::Outcome;
use super::super::pair::{Via, output};
use super::service::{Folder, Service, command, free_port, missing};
use super::{Figure, WAYS, measure};

const NGINX: &[Figure] = &[
    Figure { what: "nginx, 1 KiB, one connection", metric: Metric::Requests, must: 5.0 },
    Figure { what: "nginx, 1 KiB, 32 connections", metric: Metric::Requests, must: 2.0 },
    Figure { what: "nginx, 1 MiB, one connection", metric: Metric::Requests, must: 2.5 },
    Figure { what: "nginx, 1 MiB, 32 connections", metric: Metric::Requests, must: 2.5 },
];

/// nginx with one worker.
pub fn nginx(effort: &Effort) -> Result<Vec<Outcome>> {
    if let Some(why) = missing(&["nginx", "wrk"]) {
        return Ok(vec![Outcome::skipped("nginx", "wrk against nginx", why)]);
    }
    let folder = Folder::new("nginx")?;
    folder.file("small", [b's'; 1 << 10])?;
    folder.file("large", vec![b'l'; 1 << 20])?;
    measure(effort, "nginx", WAYS, NGINX, |via, placement| {
        let port = free_port()?;
        let config = folder.file("nginx.conf", configuration(&folder, port))?;
        let mut server = command(via, placement, effort.cores, "nginx")?;
        server.arg("-c").arg(config).arg("-p").arg(&folder.0);
        let _server = Service::start(&mut server)?.listening(port)?;
        let mut values = Vec::new();
        for (file, connections) in [("small", 1), ("small", 32), ("large", 1), ("large", 32)] {
            values.push(wrk(effort, via, placement, connections, &format!("http://127.0.0.1:{port}/{file}"))?);
        }
        Ok(values)
    })
}

/// The smallest configuration; as root the worker must not change its user, since processes of one user find each other.
fn configuration(folder: &Folder, port: u16) -> String {
    let at = folder.0.display();
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    format!(
        "{user} daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error.log crit;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; sendfile on; open_file_cache max=16; keepalive_requests 100000000;\n\
         {}\n\
         server {{ listen 127.0.0.1:{port}; root {at}; }} }}\n",
        server_paths(folder)
    )
}

/// Where an nginx puts what it does not keep in memory.
pub fn server_paths(folder: &Folder) -> String {
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    kinds.iter().map(|kind| format!("{kind}_temp_path {}/{kind};", folder.0.display())).collect()
}

const NODE: &[Figure] = &[
    Figure { what: "Node http, one connection", metric: Metric::Requests, must: 3.0 },
    Figure { what: "Node http, 32 connections", metric: Metric::Requests, must: 3.0 },
];

/// An HTTP server in Node.
pub fn node(effort: &Effort) -> Result<Vec<Outcome>> {
    if let Some(why) = missing(&["node", "wrk"]) {
        return Ok(vec![Outcome::skipped("node", "wrk against Node", why)]);
    }
    let folder = Folder::new("node")?;
    let script = "require('http').createServer((q, r) => r.end('hello')).listen(+process.argv[2], '127.0.0.1');\n";
    let script = folder.file("server.js", script)?;
    measure(effort, "node", WAYS, NODE, |via, placement| {
        let port = free_port()?;
        let mut server = command(via, placement, effort.cores, "node")?;
        server.arg(&script).arg(port.to_string());
        let _server = Service::start(&mut server)?.listening(port)?;
        let mut values = Vec::new();
        for connections in [1, 32] {
            values.push(wrk(effort, via, placement, connections, &format!("http://127.0.0.1:{port}/"))?);
        }
        Ok(values)
    })
}

/// Requests per second that `wrk` makes in a second.
pub fn wrk(effort: &Effort, via: Via, placement: Placement, connections: u32, address: &str) -> Result<f64> {
    let mut client = command(via, placement, effort.cores, "wrk")?;
    client.args(["-t1", &format!("-c{connections}"), "-d1", address]);
    let text = output(&mut client, Duration::from_secs(20))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    line.and_then(|value| value.trim().parse().ok()).with_context(|| format!("no figure in\n{text}"))
}
