//! nginx as a proxy, with `wrk`: in front of another nginx and of php-fpm, with connections that are kept and with a new one for
//! each request. Three programs that all have much to do, on however few cores there are.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::super::super::place::Placement;
use super::super::super::record::Metric;
use super::super::Effort;
use super::super::outcome::Outcome;
use super::super::pair::Via;
use super::service::{Folder, Service, command, free_port, missing};
use super::web::{server_paths, wrk};
use super::{Figure, measure};

/// Numbers of client connections.
const CONNECTIONS: [u32; 3] = [1, 4, 32];

/// The processes of both ways run where the kernel puts them.
const WAYS: &[(Via, Placement)] = &[(Via::Tcp, Placement::Free), (Via::Ring, Placement::Free)];

macro_rules! figures {
    ($what:literal) => {
        &[
            Figure { what: concat!($what, ", one connection"), metric: Metric::Requests, must: 1.0 },
            Figure { what: concat!($what, ", one connection"), metric: Metric::CpuPerMessage, must: 1.0 },
            Figure { what: concat!($what, ", 4 connections"), metric: Metric::Requests, must: 1.0 },
            Figure { what: concat!($what, ", 4 connections"), metric: Metric::CpuPerMessage, must: 1.0 },
            Figure { what: concat!($what, ", 32 connections"), metric: Metric::Requests, must: 1.0 },
            Figure { what: concat!($what, ", 32 connections"), metric: Metric::CpuPerMessage, must: 1.0 },
        ]
    };
}

/// nginx in front of nginx.
pub fn nginx(effort: &Effort) -> Result<Vec<Outcome>> {
    if let Some(why) = missing(&["nginx", "wrk"]) {
        return Ok(vec![Outcome::skipped("proxy", "wrk against nginx before nginx", why)]);
    }
    let behind = |folder: &Folder, via: Via, port: u16| {
        folder.file("page", PAGE.repeat(LINES))?;
        let server = format!("server {{ listen 127.0.0.1:{port}; root {}; }}", folder.0.display());
        start_nginx(effort, via, folder, "behind", port, &server)
    };
    let kept = |port: u16, behind: u16| {
        format!(
            "upstream behind {{ server 127.0.0.1:{behind}; keepalive 32; }}\n\
             server {{ listen 127.0.0.1:{port};\n\
             location / {{ proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_pass http://behind; }} }}"
        )
    };
    let new = |port: u16, behind: u16| {
        format!("server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{behind}; }} }}")
    };
    let mut outcomes = bench(effort, "proxy", figures!("nginx before nginx, connections kept"), &behind, &kept)?;
    outcomes.extend(bench(effort, "proxy", figures!("nginx before nginx, connections new"), &behind, &new)?);
    Ok(outcomes)
}

/// nginx in front of php-fpm.
pub fn php(effort: &Effort) -> Result<Vec<Outcome>> {
    let skipped = |why: String| Ok(vec![Outcome::skipped("php", "wrk against nginx before php-fpm", why)]);
    if let Some(why) = missing(&["nginx", "wrk"]) {
        return skipped(why);
    }
    let Some(fpm) = php_fpm() else { return skipped("left out: php-fpm is not installed".into()) };
    let behind = |folder: &Folder, via: Via, port: u16| {
        folder.file("page.php", format!("<?php echo str_repeat({PAGE:?}, {LINES});\n"))?;
        let user = if rustix::process::geteuid().is_root() { "user = root\ngroup = root\n" } else { "" };
        let pool = format!(
            "[global]\nerror_log = {}/fpm.log\n\
             [www]\n{user}listen = 127.0.0.1:{port}\npm = static\npm.max_children = 36\n",
            folder.0.display()
        );
        let pool = folder.file("fpm.conf", pool)?;
        let mut server = command(via, Placement::Free, effort.cores, &fpm)?;
        server.args(["-F", "-n", "-y"]).arg(pool);
        if rustix::process::geteuid().is_root() {
            server.arg("-R");
        }
        Service::start(&mut server)?.listening(port)
    };
    let location = |port: u16, rest: String| {
        format!(
            "server {{ listen 127.0.0.1:{port}; location / {{ fastcgi_param SCRIPT_FILENAME $document_root/page.php;\n\
             fastcgi_param REQUEST_METHOD GET; {rest} }} }}"
        )
    };
    let kept = |port: u16, behind: u16| {
        let upstream = format!("upstream behind {{ server 127.0.0.1:{behind}; keepalive 32; }}\n");
        upstream + &location(port, "fastcgi_keep_conn on; fastcgi_pass behind;".into())
    };
    let new = |port: u16, behind: u16| location(port, format!("fastcgi_pass 127.0.0.1:{behind};"));
    let mut outcomes = bench(effort, "php", figures!("nginx before php-fpm, connections kept"), &behind, &kept)?;
    outcomes.extend(bench(effort, "php", figures!("nginx before php-fpm, connections new"), &behind, &new)?);
    Ok(outcomes)
}

/// Measures a proxy with this configuration before a server.
fn bench(
    effort: &Effort,
    name: &'static str,
    figures: &[Figure],
    behind: &dyn Fn(&Folder, Via, u16) -> Result<Service>,
    configuration: &dyn Fn(u16, u16) -> String,
) -> Result<Vec<Outcome>> {
    let folder = Folder::new(name)?;
    measure(effort, name, WAYS, figures, |via, placement| {
        let (port, port_behind) = (free_port()?, free_port()?);
        let behind = behind(&folder, via, port_behind)?;
        let proxy = start_nginx(effort, via, &folder, "proxy", port, &configuration(port, port_behind))?;
        let mut values = Vec::new();
        for connections in CONNECTIONS {
            let spent = || anyhow::Ok(behind.processor_time()? + proxy.processor_time()? + time_of_ended()?);
            let before = spent()?;
            let address = format!("http://127.0.0.1:{port}/page");
            let requests = wrk(effort, via, placement, connections, &address)?;
            // wrk works for one second.
            values.extend([requests, (spent()? - before) as f64 / requests]);
        }
        Ok(values)
    })
}

/// One with this part of a configuration, and one worker: more of them would need as many kept connections each.
fn start_nginx(effort: &Effort, via: Via, folder: &Folder, name: &str, port: u16, http: &str) -> Result<Service> {
    let at = folder.0.display();
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let config = format!(
        "{user} daemon off; worker_processes 1; pid {at}/{name}.pid; error_log {at}/{name}.log crit;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; root {at}; open_file_cache max=16; keepalive_requests 100000000;\n\
         {}\n{http} }}\n",
        server_paths(folder)
    );
    let config = folder.file(&format!("{name}.conf"), config)?;
    let mut server = command(via, Placement::Free, effort.cores, "nginx")?;
    server.arg("-c").arg(config).arg("-p").arg(&folder.0);
    Service::start(&mut server)?.listening(port)
}

/// Its name has a version.
fn php_fpm() -> Option<PathBuf> {
    let mut paths = std::fs::read_dir("/usr/sbin").into_iter().flatten().flatten().map(|entry| entry.path());
    paths.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("php-fpm")))
}

/// Processor time of the children of this process that have ended, in nanoseconds.
fn time_of_ended() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program, which may have any characters, ends with the last parenthesis; `cutime` is field 16.
    let after_name = text.rsplit(") ").next().context("stat has a name")?;
    let ticks = after_name.split(' ').skip(13).take(2).filter_map(|word| word.parse::<u64>().ok()).sum::<u64>();
    Ok(ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second())
}

/// A line of a page, and how many a page has.
const PAGE: &str = "a line of a page that comes through the proxy\n";
const LINES: usize = 20;
