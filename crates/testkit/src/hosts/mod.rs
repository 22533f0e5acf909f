//! Two hosts on one machine: two network namespaces, joined by a pair of virtual interfaces.
//!
//! ```text
//!   host 0: 10.77.0.1 ── veth ──────── veth ── 10.77.0.2: host 1       (joined by a cable)
//!   host 0: 10.77.0.1 ── tun ── relay ── tun ── 10.77.0.2: host 1      (joined by a relay of the test)
//! ```
//!
//! Each namespace is held by a process that ends with the test, however that ends; nothing is left behind. Sockets of a
//! host are made by a thread that lives there, and can be used by any thread. It takes root, `unshare`, `nsenter` and
//! `ip`; who cannot have them is told why.

mod relay;
mod tun;

pub use self::relay::{Relay, Weather};

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Sender, channel},
    },
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use sidestep_fabric::link::iwarp::{HostNetwork, Network};

/// Two hosts.
#[derive(Debug)]
pub struct Hosts {
    hosts: [Arc<Host>; 2],
    relay: Option<Relay>,
}

/// One host.
pub struct Host {
    index: usize,
    /// Ends when its standard input does.
    holder: Mutex<Child>,
    id: u32,
    maker: Mutex<Sender<Order>>,
}

/// The network as one of the hosts has it. An address that someone names stands for its port: whoever listens on it, on
/// either host, is meant.
#[derive(Debug)]
struct HostedNetwork {
    own: Arc<Host>,
    all: [Arc<Host>; 2],
}

/// Something to do in the namespace, by the thread that lives there.
type Order = Box<dyn FnOnce() + Send>;

impl Hosts {
    /// Two hosts joined by a cable, or why there are none.
    pub fn with_cable() -> Result<Hosts, String> {
        let hosts = [Host::make(0)?, Host::make(1)?];
        let other = hosts[1].id.to_string();
        hosts[0].run(&["ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", &other])?;
        Self::configure(&hosts)?;
        Ok(Hosts { hosts, relay: None })
    }

    /// Two hosts joined by a relay that does to packets what the weather says.
    pub fn with_relay(weather: Weather) -> Result<Hosts, String> {
        let hosts = [Host::make(0)?, Host::make(1)?];
        let ends = [hosts[0].tunnel()?, hosts[1].tunnel()?];
        Self::configure(&hosts)?;
        let relay = Relay::start(ends, weather).map_err(|error| format!("the relay does not start: {error}"))?;
        Ok(Hosts { hosts, relay: Some(relay) })
    }

    /// A host.
    pub fn host(&self, index: usize) -> &Arc<Host> {
        &self.hosts[index]
    }

    /// The network of a host.
    pub fn network(&self, index: usize) -> Arc<dyn Network> {
        Arc::new(HostedNetwork { own: self.hosts[index].clone(), all: self.hosts.clone() })
    }

    /// What joins them, if it is not a cable.
    pub fn relay(&self) -> Option<&Relay> {
        self.relay.as_ref()
    }

    fn configure(hosts: &[Arc<Host>; 2]) -> Result<(), String> {
        for host in hosts {
            host.run(&["ip", "address", "add", &format!("{}/24", host.address()), "dev", "wire"])?;
            host.run(&["ip", "link", "set", "lo", "up"])?;
            host.run(&["ip", "link", "set", "wire", "up"])?;
        }
        Ok(())
    }
}

impl Host {
    fn make(index: usize) -> Result<Arc<Host>, String> {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo here; exec cat >/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("unshare cannot be run: {error}"))?;
        let mut word = [0; 5];
        let heard = holder.stdout.as_mut().map(|out| io::Read::read_exact(out, &mut word));
        if !matches!(heard, Some(Ok(()))) {
            let _ = holder.wait();
            return Err("a network namespace cannot be made; that takes root".to_string());
        }
        let id = holder.id();
        let (maker, orders) = channel::<Order>();
        std::thread::spawn(move || {
            // Threads of the test that were not moved stay where they are.
            if let Ok(namespace) = std::fs::File::open(format!("/proc/{id}/ns/net"))
                && move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).is_ok()
            {
                orders.into_iter().for_each(|order| order());
            }
        });
        Ok(Arc::new(Host { index, holder: Mutex::new(holder), id, maker: Mutex::new(maker) }))
    }

    /// Its address.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, 1 + self.index as u8)
    }

    /// The process that holds its namespace, for [`enter`].
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Runs a program there.
    pub fn run(&self, words: &[&str]) -> Result<(), String> {
        let id = self.id.to_string();
        let output = Command::new("nsenter").args(["--target", &id, "--net"]).args(words).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => Err(format!("nsenter cannot be run: {error}")),
        }
    }

    /// Does something there.
    pub fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (answer, answers) = channel();
        let order = Box::new(move || drop(answer.send(work())));
        let gone = || io::Error::other("the host is gone");
        self.maker.lock().expect("no panic at a host").send(order).map_err(|_| gone())?;
        answers.recv().map_err(|_| gone())
    }

    fn tunnel(&self) -> Result<OwnedFd, String> {
        self.within(|| tun::open("wire")).and_then(|tunnel| tunnel).map_err(|error| format!("no tunnel: {error}"))
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Host({} in the namespace of {})", self.address(), self.id)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let holder = self.holder.get_mut().expect("no panic at a host");
        drop(holder.stdin.take());
        let _ = holder.wait();
    }
}

impl Network for HostedNetwork {
    fn socket(&self, address: &SocketAddr) -> io::Result<OwnedFd> {
        let address = *address;
        self.own.within(move || HostNetwork.socket(&address))?
    }

    /// A port of one host is a name of both: it is taken if the other listens there.
    fn listen_at(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        let here = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
        for other in self.all.iter().filter(|host| host.index != self.own.index) {
            other.within(move || -> io::Result<()> {
                let socket = HostNetwork.socket(&here)?;
                rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
                rustix::net::bind(&socket, &here)?;
                Ok(())
            })??;
        }
        Ok(here)
    }

    fn connect_to(&self, address: SocketAddr) -> Vec<SocketAddr> {
        let at = |host: &Arc<Host>| SocketAddr::new(IpAddr::V4(host.address()), address.port());
        // The other host first: whoever tests two hosts means that one.
        let (own, others): (Vec<_>, Vec<_>) = self.all.iter().partition(|host| host.index == self.own.index);
        others.into_iter().chain(own).map(at).collect()
    }
}

/// Moves this thread, and those it starts from now on, to the host that a process holds.
pub fn enter(holder: u32) -> io::Result<()> {
    let namespace = std::fs::File::open(format!("/proc/{holder}/ns/net"))?;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}
