//! Where the two processes of a measurement over a network are: on the loopback interface, each path at an address of its
//! own; or on two hosts, which are network namespaces joined by a pair of virtual interfaces.
//!
//! ```text
//!   measuring process: 10.77.0.1 ── veth ──────── veth ── 10.77.0.2: workers
//! ```
//!
//! Each namespace is held by a process that ends with this one, however that ends; nothing is left behind.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Two hosts, as long as this lives.
pub struct Hosts {
    holders: [Child; 2],
}

impl Hosts {
    /// Makes two hosts and moves this thread, and those that it starts, to the first.
    pub fn make() -> Result<Hosts> {
        let hosts = Hosts { holders: [hold()?, hold()?] };
        let [first, second] = hosts.ids();
        let other = second.to_string();
        run(first, &["ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", &other])?;
        for (id, address) in [(first, LEADER), (second, WORKER)] {
            run(id, &["ip", "address", "add", &format!("{address}/24"), "dev", "wire"])?;
            run(id, &["ip", "link", "set", "lo", "up"])?;
            run(id, &["ip", "link", "set", "wire", "up"])?;
        }
        enter(first)?;
        Ok(hosts)
    }

    /// The process that holds the host of the workers, for [`enter`].
    pub fn worker(&self) -> u32 {
        self.ids()[1]
    }

    fn ids(&self) -> [u32; 2] {
        [self.holders[0].id(), self.holders[1].id()]
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            // It ends when its standard input does.
            drop(holder.stdin.take());
            let _ = holder.wait();
        }
    }
}

/// Moves this thread, and those that it starts, to the host that a process holds.
pub fn enter(holder: u32) -> Result<()> {
    let namespace = File::open(format!("/proc/{holder}/ns/net")).context("the network namespace is gone")?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .context("cannot enter a network namespace")?;
    APART.store(true, Ordering::Relaxed);
    Ok(())
}

/// Whether the two processes are on two hosts.
pub fn are_apart() -> bool {
    APART.load(Ordering::Relaxed)
}

/// Where the measuring process listens for a worker, on a port of the kernel's choice.
pub fn address() -> SocketAddr {
    let host = if are_apart() { LEADER } else { Ipv4Addr::LOCALHOST };
    SocketAddr::new(IpAddr::V4(host), 0)
}

/// Where a worker listens.
pub fn worker_address() -> IpAddr {
    IpAddr::V4(if are_apart() { WORKER } else { Ipv4Addr::LOCALHOST })
}

/// Does something in a thread on the first of two hosts that are made for it; it is given the process that holds the second.
pub fn apart<T: Send>(act: impl FnOnce(u32) -> Result<T> + Send) -> Result<T> {
    let before = are_apart();
    let done = std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            let hosts = Hosts::make()?;
            act(hosts.worker())
        });
        there.join().unwrap_or_else(|_| bail!("the measurement on two hosts broke off"))
    });
    APART.store(before, Ordering::Relaxed);
    done
}

/// A name on the iWARP link that no other measurement uses.
pub fn iwarp_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let port = 20_000 + COUNT.fetch_add(1, Ordering::Relaxed) % 10_000;
    if are_apart() {
        return format!("iwarp:{LEADER}:{port}");
    }
    let [low, middle, high, _] = std::process::id().to_le_bytes();
    format!("iwarp:127.{}.{middle}.{low}:{port}", 64 + high)
}

/// A process that holds a namespace of its own until its standard input ends.
fn hold() -> Result<Child> {
    let mut holder = Command::new("unshare")
        .args(["--net", "sh", "-c", "echo here; exec cat >/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("unshare, which makes network namespaces, cannot be run")?;
    let mut word = [0; 5];
    if holder.stdout.as_mut().is_none_or(|out| out.read_exact(&mut word).is_err()) {
        let _ = holder.wait();
        bail!("a network namespace cannot be made: that takes root; without --netns the loopback interface is used");
    }
    Ok(holder)
}

/// Runs a program in the namespace that a process holds.
fn run(holder: u32, words: &[&str]) -> Result<()> {
    let output = Command::new("nsenter").args(["--target", &holder.to_string(), "--net"]).args(words).output();
    let output = output.context("nsenter, which sets up network namespaces, cannot be run")?;
    ensure!(output.status.success(), "{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

static APART: AtomicBool = AtomicBool::new(false);

const LEADER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const WORKER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
