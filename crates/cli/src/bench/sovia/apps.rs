//! Programs over kernel TCP, over the ring and over VIA: a file by FTP, and an empty call of ONC RPC.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::super::place::Placement;
use super::super::record::Metric;
use super::super::sockets::apps::rpc::null_call;
use super::super::sockets::apps::service::{Folder, Service, command, find, free_port, missing};
use super::super::sockets::apps::{Figure, kit, measure_against};
use super::super::sockets::outcome::Outcome;
use super::super::sockets::pair::{Via, output};
use super::super::sockets::{Bench, Effort};

/// The benches of this file.
pub const BENCHES: &[Bench] = &[
    Bench {
        name: "ftp",
        about: "a file of 19 MB and one of 146 MB from vsftpd by curl, in memory",
        quick: false,
        run: ftp,
    },
    Bench { name: "rpc", about: "an empty call of ONC RPC", quick: false, run: rpc },
];

/// TCP where it is best, and both carriers.
const WAYS: &[(Via, Placement)] = &[
    (Via::Tcp, Placement::Free),
    (Via::Tcp, Placement::Same),
    (Via::Ring, Placement::Free),
    (Via::Link, Placement::Free),
];
/// Seed 001, table 1: 573 against 262 and 532 against 254 Mbit/s.
const FTP: &[Figure] = &[
    Figure { what: "FTP, 19 MB (paper: 2.19 times TCP)", metric: Metric::Bandwidth, must: 1.5 },
    Figure { what: "FTP, 146 MB (paper: 2.09 times TCP)", metric: Metric::Bandwidth, must: 1.5 },
];
/// Seed 001, figure 7: 35 against 149 us, 77 % below; 70 % below is 3.33 times.
const RPC: &[Figure] =
    &[Figure { what: "ONC RPC null call, half round trip (paper: 4.26 times)", metric: Metric::OneWayP50, must: 3.33 }];
const SIZES: [usize; 2] = [19_000_000, 146_000_000];

fn rpc(effort: &Effort) -> Result<Vec<Outcome>> {
    if let Some(why) = missing(&["rpcgen", "cc"]) {
        return Ok(vec![Outcome::skipped("rpc", "null call", why)]);
    }
    let kit = match kit::rpc() {
        Ok(kit) => kit,
        Err(error) => return Ok(vec![Outcome::skipped("rpc", "null call", format!("left out: {error:#}"))]),
    };
    let once = |via, placement| null_call(effort, &kit, via, placement);
    measure_against(effort, "rpc", WAYS, RPC, Via::Link, once)
}

fn ftp(effort: &Effort) -> Result<Vec<Outcome>> {
    if let Some(why) = missing(&["vsftpd", "curl"]) {
        return Ok(vec![Outcome::skipped("ftp", "transfer", why)]);
    }
    if !rustix::process::geteuid().is_root() {
        return Ok(vec![Outcome::skipped("ftp", "transfer", "left out: vsftpd wants to be started by root".into())]);
    }
    let folder = Folder::in_memory("ftp")?;
    let served = folder.0.join("served");
    std::fs::create_dir(&served).with_context(|| format!("cannot make {}", served.display()))?;
    for size in SIZES {
        let bytes: Vec<u8> = (0..size).map(|at| (at ^ at >> 9) as u8).collect();
        folder.file(&format!("served/{size}"), bytes)?;
    }
    measure_against(effort, "ftp", WAYS, FTP, Via::Link, |via, placement| {
        let port = free_port()?;
        let config = folder.file("vsftpd.conf", config(port, &served))?;
        let vsftpd = find("vsftpd").context("vsftpd has gone")?;
        let mut server = command(via, placement, effort.cores, vsftpd)?;
        let _server = Service::start(server.arg(config))?.listening(port)?;
        SIZES.iter().map(|size| fetch(command(via, placement, effort.cores, "curl")?, port, *size, &folder.0)).collect()
    })
}

/// Fetches a file, and says how fast that was, as curl sees it.
fn fetch(mut curl: Command, port: u16, size: usize, folder: &Path) -> Result<f64> {
    let url = format!("ftp://127.0.0.1:{port}/{size}");
    let got = folder.join("got");
    curl.args(["--silent", "--show-error", "--write-out", "%{speed_download} %{size_download}", "--output"]).arg(&got);
    let text = output(curl.arg(url), Duration::from_secs(60))?;
    let mut words = text.split_whitespace().map(|word| word.parse::<f64>());
    match (words.next(), words.next()) {
        (Some(Ok(speed)), Some(Ok(got))) if got as usize == size => Ok(speed),
        _ => anyhow::bail!("curl fetched something else than {size} bytes: {text}"),
    }
}

/// It keeps its user and its root, and does without the filter of system calls, after which nothing is promoted.
fn config(port: u16, served: &Path) -> String {
    format!(
        "listen=YES\nlisten_address=127.0.0.1\nlisten_port={port}\nbackground=NO\nrun_as_launching_user=YES\n\
         anonymous_enable=YES\nno_anon_password=YES\nanon_root={}\nlocal_enable=NO\nwrite_enable=NO\n\
         seccomp_sandbox=NO\nisolate=NO\nisolate_network=NO\nxferlog_enable=NO\npasv_enable=YES\n\
         pasv_address=127.0.0.1\n",
        served.display()
    )
}
