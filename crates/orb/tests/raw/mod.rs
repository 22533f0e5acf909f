//! Connections without a broker: a test says which bytes go out over a transport, and in which order.

// Each file that includes this one uses a part of it.
#![allow(dead_code)]

pub mod messages;
pub mod via;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use sidestep_fabric::{Channel, ChannelOptions, Node};
use sidestep_orb::{Builder, Ior, Orb};
use sidestep_sys::clock;
use sidestep_testkit::process::PATIENCE_NS;
use sidestep_wire::giop::{Version, header};
use sidestep_wire::ior::component::Component;
use sidestep_wire::ior::iiop;

use via::{RawVia, ViaPoint};

/// What a test goes over.
pub const TRANSPORTS: [&str; 5] = ["tcp", "fabric", "iwarp", "via", "via-flow"];

/// By when something that must happen has happened.
pub fn patience() -> u64 {
    clock::now() + PATIENCE_NS
}

/// A name for a test that no other test has.
pub fn name_of(test: &str) -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    format!("orb-{test}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The path of a UNIX socket.
pub fn path_of(name: &str) -> String {
    std::env::temp_dir().join(name).to_str().unwrap().to_owned()
}

/// An address of this host that no other process uses: one of the loopback interface, which has many.
pub fn iwarp_address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let port = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("127.{}.{middle}.{low}:{port}", high + 1)
}

/// A broker that listens on one transport under a name.
pub fn listening(on: &str, name: &str) -> Builder {
    match on {
        "tcp" => Orb::builder().tcp("127.0.0.1:0"),
        "unix" => Orb::builder().unix(&path_of(name)),
        "fabric" => Orb::builder().fabric(&format!("shm:{name}")),
        "iwarp" => Orb::builder().iwarp(&format!("{}/{name}", iwarp_address())),
        "via" => Orb::builder().via(name),
        "via-flow" => Orb::builder().via_flow(name),
        other => panic!("there is no transport {other}"),
    }
}

/// One end of a connection.
pub enum Raw {
    Tcp(TcpStream),
    Fabric(Box<Channel>),
    Via(RawVia),
}

impl Raw {
    /// Connects to where a reference says that its broker listens.
    pub fn connect(ior: &Ior) -> Self {
        let profile = iiop::Repr::parse(&ior.profiles[0]).unwrap();
        let fabric = profile.components.iter().find_map(|component| match component {
            Component::Fabric { name, .. } => Some(name.as_str()),
            _ => None,
        });
        let Some(name) = fabric else {
            let stream = TcpStream::connect((profile.host.as_str(), profile.port)).unwrap();
            stream.set_read_timeout(Some(Duration::from_nanos(PATIENCE_NS))).unwrap();
            return Raw::Tcp(stream);
        };
        if name.starts_with("via") {
            return Raw::Via(RawVia::connect(name));
        }
        let node = Node::open(&[scheme(name)], &Default::default()).unwrap();
        Raw::Fabric(Box::new(Channel::connect(&node, name, ChannelOptions::default(), b"", Some(patience())).unwrap()))
    }

    /// Sends bytes as one piece. The other end may have closed the connection: then nobody takes them.
    pub fn send(&mut self, bytes: &[u8]) {
        match self {
            Raw::Tcp(stream) => drop(stream.write_all(bytes)),
            Raw::Fabric(channel) => drop(channel.sender.send(bytes, Some(patience()))),
            Raw::Via(via) => via.send(bytes),
        }
    }

    /// Waits for some bytes; none at the end of the connection.
    fn receive(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 16 << 10];
        let count = match self {
            Raw::Tcp(stream) => match stream.read(&mut bytes) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the connection does not end"),
                read => read.unwrap_or(0),
            },
            Raw::Fabric(channel) => match channel.receiver.receive(&mut bytes, Some(patience())) {
                Err(sidestep_fabric::Error::TimedOut(what)) => panic!("the connection does not end: {what}"),
                received => received.unwrap_or(0),
            },
            Raw::Via(via) => return via.receive(),
        };
        bytes.truncate(count);
        bytes
    }

    /// Everything that comes before the end of the connection, which has to come.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            match self.receive() {
                bytes if bytes.is_empty() => return all,
                bytes => all.extend(bytes),
            }
        }
    }

    /// The next message, and what has come of others behind it; `None` if the connection ends before.
    pub fn read_message(&mut self, kept: &mut Vec<u8>) -> Option<Vec<u8>> {
        loop {
            if let Some(len) = len_of_message(kept).filter(|len| *len <= kept.len()) {
                return Some(kept.drain(..len).collect());
            }
            match self.receive() {
                bytes if bytes.is_empty() => return None,
                bytes => kept.extend(bytes),
            }
        }
    }
}

/// The length of the message that these bytes begin with.
fn len_of_message(bytes: &[u8]) -> Option<usize> {
    let header = header::Repr::parse(&header::Header::new_checked(bytes).ok()?).ok()?;
    Some(header::LEN + header.size as usize)
}

fn scheme(name: &str) -> &str {
    name.split_once(':').map_or(name, |(scheme, _)| scheme)
}

/// A place where connections come in.
pub enum Point {
    Tcp(TcpListener),
    Fabric { listener: sidestep_fabric::Listener, node: Node, name: String },
    Via(ViaPoint),
}

impl Point {
    pub fn new(on: &str, name: &str) -> Self {
        match on {
            "tcp" => Point::Tcp(TcpListener::bind("127.0.0.1:0").unwrap()),
            "fabric" => Self::of_fabric(format!("shm:{name}")),
            "iwarp" => Self::of_fabric(format!("iwarp:{}/{name}", iwarp_address())),
            flow => Point::Via(ViaPoint::new(&format!("{flow}:{name}"))),
        }
    }

    fn of_fabric(name: String) -> Self {
        let node = Node::open(&[scheme(&name)], &Default::default()).unwrap();
        let listener = node.listen(&name).unwrap();
        Point::Fabric { listener, node, name }
    }

    /// A reference to an object here.
    pub fn reference(&self, type_id: &str) -> Ior {
        let (host, port, name) = match self {
            Point::Tcp(listener) => ("127.0.0.1".to_owned(), listener.local_addr().unwrap().port(), None),
            Point::Fabric { name, .. } => (String::new(), 0, Some(name.clone())),
            Point::Via(point) => (String::new(), 0, Some(point.name().to_owned())),
        };
        // An empty name of a host is any.
        let components = name.map(|name| Component::Fabric { host: String::new(), name }).into_iter().collect();
        let object_key = b"an object".to_vec();
        let profile = iiop::Repr { version: Version::V1_2, host, port, object_key, components };
        Ior { type_id: type_id.to_owned(), profiles: vec![profile.emit().unwrap()] }
    }

    pub fn accept(&self) -> Raw {
        match self {
            Point::Tcp(listener) => {
                let stream = listener.accept().unwrap().0;
                stream.set_read_timeout(Some(Duration::from_nanos(PATIENCE_NS))).unwrap();
                Raw::Tcp(stream)
            }
            Point::Fabric { listener, .. } => {
                let request = listener.wait(Some(patience())).unwrap();
                Raw::Fabric(Box::new(
                    Channel::accept(request, ChannelOptions::default(), b"", Some(patience())).unwrap(),
                ))
            }
            Point::Via(point) => Raw::Via(point.accept()),
        }
    }
}
