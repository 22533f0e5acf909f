//! Ports for servers that must be told one.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr as Name, UnixListener},
    },
    process,
    sync::{Mutex, PoisonError},
};

/// Below the ports that the kernel gives to clients, and above those of common servers.
const FIRST: u16 = 10_000;
const COUNT: u16 = 9_000;

/// Names of the ports that this process has got.
static HELD: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// A port of the loopback interface that nobody has, and that no other test gets until this process ends.
///
/// A port that the kernel chose, and that was given back, may be chosen for another test at once: its server would then answer the
/// clients of this one.
pub fn free_port() -> u16 {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    // Processes with numbers next to each other begin apart.
    let start = (process::id() as u16).wrapping_mul(97) % COUNT;
    let port = (0..COUNT).map(|more| FIRST + (start + more) % COUNT).find_map(|port| {
        let name = Name::from_abstract_name(format!("sidestep-testkit/port-{port}")).ok()?;
        let holder = UnixListener::bind_addr(&name).ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
        Some((port, holder))
    });
    let (port, holder) = port.expect("a free port");
    held.push(holder);
    port
}

/// Such a port, and the address of the interface.
pub fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use super::*;

    #[test]
    fn nobody_gets_a_port_twice() {
        let threads: Vec<_> =
            (0..4).map(|_| thread::spawn(|| (0..25).map(|_| free_port()).collect::<Vec<_>>())).collect();
        let ports: HashSet<u16> = threads.into_iter().flat_map(|thread| thread.join().expect("ports")).collect();
        assert_eq!(ports.len(), 100);
    }
}
