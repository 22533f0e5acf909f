//! The kernel's own tables of TCP connections, one pair per network namespace.

use std::{
    collections::HashMap,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    rc::Rc,
};

use super::{
    diag::{self, STATES},
    process::{self, Descriptors},
};

/// What the kernel says of one TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its own address.
    pub local: SocketAddr,
    /// The other end's; its port is 0 while the socket listens.
    pub remote: SocketAddr,
    /// What it does.
    pub state: State,
    /// Who made it.
    pub user: u32,
    /// By which descriptors refer to it; 0: no process has it open.
    pub inode: u64,
}

/// What a TCP socket does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits for connections.
    Listening,
    /// It is one, both ways.
    Connected,
    /// One end of it has ended.
    Ending,
}

/// The TCP sockets of one network namespace.
#[derive(Debug, Default)]
pub struct Table {
    by_inode: HashMap<u64, Row>,
    by_addresses: HashMap<(SocketAddr, SocketAddr), Row>,
}

/// What was needed so far. One question asks the kernel for each of these once.
#[derive(Debug, Default)]
pub struct Tables {
    by_namespace: HashMap<PathBuf, Rc<Table>>,
    descriptors: HashMap<u32, Rc<Descriptors>>,
    /// A process that has each socket open, by inode.
    holders: Option<HashMap<u64, u32>>,
}

impl Tables {
    /// The table of the network namespace that a process is in; an empty one if it has gone.
    pub fn of_process(&mut self, process: u32) -> Rc<Table> {
        let folder = format!("/proc/{process}");
        let Ok(namespace) = fs::read_link(format!("{folder}/ns/net")) else { return Rc::default() };
        let is_own = || fs::read_link("/proc/self/ns/net").is_ok_and(|own| own == namespace);
        if let Some(known) = self.by_namespace.get(&namespace) {
            return known.clone();
        }
        let rows = if is_own() { diag::rows() } else { None };
        let table = Rc::new(rows.map_or_else(|| Table::read(&folder), Table::of_rows));
        self.by_namespace.insert(namespace, table.clone());
        table
    }

    /// The descriptors of a process.
    pub fn descriptors(&mut self, process: u32) -> Rc<Descriptors> {
        self.descriptors.entry(process).or_insert_with(|| Rc::new(process::descriptors(process))).clone()
    }

    /// A process that has the socket with this inode open, as far as this user may know.
    pub fn holder(&mut self, inode: u64) -> Option<u32> {
        if self.holders.is_none() {
            let mut holders = HashMap::new();
            for pid in process::all() {
                holders.extend(self.descriptors(pid).sockets.iter().map(|(_, inode)| (*inode, pid)));
            }
            self.holders = Some(holders);
        }
        self.holders.as_ref()?.get(&inode).copied()
    }
}

impl Table {
    fn read(folder: &str) -> Table {
        let text = |name| fs::read_to_string(format!("{folder}/net/{name}")).unwrap_or_default();
        Table::of_texts(&["tcp", "tcp6"].map(text))
    }

    /// What the kernel has printed.
    pub fn of_texts(texts: &[String]) -> Table {
        Table::of_rows(texts.iter().flat_map(|text| text.lines().skip(1)).filter_map(parse))
    }

    fn of_rows(rows: impl IntoIterator<Item = Row>) -> Table {
        let mut table = Table::default();
        for row in rows {
            if row.inode != 0 {
                table.by_inode.insert(row.inode, row);
            }
            table.by_addresses.insert((row.local, row.remote), row);
        }
        table
    }

    /// The socket with this inode.
    pub fn with_inode(&self, inode: u64) -> Option<&Row> {
        self.by_inode.get(&inode)
    }

    /// The socket with these addresses.
    pub fn between(&self, local: SocketAddr, remote: SocketAddr) -> Option<&Row> {
        self.by_addresses.get(&(local, remote))
    }

    /// Every socket.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.by_addresses.values()
    }
}

/// One line of a table.
fn parse(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace().skip(1);
    let (local, remote, state) = (address(words.next()?)?, address(words.next()?)?, words.next()?);
    let number = u8::from_str_radix(state, 16).ok()?;
    let (_, state) = STATES.into_iter().find(|(known, _)| *known == number)?;
    let mut words = words.skip(3);
    let (user, _, inode) = (words.next()?.parse().ok()?, words.next()?, words.next()?.parse().ok()?);
    Some(Row { local, remote, state, user, inode })
}

/// An address as the kernel prints it: words of the machine in hexadecimal, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let bytes = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            let v6 = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
            v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line =
            "   3: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0";
        let row = parse(line).expect("a connection");
        assert_eq!((row.inode, row.user, row.state), (4711, 1000, State::Connected));
        assert_eq!((row.local.to_string().as_str(), row.remote.port()), ("127.0.0.1:8080", 50000));
        assert_eq!(parse(&line.replace(" 01 ", " 0A ")).expect("a listener").state, State::Listening);
        assert_eq!(parse(&line.replace(" 01 ", " 06 ")), None, "it has ended");
        let mapped = address("0000000000000000FFFF00000100007F:0050").expect("an address");
        assert_eq!(mapped.to_string(), "127.0.0.1:80");
        let own = address("00000000000000000000000001000000:0050").expect("an address");
        assert_eq!(own.to_string(), "[::1]:80");
        assert_eq!(address("0100007F"), None);
    }
}
